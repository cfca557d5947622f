/* Rating: how long each algorithm, with each argument worth a try, would take for a call, by simulation of all ranks'
 * programs. A pure function of shape, cost table and call, in integers and bounded by a number of units of work
 * (rater.h), so that every rank comes to the same result, in 20 ms at most: where a message has too many pieces, or a
 * group too many ranks, smaller ones are simulated and continued, and larger ones, up to the whole, only for the best,
 * until these are known as they are or units are spent. No state outside the call; any thread. */
#ifndef TB_PLANNER_RATING_H
#define TB_PLANNER_RATING_H

#include "collectives/collectives.h"

#define TB_CANDIDATES_LIMIT 256u
#define TB_RATING_UNITS     200000u /* of one call, unless all times are asked for */

struct tb_candidate {
    const struct tb_algorithm *algorithm;
    uint64_t argument; /* 0: none, or its own */
    uint64_t time;     /* picoseconds; TB_COST_NEVER: not rated */
};

/* The algorithms that fit, with their arguments, in the order of the catalogue; `only` NULL: all of them. */
uint32_t tb_rating_list(const struct tb_collective *c, const struct tb_algorithm *only, struct tb_candidate *rows);
/* Fills in the times; unless `all` are asked for, an algorithm's arguments are left out from where they only get worse,
 * and, where ranks are many, if the first and the last are far from the best.
 * `rank` and `in_place` of the call are not looked at, except in_place of alltoall, which all ranks give alike. The
 * shape has a cost table. `units`, if not NULL, gets how much work it was. */
int tb_rating_rate(const struct tb_group_shape *shape, const struct tb_collective *c, struct tb_candidate *rows,
                   uint32_t count, bool all, uint64_t *units);
/* Cheapest first; what is equal stays in order. */
void tb_rating_sort(struct tb_candidate *rows, uint32_t count);

/* Whether the call is one that can be rated: everyone's programs follow from what this rank knows. */
bool tb_rating_possible(const struct tb_collective *c);

#endif
