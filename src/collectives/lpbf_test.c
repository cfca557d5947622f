/* LPBF on small grids whose best schedule is plain to see, and on random ones. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "base/base.h"
#include "collectives/lpbf.h"

static void even(struct tb_lpbf *l, uint32_t count, uint64_t latency, uint64_t gap)
{
    *l = (struct tb_lpbf){.count = count};
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t k = 0; k < count; k++) {
            l->arrive[i][k] = latency + gap;
            l->send[i][k] = gap;
        }
}

static void trees_follow_costs(void **state)
{
    struct tb_lpbf l;
    uint32_t children[TB_LPBF_PARTS];
    even(&l, 4, 1000, 1); /* where latency rules all are told by the root */
    tb_lpbf_find(&l);
    assert_int_equal(tb_lpbf_children(&l, 0, children), 3);
    even(&l, 4, 0, 10); /* where it is nothing, the tree is binomial */
    tb_lpbf_find(&l);
    assert_int_equal(tb_lpbf_children(&l, 0, children), 2);
    assert_int_equal(l.branch[0], 20);
    even(&l, 4, 1, 10); /* one far away is told by who is nearest to it */
    for (uint32_t i = 0; i < 4; i++)
        l.arrive[i][3] = l.send[i][3] = i == 2 ? 100 : 1000;
    tb_lpbf_find(&l);
    assert_int_equal(l.parent[3], 2);
}

/* The part that takes longest itself is served first. */
static void longest_branch_first(void **state)
{
    struct tb_lpbf l;
    uint32_t children[TB_LPBF_PARTS];
    even(&l, 4, 100, 10);
    l.inside[2] = 50;
    l.inside[3] = 500;
    tb_lpbf_find(&l);
    assert_int_equal(tb_lpbf_children(&l, 0, children), 3);
    assert_int_equal(children[0], 3);
    assert_int_equal(children[1], 2);
    assert_int_equal(children[2], 1);
    assert_int_equal(l.branch[0], 610);
}

static void one_and_many(void **state)
{
    struct tb_lpbf l;
    uint32_t children[TB_LPBF_PARTS];
    even(&l, 1, 5, 5);
    l.inside[0] = 7;
    tb_lpbf_find(&l);
    assert_int_equal(tb_lpbf_children(&l, 0, children), 0);
    assert_int_equal(l.branch[0], 7);
    struct tb_random random;
    tb_random_seed(&random, 4);
    for (int round = 0; round < 2000; round++) {
        even(&l, 1 + (uint32_t)(tb_random_next(&random) % TB_LPBF_PARTS), 0, 0);
        l.root = (uint32_t)(tb_random_next(&random) % l.count);
        for (uint32_t i = 0; i < l.count * l.count; i++) {
            l.send[i / l.count][i % l.count] = tb_random_next(&random) % 100;
            l.arrive[i / l.count][i % l.count] = l.send[i / l.count][i % l.count] + tb_random_next(&random) % 100;
        }
        tb_lpbf_find(&l);
        uint32_t told = 0;
        for (uint32_t i = 0; i < l.count; i++) { /* everyone leads to the root, and is somebody's child */
            uint32_t at = i, steps = 0;
            while (at != l.root && steps++ <= l.count)
                at = l.parent[at];
            assert_int_equal(at, l.root);
            told += tb_lpbf_children(&l, i, children);
        }
        assert_int_equal(told, l.count - 1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(trees_follow_costs), cmocka_unit_test(longest_branch_first),
                                       cmocka_unit_test(one_and_many)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
