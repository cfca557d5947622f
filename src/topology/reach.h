/* Between reach.c, which says who can connect to whom, and connectivity.c, which says what that costs: the way that a
 * connection takes between a foot of one host and a foot of another. */
#ifndef TB_TOPOLOGY_REACH_H
#define TB_TOPOLOGY_REACH_H

#include "topology/grid.h"

/* A cluster and all in which it nests, from inside to outside. */
struct tb_ladder {
    uint32_t count;
    uint32_t steps; /* the first so many are left (or entered); what follows is common to both ends */
    uint32_t rungs[TB_GRID_NESTING_LIMIT];
};

void tb_ladders_make(const struct tb_grid *grid, uint32_t from_foot, uint32_t to_foot, struct tb_ladder *up,
                     struct tb_ladder *down);
/* As tb_grid_reaches, by these two feet (clusters) alone. */
bool tb_grid_feet_reach(const struct tb_grid *grid, uint32_t from, uint32_t from_foot, uint32_t to, uint32_t to_foot);
/* The outermost network that a host reaches from one of its feet (`leaves`), in which it can be reached there
 * (`enters`), or both: a cluster, or TB_GRID_NONE, the wide area. */
uint32_t tb_grid_confined_to(const struct tb_grid *grid, uint32_t host, uint32_t foot, bool leaves, bool enters);

#endif
