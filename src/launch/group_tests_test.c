/* Multicast groups of a job from the choice to the verdict. */
#include "launch/group_tests_world_test.h"

static void all_hear_all(void **state)
{
    open_hosts(4);
    for (uint32_t i = 0; i < 4; i++) {
        assert_int_equal(w.told[i].orders, 1);
        assert_int_equal(w.told[i].order.attempt, 1);
        assert_int_equal(w.told[i].order.local.bytes[3], i + 1);
        assert_memory_equal(&w.told[i].order.address, &w.told[0].order.address, sizeof(struct tb_address));
        assert_int_equal(w.told[i].tests, 0);
    }
    say_state(0, 1, TB_MULTICAST_OPEN, 9000, "");
    say_state(1, 1, TB_MULTICAST_OPEN, 1420, "");
    say_state(2, 1, TB_MULTICAST_OPEN, 1400, "");
    assert_int_equal(w.told[0].tests, 0); /* not before all have joined */
    say_state(3, 1, TB_MULTICAST_OPEN, 8000, "");
    for (uint32_t i = 0; i < 4; i++) {
        assert_int_equal(w.told[i].tests, 1);
        assert_int_equal(w.told[i].piece, 1400);
    }
    pass(3 * MS);
    hear_all();
    verdict_is(1, 0, TB_MULTICAST_WORKS);
    for (uint32_t i = 0; i < 4; i++) {
        assert_int_equal(w.told[i].own_piece, 1400);
        assert_int_equal(w.told[i].own_buffer, 100000); /* of the host that has least */
        assert_int_equal(w.told[i].orders + w.told[i].tests + w.told[i].verdicts, 3);
    }
    assert_int_equal(w.said, 1);
    assert_non_null(strstr(w.text, "multicast reaches all 4 hosts (group 239."));
    assert_non_null(strstr(w.text, ", 1400 bytes a datagram)"));
    pass(3600 * SECOND); /* and no more of it */
    assert_int_equal(w.told[0].tests, 1);
    close_world();
}

static void the_user_bounds_the_piece(void **state)
{
    open_hosts(3);
    tb_param.mcast_piece = 512;
    tb_group_tests_close(&w.tests);
    assert_int_equal(tb_group_tests_choose(&w.tests, &w.book, NULL, &w.agents), TB_OK);
    for (uint32_t i = 0; i < 3; i++)
        assert_int_equal(tb_group_tests_order(&w.tests, &w.agents.all[i]), TB_OK);
    tb_group_tests_begin(&w.tests);
    deliver();
    open_all();
    assert_int_equal(w.told[1].piece, 512);
    close_world();
}

static void who_does_not_hear_is_named(void **state)
{
    open_hosts(4);
    open_all();
    uint32_t test = w.told[0].test;
    say_heard(0, test, 0xe, 0xe);
    say_heard(1, test, 0xd, 0xd);
    say_heard(3, test, 0x7, 0x7);
    pass(100 * MS);
    assert_int_equal(w.told[0].verdicts, 0); /* one has not said anything yet */
    say_heard(2, test, 0x8, 0x8);
    pass(99 * MS);
    assert_int_equal(w.told[0].verdicts, 0);
    pass(2 * MS);
    verdict_is(1, 0, TB_MULTICAST_FAILS);
    assert_string_equal(w.text, "multicast does not reach h3 from h1, h2: other algorithms are used");
    assert_int_equal(w.said, 1);
    say_trouble(0, 1, TB_MULTICAST_UNHEARD); /* nobody uses it */
    pass(3600 * SECOND);
    assert_int_equal(w.told[0].tests, 1);
    close_world();
}

static void what_comes_late_still_counts(void **state)
{
    open_hosts(3);
    open_all();
    uint32_t test = w.told[0].test;
    say_heard(0, test, 0x2, 0x2);
    say_heard(1, test, 0x1, 0x1);
    say_heard(2, test, 0x3, 0x3);
    pass(60 * MS); /* the last one was late itself */
    say_heard(0, test, 0x6, 0x6);
    pass(60 * MS);
    say_heard(1, test, 0x5, 0x5);
    verdict_is(1, 0, TB_MULTICAST_WORKS);
    close_world();
}

static void stories(void **state)
{
    static const struct {
        uint64_t heard[6];
        const char *text;
    } cases[] = {
        {{0, 0, 0, 0, 0, 0}, "multicast reaches nobody: other"},
        {{0x3c, 0x3c, 0x38, 0x34, 0x2c, 0x1c}, "multicast reaches nobody from h1, h2: other"},
        {{0x3e, 0x3d, 0x3b, 0x37, 0, 0x1f}, "multicast does not reach h5 from h1, h2, h3, h4 and 1 other: other"},
        {{0x3a, 0x39, 0x3b, 0x33, 0x2a, 0x1b}, "multicast reaches nobody from h3; it does not reach h5 from h1: other"},
        {{0x3c, 0x39, 0x33, 0x27, 0x0f, 0x1e},
         "multicast does not reach h1 from h2, h2 from h3, h3 from h4, h4 from h5, and not all of 2 others: other"},
    };
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        open_hosts(6);
        open_all();
        for (uint32_t i = 0; i < 6; i++)
            say_heard(i, w.told[0].test, cases[c].heard[i], cases[c].heard[i]);
        pass(101 * MS);
        assert_memory_equal(w.text, cases[c].text, strlen(cases[c].text));
        close_world();
    }
}

