/* The bound of calls that not everybody has to do with alike, private to this folder: between the two groups of an
 * intercommunicator, and among the neighbours of one rank. */
#ifndef TB_PLANNER_BOUND_BETWEEN_H
#define TB_PLANNER_BOUND_BETWEEN_H

#include "planner/bound.h"

/* Between two groups everything crosses once from one to the other; *looks as of tb_bound_find_within. */
int tb_bound_between(struct tb_ways *ways, const struct tb_collective *c, uint64_t limit, struct tb_bound *bound,
                     uint64_t *looks);
/* What this rank gets of its sources, and sends to its targets: it does not know of others. */
int tb_bound_neighbours(struct tb_ways *ways, const struct tb_collective *c, uint64_t limit, struct tb_bound *bound,
                        uint64_t *looks);

static inline bool tb_bound_has_neighbours(enum tb_operation o)
{
    return o >= TB_OPERATION_NEIGHBOR_ALLGATHER && o <= TB_OPERATION_NEIGHBOR_ALLTOALLW;
}

#endif
