/* What agents tell of their machines: they may differ in long double, and in nothing else. */
#include "launch/job_plan.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void machines_must_agree(void **state)
{
    struct tb_host hosts[3] = {{.name = "mars"}, {.name = "venus"}, {.name = "pluto"}};
    struct tb_options options = {0};
    struct tb_job_plan plan = {.options = &options};
    struct tb_host_where wheres[3] = {{{0}, {0}}};
    plan.placement.book = (struct tb_address_book){.host_count = 3, .hosts = hosts};
    plan.placement.wheres = wheres;
    uint32_t own = tb_wire_machine();
    struct tb_agent_ready ready = {.name = "?", .machine = own};
    assert_int_equal(tb_job_plan_take_ready(&plan, 1, &ready), TB_OK);
    assert_int_equal(hosts[1].representation, own & 0xff);
    ready.machine = own ^ TB_REP_LDOUBLE_X87;
    assert_int_equal(tb_job_plan_take_ready(&plan, 2, &ready), TB_OK);
    assert_int_equal(hosts[2].representation, ready.machine & 0xff);
    static const uint32_t changes[] = {TB_REP_BIG_ENDIAN, TB_REP_LONG4, 0x0c00, 0x6000, 0x30000, 0xc00000};
    for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++) {
        ready.machine = own ^ changes[i];
        assert_int_equal(tb_job_plan_take_ready(&plan, 0, &ready), TB_ERR_UNSUPPORTED);
        assert_non_null(strstr(tb_error_story(), "host venus ("));
        assert_non_null(strstr(tb_error_story(), "host mars ("));
    }
}

/* Hosts whose ranks are seated alike share a pattern. */
static void seats_become_patterns(void **state)
{
    struct tb_host hosts[3] = {{.name = "mars"}, {.name = "venus"}, {.name = "pluto"}};
    struct tb_options options = {0};
    struct tb_job_plan plan = {.options = &options};
    struct tb_host_where wheres[3] = {{{0}, {0}}};
    plan.placement.book = (struct tb_address_book){.host_count = 3, .hosts = hosts};
    plan.placement.wheres = wheres;
    struct tb_agent_ready ready = {.machine = tb_wire_machine(), .seat_count = 2};
    ready.seats[0] = (struct tb_seat){{0, 0, 0, 0}};
    ready.seats[1] = (struct tb_seat){{0, 0, 0, 1}};
    assert_int_equal(tb_job_plan_take_ready(&plan, 0, &ready), TB_OK);
    assert_int_equal(tb_job_plan_take_ready(&plan, 2, &ready), TB_OK);
    ready.seats[1].at[3] = 7;
    assert_int_equal(tb_job_plan_take_ready(&plan, 1, &ready), TB_OK);
    assert_int_equal(plan.placement.book.pattern_count, 2);
    assert_int_equal(hosts[0].pattern, hosts[2].pattern);
    assert_int_equal(tb_address_book_seats(&plan.placement.book, 1)[1].at[3], 7);
    assert_int_equal(tb_address_book_seats(&plan.placement.book, 2)[1].at[3], 1);
    ready.seat_count = 0;
    assert_int_equal(tb_job_plan_take_ready(&plan, 0, &ready), TB_OK);
    assert_null(tb_address_book_seats(&plan.placement.book, 0));
    free(plan.placement.book.pattern_firsts);
    free(plan.placement.book.seats);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(machines_must_agree), cmocka_unit_test(seats_become_patterns)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
