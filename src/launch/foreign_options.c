/* Values of options that we share with MPICH and Open MPI, in their words: --map-by ppr:2:node, --bind-to core:2,
 * --output tag,merge, --mca NAME VALUE. */
#include "launch/launch.h"

#include <stdlib.h>
#include <string.h>

/* One word of a list; *rest goes behind it. */
struct word {
    const char *text;
    size_t length;
};

static struct word take_word(const char **rest, char separator)
{
    const char *end = strchr(*rest, separator);
    struct word word = {*rest, end != NULL ? (size_t)(end - *rest) : strlen(*rest)};
    *rest = end != NULL ? end + 1 : *rest + word.length;
    return word;
}

static bool is_word(struct word word, const char *text)
{
    if (strlen(text) != word.length)
        return false;
    for (size_t i = 0; i < word.length; i++)
        if ((word.text[i] | 0x20) != (text[i] | 0x20)) /* upper and lower case are the same */
            return false;
    return true;
}

static bool is_among(struct word word, const char *const *names)
{
    for (; *names != NULL; names++)
        if (is_word(word, *names))
            return true;
    return false;
}

static int take_number(struct word word, uint32_t most, uint32_t *value)
{
    uint64_t v = 0;
    for (size_t i = 0; i < word.length && v <= most; i++) {
        if (word.text[i] < '0' || word.text[i] > '9')
            return TB_ERR_ARGUMENT;
        v = v * 10 + (uint64_t)(word.text[i] - '0');
    }
    *value = (uint32_t)v;
    return word.length > 0 && v > 0 && v <= most ? TB_OK : TB_ERR_ARGUMENT;
}

/* ---- where ranks go ---------------------------------------------------------------------------------------------- */

/* What follows the first word of --map-by. */
static int take_modifier(struct tb_options *options, struct word word, const char *whole)
{
    static const char *const nothing[] = {"SPAN",     "INHERIT", "NOINHERIT",     "HWTCPUS",
                                          "CORECPUS", "DISPLAY", "OVERSUBSCRIBE", NULL};
    if (is_among(word, nothing))
        return TB_OK;
    if (is_word(word, "NOOVERSUBSCRIBE"))
        options->oversubscribes = false;
    else if (is_word(word, "NOLOCAL"))
        options->avoids_this_host = true;
    else if (word.length > 3 && is_word((struct word){word.text, 3}, "PE=") &&
             take_number((struct word){word.text + 3, word.length - 3}, TB_BIND_WIDTH_LIMIT, &options->bind_width) ==
                 TB_OK)
        options->bind = options->bind != TB_BIND_NONE ? options->bind : TB_BIND_CORE;
    else
        return tb_error(TB_ERR_ARGUMENT, "--map-by %s: \"%.*s\" is not known here", whole, (int)word.length, word.text);
    return TB_OK;
}

/* ppr:N:node */
static int take_per_resource(struct tb_options *options, const char **rest, const char *whole)
{
    struct word count = take_word(rest, ':'), what = take_word(rest, ':');
    if (take_number(count, TB_LAUNCH_SLOTS_LIMIT, &options->per_host) != TB_OK || what.length == 0)
        return tb_error(TB_ERR_ARGUMENT, "--map-by %s: should look like ppr:2:node", whole);
    if (!is_word(what, "node"))
        return tb_error(TB_ERR_ARGUMENT, "--map-by %s: not here; write: -ppn N --bind %.*s", whole, (int)what.length,
                        what.text);
    return TB_OK;
}

int tb_foreign_map(struct tb_options *options, const char *text)
{
    static const char *const inside[] = {"slot",    "core", "hwthread", "l1cache", "l2cache", "l3cache",
                                         "package", "numa", "socket",   "board",   NULL};
    const char *rest = text;
    struct word what = take_word(&rest, ':');
    int rc = TB_OK;
    if (is_among(what, inside) || what.length == 0)
        options->map = TB_MAP_SLOT;
    else if (is_word(what, "node"))
        options->map = TB_MAP_NODE;
    else if (is_word(what, "cluster"))
        options->map = TB_MAP_CLUSTER;
    else if (is_word(what, "seq"))
        options->map = TB_MAP_LINES;
    else if (is_word(what, "ppr"))
        rc = take_per_resource(options, &rest, text);
    else if (is_word(what, "rankfile") && strncmp(rest, "file=", 5) == 0) {
        options->rank_file_name = rest + 5;
        return TB_OK;
    } else
        return tb_error(TB_ERR_ARGUMENT, "--map %s: should be slot, node or cluster", text);
    while (rc == TB_OK && *rest != 0)
        rc = take_modifier(options, take_word(&rest, ':'), text);
    return rc;
}

