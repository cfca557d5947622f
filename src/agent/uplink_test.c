/* The uplink with a launcher that the test plays, and with stand-ins: the test listens where they should be. */
#include "remote/virtual_loop_test.h"
#include "agent/uplink.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <unistd.h>

#define JOB       5u
#define SELF      2u /* our host */
#define HOSTS     3u
#define HEARTBEAT 3000000000u
#define PAUSE     200000000u

struct world {
    struct virtual_loop t;
    struct tb_uplink uplink;
    struct tb_control_stream launcher;
    struct tb_key key;
    struct tb_address_book book;
    struct tb_host hosts[HOSTS];
    int listener; /* of the stand-in */
    int frames;
    uint32_t kind, number; /* of the last frame */
    int lost;
    char why[128];
};

static void take_frame(void *context, struct tb_control_frame *frame)
{
    struct world *w = context;
    w->frames++;
    w->kind = frame->kind;
    w->number = tb_get_u32(&frame->fields);
}

static void take_lost(void *context, const char *why)
{
    struct world *w = context;
    w->lost++;
    snprintf(w->why, sizeof w->why, "%s", why);
}

static void settle(struct tb_loop *loop)
{
    struct world *w = TB_CONTAINER(TB_CONTAINER(loop, struct virtual_loop, loop), struct world, t);
    tb_uplink_settle(&w->uplink);
}

/* A port of this machine at which somebody listens. */
static int listen_here(uint16_t *port)
{
    struct sockaddr_in name = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof name;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&name, sizeof name), 0);
    assert_int_equal(listen(fd, 16), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&name, &length), 0);
    *port = ntohs(name.sin_port);
    return fd;
}

static void world_open(struct world *w)
{
    const struct tb_uplink_events events = {.context = w, .frame = take_frame, .lost = take_lost};
    int pair[2];
    char version[64];
    memset(w, 0, sizeof *w);
    tb_param.heartbeat = HEARTBEAT;
    tb_param.link_patience = 60000000000u;
    assert_int_equal(tb_key_make(&w->key), TB_OK);
    assert_int_equal(virtual_loop_open(&w->t), TB_OK);
    w->t.loop.settle = settle;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair), 0);
    tb_control_stream_open(&w->launcher, pair[1], pair[1]);
    /* As the agent has it: two descriptors. */
    assert_int_equal(tb_uplink_open(&w->uplink, &w->t.loop, pair[0], fcntl(pair[0], F_DUPFD_CLOEXEC, 3), &events),
                     TB_OK);
    assert_int_equal(tb_control_stream_fill(&w->launcher), TB_OK);
    assert_int_equal(tb_control_stream_preamble(&w->launcher, version, sizeof version), TB_OK);
    assert_int_equal(strncmp(version, TB_VERSION, strlen(TB_VERSION)), 0);
    w->book = (struct tb_address_book){.job = JOB, .host_count = HOSTS, .hosts = w->hosts};
    uint16_t port;
    w->listener = listen_here(&port);
    w->hosts[1].address_count = 1;
    w->hosts[1].addresses[0] = (struct tb_address){.family = 4, .port = port, .bytes = {127, 0, 0, 1}};
}

static void world_close(struct world *w)
{
    tb_uplink_close(&w->uplink);
    tb_control_stream_close(&w->launcher);
    virtual_loop_close(&w->t);
    if (w->listener >= 0)
        close(w->listener);
}

static void tell(struct world *w, struct tb_control_stream *to, enum tb_control kind, uint32_t number)
{
    tb_put_u32(tb_control_stream_begin(to, kind), number);
    assert_int_equal(tb_control_stream_end(to), TB_OK);
    assert_int_equal(tb_control_stream_flush(to), TB_OK);
    virtual_loop_turn(&w->t);
}

static void send_up(struct world *w, enum tb_control kind, uint32_t number)
{
    tb_put_u32(tb_uplink_begin(&w->uplink, kind), number);
    assert_int_equal(tb_uplink_end(&w->uplink), TB_OK);
    virtual_loop_turn(&w->t);
}

/* The next frame at the launcher; false: there is none. */
static bool hear(struct tb_control_stream *at, uint32_t *kind, uint32_t *number)
{
    struct tb_control_frame frame;
    tb_control_stream_fill(at);
    if (tb_control_stream_next(at, &frame) != TB_OK)
        return false;
    *kind = frame.kind;
    *number = tb_get_u32(&frame.fields);
    return true;
}

static void expect(struct tb_control_stream *at, uint32_t kind, uint32_t number)
{
    uint32_t got_kind = 0, got_number = 0;
    assert_true(hear(at, &got_kind, &got_number));
    assert_int_equal(got_kind, kind);
    assert_int_equal(got_number, number);
}

/* Pings until now; nothing else may have come. */
static int count_pings(struct world *w)
{
    uint32_t kind, number;
    int count = 0;
    for (; hear(&w->launcher, &kind, &number); count++)
        assert_int_equal(kind, TB_CONTROL_PING);
    return count;
}

/* ---- a stream ---------------------------------------------------------------------------------------------------- */

static void frames_go_both_ways(void **state)
{
    struct world w;
    world_open(&w);
    tell(&w, &w.launcher, TB_CONTROL_WINDOW, 17);
    assert_int_equal(w.frames, 1);
    assert_int_equal(w.kind, TB_CONTROL_WINDOW);
    assert_int_equal(w.number, 17);
    send_up(&w, TB_CONTROL_TUNNEL, 4);
    expect(&w.launcher, TB_CONTROL_TUNNEL, 4);
    tell(&w, &w.launcher, TB_CONTROL_HEARD, 1);
    assert_int_equal(w.frames, 1); /* that is between the two ends of the stream */
    world_close(&w);
}

