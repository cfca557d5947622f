/* The cost table of a job on a grid, made once by whoever starts the job (or explains one): from the grid file, the
 * routes, and the parameters. */
#ifndef TB_TOPOLOGY_COST_MAKE_H
#define TB_TOPOLOGY_COST_MAKE_H

#include "topology/cost_table.h"
#include "topology/route.h"

#define TB_COST_DETOURS_LIMIT (1u << 18)

struct tb_cost_source {
    const struct tb_places *places; /* of the grid: tb_places_from_grid */
    const struct tb_grid *grid;
    const uint32_t *cluster_places, *site_places;
    const struct tb_host_classes *classes; /* become the kinds of hosts */
    const struct tb_routes *routes;        /* NULL: no detours are looked for */
    const uint32_t
        *hosts; /* by host of the grid: its number in the book, TB_GRID_NONE: it takes no part; NULL: the same */
    uint32_t host_count; /* of the book */
    uint32_t version;    /* counts from 1 */
};

/* One malloc'd block. */
int tb_cost_table_make(const struct tb_cost_source *source, void **bytes, size_t *length);

#endif
