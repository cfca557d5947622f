/* tombolo sim --random: nodes drawn at random from the grids of the MPITH thesis. Of one grid the table of planners; of
 * several what each planner takes beside the best, over all of them. */
#include "json_text.h"
#include "sim.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What came of one planner on some grids. */
struct tally {
    uint32_t grids;
    double time, planning;       /* sums, in seconds */
    double processor;            /* of planning */
    double best;                 /* sum of the best times of the same grids */
    double ratio, square, worst; /* sums of the ratio to the best of each grid, and of its square; the largest */
    double to_bound;             /* sum of the ratios to the bounds */
    bool limited;
    char not_run[96];
};

/* The grids of one number of clusters and kind of matrix. */
struct series {
    uint32_t clusters, grids;
    bool symmetric;
    uint32_t proven;                       /* grids of which the optimum is known */
    uint32_t above;                        /* in which the bound is above the optimum, which cannot be */
    double bound;                          /* sum of bounds, in seconds */
    struct tally tallies[TB_SEARCH_COUNT]; /* in the order of the rows */
};

static const char *drawn_name(const struct sim *sim, uint32_t node, char *text, size_t size)
{
    snprintf(text, size, "%u (c%u)", node, sim->problem->clusters[node]);
    return text;
}

/* Of each grid another seed; the same for the same numbers. */
static uint64_t seed_of(const struct sim_query *q, uint32_t clusters, bool symmetric, uint64_t grid)
{
    return q->wish.seed * 1000003u + grid * 64u + clusters + (symmetric ? 0 : 64u * 1000000007u);
}

static int grid_open(struct sim *sim, uint32_t clusters, bool symmetric, uint64_t number)
{
    const struct sim_query *q = sim->query;
    struct tb_thesis_grid grid;
    uint64_t seed = seed_of(q, clusters, symmetric, number);
    int error = tb_thesis_grid_draw(&grid, clusters, (uint32_t)q->random, symmetric, seed);
    if (error != TB_OK)
        return error;
    struct tb_treesim_source source = tb_thesis_grid_source(&grid, q->bytes);
    source.operation = q->operation;
    error = tb_sim_root(q, source.nodes, &source.root);
    if (error == TB_OK)
        error = tb_treesim_open(&sim->problem, &source);
    sim->name = drawn_name;
    if (error == TB_OK) {
        snprintf(sim->where, sizeof sim->where, "%u node%s drawn from %u clusters (%u of them), %s, seed %llu",
                 grid.nodes, tb_plural(grid.nodes), clusters, grid.cluster_count,
                 symmetric ? "symmetric" : "asymmetric", (unsigned long long)q->wish.seed);
        error = tb_sim_treesim(sim);
    }
    tb_thesis_grid_close(&grid);
    return error;
}

static void sim_end(struct sim *sim)
{
    tb_sim_rows_close(sim);
    tb_treesim_close(sim->problem);
    sim->problem = NULL;
}

/* ---- several grids ----------------------------------------------------------------------------------------------- */

static void tally_add(struct tally *t, const struct sim_row *row, uint64_t best, uint64_t bound)
{
    if (*row->not_run != 0) {
        snprintf(t->not_run, sizeof t->not_run, "%s", row->not_run);
        return;
    }
    double ratio = best > 0 ? (double)row->time / (double)best : 1;
    t->grids++;
    t->time += (double)row->time / 1e12;
    t->best += (double)best / 1e12;
    t->planning += (double)row->planning / 1e9;
    t->processor += (double)row->processor / 1e9;
    t->ratio += ratio;
    t->square += ratio * ratio;
    t->worst = ratio > t->worst ? ratio : t->worst;
    t->to_bound += bound > 0 ? (double)row->time / (double)bound : 1;
    t->limited = t->limited || row->limited;
}

static void series_add(struct series *s, struct sim *sim)
{
    tb_sim_judge(sim);
    uint64_t best = sim->best == UINT32_MAX ? 0 : sim->rows[sim->best].time;
    for (uint32_t i = 0; i < sim->row_count; i++) {
        const struct sim_row *row = &sim->rows[i];
        bool optimum = strcmp(row->name, tb_searcher_name(TB_SEARCH_OPTIMUM)) == 0 && *row->not_run == 0;
        tally_add(&s->tallies[i], row, best, sim->bound);
        s->proven += optimum && !row->limited;
        s->above += sim->bound > row->time;
    }
    s->bound += (double)sim->bound / 1e12;
    s->grids++;
}

static int series_run(const struct sim_query *q, struct series *s)
{
    int error = TB_OK;
    for (uint64_t i = 0; i < q->grids && error == TB_OK; i++) {
        struct sim sim = {.query = q};
        error = grid_open(&sim, s->clusters, s->symmetric, i);
        if (error == TB_OK)
            error = tb_sim_plan(&sim);
        if (error == TB_OK)
            series_add(s, &sim);
        sim_end(&sim);
    }
    return error;
}

/* ---- what is said ------------------------------------------------------------------------------------------------ */

