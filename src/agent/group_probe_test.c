/* Tests of multicast among up to 200 hosts in virtual time, on networks that lose, are deaf or late. A failing seed
 * replays. */
#include "agent/group_probe.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define HOSTS_MOST 200u
#define MS         1000000u
#define WIRE_NS    100000u
#define QUEUE      (1u << 15)

/* A datagram under way to one host. */
struct flight {
    uint64_t due;
    uint32_t from, to, test;
    bool is_long;
    uint64_t heard, longest;
};

static struct world {
    struct tb_host hosts[HOSTS_MOST];
    struct tb_address_book book;
    struct tb_group_probe probes[HOSTS_MOST];
    struct tb_random random;
    uint64_t now;
    uint32_t loss;                           /* of a million */
    bool deaf[HOSTS_MOST], mute[HOSTS_MOST]; /* hear nothing; nobody hears them */
    bool short_only;                         /* long datagrams are lost */
    struct flight flights[QUEUE];
    uint32_t flight_count;
    uint32_t sent[HOSTS_MOST], reports[HOSTS_MOST];
    uint64_t reported_at[HOSTS_MOST];
} w;

static void open_world(uint32_t hosts, uint64_t seed)
{
    memset(&w, 0, sizeof w);
    tb_random_seed(&w.random, seed);
    w.book = (struct tb_address_book){.host_count = hosts, .hosts = w.hosts};
    for (uint32_t i = 0; i < hosts; i++)
        w.hosts[i].rank_count = 1;
    for (uint32_t i = 0; i < hosts; i++)
        tb_group_probe_open(&w.probes[i], &w.book, 0, i);
    w.now = MS;
}

static void send_all(uint32_t from)
{
    const struct tb_group_probe *probe = &w.probes[from];
    w.sent[from]++;
    for (uint32_t to = 0; to < w.book.host_count; to++)
        for (unsigned is_long = 0; is_long < 2; is_long++) {
            if (to == from || w.mute[from] || w.deaf[to] || (is_long && w.short_only) ||
                tb_random_below(&w.random, 1000000) < w.loss)
                continue;
            assert_true(w.flight_count < QUEUE);
            w.flights[w.flight_count++] = (struct flight){.due = w.now + WIRE_NS + tb_random_below(&w.random, WIRE_NS),
                                                          .from = from,
                                                          .to = to,
                                                          .test = probe->test,
                                                          .is_long = is_long,
                                                          .heard = probe->heard,
                                                          .longest = probe->longest};
        }
}

static void act(uint32_t host, unsigned what)
{
    if (what & TB_GROUP_PROBE_SEND)
        send_all(host);
    if (what & TB_GROUP_PROBE_REPORT) {
        w.reports[host]++;
        w.reported_at[host] = w.now;
    }
}

static void arrive(uint32_t at)
{
    struct flight f = w.flights[at];
    w.flights[at] = w.flights[--w.flight_count];
    act(f.to, tb_group_probe_hear(&w.probes[f.to], f.from, f.test, f.is_long, f.heard, f.longest));
}

/* Until nothing is to be done any more. */
static void run(void)
{
    for (;;) {
        uint64_t next = TB_NEVER;
        uint32_t flight = QUEUE, host = HOSTS_MOST;
        for (uint32_t i = 0; i < w.flight_count; i++)
            if (w.flights[i].due < next) {
                next = w.flights[i].due;
                flight = i;
            }
        for (uint32_t i = 0; i < w.book.host_count; i++)
            if (tb_group_probe_due(&w.probes[i]) < next) {
                next = tb_group_probe_due(&w.probes[i]);
                host = i;
            }
        if (next == TB_NEVER)
            return;
        w.now = next > w.now ? next : w.now;
        if (host < HOSTS_MOST)
            act(host, tb_group_probe_act(&w.probes[host], w.now));
        else
            arrive(flight);
    }
}

static void begin_all(uint32_t test)
{
    for (uint32_t i = 0; i < w.book.host_count; i++)
        tb_group_probe_begin(&w.probes[i], test, w.now);
}

static void where_all_is_well_little_is_sent(void **state)
{
    static const uint32_t counts[] = {2, 3, 16, 64};
    for (size_t c = 0; c < sizeof counts / sizeof counts[0]; c++) {
        open_world(counts[c], 1 + c);
        begin_all(7);
        uint64_t began = w.now;
        run();
        for (uint32_t i = 0; i < counts[c]; i++) {
            assert_true(w.probes[i].whole);
            assert_int_equal(w.reports[i], 1);
            assert_in_range(w.sent[i], 1, 4); /* what is sent first cannot say yet whom one has heard */
            assert_in_range(w.reported_at[i], began, began + 20 * (uint64_t)MS);
            assert_true(w.probes[i].heard == w.probes[i].all && w.probes[i].longest == w.probes[i].all);
        }
    }
}

static void of_more_hosts_than_64_some_only_listen(void **state)
{
    uint32_t probers = 0;
    open_world(HOSTS_MOST, 5);
    begin_all(1);
    run();
    for (uint32_t i = 0; i < HOSTS_MOST; i++) {
        assert_true(w.probes[i].whole);
        assert_int_equal(w.reports[i], 1);
        probers += w.sent[i] > 0;
    }
    assert_int_equal(probers, 64);
    assert_true(w.sent[0] > 0); /* spread from the first to the last */
    assert_int_equal(w.probes[0].probers.hosts[63], 63 * HOSTS_MOST / 64);
}

