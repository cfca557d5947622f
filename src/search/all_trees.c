#include "search/all_trees.h"

#define MOST           3000000u /* trees, where nobody sets a limit: enough for eight nodes, */
#define MOST_SIMULATED 100000u  /* or, where each is simulated rank by rank, for seven: some seconds */

struct walk {
    struct tb_search_run *run;
    struct tb_search_tree tree;
    uint32_t *list, count; /* nodes in the tree, in the order in which they were put there */
};

/* Gives the node at place `at` of the list further children behind `last`, or goes on to the next one. */
static int walk_on(struct walk *w, uint32_t at, uint32_t last)
{
    uint64_t time;
    const uint32_t nodes = w->tree.nodes;
    if (w->count == nodes)
        return tb_search_run_rate(w->run, &w->tree, &time);
    int error = TB_OK;
    for (uint32_t k = 0; error == TB_OK && k < nodes && !tb_search_run_over(w->run); k++) {
        if (w->tree.parent[k] != TB_NO_NODE)
            continue;
        tb_search_tree_put(&w->tree, k, w->list[at], last);
        w->list[w->count++] = k;
        error = walk_on(w, at, k);
        w->count--;
        tb_search_tree_take(&w->tree, k);
    }
    if (error == TB_OK && at + 1 < w->count)
        error = walk_on(w, at + 1, TB_NO_NODE);
    return error;
}

int tb_all_trees(struct tb_search_run *run)
{
    uint32_t list[64];
    struct walk w = {.run = run, .list = list, .count = 1};
    const uint32_t nodes = run->problem->nodes, root = run->problem->root;
    TB_ASSERT(nodes <= sizeof list / sizeof list[0]);
    int error = tb_search_tree_open(&w.tree, nodes, root);
    if (error != TB_OK)
        return error;
    list[0] = root;
    if (run->limit == 0 && run->deadline == TB_NEVER)
        run->limit = run->evaluations + (run->treesim ? MOST : MOST_SIMULATED);
    error = walk_on(&w, 0, TB_NO_NODE);
    tb_search_tree_close(&w.tree);
    return error;
}