static double mean_ratio(const struct tally *t)
{
    return t->best > 0 ? t->time / t->best : 1;
}

static double deviation(double sum, double squares, uint32_t count)
{
    double mean = count > 0 ? sum / count : 0, rest = squares - count * mean * mean;
    return count > 1 && rest > 0 ? sqrt(rest / (count - 1)) : 0;
}

static const char how[] =
    "Nodes are drawn evenly, without repetition, from all that table 6 of the MPITH thesis gives a grid of so many\n"
    "clusters; the first one is the root. Bandwidths between clusters are whole numbers from 1 to 1000 Mbit/s, drawn\n"
    "evenly for each pair (symmetric) or each direction (asymmetric), anew for every grid; inside each it is 1000.";

static void head_print(const struct sim_query *q, const struct series *all, uint32_t count)
{
    char word[64];
    uint32_t proven = 0, above = 0;
    for (uint32_t i = 0; i < count; i++) {
        proven += all[i].proven;
        above += all[i].above;
    }
    tb_operation_word(q->operation, word, sizeof word);
    printf("%s of %llu byte%s, %llu node%s, %llu grid%s of each kind, seed %llu; model thesis\n%s\n", word,
           (unsigned long long)q->bytes, tb_plural(q->bytes), (unsigned long long)q->random, tb_plural(q->random),
           (unsigned long long)q->grids, tb_plural(q->grids), (unsigned long long)q->wish.seed, how);
    if (proven == q->grids * count)
        printf("Ratios are to the optimum, which is proven for every grid.\n");
    else
        printf(
            "Ratios are to the best that any of these planners has found; of %u of %llu grids it is proven to be the\n"
            "optimum.\n",
            proven, (unsigned long long)q->grids * count);
    printf("The bound is above what a planner found %u time%s.\n", above, tb_plural(above));
}

/* The mean of a column, and its deviation, over the rows of one kind of matrix. */
static void column_ends(const struct series *all, uint32_t count, bool symmetric, uint32_t planner, double *mean,
                        double *spread)
{
    double sum = 0, squares = 0;
    uint32_t rows = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (all[i].symmetric != symmetric)
            continue;
        double ratio = mean_ratio(&all[i].tallies[planner]);
        sum += ratio;
        squares += ratio * ratio;
        rows++;
    }
    *mean = rows > 0 ? sum / rows : 0;
    *spread = deviation(sum, squares, rows);
}

static void means_print(const struct sim_query *q, const struct series *all, uint32_t count, bool symmetric,
                        const struct sim *names)
{
    printf("\n%s, ratio of mean times\n  %-10s", symmetric ? "symmetric" : "asymmetric", "clusters");
    for (uint32_t p = 0; p < names->row_count; p++)
        printf(" %13s", names->rows[p].name);
    printf("\n");
    for (uint32_t i = 0; i < count; i++) {
        if (all[i].symmetric != symmetric)
            continue;
        printf("  %-10u", all[i].clusters);
        for (uint32_t p = 0; p < names->row_count; p++) {
            const struct tally *t = &all[i].tallies[p];
            if (t->grids == 0)
                printf(" %13s", "-");
            else
                printf(" %13.3f", mean_ratio(t));
        }
        printf("\n");
    }
    for (int line = 0; line < 2; line++) {
        printf("  %-10s", line == 0 ? "mean" : "deviation");
        for (uint32_t p = 0; p < names->row_count; p++) {
            double ends[2];
            column_ends(all, count, symmetric, p, &ends[0], &ends[1]);
            if (all[0].tallies[p].grids == 0)
                printf(" %13s", "-");
            else
                printf(" %13.3f", ends[line]);
        }
        printf("\n");
    }
}

static void grids_print(const struct series *all, uint32_t count, bool symmetric, const struct sim *names)
{
    printf("\n%s, ratio of each grid: mean, deviation, worst; mean ratio to the bound; time to plan one\n",
           symmetric ? "symmetric" : "asymmetric");
    for (uint32_t p = 0; p < names->row_count; p++) {
        struct tally sum = {.grids = 0};
        for (uint32_t i = 0; i < count; i++) {
            const struct tally *t = &all[i].tallies[p];
            if (all[i].symmetric != symmetric)
                continue;
            sum.grids += t->grids;
            sum.ratio += t->ratio;
            sum.square += t->square;
            sum.to_bound += t->to_bound;
            sum.planning += t->planning;
            sum.worst = t->worst > sum.worst ? t->worst : sum.worst;
            sum.limited = sum.limited || t->limited;
        }
        if (sum.grids == 0)
            printf("  %-14s %s\n", names->rows[p].name, all[0].tallies[p].not_run);
        else
            printf("  %-14s %10.3f %10.3f %10.3f %10.3f %12.3f ms%s\n", names->rows[p].name, sum.ratio / sum.grids,
                   deviation(sum.ratio, sum.square, sum.grids), sum.worst, sum.to_bound / sum.grids,
                   sum.planning / sum.grids * 1e3, sum.limited ? " (stopped by a limit)" : "");
    }
}

