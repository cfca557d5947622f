/* A loop for tests whose time the test moves: a step handles what is ready and the timers that are due, and never
 * waits. Part of a test program; one thread. */
#ifndef TB_LAUNCH_LOOP_TEST_H
#define TB_LAUNCH_LOOP_TEST_H

#include "remote/remote.h"

#include <sys/eventfd.h>
#include <unistd.h>

struct loop_test {
    struct tb_loop loop;
    struct tb_watch always; /* ready at all times, so that nothing waits */
    struct tb_clock clock;
    uint64_t now;
};

static uint64_t loop_test_now(void *context)
{
    return *(uint64_t *)context;
}

static void loop_test_stop(struct tb_watch *watch, uint32_t events)
{
    TB_CONTAINER(watch, struct loop_test, always)->loop.stop = true;
}

static void loop_test_open(struct loop_test *test)
{
    *test = (struct loop_test){.now = 1000000000u};
    test->clock = (struct tb_clock){.now = loop_test_now, .context = &test->now};
    assert_int_equal(tb_loop_open(&test->loop, &test->clock), TB_OK);
    int always = eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK);
    assert_int_equal(tb_loop_watch(&test->loop, &test->always, always, EPOLLIN, loop_test_stop), TB_OK);
}

static void loop_test_close(struct loop_test *test)
{
    int always = test->always.descriptor;
    tb_loop_unwatch(&test->loop, &test->always);
    close(always);
    tb_loop_close(&test->loop);
}

static inline void loop_test_step(struct loop_test *test)
{
    test->loop.stop = false;
    assert_int_equal(tb_loop_run(&test->loop), TB_OK);
}

/* Lets time pass. */
static inline void loop_test_pass(struct loop_test *test, uint64_t time)
{
    test->now += time;
    loop_test_step(test);
}

#endif
