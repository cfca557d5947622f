/* The command line of `tombolo run`. docs/man/mpiexec.txt describes it to users. */
#include "launch/launch.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SECTION_LIMIT TB_APP_LIMIT

enum option {
    COUNT,
    HOST,
    HOSTFILE,
    VARIABLE,
    VARIABLE_PAIR,
    VARIABLE_FOR_ALL,
    DIRECTORY,
    TIMEOUT,
    TAG,
    BIND,
    LAUNCHER,
    LAB,
    GRID,
    ALLOW_MISSING,
    MANUAL,
    SET,
    ENCRYPT,
    MAP,
    PROGRAM,
    NOTHING,
    HELP,
    VERSION
};

/* Every spelling, with how many values follow. One or two dashes are the same. */
static const struct {
    const char *name;
    enum option option;
    int values;
} spellings[] = {
    {"n", COUNT, 1},
    {"np", COUNT, 1},
    {"c", COUNT, 1},
    {"H", HOST, 1},
    {"host", HOST, 1},
    {"hosts", HOST, 1},
    {"f", HOSTFILE, 1},
    {"hostfile", HOSTFILE, 1},
    {"machinefile", HOSTFILE, 1},
    {"x", VARIABLE, 1},
    {"env", VARIABLE_PAIR, 2},
    {"genv", VARIABLE_FOR_ALL, 2},
    {"wdir", DIRECTORY, 1},
    {"wd", DIRECTORY, 1},
    {"timeout", TIMEOUT, 1},
    {"tag-output", TAG, 0},
    {"l", TAG, 0},
    {"bind", BIND, 1},
    {"bind-to", BIND, 1},
    {"launcher", LAUNCHER, 1},
    {"lab", LAB, 1},
    {"grid", GRID, 1},
    {"allow-missing", ALLOW_MISSING, 0},
    {"manual", MANUAL, 1},
    {"set", SET, 1},
    {"encrypt", ENCRYPT, 1},
    {"map", MAP, 1},
    {"map-by", MAP, 1},
    {"tombolo", PROGRAM, 1},
    {"oversubscribe", NOTHING, 0},
    {"help", HELP, 0},
    {"h", HELP, 0},
    {"version", VERSION, 0},
    {"V", VERSION, 0},
};

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

static int parse_bind(struct tb_options *options, const char *text)
{
    static const struct {
        const char *name;
        enum tb_bind bind;
    } names[] = {{"none", TB_BIND_NONE},     {"thread", TB_BIND_THREAD}, {"hwthread", TB_BIND_THREAD},
                 {"core", TB_BIND_CORE},     {"numa", TB_BIND_NUMA},     {"socket", TB_BIND_SOCKET},
                 {"package", TB_BIND_SOCKET}};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(text, names[i].name) == 0) {
            options->bind = names[i].bind;
            return TB_OK;
        }
    return tb_error(TB_ERR_ARGUMENT, "--bind %s: should be none, thread, core, numa or socket", text);
}

static int parse_map(struct tb_options *options, const char *text)
{
    static const struct {
        const char *name;
        enum tb_map map;
    } names[] = {{"slot", TB_MAP_SLOT}, {"core", TB_MAP_SLOT}, {"node", TB_MAP_NODE}, {"cluster", TB_MAP_CLUSTER}};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(text, names[i].name) == 0) {
            options->map = names[i].map;
            return TB_OK;
        }
    return tb_error(TB_ERR_ARGUMENT, "--map %s: should be slot, node or cluster", text);
}

static int add_variable(struct tb_section *section, const char *name, const char *value)
{
    size_t length = value != NULL ? strlen(name) : strcspn(name, "=");
    if (length == 0 || memchr(name, '=', length) != NULL)
        return tb_error(TB_ERR_ARGUMENT, "-x %s: should be NAME or NAME=VALUE", name);
    char *made = NULL;
    int n;
    if (value != NULL) {
        n = asprintf(&made, "%s=%s", name, value);
    } else if (name[length] == '=') {
        n = asprintf(&made, "%s", name);
    } else {
        const char *here = getenv(name);
        if (here == NULL)
            return tb_error(TB_ERR_ARGUMENT, "-x %s: there is no such variable in the environment; write -x %s=VALUE",
                            name, name);
        n = asprintf(&made, "%s=%s", name, here);
    }
    char **grown = n >= 0 ? realloc(section->variables, (section->variable_count + 2) * sizeof *grown) : NULL;
    if (grown == NULL) {
        free(n >= 0 ? made : NULL);
        return tb_error(TB_ERR_MEMORY, "no memory for the environment");
    }
    section->variables = grown;
    grown[section->variable_count++] = made;
    grown[section->variable_count] = NULL;
    return TB_OK;
}

