/* The watch over wide links, in virtual time: what it tells of links that are down, and which connections it keeps. */
#include "agent/loopback.h"
#include "remote/virtual_loop_test.h"
#include "agent/wan_watch.h"

#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include <cmocka.h>

#define SECOND 1000000000ull

static struct world {
    struct virtual_loop time;
    struct tb_host hosts[2];
    struct tb_address_book book;
    struct tb_host_routes routes;
    struct tb_member member;
    struct tb_wan_watch watch;
    bool awaited, gone;
    uint32_t asked, asked_no_more, down, at_last, up;
    uint64_t down_for;
    char why[400];
} w;

static bool is_awaited(void *context, uint32_t host)
{
    return w.awaited;
}

static void ask(void *context, uint32_t host)
{
    w.asked++;
}

static void ask_no_more(void *context, uint32_t host)
{
    w.asked_no_more++;
}

static bool is_gone(void *context, uint32_t rank)
{
    return w.gone;
}

static void link_down(void *context, uint32_t host, uint64_t time, const char *why, bool at_last)
{
    assert_int_equal(host, 1);
    w.down++;
    w.at_last += at_last;
    w.down_for = time;
    snprintf(w.why, sizeof w.why, "%s", why);
}

static void link_up(void *context, uint32_t host)
{
    assert_int_equal(host, 1);
    w.up++;
}

static void stuck(void *context, uint32_t host, uint64_t time)
{
    fail();
}

static int open_world(void **state)
{
    const struct tb_wan_watch_events events = {.is_awaited = is_awaited,
                                               .ask = ask,
                                               .ask_no_more = ask_no_more,
                                               .is_gone = is_gone,
                                               .down = link_down,
                                               .up = link_up,
                                               .stuck = stuck};
    memset(&w, 0, sizeof w);
    w.book = (struct tb_address_book){.ranks = 2, .host_count = 2, .hosts = w.hosts};
    w.member = (struct tb_member){.loop = &w.time.loop, .running = true, .book = &w.book, .routes = &w.routes};
    tb_param.link_patience = 60 * SECOND;
    tb_wan_watch_open(&w.watch, &w.member, &events);
    return virtual_loop_open(&w.time) == TB_OK ? 0 : -1;
}

static int close_world(void **state)
{
    tb_wan_watch_close(&w.watch);
    virtual_loop_close(&w.time);
    return 0;
}

static void pass(unsigned seconds)
{
    for (unsigned i = 0; i < 2 * seconds; i++)
        virtual_loop_pass(&w.time, SECOND / 2);
}

/* A short silence is nobody's business; a longer one is told once, and its end. */
static void a_link_goes_down_and_comes_back(void **state)
{
    w.awaited = true;
    tb_wan_watch_lost(&w.watch, 1, w.time.now, "  no answer");
    pass(4);
    tb_wan_watch_found(&w.watch, 1);
    pass(10);
    assert_int_equal(w.down + w.up, 0);
    tb_wan_watch_lost(&w.watch, 1, w.time.now, "  no answer");
    pass(4);
    tb_wan_watch_lost(&w.watch, 1, w.time.now, " still none"); /* since the first time nevertheless */
    pass(2);
    assert_int_equal(w.down, 1);
    assert_int_equal(w.at_last, 0);
    assert_string_equal(w.why, "still none");
    pass(20);
    assert_int_equal(w.down, 1);
    tb_wan_watch_found(&w.watch, 1);
    tb_wan_watch_found(&w.watch, 1);
    assert_int_equal(w.up, 1);
    pass(100);
    assert_int_equal(w.down, 1);
}

static void patience_has_an_end(void **state)
{
    w.awaited = true;
    tb_wan_watch_lost(&w.watch, 1, w.time.now, "no answer");
    pass(59);
    assert_int_equal(w.at_last, 0);
    pass(2);
    assert_true(w.at_last > 0);
    assert_true(w.down_for > 60 * SECOND);
}

/* Once the job is being ended, nobody is told. */
static void nothing_is_told_at_the_end(void **state)
{
    w.awaited = true;
    w.member.running = false;
    tb_wan_watch_lost(&w.watch, 1, w.time.now, "no answer");
    pass(100);
    assert_int_equal(w.down, 0);
}

/* Nobody needs the link any more: then it does not matter. */
static void who_needs_nothing_misses_nothing(void **state)
{
    w.awaited = true;
    tb_wan_watch_lost(&w.watch, 1, w.time.now, "no answer");
    pass(6);
    assert_int_equal(w.down, 1);
    w.awaited = false;
    pass(1);
    assert_int_equal(w.up, 1);
    assert_true(w.asked_no_more > 0);
    pass(100);
    assert_int_equal(w.at_last, 0);
    assert_false(tb_timer_is_set(&w.watch.tick)); /* and no time is spent on it */
}

/* A connection is kept until all has arrived; a rank that has ended says no more, though a copy of its socket is here.
 */
static void connections_end_with_their_ranks(void **state)
{
    struct tb_loopback loopback;
    int pair[2];
    char byte;
    for (int way = 0; way < 2; way++) {
        tb_loopback_open(&loopback);
        assert_int_equal(tb_loopback_pair(&loopback, "here", pair), TB_OK);
        w.gone = false;
        tb_wan_watch_add(&w.watch, 0, 1, pair[0]);
        close(pair[0]); /* the rank has it, and ends */
        pass(2);
        assert_int_equal(w.watch.connection_count, 1);
        assert_int_equal(recv(pair[1], &byte, 1, MSG_DONTWAIT), -1);
        assert_int_equal(errno, EAGAIN);
        tb_wan_watch_forget(&w.watch, 5); /* another one */
        assert_int_equal(recv(pair[1], &byte, 1, MSG_DONTWAIT), -1);
        if (way == 0)
            tb_wan_watch_forget(&w.watch, 0);
        else
            w.gone = true; /* its process is, though what has started it lives on */
        pass(1);
        assert_int_equal(recv(pair[1], &byte, 1, 0), 0);
        for (int i = 0; i < 100 && w.watch.connection_count > 0; i++) {
            poll(NULL, 0, 1); /* until the kernel has the acknowledgement */
            pass(1);
        }
        assert_int_equal(w.watch.connection_count, 0);
        assert_false(tb_timer_is_set(&w.watch.tick));
        close(pair[1]);
        tb_loopback_close(&loopback);
    }
    assert_int_equal(w.asked + w.down, 0); /* nothing was stalled */
}

static void set_descriptors(rlim_t most)
{
    struct rlimit limit;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    limit.rlim_cur = most;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

/* Half of the descriptors are for copies of sockets; what counts is how many there may be now, since an agent raises
 * its limit when it begins. */
static void half_of_the_descriptors_are_for_copies(void **state)
{
    int pair[2];
    close_world(NULL);
    set_descriptors(64);
    assert_int_equal(open_world(NULL), 0);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    set_descriptors(200);
    for (uint32_t i = 1; i <= 100; i++) {
        tb_wan_watch_add(&w.watch, 0, 1, pair[0]);
        assert_int_equal(w.watch.connection_count, i);
    }
    tb_wan_watch_add(&w.watch, 0, 1, pair[0]);
    assert_int_equal(w.watch.connection_count, 100);
    close(pair[0]);
    close(pair[1]);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_world, close_world)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_link_goes_down_and_comes_back),  TEST(patience_has_an_end),
        TEST(nothing_is_told_at_the_end),       TEST(who_needs_nothing_misses_nothing),
        TEST(connections_end_with_their_ranks), TEST(half_of_the_descriptors_are_for_copies),
    };
    tb_param_load();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
