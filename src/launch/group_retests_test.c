/* What becomes of a multicast group after its verdict, at the end, and of what makes no sense. */
#include "launch/group_tests_world_test.h"

static void trouble_leads_to_another_test(void **state)
{
    open_hosts(3);
    open_all();
    hear_all();
    say_trouble(1, 7, TB_MULTICAST_UNHEARD);  /* of no verdict that there was */
    say_trouble(1, 1, TB_MULTICAST_TROUBLES); /* nonsense */
    pass(3600 * SECOND);
    assert_int_equal(w.told[0].tests, 1);
    say_trouble(1, 1, TB_MULTICAST_UNHEARD);
    pass(MS);
    assert_int_equal(w.told[0].tests, 2);
    say_trouble(0, 1, TB_MULTICAST_UNHEARD); /* one is under way */
    hear_all();
    verdict_is(2, 0, TB_MULTICAST_WORKS);
    assert_int_equal(w.said, 1);             /* nothing new */
    say_trouble(0, 1, TB_MULTICAST_UNHEARD); /* has not heard of it yet */
    say_trouble(0, 2, TB_MULTICAST_UNHEARD);
    say_trouble(1, 2, TB_MULTICAST_UNHEARD);
    pass(19 * SECOND); /* not at once: the second pause is twice as long as the first */
    assert_int_equal(w.told[0].tests, 2);
    pass(2 * SECOND);
    assert_int_equal(w.told[0].tests, 3);
    for (uint32_t i = 0; i < 3; i++)
        say_heard(i, w.told[0].test, i == 2 ? 0 : 3, i == 2 ? 0 : 3);
    pass(101 * MS);
    verdict_is(3, 0, TB_MULTICAST_FAILS);
    assert_int_equal(w.said, 2);
    for (uint32_t i = 0; i < 3; i++)
        assert_int_equal(tb_multicast_first(&w.told[i].known, 0), TB_MULTICAST_WORKS);
    pass(41 * SECOND); /* it did work once, so it is looked after */
    assert_int_equal(w.told[0].tests, 4);
    hear_all();
    verdict_is(4, 0, TB_MULTICAST_WORKS);
    assert_int_equal(w.said, 3);
    close_world();
}

static void tests_become_rare(void **state)
{
    open_hosts(3);
    open_all();
    hear_all();
    for (uint32_t i = 0; i < 24 * 3600; i++) { /* a day of complaints */
        say_trouble(1, w.told[1].known.version, TB_MULTICAST_UNHEARD);
        pass(SECOND);
        if (w.told[0].tests > w.told[0].verdicts)
            hear_all();
    }
    assert_in_range(w.told[0].tests, 140, 155);
    close_world();
}

static void another_job_on_the_group(void **state)
{
    open_hosts(3);
    open_all();
    hear_all();
    struct tb_address before = w.told[0].order.address;
    pass(11 * SECOND);
    say_trouble(2, 1, TB_MULTICAST_OTHER_JOB);
    pass(MS);
    assert_int_equal(w.told[0].orders, 2);
    assert_memory_not_equal(&before, &w.told[0].order.address, sizeof before);
    assert_int_equal(w.told[0].verdicts, 1);
    open_all();
    hear_all();
    verdict_is(2, 0, TB_MULTICAST_WORKS);
    close_world();
}

static void nothing_is_told_at_the_end(void **state)
{
    open_hosts(3);
    open_all();
    tb_group_tests_stop(&w.tests);
    hear_all();
    pass(60 * SECOND);
    tb_group_tests_lose(&w.tests, 0);
    deliver();
    assert_int_equal(w.told[0].verdicts, 0);
    close_world();
}

static void a_job_without_groups_hears_nothing(void **state)
{
    open_hosts(2);
    open_all();
    say_heard(0, 1, 2, 2);
    say_state(0, 1, TB_MULTICAST_OPEN, FITS, "");
    tb_group_tests_lose(&w.tests, 1);
    pass(60 * SECOND);
    for (uint32_t i = 0; i < 2; i++)
        assert_int_equal(w.told[i].orders + w.told[i].tests + w.told[i].verdicts, 0);
    assert_int_equal(w.said, 0);
    close_world();
}

static void frames_that_make_no_sense(void **state)
{
    static const uint8_t noise[40] = {1};
    static const enum tb_control kinds[] = {TB_CONTROL_GROUP_STATE, TB_CONTROL_GROUP_HEARD, TB_CONTROL_GROUP_TROUBLE};
    open_hosts(3);
    for (unsigned k = 0; k < 3; k++)
        for (size_t length = 0; length <= sizeof noise; length++) {
            struct tb_reader r;
            tb_reader_open(&r, noise, length);
            tb_group_tests_take(&w.tests, 1, kinds[k], &r);
            tb_reader_open(&r, noise, length);
            tb_group_tests_take(&w.tests, 77777, kinds[k], &r); /* no host of the job */
        }
    say_state(0, 1, TB_MULTICAST_OPEN, 0, ""); /* nothing fits */
    deliver();
    assert_int_equal(w.told[0].orders + w.told[0].tests + w.told[0].verdicts, 1);
    open_all();
    hear_all();
    verdict_is(1, 0, TB_MULTICAST_WORKS);
    close_world();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(trouble_leads_to_another_test),      cmocka_unit_test(tests_become_rare),
        cmocka_unit_test(another_job_on_the_group),           cmocka_unit_test(nothing_is_told_at_the_end),
        cmocka_unit_test(a_job_without_groups_hears_nothing), cmocka_unit_test(frames_that_make_no_sense),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
