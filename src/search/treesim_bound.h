/* A time below which no schedule of a TreeSim problem can end, whatever its tree. */
#ifndef TB_SEARCH_TREESIM_BOUND_H
#define TB_SEARCH_TREESIM_BOUND_H

#include "search/treesim.h"

int tb_treesim_bound(const struct tb_problem *problem, uint64_t *time);

#endif
