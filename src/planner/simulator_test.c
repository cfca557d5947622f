/* Programs on ways, against closed formulas (LogGP) on simple networks, and against what ranks, cores and composite
 * steps must do. */
#include "planner/network_test.h"
#include "planner/simulator.h"

#define NS       1000ull
#define OVERHEAD NETWORK_OVERHEAD
#define LATENCY  NETWORK_LATENCY

static struct tb_simulator *simulator;

static int simulator_setup(void **state)
{
    return tb_simulator_open(&simulator);
}

static int simulator_teardown(void **state)
{
    tb_simulator_close(simulator);
    return 0;
}

static uint64_t time_of(struct network *n, enum tb_operation operation, const char *name, uint64_t argument,
                        uint64_t bytes, bool blocks)
{
    struct tb_collective c = {.operation = operation,
                              .size = n->size,
                              .elements = bytes,
                              .element_bytes = 1,
                              .commutative = true,
                              .argument = argument};
    struct tb_program **programs = programs_make(algorithm_find(operation, name), &c);
    struct tb_simulation run = {
        .programs = programs, .ways = &n->ways, .bytes = bytes, .blocks = blocks, .limit = 1000000};
    assert_int_equal(tb_simulate(simulator, &run), TB_OK);
    programs_close(programs, n->size);
    return run.end;
}

/* What a port is busy with so many bytes. */
static uint64_t wire(const struct network *n, uint64_t bytes)
{
    return tb_wire_time(&n->table, n->ways.wires[0].wire, bytes);
}

/* One message alone. */
static uint64_t message(const struct network *n, uint64_t bytes)
{
    return 2 * OVERHEAD + LATENCY + wire(n, bytes);
}

/* How long a chain of four ranks takes that pass a message on in so many pieces, several of them at a time. */
static uint64_t chain_time(struct network *n, uint64_t bytes, uint32_t pieces, uint32_t join)
{
    struct tb_program *programs[4];
    for (uint32_t rank = 0; rank < 4; rank++) {
        struct tb_builder b;
        tb_builder_open(&b, pieces);
        const struct tb_slice all = {TB_SYMBOL_OUT, 0, 1, pieces};
        uint32_t come = 0;
        if (rank > 0) {
            come = tb_builder_receive(&b, rank - 1, 0, all);
            tb_builder_cut(&b, join);
        }
        if (rank < 3) {
            tb_builder_send(&b, rank + 1, 0, all);
            tb_builder_cut(&b, join);
        }
        if (rank > 0 && rank < 3)
            tb_builder_after_pieces(&b, come);
        assert_int_equal(tb_builder_finish(&b, &programs[rank]), TB_OK);
    }
    struct tb_simulation run = {.programs = programs, .ways = &n->ways, .bytes = bytes, .limit = 1u << 24};
    assert_int_equal(tb_simulate(simulator, &run), TB_OK);
    for (uint32_t rank = 0; rank < 4; rank++)
        tb_program_free(programs[rank]);
    return run.end;
}

/* A message that is too short for all pieces goes as if these were fewer: nobody passes on what has not come, though
 * nothing comes of the empty ones at the end. */
static void empty_pieces_change_nothing(void **state)
{
    struct network n;
    network_plain(&n, 4, 1);
    for (uint32_t join = 1; join < 100; join += 33) /* of seven bytes each, 286 are not empty */
        assert_int_equal(chain_time(&n, 2000, 300, join), chain_time(&n, 2000, 286, join));
    assert_int_equal(chain_time(&n, 1, 300, 7), 3 * message(&n, 1));
    network_close(&n);
}

/* ---- formulas ---------------------------------------------------------------------------------------------------- */

static void linear_takes_the_wire_for_each_rank(void **state)
{
    struct network n;
    for (uint32_t p = 2; p <= 16; p += 7) {
        network_plain(&n, p, 1);
        assert_int_equal(time_of(&n, TB_OPERATION_BCAST, "linear", 0, 100000, false),
                         message(&n, 100000) + (p - 2) * wire(&n, 100000));
        network_close(&n);
    }
}

