/* When trouble with multicast is told, and how often. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "engine/multicast_health.h"

#define SECOND UINT64_C(1000000000)

struct watched {
    struct tb_multicast_health health;
    struct tb_multicast_seen seen;
    struct tb_multicast_flow flow;
    uint64_t now;
};

static struct watched fresh(void)
{
    struct watched w = {.now = 5 * SECOND};
    tb_multicast_health_renew(&w.health, &w.seen, w.now);
    return w;
}

/* Messages of so many fragments, and how they came. */
static enum tb_engine_trouble receive(struct watched *w, uint32_t messages, uint32_t used, uint32_t rested)
{
    enum tb_engine_trouble what = TB_TROUBLE_NONE;
    for (uint32_t i = 0; i < messages && what == TB_TROUBLE_NONE; i++) {
        w->seen.messages++;
        w->seen.used += used;
        w->seen.rested += rested;
        w->now += 1000;
        what = tb_multicast_health_look(&w->health, &w->seen, w->now);
    }
    return what;
}

static void datagrams_that_come_are_no_trouble(void **state)
{
    struct watched w = fresh();
    assert_int_equal(receive(&w, 10000, 10, 0), TB_TROUBLE_NONE);
    assert_int_equal(receive(&w, 10000, 6, 6), TB_TROUBLE_NONE);
}

static void messages_over_connections_are(void **state)
{
    struct watched w = fresh();
    assert_int_equal(receive(&w, 3, 0, 50), TB_TROUBLE_NONE);
    assert_int_equal(receive(&w, 1, 0, 50), TB_TROUBLE_UNHEARD);
    w = fresh();
    assert_int_equal(receive(&w, 4, 5, 6), TB_TROUBLE_UNHEARD);
}

static void a_long_message_is_enough(void **state)
{
    struct watched w = fresh();
    w.seen.rested = 4095;
    assert_int_equal(tb_multicast_health_look(&w.health, &w.seen, w.now), TB_TROUBLE_NONE);
    w.seen.rested = 4096;
    assert_int_equal(tb_multicast_health_look(&w.health, &w.seen, w.now), TB_TROUBLE_UNHEARD);
}

static void it_is_told_once_in_a_while(void **state)
{
    struct watched w = fresh();
    assert_int_equal(receive(&w, 4, 0, 1), TB_TROUBLE_UNHEARD);
    uint64_t told = w.now;
    assert_int_equal(receive(&w, 1000, 0, 1), TB_TROUBLE_NONE);
    w.now = told + 2 * SECOND;
    assert_int_equal(receive(&w, 4, 0, 1), TB_TROUBLE_UNHEARD);
}

static void what_was_before_a_test_does_not_count(void **state)
{
    struct watched w = fresh();
    assert_int_equal(receive(&w, 3, 0, 9), TB_TROUBLE_NONE);
    tb_multicast_health_renew(&w.health, &w.seen, w.now);
    assert_int_equal(receive(&w, 3, 0, 9), TB_TROUBLE_NONE);
    assert_int_equal(receive(&w, 1, 0, 9), TB_TROUBLE_UNHEARD);
}

static void other_jobs_in_masses(void **state)
{
    struct watched w = fresh();
    for (int i = 0; i < 20; i++) { /* a few a second are borne */
        w.seen.foreign += 100;
        w.now += SECOND;
        assert_int_equal(tb_multicast_health_look(&w.health, &w.seen, w.now), TB_TROUBLE_NONE);
    }
    w.seen.foreign += 101;
    assert_int_equal(tb_multicast_health_look(&w.health, &w.seen, w.now + SECOND / 2), TB_TROUBLE_NONE);
    assert_int_equal(tb_multicast_health_look(&w.health, &w.seen, w.now + SECOND), TB_TROUBLE_OTHERS);
    w.seen.foreign += 500; /* within ten seconds of looking at nothing that is not many */
    assert_int_equal(tb_multicast_health_look(&w.health, &w.seen, w.now + 11 * SECOND), TB_TROUBLE_NONE);
}

/* A tenth of a second in which so many came. */
static bool drowns(struct watched *w, uint64_t right, uint64_t strange, uint64_t repeated)
{
    w->flow.right += right;
    w->flow.strange += strange;
    w->flow.repeated += repeated;
    w->now += SECOND / 10;
    return tb_multicast_health_drowns(&w->health, &w->flow, w->now);
}

static void floods_of_strangers(void **state)
{
    struct watched w = fresh();
    assert_false(drowns(&w, 0, 1000, 0)); /* not many */
    assert_true(drowns(&w, 0, 1001, 0));
    w.now += 1; /* the interval is not over */
    w.flow.right += 1000000;
    assert_true(tb_multicast_health_drowns(&w.health, &w.flow, w.now));
    assert_false(drowns(&w, 0, 0, 0));
    assert_false(drowns(&w, 1000, 7000, 0));
    assert_true(drowns(&w, 999, 7001, 0));
    assert_false(drowns(&w, 100000, 0, 0));
}

static void floods_of_repeated_ones(void **state)
{
    struct watched w = fresh();
    assert_false(drowns(&w, 1000, 0, 1000));
    assert_false(drowns(&w, 8000, 0, 7000)); /* as where others lose much */
    assert_true(drowns(&w, 8001, 0, 7002));
    for (int i = 0; i < 9; i++) /* whatever comes meanwhile */
        assert_true(drowns(&w, i < 5 ? 0 : 8000, 0, i < 5 ? 0 : 8000));
    assert_false(drowns(&w, 8000, 0, 8000)); /* that was while it did without */
    assert_true(drowns(&w, 8000, 0, 8000));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(datagrams_that_come_are_no_trouble),
        cmocka_unit_test(messages_over_connections_are),
        cmocka_unit_test(a_long_message_is_enough),
        cmocka_unit_test(it_is_told_once_in_a_while),
        cmocka_unit_test(what_was_before_a_test_does_not_count),
        cmocka_unit_test(other_jobs_in_masses),
        cmocka_unit_test(floods_of_strangers),
        cmocka_unit_test(floods_of_repeated_ones),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
