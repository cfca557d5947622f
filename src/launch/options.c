/* The command line of `tombolo run`. docs/man/mpiexec.txt describes it to users. */
#include "launch/launch.h"
#include "launch/options_table.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define SECTION_LIMIT TB_APP_LIMIT
#define ELSEWHERE     1 /* another function knows this option */

/* ---- what values mean -------------------------------------------------------------------------------------------- */

/* A number between 1 and `most`. */
static int parse_number(const char *name, const char *text, uint32_t most, uint32_t *value)
{
    char *end;
    errno = 0;
    long n = strtol(text, &end, 10);
    if (end == text || *end != 0 || errno != 0 || n < 1 || n > (long)most)
        return tb_error(TB_ERR_ARGUMENT, "%s %s: should be a number between 1 and %u", name, text, most);
    *value = (uint32_t)n;
    return TB_OK;
}

static int parse_count(struct tb_section *section, const char *text)
{
    char *end;
    errno = 0;
    long n = strtol(text, &end, 10);
    if (end == text || *end != 0 || errno != 0 || n < 1 || n > (long)TB_JOB_RANKS_LIMIT)
        return tb_error(TB_ERR_ARGUMENT, "-n %s: the number of ranks should be between 1 and %u", text,
                        TB_JOB_RANKS_LIMIT);
    section->count = (uint32_t)n;
    return TB_OK;
}

static int parse_timeout(struct tb_options *options, const char *text)
{
    char *end;
    double seconds = strtod(text, &end);
    if (end == text || *end != 0 || !isfinite(seconds) || seconds <= 0 || seconds > 1e9)
        return tb_error(TB_ERR_ARGUMENT, "--timeout %s: should be a number of seconds greater than 0", text);
    options->timeout = (uint64_t)(seconds * 1e9);
    options->timeout_name = "--timeout";
    return TB_OK;
}

/* What other implementations honour too; 0 and less mean no limit, as there. */
static int take_timeout_variable(struct tb_options *options)
{
    const char *text = getenv("MPIEXEC_TIMEOUT");
    if (options->timeout > 0 || text == NULL || *text == 0)
        return TB_OK;
    char *end;
    double seconds = strtod(text, &end);
    if (end == text || *end != 0 || !isfinite(seconds) || seconds > 1e9)
        return tb_error(TB_ERR_ARGUMENT, "MPIEXEC_TIMEOUT=%s: should be a number of seconds", text);
    options->timeout = seconds > 0 ? (uint64_t)(seconds * 1e9) : 0;
    options->timeout_name = "MPIEXEC_TIMEOUT";
    return TB_OK;
}

static int set_directory(struct tb_section *section, const char *text)
{
    free(section->directory);
    section->directory = *text == '/' ? strdup(text) : realpath(text, NULL);
    if (section->directory == NULL)
        return tb_error_errno("--wdir %s: there is no such directory here; for one on other hosts, write its full path",
                              text);
    return TB_OK;
}

static int set_input(struct tb_options *options, const char *text)
{
    char *end;
    unsigned long rank = strtoul(text, &end, 10);
    if (strcmp(text, "none") == 0 || strcmp(text, "/dev/null") == 0) {
        options->input_rank = TB_RANK_NONE;
        return TB_OK;
    }
    if (strcmp(text, "all") == 0)
        return tb_error(TB_ERR_ARGUMENT, "--stdin all: not here; write the input to a file that each rank opens");
    if (end == text || *end != 0 || rank >= TB_JOB_RANKS_LIMIT)
        return tb_error(TB_ERR_ARGUMENT, "--stdin %s: should be a rank or none", text);
    options->input_rank = (uint32_t)rank;
    return TB_OK;
}

static int set_path(struct tb_options *options, struct tb_section *section, const char *text)
{
    const char *path = getenv("PATH");
    const char *whole = tb_options_keep(options, "%s%s%s", text, path != NULL ? ":" : "", path != NULL ? path : "");
    return whole != NULL ? tb_variables_add(section, "PATH", whole) : TB_ERR_MEMORY;
}

