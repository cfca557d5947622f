/* How streams share the wires that they pass in turns. */
#include "planner/hand_test.h"

#define MANY 128

/* Two hosts send as much through one uplink, to places whose answers take one and forty milliseconds: much more of the
 * one message is under way than of the other, and yet both get half of the wire. */
static void near_and_far_streams_share_alike(void **state)
{
    struct network n;
    struct hand h;
    const uint64_t bytes = 2 << 20;
    network_open(&n,
                 "clusters:\n- {name: a, hosts: [a1, a2], " FAST ", uplink: {bandwidth: 100, latency: 0.5}}\n"
                 "- {name: b, hosts: [b1], " FAST ", uplink: {bandwidth: 1000, latency: 0.5}}\n"
                 "- {name: c, hosts: [c1], " FAST ", uplink: {bandwidth: 1000, latency: 40}}\n",
                 "a1 a2 b1 c1", 0);
    network_unlimited(&n);
    uint64_t wire = bytes * 8 * 10000 * 1538 / 1448;
    for (uint32_t first = 0; first < 2; first++) {
        hand_open(&h, &n);
        hand_message(&h, first, 2);
        hand_message(&h, 1 - first, 3);
        hand_run(&h, &n, bytes);
        /* The near one has the wire for itself when it begins, the far one when it ends. */
        assert_between(h.ends[2], 2 * wire - 50 * MS, 2 * wire + 5 * MS);
        assert_between(h.ends[3], 2 * wire, 2 * wire + 50 * MS);
    }
    network_close(&n);
}

/* What several hosts send at the same time through a slower wire is there at the same time, though it is cut into few
 * parts; and one that is alone again has the wire for itself. */
static void what_comes_together_ends_together(void **state)
{
    struct network n;
    struct hand h;
    network_open(&n, NEAR_AND_FAR "- {from: a, to: b, bandwidth: 100, latency: 1}\n", "a1 a2 a3 b1 b2 b3", 0);
    network_unlimited(&n);
    n.bytes->constants.unsent = 0;
    for (uint64_t bytes = 65536; bytes <= 1 << 20; bytes *= 4) {
        uint64_t wire = bytes * 8 * 10000 * 1538 / 1448, part = wire / (bytes < 131072 ? bytes / 16384 : 8);
        hand_open(&h, &n);
        for (uint32_t i = 0; i < 3; i++)
            hand_message(&h, i, 3 + i);
        hand_run(&h, &n, bytes);
        for (uint32_t i = 3; i < 6; i++)
            assert_between(h.ends[i], 3 * wire - part, 3 * wire + 5 * MS);
    }
    network_close(&n);
}

/* One rank sends another twice as many pieces as a third, in two steps of which one begins a little later. All that is
 * for one rank is one stream: of the port it gets no more than the other stream, though each step has a piece ready for
 * it. */
static void two_steps_to_one_rank_are_one_stream(void **state)
{
    struct network n;
    struct hand h;
    network_open(&n, "clusters:\n- {name: a, hosts: [a1, a2, a3], ethernet: {bandwidth: 100, latency: 0.1}}\n", NULL,
                 1);
    network_unlimited(&n);
    n.bytes->constants.unsent = n.bytes->constants.short_bytes = 0;
    n.bytes->constants.copy = tb_cost_line(100 * US, 0);
    const uint64_t bytes = MANY * 8192;
    const struct tb_slice all = {.symbol = TB_SYMBOL_OUT, .stride = 1, .count = MANY};
    const struct tb_slice one = {.symbol = TB_SYMBOL_WORK, .stride = 1, .count = 1};
    hand_open(&h, &n);
    for (uint32_t i = 0; i < n.size; i++)
        tb_builder_open(&h.builders[i], MANY);
    struct tb_builder *b = h.builders;
    for (uint16_t i = 0; i < 3; i++) {
        uint32_t to = i == 1 ? 2 : 1, copy = i == 2 ? tb_builder_copy(b, one, one) : 0;
        tb_builder_send(b, to, i, all);
        if (i == 2)
            tb_builder_after(b, copy);
        tb_builder_pipeline(b, to);
        tb_builder_receive(&b[to], 0, i, all);
    }
    h.run.blocks = false;
    hand_run(&h, &n, bytes);
    uint64_t wire = MANY * wire_time(&n, 0, 8192);
    assert_between(h.ends[2], 2 * wire * 98 / 100, 2 * wire * 102 / 100);
    assert_between(h.ends[1], 3 * wire * 98 / 100, 3 * wire * 102 / 100);
    network_close(&n);
}

