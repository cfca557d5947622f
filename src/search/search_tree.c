#include "search/search_tree.h"

#include <stdlib.h>
#include <string.h>

int tb_search_tree_open(struct tb_search_tree *tree, uint32_t nodes, uint32_t root)
{
    TB_ASSERT(root < nodes);
    uint32_t *numbers = malloc(3 * (size_t)nodes * sizeof *numbers);
    *tree = (struct tb_search_tree){nodes, root, numbers, NULL, NULL};
    if (numbers == NULL)
        return tb_error(TB_ERR_MEMORY, "no memory for a tree of %u nodes", nodes);
    tree->child = numbers + nodes;
    tree->next = tree->child + nodes;
    tb_search_tree_clear(tree);
    return TB_OK;
}

void tb_search_tree_close(struct tb_search_tree *tree)
{
    free(tree->parent);
    *tree = (struct tb_search_tree){0};
}

void tb_search_tree_clear(struct tb_search_tree *tree)
{
    memset(tree->parent, 0xff, 3 * (size_t)tree->nodes * sizeof *tree->parent);
    tree->parent[tree->root] = tree->root;
}

void tb_search_tree_copy(struct tb_search_tree *to, const struct tb_search_tree *from)
{
    TB_ASSERT(to->nodes == from->nodes);
    to->root = from->root;
    memcpy(to->parent, from->parent, 3 * (size_t)from->nodes * sizeof *to->parent);
}

void tb_search_tree_put(struct tb_search_tree *tree, uint32_t node, uint32_t parent, uint32_t before)
{
    uint32_t *at = before == TB_NO_NODE ? &tree->child[parent] : &tree->next[before];
    tree->parent[node] = parent;
    tree->next[node] = *at;
    *at = node;
}

uint32_t tb_search_tree_take(struct tb_search_tree *tree, uint32_t node)
{
    uint32_t before = TB_NO_NODE, at = tree->child[tree->parent[node]];
    while (at != node) {
        before = at;
        at = tree->next[at];
    }
    if (before == TB_NO_NODE)
        tree->child[tree->parent[node]] = tree->next[node];
    else
        tree->next[before] = tree->next[node];
    tree->parent[node] = tree->next[node] = TB_NO_NODE;
    return before;
}

/* What points to `node` from its parent's list. */
static uint32_t *pointer_to(struct tb_search_tree *tree, uint32_t node)
{
    uint32_t *at = &tree->child[tree->parent[node]];
    while (*at != node)
        at = &tree->next[*at];
    return at;
}

static void numbers_swap(uint32_t *a, uint32_t *b)
{
    uint32_t number = *a;
    *a = *b;
    *b = number;
}

void tb_search_tree_swap(struct tb_search_tree *tree, uint32_t a, uint32_t b)
{
    TB_ASSERT(a != tree->root && b != tree->root);
    if (a == b)
        return;
    uint32_t *to_a = pointer_to(tree, a), *to_b = pointer_to(tree, b);
    *to_a = b;
    *to_b = a;
    numbers_swap(&tree->next[a], &tree->next[b]);
    numbers_swap(&tree->child[a], &tree->child[b]);
    numbers_swap(&tree->parent[a], &tree->parent[b]);
    /* Where one was behind the other, it was its own parent for a moment; its children's parents tell the rest. */
    for (uint32_t i = tree->child[a]; i != TB_NO_NODE; i = tree->next[i])
        tree->parent[i] = a;
    for (uint32_t i = tree->child[b]; i != TB_NO_NODE; i = tree->next[i])
        tree->parent[i] = b;
}

bool tb_search_tree_behind(const struct tb_search_tree *tree, uint32_t node, uint32_t above)
{
    while (node != above && node != tree->root)
        node = tree->parent[node];
    return node == above;
}

