/* The uplink when its stream is lost or silent: the test listens where stand-ins should be. */
#include "agent/uplink_world_test.h"

/* ---- standing in ------------------------------------------------------------------------------------------------- */

static void name_stand_in(struct world *w)
{
    const uint32_t hosts[] = {1};
    tb_uplink_keep(&w->uplink);
    tb_uplink_set_stand_ins(&w->uplink, &w->key, (struct tb_proc){JOB, TB_PROC_AGENT | SELF}, &w->book, hosts, 1,
                            false);
}

/* TCP inside of this machine nearly always is there at once, but the kernel does not promise it. */
static void await(struct world *w, int socket)
{
    struct pollfd ready = {.fd = socket, .events = POLLIN};
    virtual_loop_turn(&w->t);
    assert_int_equal(poll(&ready, 1, 10000), 1);
}

static void await_end_of_attempt(struct world *w)
{
    for (int i = 0; i < 10000 && w->uplink.attach.watch.descriptor >= 0; i++) {
        struct pollfd ready = {.fd = w->t.loop.epoll, .events = POLLIN};
        virtual_loop_turn(&w->t);
        if (w->uplink.attach.watch.descriptor >= 0)
            poll(&ready, 1, 10);
    }
    assert_int_equal(w->uplink.attach.watch.descriptor, -1);
}

/* Accepts as a stand-in does; gives the socket. */
static int accept_agent(struct world *w, enum tb_welcome_status status, uint32_t features, struct tb_key *secret)
{
    struct tb_handshake h;
    await(w, w->listener);
    int fd = accept4(w->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK), on = 1;
    assert_true(fd >= 0);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    tb_handshake_accept(&h, &w->key);
    await(w, fd);
    assert_int_equal(tb_handshake_socket_receive(&h, fd), TB_OK);
    assert_int_equal(h.verdict, TB_HANDSHAKE_ASKED);
    assert_int_equal(h.hello.source.index, TB_PROC_AGENT | SELF);
    assert_int_equal(h.hello.destination.index, TB_PROC_AGENT | 1);
    assert_int_equal(h.hello.stream, TB_STREAM_CONTROL);
    assert_int_equal(h.hello.features, TB_FEATURE_TLS);
    assert_int_equal(tb_handshake_answer(&h, status, features, false), TB_OK);
    assert_int_equal(tb_handshake_socket_send(&h, fd), TB_OK);
    if (status != TB_WELCOME_OK)
        return fd;
    await(w, fd);
    assert_int_equal(tb_handshake_socket_receive(&h, fd), TB_OK);
    assert_int_equal(h.verdict, TB_HANDSHAKE_CONFIRMED);
    tb_handshake_admit(&h);
    assert_int_equal(tb_handshake_socket_send(&h, fd), TB_OK);
    assert_int_equal(tb_stream_secret(secret, &w->key, &h.hello, &h.welcome), TB_OK);
    return fd;
}

/* The stand-in's end of a stream, which is encrypted, and the launcher behind it. */
struct stand_in {
    struct tb_tls_socket *tls;
    struct tb_control_stream stream;
};

/* Accepts, and goes on until `count` bytes have come by TLS. */
static void stand_in_open(struct stand_in *s, struct world *w, uint8_t *bytes, size_t count)
{
    struct tb_key secret;
    size_t have = 0, got;
    int fd = accept_agent(w, TB_WELCOME_OK, TB_FEATURE_TLS, &secret);
    if (tb_tls_socket_open(&s->tls, fd, &secret, false) == TB_ERR_UNSUPPORTED)
        skip(); /* there is no libssl here */
    tb_control_stream_open(&s->stream, -1, -1);
    for (int i = 0; i < 100 && have < count; i++) {
        await(w, fd);
        assert_int_equal(tb_tls_socket_receive(s->tls), TB_OK);
        while (tb_tls_socket_read(s->tls, bytes + have, count - have, &got) == TB_OK && (have += got) < count)
            ;
        assert_int_equal(tb_tls_socket_flush(s->tls), TB_OK);
    }
    assert_int_equal(have, count);
}

static void stand_in_close(struct stand_in *s)
{
    tb_tls_socket_close(s->tls);
    tb_control_stream_close(&s->stream);
}

static void stand_in_send(struct stand_in *s, struct world *w, const void *bytes, size_t length)
{
    assert_int_equal(tb_tls_socket_write(s->tls, bytes, length), TB_OK);
    assert_int_equal(tb_tls_socket_flush(s->tls), TB_OK);
    virtual_loop_turn(&w->t);
}