/* Of two hosts that send through one uplink one sends a message four times as long, whose parts are longer, too; and
 * yet the short one is there when as much of the long one has passed. */
static void long_and_short_streams_share_alike(void **state)
{
    struct network n;
    struct hand h;
    const uint64_t bytes = 2 << 20;
    network_open(&n, NEAR_AND_FAR "- {from: a, to: b, bandwidth: 100, latency: 1}\n", "a1 a2 b1 b2", 0);
    network_unlimited(&n);
    uint64_t wire = bytes / 4 * 8 * 10000 * 1538 / 1448, part = wire / 2;
    for (uint32_t first = 0; first < 2; first++) {
        hand_open(&h, &n);
        for (uint32_t i = 0; i < n.size; i++)
            tb_builder_open(&h.builders[i], PIECES);
        for (uint32_t i = 0; i < 2; i++) {
            uint32_t which = first ^ i, count = which == 0 ? PIECES : PIECES / 4;
            const struct tb_slice slice = {.symbol = TB_SYMBOL_OUT, .stride = 1, .count = count};
            tb_builder_send(&h.builders[which], 2 + which, 0, slice);
            tb_builder_cut(&h.builders[which], count);
            tb_builder_receive(&h.builders[2 + which], which, 0, slice);
            tb_builder_cut(&h.builders[2 + which], count);
        }
        h.run.blocks = false;
        hand_run(&h, &n, bytes);
        assert_between(h.ends[2], 5 * wire, 5 * wire * 105 / 100);
        assert_between(h.ends[3], 2 * wire - part / 4, 2 * wire + part + 5 * MS);
    }
    network_close(&n);
}

/* What comes to one port through an uplink and from its own network, so that it takes turns twice: also a stream of
 * which two parts are under way at most gets as much as others. */
static void a_small_window_is_enough_for_a_share(void **state)
{
    struct network n;
    struct hand h;
    const uint64_t bytes = 4 << 20;
    network_open(&n,
                 "clusters:\n"
                 "- {name: a, hosts: [a1, a2, a3, a4], ethernet: {bandwidth: 200, latency: 0.04}, "
                 "uplink: {bandwidth: 99, latency: 3}}\n"
                 "- {name: b, hosts: [b1], " FAST ", uplink: {bandwidth: 96, latency: 5}}\n"
                 "- {name: c, hosts: [c1], " FAST ", uplink: {bandwidth: 59, latency: 1}}\n"
                 "- {name: d, hosts: [d1], " FAST ", uplink: {bandwidth: 99, latency: 4}}\n",
                 NULL, 1);
    network_unlimited(&n);
    n.bytes->constants.unsent = n.bytes->constants.short_bytes = 0;
    hand_open(&h, &n);
    for (uint32_t i = 0; i < n.size; i++)
        tb_builder_open(&h.builders[i], PIECES);
    const struct tb_slice all = {.symbol = TB_SYMBOL_OUT, .stride = 1, .count = PIECES};
    for (uint32_t i = 1; i < n.size; i++) {
        tb_builder_send(&h.builders[i], 0, 0, all);
        tb_builder_receive(&h.builders[0], i, 0, all);
    }
    h.run.blocks = false;
    hand_run(&h, &n, bytes);
    uint64_t uplink = 3 * bytes * 8 * 1538 / 1448 * 1000000 / 99;
    for (uint32_t i = 4; i < n.size; i++)
        assert_between(h.ends[i], uplink * 90 / 100, uplink * 103 / 100);
    assert_between(h.ends[0], uplink, uplink * 105 / 100);
    network_close(&n);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(near_and_far_streams_share_alike),     cmocka_unit_test(what_comes_together_ends_together),
        cmocka_unit_test(two_steps_to_one_rank_are_one_stream), cmocka_unit_test(long_and_short_streams_share_alike),
        cmocka_unit_test(a_small_window_is_enough_for_a_share),
    };
    return cmocka_run_group_tests(tests, simulator_setup, simulator_teardown);
}
