/* tombolo probe: measures what messages cost, by a small MPI program of ours that it runs as a job. */
#include "command.h"

#include "topology/topology.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char usage[] =
    "Usage: tombolo probe [options of mpiexec | --grid FILE [options of mpiexec]]\n"
    "\n"
    "Measures overhead, gap and latency of messages within a host, within a cluster and between\n"
    "clusters, and prints them: as parameters that predict collectives (TOMBOLO_SHM_TABLE=..., to be\n"
    "put into the environment), and as lines for a grid file. Two ranks a level are enough.\n"
    "\n"
    "  --grid FILE   on the hosts of the grid file that have slots, with its clusters; what is printed\n"
    "                can then be added to a grid file that has no links yet (>> FILE)\n"
    "\n"
    "Examples\n"
    "  tombolo probe -n 2\n"
    "  tombolo probe -H venus1,venus2\n"
    "  tombolo probe --grid grid.yaml\n";

#define WORDS_LIMIT 1000u

struct words {
    char *words[WORDS_LIMIT + 1];
    uint32_t count;
    int error;
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

/* The program lies beside this one in a build, in libexec of an installation. */
static int program_find(char *path, size_t size)
{
    char here[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", here, sizeof here - 1);
    if (length < 0)
        return tb_error_errno("cannot find out where tombolo is");
    here[length] = 0;
    *strrchr(here, '/') = 0;
    for (int i = 0; i < 2; i++) {
        int n = snprintf(path, size, i == 0 ? "%s/probe/tombolo-probe" : "%s/../libexec/tombolo-probe", here);
        if (n > 0 && (size_t)n < size && access(path, X_OK) == 0)
            return TB_OK;
    }
    return tb_error(TB_ERR_SYSTEM, "tombolo-probe is missing from this installation; it should be %s", path);
}

/* -H for the hosts of the grid; behind the program, in which cluster each is. */
static int grid_take(struct words *w, struct words *clusters, const char *file)
{
    struct tb_grid grid;
    int error = tb_grid_load(&grid, file);
    if (error != TB_OK)
        return error;
    char entry[2 * TB_GRID_NAME_BYTES + 512];
    for (uint32_t i = 0; i < grid.host_count; i++) {
        const struct tb_grid_host *h = &grid.hosts[i];
        if (h->slots == 0)
            continue;
        snprintf(entry, sizeof entry, "%s%s%s:%u", h->user != NULL ? h->user : "", h->user != NULL ? "@" : "",
                 h->address != NULL ? h->address : h->name, h->slots < 2 ? h->slots : 2);
        words_add(w, "-H");
        words_add(w, entry);
        snprintf(entry, sizeof entry, "%s=%s", h->address != NULL ? h->address : h->name,
                 grid.clusters[h->cluster].name);
        words_add(clusters, entry);
    }
    tb_grid_close(&grid);
    return w->error != TB_OK ? w->error : clusters->error;
}

int tb_command_probe(char **words)
{
    struct words w = {.count = 0}, clusters = {.count = 0};
    char program[PATH_MAX + 64];
    if (words[0] != NULL && (strcmp(words[0], "--help") == 0 || strcmp(words[0], "-h") == 0)) {
        fputs(usage, stdout);
        return 0;
    }
    int error = program_find(program, sizeof program);
    for (; *words != NULL && error == TB_OK; words++) {
        if (strcmp(*words, "--grid") != 0)
            words_add(&w, *words);
        else if (*++words != NULL)
            error = grid_take(&w, &clusters, *words);
        else
            error = tb_error(TB_ERR_ARGUMENT, "--grid: which file?");
        error = error == TB_OK ? w.error : error;
        if (*words == NULL)
            break;
    }
    if (error == TB_OK) {
        words_add(&w, program);
        for (uint32_t i = 0; i < clusters.count; i++)
            words_add(&w, clusters.words[i]);
        error = w.error;
    }
    int code = 2;
    if (error == TB_OK)
        code = tb_command_run("tombolo probe", w.words);
    else
        fprintf(stderr, "tombolo probe: %s\n", tb_error_story());
    for (uint32_t i = 0; i < w.count; i++)
        free(w.words[i]);
    for (uint32_t i = 0; i < clusters.count; i++)
        free(clusters.words[i]);
    return code;
}
