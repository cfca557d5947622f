/* When a wire can pass something, as it is by hand, and for windows that are drawn at random. */
#include "planner/bound_windows.h"
#include "planner/random_grid_test.h"
#include "topology/topology.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static struct tb_bound_windows windows_of(const struct tb_bound_window *rows, uint32_t count)
{
    struct tb_bound_windows w = {.count = 0};
    for (uint32_t i = 0; i < count; i++)
        tb_bound_windows_add(&w, rows[i]);
    return w;
}

static void one_way(void **state)
{
    struct tb_bound_windows none = {.count = 0}, w = windows_of(&(struct tb_bound_window){10, 5, 3}, 1);
    assert_true(tb_bound_windows_shut(&none, 100) == TB_COST_NEVER && tb_bound_windows_least(&none) == TB_COST_NEVER);
    assert_int_equal(tb_bound_windows_least(&w), 15);
    assert_int_equal(tb_bound_windows_shut(&w, 100), 15);
    assert_int_equal(tb_bound_windows_shut(&w, 16), 15);
    assert_true(tb_bound_windows_shut(&w, 15) == TB_COST_NEVER && tb_bound_windows_shut(&w, 0) == TB_COST_NEVER);
    struct tb_bound_windows later = w, earlier = w;
    tb_bound_windows_narrow(&later, true);
    tb_bound_windows_narrow(&earlier, false);
    assert_int_equal(later.rows[0].before, 13);
    assert_int_equal(earlier.rows[0].behind, 8);
}

/* Early ones go far, and late ones have to come from far: the wire is idle between them until the end is so late that
 * they meet. */
static void two_ways(void **state)
{
    static const struct tb_bound_window rows[] = {{2, 30, 0}, {40, 1, 0}};
    struct tb_bound_windows w = windows_of(rows, 2);
    assert_int_equal(tb_bound_windows_least(&w), 32);
    assert_true(tb_bound_windows_shut(&w, 32) == TB_COST_NEVER);
    assert_int_equal(tb_bound_windows_shut(&w, 42), 42 - 10 - 1); /* 2 to 12, and 40 to 41 */
    assert_int_equal(tb_bound_windows_shut(&w, 70), 2 + 1);       /* they meet at 40 */
    assert_int_equal(tb_bound_windows_shut(&w, 500), 2 + 1);
}

static void what_lies_within_another_does_not_count(void **state)
{
    static const struct tb_bound_window rows[] = {{5, 5, 5}, {6, 5, 5}, {4, 6, 4}, {4, 4, 4}, {4, 4, 4}, {9, 1, 4}};
    struct tb_bound_windows w = windows_of(rows, 6);
    assert_int_equal(w.count, 2);
    assert_int_equal(w.rows[0].before, 4);
    assert_int_equal(w.rows[1].before, 9);
}

/* Of however many: never longer for a later end, never shorter than with the least of both sides, never longer than any
 * of them alone. */
static void any_ways(void **state)
{
    for (int i = 0; i < 2000; i++) {
        struct tb_bound_windows w = {.count = 0};
        uint64_t before = UINT64_MAX, behind = UINT64_MAX, alone = UINT64_MAX, last = TB_COST_NEVER;
        for (uint32_t k = 0, count = 1 + random_below(20); k < count; k++) {
            uint64_t a = random_below(100), b = random_below(100), c = random_below(10);
            tb_bound_windows_add(&w, (struct tb_bound_window){a, b, c});
            before = a < before ? a : before;
            behind = b < behind ? b : behind;
            alone = a + b < alone ? a + b : alone;
        }
        assert_true(w.count <= TB_BOUND_WINDOWS && tb_bound_windows_least(&w) <= alone);
        for (uint64_t end = 0; end < 300; end++) {
            uint64_t shut = tb_bound_windows_shut(&w, end);
            assert_true(shut <= last && shut >= before + behind);
            assert_true(end <= alone || shut <= alone);
            last = shut;
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_way),
        cmocka_unit_test(two_ways),
        cmocka_unit_test(what_lies_within_another_does_not_count),
        cmocka_unit_test(any_ways),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
