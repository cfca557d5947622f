/* The places of a grid file: its sites with their clusters, then the clusters without a site, in the order of the file.
 * Apart from places.h, so that programs, which read no grid files, need nothing that does. */
#ifndef TB_TOPOLOGY_PLACES_GRID_H
#define TB_TOPOLOGY_PLACES_GRID_H

#include "topology/grid.h"
#include "topology/places.h"

/* `cluster_places` and `site_places` have room for all clusters and sites of the grid (and are not NULL). */
int tb_places_from_grid(struct tb_places *places, const struct tb_grid *grid, uint32_t *cluster_places,
                        uint32_t *site_places);

#endif
