/* Matching against a naive model: whatever is sent and posted, in whatever order, each receive gets the message that
 * the rules of MPI say. Also: speed with many messages. */
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "engine/engine_state.h"
#include "engine/loopback_test.h"

#define RANKS      4
#define OPERATIONS 400
#define LARGE      3000

struct model_message {
    uint32_t source, id;
    uint64_t tag;
    bool taken;
};

struct model_receive {
    uint32_t source, result; /* id of its message, 0: none yet */
    uint64_t tag, mask;
    bool cancelled;
};

struct model {
    struct model_message messages[OPERATIONS];
    struct model_receive receives[OPERATIONS];
    uint32_t message_count, receive_count;
};

static bool model_fits(const struct model_receive *r, const struct model_message *m)
{
    return (r->source == TB_ANY_RANK || r->source == m->source) && ((r->tag ^ m->tag) & r->mask) == 0;
}

static void model_send(struct model *model, uint32_t source, uint64_t tag)
{
    struct model_message *m = &model->messages[model->message_count++];
    *m = (struct model_message){source, model->message_count, tag, false};
    for (uint32_t i = 0; i < model->receive_count; i++) {
        struct model_receive *r = &model->receives[i];
        if (r->result == 0 && !r->cancelled && model_fits(r, m)) {
            r->result = m->id;
            m->taken = true;
            return;
        }
    }
}

static struct model_message *model_find(struct model *model, const struct model_receive *r)
{
    for (uint32_t i = 0; i < model->message_count; i++)
        if (!model->messages[i].taken && model_fits(r, &model->messages[i]))
            return &model->messages[i];
    return NULL;
}

static void model_receive(struct model *model, uint32_t source, uint64_t tag, uint64_t mask)
{
    struct model_receive *r = &model->receives[model->receive_count++];
    *r = (struct model_receive){.source = source, .tag = tag, .mask = mask};
    struct model_message *m = model_find(model, r);
    if (m != NULL) {
        r->result = m->id;
        m->taken = true;
    }
}

struct play {
    struct loop_net net;
    struct model model;
    struct tb_random random;
    struct tb_request sends[OPERATIONS], receives[OPERATIONS];
    uint32_t out[OPERATIONS][LARGE / 4], in[OPERATIONS][LARGE / 4];
};

static struct play play;

static void play_send(struct play *p)
{
    uint32_t source = (uint32_t)tb_random_below(&p->random, RANKS), i = p->model.message_count;
    uint64_t tag = tb_random_below(&p->random, 4);
    uint64_t length = tb_random_below(&p->random, 3) == 0 ? LARGE : 4;
    model_send(&p->model, source, tag);
    p->out[i][0] = i + 1;
    struct tb_buffer b = {p->out[i], length, &tb_type_byte};
    p->sends[i].complete = NULL;
    tb_send_post(p->net.channels[source], &p->sends[i], &b, 0, tag, TB_MODE_STANDARD);
    /* Everything that was sent is announced before the next step, so that the model knows the order of arrival. */
    loop_net_settle(&p->net);
}

static void play_receive(struct play *p)
{
    bool any_source = tb_random_below(&p->random, 3) == 0, any_tag = tb_random_below(&p->random, 3) == 0;
    uint32_t source = any_source ? TB_ANY_RANK : (uint32_t)tb_random_below(&p->random, RANKS);
    uint32_t i = p->model.receive_count;
    uint64_t tag = tb_random_below(&p->random, 4), mask = any_tag ? 0 : UINT64_MAX;
    if (tb_random_below(&p->random, 8) == 0)
        mask = 2; /* not MPI's, but the engine's */
    struct tb_buffer b = {p->in[i], LARGE, &tb_type_byte};
    model_receive(&p->model, source, tag, mask);
    p->receives[i].complete = NULL;
    tb_receive_post(p->net.channels[0], &p->receives[i], &b, source, tag, mask);
}