int tb_foreign_rank_by(struct tb_options *options, const char *text)
{
    bool in_turn = strcmp(text, "node") == 0;
    static const char *const others[] = {"slot", "fill", "span", "core", "hwthread", "numa", "socket", "package", NULL};
    if (!in_turn && !is_among((struct word){text, strlen(text)}, others))
        return tb_error(TB_ERR_ARGUMENT, "--rank-by %s: should be slot or node", text);
    if (in_turn != (options->map == TB_MAP_NODE))
        return tb_error(TB_ERR_ARGUMENT,
                        "--rank-by %s: ranks are numbered as they are dealt; write: --map %s in its place", text,
                        in_turn ? "node" : "slot");
    return TB_OK;
}

/* ---- processors -------------------------------------------------------------------------------------------------- */

int tb_foreign_bind(struct tb_options *options, const char *text)
{
    static const struct {
        const char *name;
        enum tb_bind bind;
    } names[] = {{"none", TB_BIND_NONE},     {"board", TB_BIND_NONE},      {"machine", TB_BIND_NONE},
                 {"thread", TB_BIND_THREAD}, {"hwthread", TB_BIND_THREAD}, {"core", TB_BIND_CORE},
                 {"numa", TB_BIND_NUMA},     {"socket", TB_BIND_SOCKET},   {"package", TB_BIND_SOCKET},
                 {"l1cache", TB_BIND_L1},    {"l2cache", TB_BIND_L2},      {"l3cache", TB_BIND_L3}};
    static const char *const nothing[] = {"overload-allowed", "no-overload", "if-supported", "ordered", "limit", NULL};
    const char *rest = text;
    struct word what = take_word(&rest, ':');
    size_t found = 0;
    if (is_word(what, "user")) {
        options->bind_cpus = tb_options_keep(options, "%s", rest);
        return options->bind_cpus != NULL ? TB_OK : TB_ERR_MEMORY;
    }
    while (found < sizeof names / sizeof names[0] && !is_word(what, names[found].name))
        found++;
    if (found == sizeof names / sizeof names[0])
        return tb_error(TB_ERR_ARGUMENT, "--bind %s: should be none, thread, core, numa, socket, or l1cache to l3cache",
                        text);
    options->bind = names[found].bind;
    while (*rest != 0) {
        struct word word = take_word(&rest, ':');
        if (is_word(word, "report")) {
            int rc = tb_options_set_parameter("bind_report=yes");
            if (rc != TB_OK)
                return rc;
        } else if (!is_among(word, nothing) && take_number(word, TB_BIND_WIDTH_LIMIT, &options->bind_width) != TB_OK) {
            return tb_error(TB_ERR_ARGUMENT, "--bind %s: \"%.*s\" should be how many of them a rank gets", text,
                            (int)word.length, word.text);
        }
    }
    return TB_OK;
}

int tb_foreign_display(struct tb_options *options, const char *text)
{
    static const char *const maps[] = {"map", "allocation", "map-devel", NULL};
    for (const char *rest = text; *rest != 0;) {
        struct word word = take_word(&rest, ',');
        if (is_among(word, maps))
            options->shows_map = true;
        else if (is_word(word, "bind") || is_word(word, "bindings")) {
            int rc = tb_options_set_parameter("bind_report=yes");
            if (rc != TB_OK)
                return rc;
        } else
            return tb_error(TB_ERR_ARGUMENT, "--display %s: should be map, allocation or bind; `lstopo` shows machines",
                            text);
    }
    return TB_OK;
}

/* ---- output ------------------------------------------------------------------------------------------------------ */

