/* tcp: frames between two sides, and their connections. */
#include "transport/tcp/tcp_test.h"

static void connected_on_first_use(void **state)
{
    assert_int_equal(a.transport->capabilities, TB_CAP_DEPENDABLE);
    assert_int_equal(a.transport->eager_limit, tb_param.eager_tcp);
    assert_int_equal(a.transport->max_payload, TB_FRAME_PAYLOAD_LIMIT);
    struct tb_endpoint *again;
    a.transport->table->endpoint(a.transport, b.self, &again);
    assert_ptr_equal(again, a.peer);

    assert_int_equal(send_plain(&a, TB_STREAM_SHORT, "x", 1, 1, NULL), TB_AGAIN);
    assert_int_equal(send_plain(&a, TB_STREAM_SHORT, "x", 1, 1, NULL), TB_AGAIN);
    assert_int_equal(a.asked[TB_STREAM_SHORT], 1);
    assert_int_equal(a.asked[TB_STREAM_BULK], 0);
    side_poll(&a);
    assert_int_equal(a.writable, 0);
    join_sides(&a, &b, TB_STREAM_SHORT, 0);
    assert_false(a.transport->table->arm(a.transport)); /* there is something to tell */
    a.transport->table->disarm(a.transport);
    poll_until(&a.writable, 1);
    assert_true(a.transport->table->arm(a.transport));
    a.transport->table->disarm(a.transport);
    assert_int_equal(send_plain(&a, TB_STREAM_SHORT, "x", 1, 1, NULL), TB_OK);
    poll_until(&b.frames, 1);
    assert_int_equal(b.opened, 1);
    assert_int_equal(a.opened, 0);
    assert_int_equal(b.seen[0].length, 1);
    assert_false(b.seen[0].routed);
    /* The answer uses what is there. */
    assert_int_equal(send_plain(&b, TB_STREAM_SHORT, "yz", 2, 2, NULL), TB_OK);
    poll_until(&a.frames, 1);
    assert_int_equal(b.asked[TB_STREAM_SHORT], 0);
    assert_int_equal(a.transport->table->deadline(a.transport), TB_NEVER);
    assert_true(a.transport->table->idle(a.transport));
}

static void all_sizes_arrive(void **state)
{
    static const size_t sizes[] = {0,    1,     7,     63,    64,     2047,   2048,   2049,   4095,    4096,
                                   8192, 32767, 32768, 65536, 262143, 262144, 262145, 300000, MIB - 1, MIB};
    join_sides(&a, &b, TB_STREAM_SHORT, 0);
    join_sides(&a, &b, TB_STREAM_BULK, 0);
    char *bytes = pattern(MIB, 1);
    int expected = 0;
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        for (int stream = 0; stream < TB_STREAM_COUNT; stream++) {
            int result;
            while ((result = send_plain(&a, (enum tb_stream)stream, bytes, sizes[i], i, NULL)) == TB_AGAIN)
                poll_until(&a.writable, a.writable + 1);
            assert_int_equal(result, TB_OK);
            poll_until(&b.frames, ++expected);
            const struct seen *seen = &b.seen[expected - 1];
            assert_int_equal(seen->length, sizes[i]);
            assert_int_equal(seen->message.match, i);
            assert_int_equal(seen->message.context, 17);
            assert_int_equal(seen->message.kind, stream == TB_STREAM_BULK ? TB_KIND_DATA : TB_KIND_EAGER);
            assert_int_equal(seen->sum, sum_of(bytes, sizes[i]));
        }
    }
    free(bytes);
}

static void routing_travels_when_asked(void **state)
{
    join_sides(&a, &b, TB_STREAM_SHORT, 0);
    struct tb_envelope envelope = {.routing = {{JOB, 0}, {JOB, 1}, 5, 6},
                                   .message = {.kind = TB_KIND_CREDIT, .length = 3, .flags = TB_MESSAGE_ROUTED}};
    struct tb_spans payload = tb_spans_of("abc", 3);
    assert_int_equal(a.transport->table->send(a.peer, &envelope, &payload, TB_STREAM_SHORT, NULL), TB_OK);
    assert_int_equal(send_plain(&a, TB_STREAM_SHORT, "d", 1, 0, NULL), TB_OK);
    poll_until(&b.frames, 2);
    assert_true(b.seen[0].routed);
    assert_memory_equal(&b.seen[0].routing, &envelope.routing, sizeof(envelope.routing));
    assert_memory_equal(&b.seen[0].message, &envelope.message, sizeof(envelope.message));
    assert_false(b.seen[1].routed);
}

