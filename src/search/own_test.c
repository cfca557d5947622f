/* Our own search: as good as it must be, never worse than LPBF, the same for a seed. */
#include "search/own.h"

#include "search/search_test.h"
#include "search/treesim_bound.h"

static void assert_at_most(uint64_t time, uint64_t other, double factor)
{
    if ((double)time > (double)other * factor)
        fail_msg("%llu is more than %g times %llu", (unsigned long long)time, factor, (unsigned long long)other);
}

/* The thesis's experiment in small: 8 nodes of each kind of grid; with 40,000 evaluations, which take less than 50 ms.
 */
static void near_the_optimum(void **state)
{
    double sum = 0;
    uint32_t count = 0;
    for (uint32_t clusters = 2; clusters <= 32; clusters *= 2)
        for (uint64_t seed = 1; seed <= 8; seed++) {
            struct tb_problem *problem = thesis_problem(clusters, 8, seed % 2 == 0, seed);
            uint64_t best = search_time(problem, TB_SEARCH_OPTIMUM, 0);
            uint64_t own = search_time(problem, TB_SEARCH_OWN, 40000);
            assert_true(own >= best);
            assert_at_most(own, best, 1.05);
            assert_at_most(own, search_time(problem, TB_SEARCH_LPBF, 0), 1);
            sum += (double)own / (double)best;
            count++;
            tb_treesim_close(problem);
        }
    assert_true(sum / count <= 1.01);
}

