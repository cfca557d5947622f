/* Every tree in every order, one after another, each rated: for problems of which nothing is known but what a forest
 * takes. There are (2n - 2)! / n! of them: 95,040 of seven nodes, 2,162,160 of eight. Of more nodes than eight, or
 * than seven where trees are simulated, not all are looked at, unless a limit is set that allows it. */
#ifndef TB_SEARCH_ALL_TREES_H
#define TB_SEARCH_ALL_TREES_H

#include "search/search_run.h"

int tb_all_trees(struct tb_search_run *run);

#endif