/* What a process finds in its environment about its start. */
static int set_first_errhandler(struct tb_section *section, const char *text)
{
    if (tb_first_errhandler_find(text) < 0)
        return tb_error(TB_ERR_ARGUMENT, "-initial-errhandler %s: %s", text, tb_error_story());
    return tb_variables_add(section, TB_FIRST_ERRHANDLER_VARIABLE, text);
}

static int set_memory_kinds(struct tb_section *section, const char *text)
{
    if (tb_memory_kinds_check(text) != TB_OK)
        return tb_error(TB_ERR_ARGUMENT, "-memory-alloc-kinds %s: %s", text, tb_error_story());
    return tb_variables_add(section, TB_MEMORY_KINDS_VARIABLE, text);
}

/* In the words of MPICH. */
static int set_universe(struct tb_options *options, const char *text)
{
    if (strcasecmp(text, "SYSTEM") == 0)
        options->universe = 0;
    else if (strcasecmp(text, "INFINITE") == 0)
        options->universe = TB_UNIVERSE_INFINITE;
    else if (parse_number("-usize", text, TB_JOB_RANKS_LIMIT, &options->universe) != TB_OK)
        return tb_error(TB_ERR_ARGUMENT, "-usize %s: should be a number between 1 and %u, SYSTEM or INFINITE", text,
                        TB_JOB_RANKS_LIMIT);
    return TB_OK;
}

/* Both forms: NAME VALUE, and NAME=VALUE in one word, which leaves the second value unused. */
static int add_pair(struct tb_section *section, char **values)
{
    bool is_whole = strchr(values[0], '=') != NULL;
    return tb_variables_add(section, values[0], is_whole ? NULL : values[1]);
}

/* Where ranks go and which processors they get. */
static int apply_place(struct tb_options *options, struct tb_section *section, enum tb_option option, char **values)
{
    switch (option) {
    case TB_OPTION_COUNT:
        return parse_count(section, values[0]);
    case TB_OPTION_HOST:
        return tb_host_list_parse(&section->hosts, values[0], "-H");
    case TB_OPTION_HOST_FILE:
        options->has_host_file = true;
        return tb_host_list_load(&options->hosts, values[0]);
    case TB_OPTION_DEFAULT_HOST_FILE:
        options->default_hosts = values[0];
        return TB_OK;
    case TB_OPTION_PER_HOST:
        return parse_number("-ppn", values[0], TB_LAUNCH_SLOTS_LIMIT, &options->per_host);
    case TB_OPTION_ONE_PER_HOST:
        options->per_host = 1;
        return TB_OK;
    case TB_OPTION_MAP:
        return tb_foreign_map(options, values[0]);
    case TB_OPTION_MAP_NODE:
        options->map = TB_MAP_NODE;
        return TB_OK;
    case TB_OPTION_MAP_SLOT:
        options->map = TB_MAP_SLOT;
        return TB_OK;
    case TB_OPTION_RANK_BY:
        return tb_foreign_rank_by(options, values[0]);
    case TB_OPTION_NO_OVERSUBSCRIBE:
        options->oversubscribes = false;
        return TB_OK;
    case TB_OPTION_NO_LOCAL:
        options->avoids_this_host = true;
        return TB_OK;
    case TB_OPTION_RANK_FILE:
        options->rank_file_name = values[0];
        return TB_OK;
    case TB_OPTION_BIND:
        return tb_foreign_bind(options, values[0]);
    case TB_OPTION_BIND_CORE:
        options->bind = TB_BIND_CORE;
        return TB_OK;
    case TB_OPTION_BIND_SOCKET:
        options->bind = TB_BIND_SOCKET;
        return TB_OK;
    case TB_OPTION_BIND_CPUS:
        options->bind_cpus = values[0];
        return TB_OK;
    case TB_OPTION_BIND_WIDTH:
        options->bind = options->bind != TB_BIND_NONE ? options->bind : TB_BIND_CORE;
        return parse_number("--cpus-per-rank", values[0], TB_BIND_WIDTH_LIMIT, &options->bind_width);
    case TB_OPTION_BIND_REPORT:
        return tb_options_set_parameter("bind_report=yes");
    case TB_OPTION_KEEP_GOING:
        return tb_options_set_parameter("keep_going=yes");
    case TB_OPTION_DISPLAY:
        return tb_foreign_display(options, values[0]);
    case TB_OPTION_DISPLAY_MAP:
        options->shows_map = true;
        return TB_OK;
    case TB_OPTION_PLAN_ONLY:
        options->shows_map = options->plans_only = true;
        return TB_OK;
    default:
        return ELSEWHERE;
    }
}

