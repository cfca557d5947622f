/* What threads wait for, as the engine tells it. */
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#define RANKS 3
#include "engine/host_test.h"

#include "engine/loopback_test.h"

#include <time.h>

#define EXACT UINT64_MAX

static const char *const recv_call = "MPI_Recv", *const wait_call = "MPI_Wait";

/* ---- asking ------------------------------------------------------------------------------------------------------ */

struct heard {
    uint32_t count;
    struct tb_wait waits[4];
};

static void hear(void *context, const struct tb_wait *wait)
{
    struct heard *h = context;
    assert_true(h->count < 4);
    h->waits[h->count++] = *wait;
}

static struct heard ask(struct tb_engine *e)
{
    struct heard h = {.count = 0};
    tb_engine_waits(e, hear, &h);
    return h;
}

static struct tb_wait describe(struct tb_engine *e, const struct tb_request *request)
{
    struct tb_wait w = {.kind = 99};
    tb_engine_lock(e);
    tb_request_describe(request, &w);
    tb_engine_unlock(e);
    return w;
}

/* A thread that receives with a tag, and what it gives as its set. */
struct receiver {
    struct tb_channel *channel;
    uint64_t tag;
    char room[8];
    pthread_t thread;
};

static void *receiver_run(void *context)
{
    struct receiver *r = context;
    struct tb_buffer in = {r->room, sizeof r->room, &tb_type_byte};
    struct tb_request request = {.complete = NULL};
    tb_receive_post(r->channel, &request, &in, 1, r->tag, EXACT);
    tb_request_wait_in(&request, recv_call, r);
    return NULL;
}

static void *prober_run(void *context)
{
    struct receiver *r = context;
    struct tb_status status;
    tb_probe_wait(r->channel, TB_ANY_RANK, 0, 0, &status, NULL, "MPI_Probe");
    return NULL;
}

static void *flusher_run(void *context)
{
    struct receiver *r = context;
    tb_engine_flush(r->channel->engine);
    return NULL;
}

