/* What messages that share wires do to each other: streams take turns, leave to others what they cannot use, overrun
 * queues, ask, and pass gateways. */
#include "planner/hand_test.h"

#include <malloc.h>

/* What several hosts send through one uplink: all end when all bytes have passed it, whoever came first. */
static void streams_share_a_wire(void **state)
{
    struct network n;
    struct hand h;
    const uint64_t bytes = 1000000;
    network_open(&n,
                 "clusters:\n- {name: a, hosts: [a1, a2, a3, a4], " FAST ", uplink: {bandwidth: 100, latency: 1}}\n"
                 "- {name: b, hosts: [b1, b2, b3, b4], " FAST "}\n",
                 "a1 a2 a3 a4 b1 b2 b3 b4", 0);
    network_unlimited(&n);
    uint64_t one = alone(&n, 0, 4, bytes), part = bytes / 8 * 8 * 10000 * 107 / 100; /* ps */
    hand_open(&h, &n);
    for (uint32_t i = 0; i < 4; i++)
        hand_message(&h, i, 4 + i);
    hand_run(&h, &n, bytes);
    for (uint32_t i = 0; i < 4; i++)
        assert_between(h.ends[4 + i], 4 * (one - 5 * MS) - 4 * part, 4 * one);
    network_close(&n);
}

/* A stream that is held up elsewhere leaves its receiver's port to others. */
static void a_slow_stream_leaves_the_rest_to_others(void **state)
{
    struct network n;
    struct hand h;
    const uint64_t bytes = 1000000;
    network_open(&n,
                 "clusters:\n- {name: a, hosts: [a1, {name: a2, bandwidth: 20}, a3], "
                 "ethernet: {bandwidth: 100, latency: 0.1}}\n",
                 "a1 a2 a3", 0);
    network_unlimited(&n);
    uint64_t slow = alone(&n, 1, 2, bytes), fast = alone(&n, 0, 2, bytes);
    assert_between(slow, 5 * fast * 95 / 100, 5 * fast);
    hand_open(&h, &n);
    struct tb_slice slice = {.symbol = TB_SYMBOL_OUT, .stride = 0, .count = 1};
    /* The last to come is the fast one: rank 2's end tells of both, so rank 2 receives the fast one only. */
    tb_builder_receive(&h.builders[2], 0, 0, slice);
    tb_builder_send(&h.builders[0], 2, 0, slice);
    tb_builder_receive(&h.builders[2], 1, 0, slice);
    tb_builder_send(&h.builders[1], 2, 0, slice);
    hand_run(&h, &n, bytes);
    /* The fast sender is through in five quarters of its time alone: all but what a socket holds has left by then. */
    assert_between(h.ends[0], fast, fast * 5 / 4 * 115 / 100);
    assert_between(h.ends[2], slow, slow * 105 / 100);
    network_close(&n);
}

/* Ports that are token buckets: a short message takes them no time after a rest, a long one the bucket's time less,
 * and of two short ones at once the second has to wait for what the bucket lacks. */
static void a_port_may_have_a_bucket(void **state)
{
    static const char text[] =
        "clusters:\n- {name: a, hosts: [a1, a2, a3], ethernet: {bandwidth: 100, latency: 0.1}}\n";
    struct network plain, n;
    struct hand h;
    network_open(&plain, text, "a1 a2 a3", 0);
    setenv("TOMBOLO_PORT_BURST", "2048", 1);
    network_open(&n, text, "a1 a2 a3", 0);
    unsetenv("TOMBOLO_PORT_BURST");
    const uint64_t burst = 163 * US, one = wire_time(&plain, 0, 1000), long_one = 300000; /* ps */
    assert_int_equal(n.bytes->constants.burst, burst);
    assert_between(alone(&plain, 0, 1, 1000) - alone(&n, 0, 1, 1000), one - US, one);
    assert_between(alone(&plain, 0, 1, long_one) - alone(&n, 0, 1, long_one), burst - US, burst);
    hand_open(&h, &n);
    hand_message(&h, 0, 1);
    hand_message(&h, 0, 2);
    hand_run(&h, &n, 1000);
    assert_int_equal(h.ends[1], alone(&n, 0, 1, 1000));
    assert_between(h.ends[2] - h.ends[1], 2 * one - burst - US, 2 * one - burst + 20 * US);
    network_close(&n);
    network_close(&plain);
}