/* What the ranks get, and where their output goes. */
static int apply_streams(struct tb_options *options, struct tb_section *section, enum tb_option option, char **values)
{
    struct tb_output_options *output = &options->output;
    switch (option) {
    case TB_OPTION_VARIABLE:
        return tb_variables_add(section, values[0], NULL);
    case TB_OPTION_VARIABLE_PAIR:
        return add_pair(section, values);
    case TB_OPTION_VARIABLE_FOR_ALL:
        return add_pair(&options->all, values);
    case TB_OPTION_VARIABLES:
        return tb_variables_add_list(section, values[0]);
    case TB_OPTION_VARIABLES_FOR_ALL:
        return tb_variables_add_list(&options->all, values[0]);
    case TB_OPTION_ALL_VARIABLES:
        options->passes_all = true;
        return TB_OK;
    case TB_OPTION_NO_VARIABLES:
        options->all.bare = true;
        return TB_OK;
    case TB_OPTION_DIRECTORY:
        return set_directory(section, values[0]);
    case TB_OPTION_PATH:
        return set_path(options, section, values[0]);
    case TB_OPTION_FIRST_ERRHANDLER:
        return set_first_errhandler(section, values[0]);
    case TB_OPTION_MEMORY_KINDS:
        return set_memory_kinds(section, values[0]);
    case TB_OPTION_UNIVERSE:
        return set_universe(options, values[0]);
    case TB_OPTION_INPUT:
        return set_input(options, values[0]);
    case TB_OPTION_BUFFERING:
        return tb_foreign_buffering(values[0]);
    case TB_OPTION_PTY:
        options->pty = true;
        return TB_OK;
    case TB_OPTION_TAG:
        output->tags = true;
        return TB_OK;
    case TB_OPTION_PATTERN:
        output->pattern = values[0];
        return TB_OK;
    case TB_OPTION_TIMES:
        output->times = true;
        return TB_OK;
    case TB_OPTION_MERGE:
        output->merged = true;
        return TB_OK;
    case TB_OPTION_OUTPUT:
        return tb_foreign_output(options, values[0]);
    case TB_OPTION_OUTPUT_FILES:
        return tb_foreign_output_files(options, values[0]);
    case TB_OPTION_OUT_PATTERN:
        output->files[0] = values[0];
        return TB_OK;
    case TB_OPTION_ERR_PATTERN:
        output->files[1] = values[0];
        return TB_OK;
    default:
        return ELSEWHERE;
    }
}

/* An option that is another way to say --set NAME=VALUE. */
static int set_as(struct tb_options *options, const char *name, const char *value)
{
    const char *text = tb_options_keep(options, "%s=%s", name, value);
    return text != NULL ? tb_options_set_parameter(text) : TB_ERR_MEMORY;
}

