/* tombolo sim on a matrix of bandwidths, and what is known of any problem of TreeSim. */
#include "sim.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- problems of TreeSim ----------------------------------------------------------------------------------------- */

static enum tb_span_kind span_of(const void *context, uint32_t from, uint32_t to)
{
    const struct tb_problem *p = context;
    uint32_t a = p->clusters[from], b = p->clusters[to];
    if (a == b)
        return TB_SPAN_HOSTS;
    return p->site_count > 0 && p->sites[a] != p->sites[b] ? TB_SPAN_SITES : TB_SPAN_CLUSTERS;
}

/* Both ends are busy with a transfer until it is there. */
static int transfers_list(const struct sim *sim, const struct tb_forest *forest, struct tb_forest_bar **bars,
                          uint32_t *count)
{
    uint32_t most = tb_treesim_transfers(sim->problem);
    struct tb_treesim_transfer *list = calloc((size_t)most + 1, sizeof *list);
    *bars = calloc((size_t)most + 1, sizeof **bars);
    *count = most;
    int error = list == NULL || *bars == NULL ? tb_error(TB_ERR_MEMORY, "no memory for %u transfers", most)
                                              : tb_treesim_timeline(sim->problem, forest, list);
    for (uint32_t i = 0; i < most && error == TB_OK; i++) {
        const struct tb_treesim_transfer *t = &list[i];
        (*bars)[i] = (struct tb_forest_bar){t->from, t->to, t->start, t->end, t->end};
    }
    free(list);
    return error;
}

int tb_sim_treesim(struct sim *sim)
{
    static const char *const names[SIM_MODELS] = {
        [SIM_THESIS] = "thesis", [SIM_LATENCY] = "latency", [SIM_POSTAL] = "postal"};
    sim->model = names[sim->query->model];
    sim->context = sim->problem;
    sim->level = span_of;
    sim->bars = transfers_list;
    return tb_treesim_bound(sim->problem, &sim->bound);
}

/* ---- a schedule by hand ------------------------------------------------------------------------------------------ */

int tb_sim_schedule_read(struct sim *sim, uint32_t nodes, uint32_t *root)
{
    const struct sim_query *q = sim->query;
    if (q->schedule == NULL)
        return TB_OK;
    int error = tb_schedule_read(&sim->schedule, q->schedule, nodes);
    if (error == TB_OK && q->root == NULL)
        *root = sim->schedule->root;
    if (error == TB_OK && sim->schedule->root != *root)
        error = tb_error(TB_ERR_ARGUMENT, "%s: its root is node %u, but --root %s is node %u", q->schedule,
                         sim->schedule->root, q->root, *root);
    return error;
}

int tb_sim_schedule(struct sim *sim)
{
    if (sim->schedule == NULL)
        return TB_OK;
    struct sim_row *row = tb_sim_row(sim);
    if (row == NULL)
        return TB_ERR_MEMORY;
    snprintf(row->name, sizeof row->name, "%s", sim->query->schedule);
    memcpy(row->not_run, sim->unfit, sizeof row->not_run);
    if (*sim->unfit != 0)
        return TB_OK;
    row->forest = sim->schedule;
    sim->schedule = NULL;
    uint64_t since = tb_sim_clock();
    int error = sim->problem->rate(sim->problem, row->forest, &row->time);
    row->planning = tb_sim_clock() - since;
    row->evaluations = 1;
    return error;
}

int tb_sim_root(const struct sim_query *q, uint32_t nodes, uint32_t *root)
{
    uint64_t number = 0;
    const char *end = q->root != NULL ? tb_number_read(q->root, &number) : "";
    if (end == NULL || *end != 0 || number >= nodes)
        return tb_error(TB_ERR_ARGUMENT, "--root %s: there are nodes 0 to %u", q->root, nodes - 1);
    *root = (uint32_t)number;
    return TB_OK;
}

/* ---- a matrix ---------------------------------------------------------------------------------------------------- */

static const char *number_name(const struct sim *sim, uint32_t node, char *text, size_t size)
{
    snprintf(text, size, "%u", node);
    return text;
}

int tb_sim_matrix(const struct sim_query *q)
{
    struct tb_matrix matrix;
    struct sim sim = {.query = q, .name = number_name};
    uint32_t root = 0;
    int error = tb_matrix_read(&matrix, q->matrix);
    if (error == TB_OK)
        error = tb_sim_root(q, matrix.nodes, &root);
    if (error == TB_OK)
        error = tb_sim_schedule_read(&sim, matrix.nodes, &root);
    if (error == TB_OK)
        error = tb_treesim_open(&sim.problem, &(struct tb_treesim_source){.nodes = matrix.nodes,
                                                                          .root = root,
                                                                          .cluster_count = matrix.count,
                                                                          .clusters = matrix.clusters,
                                                                          .rates = matrix.rates,
                                                                          .operation = q->operation,
                                                                          .bytes = q->bytes});
    if (error == TB_OK) {
        snprintf(sim.where, sizeof sim.where, "%u node%s in %u cluster%s of %s", matrix.nodes, tb_plural(matrix.nodes),
                 matrix.count, tb_plural(matrix.count), q->matrix);
        error = tb_sim_treesim(&sim);
    }
    if (error == TB_OK)
        error = tb_sim_schedule(&sim);
    if (error == TB_OK)
        error = tb_sim_plan(&sim);
    if (error == TB_OK)
        error = tb_sim_answer(&sim);
    tb_sim_rows_close(&sim);
    tb_treesim_close(sim.problem);
    tb_matrix_close(&matrix);
    return error;
}