/* A frame of the launcher. */
static void stand_in_tell(struct stand_in *s, struct world *w, enum tb_control kind, uint32_t number)
{
    size_t length;
    tb_put_u32(tb_control_stream_begin(&s->stream, kind), number);
    assert_int_equal(tb_control_stream_end(&s->stream), TB_OK);
    const void *bytes = tb_control_stream_take(&s->stream, SIZE_MAX, &length);
    stand_in_send(s, w, bytes, length);
}

static void stand_in_expect(struct stand_in *s, struct world *w, uint32_t kind, uint32_t number)
{
    struct tb_control_frame got;
    uint8_t bytes[4096];
    size_t n;
    int rc;
    for (int i = 0; (rc = tb_control_stream_next(&s->stream, &got)) == TB_AGAIN && i < 100; i++) {
        await(w, tb_tls_socket_descriptor(s->tls));
        tb_tls_socket_receive(s->tls);
        while (tb_tls_socket_read(s->tls, bytes, sizeof bytes, &n) == TB_OK)
            assert_int_equal(tb_control_stream_feed(&s->stream, bytes, n), TB_OK);
    }
    assert_int_equal(rc, TB_OK);
    assert_int_equal(got.kind, kind);
    assert_int_equal(tb_get_u32(&got.fields), number);
}

/* What the launcher has not heard is sent again, and what it says goes on where it was. */
static void another_stream_goes_on(void **state)
{
    struct world w;
    world_open(&w);
    name_stand_in(&w);
    tell(&w, &w.launcher, TB_CONTROL_WINDOW, 1);
    send_up(&w, TB_CONTROL_TUNNEL, 10);
    expect(&w.launcher, TB_CONTROL_TUNNEL, 10);
    send_up(&w, TB_CONTROL_TUNNEL, 11); /* on its way when the stream is lost */
    shutdown(w.launcher.out, SHUT_RDWR);
    virtual_loop_turn(&w.t);
    assert_true(tb_uplink_is_down(&w.uplink));
    send_up(&w, TB_CONTROL_TUNNEL, 12);
    struct stand_in s;
    uint8_t next[4];
    stand_in_open(&s, &w, next, sizeof next);
    assert_int_equal(next[0], 1); /* it has had one frame */
    assert_int_equal(next[1] | next[2] | next[3], 0);
    /* And so have we; the next frame comes in the same record. */
    uint8_t bytes[64] = {1, 0, 0, 0};
    size_t length;
    s.stream.sequence_in = s.stream.sequence_out = 1;
    tb_put_u32(tb_control_stream_begin(&s.stream, TB_CONTROL_WINDOW), 2);
    assert_int_equal(tb_control_stream_end(&s.stream), TB_OK);
    const void *frame = tb_control_stream_take(&s.stream, sizeof bytes - 4, &length);
    memcpy(bytes + 4, frame, length);
    stand_in_send(&s, &w, bytes, 4 + length);
    await_end_of_attempt(&w);
    virtual_loop_turn(&w.t);
    assert_false(tb_uplink_is_down(&w.uplink));
    assert_int_equal(w.frames, 2);
    assert_int_equal(w.number, 2);
    stand_in_expect(&s, &w, TB_CONTROL_TUNNEL, 11);
    stand_in_expect(&s, &w, TB_CONTROL_TUNNEL, 12);
    stand_in_tell(&s, &w, TB_CONTROL_WINDOW, 3);
    assert_int_equal(w.frames, 3);
    assert_int_equal(w.number, 3);
    assert_int_equal(w.lost, 0);
    stand_in_close(&s);
    world_close(&w);
}

/* Who has no TLS is none to whom we speak, and nothing is said there that is not encrypted. */
static void plain_streams_are_refused(void **state)
{
    struct world w;
    struct tb_key secret;
    uint8_t byte;
    world_open(&w);
    name_stand_in(&w);
    shutdown(w.launcher.out, SHUT_RDWR);
    int fd = accept_agent(&w, TB_WELCOME_OK, 0, &secret);
    await(&w, fd);
    assert_int_equal(recv(fd, &byte, 1, 0), 0);
    await_end_of_attempt(&w);
    close(fd);
    assert_true(tb_uplink_is_down(&w.uplink));
    world_close(&w);
}

/* Frames that somebody puts into a stream that has gone on elsewhere are not taken: the stream ends, and the agent goes
 * on by the next one. */
