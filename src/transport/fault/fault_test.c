/* fault around a transport that only writes down what it is given. */
#include "transport/transport.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define LIMIT 20000
#define MS    UINT64_C(1000000)

struct record {
    uint64_t number;
    uint32_t sum;
    size_t length;
    uint16_t flags;
    uint8_t kind;
};

static struct recorder {
    struct tb_transport head;
    struct tb_upcalls up;
    struct tb_endpoint endpoint;
    struct record records[LIMIT];
    int count;
    int answer; /* what send returns */
    unsigned capabilities;
    int closed, dropped;
} recorder;

static uint64_t now = 1000 * MS;

static uint64_t clock_now(void *context)
{
    return now;
}
static const struct tb_clock virtual_clock = {clock_now, NULL};

static int recorder_open(const struct tb_transport_config *config, struct tb_transport **transport);

static void recorder_close(struct tb_transport *transport)
{
    recorder.closed++;
}

static int recorder_endpoint(struct tb_transport *transport, struct tb_proc proc, struct tb_endpoint **endpoint)
{
    if (proc.index > 5)
        return tb_error(TB_ERR_PEER, "no such process");
    *endpoint = &recorder.endpoint;
    return TB_OK;
}

static int recorder_send(struct tb_endpoint *endpoint, const struct tb_envelope *envelope, struct tb_spans *payload,
                         enum tb_stream stream, void *token)
{
    if (recorder.answer != TB_OK && recorder.answer != TB_PENDING)
        return recorder.answer;
    char bytes[1000];
    struct record *r = &recorder.records[recorder.count++];
    r->length = payload->left;
    tb_spans_gather(payload, bytes, r->length);
    r->sum = tb_crc32c(tb_crc32c(0, bytes, r->length), envelope, sizeof(*envelope));
    r->number = envelope->message.offset;
    r->flags = envelope->message.flags;
    r->kind = envelope->message.kind;
    return recorder.answer;
}

static int recorder_poll(struct tb_transport *transport)
{
    return 0;
}

static bool recorder_arm(struct tb_transport *transport)
{
    return true;
}

static void recorder_disarm(struct tb_transport *transport) {}

static int recorder_descriptor(struct tb_transport *transport)
{
    return 42;
}

static uint64_t recorder_deadline(struct tb_transport *transport)
{
    return TB_NEVER;
}

static bool recorder_idle(struct tb_transport *transport)
{
    return true;
}

static void recorder_drop(struct tb_endpoint *endpoint)
{
    assert_ptr_equal(endpoint, &recorder.endpoint);
    recorder.dropped++;
}

static const struct tb_transport_table recorder_table = {
    .name = "recorder",
    .open = recorder_open,
    .close = recorder_close,
    .endpoint = recorder_endpoint,
    .send = recorder_send,
    .poll = recorder_poll,
    .arm = recorder_arm,
    .disarm = recorder_disarm,
    .descriptor = recorder_descriptor,
    .deadline = recorder_deadline,
    .idle = recorder_idle,
    .drop = recorder_drop,
};

static int recorder_open(const struct tb_transport_config *config, struct tb_transport **transport)
{
    recorder.head = (struct tb_transport){.table = &recorder_table,
                                          .capabilities = TB_CAP_DEPENDABLE | TB_CAP_REMOTE_READ,
                                          .max_payload = 1000,
                                          .eager_limit = 100};
    recorder.up = config->upcalls;
    recorder.endpoint = (struct tb_endpoint){.transport = &recorder.head, .proc = {1, 5}};
    *transport = &recorder.head;
    return TB_OK;
}

/* ---- the owner --------------------------------------------------------------------------------------------------- */

static int frames_up, writable_up, broken_up, sent_up;

static void on_frame(void *context, struct tb_endpoint *from, const struct tb_routing *routing,
                     const struct tb_message *message, const void *payload, size_t length)
{
    assert_string_equal(context, "owner");
    assert_ptr_equal(from->user, "peer");
    frames_up++;
}

static void on_writable(void *context, struct tb_endpoint *to)
{
    assert_ptr_equal(to->user, "peer");
    writable_up++;
}

static void on_sent(void *context, struct tb_endpoint *to, void *token, int error)
{
    sent_up++;
}

static void on_broken(void *context, struct tb_endpoint *with, int error)
{
    broken_up = error;
}

