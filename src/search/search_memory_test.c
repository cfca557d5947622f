/* Searchers, problems and texts where memory fails: at any allocation they say so, or do without it. */
#include "base/failing_memory_test.h"
#include "search/search_test.h"
#include "search/search_text.h"
#include "search/treesim_bound.h"

static int row_rate(struct tb_problem *problem, const struct tb_forest *forest, uint64_t *time)
{
    *time = 1000000 / forest->trees - (forest->piece > 0 ? 1000 : 0) + forest->parents[forest->nodes - 1];
    return TB_OK;
}

static uint32_t row_wires(const struct tb_problem *problem, uint32_t from, uint32_t to, uint64_t bytes,
                          struct tb_problem_wire *wires, uint64_t *latency)
{
    wires[0] = (struct tb_problem_wire){from, bytes};
    wires[1] = (struct tb_problem_wire){problem->nodes + to, bytes};
    *latency = row_cost(problem, from, to);
    return 2;
}

/* Everything that has to do with one problem of TreeSim. */
static int problem_run(const struct tb_treesim_source *source, enum tb_searcher searcher)
{
    const struct tb_search_wish wish = {.seed = 1, .evaluations = 20};
    struct tb_search_result result = {.forest = NULL};
    struct tb_problem *problem;
    uint64_t bound;
    int error = tb_treesim_open(&problem, source);
    if (error == TB_OK)
        error = tb_treesim_bound(problem, &bound);
    if (error == TB_OK)
        error = tb_search(problem, searcher, &wish, &result);
    assert_true((result.forest != NULL) == (error == TB_OK));
    tb_forest_close(result.forest);
    tb_treesim_close(problem);
    return error;
}

static void treesim_problems(void **state)
{
    static const uint32_t sizes[] = {6, 80};
    for (uint32_t i = 0; i < 2; i++)
        for (uint32_t k = 0; k < TB_SEARCH_COUNT; k++) {
            struct tb_thesis_grid grid;
            if (sizes[i] > tb_searcher_limit((enum tb_searcher)k))
                continue;
            assert_int_equal(tb_thesis_grid_draw(&grid, 8, sizes[i], i == 0, 4), TB_OK);
            const struct tb_treesim_source source = tb_thesis_grid_source(&grid, 1000);
            uint32_t failed = 0;
            for (uint32_t which = 1, rest = 0; rest == 0; which++) {
                countdown = which;
                int error = problem_run(&source, (enum tb_searcher)k);
                rest = countdown;
                countdown = 0;
                assert_true(error == TB_OK || (rest == 0 && error == TB_ERR_MEMORY));
                failed += error != TB_OK;
            }
            assert_true(failed > 5);
            tb_thesis_grid_close(&grid);
        }
}

/* Pieces and several trees, with wires that are known and without. */
static void forests(void **state)
{
    static const uint32_t clusters[5] = {0, 0, 1, 1, 1};
    struct tb_problem problem = row_problem(5, clusters, 2, row_rate);
    const struct tb_search_wish wish = {.seed = 1, .evaluations = 60};
    for (int known = 0; known < 2; known++) {
        problem.wires = known == 0 ? NULL : row_wires;
        for (uint32_t which = 1, rest = 0; rest == 0; which++) {
            struct tb_search_result result;
            countdown = which;
            int error = tb_search(&problem, TB_SEARCH_OWN, &wish, &result);
            rest = countdown;
            countdown = 0;
            assert_int_equal(error, rest == 0 ? TB_ERR_MEMORY : TB_OK);
            assert_true(rest == 0 ? result.forest == NULL : result.forest->trees > 1);
            tb_forest_close(result.forest);
        }
    }
}

static int texts_run(void)
{
    struct tb_matrix matrix;
    struct tb_forest *forest = NULL;
    struct tb_thesis_grid grid = {0};
    int error = tb_matrix_parse(&matrix, "- 1 2\n1 5 3\n2 3 -\nclusters: 0 1 1 2\n", "matrix");
    if (error == TB_OK)
        error = tb_schedule_parse(&forest, "0: 3 1\n3: 2\n", "schedule", matrix.nodes);
    if (error == TB_OK)
        error = tb_thesis_grid_draw(&grid, 4, 7, true, 1);
    tb_thesis_grid_close(&grid);
    tb_forest_close(forest);
    tb_matrix_close(&matrix);
    return error;
}

static void texts(void **state)
{
    for (uint32_t which = 1, rest = 0; rest == 0; which++) {
        countdown = which;
        int error = texts_run();
        rest = countdown;
        countdown = 0;
        assert_int_equal(error, rest == 0 ? TB_ERR_MEMORY : TB_OK);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(treesim_problems), cmocka_unit_test(forests),
                                       cmocka_unit_test(texts)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