static void injected_frames_are_refused(void **state)
{
    struct world w;
    struct stand_in s;
    struct tb_control_stream stranger;
    uint8_t next[4];
    size_t length;
    world_open(&w);
    name_stand_in(&w);
    shutdown(w.launcher.out, SHUT_RDWR);
    stand_in_open(&s, &w, next, sizeof next);
    stand_in_send(&s, &w, (uint8_t[]){0, 0, 0, 0}, 4);
    await_end_of_attempt(&w);
    assert_false(tb_uplink_is_down(&w.uplink));
    tb_control_stream_open(&stranger, -1, -1);
    tb_put_u32(tb_control_stream_begin(&stranger, TB_CONTROL_SHELL), 1);
    assert_int_equal(tb_control_stream_end(&stranger), TB_OK);
    const void *bytes = tb_control_stream_take(&stranger, SIZE_MAX, &length);
    assert_int_equal(send(tb_tls_socket_descriptor(s.tls), bytes, length, 0), length);
    virtual_loop_turn(&w.t);
    assert_int_equal(w.frames, 0);
    assert_int_equal(w.lost, 0);
    assert_true(tb_uplink_is_down(&w.uplink));
    stand_in_close(&s);
    stand_in_open(&s, &w, next, sizeof next);
    stand_in_send(&s, &w, (uint8_t[]){0, 0, 0, 0}, 4);
    stand_in_tell(&s, &w, TB_CONTROL_WINDOW, 9);
    assert_false(tb_uplink_is_down(&w.uplink));
    assert_int_equal(w.number, 9);
    stand_in_close(&s);
    tb_control_stream_close(&stranger);
    world_close(&w);
}

/* A stream that passes nothing, though it is open: a third of the time that would be too long, and another is tried. */
static void a_silent_stream_is_left(void **state)
{
    struct world w;
    struct stand_in s;
    uint8_t next[4];
    world_open(&w);
    name_stand_in(&w);
    tb_uplink_start_heartbeat(&w.uplink, true);
    tell(&w, &w.launcher, TB_CONTROL_WINDOW, 1);
    uint64_t begun = w.t.now;
    while (!w.uplink.attach.busy && w.t.now - begun < 2 * (uint64_t)HEARTBEAT) {
        assert_int_equal(tb_uplink_is_sure(&w.uplink), w.uplink.silence.time <= HEARTBEAT / 6);
        pass(&w, BEAT);
    }
    assert_in_range(w.t.now - begun, HEARTBEAT / 3, HEARTBEAT / 3 + 3 * BEAT);
    assert_false(tb_uplink_is_down(&w.uplink));
    assert_false(tb_uplink_is_sure(&w.uplink)); /* so nobody else comes to us */
    stand_in_open(&s, &w, next, sizeof next);
    assert_int_equal(next[0], 1);
    stand_in_send(&s, &w, (uint8_t[]){0, 0, 0, 0}, 4);
    await_end_of_attempt(&w);
    s.stream.sequence_out = 1;
    stand_in_tell(&s, &w, TB_CONTROL_WINDOW, 2);
    assert_int_equal(w.number, 2);
    assert_true(tb_uplink_is_sure(&w.uplink));
    for (int i = 0; i < 10; i++) {
        pass(&w, HEARTBEAT / 4);
        stand_in_tell(&s, &w, TB_CONTROL_PING, 0);
    }
    assert_int_equal(w.lost, 0);
    stand_in_close(&s);
    world_close(&w);
}

/* What the stream brings after all is worth more than the other one. */
static void a_stream_that_speaks_again_is_kept(void **state)
{
    struct world w;
    struct stand_in s;
    uint8_t next[4];
    world_open(&w);
    name_stand_in(&w);
    tb_uplink_start_heartbeat(&w.uplink, true);
    tell(&w, &w.launcher, TB_CONTROL_WINDOW, 1);
    pass(&w, HEARTBEAT / 3 + 3 * BEAT);
    assert_true(w.uplink.attach.busy);
    stand_in_open(&s, &w, next, sizeof next);
    tell(&w, &w.launcher, TB_CONTROL_WINDOW, 2);
    assert_false(w.uplink.attach.busy);
    assert_int_equal(w.number, 2);
    stand_in_close(&s);
    pass(&w, HEARTBEAT / 4);
    send_up(&w, TB_CONTROL_TUNNEL, 4);
    tell(&w, &w.launcher, TB_CONTROL_WINDOW, 3);
    assert_int_equal(w.number, 3);
    assert_int_equal(w.lost, 0);
    world_close(&w);
}

/* A stream from the launcher itself: its end is the end of the job, unless it was silent before: then the launcher may
 * have let us in by somebody else, of which we have not heard yet. */
