/* tombolo probe: measures what messages cost, by a small MPI program of ours that it runs as a job. */
#include "command.h"
#include "help_texts.h"

#include "remote/remote.h"
#include "topology/topology.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const char usage[] = TB_HELP_TOMBOLO_PROBE;

#define WORDS_LIMIT 1000u
#define PROGRAM     "tombolo-probe"

struct words {
    char *words[WORDS_LIMIT + 1];
    uint32_t count;
    int error;
};

/* What was asked for, and what has come of it. */
struct probe {
    char program[PATH_MAX + 64];
    const char *file, *lab; /* the grid file to be written, and that of the lab; NULL: none */
    bool dry;
    struct words given; /* for mpiexec */
    struct tb_grid grid;
    struct tb_grid_edit edit;
    struct {
        char from[TB_GRID_NAME_BYTES];
        struct tb_grid_measure measure;
    } there; /* the first direction of a link, until the second is known */
    uint32_t changes, failures;
};

static void words_add(struct words *w, const char *word)
{
    if (w->count == WORDS_LIMIT) {
        w->error = tb_error(TB_ERR_LIMIT, "more than %u words", WORDS_LIMIT);
        return;
    }
    w->words[w->count] = strdup(word);
    if (w->words[w->count++] == NULL)
        w->error = tb_error(TB_ERR_MEMORY, "no memory");
}

static void words_copy(struct words *w, const struct words *from)
{
    for (uint32_t i = 0; i < from->count; i++)
        words_add(w, from->words[i]);
}

static void words_free(struct words *w)
{
    for (uint32_t i = 0; i < w->count; i++)
        free(w->words[i]);
    w->count = 0;
}

/* ---- what was measured ------------------------------------------------------------------------------------------- */

static void change_report(struct probe *p, int error, const char *what, const struct tb_grid_measure *m)
{
    if (error == TB_OK)
        p->changes++;
    else
        p->failures++;
    printf("# %s: bandwidth: %.4g, latency: %.4g%s%s\n", what, m->bandwidth, m->latency, error == TB_OK ? "" : " -- ",
           error == TB_OK ? "" : tb_error_story());
}

/* A line of the program's report goes into the file. Two lines are a link. */
static void line_take(struct probe *p, const char *line)
{
    char from[TB_GRID_NAME_BYTES], to[TB_GRID_NAME_BYTES], what[3 * TB_GRID_NAME_BYTES];
    struct tb_grid_measure m;
    if (sscanf(line, "measured\tethernet\t%63[^\t]\t%lf\t%lf", from, &m.bandwidth, &m.latency) == 3) {
        snprintf(what, sizeof what, "inside %s", from);
        change_report(p, tb_grid_edit_ethernet(&p->edit, from, &m), what, &m);
    } else if (sscanf(line, "measured\tlink\t%63[^\t]\t%63[^\t]\t%lf\t%lf", from, to, &m.bandwidth, &m.latency) == 4) {
        if (strcmp(p->there.from, to) != 0) {
            memcpy(p->there.from, from, sizeof from);
            p->there.measure = m;
            return;
        }
        int error = tb_grid_edit_link(&p->edit, to, from, &p->there.measure, &m);
        snprintf(what, sizeof what, "from %s to %s", to, from);
        change_report(p, error, what, &p->there.measure);
        snprintf(what, sizeof what, "from %s to %s", from, to);
        printf("# %s: bandwidth: %.4g, latency: %.4g\n", what, m.bandwidth, m.latency);
        p->there.from[0] = 0;
    } else {
        fputs(line, stdout);
    }
    fflush(stdout);
}

/* Runs a job as a process of its own, of which the output is read. */
static int job_run(struct probe *p, const struct words *words)
{
    char *arguments[WORDS_LIMIT + 3] = {"tombolo", "run"}, *line = NULL;
    size_t room = 0;
    int ends[2], status = 0;
    memcpy(arguments + 2, words->words, words->count * sizeof arguments[0]);
    fflush(stdout);
    pid_t child = pipe2(ends, O_CLOEXEC) == 0 ? fork() : -1;
    if (child < 0)
        return tb_error_errno("cannot start a job");
    if (child == 0) {
        dup2(ends[1], STDOUT_FILENO);
        execv("/proc/self/exe", arguments);
        _exit(127);
    }
    close(ends[1]);
    FILE *output = fdopen(ends[0], "r");
    while (output != NULL && getline(&line, &room, output) > 0)
        line_take(p, line);
    free(line);
    if (output != NULL)
        fclose(output);
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        continue;
    p->there.from[0] = 0;
    return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? TB_OK : tb_error(TB_ERR_SYSTEM, "the job has failed");
}