static void on_opened(void *context, struct tb_endpoint *from)
{
    from->user = "peer";
}

static struct tb_transport *fault;
static struct tb_endpoint *peer;
static uint32_t sums[LIMIT];

static int fault_try(const char *specification)
{
    memset(&recorder, 0, sizeof(recorder));
    frames_up = writable_up = broken_up = sent_up = 0;
    struct tb_transport_config config = {.self = {1, 3},
                                         .clock = &virtual_clock,
                                         .fault = specification,
                                         .inner = &recorder_table,
                                         .upcalls = {.context = "owner",
                                                     .frame = on_frame,
                                                     .writable = on_writable,
                                                     .sent = on_sent,
                                                     .opened = on_opened,
                                                     .broken = on_broken}};
    return tb_transport_fault.open(&config, &fault);
}

static void fault_start(const char *specification)
{
    assert_int_equal(fault_try(specification), TB_OK);
    assert_int_equal(fault->table->endpoint(fault, (struct tb_proc){1, 5}, &peer), TB_OK);
    peer->user = "peer";
}

static int frame_send(uint32_t number)
{
    char bytes[200];
    struct tb_envelope envelope = {.message = {.kind = TB_KIND_EAGER, .match = number * 3, .offset = number}};
    size_t length = number % 200;
    memset(bytes, (int)number, sizeof(bytes));
    struct tb_spans payload = tb_spans_of(bytes, length);
    int result = fault->table->send(peer, &envelope, &payload, TB_STREAM_SHORT, bytes);
    assert_int_equal(payload.left, result == TB_AGAIN ? length : 0);
    sums[number] = tb_crc32c(tb_crc32c(0, bytes, length), &envelope, sizeof(envelope));
    return result;
}

/* Sends `count` frames, 10 microseconds apart, and lets everything that was held go. */
static struct tb_fault_counters run(uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        assert_int_equal(frame_send(i), TB_OK);
        now += MS / 100;
        fault->table->poll(fault);
    }
    while (!fault->table->idle(fault)) {
        uint64_t deadline = fault->table->deadline(fault);
        assert_true(deadline != TB_NEVER);
        now = deadline > now ? deadline : now + 1;
        fault->table->poll(fault);
    }
    struct tb_fault_counters counters;
    tb_fault_count(fault, &counters);
    assert_int_equal(counters.passed, count);
    return counters;
}

static bool intact(const struct record *r)
{
    return r->number < LIMIT && r->sum == sums[r->number];
}

static int disorder(void)
{
    int count = 0;
    for (int i = 1; i < recorder.count; i++)
        count += recorder.records[i].number < recorder.records[i - 1].number;
    return count;
}

/* ---- tests ------------------------------------------------------------------------------------------------------- */

static void nothing_wished_nothing_done(void **state)
{
    fault_start("");
    assert_int_equal(fault->capabilities, TB_CAP_DEPENDABLE);
    assert_int_equal(fault->max_payload, 1000);
    run(1000);
    assert_int_equal(recorder.count, 1000);
    assert_int_equal(disorder(), 0);
    assert_int_equal(fault->table->descriptor(fault), 42);
    assert_true(fault->table->arm(fault));
    fault->table->disarm(fault);
    fault->table->close(fault);
    assert_int_equal(recorder.closed, 1);
}

static void loss(void **state)
{
    fault_start("loss=10%");
    assert_int_equal(fault->capabilities, TB_CAP_ORDERED | TB_CAP_INTEGRITY);
    struct tb_fault_counters n = run(10000);
    assert_true(n.lost > 800 && n.lost < 1200);
    assert_int_equal(recorder.count, 10000 - (int)n.lost);
    assert_int_equal(disorder(), 0);
    for (int i = 0; i < recorder.count; i++)
        assert_true(intact(&recorder.records[i]));
    fault->table->close(fault);
}

static void repetition(void **state)
{
    fault_start("repeat=0.1");
    assert_int_equal(fault->capabilities, TB_CAP_INTEGRITY);
    struct tb_fault_counters n = run(10000);
    assert_true(n.repeated > 800 && n.repeated < 1200);
    assert_int_equal(recorder.count, 10000 + (int)n.repeated);
    for (int i = 0; i < recorder.count; i++)
        assert_true(intact(&recorder.records[i]));
    fault->table->close(fault);
}

