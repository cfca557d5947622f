/* The best of all trees and orders, by branch and bound: the thesis's "optimal", for few nodes. Nodes never wait on
 * purpose: they send as soon as they can, or no more. */
#ifndef TB_SEARCH_OPTIMUM_H
#define TB_SEARCH_OPTIMUM_H

#include "search/search_run.h"

#define TB_OPTIMUM_NODES 12u /* at most */

/* With `run->best` as a start, if there is one. */
int tb_optimum(struct tb_search_run *run);

#endif