static int apply_rest(struct tb_options *options, enum tb_option option, char **values)
{
    switch (option) {
    case TB_OPTION_TIMEOUT:
        return parse_timeout(options, values[0]);
    case TB_OPTION_SET:
        return tb_options_set_parameter(values[0]);
    case TB_OPTION_ENCRYPT:
        return set_as(options, "encrypt", values[0]);
    case TB_OPTION_PLAN:
        return set_as(options, "plan", values[0]);
    case TB_OPTION_MEET:
        options->meet_file = values[0];
        return TB_OK;
    case TB_OPTION_MCA:
        return tb_foreign_mca(options, values[0], values[1]);
    case TB_OPTION_INTERFACE:
        return tb_foreign_mca(options, "btl_tcp_if_include", values[0]);
    case TB_OPTION_VERBOSE:
        return tb_options_set_parameter("log=info");
    case TB_OPTION_DEBUG:
        return tb_options_set_parameter("log=debug");
    case TB_OPTION_GRID:
        options->grid_file = values[0];
        return TB_OK;
    case TB_OPTION_LAB:
        options->lab = values[0];
        return TB_OK;
    case TB_OPTION_ALLOW_MISSING:
        options->allow_missing = true;
        return TB_OK;
    case TB_OPTION_MANUAL:
        if (options->manual_count == TB_MANUAL_LIMIT)
            return tb_error(TB_ERR_LIMIT, "--manual: more than %u clusters", TB_MANUAL_LIMIT);
        options->manual[options->manual_count++] = values[0];
        return TB_OK;
    case TB_OPTION_LAUNCHER:
        return tb_foreign_launcher(options, values[0]);
    case TB_OPTION_LAUNCHER_EXEC:
        options->launcher = values[0];
        return TB_OK;
    case TB_OPTION_PROGRAM:
        options->program = values[0];
        return TB_OK;
    case TB_OPTION_OWN_PROGRAM:
        options->own_program = true;
        return TB_OK;
    case TB_OPTION_PREFIX:
        options->program = tb_options_keep(options, "%s/bin/tombolo", values[0]);
        return options->program != NULL ? TB_OK : TB_ERR_MEMORY;
    case TB_OPTION_HELP:
        options->action = TB_OPTIONS_HELP;
        return TB_OK;
    case TB_OPTION_VERSION:
        options->action = TB_OPTIONS_VERSION;
        return TB_OK;
    default:
        return tb_error(TB_ERR_INTERNAL, "an option without meaning");
    }
}

/* ---- words ------------------------------------------------------------------------------------------------------- */

/* `word` is the option as it was written. */
static int apply(struct tb_options *options, struct tb_section *section, const struct tb_option_row *row,
                 const char *word, char **values)
{
    if (row->kind == TB_OPTION_REFUSED)
        return tb_error(TB_ERR_ARGUMENT, "%s: not here; write: %s", word, row->text);
    if (row->kind == TB_OPTION_IGNORED)
        tb_options_ignore(options, word);
    if (row->option == TB_OPTION_NONE)
        return TB_OK;
    int rc = apply_place(options, section, row->option, values);
    if (rc == ELSEWHERE)
        rc = apply_streams(options, section, row->option, values);
    return rc == ELSEWHERE ? apply_rest(options, row->option, values) : rc;
}

/* One option with its values; *used counts words. */
static int parse_option(struct tb_options *options, struct tb_section *section, char **words, size_t *used)
{
    const char *word = words[0];
    const char *name = word + (word[1] == '-' ? 2 : 1);
    const char *equals = strchr(name, '=');
    const struct tb_option_row *row = tb_option_find(name, equals != NULL ? (size_t)(equals - name) : strlen(name));
    char *values[2] = {(char *)"", (char *)""};
    if (row == NULL)
        return tb_error(TB_ERR_ARGUMENT, "%s is no option of %s; --help shows them all", word, options->name);
    *used = 1;
    if (equals != NULL && row->values != 1)
        return tb_error(TB_ERR_ARGUMENT, "%.*s takes no value", (int)(equals - word), word);
    if (equals != NULL)
        values[0] = (char *)equals + 1;
    for (int k = 0; equals == NULL && k < row->values; k++) {
        bool is_pair = row->option == TB_OPTION_VARIABLE_PAIR || row->option == TB_OPTION_VARIABLE_FOR_ALL;
        if (k == 1 && is_pair && strchr(values[0], '=') != NULL)
            break;
        if (words[*used] == NULL)
            return tb_error(TB_ERR_ARGUMENT, "%s needs a value", word);
        values[k] = words[(*used)++];
    }
    return apply(options, section, row, word, values);
}