/* One rank sends two others a message of pieces, so many of which go together, all at once. The ends of the two. */
static void two_streams(struct network *n, uint32_t first, uint32_t second, uint64_t bytes, uint64_t *ends)
{
    struct hand h;
    hand_open(&h, n);
    const uint32_t join[] = {first, second};
    for (uint32_t i = 0; i < n->size; i++)
        tb_builder_open(&h.builders[i], PIECES);
    for (uint32_t to = 1; to <= 2; to++) {
        const struct tb_slice all = {.symbol = TB_SYMBOL_OUT, .stride = 1, .count = PIECES};
        tb_builder_send(&h.builders[0], to, 0, all);
        tb_builder_cut(&h.builders[0], join[to - 1]);
        tb_builder_receive(&h.builders[to], 0, 0, all);
        tb_builder_cut(&h.builders[to], join[to - 1]);
    }
    h.run.blocks = false;
    hand_run(&h, n, bytes);
    ends[0] = h.ends[1];
    ends[1] = h.ends[2];
}

/* Of many short messages to one rank, which are all there, and many to another the port takes turns, and so it does
 * with those and one long message: neither waits until the other is through. */
static void many_short_messages_take_turns(void **state)
{
    struct network n;
    uint64_t ends[2];
    network_open(&n, "clusters:\n- {name: a, hosts: [a1, a2, a3], ethernet: {bandwidth: 100, latency: 0.1}}\n", NULL,
                 1);
    network_unlimited(&n);
    const uint64_t bytes = PIECES * 16384;
    assert_true(16384 <= n.bytes->constants.short_bytes && bytes > n.bytes->constants.short_bytes);
    uint64_t both = 2 * wire_time(&n, 0, bytes);
    for (uint32_t way = 0; way < 3; way++) {
        two_streams(&n, way == 1 ? PIECES : 1, way == 2 ? PIECES : 1, bytes, ends);
        assert_between(ends[0], both * 85 / 100, both * 105 / 100);
        assert_between(ends[1], both * 85 / 100, both * 105 / 100);
    }
    network_close(&n);
}

/* A single short message overtakes what other ranks' streams have waiting, but not those before it to the same rank. */
static void short_messages_stay_in_order(void **state)
{
    struct network n;
    struct hand h;
    struct tb_step_times times[8];
    network_open(&n, "clusters:\n- {name: a, hosts: [a1, a2, a3], ethernet: {bandwidth: 100, latency: 0.1}}\n", NULL,
                 1);
    network_unlimited(&n);
    const uint64_t bytes = PIECES * 16384;
    hand_open(&h, &n);
    for (uint32_t i = 0; i < n.size; i++)
        tb_builder_open(&h.builders[i], PIECES);
    const struct tb_slice all = {.symbol = TB_SYMBOL_OUT, .stride = 1, .count = PIECES};
    const struct tb_slice one = {.symbol = TB_SYMBOL_WORK, .stride = 1, .count = 1};
    tb_builder_send(&h.builders[0], 1, 0, all);
    tb_builder_send(&h.builders[0], 1, 1, one);
    tb_builder_send(&h.builders[0], 2, 0, one);
    tb_builder_receive(&h.builders[1], 0, 0, all);
    tb_builder_receive(&h.builders[1], 0, 1, one);
    tb_builder_receive(&h.builders[2], 0, 0, one);
    h.run.blocks = false;
    h.run.times = times;
    hand_run(&h, &n, bytes);
    uint64_t whole = wire_time(&n, 0, bytes), piece = wire_time(&n, 0, 16384);
    assert_between(times[4].done, whole, whole + 5 * piece); /* behind all of the first */
    assert_between(times[5].done, piece, 5 * piece);
    network_close(&n);
}

/* Both directions of a hub, and of a half-duplex port, are one wire. */
static void half_duplex_goes_in_turn(void **state)
{
    static const char *const texts[] = {
        "clusters:\n- {name: a, hosts: [a1, a2], ethernet: {bandwidth: 100, latency: 0.1}}\n",
        "clusters:\n- {name: a, hosts: [a1, a2], ethernet: {bandwidth: 100, latency: 0.1, duplex: half}}\n",
        "clusters:\n- {name: a, hosts: [a1, a2], ethernet: {bandwidth: 100, latency: 0.1, hub: true}}\n"};
    for (int i = 0; i < 3; i++) {
        struct network n;
        struct hand h;
        network_open(&n, texts[i], NULL, 1);
        network_unlimited(&n);
        uint64_t one = alone(&n, 0, 1, 100000), time = wire_time(&n, 0, 100000);
        hand_open(&h, &n);
        hand_message(&h, 0, 1);
        hand_message(&h, 1, 0);
        hand_run(&h, &n, 100000);
        if (i == 0)
            assert_between(h.run.end, one, one);
        else
            assert_between(h.run.end, one + time * 8 / 10, one + time * 11 / 10);
        network_close(&n);
    }
}