static void delay(void **state)
{
    fault_start("delay=5ms,delayshare=20%");
    assert_int_equal(fault->capabilities, TB_CAP_RELIABLE | TB_CAP_INTEGRITY);
    uint64_t begin = now;
    struct tb_fault_counters n = run(5000);
    assert_true(n.delayed > 800 && n.delayed < 1200);
    assert_int_equal(recorder.count, 5000);
    assert_true(disorder() > 500);
    assert_true(now - begin < 5000 * (MS / 100) + 6 * MS);
    fault->table->close(fault);
}

static void reordering(void **state)
{
    fault_start("reorder=10%");
    assert_int_equal(fault->capabilities, TB_CAP_RELIABLE | TB_CAP_INTEGRITY);
    struct tb_fault_counters n = run(5000);
    assert_true(n.reordered > 400 && n.reordered < 600);
    assert_int_equal(recorder.count, 5000);
    assert_true(disorder() > 300);
    fault->table->close(fault);
}

static void corruption(void **state)
{
    fault_start("corrupt=10%");
    assert_int_equal(fault->capabilities, TB_CAP_RELIABLE | TB_CAP_ORDERED);
    struct tb_fault_counters n = run(5000);
    assert_true(n.corrupted > 400 && n.corrupted < 600);
    assert_int_equal(recorder.count, 5000);
    int wrong = 0;
    for (int i = 0; i < recorder.count; i++) {
        wrong += !intact(&recorder.records[i]);
        assert_int_equal(recorder.records[i].kind, TB_KIND_EAGER);
        assert_int_equal(recorder.records[i].flags, 0);
        assert_int_equal(recorder.records[i].length, i % 200);
    }
    assert_true(wrong >= (int)n.corrupted * 9 / 10 && wrong <= (int)n.corrupted); /* a bit may be flipped twice */
    fault->table->close(fault);
}

static void seeds_replay_and_differ(void **state)
{
    static struct record first[LIMIT];
    fault_start("loss=5%,repeat=5%,delay=1ms,reorder=5%,corrupt=5%,seed=3");
    run(3000);
    int count = recorder.count;
    memcpy(first, recorder.records, sizeof(first));
    fault->table->close(fault);
    fault_start("seed=3,corrupt=5%,loss=0.05,repeat=5%,delay=1000us,reorder=5%");
    run(3000);
    assert_int_equal(recorder.count, count);
    assert_memory_equal(first, recorder.records, sizeof(first[0]) * (size_t)count);
    fault->table->close(fault);
    fault_start("loss=5%,repeat=5%,delay=1ms,reorder=5%,corrupt=5%,seed=4");
    run(3000);
    assert_memory_not_equal(first, recorder.records, sizeof(first[0]) * 1000);
    fault->table->close(fault);
}

/* A refusal below changes nothing about what will happen to the frame. */
static void refusals_do_not_disturb(void **state)
{
    fault_start("loss=30%,seed=8");
    struct tb_fault_counters undisturbed = run(500);
    fault->table->close(fault);
    fault_start("loss=30%,seed=8");
    for (uint32_t i = 0; i < 500; i++) {
        recorder.answer = TB_AGAIN;
        int result = frame_send(i);
        recorder.answer = TB_OK;
        if (result == TB_AGAIN)
            assert_int_equal(frame_send(i), TB_OK);
    }
    struct tb_fault_counters n;
    tb_fault_count(fault, &n);
    assert_int_equal(n.lost, undisturbed.lost);
    fault->table->close(fault);
}

static void held_frames_wait_for_room(void **state)
{
    fault_start("delay=1ms,delayshare=100%");
    assert_int_equal(frame_send(1), TB_OK);
    recorder.answer = TB_AGAIN;
    now += 5 * MS;
    fault->table->poll(fault);
    assert_int_equal(recorder.count, 0);
    assert_false(fault->table->idle(fault));
    assert_true(fault->table->deadline(fault) == TB_NEVER); /* `writable` wakes it */
    recorder.answer = TB_OK;
    recorder.up.writable(recorder.up.context, &recorder.endpoint);
    assert_int_equal(writable_up, 1);
    fault->table->poll(fault);
    assert_int_equal(recorder.count, 1);
    assert_true(intact(&recorder.records[0]));

    assert_int_equal(frame_send(2), TB_OK); /* what is held for a broken peer is forgotten */
    recorder.up.broken(recorder.up.context, &recorder.endpoint, TB_ERR_PEER);
    assert_int_equal(broken_up, TB_ERR_PEER);
    now += 5 * MS;
    fault->table->poll(fault);
    assert_true(fault->table->idle(fault));
    assert_int_equal(recorder.count, 1);
    fault->table->close(fault);
}

