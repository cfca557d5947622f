/* For unit tests of the uplink: one with a launcher that the test plays, and a port at which the test may stand in.
 * Part of a test program; one thread. */
#ifndef TB_AGENT_UPLINK_WORLD_TEST_H
#define TB_AGENT_UPLINK_WORLD_TEST_H

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
#define BEAT      (HEARTBEAT / 36)
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

static inline void take_frame(void *context, struct tb_control_frame *frame)
{
    struct world *w = context;
    w->frames++;
    w->kind = frame->kind;
    w->number = tb_get_u32(&frame->fields);
}

static inline void take_lost(void *context, const char *why)
{
    struct world *w = context;
    w->lost++;
    snprintf(w->why, sizeof w->why, "%s", why);
}

static inline void settle(struct tb_loop *loop)
{
    struct world *w = TB_CONTAINER(TB_CONTAINER(loop, struct virtual_loop, loop), struct world, t);
    tb_uplink_settle(&w->uplink);
}

/* A port of this machine at which somebody listens. */
static inline int listen_here(uint16_t *port)
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

static inline void world_open(struct world *w)
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

static inline void world_close(struct world *w)
{
    tb_uplink_close(&w->uplink);
    tb_control_stream_close(&w->launcher);
    virtual_loop_close(&w->t);
    if (w->listener >= 0)
        close(w->listener);
}

static inline void tell(struct world *w, struct tb_control_stream *to, enum tb_control kind, uint32_t number)
{
    tb_put_u32(tb_control_stream_begin(to, kind), number);
    assert_int_equal(tb_control_stream_end(to), TB_OK);
    assert_int_equal(tb_control_stream_flush(to), TB_OK);
    virtual_loop_turn(&w->t);
}

static inline void send_up(struct world *w, enum tb_control kind, uint32_t number)
{
    tb_put_u32(tb_uplink_begin(&w->uplink, kind), number);
    assert_int_equal(tb_uplink_end(&w->uplink), TB_OK);
    virtual_loop_turn(&w->t);
}

/* Time passes, beat by beat: who is not stopped looks so often. */
static inline void pass(struct world *w, uint64_t ns)
{
    for (uint64_t at = 0; at < ns && w->lost == 0; at += BEAT)
        virtual_loop_pass(&w->t, BEAT);
}

/* The next frame at the launcher; false: there is none. */
static inline bool hear(struct tb_control_stream *at, uint32_t *kind, uint32_t *number)
{
    struct tb_control_frame frame;
    tb_control_stream_fill(at);
    if (tb_control_stream_next(at, &frame) != TB_OK)
        return false;
    *kind = frame.kind;
    *number = tb_get_u32(&frame.fields);
    return true;
}

static inline void expect(struct tb_control_stream *at, uint32_t kind, uint32_t number)
{
    uint32_t got_kind = 0, got_number = 0;
    assert_true(hear(at, &got_kind, &got_number));
    assert_int_equal(got_kind, kind);
    assert_int_equal(got_number, number);
}

/* Pings until now; nothing else may have come. */
static inline int count_pings(struct world *w)
{
    uint32_t kind, number;
    int count = 0;
    for (; hear(&w->launcher, &kind, &number); count++)
        assert_int_equal(kind, TB_CONTROL_PING);
    return count;
}

#endif
