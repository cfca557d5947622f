#include "topology/grid_costs.h"
#include "topology/places_grid.h"

#include <stdlib.h>

static int make(struct tb_grid_costs *c)
{
    const struct tb_grid *grid = c->grid;
    size_t length = 0;
    c->cluster_places = calloc(grid->cluster_count + 1u, sizeof *c->cluster_places);
    c->site_places = calloc(grid->site_count + 1u, sizeof *c->site_places);
    if (c->cluster_places == NULL || c->site_places == NULL)
        return tb_error(TB_ERR_MEMORY, "%s: no memory for its places", grid->file);
    int rc = tb_places_from_grid(&c->places, grid, c->cluster_places, c->site_places);
    if (rc == TB_OK)
        rc = tb_connectivity_open(&c->connectivity, grid);
    if (rc == TB_OK)
        rc = tb_routes_open(&c->routes, &c->connectivity);
    if (rc == TB_OK)
        rc = tb_cost_table_make(&(struct tb_cost_source){.places = &c->places,
                                                         .grid = grid,
                                                         .cluster_places = c->cluster_places,
                                                         .site_places = c->site_places,
                                                         .classes = &c->connectivity.classes,
                                                         .routes = &c->routes,
                                                         .host_count = grid->host_count,
                                                         .version = 1},
                                &c->bytes, &length);
    return rc == TB_OK ? tb_cost_table_view(&c->table, c->bytes, length) : rc;
}

int tb_grid_costs_open(struct tb_grid_costs *costs, const struct tb_grid *grid)
{
    *costs = (struct tb_grid_costs){.grid = grid};
    int rc = make(costs);
    if (rc != TB_OK)
        tb_grid_costs_close(costs);
    return rc;
}

void tb_grid_costs_close(struct tb_grid_costs *costs)
{
    free(costs->bytes);
    tb_routes_close(&costs->routes);
    tb_connectivity_close(&costs->connectivity);
    free(costs->cluster_places);
    free(costs->site_places);
    tb_places_close(&costs->places);
    *costs = (struct tb_grid_costs){.grid = NULL};
}
