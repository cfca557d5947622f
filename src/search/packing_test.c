/* Trees that are packed into wires: as many as links ask for, with the shares that these have, and trees in any case.
 */
#include "search/packing.h"

#include "base/failing_memory_test.h"
#include "search/search_test.h"

#define BYTES    1000000u
#define NODES    24u
#define CLUSTERS 6u

/* Picoseconds of a byte out of a node, into it, and from cluster to cluster; and latencies there. */
struct mesh {
    uint32_t clusters[NODES];
    uint64_t port, links[CLUSTERS][CLUSTERS], latencies[CLUSTERS][CLUSTERS];
};

static uint32_t mesh_wires(const struct tb_problem *problem, uint32_t from, uint32_t to, uint64_t bytes,
                           struct tb_problem_wire *wires, uint64_t *latency)
{
    const struct mesh *m = problem->context;
    uint32_t a = m->clusters[from], b = m->clusters[to];
    *latency = a == b ? 1000 : m->latencies[a][b];
    wires[0] = (struct tb_problem_wire){from, m->port * bytes};
    wires[1] = (struct tb_problem_wire){NODES + to, m->port * bytes};
    wires[2] = (struct tb_problem_wire){2 * NODES + a * CLUSTERS + b, m->links[a][b] * bytes};
    return a == b ? 2 : 3;
}

static struct tb_problem mesh_problem(struct mesh *m, uint32_t nodes, enum tb_operation operation)
{
    return (struct tb_problem){.nodes = nodes,
                               .cluster_count = CLUSTERS,
                               .clusters = m->clusters,
                               .operation = operation,
                               .bytes = BYTES,
                               .wires = mesh_wires,
                               .context = m};
}

static struct tb_packing *packed(const struct tb_problem *problem, uint64_t piece, bool turns, uint32_t trees)
{
    struct tb_packing *packing;
    assert_int_equal(tb_packing_open(&packing, problem, piece, turns, trees), TB_OK);
    assert_in_range(tb_packing_trees(packing), 1, trees);
    return packing;
}

/* As a forest, which is checked when it is made. */
static struct tb_forest *forest_of(const struct tb_problem *problem, const struct tb_packing *packing)
{
    struct tb_search_forest search;
    struct tb_forest *forest;
    assert_int_equal(tb_search_forest_open(&search, problem->nodes, problem->root, TB_FOREST_TREES), TB_OK);
    tb_packing_give(packing, &search);
    assert_int_equal(tb_search_forest_make(&search, &forest), TB_OK);
    assert_int_equal(forest->trees, tb_packing_trees(packing));
    tb_search_forest_close(&search);
    return forest;
}

static void assert_share(const struct tb_forest *f, uint32_t tree, double wanted)
{
    uint32_t all = 0;
    for (uint32_t t = 0; t < f->trees; t++)
        all += f->shares[t];
    double share = (double)f->shares[tree] / all;
    if (share < wanted - 0.02 || share > wanted + 0.02)
        fail_msg("tree %u has %.3f of the message, not %.3f", tree, share, wanted);
}

/* Three clusters of which the root's has a link to each other one, three times as fast to the second as to the third,
 * and these two a fast one: three parts in four go by way of the second, one by way of the third. */
static void shares_follow_links(void **state)
{
    static const enum tb_operation operations[] = {TB_OPERATION_BCAST, TB_OPERATION_REDUCE};
    struct mesh m = {.port = 1};
    for (uint32_t i = 0; i < 9; i++)
        m.clusters[i] = i / 3;
    for (int o = 0; o < 2; o++) {
        bool up = operations[o] == TB_OPERATION_REDUCE;
        for (uint32_t a = 0; a < 3; a++)
            for (uint32_t b = 0; b < 3; b++)
                m.links[a][b] = 30000; /* which nobody should use */
        m.links[up ? 1 : 0][up ? 0 : 1] = 1000;
        m.links[up ? 2 : 0][up ? 0 : 2] = 3000;
        m.links[1][2] = m.links[2][1] = 500;
        struct tb_problem problem = mesh_problem(&m, 9, operations[o]);
        struct tb_packing *packing = packed(&problem, 1000, true, 8);
        struct tb_forest *forest = forest_of(&problem, packing);
        assert_int_equal(forest->trees, 2);
        assert_int_equal(forest->piece, 1000);
        uint32_t first = forest->shares[0] > forest->shares[1] ? 0 : 1;
        assert_share(forest, first, 0.75);
        for (uint32_t t = 0; t < 2; t++) { /* from the root's cluster to the one of the tree, from there to the other */
            uint32_t near = t == first ? 1 : 2;
            for (uint32_t i = 3; i < 9; i++) {
                uint32_t from = m.clusters[forest->parents[t * 9 + i]];
                assert_true(from == m.clusters[i] || from == (m.clusters[i] == near ? 0 : near));
            }
        }
        /* 750,000 bytes at 1000 ps, and little else. */
        assert_in_range(tb_packing_time(packing), 750000000, 770000000);
        tb_packing_reduce(packing);
        assert_int_equal(tb_packing_trees(packing), 1);
        assert_in_range(tb_packing_time(packing), 1000000000, 1010000000);
        tb_forest_close(forest);
        tb_packing_close(packing);
    }
}

