/* For tests of searchers: problems and forests in few words. */
#ifndef TB_SEARCH_SEARCH_TEST_H
#define TB_SEARCH_SEARCH_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "search/thesis_grid.h"
#include "search/treesim.h"

#define SECOND 1000000000000u /* picoseconds */

static inline struct tb_problem *problem_open(const struct tb_treesim_source *source)
{
    struct tb_problem *problem;
    assert_int_equal(tb_treesim_open(&problem, source), TB_OK);
    return problem;
}

/* A broadcast of 1 MiB on a grid of the thesis. */
static inline struct tb_problem *thesis_problem(uint32_t clusters, uint32_t nodes, bool symmetric, uint64_t seed)
{
    struct tb_thesis_grid grid;
    assert_int_equal(tb_thesis_grid_draw(&grid, clusters, nodes, symmetric, seed), TB_OK);
    const struct tb_treesim_source source = tb_thesis_grid_source(&grid, 1 << 20);
    struct tb_problem *problem = problem_open(&source);
    tb_thesis_grid_close(&grid);
    return problem;
}

/* The time that a searcher finds; the forest is what it says. */
static inline uint64_t search_time(struct tb_problem *problem, enum tb_searcher searcher, uint64_t evaluations)
{
    const struct tb_search_wish wish = {.seed = 1, .evaluations = evaluations};
    struct tb_search_result result;
    uint64_t time;
    assert_int_equal(tb_search(problem, searcher, &wish, &result), TB_OK);
    assert_int_equal(problem->rate(problem, result.forest, &time), TB_OK);
    assert_true(time == result.time);
    assert_int_equal(result.forest->nodes, problem->nodes);
    assert_int_equal(result.forest->root, problem->root);
    tb_forest_close(result.forest);
    return time;
}

/* A problem of which only the time of a forest is known: nodes in a row, an edge as long as it is far. */
static inline uint64_t row_cost(const struct tb_problem *problem, uint32_t from, uint32_t to)
{
    return 1000 * (uint64_t)(from < to ? to - from : from - to);
}

static inline struct tb_problem row_problem(uint32_t nodes, const uint32_t *clusters, uint32_t cluster_count,
                                            int (*rate)(struct tb_problem *problem, const struct tb_forest *forest,
                                                        uint64_t *time))
{
    return (struct tb_problem){.nodes = nodes,
                               .cluster_count = cluster_count,
                               .clusters = clusters,
                               .operation = TB_OPERATION_BCAST,
                               .bytes = 1 << 20,
                               .arrive = row_cost,
                               .send = row_cost,
                               .rate = rate};
}

#endif
