/* The watch over those who are to answer, in virtual time, with no streams at all: who is asked, when somebody is
 * suspect, what the launcher hears. */
#include "agent/link_watch.h"
#include "agent/packet_size.h"
#include "remote/virtual_loop_test.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#define SECOND UINT64_C(1000000000)
#define TICK   (SECOND / 4)
#define HOSTS  40u
#define BESIDE 1u /* a host that can be reached, */
#define HOP    2u /* one that passes things on, */
#define BEHIND 3u /* to those from here */

static struct world {
    struct virtual_loop time;
    struct tb_host hosts[HOSTS];
    struct tb_address_book book;
    struct tb_host_route ways[2];
    struct tb_host_routes routes;
    struct tb_member member;
    struct tb_link_watch watch;
    bool answers;      /* everybody, at once */
    bool left;         /* everybody */
    uint64_t progress; /* what is told of everybody */
    uint64_t stuck;    /* likewise */
    bool again;        /* it was asked for so after a silence */
    uint32_t asked[HOSTS], about[HOSTS];
    uint32_t suspect_count, reports, up;
    uint64_t silent_at; /* when the first report came */
    uint64_t time_told;
    char why[TB_LINK_WATCH_STORY];
} w;

static int ask(void *context, uint32_t host, uint32_t about)
{
    w.asked[host]++;
    if (about != 0)
        w.about[TB_HOP_ABOUT_HOST(about)]++;
    if (w.answers)
        tb_link_watch_heard(&w.watch, host);
    return w.left ? TB_ERR_CLOSED : TB_OK;
}

static void ask_no_more(void *context, uint32_t host) {}

static uint64_t progress(void *context, uint32_t host, bool again)
{
    w.again = w.again || again;
    return w.progress;
}

static uint64_t stuck_since(void *context, uint32_t host, const char **why)
{
    *why = TB_PACKET_STORY;
    return w.stuck;
}

static void listen_again(void *context) {}

static void suspect(void *context, uint32_t host, bool silent)
{
    w.suspect_count += silent ? 1 : (uint32_t)-1;
}

static void report(void *context, uint32_t host, bool silent, uint64_t time, const char *why)
{
    if (silent && w.reports++ == 0)
        w.silent_at = w.time.now;
    if (!silent)
        w.up++;
    w.time_told = time;
    snprintf(w.why, sizeof w.why, "%s", why);
}

static int open_world(void **state)
{
    const struct tb_link_watch_events events = {.ask = ask,
                                                .ask_no_more = ask_no_more,
                                                .progress = progress,
                                                .stuck_since = stuck_since,
                                                .listen = listen_again,
                                                .suspect = suspect,
                                                .report = report};
    memset(&w, 0, sizeof w);
    w.book = (struct tb_address_book){.ranks = HOSTS, .host_count = HOSTS, .hosts = w.hosts};
    for (uint32_t i = BEHIND; i < HOSTS; i++)
        w.hosts[i].kind = 1;
    w.ways[0] = (struct tb_host_route){.means = TB_HOST_ROUTE_DIRECT};
    w.ways[1] = (struct tb_host_route){.means = TB_HOST_ROUTE_RELAYED, .hop_count = 1, .hops = {HOP}};
    w.routes = (struct tb_host_routes){.kind_count = 2, .routes = w.ways};
    w.member = (struct tb_member){.loop = &w.time.loop, .running = true, .book = &w.book, .routes = &w.routes};
    tb_link_watch_open(&w.watch, &w.member, &events);
    return virtual_loop_open(&w.time) == TB_OK ? 0 : -1;
}

static int close_world(void **state)
{
    tb_link_watch_close(&w.watch);
    virtual_loop_close(&w.time);
    return 0;
}

static void pass(double seconds)
{
    for (unsigned i = 0; i < (unsigned)(4 * seconds); i++)
        virtual_loop_pass(&w.time, TICK);
}

