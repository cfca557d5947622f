/* A grid file with all that follows from it: who reaches whom, routes, places, and what everything costs, as a job on
 * all its hosts would have it. Hosts have their numbers of the grid. Made once, then constant; whoever made it owns it,
 * any thread may read it, and the grid must outlive it. */
#ifndef TB_TOPOLOGY_GRID_COSTS_H
#define TB_TOPOLOGY_GRID_COSTS_H

#include "topology/cost_make.h"
#include "topology/grid.h"
#include "topology/way.h"

struct tb_grid_costs {
    const struct tb_grid *grid;
    struct tb_connectivity connectivity;
    struct tb_routes routes;
    struct tb_places places;
    uint32_t *cluster_places, *site_places;
    void *bytes; /* of the table */
    struct tb_cost_table table;
};

/* After an error there is nothing to be closed. */
int tb_grid_costs_open(struct tb_grid_costs *costs, const struct tb_grid *grid);
void tb_grid_costs_close(struct tb_grid_costs *costs);

static inline struct tb_spot tb_grid_costs_spot(const struct tb_grid_costs *costs, uint32_t host)
{
    return (struct tb_spot){costs->cluster_places[costs->grid->hosts[host].cluster],
                            costs->connectivity.classes.of[host], host};
}

/* Hops between two different hosts; 0: there is no way. */
static inline uint32_t tb_grid_costs_hops(const struct tb_grid_costs *costs, uint32_t from, uint32_t to)
{
    const uint32_t *of = costs->connectivity.classes.of;
    const struct tb_route *route = tb_routes_between(&costs->routes, of[from], of[to]);
    return of[from] == of[to] ? 1 : route->cost == TB_ROUTE_COST_NONE ? 0 : route->hops;
}

#endif
