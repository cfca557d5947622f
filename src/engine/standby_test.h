/* Two engines for tests of a standby: the first one's process computes, as the test itself does, and has a standby; the
 * second one is used by a thread of its own, the partner. */
#ifndef TB_ENGINE_STANDBY_TEST_H
#define TB_ENGINE_STANDBY_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "engine/loopback_test.h"

#include <pthread.h>

#define A_WHILE 50  /* ms, in which nothing may happen */
#define SECONDS 300 /* after which a test that hangs is ended */

/* A message that the partner sends, which somebody has to answer: synchronous, or long. */
struct question {
    struct tb_channel *from, *to;
    uint64_t tag, length;
    char *out, *in;
    struct tb_request receive;
    _Atomic bool answered;
    pthread_t partner;
};

static inline void *question_run(void *argument)
{
    struct question *q = argument;
    struct tb_buffer buffer = {q->out, q->length, &tb_type_byte};
    struct tb_request r = {.complete = NULL};
    tb_send_post(q->from, &r, &buffer, 0, q->tag, TB_MODE_SYNCHRONOUS);
    tb_request_wait(&r);
    atomic_store(&q->answered, r.status.error == TB_OK);
    return NULL;
}

/* Posts the receive, and has the partner ask. */
static inline void question_ask(struct question *q)
{
    q->out = malloc(q->length + 1);
    q->in = calloc(1, q->length + 1);
    assert_true(q->out != NULL && q->in != NULL);
    memset(q->out, (int)q->tag + 1, q->length);
    struct tb_buffer buffer = {q->in, q->length, &tb_type_byte};
    q->receive.complete = NULL;
    tb_receive_post(q->to, &q->receive, &buffer, 1, q->tag, UINT64_MAX);
    assert_int_equal(pthread_create(&q->partner, NULL, question_run, q), 0);
}

/* Without a call of the library. */
static inline void compute_until(const _Atomic bool *flag)
{
    while (!atomic_load(flag)) /* or the alarm ends it */
        usleep(100);
}

static inline void compute(unsigned ms)
{
    usleep(ms * 1000);
}

static inline void question_end(struct question *q)
{
    tb_request_wait(&q->receive);
    pthread_join(q->partner, NULL);
    assert_true(q->answered);
    assert_int_equal(q->receive.status.error, TB_OK);
    assert_int_equal(q->receive.status.bytes, q->length);
    assert_memory_equal(q->in, q->out, q->length);
    free(q->in);
    free(q->out);
}

/* One that is answered while the program computes. */
static inline void question_is_answered(struct question *q)
{
    question_ask(q);
    compute_until(&q->answered);
    question_end(q);
}

/* One that is answered only when the program calls. */
static inline void question_is_ignored(struct question *q)
{
    question_ask(q);
    compute(A_WHILE);
    assert_false(q->answered);
    assert_false(tb_request_done(&q->receive));
    question_end(q);
}

/* Engines on a network that is that of other hosts; the first one has a standby, which nobody watches yet. */
static inline void duo_open(struct loop_net *net, bool threaded)
{
    loop_net_init(net, 2);
    net->remote = true;
    loop_net_open(net, threaded);
    assert_int_equal(tb_engine_stand_by(net->engines[0]), TB_OK);
}

static inline void duo_close(struct loop_net *net)
{
    tb_engine_stand_down(net->engines[0]);
    loop_net_close(net);
}

static inline struct question duo_question(struct loop_net *net, uint64_t tag, uint64_t length)
{
    return (struct question){.from = net->channels[1], .to = net->channels[0], .tag = tag, .length = length};
}

/* Rounds of progress that it has made. */
static inline uint64_t rounds_of(struct tb_engine *e)
{
    struct tb_counters counters;
    tb_engine_count(e, &counters);
    return counters.standby_rounds;
}

static inline void watch(struct loop_net *net)
{
    assert_int_equal(tb_engine_watch(net->engines[0], TB_STANDBY_NETWORK), TB_OK);
}

static inline void unwatch(struct loop_net *net)
{
    tb_engine_unwatch(net->engines[0], TB_STANDBY_NETWORK);
}

#endif
