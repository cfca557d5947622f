/* What `tombolo sim` says to programs. */
#include "json_text.h"
#include "sim.h"

#include <stdio.h>
#include <sys/resource.h>

#define TREES_MOST 1024u /* nodes whose trees are printed */

static void ratio_json(const char *name, uint64_t time, uint64_t least)
{
    if (least > 0 && least != TB_COST_NEVER)
        printf(", \"%s\": %.6f", name, (double)time / (double)least);
}

/* Of each tree who serves whom, senders in the order of their numbers, those that they serve as they are served. */
static void forest_json(const struct tb_forest *f)
{
    printf(", \"root\": %u, \"piece\": %llu, \"trees\": [", f->root, (unsigned long long)f->piece);
    for (uint32_t t = 0; t < f->trees; t++) {
        bool first = true;
        printf("%s{\"share\": %u, \"serves\": {", t > 0 ? ", " : "", f->shares[t]);
        for (uint32_t i = 0; i < f->nodes; i++) {
            const uint32_t *at = &f->first[(size_t)t * (f->nodes + 1) + i];
            if (at[0] == at[1])
                continue;
            printf("%s\"%u\": [", first ? "" : ", ", i);
            for (uint32_t k = at[0]; k < at[1]; k++)
                printf("%s%u", k > at[0] ? ", " : "", f->children[k]);
            printf("]");
            first = false;
        }
        printf("}}");
    }
    printf("]");
}

static void row_json(const struct sim *sim, const struct sim_row *row)
{
    printf("  {\"%s\": ", row->catalogue ? "algorithm" : "planner");
    tb_json_text(row->name);
    if (*row->not_run != 0) {
        printf(", \"not_run\": ");
        tb_json_text(row->not_run);
    } else if (row->time != TB_COST_NEVER) {
        printf(", \"seconds\": %.12f", (double)row->time / 1e12);
        ratio_json("to_best", row->time, sim->best == UINT32_MAX ? 0 : sim->rows[sim->best].time);
        ratio_json("to_bound", row->time, sim->bound);
    }
    if (row->catalogue)
        printf(", \"runs\": %s", row->chosen ? "true" : "false");
    if (row->chosen) {
        printf(", \"because\": ");
        tb_json_text(row->reason);
    }
    if (!row->catalogue && *row->not_run == 0)
        printf(", \"evaluations\": %llu, \"planning_seconds\": %.9f, \"processor_seconds\": %.9f, \"complete\": %s",
               (unsigned long long)row->evaluations, (double)row->planning / 1e9, (double)row->processor / 1e9,
               row->limited ? "false" : "true");
    if (row->forest != NULL && row->forest->nodes <= TREES_MOST)
        forest_json(row->forest);
    printf("}");
}

void tb_sim_json(const struct sim *sim)
{
    const struct sim_query *q = sim->query;
    struct rusage usage;
    char word[64];
    tb_operation_word(q->operation, word, sizeof word);
    printf("{\"operation\": \"%s\", \"bytes\": %llu, \"model\": \"%s\", \"seed\": %llu, \"where\": ", word,
           (unsigned long long)q->bytes, sim->model, (unsigned long long)q->wish.seed);
    tb_json_text(sim->where);
    if (sim->problem != NULL)
        printf(", \"nodes\": %u, \"clusters\": %u, \"root\": %u", sim->problem->nodes, sim->problem->cluster_count,
               sim->problem->root);
    if (sim->problem != NULL && sim->name != NULL && sim->problem->nodes <= TREES_MOST) {
        char text[256];
        printf(", \"names\": [");
        for (uint32_t i = 0; i < sim->problem->nodes; i++) {
            printf("%s", i > 0 ? ", " : "");
            tb_json_text(sim->name(sim, i, text, sizeof text));
        }
        printf("]");
    }
    printf(", \"bound\": {\"seconds\": %.12f}", (double)sim->bound / 1e12);
    if (sim->best != UINT32_MAX) {
        printf(", \"best\": ");
        tb_json_text(sim->rows[sim->best].name);
    }
    if (getrusage(RUSAGE_SELF, &usage) == 0)
        printf(", \"peak_bytes\": %llu", (unsigned long long)usage.ru_maxrss * 1024u);
    printf(", \"rows\": [\n");
    for (uint32_t i = 0; i < sim->row_count; i++) {
        row_json(sim, &sim->rows[i]);
        printf("%s\n", i + 1 < sim->row_count ? "," : "");
    }
    printf("]}\n");
}