/* With a token the memory is ours until `sent`; without one it is free at once. */
static void partial_writes(void **state)
{
    join_sides(&a, &b, TB_STREAM_BULK, 8192);
    char *bytes = pattern(MIB, 2), *copy = malloc(MIB);
    memcpy(copy, bytes, MIB);
    int token;
    assert_int_equal(send_plain(&a, TB_STREAM_BULK, bytes, MIB, 1, &token), TB_PENDING);
    assert_false(a.transport->table->idle(a.transport));
    assert_int_equal(send_plain(&a, TB_STREAM_BULK, "next", 4, 2, NULL), TB_AGAIN);
    assert_int_equal(a.sent, 0);
    poll_until(&a.sent, 1);
    assert_ptr_equal(a.token, &token);
    assert_int_equal(a.sent_error, 0);
    memset(bytes, 0, MIB);
    poll_until(&a.writable, 1);
    poll_until(&b.frames, 1);
    assert_int_equal(b.seen[0].sum, sum_of(copy, MIB));

    memcpy(bytes, copy, MIB);
    poll_quiet();
    assert_true(a.transport->table->idle(a.transport));
    assert_int_equal(send_plain(&a, TB_STREAM_BULK, bytes, MIB, 3, NULL), TB_OK);
    memset(bytes, 0, MIB);
    assert_false(a.transport->table->idle(a.transport));
    poll_until(&b.frames, 2);
    assert_int_equal(b.seen[1].sum, sum_of(copy, MIB));
    assert_int_equal(a.sent, 1);
    free(bytes);
    free(copy);
}

/* Small frames until the socket is full: none may be lost, torn or out of order. */
static void full_sockets_refuse(void **state)
{
    join_sides(&a, &b, TB_STREAM_SHORT, 4096);
    char *bytes = pattern(1000, 3);
    int accepted = 0, result = TB_OK;
    for (int goal = 0; goal < 3000; goal++) {
        result = send_plain(&a, TB_STREAM_SHORT, bytes, (size_t)accepted % 1000, (uint64_t)accepted, NULL);
        if (result == TB_AGAIN)
            poll_until(&a.writable, a.writable + 1);
        else
            accepted++;
    }
    assert_true(a.writable > 0);
    poll_until(&b.frames, accepted);
    for (int i = 0; i < accepted; i++) {
        assert_int_equal(b.seen[i].message.match, i);
        assert_int_equal(b.seen[i].sum, sum_of(bytes, (size_t)i % 1000));
    }
    free(bytes);
}

struct cut {
    const char *bytes;
    size_t step;
};

static void cut_next(struct tb_spans *s)
{
    const struct cut *cut = s->owner;
    s->base = (char *)cut->bytes + s->cursor[0];
    s->length = s->left < cut->step ? s->left : cut->step;
    s->cursor[0] += s->length;
}

static void spans_of_all_kinds(void **state)
{
    static const size_t steps[] = {1, 8, 100, 4095, 4096, 5000, 70000, 300000};
    char *bytes = pattern(MIB, 4);
    for (int buffer = 0; buffer <= 8192; buffer += 8192) {
        join_sides(&a, &b, buffer == 0 ? TB_STREAM_SHORT : TB_STREAM_BULK, buffer);
        for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
            for (size_t length = 3; length <= MIB; length *= 19) {
                struct cut cut = {bytes, steps[i]};
                struct tb_spans payload = {.left = length, .next = cut_next, .owner = &cut};
                cut_next(&payload);
                struct tb_envelope envelope = {.message = {.kind = TB_KIND_EAGER, .length = length}};
                int frames = b.frames, sent = a.sent;
                int result = a.transport->table->send(a.peer, &envelope, &payload,
                                                      buffer == 0 ? TB_STREAM_SHORT : TB_STREAM_BULK, &cut);
                assert_true(result == TB_OK || result == TB_PENDING);
                assert_int_equal(payload.left, 0);
                poll_until(&b.frames, frames + 1);
                poll_quiet();
                assert_int_equal(a.sent - sent, result == TB_PENDING);
                assert_int_equal(b.seen[frames].length, length);
                assert_int_equal(b.seen[frames].sum, sum_of(bytes, length));
            }
        }
    }
    free(bytes);
}