/* ---- jobs -------------------------------------------------------------------------------------------------------- */

/* Up to `slots` ranks on a host of the grid; `first` is the number of the first, and behind the program stands in which
 * cluster they are. */
static void host_take(struct words *w, struct words *places, const struct tb_grid *grid, uint32_t host, uint32_t slots,
                      uint32_t first)
{
    const struct tb_grid_host *h = &grid->hosts[host];
    char entry[2 * TB_GRID_NAME_BYTES + 16];
    slots = slots < h->slots ? slots : h->slots;
    snprintf(entry, sizeof entry, "%s:%u", h->name, slots);
    words_add(w, "-H");
    words_add(w, entry);
    for (uint32_t i = 0; i < slots; i++) {
        snprintf(entry, sizeof entry, "#%u=%s", first + i, grid->clusters[h->cluster].name);
        words_add(places, entry);
    }
}

/* Ranks on one host or two of the grid, which is used as a job of the user's would use it: gateways, shells, ports and
 * paths are those of the file. */
static void measure_between(struct probe *p, uint32_t a, uint32_t b, uint32_t slots)
{
    struct words w = {.count = 0}, places = {.count = 0};
    const struct tb_grid *grid = &p->grid;
    words_copy(&w, &p->given);
    words_add(&w, "--grid");
    words_add(&w, p->file);
    words_add(&w, "--own-program");
    uint32_t first = grid->hosts[a].slots < slots ? grid->hosts[a].slots : slots;
    host_take(&w, &places, grid, a, first, 0);
    if (b != TB_GRID_NONE)
        host_take(&w, &places, grid, b, 1, first);
    words_add(&w, PROGRAM);
    words_add(&w, "--report");
    words_copy(&w, &places);
    int error = w.error != TB_OK ? w.error : places.error;
    if (error == TB_OK)
        error = job_run(p, &w);
    if (error != TB_OK) {
        p->failures++;
        printf("# %s%s%s could not be measured: %s\n", grid->hosts[a].name, b != TB_GRID_NONE ? " and " : "",
               b != TB_GRID_NONE ? grid->hosts[b].name : "", tb_error_story());
    }
    words_free(&w);
    words_free(&places);
}

static bool carries(const struct tb_grid *grid, uint32_t host, uint32_t cluster)
{
    return grid->hosts[host].slots > 0 && grid->hosts[host].cluster == cluster;
}

/* Two hosts, or one if it has two slots. */
static void measure_inside(struct probe *p, uint32_t cluster)
{
    uint32_t a = TB_GRID_NONE, b = TB_GRID_NONE;
    for (uint32_t i = 0; i < p->grid.host_count && b == TB_GRID_NONE; i++) {
        if (!carries(&p->grid, i, cluster))
            continue;
        b = a != TB_GRID_NONE ? i : b;
        a = a == TB_GRID_NONE ? i : a;
    }
    if (b != TB_GRID_NONE || (a != TB_GRID_NONE && p->grid.hosts[a].slots > 1))
        measure_between(p, a, b, 2);
}

/* The first hosts with slots that connect to each other, or else the first ones: what they say goes through gateways.
 */
static void measure_link(struct probe *p, uint32_t from, uint32_t to)
{
    const struct tb_grid *grid = &p->grid;
    uint32_t one = TB_GRID_NONE, other = TB_GRID_NONE;
    bool direct = false;
    for (uint32_t a = 0; a < grid->host_count && !direct; a++)
        for (uint32_t b = 0; b < grid->host_count && carries(grid, a, from) && !direct; b++) {
            if (!carries(grid, b, to))
                continue;
            direct = tb_grid_reaches(grid, a, b) && tb_grid_reaches(grid, b, a);
            one = direct || one == TB_GRID_NONE ? a : one;
            other = direct || other == TB_GRID_NONE ? b : other;
        }
    if (one == TB_GRID_NONE)
        return;
    if (!direct)
        printf("# %s and %s: measured between %s and %s, which do not both connect to each other\n",
               grid->clusters[from].name, grid->clusters[to].name, grid->hosts[one].name, grid->hosts[other].name);
    measure_between(p, one, other, 1);
}

