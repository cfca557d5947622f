/* For unit tests of the parts of agent and launcher: a loop in virtual time, which only the test moves on. It never
 * sleeps. Part of a test program; one thread. */
#ifndef TB_REMOTE_VIRTUAL_LOOP_TEST_H
#define TB_REMOTE_VIRTUAL_LOOP_TEST_H

#include "remote/remote.h"

struct virtual_loop {
    struct tb_loop loop;
    struct tb_clock clock;
    uint64_t now;
    struct tb_timer end;
};

static uint64_t virtual_loop_now(void *context)
{
    return ((struct virtual_loop *)context)->now;
}

static void virtual_loop_stop(struct tb_timer *timer)
{
    TB_CONTAINER(timer, struct virtual_loop, end)->loop.stop = true;
}

static inline int virtual_loop_open(struct virtual_loop *t)
{
    t->now = 1000000000u;
    t->clock = (struct tb_clock){.now = virtual_loop_now, .context = t};
    tb_timer_init(&t->end, virtual_loop_stop);
    return tb_loop_open(&t->loop, &t->clock);
}

static inline void virtual_loop_close(struct virtual_loop *t)
{
    tb_timer_clear(&t->end);
    tb_loop_close(&t->loop);
}

/* Whatever is ready or due now, and what follows from it, as far as a few turns bring it. */
static inline void virtual_loop_turn(struct virtual_loop *t)
{
    for (int i = 0; i < 8; i++) {
        tb_timer_set(&t->loop, &t->end, 0);
        t->loop.stop = false;
        TB_ASSERT(tb_loop_run(&t->loop) == TB_OK);
    }
}

/* The same, `ns` later. */
static inline void virtual_loop_pass(struct virtual_loop *t, uint64_t ns)
{
    t->now += ns;
    virtual_loop_turn(t);
}

#endif
