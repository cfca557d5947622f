/* ECEF, earliest completing edge first (Bhat, Raghavendra, Prasanna 1999): of all who have the message and all who do
 * not, those two take the next step between whom it is there first; again and again. Works on points, each of which a
 * node stands for: all nodes, or one of each cluster. */
#ifndef TB_SEARCH_ECEF_H
#define TB_SEARCH_ECEF_H

#include "search/problem.h"
#include "search/search_tree.h"

#define TB_ECEF_POINTS 4096u /* at most: memory and time grow with their square */

/* Puts all `points` behind points[0], which is in the tree already, each behind the one that tells it, in the order of
 * telling and behind the children that are there. */
int tb_ecef(const struct tb_problem *problem, const uint32_t *points, uint32_t count, struct tb_search_tree *tree);

#endif