/* What comes in is acknowledged, at the cost of what goes out at the same time, and of nothing else; of a half-duplex
 * port, also of what comes in next. */
static void acknowledgements_have_their_share(void **state)
{
    static const char *const texts[] = {
        "clusters:\n- {name: a, hosts: [a1, a2, a3], ethernet: {bandwidth: 100, latency: 0.1}}\n",
        "clusters:\n- {name: a, hosts: [a1, a2, a3], ethernet: {bandwidth: 100, latency: 0.1, duplex: half}}\n"};
    for (int half = 0; half < 2; half++)
        for (uint64_t bytes = 1000; bytes <= 4096000; bytes *= 64) {
            struct network n;
            struct hand h;
            uint64_t one[2], both[2];
            network_open(&n, texts[half], NULL, 1);
            const uint32_t share = n.bytes->constants.ack_share;
            network_unlimited(&n);
            for (int acknowledged = 0; acknowledged < 2; acknowledged++) {
                n.bytes->constants.ack_share = acknowledged ? share : 0;
                one[acknowledged] = alone(&n, 0, 1, bytes);
                hand_open(&h, &n);
                hand_message(&h, 0, 1);
                hand_message(&h, 1, 2);
                hand_run(&h, &n, bytes);
                both[acknowledged] = h.run.end;
            }
            uint64_t more = bytes < 2896 ? 0 : wire_time(&n, 0, bytes) * share / 1000;
            assert_between(one[1] - one[0], 0, half ? more : 0);
            assert_between(both[1] - both[0], more / 2, (half ? 2 : 1) * more + more / 10);
            network_close(&n);
        }
}

/* Every message is counted on the wires of its way, and on no other. */
static void bytes_are_counted_on_their_wires(void **state)
{
    struct network n;
    struct hand h;
    network_open(&n,
                 "clusters:\n- {name: a, hosts: [a1, a2], " FAST ", uplink: {bandwidth: 100, latency: 1}}\n"
                 "- {name: b, hosts: [b1, b2], " FAST ", uplink: {bandwidth: 50, latency: 1}}\n"
                 "- {name: c, hosts: [c1, c2], " FAST ", uplink: {bandwidth: 20, latency: 1}}\n",
                 NULL, 1);
    hand_open(&h, &n);
    hand_message(&h, 0, 1); /* within a */
    hand_message(&h, 1, 2); /* a to b */
    hand_message(&h, 3, 4); /* b to c */
    hand_message(&h, 5, 0); /* c to a */
    hand_message(&h, 4, 1); /* c to a */
    hand_run(&h, &n, 50000);
    assert_true(n.ways.wire_count <= 256);
    for (uint32_t i = 0; i < n.ways.wire_count; i++) {
        const struct tb_wire_use *use = &n.ways.wires[i].use;
        uint64_t expected = 0;
        if (i < 3 * n.shape->host_count) {
            static const uint64_t out[] = {1, 1, 0, 1, 1, 1}, in[] = {1, 2, 1, 0, 1, 0}, far[] = {1, 2, 1, 1, 2, 1};
            expected = i % 3 == 0 ? out[i / 3] : i % 3 == 1 ? in[i / 3] : far[i / 3];
        } else if (use->role == TB_ROLE_UP || use->role == TB_ROLE_DOWN) {
            uint64_t rate = n.ways.wires[i].wire->bandwidth / 1000000;
            bool up = use->role == TB_ROLE_UP;
            expected = rate == 100 ? (up ? 1 : 2) : rate == 50 ? 1 : up ? 2 : 1;
        }
        assert_int_equal(h.wire_bytes[i], 50000 * expected);
    }
    network_close(&n);
}

/* Beyond what may come unasked, a question and its answer go before; a receive that comes late lets it wait. */
static void long_messages_ask(void **state)
{
    struct network n;
    const uint64_t limit = 2 << 20;
    network_open(&n, "clusters:\n- {name: a, hosts: [a1, a2], ethernet: {bandwidth: 1000, latency: 50}}\n", NULL, 1);
    network_unlimited(&n);
    const struct tb_cost_ends *ends = &n.bytes->constants.ends[TB_ENDS_TCP];
    uint64_t below = alone(&n, 0, 1, limit), above = alone(&n, 0, 1, limit + 1);
    uint64_t trip = 2 * 50 * MS + tb_cost_at(&ends->send, 0);
    assert_between(above - below, trip, trip + 1 * US);
    network_close(&n);
}

