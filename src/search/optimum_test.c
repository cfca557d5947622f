/* The optimum against all trees one by one, and the bound against both. */
#include "search/optimum.h"

#include "search/all_trees.h"
#include "search/search_test.h"
#include "search/treesim_bound.h"

static const struct tb_search_wish no_wish;

static uint64_t best_of(struct tb_problem *problem, int (*search)(struct tb_search_run *), uint64_t *evaluations)
{
    struct tb_search_run run;
    assert_int_equal(tb_search_run_open(&run, problem, &no_wish, 0), TB_OK);
    assert_int_equal(search(&run), TB_OK);
    uint64_t time = run.best_time;
    *evaluations = run.evaluations;
    tb_search_run_close(&run);
    return time;
}

/* Grids with shared links and without, rates of which many are equal, both ways, latencies. */
static struct tb_problem *problem_draw(uint32_t nodes, uint32_t clusters, uint32_t number)
{
    struct tb_thesis_grid grid;
    uint64_t latencies[32 * 32];
    assert_int_equal(tb_thesis_grid_draw(&grid, clusters, nodes, number % 2 == 0, number), TB_OK);
    struct tb_treesim_source source = tb_thesis_grid_source(&grid, 1000 + number);
    const uint32_t count = grid.cluster_count * grid.cluster_count;
    for (uint32_t i = 0; number % 5 == 1 && i < count; i++)
        grid.rates[i] = 1000 * (1 + grid.rates[i] / 125000 % 3);
    for (uint32_t i = 0; i < count; i++)
        latencies[i] = 1000 * grid.rates[i];
    source.root = number % nodes;
    if (number % 7 == 2)
        source.operation = TB_OPERATION_REDUCE;
    if (number % 7 == 3)
        source.operation = TB_OPERATION_ALLREDUCE;
    if (number % 7 == 4)
        source.operation = number % 2 == 0 ? TB_OPERATION_SCATTER : TB_OPERATION_GATHER;
    if (number % 5 == 2)
        source.latencies = latencies;
    source.sender_free = number % 10 == 2;
    struct tb_problem *problem = problem_open(&source);
    tb_thesis_grid_close(&grid);
    return problem;
}

static void optimum_is_the_best_of_all(void **state)
{
    uint64_t states, trees, bound;
    for (uint32_t nodes = 1; nodes <= 6; nodes++)
        for (uint32_t number = 0; number < 70; number++) {
            struct tb_problem *problem = problem_draw(nodes, 2u << number % 5, number);
            uint64_t best = best_of(problem, tb_all_trees, &trees);
            assert_true(best_of(problem, tb_optimum, &states) == best);
            assert_int_equal(tb_treesim_bound(problem, &bound), TB_OK);
            assert_true(bound <= best);
            tb_treesim_close(problem);
        }
    struct tb_problem *problem = thesis_problem(2, 7, true, 3); /* with shared links */
    assert_true(tb_treesim_shares(problem));
    uint64_t best = best_of(problem, tb_all_trees, &trees);
    assert_int_equal(trees, 95040); /* 12! / 7! */
    assert_true(best_of(problem, tb_optimum, &states) == best && states < trees / 10);
    tb_treesim_close(problem);
}

/* Where it is known: alike nodes double in each step; a chain of fast links. */
static void known_bounds(void **state)
{
    uint64_t rates[64], bound;
    for (uint32_t i = 0; i < 64; i++)
        rates[i] = 10;
    struct tb_treesim_source source = {
        .nodes = 8, .cluster_count = 8, .rates = rates, .operation = TB_OPERATION_BCAST, .bytes = 10};
    struct tb_problem *problem = problem_open(&source);
    assert_int_equal(tb_treesim_bound(problem, &bound), TB_OK);
    assert_int_equal(bound, 3 * SECOND);
    assert_int_equal(search_time(problem, TB_SEARCH_OPTIMUM, 0), 3 * SECOND);
    tb_treesim_close(problem);
    for (uint32_t i = 0; i < 64; i++)
        rates[i] = i % 8 == i / 8 + 1 ? 10 : 1;
    source.nodes = 3;
    source.cluster_count = 8;
    static const uint32_t clusters[] = {0, 1, 2};
    source.clusters = clusters;
    problem = problem_open(&source);
    assert_int_equal(tb_treesim_bound(problem, &bound), TB_OK);
    assert_int_equal(bound, 2 * SECOND);
    tb_treesim_close(problem);
    /* 64 alike nodes in one cluster, and one behind a slow link. */
    static uint32_t many[65];
    static const uint64_t slow[] = {10, 1, 1, 10};
    many[64] = 1;
    source = (struct tb_treesim_source){
        .nodes = 65, .cluster_count = 2, .clusters = many, .rates = slow, .operation = TB_OPERATION_BCAST, .bytes = 10};
    problem = problem_open(&source);
    assert_int_equal(tb_treesim_bound(problem, &bound), TB_OK);
    assert_int_equal(bound, 10 * SECOND);
    source.root = 64; /* over the link, then six steps; the link brings no second one in time */
    tb_treesim_close(problem);
    problem = problem_open(&source);
    assert_int_equal(tb_treesim_bound(problem, &bound), TB_OK);
    assert_int_equal(bound, 16 * SECOND);
    tb_treesim_close(problem);
}

/* Limits are kept: of nodes, and of evaluations; what is there then is a tree all the same. */
static void limits(void **state)
{
    struct tb_problem *problem = thesis_problem(8, TB_OPTIMUM_NODES + 1, true, 1);
    struct tb_search_result result;
    assert_int_equal(tb_search(problem, TB_SEARCH_OPTIMUM, &no_wish, &result), TB_ERR_LIMIT);
    assert_int_equal(tb_searcher_limit(TB_SEARCH_OPTIMUM), TB_OPTIMUM_NODES);
    tb_treesim_close(problem);
    problem = thesis_problem(8, 10, true, 1);
    const struct tb_search_wish few = {.evaluations = 7};
    assert_int_equal(tb_search(problem, TB_SEARCH_OPTIMUM, &few, &result), TB_OK);
    assert_false(result.complete);
    assert_true(result.evaluations <= 8);
    tb_forest_close(result.forest);
    assert_int_equal(tb_search(problem, TB_SEARCH_OPTIMUM, &no_wish, &result), TB_OK);
    assert_true(result.complete);
    tb_forest_close(result.forest);
    tb_treesim_close(problem);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(optimum_is_the_best_of_all), cmocka_unit_test(known_bounds),
                                       cmocka_unit_test(limits)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
