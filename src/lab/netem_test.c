#include "lab/netem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static char *text;
static size_t length;

static FILE *begin(void)
{
    FILE *to = open_memstream(&text, &length);
    assert_non_null(to);
    return to;
}

static void expect(FILE *to, const char *expected)
{
    assert_int_equal(fclose(to), 0);
    assert_string_equal(text, expected);
    free(text);
}

static void a_pipe_has_all_that_a_wire_has(void **state)
{
    FILE *to = begin();
    struct tb_grid_wire wire = {
        .bandwidth = 10000000, .latency = 75000001, .jitter = 2500000, .loss = 5, .reorder = 1000000};
    tb_netem_write_pipe(to, "port7", 10, &wire);
    expect(to, "class add dev port7 parent 1: classid 1:a htb rate 100000000000bit quantum 1538\n"
               "qdisc add dev port7 parent 1:a handle b: netem limit 185 delay 75000.001us 2500.000us loss random "
               "0.0005% reorder 100.0000% rate 10000000bit\n");
}

static void a_pipe_without_limits(void **state)
{
    FILE *to = begin();
    tb_netem_write_pipe(to, "p", 1, &(struct tb_grid_wire){.latency = UINT64_MAX, .jitter = 5, .reorder = 5});
    expect(to, "class add dev p parent 1: classid 1:1 htb rate 100000000000bit quantum 1538\n"
               "qdisc add dev p parent 1:1 handle 2: netem limit 100000 delay 0.000us rate 100000000000bit\n");
}

/* 64 KB wait at least, however short the wire. */
static void the_queue_is_that_of_a_pipe(void **state)
{
    FILE *to = begin();
    tb_netem_write_change(to, "p", 1, &(struct tb_grid_wire){.bandwidth = 10000000, .latency = 0}, false);
    expect(to, "qdisc change dev p parent 1:1 handle 2: netem limit 43 delay 0.000us rate 10000000bit\n");
}

static void a_cut_pipe_loses_all_and_heals(void **state)
{
    struct tb_grid_wire wire = {.latency = 1000, .loss = 12345};
    FILE *to = begin();
    tb_netem_write_change(to, "p", 1, &wire, true);
    tb_netem_write_change(to, "p", 1, &wire, false);
    expect(to, "qdisc change dev p parent 1:1 handle 2: netem limit 100000 delay 1.000us loss random 100.0000% rate "
               "100000000000bit\n"
               "qdisc change dev p parent 1:1 handle 2: netem limit 100000 delay 1.000us loss random 1.2345% rate "
               "100000000000bit\n");
}

static void frames_are_told_apart_by_source(void **state)
{
    const uint8_t address[6] = {2, 0, 0x0a, 0xff, 0, 1};
    FILE *to = begin();
    tb_netem_write_source(to, "p", 17, address);
    expect(to, "filter add dev p parent 1: protocol all prio 3 u32 match ether src 02:00:0a:ff:00:01 classid 1:11\n");
}

static void a_port_lets_resolution_pass(void **state)
{
    FILE *to = begin();
    tb_netem_write_port(to, "p");
    assert_int_equal(fclose(to), 0);
    assert_non_null(strstr(text, "stab linklayer ethernet overhead 24 mpu 84 htb\n"));
    assert_non_null(strstr(text, "protocol arp prio 1 u32 match u32 0 0 classid 1:\n"));
    assert_non_null(strstr(text, "match ip6 protocol 58 0xff match u8 135 0xff at 40 classid 1:\n"));
    free(text);
}

/* Whatever the kernel has, asking leaves no trace and gives the same answer. */
static void the_probe_can_be_repeated(void **state)
{
    assert_int_equal(tb_netem_probe(), tb_netem_probe());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_pipe_has_all_that_a_wire_has),  cmocka_unit_test(a_pipe_without_limits),
        cmocka_unit_test(the_queue_is_that_of_a_pipe),     cmocka_unit_test(a_cut_pipe_loses_all_and_heals),
        cmocka_unit_test(frames_are_told_apart_by_source), cmocka_unit_test(a_port_lets_resolution_pass),
        cmocka_unit_test(the_probe_can_be_repeated),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
