/* A tree that is being searched for: children of a node are a list, so that a node with all behind it is moved in a few
 * steps. Deterministic; one thread at a time. */
#ifndef TB_SEARCH_SEARCH_TREE_H
#define TB_SEARCH_SEARCH_TREE_H

#include "collectives/collectives.h"

#define TB_NO_NODE UINT32_MAX

struct tb_search_tree {
    uint32_t nodes, root;
    uint32_t *parent; /* of the root: itself; of a node that is in no list yet: TB_NO_NODE */
    uint32_t *child;  /* that is served first */
    uint32_t *next;   /* that its parent serves behind it */
};

/* With nothing but the root in it. */
int tb_search_tree_open(struct tb_search_tree *tree, uint32_t nodes, uint32_t root);
void tb_search_tree_close(struct tb_search_tree *tree); /* may be all zeros */
void tb_search_tree_clear(struct tb_search_tree *tree);
/* Both have the same number of nodes. */
void tb_search_tree_copy(struct tb_search_tree *to, const struct tb_search_tree *from);

/* Puts a node that is in no list behind `before`, a child of `parent`; TB_NO_NODE: in front of all its children. */
void tb_search_tree_put(struct tb_search_tree *tree, uint32_t node, uint32_t parent, uint32_t before);
/* Takes a node, with all behind it, out of its parent's list; the child in front of it there, or TB_NO_NODE. */
uint32_t tb_search_tree_take(struct tb_search_tree *tree, uint32_t node);
/* Two nodes change places; everything else stays. None of them is the root. */
void tb_search_tree_swap(struct tb_search_tree *tree, uint32_t a, uint32_t b);
/* Whether `node` is `above` or behind it. */
bool tb_search_tree_behind(const struct tb_search_tree *tree, uint32_t node, uint32_t above);
/* All nodes that the root leads to, parents before their children; how many. */
uint32_t tb_search_tree_list(const struct tb_search_tree *tree, uint32_t *list);

/* As a forest of one tree of whole messages; and one tree of a forest. */
int tb_search_tree_forest(const struct tb_search_tree *tree, struct tb_forest **forest);
void tb_search_tree_read(struct tb_search_tree *tree, const struct tb_forest *forest, uint32_t which);

/* Several trees, each with a share of the message. */
struct tb_search_forest {
    uint32_t trees, room;             /* how many there are, and may be */
    uint64_t piece;                   /* 0: whole messages */
    uint32_t shares[TB_FOREST_TREES]; /* at least 1 */
    struct tb_search_tree tree[TB_FOREST_TREES];
};

/* With one tree, of nothing but the root. */
int tb_search_forest_open(struct tb_search_forest *forest, uint32_t nodes, uint32_t root, uint32_t room);
void tb_search_forest_close(struct tb_search_forest *forest); /* may be all zeros */
/* Both have the same number of nodes, and room for the trees. */
void tb_search_forest_copy(struct tb_search_forest *to, const struct tb_search_forest *from);
/* Takes a tree away; another one gets its share. There are several. */
void tb_search_forest_drop(struct tb_search_forest *forest, uint32_t which, uint32_t heir);
int tb_search_forest_make(const struct tb_search_forest *from, struct tb_forest **forest);

#endif