/* One job in the lab, whose hosts are called as in its file. */
static int lab_words(const struct probe *p, struct words *w)
{
    struct tb_grid grid;
    int error = tb_grid_load(&grid, p->lab);
    if (error != TB_OK)
        return error;
    words_copy(w, &p->given);
    words_add(w, p->program);
    if (p->file != NULL)
        words_add(w, "--report");
    for (uint32_t i = 0; i < grid.host_count; i++) {
        char entry[3 * TB_GRID_NAME_BYTES];
        snprintf(entry, sizeof entry, "%s=%s", grid.hosts[i].name, grid.clusters[grid.hosts[i].cluster].name);
        if (grid.hosts[i].slots > 0)
            words_add(w, entry);
    }
    tb_grid_close(&grid);
    return w->error;
}

static int measure_all(struct probe *p)
{
    struct words w = {.count = 0};
    int error = tb_grid_load(&p->grid, p->file);
    if (error != TB_OK)
        return error;
    error = tb_grid_edit_open(&p->edit, p->file);
    if (error == TB_OK && p->lab != NULL) {
        error = lab_words(p, &w);
        if (error == TB_OK)
            error = job_run(p, &w);
        words_free(&w);
    }
    for (uint32_t i = 0; i < p->grid.cluster_count && error == TB_OK && p->lab == NULL; i++)
        measure_inside(p, i);
    for (uint32_t i = 0; i < p->grid.cluster_count && error == TB_OK && p->lab == NULL; i++)
        for (uint32_t k = i + 1; k < p->grid.cluster_count; k++)
            measure_link(p, i, k);
    if (error == TB_OK && p->dry)
        fputs(p->edit.text, stdout);
    else if (error == TB_OK && p->changes > 0)
        error = tb_grid_edit_save(&p->edit);
    if (error == TB_OK && !p->dry)
        printf("# %s: %u of %u measurements were written\n", p->file, p->changes, p->changes + p->failures);
    tb_grid_edit_close(&p->edit);
    tb_grid_close(&p->grid);
    return error;
}

/* ---- the command ------------------------------------------------------------------------------------------------- */

static int words_parse(struct probe *p, char **words)
{
    words_add(&p->given, "--set"); /* the wire is measured, not what agents make of our bytes */
    words_add(&p->given, "compress=off");
    for (; *words != NULL; words++) {
        bool grid = strcmp(*words, "--grid") == 0, lab = strcmp(*words, "--lab") == 0;
        if ((grid || lab) && words[1] == NULL)
            return tb_error(TB_ERR_ARGUMENT, "%s: which file?", *words);
        if (grid)
            p->file = *++words;
        else if (strcmp(*words, "--dry-run") == 0)
            p->dry = true;
        else
            words_add(&p->given, *words);
        if (lab) {
            p->lab = *++words;
            words_add(&p->given, *words);
        }
    }
    if (p->dry && p->file == NULL)
        return tb_error(TB_ERR_ARGUMENT, "--dry-run: of which grid file? (--grid FILE)");
    return p->given.error;
}

/* Without a grid file to be written the job is this process. */
static int print_only(struct probe *p, int *code)
{
    struct words w = {.count = 0};
    int error = TB_OK;
    if (p->lab != NULL) {
        error = lab_words(p, &w);
    } else {
        words_copy(&w, &p->given);
        words_add(&w, p->program);
        error = w.error;
    }
    if (error == TB_OK)
        *code = tb_command_run("tombolo probe", w.words);
    words_free(&w);
    return error;
}

int tb_command_probe(char **words)
{
    struct probe p = {.file = NULL};
    int code = 0;
    if (words[0] != NULL && (strcmp(words[0], "--help") == 0 || strcmp(words[0], "-h") == 0)) {
        fputs(usage, stdout);
        return 0;
    }
    int error = tb_own_program_find(PROGRAM, p.program, sizeof p.program);
    if (error == TB_OK)
        error = words_parse(&p, words);
    if (error == TB_OK)
        error = p.file != NULL ? measure_all(&p) : print_only(&p, &code);
    if (error != TB_OK)
        fprintf(stderr, "tombolo probe: %s\n", tb_error_story());
    words_free(&p.given);
    // NOLINTNEXTLINE(clang-analyzer-unix.Malloc): every word that was added was freed
    return error != TB_OK ? 2 : p.failures > 0 ? 1 : code;
}
