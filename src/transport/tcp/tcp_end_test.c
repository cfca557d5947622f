/* tcp: goodbyes, breaks, refusals and processes that are dropped. */
#include "transport/tcp/tcp_test.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static void goodbye_comes_last(void **state)
{
    join_sides(&a, &b, TB_STREAM_SHORT, 0);
    join_sides(&a, &b, TB_STREAM_BULK, 0);
    char *bytes = pattern(100000, 6);
    assert_int_equal(send_plain(&a, TB_STREAM_BULK, bytes, 100000, 1, NULL), TB_OK);
    assert_int_equal(send_plain(&a, TB_STREAM_SHORT, bytes, 1000, 2, NULL), TB_OK);
    poll_until(&b.opened, 1);
    side_close(&a);
    for (int i = 0; i < 1000000 && b.broken == 0; i++)
        side_poll(&b);
    assert_int_equal(b.frames, 2);
    assert_int_equal(b.broken, TB_ERR_CLOSED);
    assert_non_null(strstr(b.story, "goodbye"));
    assert_int_equal(send_plain(&b, TB_STREAM_SHORT, "x", 1, 1, NULL), TB_ERR_PEER);
    assert_int_equal(send_plain(&b, TB_STREAM_BULK, "x", 1, 1, NULL), TB_ERR_PEER);
    assert_int_equal(b.asked[TB_STREAM_SHORT] + b.asked[TB_STREAM_BULK], 0);
    int ends[2];
    socket_pair(ends, 0);
    assert_true(tb_transport_tcp.adopt(b.transport, a.self, TB_STREAM_SHORT, ends[0]) < 0);
    close(ends[1]);
    free(bytes);
}

/* The other side has connected, written and left, and our end of that connection comes to us only now. */
static void goodbye_waits_for_arrivals(void **state)
{
    int ends[2];
    join_sides(&a, &b, TB_STREAM_BULK, 0);
    poll_until(&b.opened, 1);
    socket_pair(ends, 0);
    assert_int_equal(tb_transport_tcp.adopt(a.transport, b.self, TB_STREAM_SHORT, ends[0]), TB_OK);
    assert_int_equal(send_plain(&a, TB_STREAM_SHORT, "late", 4, 1, NULL), TB_OK);
    side_close(&a);
    for (int i = 0; i < 1000; i++)
        side_poll(&b);
    assert_int_equal(b.broken, 0);
    assert_int_equal(tb_transport_tcp.adopt(b.transport, a.self, TB_STREAM_SHORT, ends[1]), TB_OK);
    for (int i = 0; i < 1000000 && b.broken == 0; i++)
        side_poll(&b);
    assert_int_equal(b.frames, 1);
    assert_int_equal(b.broken, TB_ERR_CLOSED);
}