static void one_that_says_nothing(void **state)
{
    open_hosts(3);
    say_state(0, 1, TB_MULTICAST_OPEN, FITS, "");
    say_state(2, 1, TB_MULTICAST_OPEN, FITS, "");
    pass(4999 * MS);
    assert_int_equal(w.told[0].verdicts, 0);
    pass(10 * MS);
    verdict_is(1, 0, TB_MULTICAST_FAILS);
    assert_string_equal(w.text, "host h2 does not say whether multicast reaches it: other algorithms are used");
    say_state(1, 1, TB_MULTICAST_OPEN, FITS, ""); /* too late */
    assert_int_equal(w.told[0].tests, 0);
    close_world();
    open_hosts(3);
    open_all();
    say_heard(0, w.told[0].test, 6, 6);
    say_heard(1, w.told[0].test, 5, 5);
    pass(5010 * MS);
    verdict_is(1, 0, TB_MULTICAST_FAILS);
    assert_string_equal(w.text, "host h3 does not say whether multicast reaches it: other algorithms are used");
    close_world();
}

static void a_host_without_multicast(void **state)
{
    open_hosts(3);
    say_state(1, 1, TB_MULTICAST_CLOSED, 0, "network interface eth0 carries no multicast");
    verdict_is(1, 0, TB_MULTICAST_FAILS);
    assert_string_equal(w.text, "host h2 has no multicast: network interface eth0 carries no multicast: other "
                                "algorithms are used");
    close_world();
}

static void groups_of_others_are_left(void **state)
{
    struct tb_address seen[4];
    open_hosts(3);
    seen[0] = w.told[0].order.address;
    say_state(1, 1, TB_MULTICAST_TAKEN, 0, ""); /* when it opens it */
    seen[1] = w.told[0].order.address;
    open_all();
    assert_int_equal(w.told[0].attempt, 2);
    say_heard(0, w.told[0].test, 6, 6);
    say_state(2, 2, TB_MULTICAST_TAKEN, 0, ""); /* while it is tested */
    say_state(1, 2, TB_MULTICAST_TAKEN, 0, ""); /* another one says the same, which is old by now */
    seen[2] = w.told[0].order.address;
    assert_int_equal(w.told[0].order.attempt, 3);
    open_all();
    say_heard(1, 1, 5, 5); /* of the test before */
    say_state(0, 3, TB_MULTICAST_TAKEN, 0, "");
    seen[3] = w.told[0].order.address;
    for (unsigned i = 0; i < 4; i++)
        for (unsigned k = 0; k < i; k++)
            assert_memory_not_equal(&seen[i], &seen[k], sizeof seen[i]);
    open_all();
    assert_int_equal(w.told[2].orders, 4);
    hear_all();
    verdict_is(1, 0, TB_MULTICAST_WORKS);
    close_world();
}

static void not_for_ever(void **state)
{
    open_hosts(3);
    for (uint32_t attempt = 1; attempt <= 4; attempt++) {
        assert_int_equal(w.told[0].order.attempt, attempt);
        say_state(0, attempt, TB_MULTICAST_TAKEN, 0, "");
    }
    assert_int_equal(w.told[0].order.attempt, 4);
    verdict_is(1, 0, TB_MULTICAST_FAILS);
    assert_string_equal(w.text, "4 multicast groups in turn were used by others: other algorithms are used");
    close_world();
}

static void long_datagrams_that_are_lost_get_shorter(void **state)
{
    static const uint32_t pieces[] = {8900, 1400, 1180, 476};
    open_hosts(3);
    for (uint32_t i = 0; i < 3; i++)
        say_state(i, 1, TB_MULTICAST_OPEN, 8900, "");
    for (uint32_t t = 0; t < 4; t++) {
        assert_int_equal(w.told[0].tests, t + 1);
        assert_int_equal(w.told[0].piece, pieces[t]);
        for (uint32_t i = 0; i < 3; i++)
            say_heard(i, w.told[0].test, 7, t == 3 && i > 0 ? 7 : i == 0 ? 4 : 7);
        pass(101 * MS);
    }
    verdict_is(1, 0, TB_MULTICAST_FAILS);
    assert_string_equal(w.text, "multicast of 476 bytes does not reach h1 from h2: other algorithms are used");
    close_world();
    open_hosts(3);
    for (uint32_t i = 0; i < 3; i++)
        say_state(i, 1, TB_MULTICAST_OPEN, 8900, "");
    for (uint32_t i = 0; i < 3; i++)
        say_heard(i, w.told[0].test, 7, 0);
    pass(101 * MS);
    hear_all();
    verdict_is(1, 0, TB_MULTICAST_WORKS);
    assert_int_equal(w.told[0].own_piece, 1400);
    close_world();
}

