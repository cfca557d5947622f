/* The watch over ranks' connections with other clusters, in virtual time: which ones it keeps, and for how long. */
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
    bool gone;
    uint32_t stalled;
} w;

static bool is_gone(void *context, uint32_t rank)
{
    return w.gone;
}

static void stalled(void *context, uint32_t host)
{
    w.stalled++;
}

static int open_world(void **state)
{
    const struct tb_wan_watch_events events = {.is_gone = is_gone, .stalled = stalled};
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
    assert_int_equal(w.stalled, 0);
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
        TEST(connections_end_with_their_ranks),
        TEST(half_of_the_descriptors_are_for_copies),
    };
    tb_param_load();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