/* Where latencies count most, the root tells all others itself; where bytes do, one tells the next. */
static void long_messages_go_round(void **state)
{
    struct mesh m = {.port = 100};
    for (uint32_t i = 0; i < 6; i++)
        m.clusters[i] = i;
    for (uint32_t far = 0; far < 2; far++) {
        for (uint32_t a = 0; a < 6; a++)
            for (uint32_t b = 0; b < 6; b++) {
                m.links[a][b] = 1;
                m.latencies[a][b] = far == 1 ? 1000000000000 : 10;
            }
        struct tb_problem problem = mesh_problem(&m, 6, TB_OPERATION_BCAST);
        struct tb_packing *packing = packed(&problem, 1000, true, 1);
        struct tb_forest *forest = forest_of(&problem, packing);
        uint32_t children = forest->first[1] - forest->first[0];
        assert_int_equal(children, far == 1 ? 5 : 1);
        tb_forest_close(forest);
        tb_packing_close(packing);
    }
}

/* Whatever the wires are like, trees are trees, the same each time, with fewer and fewer of them, down to one. */
static void any_wires(void **state)
{
    static const enum tb_operation operations[] = {TB_OPERATION_BCAST, TB_OPERATION_REDUCE, TB_OPERATION_ALLREDUCE};
    struct tb_random random;
    tb_random_seed(&random, 11);
    for (uint32_t i = 0; i < 60; i++) {
        struct mesh m = {.port = tb_random_below(&random, 1000)};
        uint32_t nodes = 1 + (uint32_t)tb_random_below(&random, NODES);
        for (uint32_t k = 0; k < NODES; k++)
            m.clusters[k] = (uint32_t)tb_random_below(&random, CLUSTERS);
        for (uint32_t k = 0; k < CLUSTERS * CLUSTERS; k++) {
            m.links[k / CLUSTERS][k % CLUSTERS] = tb_random_below(&random, 1u << (1 + tb_random_below(&random, 20)));
            m.latencies[k / CLUSTERS][k % CLUSTERS] =
                i % 9 == 8 ? TB_COST_NEVER : tb_random_below(&random, 1ull << (1 + tb_random_below(&random, 40)));
        }
        struct tb_problem problem = mesh_problem(&m, nodes, operations[i % 3]);
        problem.root = (uint32_t)tb_random_below(&random, nodes);
        uint64_t piece = 1 + tb_random_below(&random, 2 * BYTES);
        struct tb_packing *packing = packed(&problem, piece, i % 2 == 0, 1 + i % TB_FOREST_TREES);
        struct tb_packing *again = packed(&problem, piece, i % 2 == 0, 1 + i % TB_FOREST_TREES);
        for (uint32_t left = tb_packing_trees(packing); left > 0; left = tb_packing_trees(packing)) {
            struct tb_forest *a = forest_of(&problem, packing), *b = forest_of(&problem, again);
            assert_true(a->trees == b->trees && tb_packing_time(packing) == tb_packing_time(again));
            assert_memory_equal(a->parents, b->parents, a->trees * (size_t)nodes * sizeof(uint32_t));
            assert_memory_equal(a->shares, b->shares, a->trees * sizeof(uint32_t));
            tb_forest_close(a);
            tb_forest_close(b);
            if (left == 1)
                break;
            tb_packing_reduce(packing);
            tb_packing_reduce(again);
            assert_true(tb_packing_trees(packing) < left);
        }
        tb_packing_close(packing);
        tb_packing_close(again);
    }
}

static void no_memory_is_told(void **state)
{
    struct mesh m = {.port = 10};
    struct tb_problem problem = mesh_problem(&m, 12, TB_OPERATION_BCAST);
    uint32_t failed = 0;
    for (uint32_t which = 1, rest = 0; rest == 0; which++) {
        struct tb_packing *packing;
        countdown = which;
        int error = tb_packing_open(&packing, &problem, 1000, false, 8);
        rest = countdown;
        countdown = 0;
        assert_int_equal(error, rest == 0 ? TB_ERR_MEMORY : TB_OK);
        failed += error != TB_OK;
        tb_packing_close(packing);
    }
    assert_true(failed >= 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(shares_follow_links), cmocka_unit_test(long_messages_go_round),
                                       cmocka_unit_test(any_wires), cmocka_unit_test(no_memory_is_told)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