/* The rest of the command line comes from a file. */
static int open_config_file(struct tb_options *options, char **words)
{
    if (options->config != NULL)
        return tb_error(TB_ERR_ARGUMENT, "%s: in such a file there cannot be another one", words[0]);
    if (words[1] == NULL)
        return tb_error(TB_ERR_ARGUMENT, "%s needs a value", words[0]);
    if (words[2] != NULL || options->section_count > 1)
        return tb_error(TB_ERR_ARGUMENT, "%s %s: programs and their options stand in the file, and nothing follows it",
                        words[0], words[1]);
    return tb_config_file_load(words[1], &options->config);
}

static struct tb_section *add_section(struct tb_options *options)
{
    if (options->section_count == SECTION_LIMIT) {
        tb_error(TB_ERR_LIMIT, "more than %u programs", SECTION_LIMIT);
        return NULL;
    }
    if (options->section_count == options->section_room) {
        uint32_t room = options->section_room > 0 ? options->section_room * 2 : 2;
        struct tb_section *grown = realloc(options->sections, room * sizeof *grown);
        if (grown == NULL) {
            tb_error(TB_ERR_MEMORY, "no memory for the command line");
            return NULL;
        }
        options->sections = grown;
        options->section_room = room;
    }
    struct tb_section *section = &options->sections[options->section_count++];
    *section = (struct tb_section){0};
    return section;
}

static bool is_config_file(const char *word)
{
    const struct tb_option_row *row =
        word[0] == '-' ? tb_option_find(word + 1 + (word[1] == '-'), strlen(word + 1 + (word[1] == '-'))) : NULL;
    return row != NULL && row->option == TB_OPTION_CONFIG_FILE;
}

/* Up to the next colon or the end; *words goes there, before the colon. */
static int parse_section(struct tb_options *options, char ***rest)
{
    struct tb_section *section = add_section(options);
    if (section == NULL)
        return TB_ERR_LIMIT;
    char **words = *rest;
    size_t at = 0;
    while (words[at] != NULL && words[at][0] == '-' && words[at][1] != 0) {
        size_t n = 1;
        if (strcmp(words[at], "--") == 0) {
            at++;
            break;
        }
        if (is_config_file(words[at])) {
            int rc = open_config_file(options, words + at);
            if (rc != TB_OK)
                return rc;
            words = options->config;
            at = 0;
            continue;
        }
        int rc = parse_option(options, section, words + at, &n);
        if (rc != TB_OK || options->action != TB_OPTIONS_RUN)
            return rc;
        at += n;
    }
    section->arguments = words + at;
    while (words[at] != NULL && strcmp(words[at], ":") != 0) {
        at++;
        section->argument_count++;
    }
    if (section->argument_count == 0)
        return tb_error(TB_ERR_ARGUMENT, "which program should be started? As in: %s -n 4 ./hello (--help shows more)",
                        options->name);
    TB_ASSERT(section->arguments[0] != NULL);
    if (*section->arguments[0] == 0)
        return tb_error(TB_ERR_ARGUMENT, "the name of the program is empty");
    *rest = words + at;
    return TB_OK;
}

/* Hosts named in the only section, or before the first program, are for all. */
static int share_hosts(struct tb_options *options)
{
    struct tb_host_list *first = &options->sections[0].hosts;
    bool others = false;
    for (uint32_t i = 1; i < options->section_count; i++)
        others = others || options->sections[i].hosts.count > 0;
    if (others || first->count == 0)
        return TB_OK;
    if (options->hosts.count > 0)
        return TB_OK; /* a host file says how many slots there are, -H which of them are used */
    options->hosts = *first;
    *first = (struct tb_host_list){0};
    return TB_OK;
}

/* Variables for all programs; what was said last counts, and what a program is given itself before that. */
static int share_variables(struct tb_options *options)
{
    int rc = TB_OK;
    for (uint32_t i = 0; i < options->section_count && rc == TB_OK; i++) {
        struct tb_section *section = &options->sections[i];
        section->bare = options->all.bare;
        for (uint32_t k = options->all.variable_count; k-- > 0 && rc == TB_OK;) {
            const char *variable = options->all.variables[k];
            rc = tb_variables_has(section, variable) ? TB_OK : tb_variables_add(section, variable, NULL);
        }
        if (rc == TB_OK && options->passes_all)
            rc = tb_variables_add_all(section);
    }
    return rc;
}

