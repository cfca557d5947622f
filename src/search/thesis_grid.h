/* The random grids of the MPITH thesis, drawn from a seed. Its table 6 says how many nodes the clusters of grids with
 * 2, 4, 8, 16 and 32 clusters have; bandwidths come from rand(), of a range that it does not tell. Here they are drawn
 * so, all from one generator (base/random.h) in this order:
 *   - a matrix of as many rows as the grid has clusters, row by row: each bandwidth between clusters is a whole number
 *     of Mbit/s, evenly from 1 to 1000. Inside a cluster, on the diagonal, it is always 1000: no way is slower inside
 *     than between. Of a symmetric matrix only what is right of the diagonal is drawn.
 *   - `nodes` different nodes of all that the grid has, evenly. The first one drawn is node 0, the root.
 * Clusters of which no node was drawn are left out, and the others keep their order. */
#ifndef TB_SEARCH_THESIS_GRID_H
#define TB_SEARCH_THESIS_GRID_H

#include "search/treesim.h"

struct tb_thesis_grid {
    uint32_t nodes, cluster_count;
    uint32_t *clusters; /* of each node */
    uint32_t *numbers;  /* of each cluster: in the table */
    uint64_t *rates;    /* bytes a second, as of tb_treesim_source */
};

/* TB_ERR_ARGUMENT: no such grid in the table, or not so many nodes in it. */
int tb_thesis_grid_draw(struct tb_thesis_grid *grid, uint32_t clusters, uint32_t nodes, bool symmetric, uint64_t seed);
void tb_thesis_grid_close(struct tb_thesis_grid *grid); /* may be all zeros */
/* A broadcast of so many bytes from node 0 under the thesis's assumptions. It points into the grid. */
struct tb_treesim_source tb_thesis_grid_source(const struct tb_thesis_grid *grid, uint64_t bytes);

#endif