static void series_json(const struct series *s, const struct sim *names, bool last)
{
    printf(
        "  {\"clusters\": %u, \"symmetric\": %s, \"proven\": %u, \"bound_above\": %u, \"mean_bound_seconds\": %.12f, "
        "\"planners\": [\n",
        s->clusters, s->symmetric ? "true" : "false", s->proven, s->above, s->grids > 0 ? s->bound / s->grids : 0);
    for (uint32_t p = 0; p < names->row_count; p++) {
        const struct tally *t = &s->tallies[p];
        printf("    {\"planner\": \"%s\", ", names->rows[p].name);
        if (t->grids == 0) {
            printf("\"not_run\": ");
            tb_json_text(t->not_run);
            printf("}");
        } else {
            printf("\"grids\": %u, \"mean_seconds\": %.12f, \"ratio_of_means\": %.6f, \"mean_ratio\": %.6f, "
                   "\"deviation\": %.6f, \"worst\": %.6f, \"to_bound\": %.6f, \"planning_seconds\": %.9f, "
                   "\"processor_seconds\": %.9f, "
                   "\"complete\": %s}",
                   t->grids, t->time / t->grids, mean_ratio(t), t->ratio / t->grids,
                   deviation(t->ratio, t->square, t->grids), t->worst, t->to_bound / t->grids, t->planning / t->grids,
                   t->processor / t->grids, t->limited ? "false" : "true");
        }
        printf("%s\n", p + 1 < names->row_count ? "," : "");
    }
    printf("  ]}%s\n", last ? "" : ",");
}

static void all_json(const struct sim_query *q, const struct series *all, uint32_t count, const struct sim *names)
{
    char word[64];
    tb_operation_word(q->operation, word, sizeof word);
    printf(
        "{\"operation\": \"%s\", \"bytes\": %llu, \"model\": \"thesis\", \"nodes\": %llu, \"grids\": %llu, \"seed\": "
        "%llu, \"how\": ",
        word, (unsigned long long)q->bytes, (unsigned long long)q->random, (unsigned long long)q->grids,
        (unsigned long long)q->wish.seed);
    tb_json_text(how);
    printf(", \"series\": [\n");
    for (uint32_t i = 0; i < count; i++)
        series_json(&all[i], names, i + 1 == count);
    printf("]}\n");
}

/* The names of those planners that were asked for, as rows. */
static int names_make(struct sim *names)
{
    for (uint32_t i = 0; i < TB_SEARCH_COUNT; i++) {
        struct sim_row *row = (names->query->planners >> i & 1) != 0 ? tb_sim_row(names) : NULL;
        if (row != NULL)
            snprintf(row->name, sizeof row->name, "%s", tb_searcher_name((enum tb_searcher)i));
        else if ((names->query->planners >> i & 1) != 0)
            return TB_ERR_MEMORY;
    }
    return TB_OK;
}

static int many_run(const struct sim_query *q)
{
    struct series *all = calloc(2 * SIM_CLUSTERS_MOST, sizeof *all);
    struct sim names = {.query = q};
    uint32_t count = 0;
    int error = all == NULL ? tb_error(TB_ERR_MEMORY, "no memory for random grids") : names_make(&names);
    for (uint32_t kind = 0; kind < 2 && error == TB_OK; kind++) {
        if (kind == 0 ? !q->symmetric : !q->asymmetric)
            continue;
        for (uint32_t i = 0; i < q->cluster_counts && error == TB_OK; i++) {
            all[count] = (struct series){.clusters = q->clusters[i], .symmetric = kind == 0};
            error = series_run(q, &all[count++]);
        }
    }
    if (error == TB_OK && q->json)
        all_json(q, all, count, &names);
    if (error == TB_OK && !q->json) {
        head_print(q, all, count);
        for (uint32_t kind = 0; kind < 2; kind++) {
            if (kind == 0 ? !q->symmetric : !q->asymmetric)
                continue;
            means_print(q, all, count, kind == 0, &names);
            grids_print(all, count, kind == 0, &names);
        }
    }
    tb_sim_rows_close(&names);
    free(all);
    return error;
}

int tb_sim_random(const struct sim_query *q)
{
    struct sim sim = {.query = q};
    if (q->grids > 1 || q->cluster_counts > 1 || q->symmetric == q->asymmetric) {
        if (q->draw != NULL)
            return tb_error(TB_ERR_ARGUMENT, "--draw: which of the grids? With one number of --clusters and one of "
                                             "--symmetric and --asymmetric there is only one");
        return many_run(q);
    }
    int error = grid_open(&sim, q->clusters[0], q->symmetric, 0);
    if (error == TB_OK)
        error = tb_sim_plan(&sim);
    if (error == TB_OK)
        error = tb_sim_answer(&sim);
    if (error == TB_OK && !q->json)
        printf("\n%s\n", how);
    sim_end(&sim);
    return error;
}