/* An agent that passes something on waits for a whole frame, so every hop costs one frame's time on its wires. */
static void gateways_hold_a_frame(void **state)
{
    struct network n;
    const uint64_t bytes = 200000;
    network_open(&n,
                 "clusters:\n- {name: a, hosts: [a1, a2], ethernet: {bandwidth: 100, latency: 0.1}, gateways: [a1]}\n"
                 "- {name: b, hosts: [b1, b2], ethernet: {bandwidth: 100, latency: 0.1}, gateways: [b1]}\n"
                 "links:\n- {from: a, to: b, bandwidth: 10, latency: 5}\n",
                 "a2 b2", 0);
    network_unlimited(&n);
    const struct tb_way *way = tb_ways_between(&n.ways, 0, 1);
    assert_int_equal(way->hop_count, 3);
    uint64_t slowest = 0, stores = 0, longest = 0;
    for (uint32_t i = 0; i < way->hop_count; i++) {
        const struct tb_way_hop *hop = &n.ways.hops[way->first_hop + i];
        stores += hop->store;
        longest = hop->store > longest ? hop->store : longest;
        for (uint32_t k = 0; k < hop->wire_count; k++) {
            uint64_t time = wire_time(&n, tb_way_wire(&n.ways, hop, k, 0, 1), bytes);
            slowest = time > slowest ? time : slowest;
        }
    }
    const struct tb_cost_ends *ends = tb_way_ends(&n.table, way);
    uint64_t least = way->latency + slowest + tb_cost_at(&ends->send, 0) + tb_cost_at(&ends->receive, 0);
    uint64_t time = alone(&n, 0, 1, bytes);
    /* A frame of each hop, but for the slowest one, whose frame is in the time of the message. */
    assert_between(time, least + stores - longest, least + stores - longest + 10 * US);
    /* A message shorter than a frame is held back by its own time. */
    assert_between(alone(&n, 0, 1, 100), way->latency, way->latency + 1 * MS);
    network_close(&n);
}