static void want(uint32_t host)
{
    tb_link_watch_want(&w.watch, 0, &host, host == UINT32_MAX ? 0 : 1);
}

/* One who is waited for and answers is asked once a second; nobody hears of it, and it ends. */
static void who_answers_is_nobodys_business(void **state)
{
    w.answers = true;
    for (int i = 0; i < 6; i++) {
        want(BESIDE);
        pass(5);
    }
    assert_in_range(w.asked[BESIDE], 25, 35);
    want(UINT32_MAX);
    pass(2);
    assert_false(tb_timer_is_set(&w.watch.tick)); /* and no time is spent on it */
    assert_int_equal(w.reports + w.up + w.suspect_count, 0);
}

/* A rank that says nothing more waits no longer. */
static void wishes_are_forgotten(void **state)
{
    w.answers = true;
    want(BESIDE);
    pass(30);
    assert_in_range(w.asked[BESIDE], 8, 14);
    assert_false(tb_timer_is_set(&w.watch.tick));
}

static void silence_is_told_and_its_end(void **state)
{
    uint64_t began = w.time.now;
    want(BESIDE);
    pass(3);
    assert_int_equal(w.reports, 0);
    tb_link_watch_lost(&w.watch, BESIDE, "Connection refused");
    pass(17);
    assert_in_range(w.silent_at - began, 3 * SECOND, 4 * SECOND);
    assert_in_range(w.reports, 14, 18); /* once a second, though the wish has ended: somebody must see it heal */
    assert_in_range(w.time_told, 15 * SECOND, 20 * SECOND);
    assert_string_equal(w.why, "Connection refused");
    assert_int_equal(w.suspect_count, 1);
    uint64_t answers_since = 1;
    assert_false(tb_link_watch_answers(&w.watch, BESIDE, &answers_since));
    assert_int_equal(answers_since, 0);
    tb_link_watch_heard(&w.watch, BESIDE);
    assert_true(tb_link_watch_answers(&w.watch, BESIDE, &answers_since));
    assert_true(answers_since == w.time.now && tb_link_watch_answers(&w.watch, HOP, &answers_since));
    assert_int_equal(answers_since, 0);
    assert_int_equal(w.up, 1);
    assert_int_equal(w.suspect_count, 0);
    uint32_t reports = w.reports;
    assert_false(w.again);
    w.answers = true;
    pass(20);
    assert_true(w.again && w.reports == reports && w.up == 1);
    assert_false(tb_timer_is_set(&w.watch.tick));
}

/* It answers, and nothing else passes: that is no better than silence, whatever is heard, until something does. */
static void answers_alone_are_not_enough(void **state)
{
    w.answers = true;
    want(BESIDE);
    pass(5);
    assert_int_equal(w.reports, 0);
    w.stuck = w.time.now - 2 * SECOND;
    pass(20);
    assert_in_range(w.reports, 18, 21); /* once a second, though the wish has ended */
    assert_in_range(w.time_told, 20 * SECOND, 22 * SECOND);
    assert_non_null(strstr(w.why, "MTU"));
    assert_int_equal(w.suspect_count, 1);
    assert_int_equal(w.up, 0);
    w.stuck = 0;
    pass(1);
    assert_int_equal(w.up, 1);
    assert_int_equal(w.suspect_count, 0);
    pass(20);
    assert_int_equal(w.up, 1);
    assert_false(tb_timer_is_set(&w.watch.tick));
}

/* Who was sent something is asked even if nobody says that he waits; who is heard of anyway is not asked. */
static void what_is_used_is_watched(void **state)
{
    for (int i = 0; i < 40; i++) {
        tb_link_watch_used(&w.watch, BESIDE);
        tb_link_watch_heard(&w.watch, BESIDE);
        pass(0.25);
    }
    assert_int_equal(w.asked[BESIDE], 0);
    tb_link_watch_used(&w.watch, BESIDE);
    pass(6);
    assert_true(w.asked[BESIDE] > 0 && w.reports > 0);
}