static void a_chain_is_a_pipeline(void **state)
{
    struct network n;
    for (uint32_t p = 2; p <= 9; p++) {
        network_plain(&n, p, 1);
        for (uint64_t pieces = 1; pieces <= 40; pieces += 13)
            assert_int_equal(time_of(&n, TB_OPERATION_BCAST, "chain", 10000, pieces * 10000, false),
                             (p - 1) * message(&n, 10000) + (pieces - 1) * wire(&n, 10000));
        network_close(&n);
    }
}

static void binomial_takes_a_message_for_each_level(void **state)
{
    struct network n;
    uint32_t levels = 1;
    for (uint32_t p = 2; p <= 64; p *= 2, levels++) {
        network_plain(&n, p, 1);
        assert_int_equal(time_of(&n, TB_OPERATION_BCAST, "binomial", 100, 100, false), levels * message(&n, 100));
        network_close(&n);
    }
}

static void a_ring_takes_a_message_for_each_other_rank(void **state)
{
    struct network n;
    for (uint32_t p = 2; p <= 11; p += 3) {
        network_plain(&n, p, 1);
        assert_int_equal(time_of(&n, TB_OPERATION_ALLGATHER, "ring", 0, 5000, true), (p - 1) * message(&n, 5000));
        network_close(&n);
    }
}

/* ---- cores ------------------------------------------------------------------------------------------------------- */

/* On a host both ranks copy at the same time, and one after the other if they have one core. */
static void ranks_of_a_host_need_cores(void **state)
{
    struct network n;
    const uint64_t gap = 10 * NS;
    network_plain(&n, 1, 2);
    struct tb_cost_constants *c = &n.bytes->constants;
    c->ends[TB_ENDS_SHM].send = c->ends[TB_ENDS_SHM].receive = tb_cost_line(100 * NS, 8000000000000ull / gap);
    c->shm_latency = 50 * NS;
    uint64_t alone = time_of(&n, TB_OPERATION_BCAST, "linear", 0, 1000, false);
    assert_int_equal(alone, 250 * NS + 1000 * gap);
    c->cores = 2;
    assert_int_equal(time_of(&n, TB_OPERATION_BCAST, "linear", 0, 1000, false), alone);
    c->cores = 1;
    c->change = 7 * NS;
    assert_int_equal(time_of(&n, TB_OPERATION_BCAST, "linear", 0, 1000, false), 200 * NS + 2000 * gap + 2 * 7 * NS);
    network_close(&n);
}

/* In a lab all hosts run on the same cores, and what goes over a wire takes some of their time, too. */
static void hosts_may_share_cores(void **state)
{
    struct network n;
    network_plain(&n, 2, 1);
    struct tb_cost_constants *c = &n.bytes->constants;
    uint64_t alone = time_of(&n, TB_OPERATION_ALLGATHER, "ring", 0, 1000, true);
    assert_int_equal(alone, message(&n, 1000));
    c->pool = 2;
    assert_int_equal(time_of(&n, TB_OPERATION_ALLGATHER, "ring", 0, 1000, true), alone);
    c->pool = 1;
    c->change = 11 * NS;
    uint64_t shared = time_of(&n, TB_OPERATION_ALLGATHER, "ring", 0, 1000, true);
    /* Both copy, then send, then receive, one after the other. */
    assert_int_equal(shared, alone + OVERHEAD + 5 * 11 * NS);
    c->wire_work = 50000; /* ps a byte: 50 us for each wire, of which the last is on the way of the message */
    assert_true(time_of(&n, TB_OPERATION_ALLGATHER, "ring", 0, 1000, true) > shared + 50000 * 1000);
    network_close(&n);
}

/* ---- hand-made programs ------------------------------------------------------------------------------------------ */

struct hand {
    struct tb_builder builders[8];
    struct tb_program *programs[8];
    uint32_t count;
};