uint32_t tb_search_tree_list(const struct tb_search_tree *tree, uint32_t *list)
{
    uint32_t count = 1;
    list[0] = tree->root;
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t k = tree->child[list[i]]; k != TB_NO_NODE; k = tree->next[k])
            list[count++] = k;
    return count;
}

/* So many trees, with their shares; NULL: all alike. */
static int trees_make(const struct tb_search_tree *trees, const uint32_t *shares, uint32_t count, uint64_t piece,
                      struct tb_forest **forest)
{
    const size_t nodes = trees[0].nodes;
    uint64_t *order = calloc(count * nodes, sizeof *order);
    uint32_t *parents = malloc(count * nodes * sizeof *parents);
    int error = TB_OK;
    *forest = NULL;
    if (order == NULL || parents == NULL)
        error = tb_error(TB_ERR_MEMORY, "no memory for %u trees of %zu nodes", count, nodes);
    for (uint32_t t = 0; error == TB_OK && t < count; t++) {
        memcpy(parents + t * nodes, trees[t].parent, nodes * sizeof *parents);
        for (uint32_t i = 0; i < nodes; i++)
            for (uint32_t k = trees[t].child[i], place = 0; k != TB_NO_NODE; k = trees[t].next[k])
                order[t * nodes + k] = place++;
    }
    const struct tb_forest source = {.nodes = trees[0].nodes,
                                     .root = trees[0].root,
                                     .trees = count,
                                     .piece = piece,
                                     .shares = shares,
                                     .parents = parents};
    if (error == TB_OK)
        error = tb_forest_make(forest, &source, order);
    free(order);
    free(parents);
    return error;
}

int tb_search_tree_forest(const struct tb_search_tree *tree, struct tb_forest **forest)
{
    return trees_make(tree, NULL, 1, 0, forest);
}

void tb_search_tree_read(struct tb_search_tree *tree, const struct tb_forest *forest, uint32_t which)
{
    TB_ASSERT(tree->nodes == forest->nodes && which < forest->trees);
    const uint32_t *first = forest->first + (size_t)which * (forest->nodes + 1);
    tree->root = forest->root;
    tb_search_tree_clear(tree);
    for (uint32_t i = 0; i < forest->nodes; i++)
        for (uint32_t k = first[i + 1]; k-- > first[i];)
            tb_search_tree_put(tree, forest->children[k], i, TB_NO_NODE);
}

/* ---- several ----------------------------------------------------------------------------------------------------- */

int tb_search_forest_open(struct tb_search_forest *forest, uint32_t nodes, uint32_t root, uint32_t room)
{
    int error = TB_OK;
    *forest = (struct tb_search_forest){.trees = 1, .room = room, .shares = {1}};
    for (uint32_t i = 0; i < room && error == TB_OK; i++)
        error = tb_search_tree_open(&forest->tree[i], nodes, root);
    return error;
}

void tb_search_forest_close(struct tb_search_forest *forest)
{
    for (uint32_t i = 0; i < forest->room; i++)
        tb_search_tree_close(&forest->tree[i]);
    forest->room = 0;
}

void tb_search_forest_copy(struct tb_search_forest *to, const struct tb_search_forest *from)
{
    to->trees = from->trees;
    to->piece = from->piece;
    memcpy(to->shares, from->shares, sizeof to->shares);
    for (uint32_t i = 0; i < from->trees; i++)
        tb_search_tree_copy(&to->tree[i], &from->tree[i]);
}

void tb_search_forest_drop(struct tb_search_forest *forest, uint32_t which, uint32_t heir)
{
    uint32_t last = --forest->trees;
    struct tb_search_tree tree = forest->tree[which];
    forest->shares[heir] += forest->shares[which];
    forest->tree[which] = forest->tree[last];
    forest->shares[which] = forest->shares[last];
    forest->tree[last] = tree;
}

int tb_search_forest_make(const struct tb_search_forest *from, struct tb_forest **forest)
{
    return trees_make(from->tree, from->shares, from->trees, from->piece, forest);
}
