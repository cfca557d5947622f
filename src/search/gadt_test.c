/* GADT: strings become trees as the thesis says, broken ones are punished, children are made of their parents, and it
 * finds good trees. */
#include "search/gadt.h"

#include <stdio.h>

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

/* ---- what becomes of strings ---------------------------------------------------------------------------------------
 */

/* All strings are worth the same, so that nobody leaves the first 90 places. `now` is the population as it is. */
#define GENES 100u
struct watch {
    uint32_t calls, now[100][GENES], next[10][GENES];
    uint32_t drawn, mutated, copied, mixed, inside; /* genes and strings that were made how */
};

static bool is_known(const struct watch *w, uint32_t gene, uint32_t value)
{
    for (uint32_t i = 0; i < 100; i++)
        if (w->now[i][gene] == value)
            return true;
    return false;
}

/* A child without a new gene is somebody, or somebody with one stretch of somebody else. */
static void child_explain(struct watch *w, const uint32_t *genes)
{
    for (uint32_t i = 0; i < 100; i++)
        if (memcmp(w->now[i], genes, sizeof w->now[i]) == 0) {
            w->copied++;
            return;
        }
    for (uint32_t a = 0; a < 100; a++) {
        uint32_t from = 0, end = GENES;
        while (from < GENES && w->now[a][from] == genes[from])
            from++;
        while (end > from && w->now[a][end - 1] == genes[end - 1])
            end--;
        for (uint32_t b = 0; b < 100; b++)
            if (memcmp(w->now[b] + from, genes + from, (end - from) * sizeof *genes) == 0) {
                w->mixed++;
                w->inside += from > 0 && end < GENES;
                return;
            }
    }
    fail_msg("string %u comes from nobody", w->calls);
}

static int watch_value(void *context, const uint32_t *genes, uint64_t *value)
{
    struct watch *w = context;
    uint32_t fresh = 0, call = w->calls++, child = (call - 100) % 10;
    *value = 7;
    if (call < 100) {
        memcpy(w->now[call], genes, sizeof w->now[call]);
        return TB_OK;
    }
    for (uint32_t i = 0; i < GENES; i++)
        fresh += !is_known(w, i, genes[i]);
    w->drawn += fresh;
    w->mutated += fresh > 0;
    if (fresh == 0)
        child_explain(w, genes);
    memcpy(w->next[child], genes, sizeof w->next[child]);
    for (uint32_t i = 0; child == 9 && i < 10; i++) /* the worst are the last ones */
        memcpy(w->now[99 - i], w->next[i], sizeof w->next[i]);
    return TB_OK;
}

/* 85 of 100 children are crossed at two points; of the genes of the others one in a hundred is drawn anew. */
static void children_are_crossed_or_mutated(void **state)
{
    static struct watch watch;
    uint32_t limits[GENES];
    for (uint32_t i = 0; i < GENES; i++)
        limits[i] = 1000000000;
    const struct tb_genetic genetic = {GENES, limits, 1, watch_value, never_over, &watch};
    assert_int_equal(tb_genetic_search(&genetic), TB_OK);
    assert_int_equal(watch.calls, 100 + 300 * 10);
    /* 3000 * 0.15 * 100 * 0.01 genes, in 0.15 * (1 - 0.99 ** 100) of the children */
    assert_in_range(watch.drawn, 400, 500);
    assert_in_range(watch.mutated, 250, 320);
    /* Of 0.85 few have the same parent twice, or no stretch; most have one that neither begins nor ends the string. */
    assert_in_range(watch.mixed, 3000 * 81 / 100, 3000 * 86 / 100);
    assert_true(watch.inside > watch.mixed * 9 / 10);
    assert_int_equal(watch.mutated + watch.mixed + watch.copied, 3000);
}

static int falling_value(void *context, const uint32_t *genes, uint64_t *value)
{
    uint64_t *calls = context;
    *value = UINT32_MAX - ++*calls;
    return TB_OK;
}

static void iterations_end(void **state)
{
    static const uint32_t limits[] = {2};
    uint64_t calls = 0;
    const struct tb_genetic genetic = {1, limits, 1, falling_value, never_over, &calls};
    assert_int_equal(tb_genetic_search(&genetic), TB_OK);
    assert_int_equal(calls, 100 + 50000 * 10);
}

static const struct tb_search_wish no_wish;

