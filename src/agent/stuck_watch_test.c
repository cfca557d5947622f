/* The watch over connections that pass nothing, in virtual time: when the launcher hears of them. */
#include "agent/stuck_watch.h"
#include "remote/virtual_loop_test.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#define SECOND UINT64_C(1000000000)
#define HERE   0u
#define THERE  1u

static struct world {
    struct virtual_loop time;
    struct tb_host hosts[2];
    struct tb_rank_range ranges[2];
    struct tb_address_book book;
    struct tb_member member;
    struct tb_stuck_watch watch;
    bool silent;
    uint64_t healed;
    uint32_t stuck, passes;
    uint64_t told_time;
    char ranks[640];
} w;

static bool answers(void *context, uint32_t host, uint64_t *since)
{
    assert_int_equal(host, THERE);
    *since = w.healed;
    return !w.silent;
}

static void report(void *context, uint32_t host, bool stuck, uint64_t time, const char *ranks)
{
    assert_int_equal(host, THERE);
    w.stuck += stuck;
    w.passes += !stuck;
    w.told_time = time;
    snprintf(w.ranks, sizeof w.ranks, "%s", ranks);
}

static int open_world(void **state)
{
    const struct tb_stuck_watch_events events = {.answers = answers, .report = report};
    memset(&w, 0, sizeof w);
    snprintf(w.hosts[HERE].name, sizeof w.hosts[HERE].name, "here");
    snprintf(w.hosts[THERE].name, sizeof w.hosts[THERE].name, "there");
    w.ranges[HERE] = (struct tb_rank_range){.count = 2, .host = HERE};
    w.ranges[THERE] = (struct tb_rank_range){.first_rank = 2, .count = 2, .host = THERE};
    w.book = (struct tb_address_book){
        .job = 7, .ranks = 4, .host_count = 2, .range_count = 2, .hosts = w.hosts, .ranges = w.ranges};
    w.member = (struct tb_member){
        .loop = &w.time.loop, .self = {7, TB_PROC_AGENT}, .name = "here", .running = true, .book = &w.book};
    tb_stuck_watch_open(&w.watch, &w.member, &events);
    int rc = virtual_loop_open(&w.time);
    w.time.now = 1000 * SECOND;
    return rc == TB_OK ? 0 : -1;
}

static int close_world(void **state)
{
    tb_stuck_watch_close(&w.watch);
    virtual_loop_close(&w.time);
    return 0;
}

/* What a rank says at a look, and two seconds until the next one. */
static void look(uint32_t rank, uint32_t other, uint64_t tried)
{
    struct tb_job_waiting waiting = {.count = 1, .hosts = {THERE}, .stuck_count = other != UINT32_MAX};
    waiting.stuck[0].rank = other;
    waiting.stuck[0].tried = tried;
    tb_stuck_watch_take(&w.watch, rank, &waiting);
    for (int i = 0; i < 8; i++)
        virtual_loop_pass(&w.time, SECOND / 4);
}

static void what_holds_is_told(void **state)
{
    look(0, 2, SECOND);
    assert_int_equal(w.stuck, 0);
    look(0, 2, SECOND);
    assert_in_range(w.stuck, 1, 2); /* within four seconds */
    assert_string_equal(w.ranks, "rank 0 on here and rank 2 on there");
    look(1, 3, SECOND);
    look(0, 2, SECOND);
    assert_in_range(w.stuck, 4, 8); /* again and again */
    assert_in_range(w.told_time, 5 * SECOND, 8 * SECOND);
    assert_string_equal(w.ranks, "rank 0 on here and rank 2 on there (and 1 other pair there)");
    look(0, UINT32_MAX, 0);
    assert_int_equal(w.passes, 0);
    assert_string_equal(w.ranks, "rank 1 on here and rank 3 on there");
    look(1, UINT32_MAX, 0);
    assert_int_equal(w.passes, 1);
    assert_false(tb_timer_is_set(&w.watch.tick));
}

static void what_passes_soon_is_not_told(void **state)
{
    for (int i = 0; i < 5; i++) {
        look(0, 2, SECOND);
        look(0, UINT32_MAX, 0);
    }
    assert_int_equal(w.stuck + w.passes, 0);
}

/* That the host is silent is another story; and when it answers again, the kernel may not have tried since then. */
static void silent_hosts_are_another_story(void **state)
{
    w.silent = true;
    for (int i = 0; i < 10; i++)
        look(0, 2, i * 2 * SECOND);
    w.silent = false;
    w.healed = w.time.now;
    for (int i = 0; i < 10; i++)
        look(0, 2, (20 + i * 2) * SECOND);
    assert_int_equal(w.stuck + w.passes, 0);
    look(0, 2, SECOND); /* now it has */
    look(0, 2, 3 * SECOND);
    assert_in_range(w.stuck, 1, 2);
    w.silent = true; /* whatever happens now, it is not that the connection passes again */
    for (int i = 0; i < 5; i++)
        look(0, 2, SECOND);
    assert_in_range(w.stuck, 6, 12);
    assert_int_equal(w.passes, 0);
}

/* The word of a rank does not hold for ever. */
static void complaints_grow_stale(void **state)
{
    look(0, 2, SECOND);
    look(0, 2, SECOND);
    for (int i = 0; i < 60; i++)
        virtual_loop_pass(&w.time, SECOND / 4);
    assert_int_equal(w.passes, 1);
    assert_false(tb_timer_is_set(&w.watch.tick));
}

/* Nonsense is not believed: ranks that there are not, or that are here. */
static void others_must_exist(void **state)
{
    look(0, 99, SECOND);
    look(0, 1, SECOND);
    look(0, 1, SECOND);
    assert_int_equal(w.stuck, 0);
    assert_true(tb_list_empty(&w.watch.hosts));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_world, close_world)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_holds_is_told),
        TEST(what_passes_soon_is_not_told),
        TEST(silent_hosts_are_another_story),
        TEST(complaints_grow_stale),
        TEST(others_must_exist),
    };
    tb_param_load();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
