/* Trees for an entry of a plan, where they are better than what the library has. */
#ifndef TB_CMD_PLAN_TREES_H
#define TB_CMD_PLAN_TREES_H

#include "search/search.h"

/* Has a planner look for trees of a call on a grid, within the limits of the wish; hosts are those of the call's shape.
 * *forest is NULL if there can be none, or that cannot be predicted; else the caller's, and *time what it takes. */
int tb_plan_trees(const struct tb_collective *call, enum tb_searcher planner, const struct tb_search_wish *wish,
                  struct tb_forest **forest, uint64_t *time);

/* Rates an algorithm of the library as trees are, by a simulation of all of it, if they can be planned for the call and
 * it does not take too long; else the time stays what it is. */
int tb_plan_rate(const struct tb_collective *call, struct tb_candidate *row);

#endif
