/* Our own search: from the quick trees on, improved by local search within any budget; never worse than LPBF. */
#ifndef TB_SEARCH_OWN_H
#define TB_SEARCH_OWN_H

#include "search/search_run.h"

/* Evaluations where nobody says how many. */
uint64_t tb_own_evaluations(const struct tb_problem *problem, bool treesim);
int tb_own(struct tb_search_run *run);

#endif
