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

void tb_two_tree_find(struct tb_two_tree trees[2], uint32_t nodes, uint32_t node)
{
    TB_ASSERT(node > 0 && node <= nodes);
    uint32_t bit = node & -node;
    trees[0] = (struct tb_two_tree){.parent = tree_parent(nodes, node), .first = node - bit + 1};
    trees[0].left = bit > 1 ? node - bit / 2 : 0;
    trees[0].right = tree_right(nodes, node);

    uint32_t place = place_of(nodes, node);
    bit = place & -place;
    uint32_t lower = bit > 1 ? node_of(nodes, place - bit / 2) : 0, upper = node_of(nodes, tree_right(nodes, place));
    uint32_t last = bit - 1 < nodes - place ? place + bit - 1 : nodes; /* below it, in places */
    trees[1] = (struct tb_two_tree){.parent = node_of(nodes, tree_parent(nodes, place))};
    trees[1].left = nodes % 2 == 0 ? upper : lower;
    trees[1].right = nodes % 2 == 0 ? lower : upper;
    trees[1].first = node_of(nodes, nodes % 2 == 0 ? last : place - bit + 1);
}

uint32_t tb_two_tree_root(uint32_t nodes, uint32_t tree)
{
    return tree == 0 ? tree_root(nodes) : node_of(nodes, tree_root(nodes));
}