/* DIR[:nocopy,nojobid]; as Open MPI names the files. */
int tb_foreign_output_files(struct tb_options *options, const char *text)
{
    const char *rest = text;
    struct word directory = take_word(&rest, ':');
    if (directory.length == 0)
        return tb_error(TB_ERR_ARGUMENT, "--output-filename %s: should be the name of a directory", text);
    bool copies = true, numbered = true;
    while (*rest != 0) {
        struct word word = take_word(&rest, ',');
        if (is_word(word, "nocopy"))
            copies = false;
        else if (is_word(word, "nojobid"))
            numbered = false;
        else
            return tb_error(TB_ERR_ARGUMENT, "--output-filename %s: behind the colon should be nocopy or nojobid",
                            text);
    }
    const char *job = numbered ? "1/" : "";
    options->output.beside = copies;
    options->output.files[0] =
        tb_options_keep(options, "%.*s/%srank.%%0/stdout", (int)directory.length, directory.text, job);
    options->output.files[1] =
        tb_options_keep(options, "%.*s/%srank.%%0/stderr", (int)directory.length, directory.text, job);
    return options->output.files[0] != NULL && options->output.files[1] != NULL ? TB_OK : TB_ERR_MEMORY;
}

static int take_output_word(struct tb_options *options, struct word word, const char *whole)
{
    static const char *const tags[] = {"tag", "tag-detailed", "tag-fullname", "rank", NULL};
    struct tb_output_options *output = &options->output;
    if (is_among(word, tags))
        output->tags = true;
    else if (is_word(word, "timestamp"))
        output->times = true;
    else if (is_word(word, "merge") || is_word(word, "merge-stderr-to-stdout"))
        output->merged = true;
    else if (word.length > 4 && memcmp(word.text, "dir=", 4) == 0) {
        const char *name = tb_options_keep(options, "%.*s", (int)word.length - 4, word.text + 4);
        return name != NULL ? tb_foreign_output_files(options, name) : TB_ERR_MEMORY;
    } else if (word.length > 5 && memcmp(word.text, "file=", 5) == 0) {
        output->beside = true;
        output->files[0] = output->files[1] = tb_options_keep(options, "%.*s.%%0", (int)word.length - 5, word.text + 5);
        return output->files[0] != NULL ? TB_OK : TB_ERR_MEMORY;
    } else
        return tb_error(TB_ERR_ARGUMENT,
                        "--output %s: \"%.*s\" should be tag, rank, timestamp, merge, dir=DIR or file=FILE", whole,
                        (int)word.length, word.text);
    return TB_OK;
}

int tb_foreign_output(struct tb_options *options, const char *text)
{
    int rc = TB_OK;
    for (const char *rest = text; *rest != 0 && rc == TB_OK;)
        rc = take_output_word(options, take_word(&rest, ','), text);
    return rc;
}

int tb_foreign_buffering(const char *text)
{
    static const char *const settings[] = {"stream_buffering=none", "stream_buffering=line", "stream_buffering=full"};
    if (strlen(text) != 1 || *text < '0' || *text > '2')
        return tb_error(TB_ERR_ARGUMENT, "--stream-buffering %s: should be 0, 1 or 2", text);
    return tb_options_set_parameter(settings[*text - '0']);
}

/* ---- how hosts are reached --------------------------------------------------------------------------------------- */

int tb_foreign_launcher(struct tb_options *options, const char *text)
{
    static const char *const managers[] = {"slurm", "lsf", "sge", "ll", "pbs", "cobalt", "persist", NULL};
    struct word word = {text, strlen(text)};
    if (is_word(word, "ssh") || is_word(word, "fork") || is_word(word, "user"))
        return TB_OK; /* as by default; this host is always reached without */
    if (is_among(word, managers))
        return tb_error(TB_ERR_ARGUMENT,
                        "--launcher %s: agents are started by ssh; write: -H or -f with the hosts of your allocation",
                        text);
    if (is_word(word, "manual"))
        return tb_error(TB_ERR_ARGUMENT, "--launcher manual: not here; write: --grid GRID.yaml --manual CLUSTER");
    options->launcher = text;
    return TB_OK;
}

int tb_foreign_mca(struct tb_options *options, const char *name, const char *value)
{
    const char *setting = NULL;
    if (strcmp(name, "btl_tcp_if_include") == 0 || strcmp(name, "oob_tcp_if_include") == 0)
        setting = tb_options_keep(options, "interfaces=%s", value);
    else if (strcmp(name, "btl_tcp_if_exclude") == 0)
        setting = tb_options_keep(options, "interfaces=^%s", value);
    else if (strcmp(name, "plm_rsh_agent") == 0 || strcmp(name, "plm_ssh_agent") == 0)
        return tb_foreign_launcher(options, value);
    else {
        tb_options_ignore(options, tb_options_keep(options, "--mca %s", name));
        return TB_OK;
    }
    return setting != NULL ? tb_options_set_parameter(setting) : TB_ERR_MEMORY;
}