/* So many nodes, each of which takes a second to any other. */
static struct tb_problem *alike_problem(uint32_t nodes, uint32_t root)
{
    uint64_t rates[64];
    for (uint32_t i = 0; i < 64; i++)
        rates[i] = 1;
    const struct tb_treesim_source source = {.nodes = nodes,
                                             .root = root,
                                             .cluster_count = nodes,
                                             .rates = rates,
                                             .operation = TB_OPERATION_BCAST,
                                             .bytes = 1};
    return problem_open(&source);
}

/* The tree of a string: "0: 7 1 4; 1: 2; ...", nodes that serve others in their order. */
static void string_tree(uint32_t nodes, uint32_t root, const uint32_t *genes, uint64_t time, const char *expected)
{
    struct tb_problem *problem = alike_problem(nodes, root);
    struct tb_search_run run;
    uint64_t value;
    char text[256] = "";
    assert_int_equal(tb_search_run_open(&run, problem, &no_wish, 0), TB_OK);
    assert_int_equal(tb_gadt_value(&run, genes, &value), TB_OK);
    assert_true(value == time * SECOND && run.best_time == value);
    for (uint32_t i = 0; i < nodes; i++) {
        size_t at = strlen(text);
        if (run.best.child[i] != TB_NO_NODE)
            at += (size_t)snprintf(text + at, sizeof text - at, "%s%u:", at > 0 ? "; " : "", i);
        for (uint32_t k = run.best.child[i]; k != TB_NO_NODE; k = run.best.next[k])
            at += (size_t)snprintf(text + at, sizeof text - at, " %u", k);
    }
    assert_string_equal(text, expected);
    tb_search_run_close(&run);
    tb_treesim_close(problem);
}

/* Figures 17 to 19: the parents, and priorities of which some are equal: there the lower node is first. What the
 * priorities of the thesis's figure are its text does not tell. */
static void strings_become_trees(void **state)
{
    static const uint32_t figure_18[] = {0, 1, 7, 0, 2, 2, 0, 500, 0, 9, 500, 1000000, 1000000, 499};
    string_tree(8, 0, figure_18, 5, "0: 7 1 4; 1: 2; 2: 5 6; 7: 3");
    /* The root is another one: of all with the same priority still the lower node, not that behind the root. */
    static const uint32_t all[] = {0, 0, 0, 0, 7, 7, 7, 7}, low_last[] = {0, 0, 0, 0, 8, 7, 7, 7};
    string_tree(5, 3, all, 4, "3: 0 1 2 4");
    string_tree(5, 3, low_last, 4, "3: 1 2 4 0");
    string_tree(5, 4, all, 4, "4: 0 1 2 3");
    string_tree(5, 0, all, 4, "0: 1 2 3 4");
    static const uint32_t chain[] = {2, 0, 2, 2, 0, 5, 5, 4}; /* points of root 3: 3 0 1 2 4 */
    string_tree(5, 3, chain, 4, "1: 0 4 2; 3: 1");
}

/* A broken tree is worth 1000 times the longest possible time, and once more that for each lost node and each loop. */
static void broken_strings_are_punished(void **state)
{
    static const struct {
        uint32_t genes[8];
        uint64_t terms; /* lost nodes and loops */
    } some[] = {{{1, 0, 0, 0}, 1 + 1},
                {{2, 1, 0, 0}, 2 + 1},
                {{2, 1, 4, 3}, 4 + 2},
                {{1, 1, 2, 3}, 4 + 1},
                {{1, 2, 3, 4}, 4 + 4}};
    for (uint32_t root = 0; root < 5; root += 2) {
        struct tb_problem *problem = alike_problem(5, root);
        struct tb_search_run run;
        assert_int_equal(tb_search_run_open(&run, problem, &no_wish, 0), TB_OK);
        for (uint32_t i = 0; i < sizeof some / sizeof some[0]; i++) {
            uint64_t value;
            assert_int_equal(tb_gadt_value(&run, some[i].genes, &value), TB_OK);
            assert_true(value == (1000 + some[i].terms) * 4 * SECOND);
        }
        assert_true(run.best_time == UINT64_MAX && run.evaluations == sizeof some / sizeof some[0]);
        tb_search_run_close(&run);
        tb_treesim_close(problem);
    }
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
    const struct CMUnitTest tests[] = {cmocka_unit_test(genes_get_better),
                                       cmocka_unit_test(children_are_crossed_or_mutated),
                                       cmocka_unit_test(iterations_end),
                                       cmocka_unit_test(strings_become_trees),
                                       cmocka_unit_test(broken_strings_are_punished),
                                       cmocka_unit_test(odd_sizes),
                                       cmocka_unit_test(budgets)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
