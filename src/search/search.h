/* search: planners that look for the best trees of a collective, with more time than a call has; what they search on;
 * and what people write by hand. */
#ifndef TB_SEARCH_SEARCH_H
#define TB_SEARCH_SEARCH_H

#include "search/grid_problem.h"
#include "search/problem.h"
#include "search/search_text.h"
#include "search/thesis_grid.h"
#include "search/treesim.h"
#include "search/treesim_bound.h"

#endif