static void who_has_ended_is_not_needed(void **state)
{
    open_hosts(4);
    say_state(0, 1, TB_MULTICAST_OPEN, FITS, "");
    say_state(1, 1, TB_MULTICAST_OPEN, FITS, "");
    say_state(2, 1, TB_MULTICAST_OPEN, FITS, "");
    tb_group_tests_lose(&w.tests, 3); /* while it should open */
    deliver();
    assert_int_equal(w.told[0].tests, 1);
    say_heard(0, w.told[0].test, 4, 4);
    say_heard(2, w.told[0].test, 1, 1);
    assert_int_equal(w.told[0].verdicts, 0);
    tb_group_tests_lose(&w.tests, 1); /* and while it is tested */
    deliver();
    verdict_is(1, 0, TB_MULTICAST_WORKS);
    close_world();
    open_hosts(3);
    tb_group_tests_lose(&w.tests, 0);
    tb_group_tests_lose(&w.tests, 0);
    tb_group_tests_lose(&w.tests, 1);
    deliver();
    verdict_is(1, 0, TB_MULTICAST_FAILS); /* one alone multicasts to nobody, */
    assert_int_equal(w.said, 0);          /* and nobody needs to know */
    close_world();
}

static uint32_t in_two_clusters(uint32_t host)
{
    return host < 7 ? 1 + host % 2 : 3; /* h1, h3, h5, h7; h2, h4, h6; h8 alone */
}

static void verdicts_come_together(void **state)
{
    open_world(8, in_two_clusters, (const char *const[]){"a", "b", "c", NULL});
    assert_int_equal(w.told[7].orders, 1);
    assert_int_equal(w.told[7].order.attempt, 0); /* it is told that there are groups, and is in none */
    assert_memory_not_equal(&w.told[0].order.address, &w.told[1].order.address, sizeof(struct tb_address));
    open_all();
    assert_int_not_equal(w.told[0].test, w.told[1].test);
    for (uint32_t i = 0; i < 7; i += 2)
        say_heard(i, w.told[0].test, 0xf, 0xf);
    assert_string_equal(strtok(w.text, "("), "multicast reaches all 4 hosts of cluster a ");
    assert_int_equal(w.told[0].verdicts, 0);
    for (uint32_t i = 1; i < 7; i += 2)
        say_heard(i, w.told[1].test, i == 1 ? 0x4 : 0x7, i == 1 ? 0x4 : 0x7);
    pass(101 * MS);
    assert_string_equal(w.text, "multicast does not reach h2 from h4 (cluster b): other algorithms are used");
    for (uint32_t i = 0; i < 8; i++) { /* also who is in none */
        assert_int_equal(w.told[i].verdicts, 1);
        assert_int_equal(tb_multicast_first(&w.told[i].known, 1), TB_MULTICAST_WORKS);
        assert_int_equal(tb_multicast_first(&w.told[i].known, 2), TB_MULTICAST_FAILS);
        assert_int_equal(tb_multicast_first(&w.told[i].known, 3), TB_MULTICAST_FAILS);
        assert_int_equal(w.told[i].own_piece, in_two_clusters(i) == 1 ? FITS : 0);
    }
    close_world();
}

static void of_many_hosts_some_are_heard(void **state)
{
    open_hosts(100);
    open_all();
    for (uint32_t i = 0; i < 100; i++) {
        uint32_t own = tb_multicast_probers_index(&w.tests.groups[0].probers, i);
        uint64_t heard = own < 64 ? UINT64_MAX & ~(UINT64_C(1) << own) : UINT64_MAX;
        say_heard(i, w.told[0].test, heard, heard);
    }
    verdict_is(1, 0, TB_MULTICAST_WORKS);
    close_world();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_hear_all),
        cmocka_unit_test(the_user_bounds_the_piece),
        cmocka_unit_test(who_does_not_hear_is_named),
        cmocka_unit_test(what_comes_late_still_counts),
        cmocka_unit_test(stories),
        cmocka_unit_test(one_that_says_nothing),
        cmocka_unit_test(a_host_without_multicast),
        cmocka_unit_test(groups_of_others_are_left),
        cmocka_unit_test(not_for_ever),
        cmocka_unit_test(long_datagrams_that_are_lost_get_shorter),
        cmocka_unit_test(who_has_ended_is_not_needed),
        cmocka_unit_test(verdicts_come_together),
        cmocka_unit_test(of_many_hosts_some_are_heard),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
