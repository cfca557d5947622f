/* For unit tests of the agent's parts: a loop in virtual time, which only the test moves on. It never sleeps. */
#ifndef TB_AGENT_TEST_LOOP_H
#define TB_AGENT_TEST_LOOP_H

#include "remote/remote.h"

struct test_loop {
    struct tb_loop loop;
    struct tb_clock clock;
    uint64_t now;
    struct tb_timer end;
};

static uint64_t test_loop_now(void *context)
{
    return ((struct test_loop *)context)->now;
}

static void test_loop_stop(struct tb_timer *timer)
{
    TB_CONTAINER(timer, struct test_loop, end)->loop.stop = true;
}

static inline int test_loop_open(struct test_loop *t)
{
    t->now = 1000000000u;
    t->clock = (struct tb_clock){.now = test_loop_now, .context = t};
    tb_timer_init(&t->end, test_loop_stop);
    return tb_loop_open(&t->loop, &t->clock);
}

static inline void test_loop_close(struct test_loop *t)
{
    tb_timer_clear(&t->end);
    tb_loop_close(&t->loop);
}

/* Whatever is ready or due now, and what follows from it, as far as a few turns bring it. */
static inline void test_loop_turn(struct test_loop *t)
{
    for (int i = 0; i < 8; i++) {
        tb_timer_set(&t->loop, &t->end, 0);
        t->loop.stop = false;
        TB_ASSERT(tb_loop_run(&t->loop) == TB_OK);
    }
}

/* The same, `ns` later. */
static inline void test_loop_pass(struct test_loop *t, uint64_t ns)
{
    t->now += ns;
    test_loop_turn(t);
}

#endif
