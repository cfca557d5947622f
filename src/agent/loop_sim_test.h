/* A loop in virtual time, for tests of the parts of an agent (and of the launcher) that wait for sockets and timers: it
 * runs on the simulated network, whose clock goes to the next event whenever nobody has anything to do. An hour of
 * heartbeats takes milliseconds, and a timeout comes when it should, however slow the machine.
 *
 *     struct loop_sim s;
 *     loop_sim_open(&s, seed);
 *     s.sim.route[0].delay = ...;
 *     tb_sim_streams_pair(&s.streams, 0, ends);   two ends of a stream, or
 *     tb_sim_streams_listen(&s.streams, ...);     a port that leads to another
 *     ... give &s.loop to what is tested ...
 *     loop_sim_run(&s, span);
 *     loop_sim_close(&s); */
#ifndef TB_AGENT_LOOP_SIM_TEST_H
#define TB_AGENT_LOOP_SIM_TEST_H

#include "remote/remote.h"
#include "transport/sim/streams.h"

#include <poll.h>
#include <stdlib.h>

struct loop_sim {
    struct tb_loop loop;
    struct tb_sim sim;
    struct tb_sim_streams streams;
    uint64_t until;                       /* the run ends */
    void (*settle)(struct tb_loop *loop); /* what is tested wants to flush before each sleep; may be NULL */
};

static bool loop_sim_ready(const struct loop_sim *s, int milliseconds)
{
    struct pollfd epoll = {.fd = s->loop.epoll, .events = POLLIN};
    return poll(&epoll, 1, milliseconds) > 0;
}

static uint64_t loop_sim_timer(const struct loop_sim *s)
{
    uint64_t first = TB_NEVER;
    struct tb_timer *timer;
    TB_LIST_EACH (timer, &s->loop.timers, struct tb_timer, node)
        first = timer->due < first ? timer->due : first;
    return first;
}

/* Returns when a socket is ready or a timer is due, so that the loop never sleeps. */
static void loop_sim_settle(struct tb_loop *loop)
{
    struct loop_sim *s = TB_CONTAINER(loop, struct loop_sim, loop);
    if (s->settle != NULL)
        s->settle(loop);
    for (;;) {
        int kernel_time = tb_list_empty(&s->streams.listeners) ? 0 : 5; /* ms, of TCP: see streams.h */
        while (tb_sim_streams_move(&s->streams) > 0)
            continue;
        if (loop_sim_ready(s, 0) || loop_sim_timer(s) <= s->sim.now)
            return;
        if (kernel_time > 0 && (loop_sim_ready(s, kernel_time) || tb_sim_streams_move(&s->streams) > 0))
            continue;
        uint64_t stream = tb_sim_streams_deadline(&s->streams), timer = loop_sim_timer(s);
        uint64_t next = stream < timer ? stream : timer;
        if (next > s->until) {
            s->sim.now = s->until;
            loop->stop = true;
            return;
        }
        s->sim.now = next;
    }
}

static void loop_sim_open(struct loop_sim *s, uint64_t seed)
{
    *s = (struct loop_sim){.until = 0};
    tb_sim_init(&s->sim, seed);
    tb_sim_streams_init(&s->streams, &s->sim);
    if (tb_loop_open(&s->loop, &s->sim.clock) != TB_OK)
        abort();
    s->loop.settle = loop_sim_settle;
}

/* Until the span has passed, or somebody stops the loop. */
static void loop_sim_run(struct loop_sim *s, uint64_t span)
{
    s->until = s->sim.now + span;
    s->loop.stop = false;
    if (tb_loop_run(&s->loop) != TB_OK)
        abort();
}

static void loop_sim_close(struct loop_sim *s)
{
    tb_sim_streams_destroy(&s->streams);
    tb_loop_close(&s->loop);
    tb_sim_destroy(&s->sim);
}

#endif