static void hand_open(struct hand *h, uint32_t ranks)
{
    h->count = ranks;
    for (uint32_t i = 0; i < ranks; i++)
        tb_builder_open(&h->builders[i], 1);
}

static void hand_message(struct hand *h, uint32_t from, uint32_t to, uint32_t pieces)
{
    struct tb_slice slice = {.symbol = TB_SYMBOL_OUT, .stride = 0, .count = pieces};
    tb_builder_receive(&h->builders[to], from, 0, slice);
    tb_builder_send(&h->builders[from], to, 0, slice);
}

static int hand_run(struct hand *h, struct network *n, uint64_t bytes, uint64_t limit, uint64_t *ends)
{
    for (uint32_t i = 0; i < h->count; i++)
        assert_int_equal(tb_builder_finish(&h->builders[i], &h->programs[i]), TB_OK);
    struct tb_simulation run = {
        .programs = h->programs, .ways = &n->ways, .bytes = bytes, .blocks = true, .limit = limit, .ends = ends};
    int error = tb_simulate(simulator, &run);
    for (uint32_t i = 0; i < h->count; i++)
        tb_program_free(h->programs[i]);
    return error;
}

/* A short message waits for the part that its host's port is passing, not for others that wait. */
static void short_messages_overtake(void **state)
{
    struct network n;
    struct hand h;
    uint64_t ends[6];
    network_plain(&n, 2, 3);
    n.bytes->constants.short_bytes = 1000;
    hand_open(&h, 6);
    const struct tb_slice all = {TB_SYMBOL_OUT, 0, 1, 200};
    for (uint32_t i = 0; i < 2; i++) {
        tb_builder_receive(&h.builders[3 + i], i, 0, all);
        tb_builder_join(&h.builders[3 + i]);
        tb_builder_send(&h.builders[i], 3 + i, 0, all);
        tb_builder_join(&h.builders[i]);
    }
    hand_message(&h, 2, 5, 1);
    assert_int_equal(hand_run(&h, &n, 1000, 1000, ends), TB_OK);
    assert_int_equal(ends[5], wire(&n, 25000) + message(&n, 1000));
    /* And takes its time from the long ones. */
    assert_int_equal(ends[4], message(&n, 200000) + wire(&n, 200000) + wire(&n, 1000));
    network_close(&n);
}

/* What comes while a port is busy for long takes no time away from what it has begun. */
static void wires_carry_no_more_than_their_rate(void **state)
{
    struct network n;
    struct hand h;
    uint64_t ends[4];
    network_plain(&n, 2, 2);
    n.bytes->constants.short_bytes = 1000;
    hand_open(&h, 4);
    const struct tb_slice all = {TB_SYMBOL_OUT, 0, 1, 16};
    tb_builder_receive(&h.builders[2], 0, 0, all);
    tb_builder_join(&h.builders[2]);
    tb_builder_send(&h.builders[0], 2, 0, all);
    tb_builder_join(&h.builders[0]);
    for (uint16_t i = 0; i < 5; i++) {
        struct tb_slice one = {TB_SYMBOL_OUT, 0, 1, 1};
        tb_builder_receive(&h.builders[3], 1, i, one);
        tb_builder_send(&h.builders[1], 3, i, one);
    }
    assert_int_equal(hand_run(&h, &n, 1000, 1000, ends), TB_OK);
    assert_int_equal(ends[2], message(&n, 16000));
    assert_int_equal(ends[3], message(&n, 16000) + 5 * wire(&n, 1000));
    network_close(&n);
}