/* The environment is set too, so that a process here does not think that it was told something else there. */
static int set_parameter(const char *text)
{
    const char *equals = strchr(text, '=');
    char name[64], variable[80];
    if (equals == NULL || equals == text || (size_t)(equals - text) >= sizeof name)
        return tb_error(TB_ERR_ARGUMENT, "--set %s: should be NAME=VALUE; `tombolo info` lists the names", text);
    memcpy(name, text, (size_t)(equals - text));
    name[equals - text] = 0;
    int rc = tb_param_set(name, equals + 1, TB_PARAM_LAUNCHER);
    if (rc != TB_OK)
        return rc;
    size_t n = (size_t)snprintf(variable, sizeof variable, "TOMBOLO_%s", tb_param_find(name)->name);
    for (size_t i = 8; i < n; i++)
        if (variable[i] >= 'a' && variable[i] <= 'z')
            variable[i] = (char)(variable[i] - 'a' + 'A');
    setenv(variable, equals + 1, 1);
    return TB_OK;
}

static int set_encrypt(const char *word)
{
    char text[80];
    snprintf(text, sizeof text, "encrypt=%s", word);
    return set_parameter(text);
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

static int set_directory(struct tb_section *section, const char *text)
{
    free(section->directory);
    section->directory = *text == '/' ? strdup(text) : realpath(text, NULL);
    if (section->directory == NULL)
        return tb_error_errno("--wdir %s: there is no such directory here; for one on other hosts, write its full path",
                              text);
    return TB_OK;
}

static int apply(struct tb_options *options, struct tb_section *section, enum option option, char **values)
{
    switch (option) {
    case COUNT:
        return parse_count(section, values[0]);
    case HOST:
        return tb_host_list_parse(&section->hosts, values[0], "-H");
    case HOSTFILE:
        return tb_host_list_load(&options->hosts, values[0]);
    case VARIABLE:
        return add_variable(section, values[0], NULL);
    case VARIABLE_PAIR:
        return add_variable(section, values[0], values[1]);
    case VARIABLE_FOR_ALL:
        return add_variable(&options->all, values[0], values[1]);
    case DIRECTORY:
        return set_directory(section, values[0]);
    case TIMEOUT:
        return parse_timeout(options, values[0]);
    case BIND:
        return parse_bind(options, values[0]);
    case SET:
        return set_parameter(values[0]);
    case ENCRYPT:
        return set_encrypt(values[0]);
    case MAP:
        return parse_map(options, values[0]);
    case GRID:
        options->grid_file = values[0];
        return TB_OK;
    case ALLOW_MISSING:
        options->allow_missing = true;
        return TB_OK;
    case MANUAL:
        if (options->manual_count == TB_MANUAL_LIMIT)
            return tb_error(TB_ERR_LIMIT, "--manual: more than %u clusters", TB_MANUAL_LIMIT);
        options->manual[options->manual_count++] = values[0];
        return TB_OK;
    case TAG:
        options->tag_output = true;
        return TB_OK;
    case LAB:
        options->lab = values[0];
        return TB_OK;
    case LAUNCHER:
        options->launcher = values[0];
        return TB_OK;
    case PROGRAM:
        options->program = values[0];
        return TB_OK;
    case HELP:
        options->action = TB_OPTIONS_HELP;
        return TB_OK;
    case VERSION:
        options->action = TB_OPTIONS_VERSION;
        return TB_OK;
    case NOTHING:
        return TB_OK;
    }
    return tb_error(TB_ERR_INTERNAL, "an option without meaning");
}

/* One option with its values; *used counts words. */
static int parse_option(struct tb_options *options, struct tb_section *section, char **words, size_t *used)
{
    const char *word = words[0];
    const char *name = word + (word[1] == '-' ? 2 : 1);
    const char *equals = strchr(name, '=');
    size_t length = equals != NULL ? (size_t)(equals - name) : strlen(name);
    for (size_t i = 0; i < sizeof spellings / sizeof spellings[0]; i++) {
        if (strlen(spellings[i].name) != length || memcmp(spellings[i].name, name, length) != 0)
            continue;
        char *values[2] = {(char *)"", (char *)""};
        size_t from = 1;
        if (equals != NULL && spellings[i].values == 1)
            values[0] = (char *)equals + 1;
        else if (equals != NULL)
            return tb_error(TB_ERR_ARGUMENT, "%.*s takes no value", (int)(equals - word), word);
        else
            for (int k = 0; k < spellings[i].values; k++) {
                if (words[from] == NULL)
                    return tb_error(TB_ERR_ARGUMENT, "%s needs a value", word);
                values[k] = words[from++];
            }
        *used = from;
        return apply(options, section, spellings[i].option, values);
    }
    return tb_error(TB_ERR_ARGUMENT, "%s is no option of %s; --help shows them all", word, options->name);
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

/* Up to the next colon or the end; *used counts words, without the colon. */
static int parse_section(struct tb_options *options, char **words, size_t *used)
{
    struct tb_section *section = add_section(options);
    if (section == NULL)
        return TB_ERR_LIMIT;
    size_t at = 0;
    while (words[at] != NULL && words[at][0] == '-' && words[at][1] != 0) {
        size_t n = 1;
        if (strcmp(words[at], "--") == 0) {
            at++;
            break;
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
    *used = at;
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

static bool has_variable(const struct tb_section *section, const char *variable)
{
    size_t length = strcspn(variable, "=") + 1;
    for (uint32_t i = 0; i < section->variable_count; i++)
        if (strncmp(section->variables[i], variable, length) == 0)
            return true;
    return false;
}

/* Variables for all programs; what was said last counts, and what a program is given itself before that. */
static int share_variables(struct tb_options *options)
{
    for (uint32_t i = 0; i < options->section_count; i++)
        for (uint32_t k = options->all.variable_count; k-- > 0;) {
            const char *variable = options->all.variables[k];
            int rc = has_variable(&options->sections[i], variable)
                         ? TB_OK
                         : add_variable(&options->sections[i], variable, NULL);
            if (rc != TB_OK)
                return rc;
        }
    return TB_OK;
}

/* A grid file says itself where the ranks go, a lab also how its hosts are reached. */
static int check_grid(const struct tb_options *options)
{
    bool hosts = options->hosts.count > 0;
    for (uint32_t i = 0; i < options->section_count; i++)
        hosts = hosts || options->sections[i].hosts.count > 0;
    if (options->grid_file != NULL && (hosts || options->lab != NULL))
        return tb_error(TB_ERR_ARGUMENT,
                        "--grid %s: the grid file names the hosts, so --host, --hostfile and --lab do not go with it",
                        options->grid_file);
    if (options->grid_file == NULL && options->lab == NULL && (options->allow_missing || options->manual_count > 0))
        return tb_error(TB_ERR_ARGUMENT, "%s only has a meaning with --grid GRID.yaml",
                        options->allow_missing ? "--allow-missing" : "--manual");
    if (options->lab != NULL && (hosts || options->launcher != NULL))
        return tb_error(TB_ERR_ARGUMENT,
                        "--lab %s: the grid file names the hosts, so --host, --hostfile and --launcher "
                        "do not go with it",
                        options->lab);
    return TB_OK;
}

int tb_options_parse(struct tb_options *options, char **words)
{
    const char *name = options->name;
    *options = (struct tb_options){.name = name != NULL ? name : "mpiexec"};
    for (size_t at = 0;;) {
        size_t used = 0;
        int rc = parse_section(options, words + at, &used);
        if (rc != TB_OK || options->action != TB_OPTIONS_RUN)
            return rc;
        at += used;
        if (words[at] == NULL) {
            rc = take_timeout_variable(options);
            if (rc == TB_OK)
                rc = share_hosts(options);
            if (rc == TB_OK)
                rc = share_variables(options);
            if (rc == TB_OK)
                rc = check_encrypt();
            return rc == TB_OK ? check_grid(options) : rc;
        }
        at++;
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
    *options = (struct tb_options){0};
}
