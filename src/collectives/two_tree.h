/* The two trees of Sanders, Speck and Träff ("Two-tree algorithms for full bandwidth broadcast, reduction and scan"):
 * binary trees over the same nodes, of which nobody is interior in both, so that with half of the data in each tree
 * everyone receives all of it once and passes all of it on at most once. Pure functions, O(log nodes); whoever declares
 * the structure owns it; any thread.
 *
 * Nodes are numbered from 1 on; 0 is no node. In the first tree left of a node is what is below it and right of it what
 * is above. The second tree is the first one's mirror image, with left and right so that the same holds, if the number
 * of nodes is even; if it is odd, it is the first tree moved on by one node, and not in order. */
#ifndef TB_COLLECTIVES_TWO_TREE_H
#define TB_COLLECTIVES_TWO_TREE_H

#include "base/base.h"

/* A node in one of them. */
struct tb_two_tree {
    uint32_t parent; /* 0: it is the root */
    uint32_t left, right;
    uint32_t first, last; /* where the trees are in order: of the nodes from here down */
};

void tb_two_tree_find(struct tb_two_tree trees[2], uint32_t nodes, uint32_t node);
/* The root of one of the two. */
uint32_t tb_two_tree_root(uint32_t nodes, uint32_t tree);

#endif