/* All sizes, and budgets down to a single evaluation. */
static void never_worse_than_lpbf(void **state)
{
    static const uint32_t sizes[] = {1, 2, 3, 7, 64, 500};
    static const uint64_t budgets[] = {1, 3, 300};
    for (uint32_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        for (uint32_t k = 0; k < 3; k++) {
            struct tb_problem *problem = thesis_problem(8, sizes[i], k % 2 == 0, 5);
            assert_at_most(search_time(problem, TB_SEARCH_OWN, budgets[k]), search_time(problem, TB_SEARCH_LPBF, 0), 1);
            tb_treesim_close(problem);
        }
}

static bool stop_at_100(void *context, uint64_t evaluations, uint64_t best)
{
    uint32_t *calls = context;
    ++*calls;
    assert_true(best != UINT64_MAX);
    return evaluations >= 100;
}

static void same_for_a_seed(void **state)
{
    struct tb_problem *problem = thesis_problem(16, 20, false, 9);
    struct tb_search_result a, b;
    struct tb_search_wish wish = {.seed = 77, .evaluations = 3000};
    assert_int_equal(tb_search(problem, TB_SEARCH_OWN, &wish, &a), TB_OK);
    assert_int_equal(tb_search(problem, TB_SEARCH_OWN, &wish, &b), TB_OK);
    assert_memory_equal(a.forest->parents, b.forest->parents, 20 * sizeof(uint32_t));
    assert_memory_equal(a.forest->children, b.forest->children, 19 * sizeof(uint32_t));
    assert_int_equal(a.evaluations, 3000);
    assert_false(a.complete);
    tb_forest_close(a.forest);
    tb_forest_close(b.forest);
    /* Whoever is told of progress can end it; so can the clock. */
    uint32_t calls = 0;
    wish = (struct tb_search_wish){.progress = stop_at_100, .context = &calls};
    assert_int_equal(tb_search(problem, TB_SEARCH_OWN, &wish, &a), TB_OK);
    assert_true(calls > 1 && a.evaluations < 200);
    tb_forest_close(a.forest);
    uint64_t start = tb_clock_now_real();
    wish = (struct tb_search_wish){.time = 20000000};
    assert_int_equal(tb_search(problem, TB_SEARCH_OWN, &wish, &a), TB_OK);
    assert_true(a.evaluations > 0 && tb_clock_now_real() - start < 10000000000u);
    tb_forest_close(a.forest);
    tb_treesim_close(problem);
}

/* More nodes than are moved one by one: 40,000 in 400 clusters at 20 sites, and without sites. */
static void many_nodes(void **state)
{
    static uint32_t clusters[40000], sites[400];
    static uint64_t rates[20 * 20], inside[400], all[400 * 400];
    for (uint32_t i = 0; i < 40000; i++)
        clusters[i] = i % 400;
    for (uint32_t i = 0; i < 400; i++) {
        sites[i] = i % 20;
        inside[i] = 125000000;
        rates[i] = 1250000 * (i / 20 == i % 20 ? 500u : 1 + i * 7919 % 97);
    }
    for (uint32_t i = 0; i < 400 * 400; i++)
        all[i] = 1250000 * (i / 400 == i % 400 ? 100u : 1 + i * 7919u % 97);
    struct tb_treesim_source source = {.nodes = 40000,
                                       .root = 39999,
                                       .cluster_count = 400,
                                       .clusters = clusters,
                                       .rates = rates,
                                       .operation = TB_OPERATION_BCAST,
                                       .bytes = 1 << 20,
                                       .site_count = 20,
                                       .sites = sites,
                                       .inside_rates = inside};
    struct tb_problem *problem = problem_open(&source);
    assert_at_most(search_time(problem, TB_SEARCH_OWN, 0), search_time(problem, TB_SEARCH_LPBF, 0), 1);
    tb_treesim_close(problem);
    source.site_count = 0;
    source.sites = NULL;
    source.rates = all;
    problem = problem_open(&source);
    assert_at_most(search_time(problem, TB_SEARCH_OWN, 0), search_time(problem, TB_SEARCH_LPBF, 0), 0.999);
    tb_treesim_close(problem);
}

/* Messages in pieces flow along all edges of a row at once; two trees halve what goes along each. */
static int row_rate(struct tb_problem *problem, const struct tb_forest *forest, uint64_t *time)
{
    uint64_t piece = forest->piece == 0 ? problem->bytes : forest->piece, deepest = 0;
    TB_ASSERT(piece > 0 && forest->trees > 0);
    for (uint32_t t = 0; t < forest->trees; t++)
        for (uint32_t i = 0; i < forest->nodes; i++) {
            uint64_t depth = 0;
            const uint32_t *parents = forest->parents + (size_t)t * forest->nodes;
            for (uint32_t at = i; at != forest->root; at = parents[at])
                depth += row_cost(problem, at, parents[at]);
            deepest = depth > deepest ? depth : deepest;
        }
    /* As deep as it is, for the first piece; all others behind it; something for each piece. */
    *time = deepest * piece / problem->bytes + 20000 / forest->trees + 100 * (problem->bytes / piece);
    return TB_OK;
}

static void pieces_and_trees(void **state)
{
    static const uint32_t clusters[7];
    struct tb_problem problem = row_problem(7, clusters, 1, row_rate);
    problem.root = 3;
    const struct tb_search_wish wish = {.evaluations = 500};
    struct tb_search_result result;
    assert_int_equal(tb_search(&problem, TB_SEARCH_OWN, &wish, &result), TB_OK);
    assert_true(result.forest->piece > 0 && result.forest->piece < problem.bytes);
    assert_true(result.forest->trees > 1);
    assert_true(result.evaluations <= 500);
    tb_forest_close(result.forest);
    problem.whole = true;
    assert_int_equal(tb_search(&problem, TB_SEARCH_OWN, &wish, &result), TB_OK);
    assert_true(result.forest->piece == 0 && result.forest->trees == 1);
    tb_forest_close(result.forest);
    /* All trees, where nothing else is known. */
    assert_int_equal(tb_search(&problem, TB_SEARCH_OPTIMUM, &(struct tb_search_wish){0}, &result), TB_OK);
    assert_true(result.complete && result.time == 3000 + 20000 + 100);
    tb_forest_close(result.forest);
    static const uint32_t more[10];
    problem.nodes = 10; /* too many for all of them: it ends, and says that it is not all */
    problem.clusters = more;
    assert_int_equal(tb_search(&problem, TB_SEARCH_OPTIMUM, &(struct tb_search_wish){.evaluations = 20000}, &result),
                     TB_OK);
    assert_false(result.complete);
    tb_forest_close(result.forest);
}

/* Where nothing ends within what can be counted, every searcher says so; and where few trees do, these are found. */
static int endless_rate(struct tb_problem *problem, const struct tb_forest *forest, uint64_t *time)
{
    const uint32_t *ending = problem->context; /* what this node's parent must be; NULL: nothing ends */
    *time = ending != NULL && forest->parents[6] == *ending ? 5000 : UINT64_MAX;
    return TB_OK;
}

static void endless_trees(void **state)
{
    static const uint32_t clusters[7], parent = 5;
    struct tb_problem problem = row_problem(7, clusters, 1, endless_rate);
    struct tb_search_result result;
    for (uint32_t i = 0; i < TB_SEARCH_COUNT; i++) {
        const struct tb_search_wish wish = {.seed = i, .evaluations = 300};
        assert_int_equal(tb_search(&problem, (enum tb_searcher)i, &wish, &result), TB_ERR_LIMIT);
        assert_null(result.forest);
    }
    problem.context = (void *)(uintptr_t)&parent;
    assert_int_equal(search_time(&problem, TB_SEARCH_OWN, 500), 5000);
    assert_int_equal(search_time(&problem, TB_SEARCH_GADT, 0), 5000);
}

/* Budgets are kept, with pieces and several trees as well, and from the first evaluation on. */
static void budgets_are_kept(void **state)
{
    static const uint32_t clusters[9];
    struct tb_problem row = row_problem(9, clusters, 1, row_rate);
    row.root = 4;
    struct tb_problem *matrix = thesis_problem(4, 9, true, 3), *problems[] = {&row, matrix};
    for (uint32_t i = 0; i < 2; i++)
        for (uint64_t most = 1; most < 400; most += most < 20 ? 1 : 37)
            for (uint32_t k = 0; k < TB_SEARCH_COUNT; k++) {
                const struct tb_search_wish wish = {.seed = most, .evaluations = most};
                struct tb_search_result result;
                assert_int_equal(tb_search(problems[i], (enum tb_searcher)k, &wish, &result), TB_OK);
                /* One more, where none of those was a tree, and of the optimum the state in which it stops. */
                assert_true(result.evaluations <= most + (k == TB_SEARCH_OWN ? 0 : 1));
                tb_forest_close(result.forest);
            }
    tb_treesim_close(matrix);
}

/* Rating pieces takes until its deadline; rating whole messages, the first time, longer than there is time. */
struct slow {
    uint32_t ratings, pieces;
};

static int slow_rate(struct tb_problem *problem, const struct tb_forest *forest, uint64_t *time)
{
    struct slow *slow = problem->context;
    const uint64_t second = 1000000000u, now = tb_clock_now_real();
    bool first = slow->ratings++ == 0;
    assert_true((problem->deadline == 0) == first);
    assert_true(first || problem->deadline < now + 90 * second); /* the wish, or twice the first */
    slow->pieces += forest->piece > 0;
    uint64_t until = first ? now + 20000000 : forest->piece > 0 ? problem->deadline : now;
    while (tb_clock_now_real() < until)
        continue;
    *time = forest->piece > 0 ? TB_COST_NEVER : 5000 + forest->parents[6];
    return TB_OK;
}

static struct slow slow_search(uint64_t time)
{
    static const uint32_t clusters[7];
    struct slow slow = {.ratings = 0};
    struct tb_problem problem = row_problem(7, clusters, 1, slow_rate);
    struct tb_search_result result;
    problem.context = &slow;
    problem.bytes = 1ull << 40;
    uint64_t start = tb_clock_now_real();
    assert_int_equal(tb_search(&problem, TB_SEARCH_OWN, &(struct tb_search_wish){.time = time}, &result), TB_OK);
    assert_true(tb_clock_now_real() - start < time + 30000000000u);
    /* What was rated whole remains. */
    assert_true(result.forest->piece == 0 && result.time < TB_COST_NEVER && !result.complete);
    assert_int_equal(problem.deadline, 0);
    tb_forest_close(result.forest);
    return slow;
}

static void ratings_end_in_time(void **state)
{
    struct slow slow = slow_search(1000000);
    assert_int_equal(slow.ratings, 1);
    /* On a busy machine the time may be over before pieces are tried. */
    for (uint64_t time = 100000000; time < 30000000000u && slow.pieces == 0; time *= 4)
        slow = slow_search(time);
    assert_true(slow.pieces > 0 && slow.pieces < 20 && slow.ratings > slow.pieces);
}

/* Never worse than LPBF, whatever the operation and the model, with every tree being one. */
static void operations_and_models(void **state)
{
    static const enum tb_operation operations[] = {TB_OPERATION_BCAST,   TB_OPERATION_REDUCE, TB_OPERATION_ALLREDUCE,
                                                   TB_OPERATION_BARRIER, TB_OPERATION_GATHER, TB_OPERATION_SCATTER};
    for (uint32_t i = 0; i < 24; i++) {
        struct tb_thesis_grid grid;
        uint64_t latencies[32 * 32];
        assert_int_equal(tb_thesis_grid_draw(&grid, 16, 3 + 11 * (i % 7), i % 2 == 0, i), TB_OK);
        for (uint32_t k = 0; k < grid.cluster_count * grid.cluster_count; k++)
            latencies[k] = 1000000 * (1 + k * 7919u % 10000);
        struct tb_treesim_source source = tb_thesis_grid_source(&grid, i % 5 == 4 ? 0 : 100000);
        source.operation = operations[i % 6];
        source.root = i % grid.nodes;
        source.latencies = i < 12 ? NULL : latencies;
        source.sender_free = i >= 18;
        struct tb_problem *problem = problem_open(&source);
        uint64_t lpbf = search_time(problem, TB_SEARCH_LPBF, 0), bound;
        assert_int_equal(tb_treesim_bound(problem, &bound), TB_OK);
        for (uint64_t budget = 1; budget <= 2000; budget = budget == 1 ? 40 : budget * 50) {
            uint64_t own = search_time(problem, TB_SEARCH_OWN, budget);
            assert_at_most(own, lpbf, 1);
            assert_at_most(bound, own, 1);
        }
        tb_treesim_close(problem);
        tb_thesis_grid_close(&grid);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(near_the_optimum),   cmocka_unit_test(never_worse_than_lpbf),
                                       cmocka_unit_test(same_for_a_seed),    cmocka_unit_test(many_nodes),
                                       cmocka_unit_test(pieces_and_trees),   cmocka_unit_test(endless_trees),
                                       cmocka_unit_test(budgets_are_kept),   cmocka_unit_test(operations_and_models),
                                       cmocka_unit_test(ratings_end_in_time)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
