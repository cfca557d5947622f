/* Regions that a process tells others: what is in one is found, what is not in one is not, nor what stays half
 * changed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <pthread.h>
#include <unistd.h>

#include "engine/host_regions.h"

static void only_what_is_in_one_is_found(void **state)
{
    struct tb_host_regions t = {.count = 0};
    assert_false(tb_host_regions_have(&t, 0, 0));
    tb_host_regions_add(&t, 1000, 1100);
    tb_host_regions_add(&t, 1100, 1200);
    tb_host_regions_add(&t, UINT64_MAX - 10, UINT64_MAX);
    assert_true(tb_host_regions_have(&t, 1000, 100));
    assert_true(tb_host_regions_have(&t, 1099, 1));
    assert_true(tb_host_regions_have(&t, 1100, 0));
    assert_false(tb_host_regions_have(&t, 999, 2));
    assert_true(tb_host_regions_have(&t, 1050, 100)); /* in two of them */
    assert_true(tb_host_regions_have(&t, 1000, 200));
    assert_false(tb_host_regions_have(&t, 1000, 201));
    assert_false(tb_host_regions_have(&t, 1199, 2));
    assert_false(tb_host_regions_have(&t, 1050, UINT64_MAX));
    assert_true(tb_host_regions_have(&t, UINT64_MAX - 1, 1));
    assert_false(tb_host_regions_have(&t, UINT64_MAX - 1, 2));
    tb_host_regions_remove(&t, 1000);
    tb_host_regions_remove(&t, 1001); /* which there is not */
    assert_false(tb_host_regions_have(&t, 1000, 1));
    assert_true(tb_host_regions_have(&t, 1100, 100));
}

static void too_many_are_not_known(void **state)
{
    struct tb_host_regions t = {.count = 0};
    for (uint64_t i = 1; i <= TB_HOST_REGIONS + 5; i++)
        tb_host_regions_add(&t, i * 100, i * 100 + 10);
    assert_true(tb_host_regions_have(&t, TB_HOST_REGIONS * 100, 10));
    assert_false(tb_host_regions_have(&t, (TB_HOST_REGIONS + 1) * 100, 1));
    for (uint64_t i = TB_HOST_REGIONS + 5; i > 0; i--)
        tb_host_regions_remove(&t, i * 100);
    assert_int_equal(t.count, 0);
    assert_false(tb_host_regions_have(&t, 100, 1));
}

static void what_is_being_changed_is_not_known(void **state)
{
    struct tb_host_regions t = {.count = 0};
    tb_host_regions_add(&t, 100, 200);
    t.changes++;
    assert_false(tb_host_regions_have(&t, 100, 1));
    t.changes++;
    assert_true(tb_host_regions_have(&t, 100, 1));
    t.count = UINT64_MAX; /* somebody has gone mad */
    assert_false(tb_host_regions_have(&t, 5000, 1));
}

/* One makes and takes away short regions, so that a mixture of two would be a long one, which is never there. */
#define CHANGES 200000

static void *change(void *context)
{
    struct tb_host_regions *t = context;
    for (int i = 0; i < CHANGES; i++) {
        uint64_t from = i % 2 == 0 ? 1000 : 9000;
        tb_host_regions_add(t, from, from + 10);
        tb_host_regions_remove(t, from);
    }
    tb_host_regions_add(t, 1, 2);
    return NULL;
}

static void no_mixture_is_ever_seen(void **state)
{
    static struct tb_host_regions t;
    pthread_t thread;
    int mixed = 0;
    assert_int_equal(pthread_create(&thread, NULL, change, &t), 0);
    while (!tb_host_regions_have(&t, 1, 1))
        mixed += tb_host_regions_have(&t, 1000, 100) || tb_host_regions_have(&t, 5000, 1);
    pthread_join(thread, NULL);
    assert_int_equal(mixed, 0);
}

static void *end_change(void *context)
{
    struct tb_host_regions *t = context;
    usleep(1000);
    t->changes++;
    return NULL;
}

/* As long as who changes it does not lose its core for long, which may happen in one trial or another. */
static void who_comes_meanwhile_looks_again(void **state)
{
    static struct tb_host_regions t;
    bool found = false;
    tb_host_regions_add(&t, 100, 200);
    for (int trial = 0; trial < 50 && !found; trial++) {
        pthread_t thread;
        t.changes++;
        assert_int_equal(pthread_create(&thread, NULL, end_change, &t), 0);
        found = tb_host_regions_have(&t, 100, 1);
        pthread_join(thread, NULL);
    }
    assert_true(found);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_what_is_in_one_is_found),       cmocka_unit_test(too_many_are_not_known),
        cmocka_unit_test(what_is_being_changed_is_not_known), cmocka_unit_test(no_mixture_is_ever_seen),
        cmocka_unit_test(who_comes_meanwhile_looks_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