/* Asks until so many wait, and each of them for some time; bounded. */
static struct heard ask_until(struct tb_engine *e, uint32_t count)
{
    struct heard h = {.count = 0};
    for (int i = 0; i < 5000; i++) {
        h = ask(e);
        uint32_t timed = 0;
        for (uint32_t k = 0; k < h.count; k++)
            timed += h.waits[k].time > 0;
        if (h.count == count && timed == count)
            return h;
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    return h;
}

static void send_to(struct tb_channel *from, uint32_t to, uint64_t tag)
{
    struct tb_buffer out = {"12345678", 8, &tb_type_byte};
    struct tb_request request = {.complete = NULL};
    tb_send_post(from, &request, &out, to, tag, TB_MODE_STANDARD);
    tb_request_wait(&request);
}

/* ---- messages ---------------------------------------------------------------------------------------------------- */

static void threads_say_what_they_wait_for(void **state)
{
    struct loop_net net;
    struct receiver receivers[2];
    loop_net_init(&net, 2);
    loop_net_open(&net, true);
    assert_int_equal(ask(net.engines[0]).count, 0);
    for (uint32_t i = 0; i < 2; i++) {
        receivers[i] = (struct receiver){.channel = net.channels[0], .tag = 5 + i};
        pthread_create(&receivers[i].thread, NULL, receiver_run, &receivers[i]);
    }
    struct heard h = ask_until(net.engines[0], 2);
    assert_int_equal(h.count, 2);
    uint64_t tags = 0;
    for (uint32_t i = 0; i < 2; i++) {
        const struct tb_wait *w = &h.waits[i];
        tags += w->match;
        assert_ptr_equal(w->call, recv_call);
        assert_ptr_equal(w->set, &receivers[w->match - 5]);
        assert_int_equal(w->kind, TB_WAIT_RECEIVE);
        assert_int_equal(w->state, TB_WAIT_NOTHING);
        assert_int_equal(w->rank, 1);
        assert_int_equal(w->mask, EXACT);
        assert_true(w->time > 0);
        assert_false(w->library);
    }
    assert_int_equal(tags, 11);
    for (uint32_t i = 0; i < 2; i++) {
        send_to(net.channels[1], 0, 6 - i);
        pthread_join(receivers[1 - i].thread, NULL);
        h = ask(net.engines[0]);
        assert_int_equal(h.count, 1 - i);
        assert_true(h.count == 0 || h.waits[0].match == 5);
    }
    loop_net_close(&net);
}

static void probes_and_flushes_are_waits(void **state)
{
    struct loop_net net;
    struct receiver prober, flusher;
    struct tb_request held = {.complete = NULL};
    struct tb_buffer out = {"12345678", 8, &tb_type_byte};
    loop_net_init(&net, 2);
    loop_net_open(&net, true);
    prober = flusher = (struct receiver){.channel = net.channels[0]};
    tb_send_post(net.channels[0], &held, &out, 1, 3, TB_MODE_SYNCHRONOUS);
    pthread_create(&prober.thread, NULL, prober_run, &prober);
    pthread_create(&flusher.thread, NULL, flusher_run, &flusher);
    struct heard h = ask_until(net.engines[0], 2);
    assert_int_equal(h.count, 2);
    const struct tb_wait *probe = &h.waits[h.waits[0].kind != TB_WAIT_PROBE], *flush = &h.waits[probe == h.waits];
    assert_int_equal(probe->kind, TB_WAIT_PROBE);
    assert_string_equal(probe->call, "MPI_Probe");
    assert_int_equal(probe->rank, TB_ANY_RANK);
    assert_int_equal(probe->mask, 0);
    assert_int_equal(flush->kind, TB_WAIT_CONDITION);
    assert_string_equal(flush->call, "MPI_Finalize");
    send_to(net.channels[1], 0, 9);
    pthread_join(prober.thread, NULL);
    char room[8];
    struct tb_buffer in = {room, sizeof room, &tb_type_byte};
    struct tb_request taken = {.complete = NULL};
    tb_receive_post(net.channels[1], &taken, &in, 0, 3, EXACT);
    tb_request_wait(&taken);
    pthread_join(flusher.thread, NULL);
    assert_int_equal(ask(net.engines[0]).count, 0);
    loop_net_close(&net);
}

static bool never(void *context)
{
    return *(_Atomic bool *)context;
}

static void *keeper_run(void *context)
{
    void **both = context;
    tb_engine_wait(both[0], never, both[1]);
    return NULL;
}

static bool is_polled(struct tb_engine *e)
{
    tb_engine_lock(e);
    bool polled = e->waiting.poller != NULL;
    tb_engine_unlock(e);
    return polled;
}

/* Such as the progress thread: it waits all the time, and means nothing by it. */
static void who_waits_in_no_call_is_left_out(void **state)
{
    struct loop_net net;
    _Atomic bool over = false;
    pthread_t thread;
    loop_net_init(&net, 2);
    loop_net_open(&net, true);
    void *both[] = {net.engines[0], (void *)&over};
    pthread_create(&thread, NULL, keeper_run, both);
    for (int i = 0; i < 5000 && !is_polled(net.engines[0]); i++)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    assert_int_equal(ask(net.engines[0]).count, 0);
    over = true;
    tb_engine_kick(net.engines[0]);
    pthread_join(thread, NULL);
    loop_net_close(&net);
}

static void messages_say_how_far_they_are(void **state)
{
    static char data[9000], room[9000];
    struct loop_net net;
    struct tb_request s = {.complete = NULL}, r = {.complete = NULL}, wild = {.complete = NULL};
    struct tb_buffer out = {data, sizeof data, &tb_type_byte}, in = {room, sizeof room, &tb_type_byte};
    loop_net_init(&net, 2);
    loop_net_open(&net, false);
    tb_send_post(net.channels[0], &s, &out, 1, 3, TB_MODE_STANDARD);
    tb_receive_post(net.channels[1], &wild, &in, TB_ANY_RANK, 4, EXACT);
    loop_net_settle(&net);
    struct tb_wait w = describe(net.engines[0], &s);
    assert_int_equal(w.kind, TB_WAIT_SEND);
    assert_int_equal(w.state, TB_WAIT_NOTHING);
    assert_int_equal(w.rank, 1);
    assert_int_equal(w.match, 3);
    w = describe(net.engines[1], &wild);
    assert_int_equal(w.kind, TB_WAIT_RECEIVE);
    assert_int_equal(w.rank, TB_ANY_RANK);
    assert_int_equal(w.state, TB_WAIT_NOTHING);
    tb_receive_post(net.channels[1], &r, &in, 0, 3, EXACT);
    w = describe(net.engines[1], &r);
    assert_int_equal(w.state, TB_WAIT_MOVING);
    loop_net_settle(&net);
    assert_true(tb_request_done(&s) && tb_request_done(&r));
    tb_request_cancel(&wild);
    struct tb_channel *control = tb_channel_control(net.channels[1]);
    tb_receive_post(control, &wild, &in, 0, 1, EXACT);
    assert_true(describe(net.engines[1], &wild).library);
    tb_request_cancel(&wild);
    loop_net_close(&net);
}

/* The only thread, asked from inside of its own waiting. */
struct inside {
    struct loop_net *net;
    struct heard heard;
};

static void answer(struct tb_request *request)
{
    struct inside *in = request->user;
    in->heard = ask(in->net->engines[0]);
    send_to(in->net->channels[1], 0, 7);
}

static void the_only_thread_says_it_too(void **state)
{
    struct loop_net net;
    char rooms[2][8];
    loop_net_init(&net, 2);
    loop_net_open(&net, false);
    struct inside inside = {.net = &net};
    struct tb_request first = {.complete = answer, .user = &inside}, second = {.complete = NULL};
    struct tb_buffer in[2] = {{rooms[0], 8, &tb_type_byte}, {rooms[1], 8, &tb_type_byte}};
    tb_receive_post(net.channels[0], &first, &in[0], 1, 6, EXACT);
    tb_receive_post(net.channels[0], &second, &in[1], 1, 7, EXACT);
    send_to(net.channels[1], 0, 6);
    tb_request_wait_in(&second, wait_call, &net);
    assert_int_equal(inside.heard.count, 1);
    assert_ptr_equal(inside.heard.waits[0].call, wait_call);
    assert_ptr_equal(inside.heard.waits[0].set, &net);
    assert_int_equal(inside.heard.waits[0].match, 7);
    assert_int_equal(ask(net.engines[0]).count, 0);
    loop_net_close(&net);
}

/* ---- collectives ------------------------------------------------------------------------------------------------- */

/* Everyone but the first sends it a byte; it waits for them in turn. */
static struct tb_program *gather_program(uint32_t rank, uint32_t size)
{
    struct tb_builder b;
    struct tb_program *program;
    const struct tb_slice data = {TB_SYMBOL_OUT, 0, 1, 1};
    tb_builder_open(&b, 1);
    for (uint32_t i = 1; i < size && rank == 0; i++)
        tb_builder_receive(&b, i, i, data);
    if (rank != 0)
        tb_builder_send(&b, 0, rank, data);
    assert_int_equal(tb_builder_finish(&b, &program), TB_OK);
    return program;
}

static void collectives_say_who_is_missing(void **state)
{
    struct loop_net net;
    char room[8];
    loop_net_init(&net, 3);
    loop_net_open(&net, false);
    struct tb_binding binding = {.operation = TB_OPERATION_GATHER, .elements = 1, .element_bytes = 1, .piece = 1};
    binding.buffers[TB_SYMBOL_OUT] = (struct tb_buffer){room, 1, &tb_type_byte};
    binding.call = "MPI_Gather";
    struct tb_program *programs[3];
    struct tb_request requests[3];
    for (uint32_t i = 0; i < 3; i++)
        programs[i] = gather_program(i, 3);
    memset(requests, 0, sizeof requests);
    tb_program_post(net.channels[0], &requests[0], programs[0], &binding);
    for (uint32_t missing = 1; missing < 3; missing++) {
        loop_net_settle(&net);
        struct tb_wait w = describe(net.engines[0], &requests[0]);
        assert_int_equal(w.kind, TB_WAIT_COLLECTIVE);
        assert_string_equal(w.collective, "MPI_Gather");
        assert_int_equal(w.operation, TB_OPERATION_GATHER);
        assert_int_equal(w.state, TB_WAIT_NOTHING);
        assert_int_equal(w.rank, missing);
        tb_program_post(net.channels[missing], &requests[missing], programs[missing], &binding);
    }
    loop_net_settle(&net);
    for (uint32_t i = 0; i < 3; i++) {
        assert_true(tb_request_done(&requests[i]));
        tb_program_free(programs[i]);
    }
    loop_net_close(&net);
}

static struct tb_program *barrier_program(void)
{
    const struct tb_slice nothing = {.symbol = TB_SYMBOL_OUT};
    const struct tb_contract contract = {.composite = TB_COMPOSITE_BARRIER, .driver = TB_DRIVER_COMMON};
    struct tb_builder b;
    struct tb_program *program;
    tb_builder_open(&b, 0);
    tb_builder_composite(&b, &contract, 0, nothing, nothing);
    assert_int_equal(tb_builder_finish(&b, &program), TB_OK);
    return program;
}

static const struct tb_binding barrier = {.operation = TB_OPERATION_BARRIER, .call = "MPI_Barrier"};

static void common_memory_says_who_has_not_called(void **state)
{
    struct host h;
    host_open(&h, 3);
    struct tb_program *program = barrier_program();
    static const uint32_t order[] = {1, 0, 2}, missing[] = {0, 2};
    struct tb_request requests[3];
    memset(requests, 0, sizeof requests);
    for (uint32_t i = 0; i < 3; i++) {
        tb_program_post(h.channels[order[i]], &requests[order[i]], program, &barrier);
        host_settle(&h);
        if (i == 2)
            break;
        struct tb_wait w = describe(h.engines[1], &requests[1]);
        assert_int_equal(w.kind, TB_WAIT_COLLECTIVE);
        assert_int_equal(w.state, TB_WAIT_UNCALLED);
        assert_int_equal(w.rank, missing[i]);
        assert_string_equal(w.collective, "MPI_Barrier");
    }
    for (uint32_t i = 0; i < 3; i++)
        assert_true(tb_request_done(&requests[i]));
    tb_program_free(program);
    host_close(&h);
}

/* A program that is nothing else has no run. */
struct runner {
    struct tb_channel *channel;
    const struct tb_program *program;
    struct heard heard;
    _Atomic bool asked;
};

static int control_asks(void *context)
{
    struct runner *r = context;
    if (!r->asked)
        r->heard = ask(r->channel->engine);
    r->asked = true;
    return 0;
}

static void *barrier_run(void *context)
{
    struct runner *r = context;
    tb_program_run(r->channel, r->program, &barrier);
    return NULL;
}

static void a_single_step_is_described(void **state)
{
    struct host h;
    pthread_t thread;
    int pipes[2];
    host_open(&h, 2);
    assert_int_equal(pipe(pipes), 0);
    struct tb_program *program = barrier_program();
    struct runner runner = {.channel = h.channels[0], .program = program};
    h.engines[0]->control = pipes[0];
    h.engines[0]->config.control_ready = control_asks;
    h.engines[0]->config.context = &runner;
    pthread_create(&thread, NULL, barrier_run, &runner);
    nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
    assert_int_equal(write(pipes[1], "?", 1), 1);
    for (int i = 0; i < 5000 && !runner.asked; i++)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    assert_int_equal(tb_program_run(h.channels[1], program, &barrier), TB_OK);
    pthread_join(thread, NULL);
    assert_int_equal(runner.heard.count, 1);
    assert_int_equal(runner.heard.waits[0].kind, TB_WAIT_COLLECTIVE);
    assert_int_equal(runner.heard.waits[0].state, TB_WAIT_UNCALLED);
    assert_int_equal(runner.heard.waits[0].rank, 1);
    assert_string_equal(runner.heard.waits[0].collective, "MPI_Barrier");
    h.engines[0]->control = -1;
    close(pipes[0]);
    close(pipes[1]);
    tb_program_free(program);
    host_close(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(threads_say_what_they_wait_for),        cmocka_unit_test(probes_and_flushes_are_waits),
        cmocka_unit_test(who_waits_in_no_call_is_left_out),      cmocka_unit_test(messages_say_how_far_they_are),
        cmocka_unit_test(the_only_thread_says_it_too),           cmocka_unit_test(collectives_say_who_is_missing),
        cmocka_unit_test(common_memory_says_who_has_not_called), cmocka_unit_test(a_single_step_is_described),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
