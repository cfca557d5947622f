/* Trees that are made at once, on grids where it is plain what they must be. */
#include "search/quick.h"

#include <stdio.h>

#include "search/search_test.h"

static const struct tb_search_wish no_wish;

/* What a searcher finds, as a text: "0: 2 1;2: 3;". */
static const char *found(struct tb_problem *problem, enum tb_searcher searcher)
{
    static char text[256];
    struct tb_search_result result;
    size_t at = 0;
    text[0] = '\0';
    assert_int_equal(tb_search(problem, searcher, &no_wish, &result), TB_OK);
    assert_true(result.complete);
    for (uint32_t i = 0; i < problem->nodes; i++) {
        const uint32_t *first = result.forest->first;
        if (first[i] == first[i + 1])
            continue;
        at += (size_t)snprintf(text + at, sizeof text - at, "%u:", i);
        for (uint32_t k = first[i]; k < first[i + 1]; k++)
            at += (size_t)snprintf(text + at, sizeof text - at, " %u", result.forest->children[k]);
        at += (size_t)snprintf(text + at, sizeof text - at, ";");
    }
    tb_forest_close(result.forest);
    return text;
}

static void binomial_trees(void **state)
{
    uint64_t rates[49];
    for (uint32_t i = 0; i < 49; i++)
        rates[i] = 10;
    static const struct {
        uint32_t nodes, root;
        const char *tree;
    } cases[] = {{1, 0, ""},
                 {2, 1, "1: 0;"},
                 {3, 0, "0: 2 1;"},
                 {3, 2, "2: 1 0;"},
                 {5, 0, "0: 4 2 1;2: 3;"},
                 {7, 0, "0: 4 2 1;2: 3;4: 6 5;"},
                 {7, 5, "0: 1;2: 4 3;5: 2 0 6;"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const struct tb_treesim_source source = {.nodes = cases[i].nodes,
                                                 .root = cases[i].root,
                                                 .cluster_count = cases[i].nodes,
                                                 .rates = rates,
                                                 .operation = TB_OPERATION_BCAST,
                                                 .bytes = 10};
        struct tb_problem *problem = problem_open(&source);
        assert_string_equal(found(problem, TB_SEARCH_BINOMIAL), cases[i].tree);
        /* Alike nodes are doubled in every step, by anybody. */
        uint32_t steps = 0;
        while (1u << steps < cases[i].nodes)
            steps++;
        for (enum tb_searcher s = TB_SEARCH_BINOMIAL; s <= TB_SEARCH_LPBF; s++)
            assert_int_equal(search_time(problem, s, 0), steps * (uint64_t)SECOND);
        tb_treesim_close(problem);
    }
}

/* One far away is told by who is near to it, and first. */
static void edges_that_complete_earliest(void **state)
{
    static const uint64_t rates[] = {1, 100, 20, 1, 100, 1, 20, 1, 20, 20, 1, 10, 1, 1, 10, 1};
    const struct tb_treesim_source source = {
        .nodes = 4, .cluster_count = 4, .rates = rates, .operation = TB_OPERATION_BCAST, .bytes = 100};
    struct tb_problem *problem = problem_open(&source);
    /* 0 to 1 at 1 s; then 0 to 2 at 6 s, rather than 1 to 2 at 6 s: who had it first; 2 to 3 at 16 s. */
    assert_string_equal(found(problem, TB_SEARCH_ECEF), "0: 1 2;2: 3;");
    /* The longest branch comes first: 2, then 1. */
    assert_string_equal(found(problem, TB_SEARCH_LPBF), "0: 2 1;2: 3;");
    assert_int_equal(search_time(problem, TB_SEARCH_LPBF, 0), 15 * SECOND);
    tb_treesim_close(problem);
}

/* What flows up counts the other way, and both ways count where both are gone. */
static void other_directions(void **state)
{
    static const uint64_t rates[] = {1, 100, 10, 10, 1, 100, 100, 10, 1};
    struct tb_treesim_source source = {
        .nodes = 3, .cluster_count = 3, .rates = rates, .operation = TB_OPERATION_BCAST, .bytes = 100};
    struct tb_problem *problem = problem_open(&source);
    assert_string_equal(found(problem, TB_SEARCH_LPBF), "0: 1;1: 2;");
    tb_treesim_close(problem);
    source.operation = TB_OPERATION_REDUCE;
    problem = problem_open(&source);
    assert_string_equal(found(problem, TB_SEARCH_LPBF), "0: 2;2: 1;");
    assert_int_equal(search_time(problem, TB_SEARCH_LPBF, 0), 2 * SECOND);
    assert_int_equal(search_time(problem, TB_SEARCH_OPTIMUM, 0), 2 * SECOND);
    tb_treesim_close(problem);
    source.operation = TB_OPERATION_ALLREDUCE;
    problem = problem_open(&source);
    assert_string_equal(found(problem, TB_SEARCH_LPBF), "0: 1 2;");
    tb_treesim_close(problem);
}

/* Clusters of 3, 2 and 2 nodes, mixed by number, root in the second; a cluster without nodes. */
static void clusters_first(void **state)
{
    static const uint32_t clusters[] = {0, 1, 3, 0, 1, 3, 0};
    static const uint64_t rates[] = {100, 10, 1, 5, 10, 100, 1, 10, 1, 1, 1, 1, 5, 10, 1, 100};
    const struct tb_treesim_source source = {.nodes = 7,
                                             .root = 4,
                                             .cluster_count = 4,
                                             .clusters = clusters,
                                             .rates = rates,
                                             .operation = TB_OPERATION_BCAST,
                                             .bytes = 100};
    struct tb_problem *problem = problem_open(&source);
    assert_string_equal(found(problem, TB_SEARCH_ECEF_CLUSTERS), "0: 6 3;2: 5;4: 0 2 1;");
    assert_string_equal(found(problem, TB_SEARCH_LPBF), "0: 3 6;2: 5;4: 0 2 1;");
    assert_int_equal(search_time(problem, TB_SEARCH_LPBF, 0), 21 * SECOND);
    tb_treesim_close(problem);
}

static void trees_change(void **state)
{
    struct tb_search_tree tree, copy;
    uint32_t list[7];
    assert_int_equal(tb_search_tree_open(&tree, 7, 2), TB_OK);
    assert_int_equal(tb_search_tree_open(&copy, 7, 2), TB_OK);
    static const uint32_t order[] = {2, 0, 1, 3, 4, 5, 6};
    tb_quick_binomial_of(&tree, order, 7);
    struct tb_random random;
    tb_random_seed(&random, 5);
    for (uint32_t n = 0; n < 5000; n++) {
        uint32_t a = (uint32_t)tb_random_below(&random, 7), b = (uint32_t)tb_random_below(&random, 7);
        if (a == 2 || b == 2)
            continue;
        tb_search_tree_copy(&copy, &tree);
        tb_search_tree_swap(&tree, a, b);
        assert_int_equal(tb_search_tree_list(&tree, list), 7);
        for (uint32_t i = 0; i < 7; i++) /* parents and lists agree */
            for (uint32_t k = tree.child[i]; k != TB_NO_NODE; k = tree.next[k])
                assert_int_equal(tree.parent[k], i);
        tb_search_tree_swap(&tree, a, b); /* and back */
        assert_memory_equal(copy.parent, tree.parent, 3 * 7 * sizeof *tree.parent);
        tb_search_tree_swap(&tree, a, b);
        if (!tb_search_tree_behind(&tree, b, a)) {
            tb_search_tree_take(&tree, a);
            tb_search_tree_put(&tree, a, b, TB_NO_NODE);
        }
    }
    tb_search_tree_close(&tree);
    tb_search_tree_close(&copy);
}

/* Many nodes: a million in 10,000 clusters at 100 sites, and as many clusters without sites. */
static void many_nodes(void **state)
{
    static uint32_t clusters[1000000], sites[10000];
    static uint64_t rates[100 * 100], inside[10000];
    for (uint32_t i = 0; i < 1000000; i++)
        clusters[i] = i / 100;
    for (uint32_t i = 0; i < 10000; i++) {
        sites[i] = i / 100;
        inside[i] = 1000000 * (1000 + i % 7);
    }
    for (uint32_t i = 0; i < 10000; i++)
        rates[i] = 1000000 * (i / 100 == i % 100 ? 500 : 10 + (i * 7919u) % 90);
    const struct tb_treesim_source source = {.nodes = 1000000,
                                             .root = 4711,
                                             .cluster_count = 10000,
                                             .clusters = clusters,
                                             .rates = rates,
                                             .operation = TB_OPERATION_BCAST,
                                             .bytes = 1000,
                                             .site_count = 100,
                                             .sites = sites,
                                             .inside_rates = inside};
    struct tb_problem *problem = problem_open(&source);
    uint64_t binomial = search_time(problem, TB_SEARCH_BINOMIAL, 0), lpbf = search_time(problem, TB_SEARCH_LPBF, 0);
    assert_true(lpbf < binomial);
    struct tb_search_result result;
    assert_int_equal(tb_search(problem, TB_SEARCH_ECEF, &no_wish, &result), TB_ERR_LIMIT);
    assert_true(tb_searcher_limit(TB_SEARCH_ECEF) < 1000000 && tb_searcher_limit(TB_SEARCH_OWN) >= 1000000);
    problem->site_count = 0; /* nobody says where clusters are */
    assert_true(search_time(problem, TB_SEARCH_LPBF, 0) >= lpbf / 2);
    tb_treesim_close(problem);
}

static void names(void **state)
{
    enum tb_searcher searcher;
    for (uint32_t i = 0; i < TB_SEARCH_COUNT; i++) {
        assert_true(tb_searcher_find(tb_searcher_name((enum tb_searcher)i), &searcher));
        assert_int_equal(searcher, i);
    }
    assert_false(tb_searcher_find("best", &searcher));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(binomial_trees),
                                       cmocka_unit_test(edges_that_complete_earliest),
                                       cmocka_unit_test(other_directions),
                                       cmocka_unit_test(clusters_first),
                                       cmocka_unit_test(trees_change),
                                       cmocka_unit_test(many_nodes),
                                       cmocka_unit_test(names)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
