/* The relay: frames between ranks through gateways. */
#include "transport/relay/relay_test.h"

static void it_is_neither_ordered_nor_reliable(void **state)
{
    const struct tb_transport *t = ranks[0].transport;
    assert_int_equal(t->capabilities, TB_CAP_INTEGRITY);
    assert_int_equal(t->max_payload, TB_RELAY_PAYLOAD);
    assert_true(t->eager_limit <= t->max_payload && t->wide);
}

static void frames_pass_a_gateway(void **state)
{
    static const size_t lengths[] = {0, 1, 4095, TB_RELAY_PAYLOAD - 1, TB_RELAY_PAYLOAD};
    assert_int_equal(send_one(0, 8, TB_STREAM_SHORT), TB_AGAIN); /* not connected yet */
    world_run();
    assert_int_equal(ranks[0].writable, 1);
    for (uint32_t i = 0; i < 5; i++)
        send_until_taken(100 + i, lengths[i], i % 2 ? TB_STREAM_BULK : TB_STREAM_SHORT);
    world_run();
    /* The gateway loses what it has before it is connected to the other rank. */
    assert_true(ranks[1].received >= 4);
    assert_int_equal(ranks[1].opened, 1);
    assert_int_equal(ranks[1].from->proc.index, 0);
    for (uint32_t i = 0; i < ranks[1].received; i++)
        assert_int_equal(ranks[1].lengths[i], lengths[ranks[1].matches[i] - 100]);
    assert_true(ranks[0].transport->table->idle(ranks[0].transport));
    assert_true(ranks[0].transport->table->arm(ranks[0].transport));
    assert_int_equal(ranks[0].transport->table->deadline(ranks[0].transport), TB_NEVER);
}

/* An agent that takes a frame to the wrong rank, or without an address, is not believed. */
static void foreign_frames_are_dropped(void **state)
{
    send_until_taken(1, 8, TB_STREAM_SHORT);
    send_until_taken(2, 8, TB_STREAM_SHORT);
    assert_int_equal(ranks[1].received, 1);
    struct tb_endpoint *to;
    assert_int_equal(gateways[0].transport->table->endpoint(gateways[0].transport, (struct tb_proc){JOB, 1}, &to),
                     TB_OK);
    for (int i = 0; i < 2; i++) {
        struct tb_envelope envelope = {.routing = {.source = {JOB, 0}, .destination = {JOB, 7}},
                                       .message = {.kind = TB_KIND_EAGER, .flags = i ? TB_MESSAGE_ROUTED : 0}};
        struct tb_spans nothing = tb_spans_of(NULL, 0);
        assert_int_equal(gateways[0].transport->table->send(to, &envelope, &nothing, TB_STREAM_SHORT, NULL), TB_OK);
    }
    world_run();
    assert_int_equal(ranks[1].received, 1);
    assert_int_equal(ranks[1].broken, 0);
}

static void short_frames_stick_and_long_ones_spread(void **state)
{
    use_all_gateways();
    for (uint32_t i = 0; i < 30; i++) {
        send_until_taken(2 * i, 8, TB_STREAM_SHORT);
        send_until_taken(2 * i + 1, 1000, TB_STREAM_BULK);
    }
    uint32_t sticking = 0;
    for (uint32_t i = 0; i < GATEWAYS; i++) {
        sticking += gateways[i].passed[TB_STREAM_SHORT] == 30;
        assert_in_range(gateways[i].passed[TB_STREAM_BULK], 8, 12);
    }
    assert_int_equal(sticking, 1);
}

static void no_route_from_the_start(void **state)
{
    ranks[0].no_route = TB_ERR_PEER;
    assert_int_equal(send_one(1, 8, TB_STREAM_BULK), TB_ERR_PEER);
    world_run();
    assert_int_equal(ranks[0].broken, TB_ERR_PEER);
}

static void a_dropped_process_is_not_heard(void **state)
{
    send_until_taken(1, 8, TB_STREAM_SHORT);
    send_until_taken(2, 8, TB_STREAM_SHORT);
    assert_int_equal(ranks[1].received, 1);
    tb_transport_relay.drop(ranks[1].from);
    send_until_taken(3, 8, TB_STREAM_SHORT);
    assert_int_equal(ranks[1].received, 1);
    assert_int_equal(send_to(1, (struct tb_proc){JOB, 0}, 1, 8, TB_STREAM_SHORT), TB_ERR_PEER);
    world_run();
    assert_int_equal(ranks[1].broken, 0);
}

/* A socket that is full gives no room; when it has some, everybody who waits hears of it. */
static void a_full_hop_pushes_back(void **state)
{
    send_until_taken(0, 8, TB_STREAM_BULK);
    uint32_t taken = 0;
    while (send_one(taken, TB_RELAY_PAYLOAD, TB_STREAM_BULK) == TB_OK)
        assert_true(++taken < 10000);
    assert_true(taken > 0 && taken < FRAMES);
    uint32_t writable = ranks[0].writable;
    world_run();
    assert_true(ranks[0].writable > writable);
    assert_true(ranks[0].transport->table->idle(ranks[0].transport));
    assert_int_equal(send_one(0, TB_RELAY_PAYLOAD, TB_STREAM_BULK), TB_OK);
    world_run();
}

static void many_processes(void **state)
{
    send_until_taken(0, 8, TB_STREAM_SHORT);
    for (uint32_t i = 2; i < 500; i++)
        assert_int_equal(send_to(0, (struct tb_proc){JOB, i}, i, 8, TB_STREAM_SHORT) >= 0, true);
    struct tb_transport *t = ranks[0].transport;
    struct tb_endpoint *a, *b;
    assert_int_equal(t->table->endpoint(t, (struct tb_proc){JOB, 77}, &a), TB_OK);
    assert_int_equal(t->table->endpoint(t, (struct tb_proc){JOB, 77}, &b), TB_OK);
    assert_ptr_equal(a, b);
    wish_count = 0; /* the gateway's: those ranks are not there */
}

int main(void)
{
    if (tb_param_load() != TB_OK)
        return 1;
    const struct CMUnitTest tests[] = {
        IN_A_WORLD(it_is_neither_ordered_nor_reliable),
        IN_A_WORLD(frames_pass_a_gateway),
        IN_A_WORLD(foreign_frames_are_dropped),
        IN_A_WORLD(short_frames_stick_and_long_ones_spread),
        IN_A_WORLD(no_route_from_the_start),
        IN_A_WORLD(a_dropped_process_is_not_heard),
        IN_A_WORLD(a_full_hop_pushes_back),
        IN_A_WORLD(many_processes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