static void the_end_of_a_straight_stream(void **state)
{
    for (int doubted = 0; doubted < 2; doubted++) {
        struct world w;
        world_open(&w);
        name_stand_in(&w);
        w.uplink.straight = true;
        tb_uplink_start_heartbeat(&w.uplink, true);
        tell(&w, &w.launcher, TB_CONTROL_WINDOW, 1);
        pass(&w, doubted ? HEARTBEAT / 3 + 3 * BEAT : HEARTBEAT / 6);
        tell(&w, &w.launcher, TB_CONTROL_WINDOW, 2); /* was under way */
        shutdown(w.launcher.out, SHUT_RDWR);
        virtual_loop_turn(&w.t);
        assert_int_equal(w.lost, !doubted);
        assert_int_equal(tb_uplink_is_down(&w.uplink), doubted);
        world_close(&w);
    }
}

/* Everybody refuses, or nobody is there: after a few rounds it is over. */
static void nobody_stands_in(void **state)
{
    for (int there = 0; there < 2; there++) {
        struct world w;
        world_open(&w);
        name_stand_in(&w);
        if (!there) {
            close(w.listener);
            w.listener = -1;
        }
        shutdown(w.launcher.out, SHUT_RDWR);
        virtual_loop_turn(&w.t);
        for (int round = 1; round <= 4; round++) {
            if (there)
                close(accept_agent(&w, TB_WELCOME_BUSY, 0, NULL));
            await_end_of_attempt(&w);
            assert_int_equal(w.lost, round == 4);
            virtual_loop_pass(&w.t, PAUSE);
        }
        assert_int_equal(w.lost, 1);
        assert_string_equal(w.why, "the launcher is gone, and nobody leads to it");
        world_close(&w);
    }
}

/* A stand-in that has not heard the launcher for a moment itself hangs up. That may pass; but not for ever, since
 * several may wait for each other when the launcher is gone. */
static void an_unsure_stand_in_is_tried_again(void **state)
{
    for (int recovers = 1; recovers >= 0; recovers--) {
        struct world w;
        struct stand_in s;
        struct tb_key secret;
        uint8_t next[4];
        world_open(&w);
        name_stand_in(&w);
        shutdown(w.launcher.out, SHUT_RDWR);
        uint64_t begun = w.t.now;
        virtual_loop_turn(&w.t);
        for (int round = 0; round < (recovers ? 10 : 100) && w.lost == 0; round++) {
            close(accept_agent(&w, TB_WELCOME_OK, TB_FEATURE_TLS, &secret));
            await_end_of_attempt(&w);
            virtual_loop_pass(&w.t, PAUSE);
        }
        assert_int_equal(w.lost, !recovers);
        if (recovers) {
            stand_in_open(&s, &w, next, sizeof next);
            stand_in_send(&s, &w, (uint8_t[]){0, 0, 0, 0}, 4);
            await_end_of_attempt(&w);
            assert_false(tb_uplink_is_down(&w.uplink));
            stand_in_close(&s);
        } else {
            assert_in_range(w.t.now - begun, HEARTBEAT, (uint64_t)HEARTBEAT + 10 * PAUSE);
        }
        world_close(&w);
    }
}

/* Whoever accepts and is silent may only be slow; but not for ever. */
static void silent_stand_ins_are_tried_for_long(void **state)
{
    struct world w;
    world_open(&w);
    name_stand_in(&w);
    shutdown(w.launcher.out, SHUT_RDWR);
    uint64_t begun = w.t.now;
    virtual_loop_turn(&w.t);
    for (int i = 0; i < 1000 && w.lost == 0; i++)
        virtual_loop_pass(&w.t, 100000000);
    assert_int_equal(w.lost, 1);
    assert_in_range(w.t.now - begun, tb_param.link_patience, tb_param.link_patience + 5000000000u);
    world_close(&w);
}

static void at_the_end_nobody_is_asked(void **state)
{
    struct world w;
    world_open(&w);
    name_stand_in(&w);
    tb_uplink_make_final(&w.uplink);
    shutdown(w.launcher.out, SHUT_RDWR);
    virtual_loop_turn(&w.t);
    assert_int_equal(w.lost, 1);
    assert_int_equal(accept4(w.listener, NULL, NULL, SOCK_CLOEXEC), -1);
    world_close(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_silent_stream_is_left),
        cmocka_unit_test(a_stream_that_speaks_again_is_kept),
        cmocka_unit_test(the_end_of_a_straight_stream),
        cmocka_unit_test(another_stream_goes_on),
        cmocka_unit_test(plain_streams_are_refused),
        cmocka_unit_test(injected_frames_are_refused),
        cmocka_unit_test(nobody_stands_in),
        cmocka_unit_test(an_unsure_stand_in_is_tried_again),
        cmocka_unit_test(silent_stand_ins_are_tried_for_long),
        cmocka_unit_test(at_the_end_nobody_is_asked),
    };
    tb_param_load();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
