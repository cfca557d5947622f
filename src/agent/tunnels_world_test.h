/* For unit tests of tunnels: real processes instead of shells to other hosts, and a launcher that the test plays. Part
 * of a test program; one thread. */
#ifndef TB_AGENT_TUNNELS_WORLD_TEST_H
#define TB_AGENT_TUNNELS_WORLD_TEST_H

#include "remote/virtual_loop_test.h"
#include "agent/tunnels.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#define PATIENCE 1000000000u
#define AHEAD    (1u << 20)

struct world {
    struct virtual_loop t;
    struct tb_uplink uplink;
    struct tb_tunnels tunnels;
    struct tb_control_stream launcher;
    sigset_t mask;
    int ended;
};

static struct tb_control_frame frame; /* the last that the launcher has heard */

static inline void take_frame(void *context, struct tb_control_frame *f)
{
    struct world *w = context;
    struct tb_reader *r = &f->fields;
    switch (f->kind) {
    case TB_CONTROL_SHELL:
        tb_tunnels_take_shell(&w->tunnels, r);
        break;
    case TB_CONTROL_ATTACH:
        tb_tunnels_take_answer(&w->tunnels, r);
        break;
    case TB_CONTROL_TUNNEL:
        tb_tunnels_take_bytes(&w->tunnels, r);
        break;
    case TB_CONTROL_TUNNEL_END:
        tb_tunnels_take_end(&w->tunnels, r);
        break;
    default:
        fail();
    }
}

static inline void take_lost(void *context, const char *why)
{
    fail_msg("%s", why);
}

static inline void take_ended(void *context)
{
    ((struct world *)context)->ended++;
}

static inline void settle(struct tb_loop *loop)
{
    struct world *w = TB_CONTAINER(TB_CONTAINER(loop, struct virtual_loop, loop), struct world, t);
    tb_tunnels_settle(&w->tunnels);
    tb_uplink_settle(&w->uplink);
}

static inline void world_open(struct world *w)
{
    const struct tb_uplink_events uplink_calls = {.context = w, .frame = take_frame, .lost = take_lost};
    const struct tb_tunnels_events events = {.context = w, .ended = take_ended};
    int pair[2];
    char version[64];
    memset(w, 0, sizeof *w);
    sigemptyset(&w->mask);
    assert_int_equal(virtual_loop_open(&w->t), TB_OK);
    w->t.loop.settle = settle;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair), 0);
    tb_control_stream_open(&w->launcher, pair[1], pair[1]);
    int out = fcntl(pair[0], F_DUPFD_CLOEXEC, 3);
    tb_tunnels_open(&w->tunnels, &w->t.loop, &w->uplink, &w->mask, &events);
    assert_int_equal(tb_uplink_open(&w->uplink, &w->t.loop, pair[0], out, &uplink_calls), TB_OK);
    assert_int_equal(tb_control_stream_fill(&w->launcher), TB_OK);
    assert_int_equal(tb_control_stream_preamble(&w->launcher, version, sizeof version), TB_OK);
}

static inline void world_close(struct world *w)
{
    tb_tunnels_close(&w->tunnels);
    tb_uplink_close(&w->uplink);
    tb_control_stream_close(&w->launcher);
    virtual_loop_close(&w->t);
    while (waitpid(-1, NULL, 0) > 0)
        ;
}

/* ---- the launcher ------------------------------------------------------------------------------------------------ */

static inline void flush(struct world *w)
{
    assert_int_equal(tb_control_stream_end(&w->launcher), TB_OK);
    assert_int_equal(tb_control_stream_flush(&w->launcher), TB_OK);
    virtual_loop_turn(&w->t);
}

/* The "host" is the script of a local shell. */
static inline void start_shell(struct world *w, uint32_t number, const char *script, const char *command)
{
    struct tb_writer *f = tb_control_stream_begin(&w->launcher, TB_CONTROL_SHELL);
    tb_put_u32(f, number);
    tb_put_text(f, script);
    tb_put_text(f, "");
    tb_put_u32(f, 0);
    tb_put_text(f, command);
    tb_put_text(f, "tombolo");
    flush(w);
}

static inline void send_bytes(struct world *w, uint32_t number, const char *text)
{
    struct tb_writer *f = tb_control_stream_begin(&w->launcher, TB_CONTROL_TUNNEL);
    tb_put_u32(f, number);
    tb_put_bytes(f, text, strlen(text));
    flush(w);
}

static inline void send_end(struct world *w, uint32_t number, bool now)
{
    struct tb_writer *f = tb_control_stream_begin(&w->launcher, TB_CONTROL_TUNNEL_END);
    tb_put_u32(f, number);
    tb_put_u8(f, now);
    flush(w);
}

/* Processes take their time. */
static inline struct tb_reader *await(struct world *w, enum tb_control kind)
{
    for (int i = 0; i < 1000; i++) {
        struct pollfd ready = {.fd = w->t.loop.epoll, .events = POLLIN};
        virtual_loop_turn(&w->t);
        tb_control_stream_fill(&w->launcher);
        if (tb_control_stream_next(&w->launcher, &frame) == TB_OK) {
            assert_int_equal(frame.kind, kind);
            return &frame.fields;
        }
        poll(&ready, 1, 10);
    }
    fail_msg("frame %d has not come", (int)kind);
    return NULL;
}

static inline bool is_silent(struct world *w)
{
    virtual_loop_turn(&w->t);
    tb_control_stream_fill(&w->launcher);
    return tb_control_stream_next(&w->launcher, &frame) == TB_AGAIN;
}

static inline void expect_bytes(struct world *w, enum tb_control kind, uint32_t number, const char *text)
{
    struct tb_reader *r = await(w, kind);
    size_t length = 0;
    assert_int_equal(tb_get_u32(r), number);
    const char *bytes = tb_get_bytes(r, &length);
    assert_int_equal(length, strlen(text));
    assert_memory_equal(bytes, text, length);
}

static inline void expect_end(struct world *w, uint32_t number, bool exited, int status)
{
    struct tb_reader *r = await(w, TB_CONTROL_TUNNEL_END);
    assert_int_equal(tb_get_u32(r), number);
    assert_int_equal(tb_get_u8(r), exited);
    assert_int_equal(tb_get_u32(r), (uint32_t)status);
}

static inline void collect(struct world *w)
{
    int status;
    pid_t pid = waitpid(-1, &status, 0);
    assert_true(pid > 0);
    tb_tunnels_reap(&w->tunnels, pid, status);
}

#endif
