#include "search/thesis_grid.h"

#include <stdlib.h>

#define MOST_CLUSTERS 32u
#define INSIDE        1000u   /* Mbit/s, in every cluster */
#define FASTEST       1000u   /* between clusters at most */
#define MBIT          125000u /* bytes a second */

/* Table 6. */
static const uint16_t of_2[] = {654, 641}, of_4[] = {611, 465, 431, 300},
                      of_8[] = {377, 465, 431, 300, 611, 619, 151, 270},
                      of_16[] = {977, 465, 431, 300, 611, 619, 151, 270, 377, 531, 778, 488, 906, 439, 440, 945},
                      of_32[] = {790, 465, 431, 300, 611, 619, 151, 270, 377,  531, 778, 488, 906, 439, 440, 945,
                                 977, 617, 886, 325, 737, 634, 653, 424, 1004, 745, 698, 376, 963, 325, 957, 188};
static const struct {
    uint32_t clusters;
    const uint16_t *nodes;
} table[] = {{2, of_2}, {4, of_4}, {8, of_8}, {16, of_16}, {32, of_32}};

void tb_thesis_grid_close(struct tb_thesis_grid *grid)
{
    free(grid->clusters);
    free(grid->numbers);
    free(grid->rates);
    *grid = (struct tb_thesis_grid){0};
}

struct tb_treesim_source tb_thesis_grid_source(const struct tb_thesis_grid *grid, uint64_t bytes)
{
    return (struct tb_treesim_source){.nodes = grid->nodes,
                                      .cluster_count = grid->cluster_count,
                                      .clusters = grid->clusters,
                                      .rates = grid->rates,
                                      .operation = TB_OPERATION_BCAST,
                                      .bytes = bytes};
}

static void rates_draw(uint64_t *rates, uint32_t clusters, bool symmetric, struct tb_random *random)
{
    for (uint32_t a = 0; a < clusters; a++)
        for (uint32_t b = 0; b < clusters; b++) {
            uint64_t *rate = &rates[a * clusters + b];
            if (a == b)
                *rate = MBIT * INSIDE;
            else if (symmetric && b < a)
                *rate = rates[b * clusters + a];
            else
                *rate = MBIT * (1 + tb_random_below(random, FASTEST));
        }
}

/* The clusters of `nodes` nodes out of `all`. */
static void nodes_draw(struct tb_thesis_grid *grid, uint32_t *hat, uint32_t all, struct tb_random *random)
{
    for (uint32_t i = 0; i < grid->nodes; i++) {
        uint32_t at = i + (uint32_t)tb_random_below(random, all - i);
        grid->clusters[i] = hat[at];
        hat[at] = hat[i];
    }
}

/* Leaves out clusters without nodes. */
static void clusters_renumber(struct tb_thesis_grid *grid, const uint64_t *rates, uint32_t clusters)
{
    uint32_t new_numbers[MOST_CLUSTERS];
    bool used[MOST_CLUSTERS] = {false};
    for (uint32_t i = 0; i < grid->nodes; i++)
        used[grid->clusters[i]] = true;
    for (uint32_t c = 0; c < clusters; c++)
        if (used[c]) {
            new_numbers[c] = grid->cluster_count;
            grid->numbers[grid->cluster_count++] = c;
        }
    for (uint32_t i = 0; i < grid->nodes; i++)
        grid->clusters[i] = new_numbers[grid->clusters[i]];
    for (uint32_t a = 0; a < grid->cluster_count; a++)
        for (uint32_t b = 0; b < grid->cluster_count; b++)
            grid->rates[a * grid->cluster_count + b] = rates[grid->numbers[a] * clusters + grid->numbers[b]];
}

int tb_thesis_grid_draw(struct tb_thesis_grid *grid, uint32_t clusters, uint32_t nodes, bool symmetric, uint64_t seed)
{
    uint64_t rates[MOST_CLUSTERS * MOST_CLUSTERS];
    const uint16_t *counts = NULL;
    uint32_t all = 0;
    struct tb_random random;
    *grid = (struct tb_thesis_grid){.nodes = nodes};
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
        if (table[i].clusters == clusters)
            counts = table[i].nodes;
    if (counts == NULL)
        return tb_error(TB_ERR_ARGUMENT, "the thesis has no grid of %u clusters, but of 2, 4, 8, 16 and 32", clusters);
    for (uint32_t c = 0; c < clusters; c++)
        all += counts[c];
    if (nodes == 0 || nodes > all)
        return tb_error(TB_ERR_ARGUMENT, "%u nodes cannot be drawn from the %u of the grid of %u clusters", nodes, all,
                        clusters);
    uint32_t *hat = malloc(all * sizeof *hat);
    grid->clusters = malloc(nodes * sizeof *grid->clusters);
    grid->numbers = malloc(clusters * sizeof *grid->numbers);
    grid->rates = malloc((size_t)clusters * clusters * sizeof *grid->rates);
    if (hat == NULL || grid->clusters == NULL || grid->numbers == NULL || grid->rates == NULL) {
        free(hat);
        tb_thesis_grid_close(grid);
        return tb_error(TB_ERR_MEMORY, "no memory for a grid of %u nodes", all);
    }
    for (uint32_t c = 0, at = 0; c < clusters; c++)
        for (uint32_t i = 0; i < counts[c]; i++)
            hat[at++] = c;
    tb_random_seed(&random, seed);
    rates_draw(rates, clusters, symmetric, &random);
    nodes_draw(grid, hat, all, &random);
    free(hat);
    clusters_renumber(grid, rates, clusters);
    return TB_OK;
}