/* All ranks of a host, of which one comes late. Members on two hosts cannot meet. */
static void composite_steps_wait_for_all(void **state)
{
    struct network n;
    struct hand h;
    uint64_t ends[3];
    const struct tb_contract contract = {.composite = TB_COMPOSITE_BARRIER, .rounds = 2, .passes = 1};
    for (uint32_t hosts = 1; hosts <= 3; hosts += 2) {
        network_plain(&n, hosts, 3 / hosts);
        hand_open(&h, 3);
        hand_message(&h, 0, 1, 1);
        for (uint32_t i = 0; i < 3; i++) {
            tb_builder_composite(&h.builders[i], &contract, 0, (struct tb_slice){TB_SYMBOL_OUT, 0, 1, 1},
                                 (struct tb_slice){.symbol = TB_SYMBOL_OUT});
            if (i == 1)
                tb_builder_after(&h.builders[i], 0);
        }
        assert_int_equal(hand_run(&h, &n, 1000, 1000, ends), hosts == 1 ? TB_OK : TB_ERR_MISMATCH);
        uint64_t latency = n.bytes->constants.shm_latency;
        for (uint32_t i = 0; i < 3 && hosts == 1; i++)
            assert_int_equal(ends[i], 2 * OVERHEAD + latency + 2 * (OVERHEAD + latency));
        network_close(&n);
    }
}

/* Ranks of a host meet in its memory, and wait for nobody else. */
static void composite_steps_of_some_ranks(void **state)
{
    struct network n;
    struct hand h;
    uint64_t ends[4];
    static const uint32_t hosts[][2] = {{0, 1}, {2, 3}};
    const struct tb_contract contract = {.composite = TB_COMPOSITE_BARRIER, .rounds = 2, .passes = 1};
    const struct tb_slice nothing = {.symbol = TB_SYMBOL_OUT};
    network_plain(&n, 2, 2);
    hand_open(&h, 4);
    hand_message(&h, 0, 2, 1);
    for (uint32_t i = 0; i < 4; i++) {
        tb_builder_composite(&h.builders[i], &contract, 0, nothing, nothing);
        tb_builder_members(&h.builders[i], hosts[i / 2], 2);
        if (i == 2)
            tb_builder_after(&h.builders[i], 0);
    }
    uint64_t round = OVERHEAD + n.bytes->constants.shm_latency;
    assert_int_equal(hand_run(&h, &n, 1000, 1000, ends), TB_OK);
    assert_int_equal(ends[1], 2 * round);
    assert_int_equal(ends[3], message(&n, 1000) + 2 * round);
    /* Someone who does not come to it is missed by its own members alone. */
    hand_open(&h, 4);
    for (uint32_t i = 0; i < 3; i++) {
        tb_builder_composite(&h.builders[i], &contract, 0, nothing, nothing);
        tb_builder_members(&h.builders[i], hosts[i / 2], 2);
    }
    assert_int_equal(hand_run(&h, &n, 1000, 1000, ends), TB_ERR_MISMATCH);
    assert_int_equal(ends[1], 2 * round);
    assert_int_equal(ends[3], 0);
    network_close(&n);
}

/* Two composite steps on one host pass its memory one after the other; on two hosts each has its own. */
static void composite_steps_share_memory(void **state)
{
    static const uint32_t pairs[][2] = {{0, 1}, {2, 3}};
    const struct tb_contract contract = {.composite = TB_COMPOSITE_BCAST, .rounds = 1, .passes = 1};
    const struct tb_slice one = {TB_SYMBOL_OUT, 0, 1, 1}, nothing = {.symbol = TB_SYMBOL_OUT};
    for (uint32_t hosts = 1; hosts <= 2; hosts++) {
        struct network n;
        struct hand h;
        uint64_t ends[4];
        network_plain(&n, hosts, 4 / hosts);
        struct tb_cost_constants *c = &n.bytes->constants;
        c->memory = tb_cost_line(0, 8000000000000ull / NS); /* a nanosecond for a byte */
        hand_open(&h, 4);
        for (uint32_t i = 0; i < 4; i++) {
            bool gives = i % 2 == 0;
            tb_builder_composite(&h.builders[i], &contract, pairs[i / 2][0], gives ? one : nothing,
                                 gives ? nothing : one);
            tb_builder_members(&h.builders[i], pairs[i / 2], 2);
        }
        assert_int_equal(hand_run(&h, &n, 1000, 1000, ends), TB_OK);
        uint64_t round = OVERHEAD + c->shm_latency, pass = 2 * 1000 * NS; /* what one gives and what the other gets */
        assert_int_equal(ends[1], pass + round);
        assert_int_equal(ends[3], (hosts == 1 ? 2 : 1) * pass + round);
        network_close(&n);
    }
}