static void holding_is_bounded(void **state)
{
    fault_start("delay=10s,delayshare=100%");
    for (uint32_t i = 0; i < 6000; i++)
        assert_int_equal(frame_send(i), TB_OK);
    assert_true(recorder.count >= 6000 - 4096 && recorder.count < 6000);
    fault->table->close(fault); /* lets go what it can */
    assert_int_equal(recorder.count, 6000);
}

static void a_dropped_peer_is_forgotten(void **state)
{
    fault_start("delay=1ms,delayshare=100%");
    assert_int_equal(frame_send(1), TB_OK);
    struct tb_endpoint *endpoint;
    assert_int_equal(fault->table->endpoint(fault, recorder.endpoint.proc, &endpoint), TB_OK);
    fault->table->drop(endpoint);
    assert_int_equal(recorder.dropped, 1);
    fault->table->poll(fault);
    assert_true(fault->table->idle(fault));
    now += 5 * MS;
    fault->table->poll(fault);
    assert_int_equal(recorder.count, 0);
    fault->table->close(fault);
}

static void calls_up_are_passed_on(void **state)
{
    fault_start("loss=1%");
    struct tb_message message = {.kind = TB_KIND_EAGER};
    recorder.up.frame(recorder.up.context, &recorder.endpoint, NULL, &message, NULL, 0);
    recorder.up.sent(recorder.up.context, &recorder.endpoint, NULL, 0);
    assert_null(recorder.up.place);
    assert_int_equal(frames_up, 1);
    assert_int_equal(sent_up, 1);
    recorder.endpoint.user = NULL; /* a newcomer */
    recorder.up.opened(recorder.up.context, &recorder.endpoint);
    assert_non_null(recorder.endpoint.user);
    recorder.up.frame(recorder.up.context, &recorder.endpoint, NULL, &message, NULL, 0);
    assert_int_equal(frames_up, 2);
    struct tb_endpoint *none;
    assert_int_equal(fault->table->endpoint(fault, (struct tb_proc){1, 6}, &none), TB_ERR_PEER);
    assert_ptr_equal(fault->inner, &recorder.head);
    fault->table->close(fault);
}

static void bad_specifications(void **state)
{
    static const char *bad[] = {"loss",
                                "loss=",
                                "loss=x",
                                "loss=101%",
                                "loss=1.5",
                                "loss=-1%",
                                "los=1%",
                                "delay=5",
                                "delay=ms",
                                "delay=-1ms",
                                "delay=2h",
                                "seed=x",
                                "seed=-1",
                                "loss=1%%",
                                "=1%",
                                "loss=1%;repeat=1%",
                                "loss=nan",
                                "delay=99s",
                                "seed=99999999999999999999999"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        unsigned capabilities;
        assert_int_equal(fault_try(bad[i]), TB_ERR_ARGUMENT);
        assert_non_null(strstr(tb_error_story(), bad[i]));
        assert_non_null(strstr(tb_error_story(), "loss=1%,repeat=1%,delay=5ms"));
        assert_int_equal(tb_fault_breaks(bad[i], &capabilities), TB_ERR_ARGUMENT);
    }
    char endless[400];
    memset(endless, 'x', sizeof(endless));
    endless[399] = 0;
    assert_int_equal(fault_try(endless), TB_ERR_ARGUMENT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_wished_nothing_done),
        cmocka_unit_test(loss),
        cmocka_unit_test(repetition),
        cmocka_unit_test(delay),
        cmocka_unit_test(reordering),
        cmocka_unit_test(corruption),
        cmocka_unit_test(seeds_replay_and_differ),
        cmocka_unit_test(refusals_do_not_disturb),
        cmocka_unit_test(held_frames_wait_for_room),
        cmocka_unit_test(holding_is_bounded),
        cmocka_unit_test(a_dropped_peer_is_forgotten),
        cmocka_unit_test(calls_up_are_passed_on),
        cmocka_unit_test(bad_specifications),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
