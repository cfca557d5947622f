#include "search/own_moves.h"

#include <stdlib.h>

#include "search/edge_cost.h"
#include "search/quick.h"

#define SPLIT_SHARES  16u /* that one share is divided into, so that it can be split */
#define SPLIT_CHANGES 3u  /* of a tree that is split off */

int tb_own_moves_open(struct tb_own_moves *moves, const struct tb_problem *problem, uint64_t seed)
{
    struct tb_cluster_list list = {0};
    *moves = (struct tb_own_moves){.problem = problem};
    tb_random_seed(&moves->random, seed);
    int error = tb_cluster_list_make(&list, problem);
    moves->first = list.first;
    moves->members = list.nodes;
    moves->critical = malloc(problem->nodes * sizeof *moves->critical);
    moves->list = malloc(problem->nodes * sizeof *moves->list);
    moves->times = malloc(problem->nodes * sizeof *moves->times);
    if (error == TB_OK && (moves->critical == NULL || moves->list == NULL || moves->times == NULL))
        error = tb_error(TB_ERR_MEMORY, "no memory for moves of %u nodes", problem->nodes);
    return error;
}

void tb_own_moves_close(struct tb_own_moves *moves)
{
    free(moves->first);
    free(moves->critical);
    free(moves->list);
    free(moves->times);
}

/* When each node has the message, as if no link were shared; who has it last. */
static uint32_t times_estimate(struct tb_own_moves *moves, const struct tb_search_tree *tree)
{
    const struct tb_problem *problem = moves->problem;
    uint32_t count = tb_search_tree_list(tree, moves->list), last = tree->root;
    moves->times[tree->root] = 0;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t node = moves->list[i];
        uint64_t start = moves->times[node];
        for (uint32_t k = tree->child[node]; k != TB_NO_NODE; k = tree->next[k]) {
            moves->times[k] = start + tb_edge_arrive(problem, node, k);
            start += tb_edge_send(problem, node, k);
            last = moves->times[k] > moves->times[last] ? k : last;
        }
    }
    return last;
}

void tb_own_moves_look(struct tb_own_moves *moves, const struct tb_search_tree *tree)
{
    uint32_t node = times_estimate(moves, tree);
    moves->critical_count = 0;
    /* Back from the last one: what it waited for is the child that its parent served before it, or its parent's own
     * message. */
    while (node != tree->root) {
        uint32_t parent = tree->parent[node], before = TB_NO_NODE;
        moves->critical[moves->critical_count++] = node;
        for (uint32_t k = tree->child[parent]; k != node; k = tree->next[k])
            before = k;
        node = before != TB_NO_NODE ? before : parent;
    }
}

static uint32_t random_below(struct tb_own_moves *moves, uint32_t limit)
{
    return (uint32_t)tb_random_below(&moves->random, limit);
}

/* Any node of the cluster of `node`, or any at all. */
static uint32_t node_near(struct tb_own_moves *moves, uint32_t node)
{
    uint32_t cluster = moves->problem->clusters[node], first = moves->first[cluster];
    uint32_t count = moves->first[cluster + 1] - first;
    if (count > 1 && random_below(moves, 2) == 0)
        return moves->members[first + random_below(moves, count)];
    return random_below(moves, moves->problem->nodes);
}

/* A child of `parent` to be put behind: none, the last one, or any. */
static uint32_t place_choose(struct tb_own_moves *moves, const struct tb_search_tree *tree, uint32_t parent)
{
    uint32_t count = 0, before = TB_NO_NODE;
    for (uint32_t k = tree->child[parent]; k != TB_NO_NODE; k = tree->next[k])
        count++;
    uint32_t place = random_below(moves, count + 1);
    for (uint32_t i = 0; i < place; i++)
        before = before == TB_NO_NODE ? tree->child[parent] : tree->next[before];
    return before;
}

/* A node with all behind it gets another parent. */
static bool branch_move(struct tb_own_moves *moves, struct tb_search_tree *tree, uint32_t node)
{
    uint32_t parent = node_near(moves, node);
    if (tb_search_tree_behind(tree, parent, node))
        return false;
    tb_search_tree_take(tree, node);
    tb_search_tree_put(tree, node, parent, place_choose(moves, tree, parent));
    return true;
}

/* A node is served sooner or later by its parent. */
static bool order_change(struct tb_own_moves *moves, struct tb_search_tree *tree, uint32_t node)
{
    uint32_t parent = tree->parent[node];
    if (tree->child[parent] == node && tree->next[node] == TB_NO_NODE)
        return false;
    uint32_t old = tb_search_tree_take(tree, node), place = place_choose(moves, tree, parent);
    tb_search_tree_put(tree, node, parent, place);
    return place != old;
}

/* A node alone gets another place; its children go to its parent, where it was. */
static bool node_move(struct tb_own_moves *moves, struct tb_search_tree *tree, uint32_t node)
{
    uint32_t parent = node_near(moves, node), old = tree->parent[node];
    if (parent == node || tree->child[node] == TB_NO_NODE)
        return false;
    uint32_t before = tb_search_tree_take(tree, node), child;
    while ((child = tree->child[node]) != TB_NO_NODE) {
        tb_search_tree_take(tree, child);
        tb_search_tree_put(tree, child, old, before);
        before = child;
    }
    tb_search_tree_put(tree, node, parent, place_choose(moves, tree, parent));
    return true;
}

