/* The pulse of connections over sockets of this machine. A filter at the far end that takes nothing in makes one that
 * passes nothing while it stays open. All cases run at once, since they last as long as the kernel takes. */
#include "transport/tcp/tcp_test.h"

#include "transport/tcp/pulse.h"

#include <linux/filter.h>
#include <netinet/tcp.h>

#define SECOND UINT64_C(1000000000)
#define LOOK   (SECOND / 10)

enum { ASKING, SENDING, QUIET, FULL, CASES };

struct pair {
    int ends[2];
    struct tb_pulse pulse;
};

static void deafen(const struct pair *pair)
{
    struct sock_filter nothing = BPF_STMT(BPF_RET | BPF_K, 0);
    struct sock_fprog program = {.len = 1, .filter = &nothing};
    assert_int_equal(setsockopt(pair->ends[1], SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program), 0);
}

static void heal(const struct pair *pair)
{
    int none = 0;
    assert_int_equal(setsockopt(pair->ends[1], SOL_SOCKET, SO_DETACH_FILTER, &none, sizeof none), 0);
}

static int option(const struct pair *pair, int level, int name)
{
    int value = -1;
    socklen_t length = sizeof value;
    assert_int_equal(getsockopt(pair->ends[0], level, name, &value, &length), 0);
    return value;
}

static bool is_stuck(const struct pair *pair)
{
    uint64_t tried = 0;
    bool stuck = tb_pulse_is_stuck(&pair->pulse, pair->ends[0], &tried);
    assert_true(!stuck || tried < 10 * SECOND);
    return stuck;
}

/* Until both that are deaf, or were, are stuck, or not. The others never are. */
static uint64_t look_until(struct pair *pairs, bool stuck, uint64_t most)
{
    uint64_t began = tb_clock_now_real(), now = began;
    while ((is_stuck(&pairs[ASKING]) != stuck || is_stuck(&pairs[SENDING]) != stuck) && now - began < most) {
        poll(NULL, 0, LOOK / 1000000);
        assert_false(is_stuck(&pairs[QUIET]) || is_stuck(&pairs[FULL]));
        now = tb_clock_now_real();
    }
    assert_int_equal(is_stuck(&pairs[ASKING]), stuck);
    assert_int_equal(is_stuck(&pairs[SENDING]), stuck);
    return now - began;
}

static void what_is_forgotten_is_felt(void **state)
{
    struct pair pairs[CASES] = {0};
    char bytes[4096] = {0};
    for (int i = 0; i < CASES; i++) {
        socket_pair(pairs[i].ends, i == FULL ? 4096 : 0);
        assert_false(is_stuck(&pairs[i])); /* nobody has felt it */
    }
    deafen(&pairs[ASKING]);
    deafen(&pairs[SENDING]);
    assert_int_equal(send(pairs[SENDING].ends[0], bytes, 100, 0), 100);
    while (send(pairs[FULL].ends[0], bytes, sizeof bytes, MSG_NOSIGNAL) > 0)
        ;
    for (int i = 0; i < CASES; i++) {
        tb_pulse_feel(&pairs[i].pulse, pairs[i].ends[0]);
        assert_false(is_stuck(&pairs[i]));
    }
    assert_in_range(look_until(pairs, true, 12 * SECOND), 5 * SECOND / 2, 12 * SECOND);
    heal(&pairs[ASKING]);
    heal(&pairs[SENDING]);
    look_until(pairs, false, 30 * SECOND);
    for (int i = 0; i < CASES; i++) {
        close(pairs[i].ends[0]);
        close(pairs[i].ends[1]);
    }
}

/* Who waits no more leaves the socket as it was, even one that had such options of its own. */
static void options_are_given_back(void **state)
{
    static const int names[3] = {TCP_KEEPIDLE, TCP_KEEPINTVL, TCP_USER_TIMEOUT};
    for (int alive = 0; alive < 2; alive++) {
        struct pair pair = {0};
        int before[3], value = alive;
        socket_pair(pair.ends, 0);
        assert_int_equal(setsockopt(pair.ends[0], SOL_SOCKET, SO_KEEPALIVE, &value, sizeof value), 0);
        value = 60 + alive;
        assert_int_equal(setsockopt(pair.ends[0], IPPROTO_TCP, TCP_KEEPIDLE, &value, sizeof value), 0);
        for (int i = 0; i < 3; i++)
            before[i] = option(&pair, IPPROTO_TCP, names[i]);
        tb_pulse_feel(&pair.pulse, pair.ends[0]);
        tb_pulse_feel(&pair.pulse, pair.ends[0]);
        assert_int_equal(option(&pair, SOL_SOCKET, SO_KEEPALIVE), 1);
        assert_in_range(option(&pair, IPPROTO_TCP, TCP_KEEPIDLE), 1, 3);
        tb_pulse_rest(&pair.pulse, pair.ends[0]);
        assert_int_equal(option(&pair, SOL_SOCKET, SO_KEEPALIVE), alive);
        for (int i = 0; i < 3; i++)
            assert_int_equal(option(&pair, IPPROTO_TCP, names[i]), before[i]);
        close(pair.ends[0]);
        close(pair.ends[1]);
    }
}

/* The transport feels all connections of the one who is asked about, and of nobody else, until it rests. */
static void a_transport_asks_whom_it_waits_for(void **state)
{
    uint64_t tried = 0;
    int sockets[2], value;
    socket_pair(sockets, 0);
    int copy = dup(sockets[0]);
    socklen_t length = sizeof value;
    assert_int_equal(tb_transport_tcp.adopt(a.transport, b.self, TB_STREAM_SHORT, sockets[0]), TB_OK);
    assert_int_equal(tb_transport_tcp.adopt(b.transport, a.self, TB_STREAM_SHORT, sockets[1]), TB_OK);
    for (int step = 0; step < 3; step++) {
        if (step == 1)
            assert_false(tb_transport_tcp.is_stuck(a.transport, b.self, &tried));
        if (step == 2)
            tb_transport_tcp.rest(a.transport);
        assert_int_equal(getsockopt(copy, SOL_SOCKET, SO_KEEPALIVE, &value, &length), 0);
        assert_int_equal(value, step == 1);
        assert_false(tb_transport_tcp.is_stuck(a.transport, (struct tb_proc){JOB, 7}, &tried));
    }
    close(copy);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_forgotten_is_felt),
        cmocka_unit_test(options_are_given_back),
        cmocka_unit_test_setup_teardown(a_transport_asks_whom_it_waits_for, setup, teardown),
    };
    tb_param_load();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