/* A slow wire: as long as what was sent before the question still arrives, there is no silence. */
static void slow_is_not_silent(void **state)
{
    w.ways[0].latency = SECOND; /* and a long way, there and back */
    for (int i = 0; i < 60; i++) {
        want(BESIDE);
        w.progress = w.time.now;
        pass(1);
    }
    assert_int_equal(w.reports, 0);
    uint64_t began = w.time.now;
    pass(8);
    assert_in_range(w.silent_at - began, 4 * SECOND, 6 * SECOND);
}

/* We were stopped for eight seconds: nobody is blamed for that. */
static void one_who_was_stopped_blames_nobody(void **state)
{
    for (int i = 0; i < 10; i++) {
        want(BESIDE);
        virtual_loop_pass(&w.time, 8 * SECOND);
        tb_link_watch_heard(&w.watch, BESIDE);
    }
    assert_int_equal(w.reports, 0);
}

/* Those behind another one: that one is asked, and told of each in turn; it passes that on. */
static void hosts_behind_others(void **state)
{
    uint32_t hosts[TB_WAITING_HOSTS];
    w.answers = true;
    for (uint32_t i = 0; i < TB_WAITING_HOSTS; i++)
        hosts[i] = BEHIND + 2 * i;
    for (int i = 0; i < 8; i++) {
        tb_link_watch_want(&w.watch, 0, hosts, TB_WAITING_HOSTS);
        pass(4);
    }
    for (uint32_t i = 0; i < TB_WAITING_HOSTS; i++) {
        assert_int_equal(w.asked[hosts[i]], 0);
        assert_in_range(w.about[hosts[i]], 1, 3);
    }
    tb_link_watch_want(&w.watch, 0, NULL, 0);
    pass(5);
    memset(w.asked, 0, sizeof w.asked);
    memset(w.about, 0, sizeof w.about);
    tb_link_watch_pass_on(&w.watch, BEHIND, 3); /* an agent before us asks */
    pass(3);
    assert_true(w.asked[HOP] >= 2 && w.about[BEHIND] >= 2);
    pass(10);
    assert_in_range(w.asked[HOP], 2, 7); /* it must ask again */
    memset(w.asked, 0, sizeof w.asked);
    tb_link_watch_pass_on(&w.watch, BEHIND, TB_HOP_PASSES_MOST); /* in circles */
    tb_link_watch_pass_on(&w.watch, HOSTS, 0);
    tb_link_watch_pass_on(&w.watch, UINT32_MAX, 0);
    pass(3);
    assert_int_equal(w.asked[HOP], 0);
}

/* One who has left in good order is not missed. */
static void who_has_left_is_not_missed(void **state)
{
    w.left = true;
    want(BESIDE);
    pass(10);
    assert_int_equal(w.reports + w.up, 0);
    w.left = false;
    tb_link_watch_used(&w.watch, BESIDE);
    pass(5);
    assert_int_equal(w.suspect_count, 1);
    w.left = true;
    pass(5);
    assert_int_equal(w.suspect_count, 0);
    assert_int_equal(w.up, 1);
}

/* While the job is being ended nobody is told. */
static void nothing_is_told_at_the_end(void **state)
{
    w.member.running = false;
    want(BESIDE);
    pass(20);
    assert_int_equal(w.reports, 0);
    tb_link_watch_heard(&w.watch, BESIDE);
    assert_int_equal(w.up, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_world, close_world)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(who_answers_is_nobodys_business),   TEST(wishes_are_forgotten),    TEST(silence_is_told_and_its_end),
        TEST(answers_alone_are_not_enough),      TEST(what_is_used_is_watched), TEST(slow_is_not_silent),
        TEST(one_who_was_stopped_blames_nobody), TEST(hosts_behind_others),     TEST(who_has_left_is_not_missed),
        TEST(nothing_is_told_at_the_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
