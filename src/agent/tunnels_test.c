/* Tunnels: real processes instead of shells to other hosts, and agents that the test plays. */
#include "agent/tunnels_world_test.h"

/* ---- shells ------------------------------------------------------------------------------------------------------ */

static void bytes_go_both_ways(void **state)
{
    struct world w;
    world_open(&w);
    start_shell(&w, 7, "cat", "sh -c");
    send_bytes(&w, 7, "hello");
    expect_bytes(&w, TB_CONTROL_TUNNEL, 7, "hello");
    send_bytes(&w, 8, "nobody"); /* which does no harm */
    assert_false(tb_tunnels_empty(&w.tunnels));
    send_end(&w, 7, false);
    collect(&w);
    expect_end(&w, 7, true, 0);
    assert_true(tb_tunnels_empty(&w.tunnels));
    world_close(&w);
}

/* What a shell says last is not lost, even if it is collected before it was read. */
static void last_words_come_through(void **state)
{
    struct world w;
    world_open(&w);
    start_shell(&w, 7, "echo oops >&2; printf bye; exit 3", "sh -c");
    collect(&w);
    expect_bytes(&w, TB_CONTROL_TUNNEL, 7, "bye");
    expect_bytes(&w, TB_CONTROL_TUNNEL_ERRORS, 7, "oops\n");
    expect_end(&w, 7, true, 3 << 8);
    world_close(&w);
}

static void a_missing_command_is_told(void **state)
{
    struct world w;
    world_open(&w);
    start_shell(&w, 7, "there", "no-such-command");
    struct tb_reader *r = await(&w, TB_CONTROL_TUNNEL_ERRORS);
    size_t length = 0;
    assert_int_equal(tb_get_u32(r), 7);
    const char *text = tb_get_bytes(r, &length);
    assert_non_null(memmem(text, length, "no-such-command", 15));
    expect_end(&w, 7, false, 0);
    assert_true(tb_tunnels_empty(&w.tunnels));
    world_close(&w);
}

/* One that does not notice the end of its stream is killed, at once or after a while. */
static void shells_are_killed(void **state)
{
    for (int now = 0; now < 2; now++) {
        struct world w;
        world_open(&w);
        start_shell(&w, 7, "echo; exec sleep 1000", "sh -c");
        expect_bytes(&w, TB_CONTROL_TUNNEL, 7, "\n");
        send_end(&w, 7, now);
        if (!now) {
            virtual_loop_pass(&w.t, PATIENCE - 1);
            assert_int_equal(waitpid(-1, NULL, WNOHANG), 0);
            virtual_loop_pass(&w.t, 1);
        }
        collect(&w);
        expect_end(&w, 7, false, SIGKILL);
        world_close(&w);
    }
}

/* A shell that reads nothing has room for all that an agent is told before it starts its ranks, and beyond the limit
 * harms nobody but itself. */
static void what_waits_is_bounded(void **state)
{
    enum { MOST = 95 };
    assert_true(MOST >= (TB_COST_TABLE_LIMIT + TB_CONTROL_LIMIT) >> 20);
    static char bytes[(1 << 20) + 5]; /* which doubles to no power of two */
    struct world w;
    struct tb_writer f;
    struct tb_reader r;
    world_open(&w);
    start_shell(&w, 7, "exec sleep 1000", "sh -c");
    start_shell(&w, 8, "cat", "sh -c");
    tb_writer_open(&f);
    tb_put_u32(&f, 7);
    tb_put_bytes(&f, bytes, sizeof bytes);
    for (int i = 0; i < MOST; i++) {
        tb_reader_open(&r, f.bytes, f.length);
        tb_tunnels_take_bytes(&w.tunnels, &r);
        assert_true(is_silent(&w));
    }
    poll(NULL, 0, 200); /* one that was killed would be dead */
    assert_int_equal(waitpid(-1, NULL, WNOHANG), 0);
    for (int i = 0; i < 2; i++) { /* the stream itself holds some */
        tb_reader_open(&r, f.bytes, f.length);
        tb_tunnels_take_bytes(&w.tunnels, &r);
    }
    tb_writer_close(&f);
    collect(&w);
    expect_end(&w, 7, false, SIGKILL);
    send_bytes(&w, 8, "hello");
    expect_bytes(&w, TB_CONTROL_TUNNEL, 8, "hello");
    world_close(&w);
}

