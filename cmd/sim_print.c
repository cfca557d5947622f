/* What `tombolo sim` prints: a line for each planner. */
#include "sim.h"

#include <stdio.h>
#include <string.h>

static double ratio(uint64_t time, uint64_t least)
{
    return least > 0 ? (double)time / (double)least : 0;
}

static uint64_t best_time(const struct sim *sim)
{
    return sim->best == UINT32_MAX ? TB_COST_NEVER : sim->rows[sim->best].time;
}

/* "1.234", or "-" where the other time is 0 or not known. */
static const char *ratio_text(uint64_t time, uint64_t least, char text[32])
{
    if (least == 0 || least == TB_COST_NEVER)
        snprintf(text, 32, "-");
    else
        snprintf(text, 32, "%.3f", ratio(time, least));
    return text;
}

static void row_print(const struct sim *sim, const struct sim_row *row)
{
    char to_best[32], to_bound[32], evaluations[32] = "-", planning[48] = "-";
    char mark = (uint32_t)(row - sim->rows) == sim->best ? '*' : ' ';
    if (*row->not_run != 0 || row->time == TB_COST_NEVER) {
        printf("%c %-28s %s\n", mark, row->name, *row->not_run != 0 ? row->not_run : "not rated");
        return;
    }
    if (!row->catalogue) {
        snprintf(evaluations, sizeof evaluations, "%llu", (unsigned long long)row->evaluations);
        snprintf(planning, sizeof planning, "%.3f ms%s", (double)row->planning / 1e6, row->limited ? ", limit" : "");
    }
    printf("%c %-28s %18.3f us %9s %9s %12s  %s\n", mark, row->name, (double)row->time / 1e6,
           ratio_text(row->time, best_time(sim), to_best), ratio_text(row->time, sim->bound, to_bound), evaluations,
           planning);
}

static void head_print(const struct sim *sim)
{
    const struct sim_query *q = sim->query;
    char call[128];
    tb_scene_call_print(q->operation, q->bytes, call, sizeof call);
    printf("%s, %s; model %s\n", call, sim->where, sim->model);
    printf("  %-28s %18.3f us\n\n", "at least", (double)sim->bound / 1e6);
    printf("  %-28s %21s %9s %9s %12s  %s\n", sim->problem != NULL ? "planner" : "algorithm", "predicted", "to best",
           "to bound", "evaluations", "planned in");
}

static void table_print(const struct sim *sim)
{
    const char *optimum = tb_searcher_name(TB_SEARCH_OPTIMUM);
    bool limited = false, unproven = false;
    head_print(sim);
    for (uint32_t i = 0; i < sim->row_count; i++) {
        row_print(sim, &sim->rows[i]);
        limited = limited || sim->rows[i].limited;
        unproven = unproven || (sim->rows[i].limited && strcmp(sim->rows[i].name, optimum) == 0);
    }
    for (uint32_t i = 0; i < sim->row_count; i++)
        if (sim->rows[i].chosen)
            printf("\n  The library itself would run %s (%s).\n", sim->rows[i].name, sim->rows[i].reason);
    if (sim->problem == NULL && tb_plan_has_trees(sim->query->operation))
        printf("\n  There is one host only: no trees to search for.\n");
    if (limited)
        printf("\n  limit: it was stopped by a limit of time or evaluations, its own or the one given%s.\n",
               unproven ? ";\n  so the optimum is not proven: --evaluations or --time allows more" : "");
}

int tb_sim_answer(struct sim *sim)
{
    tb_sim_judge(sim);
    if (sim->query->json)
        tb_sim_json(sim);
    else
        table_print(sim);
    return sim->query->draw != NULL ? tb_sim_draw(sim) : TB_OK;
}
