/* GADT: strings become trees as the thesis says, broken ones are passed over, and it finds good ones. */
#include "search/gadt.h"

#include "search/genetic.h"
#include "search/search_test.h"

struct sum {
    uint64_t calls, least;
};

static int sum_value(void *context, const uint32_t *genes, uint64_t *value)
{
    struct sum *sum = context;
    *value = 0;
    for (uint32_t i = 0; i < 10; i++) {
        assert_true(genes[i] < 10 * (i + 1));
        *value += genes[i];
    }
    sum->calls++;
    sum->least = *value < sum->least ? *value : sum->least;
    return sum->calls > 1000000 ? tb_error(TB_ERR_LIMIT, "too many") : TB_OK;
}

static bool never_over(void *context)
{
    return false;
}

static bool over_at_142(void *context)
{
    const struct sum *sum = context;
    return sum->calls >= 142;
}

static void genes_get_better(void **state)
{
    static const uint32_t limits[] = {10, 20, 30, 40, 50, 60, 70, 80, 90, 100};
    struct sum sum = {0, UINT64_MAX}, again = {0, UINT64_MAX};
    struct tb_genetic genetic = {10, limits, 4, sum_value, never_over, &sum};
    assert_int_equal(tb_genetic_search(&genetic), TB_OK);
    assert_true(sum.least < 60); /* 270 on average */
    assert_true(sum.calls >= 100 + 300 * 10 && sum.calls <= 100 + 50000 * 10);
    genetic.context = &again;
    assert_int_equal(tb_genetic_search(&genetic), TB_OK);
    assert_true(again.calls == sum.calls && again.least == sum.least);
    genetic.over = over_at_142;
    for (uint64_t before = 0; before <= 142; before += 71) { /* among children, and before all of the first are there */
        again.calls = before;
        assert_int_equal(tb_genetic_search(&genetic), TB_OK);
        assert_int_equal(again.calls, 142);
    }
    genetic.over = never_over;
    again.calls = 1000000;
    assert_int_equal(tb_genetic_search(&genetic), TB_ERR_LIMIT);
}

static void odd_sizes(void **state)
{
    static const uint32_t sizes[] = {1, 2, 3, 7};
    for (uint32_t i = 0; i < 4; i++)
        for (uint64_t seed = 1; seed < 4; seed++) {
            struct tb_problem *problem = thesis_problem(4, sizes[i], seed % 2 == 0, seed);
            uint64_t best = search_time(problem, TB_SEARCH_OPTIMUM, 0);
            for (uint32_t k = 0; k < 2; k++) {
                enum tb_searcher searcher = k == 0 ? TB_SEARCH_GADT : TB_SEARCH_GADT_CLUSTERS;
                uint64_t time = search_time(problem, searcher, 0);
                assert_true(time >= best && time <= 2 * best);
                assert_true(time == search_time(problem, searcher, 0));
            }
            if (sizes[i] <= 3)
                assert_true(search_time(problem, TB_SEARCH_GADT, 0) == best);
            tb_treesim_close(problem);
        }
}

/* Budgets end it, with a tree in any case: so many nodes that no string of the first ones is a tree. */
static void budgets(void **state)
{
    struct tb_problem *problem = thesis_problem(8, 400, true, 2);
    uint64_t gadt = search_time(problem, TB_SEARCH_GADT, 50);
    assert_true(gadt > 0);
    /* Clusters as points are a small problem: not much worse than LPBF, and mostly better. */
    assert_true(search_time(problem, TB_SEARCH_GADT_CLUSTERS, 0) <= search_time(problem, TB_SEARCH_LPBF, 0) * 11 / 10);
    tb_treesim_close(problem);
    problem = thesis_problem(32, TB_GADT_NODES + 1, true, 2);
    struct tb_search_result result;
    assert_int_equal(tb_search(problem, TB_SEARCH_GADT, &(struct tb_search_wish){0}, &result), TB_ERR_LIMIT);
    tb_treesim_close(problem);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(genes_get_better), cmocka_unit_test(odd_sizes),
                                       cmocka_unit_test(budgets)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
