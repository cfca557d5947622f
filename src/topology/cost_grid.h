/* What a grid file says, put into a cost table: wires of places, kinds of hosts, links. */
#ifndef TB_TOPOLOGY_COST_GRID_H
#define TB_TOPOLOGY_COST_GRID_H

#include "topology/class.h"
#include "topology/cost_build.h"

struct tb_cost_grid {
    const struct tb_grid *grid;
    const struct tb_host_classes *classes; /* become the kinds */
    const uint32_t *cluster_places, *site_places;
    const uint32_t
        *hosts; /* by host of the grid: its number in the book; TB_GRID_NONE: it takes no part. NULL: the same */
};

/* Links have the numbers that they have in the grid. */
void tb_cost_grid_fill(struct tb_cost_builder *builder, const struct tb_cost_grid *source);
/* Gateways of closed clusters, and which hosts are to be told apart for that. After tb_cost_grid_fill. */
void tb_cost_grid_gates(struct tb_cost_builder *builder, const struct tb_cost_grid *source);
/* Where a host of the grid stands in the table. */
struct tb_spot tb_cost_grid_spot(const struct tb_cost_grid *source, uint32_t host);
/* The way between two kinds goes by these hosts of the grid. Detours are added in the order of (from, to). */
void tb_cost_grid_detour(struct tb_cost_builder *builder, const struct tb_cost_grid *source, uint32_t from_kind,
                         uint32_t to_kind, const uint32_t *hosts, uint32_t count);

#endif
