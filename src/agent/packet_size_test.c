/* When a connection has met packets that are too large, and what new ones are made like. */
#include "agent/packet_size.h"

#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#define SECOND UINT64_C(1000000000)

/* Two ends of a TCP connection. */
static void connect_ends(int ends[2], bool small)
{
    struct sockaddr_in name = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof name;
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(listener, (struct sockaddr *)&name, length), 0);
    assert_int_equal(listen(listener, 1), 0);
    assert_int_equal(getsockname(listener, (struct sockaddr *)&name, &length), 0);
    ends[0] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (small)
        tb_packet_size_make_small(ends[0]);
    assert_int_equal(connect(ends[0], (struct sockaddr *)&name, length), 0);
    ends[1] = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    assert_true(ends[1] >= 0);
    close(listener);
}

static void close_ends(const int ends[2])
{
    close(ends[0]);
    close(ends[1]);
}

/* Answers come from `first` on, once a second, and the last one just now. */
static struct tb_packet_size answers(uint64_t first, uint64_t now)
{
    struct tb_packet_size size = {0};
    for (uint64_t at = first; at <= now; at += SECOND)
        tb_packet_size_answered(&size, at);
    return size;
}

/* Whether something is lost the kernel knows of TCP alone: of other sockets silence is enough. */
static void silence_among_answers(void **state)
{
    static const struct {
        uint64_t first, last, since, now; /* seconds */
        enum tb_packet_verdict verdict;
    } rows[] = {
        {10, 20, 12, 20, TB_PACKET_TOO_LARGE}, {10, 20, 17, 20, TB_PACKET_UNKNOWN}, /* not for long */
        {18, 20, 5, 20, TB_PACKET_UNKNOWN},                                         /* all were silent until just now */
        {10, 14, 12, 20, TB_PACKET_UNKNOWN},                                        /* all are */
        {10, 20, 12, 22, TB_PACKET_TOO_LARGE},                                      /* a question is under way */
        {10, 15, 12, 17, TB_PACKET_UNKNOWN} /* others have answered for three seconds of it */
    };
    int ends[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct tb_packet_size size = answers(rows[i].first * SECOND, rows[i].last * SECOND);
        assert_int_equal(tb_packet_size_judge(&size, ends[0], rows[i].since * SECOND, rows[i].now * SECOND),
                         rows[i].verdict);
    }
    struct tb_packet_size known = answers(10 * SECOND, 20 * SECOND);
    known.small = true; /* one that is left from before is not waited for so long */
    assert_int_equal(tb_packet_size_judge(&known, ends[0], 18 * SECOND, 20 * SECOND), TB_PACKET_TOO_LARGE);
    assert_int_equal(tb_packet_size_judge(&known, ends[0], 19 * SECOND, 20 * SECOND), TB_PACKET_UNKNOWN);
    struct tb_packet_size none = {0};
    assert_int_equal(tb_packet_size_judge(&none, ends[0], SECOND, 20 * SECOND), TB_PACKET_UNKNOWN);
    close_ends(ends);
}

/* Everything was taken, by a proxy that has stopped perhaps: it is given up, later, since the other side may know of
 * packets that it loses, and nobody believes in small ones because of it. */
static void nothing_is_lost(void **state)
{
    struct tb_packet_size size = answers(10 * SECOND, 20 * SECOND);
    int ends[2];
    connect_ends(ends, false);
    assert_int_equal(write(ends[0], "taken", 5), 5);
    assert_int_equal(tb_packet_size_judge(&size, ends[0], 15 * SECOND, 20 * SECOND), TB_PACKET_UNKNOWN);
    assert_int_equal(tb_packet_size_judge(&size, ends[0], 13 * SECOND, 20 * SECOND), TB_PACKET_DEAD);
    close_ends(ends);
}

/* Whoever has not opened it knows of a small connection, too. */
static void small_ones_are_small_at_both_ends(void **state)
{
    struct tb_packet_size size = answers(10 * SECOND, 20 * SECOND);
    int ends[2];
    connect_ends(ends, true);
    for (int i = 0; i < 2; i++)
        assert_int_equal(tb_packet_size_judge(&size, ends[i], 12 * SECOND, 20 * SECOND), TB_PACKET_NONE);
    close_ends(ends);
}

/* Small ones stand still as well, until one carries something, or it is worth trying again. */
static void stuck_until_something_passes(void **state)
{
    static char bytes[10000];
    int ends[2];
    for (int way = 0; way < 3; way++) {
        struct tb_packet_size size = {0};
        connect_ends(ends, true);
        assert_int_equal(tb_packet_size_stuck_since(&size, SECOND), 0);
        tb_packet_size_stuck(&size, ends[0], 1, 5 * SECOND, 10 * SECOND);
        tb_packet_size_stuck(&size, ends[0], 1, 12 * SECOND, 16 * SECOND);
        size.stuck_here = way == 0;
        tb_packet_size_look(&size, ends[0]);
        assert_int_equal(tb_packet_size_stuck_since(&size, 17 * SECOND), 5 * SECOND);
        int from = way == 0 ? 0 : 1;
        assert_int_equal(send(ends[from], bytes, way == 2 ? 100 : sizeof bytes, 0), way == 2 ? 100 : sizeof bytes);
        for (size_t n = way == 2 ? 100 : sizeof bytes; n > 0;)
            n -= (size_t)recv(ends[!from], bytes, n, 0);
        for (int i = 0; i < 1000 && tb_packet_size_stuck_since(&size, 18 * SECOND) != 0 && way != 2; i++) {
            tb_packet_size_look(&size, ends[0]); /* acknowledgements come when they like to */
            usleep(1000);
        }
        tb_packet_size_look(&size, ends[0]);
        assert_int_equal(tb_packet_size_stuck_since(&size, 18 * SECOND), way == 2 ? 5 * SECOND : 0);
        assert_int_equal(tb_packet_size_stuck_since(&size, 80 * SECOND), 0);
        close_ends(ends);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(silence_among_answers),
        cmocka_unit_test(nothing_is_lost),
        cmocka_unit_test(small_ones_are_small_at_both_ends),
        cmocka_unit_test(stuck_until_something_passes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