/* However it was set. */
static int check_encrypt(void)
{
    if (!tb_param_encrypts_all() && tb_param.encrypt != NULL && strcmp(tb_param.encrypt, "clusters") != 0)
        return tb_error(TB_ERR_ARGUMENT, "--encrypt %s: should be clusters or all", tb_param.encrypt);
    if (tb_param_encrypts_all() && !tb_param.gateway_tls)
        return tb_error(TB_ERR_ARGUMENT, "--encrypt all and gateway_tls=no contradict each other");
    return TB_OK;
}

/* A grid file says itself where the ranks go, a lab also how its hosts are reached. */
static int check_grid(struct tb_options *options)
{
    bool hosts = options->hosts.count > 0 && options->has_host_file;
    for (uint32_t i = 0; i < options->section_count; i++)
        hosts = hosts || options->sections[i].hosts.count > 0;
    if (options->grid_file != NULL && (hosts || options->lab != NULL))
        return tb_error(
            TB_ERR_ARGUMENT,
            "--grid %s: the grid file names the hosts, so --hostfile, --lab, and -H of single programs do not "
            "go with it; -H before all programs chooses among its hosts",
            options->grid_file);
    if (options->grid_file == NULL && options->lab == NULL && (options->allow_missing || options->manual_count > 0))
        return tb_error(TB_ERR_ARGUMENT, "%s only has a meaning with --grid GRID.yaml",
                        options->allow_missing ? "--allow-missing" : "--manual");
    if (options->lab != NULL && (hosts || options->launcher != NULL))
        return tb_error(TB_ERR_ARGUMENT,
                        "--lab %s: the grid file names the hosts, so --hostfile, --launcher, and -H of single programs "
                        "do not go with it; -H before all programs chooses among its hosts",
                        options->lab);
    if (options->grid_file != NULL || options->lab != NULL) {
        options->chosen = options->hosts;
        options->hosts = (struct tb_host_list){0};
    }
    return TB_OK;
}

/* When all has been read. */
static int conclude(struct tb_options *options)
{
    int rc = take_timeout_variable(options);
    if (rc == TB_OK)
        rc = share_hosts(options);
    if (rc == TB_OK && options->default_hosts != NULL && options->hosts.count == 0 && options->section_count == 1 &&
        options->sections[0].hosts.count == 0)
        rc = tb_host_list_load(&options->hosts, options->default_hosts);
    if (rc == TB_OK && options->rank_file_name != NULL)
        rc = tb_rank_file_load(&options->rank_file, &options->hosts, options->rank_file_name);
    if (rc == TB_OK)
        rc = share_variables(options);
    if (rc == TB_OK)
        rc = check_encrypt();
    if (rc == TB_OK)
        rc = tb_multicast_check_parameters();
    return rc == TB_OK ? check_grid(options) : rc;
}

int tb_options_parse(struct tb_options *options, char **words)
{
    const char *name = options->name;
    *options = (struct tb_options){.name = name != NULL ? name : "mpiexec", .oversubscribes = true};
    for (;;) {
        int rc = parse_section(options, &words);
        if (rc != TB_OK || options->action != TB_OPTIONS_RUN)
            return rc;
        if (*words == NULL)
            return conclude(options);
        words++;
    }
}

static void close_section(struct tb_section *section)
{
    tb_host_list_close(&section->hosts);
    free(section->directory);
    for (uint32_t i = 0; i < section->variable_count; i++)
        free(section->variables[i]);
    free(section->variables);
}

void tb_options_close(struct tb_options *options)
{
    for (uint32_t i = 0; i < options->section_count; i++)
        close_section(&options->sections[i]);
    close_section(&options->all);
    free(options->sections);
    tb_host_list_close(&options->hosts);
    tb_host_list_close(&options->chosen);
    tb_rank_file_close(&options->rank_file);
    tb_config_file_close(options->config);
    for (uint32_t i = 0; i < options->kept_count; i++)
        free(options->kept[i]);
    free(options->kept);
    *options = (struct tb_options){0};
}
