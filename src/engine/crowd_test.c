/* What a waiting thread learns from its yields. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "engine/crowd.h"

static struct tb_crowd learnt(const uint64_t *yields, int count, int times)
{
    struct tb_crowd c;
    tb_crowd_init(&c);
    for (int i = 0; i < times; i++)
        for (int j = 0; j < count; j++)
            tb_crowd_learn(&c, yields[j]);
    return c;
}

/* Ranks that share a core and hand it over at once are back after two or three microseconds. */
static void quick_neighbours_are_a_crowd(void **state)
{
    const uint64_t yields[] = {2500, 3000, 1500};
    assert_true(learnt(yields, 3, 1).here);
    assert_true(learnt(yields, 3, 1000).here);
    (void)state;
}

static void one_accident_is_none(void **state)
{
    const uint64_t yields[] = {320, 320, 90000, 320};
    assert_false(learnt(yields, 4, 1).here);
    (void)state;
}

static void an_idle_machine_is_none(void **state)
{
    const uint64_t yields[] = {300, 350, 280, 700, 400};
    assert_false(learnt(yields, 5, 1000).here);
    (void)state;
}

/* The kernel may pick the yielding thread again although others wait: every other yield in vain proves nothing. */
static void a_quick_yield_now_and_then_ends_no_crowd(void **state)
{
    const uint64_t yields[] = {2500, 300, 300, 2500, 300};
    assert_true(learnt(yields, 5, 1000).here);
    (void)state;
}

static void a_crowd_ends(void **state)
{
    const uint64_t crowded[] = {2500}, quiet[] = {300};
    struct tb_crowd c = learnt(crowded, 1, 100);
    for (int i = 0; i < TB_CROWD_FULL; i++) {
        assert_true(c.here);
        assert_false(tb_crowd_learn(&c, quiet[0]));
    }
    assert_false(c.here);
    (void)state;
}

/* Where a system call takes long, as in an emulator, that is no crowd, once it is known. */
static void slow_calls_are_known(void **state)
{
    const uint64_t yields[] = {900};
    struct tb_crowd c = learnt(yields, 1, 10000);
    assert_false(c.here);
    assert_true(tb_crowd_learn(&c, 2500));
    assert_int_equal(c.took, 2500);
    (void)state;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(quick_neighbours_are_a_crowd),
        cmocka_unit_test(one_accident_is_none),
        cmocka_unit_test(an_idle_machine_is_none),
        cmocka_unit_test(a_quick_yield_now_and_then_ends_no_crowd),
        cmocka_unit_test(a_crowd_ends),
        cmocka_unit_test(slow_calls_are_known),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
