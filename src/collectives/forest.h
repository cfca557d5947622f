/* A forest: trees along which a collective goes, found by a planner that had more time than a call has (search/), or
 * written by hand. Its nodes are the hosts of a group's shape, by their numbers there; the ranks of a host meet in its
 * common memory, or along a binomial tree where they cannot. Each tree carries a share of the message. Data that flows
 * to the root (reduce, gather) goes up the trees that a broadcast from there goes down. Immutable; any thread. */
#ifndef TB_COLLECTIVES_FOREST_H
#define TB_COLLECTIVES_FOREST_H

#include "topology/topology.h"

#define TB_FOREST_TREES 16u

struct tb_forest {
    uint32_t nodes, root;   /* of all trees alike */
    uint32_t trees;         /* 1 to TB_FOREST_TREES */
    uint64_t piece;         /* bytes of a message at most; 0: a tree's share, or a bundle of blocks, goes whole, and to
                             * one child after the other */
    const uint32_t *shares; /* of each tree, in parts of the sum of all; at least 1 */
    /* Of tree t, node i: its parent is parents[t * nodes + i], that of the root itself; its children, in the order in
     * which they are served, are children[first[k]] to children[first[k + 1] - 1], where k is t * (nodes + 1) + i. */
    const uint32_t *parents, *first, *children;
};

/* Makes one in memory of its own, of all that `source` says but `first` and `children`; `order` says for each node of
 * each tree which of two children of one parent is served first: the lower number, of equal ones the lower node.
 * `shares` NULL: all alike. TB_ERR_ARGUMENT: a node is not behind the root, and the story says which. */
int tb_forest_make(struct tb_forest **forest, const struct tb_forest *source, const uint64_t *order);
void tb_forest_close(struct tb_forest *forest); /* NULL: nothing */
int tb_forest_copy(struct tb_forest **copy, const struct tb_forest *forest);
/* The same trees for a root on another host of the shape, which takes the place of the root's one, and that its own. If
 * they are in different places, these must be alike, and all hosts of them change places. TB_ERR_ARGUMENT: they are
 * not, or the forest is of another number of hosts. */
int tb_forest_move(struct tb_forest **moved, const struct tb_forest *forest, const struct tb_group_shape *shape,
                   uint32_t host);

#endif
