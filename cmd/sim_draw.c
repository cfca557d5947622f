/* tombolo sim --draw: the best tree and its timeline as pictures. */
#include "command_file.h"
#include "sim.h"

#include <stdio.h>
#include <stdlib.h>

#define NAME_BYTES 128u

/* Names of all nodes: pointers, and behind these the texts. */
static const char **names_make(const struct sim *sim)
{
    uint32_t nodes = sim->problem->nodes;
    const char **names = malloc((size_t)nodes * (sizeof *names + NAME_BYTES));
    if (names == NULL)
        return NULL;
    char *texts = (char *)(names + nodes);
    for (uint32_t i = 0; i < nodes; i++)
        names[i] = sim->name(sim, i, texts + (size_t)i * NAME_BYTES, NAME_BYTES);
    return names;
}

/* The best of those that are trees. */
static const struct sim_row *drawn_row(const struct sim *sim)
{
    const struct sim_row *best = NULL;
    for (uint32_t i = 0; i < sim->row_count; i++) {
        const struct sim_row *row = &sim->rows[i];
        if (row->forest != NULL && (best == NULL || row->time < best->time))
            best = row;
    }
    return best;
}

static int file_draw(const struct sim *sim, const char *what,
                     int (*draw)(FILE *to, const struct tb_forest_picture *picture),
                     const struct tb_forest_picture *picture)
{
    char path[4096];
    int length = snprintf(path, sizeof path, "%s-%s.svg", sim->query->draw, what);
    if (length < 0 || (size_t)length >= sizeof path)
        return tb_error(TB_ERR_ARGUMENT, "--draw %s: that is too long", sim->query->draw);
    FILE *to;
    int error = tb_command_file_open(path, &to);
    return error == TB_OK ? tb_command_file_close(to, path, draw(to, picture)) : error;
}

int tb_sim_draw(struct sim *sim)
{
    const struct sim_query *q = sim->query;
    const struct sim_row *row = drawn_row(sim);
    char call[128], title[320], time[160];
    struct tb_forest_bar *bars = NULL;
    uint32_t count = 0;
    if (row == NULL || sim->problem == NULL)
        return tb_error(TB_ERR_ARGUMENT, "--draw: no planner that was asked for has found a tree");
    tb_scene_call_print(q->operation, q->bytes, call, sizeof call);
    snprintf(title, sizeof title, "%s: %s", call, row->name);
    snprintf(time, sizeof time, "predicted %.3f us, at least %.3f us (model %s)", (double)row->time / 1e6,
             (double)sim->bound / 1e6, sim->model);
    const char **names = names_make(sim);
    int error = names == NULL ? tb_error(TB_ERR_MEMORY, "no memory for the picture")
                              : sim->bars(sim, row->forest, &bars, &count);
    struct tb_forest_picture picture = {.forest = row->forest,
                                        .names = names,
                                        .level = sim->level,
                                        .context = sim->context,
                                        .bars = bars,
                                        .bar_count = count,
                                        .time = row->time,
                                        .title = title,
                                        .lines = {sim->where, time}};
    for (uint32_t i = 0; i < count && error == TB_OK; i++)
        picture.time = bars[i].there > picture.time ? bars[i].there : picture.time;
    if (error == TB_OK)
        error = file_draw(sim, "tree", tb_picture_forest, &picture);
    if (error == TB_OK)
        error = file_draw(sim, "timeline", tb_picture_timeline, &picture);
    free(bars);
    free(names);
    return error;
}