static void long_data_goes_to_its_place(void **state)
{
    join_sides(&a, &b, TB_STREAM_BULK, 0);
    side_poll(&b);
    char *bytes = pattern(MIB, 5);
    b.room = calloc(1, MIB);
    b.room_bytes = MIB;
    for (int i = 0; i < 10; i++) {
        size_t length = MIB - (size_t)i * 1000;
        int result = send_plain(&a, TB_STREAM_BULK, bytes, length, (uint64_t)i, bytes);
        assert_true(result == TB_OK || result == TB_PENDING);
        poll_until(&b.frames, i + 1);
        poll_quiet();
        assert_int_equal(b.placed, i + 1);
        assert_ptr_equal(b.seen[i].payload, b.room);
        assert_int_equal(b.seen[i].sum, sum_of(bytes, length));
        memset(b.room, 0, MIB);
    }
    b.room_bytes = 10; /* refuses: delivered from other memory */
    int result = send_plain(&a, TB_STREAM_BULK, bytes, MIB, 10, bytes);
    assert_true(result == TB_OK || result == TB_PENDING);
    poll_until(&b.frames, 11);
    assert_int_equal(b.placed, 10);
    assert_int_equal(b.seen[10].sum, sum_of(bytes, MIB));
    free(b.room);
    free(bytes);
}

/* Both ask at the same time and each sends first on its own connection. */
static void crossed_connections(void **state)
{
    side_meet(&b, &a);
    assert_int_equal(send_plain(&a, TB_STREAM_SHORT, "a", 1, 0, NULL), TB_AGAIN);
    assert_int_equal(send_plain(&b, TB_STREAM_SHORT, "b", 1, 0, NULL), TB_AGAIN);
    int first[2], second[2];
    socket_pair(first, 0);
    socket_pair(second, 0);
    assert_int_equal(tb_transport_tcp.adopt(a.transport, b.self, TB_STREAM_SHORT, first[0]), TB_OK);
    assert_int_equal(tb_transport_tcp.adopt(b.transport, a.self, TB_STREAM_SHORT, second[0]), TB_OK);
    for (int i = 0; i < 50; i++) {
        assert_int_equal(send_plain(&a, TB_STREAM_SHORT, "abcdef", (size_t)i % 7, (uint64_t)i, NULL), TB_OK);
        assert_int_equal(send_plain(&b, TB_STREAM_SHORT, "ghijkl", (size_t)i % 7, (uint64_t)i, NULL), TB_OK);
        if (i == 10)
            assert_int_equal(tb_transport_tcp.adopt(b.transport, a.self, TB_STREAM_SHORT, first[1]), TB_OK);
        if (i == 20)
            assert_int_equal(tb_transport_tcp.adopt(a.transport, b.self, TB_STREAM_SHORT, second[1]), TB_OK);
        side_poll(&a);
        side_poll(&b);
    }
    poll_until(&a.frames, 50);
    poll_until(&b.frames, 50);
    for (int i = 0; i < 50; i++) {
        assert_int_equal(a.seen[i].message.match, i);
        assert_int_equal(b.seen[i].message.match, i);
    }
    assert_int_equal(a.asked[TB_STREAM_SHORT], 1);
    assert_int_equal(b.asked[TB_STREAM_SHORT], 1);
    /* A goodbye of one side ends both. */
    side_close(&a);
    poll_until(&b.frames, 50);
    for (int i = 0; i < 100000 && b.broken == 0; i++)
        side_poll(&b);
    assert_int_equal(b.broken, TB_ERR_CLOSED);
}

static void connected_while_asking(void **state)
{
    a.join = &b;
    assert_int_equal(send_plain(&a, TB_STREAM_SHORT, "x", 1, 1, NULL), TB_AGAIN);
    poll_until(&a.writable, 1);
    assert_int_equal(send_plain(&a, TB_STREAM_SHORT, "x", 1, 1, NULL), TB_OK);
    b.answer = true;
    poll_until(&a.frames, 1);
    assert_int_equal(a.seen[0].length, 6);
}

static void sleeping_and_waking(void **state)
{
    join_sides(&a, &b, TB_STREAM_SHORT, 0);
    poll_quiet();
    assert_true(b.transport->table->arm(b.transport));
    struct pollfd wait = {.fd = b.transport->table->descriptor(b.transport), .events = POLLIN};
    assert_int_equal(poll(&wait, 1, 0), 0);
    assert_int_equal(send_plain(&a, TB_STREAM_SHORT, "x", 1, 1, NULL), TB_OK);
    assert_int_equal(poll(&wait, 1, 2000), 1);
    b.transport->table->disarm(b.transport);
    poll_until(&b.frames, 1);
}

static void receive_alone(int goal)
{
    for (uint64_t until = tb_clock_now_real() + 5 * UINT64_C(1000000000);
         b.frames < goal && tb_clock_now_real() < until;)
        side_poll(&b);
    assert_int_equal(b.frames, goal);
}