static void a_deaf_host_and_a_mute_one(void **state)
{
    open_world(5, 3);
    w.deaf[2] = true;
    w.mute[4] = true;
    begin_all(9);
    run();
    for (uint32_t i = 0; i < 5; i++) {
        assert_int_equal(w.reports[i], 1);
        assert_int_equal(w.reported_at[i], MS + (i == 4 ? w.reported_at[4] - MS : 100 * (uint64_t)MS));
        assert_int_equal(w.probes[i].heard, i == 2 ? 0 : w.probes[i].all & ~UINT64_C(16));
        assert_int_equal(w.sent[i], 7); /* somebody has never said that it heard this one */
    }
    assert_true(w.probes[4].whole); /* it hears everybody */
}

static void where_only_short_ones_pass(void **state)
{
    open_world(4, 3);
    w.short_only = true;
    begin_all(9);
    run();
    for (uint32_t i = 0; i < 4; i++) {
        assert_int_equal(w.probes[i].heard, w.probes[i].all);
        assert_int_equal(w.probes[i].longest, 0);
        assert_int_equal(w.reports[i], 1);
        assert_int_equal(w.reported_at[i], 101 * (uint64_t)MS);
    }
}

/* With a tenth lost practically every test succeeds, with a third nearly all between eight hosts do. */
static void losses_are_survived(void **state)
{
    static const struct {
        uint32_t loss, hosts, tests, most_bad;
    } cases[] = {{100000, 16, 200, 0}, {300000, 8, 200, 12}};
    for (size_t c = 0; c < 2; c++) {
        uint32_t bad = 0;
        for (uint32_t seed = 0; seed < cases[c].tests; seed++) {
            open_world(cases[c].hosts, 1000 * c + seed);
            w.loss = cases[c].loss;
            begin_all(seed + 1);
            run();
            bool whole = true;
            for (uint32_t i = 0; i < cases[c].hosts; i++) {
                assert_in_range(w.reports[i], 1, 2);
                whole = whole && w.probes[i].whole;
            }
            bad += !whole;
        }
        assert_in_range(bad, 0, cases[c].most_bad);
    }
}

/* One that hears of the test 150 ms after the others completes their reports, and makes all its rounds itself. */
static void who_is_late_is_heard_late(void **state)
{
    open_world(4, 3);
    for (uint32_t i = 0; i < 3; i++)
        tb_group_probe_begin(&w.probes[i], 4, w.now);
    run();
    for (uint32_t i = 0; i < 3; i++) {
        assert_int_equal(w.reports[i], 1);
        assert_false(w.probes[i].whole);
    }
    w.now = 151 * (uint64_t)MS;
    tb_group_probe_begin(&w.probes[3], 4, w.now);
    run();
    for (uint32_t i = 0; i < 3; i++) {
        assert_int_equal(w.reports[i], 2);
        assert_true(w.probes[i].whole);
    }
    assert_int_equal(w.reports[3], 1); /* those before it have made their rounds while it heard nothing */
    assert_int_equal(w.probes[3].heard, 0);
    assert_int_equal(w.sent[3], 7);
}

static void what_is_of_another_test_or_nobody_counts_not(void **state)
{
    open_world(3, 1);
    struct tb_group_probe *probe = &w.probes[0];
    assert_int_equal(tb_group_probe_due(probe), TB_NEVER);
    assert_int_equal(tb_group_probe_hear(probe, 1, 0, true, 0, 0), 0); /* none has begun */
    assert_int_equal(probe->heard, 0);
    tb_group_probe_begin(probe, 5, w.now);
    assert_int_equal(tb_group_probe_hear(probe, 1, 4, true, 0, 0), 0);
    assert_int_equal(tb_group_probe_hear(probe, 0, 5, true, 0, 0), 0); /* itself */
    assert_int_equal(tb_group_probe_hear(probe, 77, 5, true, 0, 0), 0);
    assert_int_equal(probe->heard, 0);
    assert_int_equal(tb_group_probe_hear(probe, 1, 5, true, 0, 0), 0);
    assert_int_equal(tb_group_probe_hear(probe, 2, 5, false, 0, 0), 0);
    assert_int_equal(probe->heard, 6);
    assert_int_equal(probe->longest, 2);
    assert_int_equal(tb_group_probe_hear(probe, 2, 5, true, 1, 1), TB_GROUP_PROBE_REPORT);
    assert_int_equal(probe->confirmed, 4);
    assert_int_equal(tb_group_probe_hear(probe, 2, 5, true, 1, 1), 0); /* once */
    tb_group_probe_begin(probe, 6, w.now);                             /* a later test knows nothing */
    assert_int_equal(probe->heard | probe->longest | probe->confirmed, 0);
    assert_false(probe->whole);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(where_all_is_well_little_is_sent),
        cmocka_unit_test(of_more_hosts_than_64_some_only_listen),
        cmocka_unit_test(a_deaf_host_and_a_mute_one),
        cmocka_unit_test(where_only_short_ones_pass),
        cmocka_unit_test(losses_are_survived),
        cmocka_unit_test(who_is_late_is_heard_late),
        cmocka_unit_test(what_is_of_another_test_or_nobody_counts_not),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