/* All together too: who holds most goes. */
static void all_that_waits_is_bounded(void **state)
{
    static char bytes[1 << 18];
    struct world w;
    struct tb_reader r;
    struct tb_writer f;
    world_open(&w);
    w.tunnels.room_limit = 16 << 20;
    for (uint32_t i = 0; i < 3; i++)
        start_shell(&w, i, i < 2 ? "exec sleep 1000" : "cat", "sh -c");
    for (uint32_t i = 2; i-- > 0;)
        for (int k = 0; k < (i == 0 ? 60 : 20); k++) {
            tb_writer_open(&f);
            tb_put_u32(&f, i);
            tb_put_bytes(&f, bytes, sizeof bytes);
            tb_reader_open(&r, f.bytes, f.length);
            tb_tunnels_take_bytes(&w.tunnels, &r);
            tb_writer_close(&f);
            assert_true(w.tunnels.room <= w.tunnels.room_limit);
        }
    collect(&w);
    expect_end(&w, 0, false, SIGKILL);
    send_bytes(&w, 2, "hello");
    expect_bytes(&w, TB_CONTROL_TUNNEL, 2, "hello");
    world_close(&w);
}

/* Words for standard error without an end wait for the launcher as others do. */
static void a_flood_of_errors_is_bounded(void **state)
{
    struct world w;
    world_open(&w);
    start_shell(&w, 7, "yes >&2", "sh -c");
    for (int i = 0; i < 200; i++) {
        struct pollfd ready = {.fd = w.t.loop.epoll, .events = POLLIN};
        virtual_loop_turn(&w.t);
        assert_true(tb_uplink_queued(&w.uplink) < AHEAD + (1 << 18));
        poll(&ready, 1, 2);
    }
    for (int i = 0; i < 100; i++) /* when it is read it goes on */
        await(&w, TB_CONTROL_TUNNEL_ERRORS);
    world_close(&w);
}

/* One that has to wait and has hung up meanwhile keeps nobody busy, and is read to its end later. */
static void who_waits_and_is_gone_costs_nothing(void **state)
{
    static const char *const scripts[] = {"exec 3<&0; { read x <&3; kill -9 $$; } & exec yes",
                                          "exec 3<&0; { read x <&3; kill -9 $$; } & exec yes >&2"};
    for (int errors = 0; errors < 2; errors++) {
        struct world w;
        int wakes = 0;
        world_open(&w);
        start_shell(&w, 7, scripts[errors], "sh -c");
        for (int i = 0; i < 10000 && !w.tunnels.paused; i++) {
            struct pollfd ready = {.fd = w.t.loop.epoll, .events = POLLIN};
            virtual_loop_turn(&w.t);
            poll(&ready, 1, 1);
        }
        assert_true(w.tunnels.paused);
        send_bytes(&w, 7, "now\n");
        siginfo_t info;
        assert_int_equal(waitid(P_ALL, 0, &info, WEXITED | WNOWAIT), 0);
        for (int i = 0; i < 30; i++) {
            struct pollfd ready = {.fd = w.t.loop.epoll, .events = POLLIN};
            wakes += poll(&ready, 1, 1);
            virtual_loop_turn(&w.t);
        }
        assert_true(wakes < 20);
        assert_true(w.tunnels.paused);
        for (int i = 0; i < 20; i++)
            await(&w, errors ? TB_CONTROL_TUNNEL_ERRORS : TB_CONTROL_TUNNEL);
        assert_false(w.tunnels.paused);
        world_close(&w);
    }
}

/* ---- agents that have lost their stream -------------------------------------------------------------------------- */

/* An agent connects; gives its end. */
static struct tb_tls_socket *come(struct world *w, uint32_t host, const char *words)
{
    int pair[2];
    struct tb_key secret, wrong;
    struct tb_tls_socket *far;
    assert_int_equal(tb_key_derive(&secret, "secret"), TB_OK);
    assert_int_equal(tb_key_derive(&wrong, words), TB_OK);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair), 0);
    if (tb_tls_socket_open(&far, pair[1], &wrong, true) == TB_ERR_UNSUPPORTED)
        skip(); /* there is no libssl here */
    tb_tunnels_adopt(&w->tunnels, host, pair[0], &secret);
    return far;
}

/* Both ends go on until the handshake of TLS is over; false: it is not. */
static bool shake(struct world *w, struct tb_tls_socket *far)
{
    char byte;
    size_t got;
    for (int i = 0; i < 10 && !tb_tls_socket_is_ready(far); i++) {
        tb_tls_socket_flush(far);
        virtual_loop_turn(&w->t);
        if (tb_tls_socket_receive(far) == TB_OK)
            assert_int_equal(tb_tls_socket_read(far, &byte, 1, &got), TB_AGAIN);
    }
    return tb_tls_socket_is_ready(far) && tb_tls_socket_flush(far) == TB_OK;
}