static void send_more(void)
{
    a.transport->more = true;
    assert_int_equal(send_plain(&a, TB_STREAM_SHORT, "more", 4, (uint64_t)b.frames, NULL), TB_OK);
    a.transport->more = false;
}

static int by_a_frame(void)
{
    assert_int_equal(send_plain(&a, TB_STREAM_SHORT, "then", 4, (uint64_t)b.frames + 1, NULL), TB_OK);
    return 2;
}

static int by_a_poll(void)
{
    side_poll(&a);
    return 1;
}

static int by_going_to_sleep(void)
{
    a.transport->table->arm(a.transport);
    a.transport->table->disarm(a.transport);
    return 1;
}

static int by_nothing(void)
{
    return 1;
}

/* Whether a frame that may wait comes at once when that is done, which says how many come. The kernel waits for a fifth
 * of a second otherwise; whoever measures that needs the core now and then. */
static bool comes_by(int (*push)(void), int tries)
{
    bool prompt = false;
    for (int i = 0; i < tries && !prompt; i++) {
        uint64_t before = tb_clock_now_real();
        int first = b.frames;
        send_more();
        receive_alone(first + push());
        for (int k = first; k < b.frames; k++)
            assert_int_equal(b.seen[k].message.match, k);
        prompt = tb_clock_now_real() - before < UINT64_C(50000000);
    }
    return prompt;
}

/* What may wait for more goes with that, or with the next poll, or when the process is about to sleep; and if nothing
 * of that comes, the kernel does not wait for ever. */
static void some_frames_wait_for_the_next(void **state)
{
    join_sides(&a, &b, TB_STREAM_SHORT, 0);
    assert_int_equal(send_plain(&a, TB_STREAM_SHORT, "first", 5, 0, NULL), TB_OK);
    receive_alone(1);
    assert_true(comes_by(by_a_frame, 20));
    assert_true(comes_by(by_a_poll, 20));
    assert_true(comes_by(by_going_to_sleep, 20));
    bool waits = false;
    for (int i = 0; i < 20 && !waits; i++) {
        usleep(60000); /* an acknowledgement that is late would have it sent */
        waits = !comes_by(by_nothing, 1);
    }
    assert_true(waits);
    send_more(); /* and is still to be sent when it is closed */
    int first = b.frames;
    side_close(&a);
    receive_alone(first + 1);
}

/* What comes right before data on the other stream is handed up before it, wherever something came from last. */
static void envelopes_come_first(void **state)
{
    char bytes[3000] = "";
    join_sides(&a, &b, TB_STREAM_SHORT, 0);
    join_sides(&a, &b, TB_STREAM_BULK, 0);
    for (int i = 0; i < 20; i++) {
        assert_int_equal(send_plain(&a, TB_STREAM_SHORT, bytes, 8, (uint64_t)i, NULL), TB_OK);
        assert_int_equal(send_plain(&a, TB_STREAM_BULK, bytes, sizeof bytes, (uint64_t)i, NULL), TB_OK);
        struct pollfd wait = {.fd = b.transport->table->descriptor(b.transport), .events = POLLIN};
        assert_int_equal(poll(&wait, 1, 2000), 1);
        poll_until(&b.frames, 2 * i + 2);
        assert_int_equal(b.seen[2 * i].message.kind, TB_KIND_EAGER);
        assert_int_equal(b.seen[2 * i + 1].message.kind, TB_KIND_DATA);
    }
}

/* More peers than the first table has room for. */
static void many_peers(void **state)
{
    struct tb_endpoint *first[100], *again;
    for (uint32_t i = 0; i < 100; i++)
        assert_int_equal(a.transport->table->endpoint(a.transport, (struct tb_proc){JOB + i % 3, i}, &first[i]), TB_OK);
    for (uint32_t i = 0; i < 100; i++) {
        assert_int_equal(a.transport->table->endpoint(a.transport, (struct tb_proc){JOB + i % 3, i}, &again), TB_OK);
        assert_ptr_equal(again, first[i]);
        assert_int_equal(again->proc.index, i);
    }
}

int main(void)
{
    if (tb_param_load() != TB_OK)
        return 1;
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(connected_on_first_use),
        TEST(all_sizes_arrive),
        TEST(routing_travels_when_asked),
        TEST(partial_writes),
        TEST(full_sockets_refuse),
        TEST(spans_of_all_kinds),
        TEST(long_data_goes_to_its_place),
        TEST(crossed_connections),
        TEST(connected_while_asking),
        TEST(sleeping_and_waking),
        TEST(some_frames_wait_for_the_next),
        TEST(envelopes_come_first),
        TEST(many_peers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
