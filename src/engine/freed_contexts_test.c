/* Freed contexts against a model: a set of numbers. */
#include "engine/freed_contexts.h"
#include "wire/wire.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

static void ranges_melt(void **state)
{
    struct tb_freed_contexts f = {.used = 0};
    bool model[300] = {false};
    struct tb_random random;
    tb_random_seed(&random, 5);
    for (int i = 0; i < 1000; i++) {
        uint32_t n = (uint32_t)tb_random_below(&random, 300);
        tb_freed_contexts_add(&f, tb_context_make(9, n, TB_PLANE_POINT));
        model[n] = true;
        for (uint32_t k = 0; k < 300; k++)
            assert_int_equal(tb_freed_contexts_contains(&f, tb_context_make(9, k, TB_PLANE_COLLECTIVE)), model[k]);
        for (uint32_t k = 1; k < f.used; k++)
            assert_true(f.ranges[k - 1].high + 1 < f.ranges[k].low);
    }
    for (uint32_t n = 0; n < 300; n++)
        tb_freed_contexts_add(&f, tb_context_make(9, n, TB_PLANE_POINT));
    assert_int_equal(f.used, 1);
    assert_false(tb_freed_contexts_contains(&f, tb_context_make(8, 5, TB_PLANE_POINT)));
    tb_freed_contexts_close(&f);
}

/* Two allocators, one of which is seen every other time only: its oldest ranges become one, everything stays gone. */
static void ranges_are_bounded(void **state)
{
    struct tb_freed_contexts f = {.used = 0};
    tb_freed_contexts_add(&f, tb_context_make(3, 7, TB_PLANE_POINT));
    for (uint32_t n = 1; n < 5 * TB_FREED_CONTEXTS_LIMIT; n++)
        tb_freed_contexts_add(&f, tb_context_make(9, 2 * n, TB_PLANE_POINT));
    assert_int_equal(f.used, TB_FREED_CONTEXTS_LIMIT);
    for (uint32_t n = 1; n < 5 * TB_FREED_CONTEXTS_LIMIT; n++)
        assert_true(tb_freed_contexts_contains(&f, tb_context_make(9, 2 * n, TB_PLANE_POINT)));
    for (uint32_t n = 5 * TB_FREED_CONTEXTS_LIMIT - 1000; n < 5 * TB_FREED_CONTEXTS_LIMIT; n++)
        assert_false(tb_freed_contexts_contains(&f, tb_context_make(9, 2 * n + 1, TB_PLANE_POINT)));
    assert_true(tb_freed_contexts_contains(&f, tb_context_make(3, 7, TB_PLANE_POINT)));
    assert_false(tb_freed_contexts_contains(&f, tb_context_make(3, 8, TB_PLANE_POINT)));
    for (uint32_t k = 1; k < f.used; k++)
        assert_true(f.ranges[k - 1].high < f.ranges[k].low);
    tb_freed_contexts_close(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(ranges_melt), cmocka_unit_test(ranges_are_bounded)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