static void say(struct tb_tls_socket *far, const char *text)
{
    assert_int_equal(tb_tls_socket_write(far, text, strlen(text)), TB_OK);
    assert_int_equal(tb_tls_socket_flush(far), TB_OK);
}

static void expect_attach(struct world *w, uint32_t host, uint32_t coming)
{
    struct tb_reader *r = await(w, TB_CONTROL_ATTACH);
    assert_int_equal(tb_get_u32(r), host);
    assert_int_equal(tb_get_u32(r), coming);
}

static struct tb_tls_socket *adopt(struct world *w, uint32_t host, uint32_t coming)
{
    struct tb_tls_socket *far = come(w, host, "secret");
    assert_true(shake(w, far));
    say(far, "\1\2\3\4"); /* the number of the frame that it expects */
    expect_attach(w, host, coming);
    expect_bytes(w, TB_CONTROL_TUNNEL, host, "\1\2\3\4");
    return far;
}

static void answer(struct world *w, uint32_t host, uint32_t coming)
{
    struct tb_writer *f = tb_control_stream_begin(&w->launcher, TB_CONTROL_ATTACH);
    tb_put_u32(f, host);
    tb_put_u32(f, coming);
    flush(w);
}

static void expect_read(struct tb_tls_socket *far, const char *text)
{
    char got[64] = "";
    size_t n = 0;
    assert_int_equal(tb_tls_socket_receive(far), *text != 0 ? TB_OK : TB_AGAIN);
    if (*text != 0)
        assert_int_equal(tb_tls_socket_read(far, got, sizeof got - 1, &n), TB_OK);
    assert_string_equal(got, text);
    assert_int_equal(tb_tls_socket_read(far, got, sizeof got - 1, &n), TB_AGAIN);
}

/* Until the launcher has answered, what it sends is for one that was there before. */
static void an_agent_is_taken_in(void **state)
{
    struct world w;
    world_open(&w);
    struct tb_tls_socket *first = adopt(&w, 4, 1);
    say(first, "up");
    expect_bytes(&w, TB_CONTROL_TUNNEL, 4, "up");
    send_bytes(&w, 4, "old");
    expect_read(first, "");
    answer(&w, 4, 1);
    send_bytes(&w, 4, "new");
    expect_read(first, "new");
    struct tb_tls_socket *second = adopt(&w, 4, 2); /* it has lost that one too */
    size_t n;
    assert_int_equal(tb_tls_socket_receive(first), TB_OK);
    assert_int_equal(tb_tls_socket_read(first, (char[1]){0}, 1, &n), TB_ERR_CLOSED);
    answer(&w, 4, 1); /* to the one before */
    send_bytes(&w, 4, "old");
    expect_read(second, "");
    answer(&w, 4, 2);
    send_bytes(&w, 4, "newer");
    expect_read(second, "newer");
    assert_int_equal(w.ended, 0);
    tb_tls_socket_close(second);
    expect_end(&w, 4, false, 0);
    assert_int_equal(w.ended, 1);
    assert_true(tb_tunnels_empty(&w.tunnels));
    tb_tls_socket_close(first);
    world_close(&w);
}

/* Neither one who proves nothing, nor one who says too little, nor too many of them take the place of one who is there;
 * the launcher does not hear of them. */
static void who_only_connects_does_no_harm(void **state)
{
    struct world w;
    struct tb_tls_socket *others[200];
    world_open(&w);
    struct tb_tls_socket *first = adopt(&w, 4, 1);
    answer(&w, 4, 1);
    struct tb_tls_socket *stranger = come(&w, 4, "another secret");
    assert_false(shake(&w, stranger));
    assert_true(tb_list_empty(&w.tunnels.arriving));
    struct tb_tls_socket *hesitant = come(&w, 4, "secret");
    assert_true(shake(&w, hesitant));
    say(hesitant, "\1\2\3");
    assert_true(is_silent(&w));
    virtual_loop_pass(&w.t, 5000000000u);
    assert_true(tb_list_empty(&w.tunnels.arriving));
    for (uint32_t i = 0; i < 200; i++)
        others[i] = come(&w, 4, "secret");
    assert_int_equal(w.tunnels.arriving_count, 64);
    assert_true(is_silent(&w));
    send_bytes(&w, 4, "still here");
    expect_read(first, "still here");
    tb_tls_socket_close(stranger);
    tb_tls_socket_close(hesitant);
    assert_true(shake(&w, others[199])); /* the last one has its place */
    for (uint32_t i = 0; i < 200; i++)
        tb_tls_socket_close(others[i]);
    virtual_loop_turn(&w.t);
    assert_int_equal(w.tunnels.arriving_count, 0);
    assert_int_equal(w.ended, 0);
    start_shell(&w, 7, "cat", "sh -c"); /* to whom a shell leads does not come */
    struct tb_tls_socket *seventh = come(&w, 7, "secret");
    assert_false(shake(&w, seventh));
    tb_tls_socket_close(seventh);
    tb_tls_socket_close(first);
    expect_end(&w, 4, false, 0);
    world_close(&w);
}