/* Pieces come one after the other, and are passed on as they come, or when all are there. */
static void composite_steps_go_item_by_item(void **state)
{
    struct network n;
    struct hand h;
    uint64_t ends[4];
    const struct tb_contract contract = {.composite = TB_COMPOSITE_BCAST, .rounds = 2, .passes = 1};
    const struct tb_slice all = {TB_SYMBOL_OUT, 0, 1, 4}, nothing = {.symbol = TB_SYMBOL_OUT};
    static const uint32_t members[] = {2, 3};
    network_plain(&n, 2, 2);
    struct tb_cost_constants *c = &n.bytes->constants;
    c->memory = tb_cost_line(0, 8000000000000ull / (50 * NS)); /* 50 nanoseconds for a byte that is given or got */
    uint64_t pass = 2 * 1000 * 50 * NS, rounds = 2 * (OVERHEAD + c->shm_latency);
    for (uint32_t join = 1; join <= 4; join += 3) {
        hand_open(&h, 4);
        tb_builder_send(&h.builders[0], 2, 0, all);
        tb_builder_receive(&h.builders[2], 0, 0, all);
        for (uint32_t i = 2; i < 4; i++) {
            tb_builder_composite(&h.builders[i], &contract, 2, i == 2 ? all : nothing, i == 2 ? nothing : all);
            tb_builder_members(&h.builders[i], members, 2);
            tb_builder_cut(&h.builders[i], join);
            if (i == 2)
                tb_builder_after_pieces(&h.builders[i], 0);
        }
        assert_int_equal(hand_run(&h, &n, 1000, 1000, ends), TB_OK);
        /* Between two pieces rank 2 is busy with both the last one and the next. */
        uint64_t apart = message(&n, 1000) + 3 * (pass + OVERHEAD) + pass + rounds;
        assert_int_equal(ends[3], join == 1 ? apart : message(&n, 1000) + 3 * wire(&n, 1000) + 4 * pass + rounds);
    }
    network_close(&n);
}

/* Long messages feed short ones: rank 1 passes pieces on when four of them have come. */
static void items_of_several_pieces(void **state)
{
    struct network n;
    struct hand h;
    const struct tb_slice all = {TB_SYMBOL_OUT, 0, 1, 8};
    uint64_t ends[3];
    network_plain(&n, 3, 1);
    hand_open(&h, 3);
    tb_builder_send(&h.builders[0], 1, 0, all);
    tb_builder_cut(&h.builders[0], 4);
    tb_builder_receive(&h.builders[1], 0, 0, all);
    tb_builder_cut(&h.builders[1], 4);
    tb_builder_send(&h.builders[1], 2, 0, all);
    tb_builder_after_pieces(&h.builders[1], 0);
    tb_builder_receive(&h.builders[2], 1, 0, all);
    assert_int_equal(hand_run(&h, &n, 1000, 1000, ends), TB_OK);
    /* Four of them keep the port busy for longer than it takes the next four to come. */
    assert_int_equal(ends[1], message(&n, 4000) + OVERHEAD + 7 * wire(&n, 1000));
    assert_int_equal(ends[2], ends[1] + wire(&n, 1000) + LATENCY + OVERHEAD);
    network_close(&n);
}