static void a_slow_launcher_is_waited_for(void **state)
{
    struct world w;
    world_open(&w);
    static const char bytes[1000];
    uint32_t count = 0, kind, number;
    for (; tb_uplink_queued(&w.uplink) == 0 && count < 10000; count++) {
        struct tb_writer *frame = tb_uplink_begin(&w.uplink, TB_CONTROL_OUTPUT);
        tb_put_u32(frame, count);
        tb_put_bytes(frame, bytes, sizeof bytes);
        tb_uplink_end(&w.uplink);
        virtual_loop_turn(&w.t);
    }
    assert_in_range(count, 2, 9999);
    assert_int_equal(tb_uplink_settle(&w.uplink), TB_AGAIN);
    uint32_t next = 0;
    for (int i = 0; i < 10000 && next < count; i++) {
        while (hear(&w.launcher, &kind, &number))
            assert_int_equal(number, next++);
        virtual_loop_turn(&w.t);
    }
    assert_int_equal(next, count);
    assert_int_equal(tb_uplink_settle(&w.uplink), TB_OK);
    world_close(&w);
}

static void its_end_is_told(void **state)
{
    struct world w;
    world_open(&w);
    tb_control_stream_close(&w.launcher);
    virtual_loop_turn(&w.t);
    assert_int_equal(w.lost, 1);
    assert_string_equal(w.why, "the launcher is gone");
    send_up(&w, TB_CONTROL_TUNNEL, 4); /* does no harm */
    virtual_loop_pass(&w.t, 10 * (uint64_t)HEARTBEAT);
    assert_int_equal(w.lost, 1);
    world_close(&w);
}

static void nonsense_ends_it(void **state)
{
    struct world w;
    world_open(&w);
    static const char nonsense[256] = "this is no frame";
    assert_int_equal(write(w.launcher.out, nonsense, sizeof nonsense), sizeof nonsense);
    virtual_loop_turn(&w.t);
    assert_int_equal(w.lost, 1);
    assert_int_equal(w.frames, 0);
    world_close(&w);
}

/* ---- heartbeat --------------------------------------------------------------------------------------------------- */

static void a_heart_beats(void **state)
{
    struct world w;
    world_open(&w);
    virtual_loop_pass(&w.t, HEARTBEAT);
    assert_int_equal(count_pings(&w), 0); /* not asked for */
    tell(&w, &w.launcher, TB_CONTROL_PING, 0);
    tb_uplink_start_heartbeat(&w.uplink);
    for (int i = 0; i < 10; i++) {
        virtual_loop_pass(&w.t, HEARTBEAT / 3);
        virtual_loop_turn(&w.t);
        assert_int_equal(count_pings(&w), 1);
        tell(&w, &w.launcher, TB_CONTROL_PING, 0);
    }
    assert_int_equal(w.lost, 0);
    world_close(&w);
}

static void silence_is_noticed(void **state)
{
    struct world w;
    world_open(&w);
    tb_uplink_start_heartbeat(&w.uplink);
    for (int i = 0; i < 3; i++)
        virtual_loop_pass(&w.t, HEARTBEAT / 3);
    assert_int_equal(w.lost, 0);
    virtual_loop_pass(&w.t, HEARTBEAT / 3);
    assert_int_equal(w.lost, 1);
    assert_string_equal(w.why, "the launcher is silent");
    world_close(&w);
}

/* It is stopped, and will be silent; or it is we who have slept. */
static void silence_can_be_excused(void **state)
{
    struct world w;
    world_open(&w);
    tb_uplink_start_heartbeat(&w.uplink);
    tb_uplink_suspend(&w.uplink, true);
    for (int i = 0; i < 12; i++)
        virtual_loop_pass(&w.t, HEARTBEAT / 3);
    assert_int_equal(w.lost, 0);
    tell(&w, &w.launcher, TB_CONTROL_PING, 0);
    tb_uplink_suspend(&w.uplink, false);
    virtual_loop_pass(&w.t, 5 * (uint64_t)HEARTBEAT);
    assert_int_equal(w.lost, 0);
    virtual_loop_pass(&w.t, HEARTBEAT / 3); /* it had its chance */
    assert_int_equal(w.lost, 1);
    world_close(&w);
}

/* ---- standing in ------------------------------------------------------------------------------------------------- */

static void name_stand_in(struct world *w)
{
    const uint32_t hosts[] = {1};
    tb_uplink_keep(&w->uplink);
    tb_uplink_set_stand_ins(&w->uplink, &w->key, (struct tb_proc){JOB, TB_PROC_AGENT | SELF}, &w->book, hosts, 1);
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
        cmocka_unit_test(frames_go_both_ways),
        cmocka_unit_test(a_slow_launcher_is_waited_for),
        cmocka_unit_test(its_end_is_told),
        cmocka_unit_test(nonsense_ends_it),
        cmocka_unit_test(a_heart_beats),
        cmocka_unit_test(silence_is_noticed),
        cmocka_unit_test(silence_can_be_excused),
        cmocka_unit_test(another_stream_goes_on),
        cmocka_unit_test(plain_streams_are_refused),
        cmocka_unit_test(injected_frames_are_refused),
        cmocka_unit_test(nobody_stands_in),
        cmocka_unit_test(silent_stand_ins_are_tried_for_long),
        cmocka_unit_test(at_the_end_nobody_is_asked),
    };
    tb_param_load();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
