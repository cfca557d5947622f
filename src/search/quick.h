/* Trees that are made, not searched for: binomial, ECEF, ECEF between clusters, LPBF (the MPITH thesis, Vorakosit 2006,
 * algorithms 6 and 7, as its text and figures have them). */
#ifndef TB_SEARCH_QUICK_H
#define TB_SEARCH_QUICK_H

#include "search/problem.h"
#include "search/search_tree.h"

/* Each fills an empty tree. */
int tb_quick_binomial(const struct tb_problem *problem, struct tb_search_tree *tree);
int tb_quick_ecef(const struct tb_problem *problem, struct tb_search_tree *tree);
int tb_quick_clusters(const struct tb_problem *problem, struct tb_search_tree *tree);
int tb_quick_lpbf(const struct tb_problem *problem, struct tb_search_tree *tree);

/* Clusters one after another, each near to the one before, and each node behind the one that is one place in `fan_out`
 * before it: a line, a binary tree. For messages in many pieces. */
int tb_quick_line(const struct tb_problem *problem, struct tb_search_tree *tree, uint32_t fan_out);

/* Every node serves that child first behind whom most is still to be done when it has got the message, of equal ones
 * the lower; links that are shared are not looked at. The whole takes `*time`, unless it is NULL. */
int tb_quick_sort(const struct tb_problem *problem, struct tb_search_tree *tree, uint64_t *time);
/* A binomial tree of nodes[0] and all behind it, behind the children that nodes[0] has. */
void tb_quick_binomial_of(struct tb_search_tree *tree, const uint32_t *nodes, uint32_t count);

/* The same, or what ECEF finds with the longest branch first, whichever is shorter; nodes[0] has no children yet. */
int tb_quick_inside(const struct tb_problem *problem, struct tb_search_tree *tree, const uint32_t *nodes,
                    uint32_t count);

/* Nodes cluster by cluster: those of cluster c are nodes[first[c]] to nodes[first[c + 1] - 1], the one that stands for
 * it in front: the root, or its lowest node. One piece of memory, freed by free(first). */
struct tb_cluster_list {
    uint32_t *first, *nodes;
};
int tb_cluster_list_make(struct tb_cluster_list *list, const struct tb_problem *problem);

#endif