/* Blocks in parts: as many bytes as before, in messages that are multiples of the unit. */
static void blocks_in_parts(void **state)
{
    struct network n;
    struct hand h;
    const struct tb_slice all = {TB_SYMBOL_OUT, 0, 1, 6};
    uint64_t ends[2];
    network_plain(&n, 2, 1);
    hand_open(&h, 2);
    for (uint32_t i = 0; i < 2; i++)
        tb_builder_parts(&h.builders[i], 3);
    tb_builder_send(&h.builders[0], 1, 0, all);
    tb_builder_receive(&h.builders[1], 0, 0, all);
    assert_int_equal(hand_run(&h, &n, 1000, 1000, ends), TB_OK);
    assert_int_equal(ends[1], 2 * OVERHEAD + LATENCY + 4 * wire(&n, 480) + 2 * wire(&n, 40));
    network_close(&n);
}

static void what_never_ends_is_found_out(void **state)
{
    struct network n;
    struct hand h;
    network_plain(&n, 2, 1);
    hand_open(&h, 2);
    tb_builder_receive(&h.builders[1], 0, 0, (struct tb_slice){TB_SYMBOL_OUT, 0, 1, 1});
    assert_int_equal(hand_run(&h, &n, 10, 1000, NULL), TB_ERR_MISMATCH);
    hand_open(&h, 2);
    tb_builder_send(&h.builders[0], 1, 0, (struct tb_slice){TB_SYMBOL_OUT, 0, 1, 1});
    assert_int_equal(hand_run(&h, &n, 10, 1000, NULL), TB_ERR_MISMATCH);
    hand_open(&h, 2);
    hand_message(&h, 0, 1, 500);
    assert_int_equal(hand_run(&h, &n, 10, 300, NULL), TB_ERR_LIMIT);
    network_close(&n);
}

static bool second_time(const void *context)
{
    uint32_t *asked = (uint32_t *)(uintptr_t)context;
    return ++*asked == 2;
}

/* Whoever wants it to give up is asked often enough, and one that goes on is not changed by that. */
static void simulations_are_given_up(void **state)
{
    struct network n;
    struct hand h;
    uint32_t asked = 0;
    network_plain(&n, 2, 1);
    hand_open(&h, 2);
    hand_message(&h, 0, 1, 200000);
    for (uint32_t i = 0; i < 2; i++)
        assert_int_equal(tb_builder_finish(&h.builders[i], &h.programs[i]), TB_OK);
    struct tb_simulation run = {
        .programs = h.programs, .ways = &n.ways, .bytes = 10, .blocks = true, .limit = 100000000};
    assert_int_equal(tb_simulate(simulator, &run), TB_OK);
    uint64_t end = run.end, events = run.events;
    run.stop = second_time;
    run.context = &asked;
    assert_int_equal(tb_simulate(simulator, &run), TB_ERR_LIMIT);
    assert_true(asked == 2 && run.events < events && run.events < 1000000);
    asked = 2; /* never again */
    assert_int_equal(tb_simulate(simulator, &run), TB_OK);
    assert_true(run.end == end && run.events == events && asked > 3);
    for (uint32_t i = 0; i < 2; i++)
        tb_program_free(h.programs[i]);
    network_close(&n);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(empty_pieces_change_nothing),
        cmocka_unit_test(linear_takes_the_wire_for_each_rank),
        cmocka_unit_test(a_chain_is_a_pipeline),
        cmocka_unit_test(binomial_takes_a_message_for_each_level),
        cmocka_unit_test(a_ring_takes_a_message_for_each_other_rank),
        cmocka_unit_test(ranks_of_a_host_need_cores),
        cmocka_unit_test(hosts_may_share_cores),
        cmocka_unit_test(short_messages_overtake),
        cmocka_unit_test(wires_carry_no_more_than_their_rate),
        cmocka_unit_test(composite_steps_wait_for_all),
        cmocka_unit_test(composite_steps_of_some_ranks),
        cmocka_unit_test(composite_steps_share_memory),
        cmocka_unit_test(composite_steps_go_item_by_item),
        cmocka_unit_test(items_of_several_pieces),
        cmocka_unit_test(blocks_in_parts),
        cmocka_unit_test(what_never_ends_is_found_out),
        cmocka_unit_test(simulations_are_given_up),
    };
    return cmocka_run_group_tests(tests, simulator_setup, simulator_teardown);
}