/* What many hosts send to one at the same time does not fit into the switch; what one sends in many pieces does. */
static void many_senders_overrun_a_queue(void **state)
{
    struct network n;
    const uint64_t loss = 1000 * MS;
    network_open(&n,
                 "clusters:\n- {name: a, hosts: \"n[1-8]\", ethernet: {bandwidth: 100, latency: 0.1, queue: 64k}}\n",
                 NULL, 1);
    n.bytes->constants.loss = loss;
    static const struct {
        enum tb_operation operation;
        const char *name;
        uint64_t argument, bytes;
        bool blocks, late;
    } cases[] = {
        {TB_OPERATION_GATHER, "linear", 0, 20000, true, true},
        {TB_OPERATION_GATHER, "bounded", 2, 20000, true, false},
        {TB_OPERATION_GATHER, "linear", 0, 1000, true, false},
        {TB_OPERATION_BCAST, "chain", 1000, 2000000, false, false},
        {TB_OPERATION_ALLTOALL, "pairwise", 0, 20000, true, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct tb_collective c = {.operation = cases[i].operation,
                                  .size = n.size,
                                  .elements = cases[i].bytes,
                                  .element_bytes = 1,
                                  .argument = cases[i].argument};
        struct tb_program **programs = programs_make(algorithm_find(c.operation, cases[i].name), &c);
        struct tb_simulation run = {.programs = programs,
                                    .ways = &n.ways,
                                    .bytes = cases[i].bytes,
                                    .blocks = cases[i].blocks,
                                    .limit = 10000000};
        assert_int_equal(tb_simulate(simulator, &run), TB_OK);
        assert_int_equal(run.end > loss, cases[i].late);
        programs_close(programs, n.size);
    }
    network_close(&n);
}

/* ---- windows ----------------------------------------------------------------------------------------------------- */

/* Answers that take as long as several parts do not hold a message up, however it is cut. */
static void a_long_wire_is_never_idle(void **state)
{
    struct network n;
    network_open(&n, NEAR_AND_FAR "- {from: a, to: b, bandwidth: 100, latency: 20}\n", "a1 b1", 0);
    network_unlimited(&n);
    n.bytes->constants.agent_latency = 0;
    for (uint64_t bytes = 50000; bytes <= 2 << 20; bytes += bytes / 5) {
        uint64_t wire = bytes * 8 * 10000 * 1538 / 1448, time = alone(&n, 0, 1, bytes); /* ps */
        assert_between(time, 20 * MS + wire, 20 * MS + wire + wire / 50 + 5 * MS);
    }
    network_close(&n);
}

/* Who sends something long through a slow wire is through with it when all but a window has passed, not when as many
 * parts are under way as there may be. */
static void senders_wait_for_the_window(void **state)
{
    struct network n;
    struct hand h;
    const uint64_t bytes = 2 << 20;
    network_open(&n, NEAR_AND_FAR "- {from: a, to: b, bandwidth: 10, latency: 2}\n", "a1 b1", 0);
    network_unlimited(&n);
    uint64_t wire = bytes * 8 * 100000 * 1538 / 1448, window = wire / 16; /* 128 KiB */
    hand_open(&h, &n);
    hand_message(&h, 0, 1);
    hand_run(&h, &n, bytes);
    assert_between(h.ends[1], wire, wire + wire / 50);
    assert_between(h.ends[0], wire - window, wire - window / 2);
    network_close(&n);
}

/* ---- much -------------------------------------------------------------------------------------------------------- */

static void large_open(struct network *n, uint32_t clusters, uint32_t hosts)
{
    char *text = malloc(clusters * 200 + 100), *at = text;
    assert_non_null(text);
    at += sprintf(at, "clusters:\n");
    for (uint32_t i = 0; i < clusters; i++)
        at += sprintf(at, "- {name: c%u, hosts: \"c%un[1-%u]\", " FAST ", uplink: {bandwidth: 100, latency: 5}}\n", i,
                      i, hosts);
    network_open(n, text, NULL, 1);
    free(text);
}

/* The same again, in the memory that is there: as much of the heap is in use behind it as before. */
static void memory_is_used_again(void **state)
{
    struct network n;
    large_open(&n, 4, 8);
    struct tb_collective c = {.operation = TB_OPERATION_ALLTOALL, .size = n.size, .elements = 3000, .element_bytes = 1};
    struct tb_program **programs = programs_make(algorithm_find(c.operation, "pairwise"), &c);
    struct tb_simulation first = {
        .programs = programs, .ways = &n.ways, .bytes = 3000, .blocks = true, .limit = 1000000};
    struct tb_simulation second = first;
    assert_int_equal(tb_simulate(simulator, &first), TB_OK);
    struct mallinfo2 before = mallinfo2();
    assert_int_equal(tb_simulate(simulator, &second), TB_OK);
    struct mallinfo2 after = mallinfo2();
    assert_int_equal(after.uordblks + after.hblkhd, before.uordblks + before.hblkhd);
    assert_int_equal(first.end, second.end);
    assert_int_equal(first.events, second.events);
    programs_close(programs, n.size);
    network_close(&n);
}

/* Work for each message is bounded, however many ranks and pieces there are. */
static void events_are_few(void **state)
{
    struct network n;
    large_open(&n, 32, 32);
    for (uint64_t pieces = 1; pieces <= 64; pieces += 63) {
        const uint64_t bytes = pieces * 16384;
        struct tb_collective c = {
            .operation = TB_OPERATION_BCAST, .size = n.size, .elements = bytes, .element_bytes = 1, .argument = 16384};
        struct tb_program **programs = programs_make(algorithm_find(c.operation, "binomial"), &c);
        struct tb_simulation run = {.programs = programs, .ways = &n.ways, .bytes = bytes, .limit = 10000000};
        assert_int_equal(tb_simulate(simulator, &run), TB_OK);
        assert_true(run.events <= 4 * pieces * (n.size - 1));
        programs_close(programs, n.size);
    }
    network_close(&n);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(streams_share_a_wire),
        cmocka_unit_test(a_slow_stream_leaves_the_rest_to_others),
        cmocka_unit_test(a_port_may_have_a_bucket),
        cmocka_unit_test(many_short_messages_take_turns),
        cmocka_unit_test(short_messages_stay_in_order),
        cmocka_unit_test(half_duplex_goes_in_turn),
        cmocka_unit_test(acknowledgements_have_their_share),
        cmocka_unit_test(bytes_are_counted_on_their_wires),
        cmocka_unit_test(long_messages_ask),
        cmocka_unit_test(gateways_hold_a_frame),
        cmocka_unit_test(many_senders_overrun_a_queue),
        cmocka_unit_test(a_long_wire_is_never_idle),
        cmocka_unit_test(senders_wait_for_the_window),
        cmocka_unit_test(memory_is_used_again),
        cmocka_unit_test(events_are_few),
    };
    return cmocka_run_group_tests(tests, simulator_setup, simulator_teardown);
}