/* A record that was changed on the way ends the stream; its agent comes again by another one. */
static void a_changed_byte_ends_the_stream(void **state)
{
    for (int place = 0; place < 40; place++) {
        struct world w;
        uint8_t bytes[512];
        int pair[2];
        world_open(&w);
        struct tb_tls_socket *far = adopt(&w, 4, 1);
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair), 0);
        int socket = dup(tb_tls_socket_descriptor(far));
        assert_true(dup2(pair[0], tb_tls_socket_descriptor(far)) >= 0); /* what it says now comes to us first */
        say(far, "a frame for the launcher");
        ssize_t n = recv(pair[1], bytes, sizeof bytes, 0);
        assert_true(n > place);
        bytes[place] ^= 1;
        assert_int_equal(send(socket, bytes, (size_t)n, 0), n);
        shutdown(socket, SHUT_WR);
        expect_end(&w, 4, false, 0);
        assert_int_equal(w.ended, 1);
        close(socket);
        close(pair[0]);
        close(pair[1]);
        tb_tls_socket_close(far);
        world_close(&w);
    }
}

/* The launcher has sent a shell to its host before it has said what it expects. */
static void who_comes_beside_a_shell_is_refused(void **state)
{
    struct world w;
    world_open(&w);
    struct tb_tls_socket *far = come(&w, 4, "secret");
    assert_true(shake(&w, far));
    start_shell(&w, 4, "cat; exec sleep 1000", "sh -c");
    say(far, "1234");
    assert_true(is_silent(&w));
    assert_int_equal(w.tunnels.arriving_count, 0);
    send_bytes(&w, 4, "hello");
    expect_bytes(&w, TB_CONTROL_TUNNEL, 4, "hello");
    send_end(&w, 4, true);
    collect(&w);
    expect_end(&w, 4, false, SIGKILL);
    tb_tls_socket_close(far);
    world_close(&w);
}

/* A launcher that does not keep up holds up who is behind us; when it reads, everything comes. */
static void a_slow_launcher_stops_the_reading(void **state)
{
    struct world w;
    world_open(&w);
    struct tb_tls_socket *far = adopt(&w, 4, 1);
    static char bytes[65536];
    size_t sent = 0, got = 0;
    for (int i = 0; i < 200; i++) {
        for (size_t k = 0; k < sizeof bytes; k++)
            bytes[k] = (char)((sent + k) * 31 >> 3);
        if (tb_tls_socket_has_room(far)) {
            assert_int_equal(tb_tls_socket_write(far, bytes, sizeof bytes), TB_OK);
            sent += sizeof bytes;
        }
        tb_tls_socket_flush(far);
        virtual_loop_turn(&w.t);
        assert_true(tb_uplink_queued(&w.uplink) < AHEAD + 2 * sizeof bytes);
    }
    assert_in_range(sent, AHEAD, 8 * AHEAD); /* and not all */
    for (int i = 0; i < 10000 && got < sent; i++) {
        size_t length = 0;
        struct tb_reader *r = await(&w, TB_CONTROL_TUNNEL);
        tb_tls_socket_flush(far);
        assert_int_equal(tb_get_u32(r), 4);
        const char *part = tb_get_bytes(r, &length);
        for (size_t k = 0; k < length; k++)
            assert_true(part[k] == (char)((got + k) * 31 >> 3));
        got += length;
    }
    assert_int_equal(got, sent);
    tb_tls_socket_close(far);
    world_close(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_go_both_ways),
        cmocka_unit_test(last_words_come_through),
        cmocka_unit_test(a_missing_command_is_told),
        cmocka_unit_test(shells_are_killed),
        cmocka_unit_test(what_waits_is_bounded),
        cmocka_unit_test(all_that_waits_is_bounded),
        cmocka_unit_test(an_agent_is_taken_in),
        cmocka_unit_test(who_only_connects_does_no_harm),
        cmocka_unit_test(a_changed_byte_ends_the_stream),
        cmocka_unit_test(who_comes_beside_a_shell_is_refused),
        cmocka_unit_test(a_slow_launcher_stops_the_reading),
        cmocka_unit_test(a_flood_of_errors_is_bounded),
        cmocka_unit_test(who_waits_and_is_gone_costs_nothing),
    };
    signal(SIGPIPE, SIG_IGN);
    tb_param_load();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