/* A node is put between another and some of its children, or those of its own parent that come behind it. */
static bool node_insert(struct tb_own_moves *moves, struct tb_search_tree *tree, uint32_t node)
{
    uint32_t next = tree->next[node], last = TB_NO_NODE;
    for (uint32_t k = tree->child[node]; k != TB_NO_NODE; k = tree->next[k])
        last = k;
    if (next == TB_NO_NODE)
        return false;
    tb_search_tree_take(tree, next);
    tb_search_tree_put(tree, next, node, random_below(moves, 2) == 0 ? last : TB_NO_NODE);
    return true;
}

static bool tree_change(struct tb_own_moves *moves, struct tb_search_tree *tree)
{
    uint32_t kind = random_below(moves, 16), node = random_below(moves, tree->nodes), other;
    if (moves->critical_count > 0 && random_below(moves, 4) != 0)
        node = moves->critical[random_below(moves, moves->critical_count)];
    if (node == tree->root)
        return false;
    if (kind < 7)
        return branch_move(moves, tree, node);
    if (kind < 10)
        return order_change(moves, tree, node);
    if (kind < 11)
        return node_move(moves, tree, node);
    if (kind < 12)
        return node_insert(moves, tree, node);
    other = node_near(moves, node);
    if (other == tree->root || other == node)
        return false;
    tb_search_tree_swap(tree, node, other);
    return true;
}

/* ---- several trees ----------------------------------------------------------------------------------------------- */

/* Pieces twice as long, or half as long. */
static bool piece_change(struct tb_own_moves *moves, struct tb_search_forest *forest)
{
    const uint64_t bytes = moves->problem->bytes, now = forest->piece == 0 ? bytes : forest->piece;
    uint64_t piece = random_below(moves, 2) == 0 ? now / 2 : 2 * now;
    if (piece < TB_OWN_PIECE || bytes / piece > TB_OWN_PIECES || piece >= 2 * bytes)
        return false;
    forest->piece = piece < bytes ? piece : 0;
    return true;
}

/* Some of the share of one tree goes to another; if it was all, that tree is dropped. */
static bool share_move(struct tb_own_moves *moves, struct tb_search_forest *forest)
{
    uint32_t from = random_below(moves, forest->trees), to = random_below(moves, forest->trees);
    if (from == to)
        return false;
    uint32_t part = 1 + random_below(moves, forest->shares[from]);
    part = random_below(moves, 4) == 0 ? part : 1 + part / 8; /* mostly a little */
    if (part >= forest->shares[from]) {
        tb_search_forest_drop(forest, from, to);
        return true;
    }
    forest->shares[from] -= part;
    forest->shares[to] += part;
    return true;
}

/* One more tree, like another one but for some changes, with a part of its share. */
static bool tree_split(struct tb_own_moves *moves, struct tb_search_forest *forest)
{
    uint32_t from = random_below(moves, forest->trees), to = forest->trees;
    if (forest->trees == forest->room)
        return false;
    if (forest->shares[from] < 2)
        for (uint32_t i = 0; i < forest->trees; i++)
            forest->shares[i] *= SPLIT_SHARES;
    tb_search_tree_copy(&forest->tree[to], &forest->tree[from]);
    forest->shares[to] = 1 + random_below(moves, forest->shares[from] / 2);
    forest->shares[from] -= forest->shares[to];
    forest->trees++;
    for (uint32_t i = 0; i < SPLIT_CHANGES; i++)
        tree_change(moves, &forest->tree[to]);
    return true;
}

/* A node that is served from another cluster gets another parent there, or in a third one. */
static bool entry_move(struct tb_own_moves *moves, struct tb_search_tree *tree)
{
    const uint32_t *clusters = moves->problem->clusters;
    uint32_t node = random_below(moves, tree->nodes), parent = random_below(moves, tree->nodes);
    for (uint32_t i = 0; i < tree->nodes && clusters[node] == clusters[tree->parent[node]]; i++)
        node = (node + 1) % tree->nodes;
    if (clusters[node] == clusters[tree->parent[node]] || clusters[parent] == clusters[node] ||
        tb_search_tree_behind(tree, parent, node))
        return false;
    tb_search_tree_take(tree, node);
    tb_search_tree_put(tree, node, parent, place_choose(moves, tree, parent));
    return true;
}

bool tb_own_moves_change(struct tb_own_moves *moves, struct tb_search_forest *forest)
{
    uint32_t kind = moves->cuts ? random_below(moves, 16) : UINT32_MAX;
    if (kind < 2)
        return piece_change(moves, forest);
    if (kind < 7 && forest->trees > 1)
        return share_move(moves, forest);
    if (kind == 7)
        return tree_split(moves, forest);
    struct tb_search_tree *tree = &forest->tree[forest->trees > 1 ? random_below(moves, forest->trees) : 0];
    return kind < 10 ? entry_move(moves, tree) : tree_change(moves, tree);
}