/* Nobody else is blamed for a buffer that is not there: its owner ends as by any other use of it. */
static void bytes_that_cannot_be_read(void **state)
{
    const size_t length = 100000;
    int status = 0;
    void *bytes = mmap(NULL, length, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(bytes, MAP_FAILED);
    join_sides(&a, &b, TB_STREAM_BULK, 0);
    pid_t child = fork();
    if (child == 0) {
        const struct rlimit none = {0, 0};
        setrlimit(RLIMIT_CORE, &none);
        signal(SIGSEGV, SIG_DFL);
        send_plain(&a, TB_STREAM_BULK, bytes, length, 1, NULL);
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGSEGV);
    munmap(bytes, length);
}

/* Closing with unread bytes must not destroy what was sent before. */
static void closing_is_orderly(void **state)
{
    join_sides(&a, &b, TB_STREAM_SHORT, 0);
    poll_until(&b.opened, 1);
    char *bytes = pattern(60000, 7);
    for (int i = 0; i < 5; i++)
        assert_int_equal(send_plain(&b, TB_STREAM_SHORT, bytes, 10000, (uint64_t)i, NULL), TB_OK);
    for (int i = 0; i < 3; i++)
        assert_int_equal(send_plain(&a, TB_STREAM_SHORT, bytes, 20000, (uint64_t)i, NULL), TB_OK);
    side_close(&a);
    /* Too late: these reach a closed socket, and a reset comes back. */
    assert_int_equal(send_plain(&b, TB_STREAM_SHORT, bytes, 100, 5, NULL), TB_OK);
    usleep(2000);
    int result = TB_OK;
    for (int i = 0; i < 10 && result == TB_OK; i++)
        result = send_plain(&b, TB_STREAM_SHORT, bytes, 100, 6, NULL);
    assert_int_equal(result, TB_ERR_PEER);
    for (int i = 0; i < 1000000 && b.broken == 0; i++)
        side_poll(&b);
    assert_int_equal(b.frames, 3);
    assert_int_equal(b.broken, TB_ERR_CLOSED);
    free(bytes);
}

/* What is long lets everything else go first also in front of the host's own port, where Linux looks at this. */
static void long_messages_are_not_urgent(void **state)
{
    for (int stream = TB_STREAM_SHORT; stream <= TB_STREAM_BULK; stream++) {
        int ends[2], priority = -1;
        socklen_t size = sizeof(priority);
        socket_pair(ends, 0);
        assert_int_equal(tb_transport_tcp.adopt(a.transport, b.self, (enum tb_stream)stream, ends[0]), TB_OK);
        assert_int_equal(getsockopt(ends[0], SOL_SOCKET, SO_PRIORITY, &priority, &size), 0);
        assert_int_equal(priority, stream == TB_STREAM_BULK ? 2 : 0);
        close(ends[1]);
    }
}

static void breaks_are_told_with_both_ends(void **state)
{
    int ends[2];
    socket_pair(ends, 0);
    assert_int_equal(tb_transport_tcp.adopt(a.transport, b.self, TB_STREAM_SHORT, ends[0]), TB_OK);
    struct sockaddr_in there = {0};
    socklen_t size = sizeof(there);
    char port[16];
    getsockname(ends[1], (struct sockaddr *)&there, &size);
    snprintf(port, sizeof(port), ":%u)", ntohs(there.sin_port));
    assert_int_equal(send_plain(&a, TB_STREAM_SHORT, "x", 1, 1, NULL), TB_OK);
    side_poll(&a);
    assert_int_equal(a.broken, 0);
    struct linger hard = {1, 0};
    setsockopt(ends[1], SOL_SOCKET, SO_LINGER, &hard, sizeof(hard));
    close(ends[1]);
    for (int i = 0; i < 1000000 && a.broken == 0; i++)
        side_poll(&a);
    assert_int_equal(a.broken, TB_ERR_PEER);
    assert_non_null(strstr(a.story, "rank 0 (127.0.0.1:"));
    assert_non_null(strstr(a.story, "rank 1 (127.0.0.1:"));
    assert_non_null(strstr(a.story, port));
    assert_non_null(strstr(a.story, strerror(ECONNRESET)));
    assert_int_equal(send_plain(&a, TB_STREAM_BULK, "x", 1, 1, NULL), TB_ERR_PEER);
    assert_int_equal(a.asked[TB_STREAM_BULK], 0);
}

/* A child of the user's program may hold the socket too, so that closing ours does not end it. */
static void sockets_may_be_held_elsewhere(void **state)
{
    int ends[2];
    socket_pair(ends, 0);
    int held = dup(ends[0]);
    assert_int_equal(tb_transport_tcp.adopt(a.transport, b.self, TB_STREAM_SHORT, ends[0]), TB_OK);
    assert_int_equal(send_plain(&a, TB_STREAM_SHORT, "x", 1, 1, NULL), TB_OK);
    shutdown(ends[1], SHUT_WR);
    for (int i = 0; i < 1000000 && a.broken == 0; i++)
        side_poll(&a);
    assert_int_equal(a.broken, TB_ERR_PEER);
    for (int i = 0; i < 10; i++)
        assert_int_equal(side_poll(&a), 0);
    close(held);
    close(ends[1]);
}

/* A break on one connection ends the others, and the frame that was on its way. */
static void an_end_without_goodbye_breaks(void **state)
{
    int ends[2];
    join_sides(&a, &b, TB_STREAM_BULK, 8192);
    socket_pair(ends, 0);
    assert_int_equal(tb_transport_tcp.adopt(a.transport, b.self, TB_STREAM_SHORT, ends[0]), TB_OK);
    char *bytes = pattern(MIB, 8);
    int token;
    assert_int_equal(send_plain(&a, TB_STREAM_BULK, bytes, MIB, 1, &token), TB_PENDING);
    assert_int_equal(send_plain(&a, TB_STREAM_SHORT, "x", 1, 1, NULL), TB_OK);
    char drain[200];
    assert_true(recv(ends[1], drain, sizeof(drain), 0) > 0);
    close(ends[1]);
    for (int i = 0; i < 1000000 && a.broken == 0; i++)
        side_poll(&a);
    assert_int_equal(a.broken, TB_ERR_PEER);
    assert_non_null(strstr(a.story, "without a goodbye"));
    assert_int_equal(a.sent, 1);
    assert_int_equal(a.sent_error, TB_ERR_PEER);
    assert_ptr_equal(a.token, &token);
    assert_true(a.transport->table->idle(a.transport));
    free(bytes);
}

/* One connection cannot be written any more; what has come on the other one is delivered before the end is told. */
static void what_came_before_the_break_is_delivered(void **state)
{
    int ends[2];
    join_sides(&a, &b, TB_STREAM_BULK, 0);
    poll_until(&b.opened, 1);
    socket_pair(ends, 0);
    assert_int_equal(tb_transport_tcp.adopt(a.transport, b.self, TB_STREAM_SHORT, ends[0]), TB_OK);
    char *bytes = pattern(10000, 9);
    for (int i = 0; i < 20; i++)
        assert_int_equal(send_plain(&b, TB_STREAM_BULK, bytes, 10000, (uint64_t)i, NULL), TB_OK);
    struct linger hard = {1, 0};
    setsockopt(ends[1], SOL_SOCKET, SO_LINGER, &hard, sizeof(hard));
    close(ends[1]);
    int result = TB_OK;
    for (int i = 0; i < 1000 && result == TB_OK; i++)
        result = send_plain(&a, TB_STREAM_SHORT, "x", 1, 1, NULL);
    assert_int_equal(result, TB_ERR_PEER);
    assert_int_equal(a.broken, 0);
    for (int i = 0; i < 1000000 && a.broken == 0; i++)
        side_poll(&a);
    assert_int_equal(a.broken, TB_ERR_PEER);
    assert_int_equal(a.frames, 20);
    free(bytes);
}

/* Two streams end in one turn: the story of the first that did is told. */
static void two_ends_are_one_story(void **state)
{
    enum { CONNECTIONS = 3 }; /* the last to say something is looked at by itself, so it is another one */
    static const enum tb_stream streams[CONNECTIONS] = {TB_STREAM_SHORT, TB_STREAM_BULK, TB_STREAM_SHORT};
    int ends[CONNECTIONS][2];
    for (int i = 0; i < CONNECTIONS; i++) {
        socket_pair(ends[i], 0);
        assert_int_equal(tb_transport_tcp.adopt(a.transport, b.self, streams[i], ends[i][0]), TB_OK);
        assert_int_equal(write(ends[i][1], "beginning", 9), 9);
        for (int k = 0; k < 100; k++)
            side_poll(&a);
    }
    for (int i = 0; i < 2; i++)
        close(ends[i][1]);
    for (int i = 0; i < 1000000 && a.broken == 0; i++)
        side_poll(&a);
    assert_int_equal(a.broken, TB_ERR_PEER);
    assert_non_null(strstr(a.story, "in the middle of a frame"));
    close(ends[2][1]);
}

/* Neither half-read nor half-written frames touch their memory after `drop`; the other side is told. */
static void dropped_peers_leave_memory_alone(void **state)
{
    char *bytes = pattern(MIB, 10), *untouched = calloc(1, MIB);
    int token;
    join_sides(&a, &b, TB_STREAM_BULK, 8192);
    b.room = calloc(1, MIB);
    b.room_bytes = MIB;
    assert_int_equal(send_plain(&a, TB_STREAM_BULK, bytes, MIB, 1, &token), TB_PENDING);
    while (b.placed == 0)
        side_poll(&b);
    assert_int_equal(b.frames, 0);
    b.transport->table->drop(b.peer);
    memset(b.room, 0, MIB);
    poll_quiet();
    assert_memory_equal(b.room, untouched, MIB);
    assert_int_equal(b.frames + b.broken, 0);
    assert_int_equal(send_plain(&b, TB_STREAM_SHORT, "x", 1, 1, NULL), TB_ERR_PEER);
    assert_int_equal(a.broken, TB_ERR_PEER);
    assert_int_equal(a.sent_error, TB_ERR_PEER);
    int ends[2];
    socket_pair(ends, 0);
    assert_int_equal(tb_transport_tcp.adopt(b.transport, a.self, TB_STREAM_SHORT, ends[0]),
                     TB_ERR_CLOSED); /* no trouble: late */
    close(ends[1]);
    char *room = b.room;
    teardown(NULL);
    setup(NULL);

    join_sides(&a, &b, TB_STREAM_BULK, 8192);
    assert_int_equal(send_plain(&a, TB_STREAM_BULK, bytes, MIB, 1, &token), TB_PENDING);
    a.transport->table->drop(a.peer);
    assert_true(a.transport->table->idle(a.transport));
    poll_quiet();
    assert_int_equal(a.sent + a.broken, 0);
    assert_int_equal(b.frames, 0);
    assert_int_equal(b.broken, TB_ERR_PEER);
    free(room);
    free(bytes);
    free(untouched);
}

/* Our agent, or a child of the program, may have a descriptor of the same socket. */
static void ends_are_heard_whoever_holds_the_socket(void **state)
{
    int ends[2];
    socket_pair(ends, 0);
    int held = fcntl(ends[0], F_DUPFD_CLOEXEC, 3);
    assert_int_equal(tb_transport_tcp.adopt(a.transport, b.self, TB_STREAM_SHORT, ends[0]), TB_OK);
    assert_int_equal(tb_transport_tcp.adopt(b.transport, a.self, TB_STREAM_SHORT, ends[1]), TB_OK);
    assert_int_equal(send_plain(&a, TB_STREAM_SHORT, "x", 1, 1, NULL), TB_OK);
    poll_until(&b.frames, 1);
    a.transport->table->drop(a.peer);
    poll_quiet();
    assert_int_equal(b.broken, TB_ERR_PEER);
    close(held);
}

/* A connection of two wishes that nobody used may vanish. */
static void unused_connections_may_end(void **state)
{
    int ends[2];
    socket_pair(ends, 0);
    assert_int_equal(tb_transport_tcp.adopt(a.transport, b.self, TB_STREAM_SHORT, ends[0]), TB_OK);
    close(ends[1]);
    poll_quiet();
    assert_int_equal(a.broken, 0);
    assert_int_equal(send_plain(&a, TB_STREAM_SHORT, "x", 1, 1, NULL), TB_AGAIN);
    assert_int_equal(a.asked[TB_STREAM_SHORT], 1);
    join_sides(&a, &b, TB_STREAM_SHORT, 0);
    poll_until(&a.writable, 1);
    assert_int_equal(send_plain(&a, TB_STREAM_SHORT, "x", 1, 1, NULL), TB_OK);
    poll_until(&b.frames, 1);
}

static void refusals_are_passed_on(void **state)
{
    assert_int_equal(send_plain(&a, TB_STREAM_SHORT, "x", 1, 1, NULL), TB_AGAIN);
    tb_transport_tcp.refused(a.transport, b.self, TB_STREAM_BULK, TB_ERR_PEER); /* never asked for */
    side_poll(&a);
    assert_int_equal(a.broken, 0);
    tb_error(TB_ERR_PEER, "no route to venus3");
    tb_transport_tcp.refused(a.transport, b.self, TB_STREAM_SHORT, TB_ERR_PEER);
    tb_error(TB_ERR_SYSTEM, "something else");
    assert_int_equal(a.broken, 0); /* only from poll */
    side_poll(&a);
    assert_int_equal(a.broken, TB_ERR_PEER);
    assert_string_equal(a.story, "no route to venus3");
    assert_int_equal(send_plain(&a, TB_STREAM_SHORT, "x", 1, 1, NULL), TB_ERR_PEER);
    assert_string_equal(tb_error_story(), "no route to venus3");
}

static void refusals_after_the_other_sides_wish_are_ignored(void **state)
{
    assert_int_equal(send_plain(&a, TB_STREAM_SHORT, "x", 1, 1, NULL), TB_AGAIN);
    join_sides(&b, &a, TB_STREAM_SHORT, 0);
    tb_transport_tcp.refused(a.transport, b.self, TB_STREAM_SHORT, TB_ERR_PEER);
    poll_until(&a.writable, 1);
    assert_int_equal(send_plain(&a, TB_STREAM_SHORT, "x", 1, 1, NULL), TB_OK);
    poll_until(&b.frames, 1);
    assert_int_equal(a.broken, 0);
}

static void nobody_to_ask(void **state)
{
    a.connect_error = TB_ERR_CLOSED;
    tb_error(TB_ERR_CLOSED, "the agent is gone");
    assert_int_equal(send_plain(&a, TB_STREAM_SHORT, "x", 1, 1, NULL), TB_ERR_CLOSED);
    side_poll(&a);
    assert_int_equal(a.broken, TB_ERR_CLOSED);
    assert_string_equal(a.story, "the agent is gone");
}

int main(void)
{
    if (tb_param_load() != TB_OK)
        return 1;
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(goodbye_comes_last),
        TEST(goodbye_waits_for_arrivals),
        TEST(bytes_that_cannot_be_read),
        TEST(closing_is_orderly),
        TEST(long_messages_are_not_urgent),
        TEST(breaks_are_told_with_both_ends),
        TEST(sockets_may_be_held_elsewhere),
        TEST(an_end_without_goodbye_breaks),
        TEST(what_came_before_the_break_is_delivered),
        TEST(two_ends_are_one_story),
        TEST(dropped_peers_leave_memory_alone),
        TEST(ends_are_heard_whoever_holds_the_socket),
        TEST(unused_connections_may_end),
        TEST(refusals_are_passed_on),
        TEST(refusals_after_the_other_sides_wish_are_ignored),
        TEST(nobody_to_ask),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
