#include "collectives/two_tree.h"

/* The number in the first tree of who stands there in the second one as `node`; and the other way round, if the number
 * of nodes is even. */
static uint32_t node_mirror(uint32_t nodes, uint32_t node)
{
    return nodes + 1 - node;
}

static uint32_t node_of(uint32_t nodes, uint32_t place)
{
    return place == 0 ? 0 : nodes % 2 == 0 ? node_mirror(nodes, place) : place % nodes + 1;
}

static uint32_t place_of(uint32_t nodes, uint32_t node)
{
    return nodes % 2 == 0 ? node_mirror(nodes, node) : node > 1 ? node - 1 : nodes;
}

/* The largest power of two among the nodes. */
static uint32_t tree_root(uint32_t nodes)
{
    uint32_t root = 1;
    while (root <= nodes / 2)
        root *= 2;
    return root;
}

/* The lowest bit of a node is its height: leaves are odd, and the parent has the next higher bit. Where that one does
 * not exist the node stands in its place, and so below the next lower one. */
static uint32_t tree_parent(uint32_t nodes, uint32_t node)
{
    uint32_t bit = node & -node;
    uint64_t parent = (node - bit) | 2ull * bit;
    return node == tree_root(nodes) ? 0 : parent <= nodes ? (uint32_t)parent : node - bit;
}

static uint32_t tree_right(uint32_t nodes, uint32_t node)
{
    for (uint32_t bit = (node & -node) / 2; bit > 0; bit /= 2)
        if (bit <= nodes - node)
            return node + bit;
    return 0;
}

/* Where a tree's numbers are its own. */
static struct tb_two_tree tree_find(uint32_t nodes, uint32_t node)
{
    uint32_t bit = node & -node;
    struct tb_two_tree t = {.parent = tree_parent(nodes, node), .left = bit > 1 ? node - bit / 2 : 0};
    t.right = tree_right(nodes, node);
    t.first = node - bit + 1;
    t.last = bit - 1 < nodes - node ? node + bit - 1 : nodes;
    return t;
}

void tb_two_tree_find(struct tb_two_tree trees[2], uint32_t nodes, uint32_t node)
{
    TB_ASSERT(node > 0 && node <= nodes);
    bool mirrored = nodes % 2 == 0;
    struct tb_two_tree t = tree_find(nodes, place_of(nodes, node));
    trees[0] = tree_find(nodes, node);
    trees[1].parent = node_of(nodes, t.parent);
    trees[1].left = node_of(nodes, mirrored ? t.right : t.left);
    trees[1].right = node_of(nodes, mirrored ? t.left : t.right);
    trees[1].first = node_of(nodes, mirrored ? t.last : t.first);
    trees[1].last = node_of(nodes, mirrored ? t.first : t.last);
}

uint32_t tb_two_tree_root(uint32_t nodes, uint32_t tree)
{
    return tree == 0 ? tree_root(nodes) : node_of(nodes, tree_root(nodes));
}