static void play_probe(struct play *p)
{
    struct model_receive wish = {.source = (uint32_t)tb_random_below(&p->random, RANKS),
                                 .tag = tb_random_below(&p->random, 4),
                                 .mask = tb_random_below(&p->random, 2) == 0 ? 0 : UINT64_MAX};
    const struct model_message *m = model_find(&p->model, &wish);
    struct tb_status status;
    int rc = tb_probe(p->net.channels[0], wish.source, wish.tag, wish.mask, &status, NULL);
    assert_int_equal(rc, m != NULL ? TB_OK : TB_AGAIN);
    if (m != NULL) {
        assert_int_equal(status.source, m->source);
        assert_int_equal(status.match, m->tag);
    }
}

static void play_cancel(struct play *p)
{
    if (p->model.receive_count == 0)
        return;
    uint32_t i = (uint32_t)tb_random_below(&p->random, p->model.receive_count);
    struct model_receive *r = &p->model.receives[i];
    if (r->result != 0)
        return;
    r->cancelled = true;
    tb_request_cancel(&p->receives[i]);
}

static void play_check(struct play *p)
{
    loop_net_settle(&p->net);
    for (uint32_t i = 0; i < p->model.receive_count; i++) {
        const struct model_receive *r = &p->model.receives[i];
        assert_int_equal(tb_request_done(&p->receives[i]), r->result != 0 || r->cancelled);
        assert_int_equal(p->in[i][0], r->result);
        if (r->result == 0)
            continue;
        assert_int_equal(p->receives[i].status.source, p->model.messages[r->result - 1].source);
        assert_int_equal(p->receives[i].status.match, p->model.messages[r->result - 1].tag);
    }
}

static void as_the_model_says(void **state)
{
    for (uint32_t seed = 1; seed <= 60; seed++) {
        struct play *p = &play;
        memset(p, 0, sizeof *p);
        loop_net_init(&p->net, RANKS);
        p->net.sim.again = seed % 3 * 20 * LOOP_PERCENT;
        loop_net_open(&p->net, false);
        tb_random_seed(&p->random, seed);
        for (int i = 0; i < OPERATIONS; i++) {
            uint64_t what = tb_random_below(&p->random, 100);
            uint64_t receives = seed % 2 != 0 ? 42 : 52;
            if (what < receives)
                play_receive(p);
            else if (what < 94)
                play_send(p);
            else if (what < 98)
                play_probe(p);
            else
                play_cancel(p);
        }
        play_check(p);
        for (uint32_t i = 0; i < p->model.receive_count; i++)
            tb_request_cancel(&p->receives[i]);
        loop_net_close(&p->net);
    }
}

static double cpu_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* CPU time of `count` messages that are received in reverse order, and of as many receives that were there before. */
static double reverse_seconds(uint64_t count)
{
    struct loop_net net;
    struct tb_buffer nothing = {NULL, 0, &tb_type_byte};
    loop_net_init(&net, 1);
    loop_net_open(&net, false);
    struct tb_request *r = calloc(count, sizeof *r);
    double start = cpu_seconds();
    for (uint64_t i = 0; i < count; i++)
        assert_int_equal(tb_send_now(net.channels[0], &nothing, 0, i, TB_MODE_STANDARD), TB_OK);
    for (uint64_t i = count; i > 0; i--) {
        tb_receive_post(net.channels[0], &r[0], &nothing, 0, i - 1, UINT64_MAX);
        assert_true(tb_request_done(&r[0]));
    }
    for (uint64_t i = 0; i < count; i++)
        tb_receive_post(net.channels[0], &r[i], &nothing, 0, i, UINT64_MAX);
    for (uint64_t i = count; i > 0; i--) {
        assert_int_equal(tb_send_now(net.channels[0], &nothing, 0, i - 1, TB_MODE_STANDARD), TB_OK);
        assert_true(tb_request_done(&r[i - 1]));
    }
    double seconds = cpu_seconds() - start;
    free(r);
    loop_net_close(&net);
    return seconds;
}

/* A scan of all messages for each receive would take 256 times as long for 16 times as many. */
static void many_in_reverse_order(void **state)
{
    double few = reverse_seconds(10000);
    assert_true(reverse_seconds(160000) < 100 * few);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(as_the_model_says), cmocka_unit_test(many_in_reverse_order)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
