/* Where ranks are bound to, and where that is on the machine on which this runs. */
#include "agent/cpu_binding.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct tb_rank_run runs[] = {{4, 2}, {9, 1}};

static struct tb_setup setup_of(uint32_t bind, const char *list, const char *own)
{
    return (struct tb_setup){.bind = bind,
                             .bind_width = 1,
                             .bind_cpus = (char *)list,
                             .rank_cpus = (char *)own,
                             .run_count = 2,
                             .runs = runs};
}

/* One processor that this process may use. */
static unsigned some_cpu(void)
{
    cpu_set_t set;
    unsigned cpu = 0;
    assert_int_equal(sched_getaffinity(0, sizeof set, &set), 0);
    while (!CPU_ISSET(cpu, &set))
        cpu++;
    return cpu;
}

/* A rank on one processor is on one core; on all of them, on what they have in common. */
static void processors_have_seats(void **state)
{
    char list[64], own[64];
    struct tb_cpu_binding *binding;
    uint32_t count;
    snprintf(list, sizeof list, "%u", some_cpu());
    snprintf(own, sizeof own, "9=0-65535\n");
    struct tb_setup setup = setup_of(TB_BIND_NONE, list, own);
    assert_int_equal(tb_cpu_binding_open(&binding, &setup), TB_OK);
    struct tb_seat *seats = tb_cpu_binding_seats(binding, &setup, &count);
    assert_non_null(seats);
    assert_int_equal(count, 3);
    assert_memory_equal(&seats[0], &seats[1], sizeof *seats); /* in turn, and there is one */
    assert_int_equal(tb_seat_meet(&seats[0], &seats[1]), TB_LEVEL_CORE);
    assert_true(tb_seat_meet(&seats[0], &seats[2]) < TB_LEVEL_CORE || seats[2].at[3] == seats[0].at[3]);
    free(seats);
    tb_cpu_binding_close(binding);
}

static void cores_are_told_apart(void **state)
{
    struct tb_cpu_binding *binding;
    struct tb_setup setup = setup_of(TB_BIND_CORE, "", "");
    assert_int_equal(tb_cpu_binding_open(&binding, &setup), TB_OK);
    struct tb_seat a = tb_cpu_binding_seat(binding, 0, 0), b = tb_cpu_binding_seat(binding, 1, 1);
    cpu_set_t *first, *second;
    size_t bytes = 0;
    tb_cpu_binding_choose(binding, 0, 0, &first, &bytes);
    tb_cpu_binding_choose(binding, 1, 1, &second, &bytes);
    assert_non_null(first);
    assert_non_null(second);
    assert_int_not_equal(a.at[3], TB_SEAT_NONE);
    assert_int_equal(a.at[3] == b.at[3], CPU_EQUAL_S(bytes, first, second) != 0);
    CPU_FREE(first);
    CPU_FREE(second);
    tb_cpu_binding_close(binding);
}

/* A machine as hwloc can be told to imagine it: two packages with memory of their own, in each two caches of two cores
 * of two threads. */
static void seats_are_told_level_by_level(void **state)
{
    char own[] = "3=0,2\n5=0-15\n6=1\n7=12-15\n";
    struct tb_cpu_binding *binding;
    struct tb_setup cores = setup_of(TB_BIND_CORE, "", ""), single = setup_of(TB_BIND_NONE, "", own);
    assert_int_equal(setenv("HWLOC_SYNTHETIC", "Package:2 [NUMANode] L3Cache:2 Core:2 PU:2", 1), 0);
    assert_int_equal(tb_cpu_binding_open(&binding, &cores), TB_OK);
    for (uint16_t i = 0; i < 10; i++) { /* and around again */
        struct tb_seat seat = tb_cpu_binding_seat(binding, i, i);
        uint16_t core = i % 8, expected[TB_SEAT_LEVELS] = {core / 4, core / 4, core / 2, core};
        assert_memory_equal(seat.at, expected, sizeof expected);
    }
    tb_cpu_binding_close(binding);
    static const struct {
        uint32_t rank;
        uint16_t at[TB_SEAT_LEVELS];
    } expected[] = {{3, {0, 0, 0, TB_SEAT_NONE}},
                    {5, {TB_SEAT_NONE, TB_SEAT_NONE, TB_SEAT_NONE, TB_SEAT_NONE}},
                    {6, {0, 0, 0, 0}},
                    {7, {1, 1, 3, TB_SEAT_NONE}}};
    assert_int_equal(tb_cpu_binding_open(&binding, &single), TB_OK);
    for (size_t i = 0; i < sizeof expected / sizeof expected[0]; i++) {
        struct tb_seat seat = tb_cpu_binding_seat(binding, expected[i].rank, 0);
        assert_memory_equal(seat.at, expected[i].at, sizeof seat.at);
    }
    tb_cpu_binding_close(binding);
    unsetenv("HWLOC_SYNTHETIC");
}

/* Ranks are bound all the same, and nobody knows where. */
static void without_hwloc_there_are_no_seats(void **state)
{
    char list[64];
    struct tb_cpu_binding *binding;
    uint32_t count = 7;
    snprintf(list, sizeof list, "%u", some_cpu());
    struct tb_setup setup = setup_of(TB_BIND_NONE, list, ""), cores = setup_of(TB_BIND_CORE, "", "");
    assert_int_equal(setenv("HWLOC_COMPONENTS", "stop", 1), 0); /* so that it cannot tell anything */
    assert_int_not_equal(tb_cpu_binding_open(&binding, &cores), TB_OK);
    assert_int_equal(tb_cpu_binding_open(&binding, &setup), TB_OK);
    assert_null(tb_cpu_binding_seats(binding, &setup, &count));
    assert_int_equal(count, 0);
    struct tb_seat seat = tb_cpu_binding_seat(binding, 4, 0);
    assert_memory_equal(&seat, &tb_seat_none, sizeof seat);
    tb_cpu_binding_close(binding);
    unsetenv("HWLOC_COMPONENTS");
}

/* Who is not named in a rank file has no seat, nor has a host whose ranks are not known. */
static void others_have_none(void **state)
{
    char own[64];
    struct tb_cpu_binding *binding;
    uint32_t count;
    snprintf(own, sizeof own, "4=%u\n", some_cpu());
    struct tb_setup setup = setup_of(TB_BIND_NONE, "", own);
    assert_true(tb_setup_binds(&setup));
    assert_int_equal(tb_cpu_binding_open(&binding, &setup), TB_OK);
    struct tb_seat *seats = tb_cpu_binding_seats(binding, &setup, &count);
    assert_int_equal(count, 3);
    assert_int_not_equal(seats[0].at[3], TB_SEAT_NONE);
    assert_memory_equal(&seats[1], &tb_seat_none, sizeof *seats);
    free(seats);
    setup.run_count = 0;
    assert_null(tb_cpu_binding_seats(binding, &setup, &count));
    assert_int_equal(count, 0);
    tb_cpu_binding_close(binding);
    setup.rank_cpus = (char *)"";
    assert_false(tb_setup_binds(&setup));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(processors_have_seats),
        cmocka_unit_test(cores_are_told_apart),
        cmocka_unit_test(seats_are_told_level_by_level),
        cmocka_unit_test(without_hwloc_there_are_no_seats),
        cmocka_unit_test(others_have_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
