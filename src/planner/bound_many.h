/* The bound of groups with so many places that not every two of them can be looked at, private to this folder: how far
 * it is to those who are farthest, by a graph of places and links, and how long what must pass the one port of a host
 * or the one uplink of a place takes there, or all links of a cluster that has none. It takes as long as there are
 * hosts, places and links. */
#ifndef TB_PLANNER_BOUND_MANY_H
#define TB_PLANNER_BOUND_MANY_H

#include "planner/bound.h"

/* As tb_bound_find_within, for calls that can be rated. Nothing is found if it would take more looks. */
int tb_bound_many(struct tb_ways *ways, const struct tb_collective *c, uint64_t limit, struct tb_bound *bound,
                  uint64_t *looks);

#endif
