/* The simulator against closed formulas (LogGP) on simple networks, and against what ports, cores and links must do. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "collectives/collectives.h"
#include "planner/rating.h"
#include "planner/simulator.h"

#define NS    1000ull
#define RANKS 64u
#define NEVER TB_COST_NEVER

/* A network of our own: overhead, latency, and a gap for each byte. */
#define OVERHEAD  (3000 * NS)
#define LATENCY   (40000 * NS)
#define GAP       (10 * NS)
#define BANDWIDTH (8000000000000ull / GAP)

struct network {
    const struct tb_group_shape *shape;
    struct tb_costs costs;
};

static void network_open(struct network *n, uint32_t ranks, uint32_t hosts)
{
    assert_int_equal(tb_param_load(), TB_OK);
    assert_int_equal(tb_group_shape_even(&n->shape, ranks, hosts, NULL), TB_OK);
    assert_int_equal(tb_costs_open(&n->costs, n->shape), TB_OK);
    struct tb_cost_link *link = &n->costs.links[0];
    link->send = link->receive = tb_cost_line(OVERHEAD, 0);
    link->gap = tb_cost_line(0, BANDWIDTH);
    link->latency = LATENCY;
    n->costs.copy = n->costs.reduce = n->costs.memory = tb_cost_line(0, 0);
    n->costs.short_bytes = 0;
    n->costs.cores = 0;
}

static void network_close(struct network *n)
{
    tb_costs_close(&n->costs);
    tb_group_shape_release(n->shape);
}

static const struct tb_algorithm *row_find(enum tb_operation operation, const char *name)
{
    for (int i = 0; tb_catalogue[i] != NULL; i++)
        if (tb_catalogue[i]->operation == operation && strcmp(tb_catalogue[i]->name, name) == 0)
            return tb_catalogue[i];
    fail_msg("%s has no algorithm %s", tb_operation_name(operation), name);
    return NULL;
}

/* How long an algorithm takes: `bytes` of the whole, or of each block. */
static uint64_t time_of(struct network *n, enum tb_operation operation, const char *name, uint64_t argument,
                        uint64_t bytes, bool blocks)
{
    struct tb_program *programs[RANKS];
    struct tb_collective c = {.operation = operation,
                              .size = n->shape->size,
                              .elements = bytes,
                              .element_bytes = 1,
                              .commutative = true,
                              .argument = argument};
    for (c.rank = 0; c.rank < c.size; c.rank++)
        assert_int_equal(row_find(operation, name)->make(&c, &programs[c.rank]), TB_OK);
    struct tb_simulation s = {.programs = programs,
                              .shape = n->shape,
                              .costs = &n->costs,
                              .bytes = bytes,
                              .blocks = blocks,
                              .limit = 1000000};
    assert_int_equal(tb_simulate(&s), TB_OK);
    for (uint32_t i = 0; i < c.size; i++)
        tb_program_free(programs[i]);
    return s.end;
}

/* ---- formulas ---------------------------------------------------------------------------------------------------- */

/* One message of m bytes: 2o + L + mG. */
static uint64_t message(uint64_t bytes)
{
    return 2 * OVERHEAD + LATENCY + bytes * GAP;
}

static void linear_takes_a_gap_for_each_rank(void **state)
{
    struct network n;
    for (uint32_t p = 2; p <= 16; p += 7) {
        network_open(&n, p, p);
        assert_int_equal(time_of(&n, TB_OPERATION_BCAST, "linear", 0, 100000, false),
                         message(100000) + (p - 2) * 100000 * GAP);
        network_close(&n);
    }
}

static void a_chain_is_a_pipeline(void **state)
{
    struct network n;
    for (uint32_t p = 2; p <= 9; p++) {
        network_open(&n, p, p);
        for (uint64_t pieces = 1; pieces <= 40; pieces += 13)
            assert_int_equal(time_of(&n, TB_OPERATION_BCAST, "chain", 10000, pieces * 10000, false),
                             (p - 1) * message(10000) + (pieces - 1) * 10000 * GAP);
        network_close(&n);
    }
}

static void binomial_takes_a_message_for_each_level(void **state)
{
    struct network n;
    uint32_t levels = 1;
    for (uint32_t p = 2; p <= 64; p *= 2, levels++) {
        network_open(&n, p, p);
        assert_int_equal(time_of(&n, TB_OPERATION_BCAST, "binomial", 100, 100, false), levels * message(100));
        network_close(&n);
    }
}

static void a_ring_takes_a_message_for_each_other_rank(void **state)
{
    struct network n;
    for (uint32_t p = 2; p <= 11; p += 3) {
        network_open(&n, p, p);
        assert_int_equal(time_of(&n, TB_OPERATION_ALLGATHER, "ring", 0, 5000, true), (p - 1) * message(5000));
        network_close(&n);
    }
}

/* On a host both ranks copy at the same time, and one after the other if they have one core. */
static void ranks_of_a_host_need_cores(void **state)
{
    struct network n;
    network_open(&n, 2, 1);
    n.costs.host.send = n.costs.host.receive = tb_cost_line(100 * NS, BANDWIDTH);
    n.costs.host.latency = 50 * NS;
    uint64_t alone = time_of(&n, TB_OPERATION_BCAST, "linear", 0, 1000, false);
    assert_int_equal(alone, 250 * NS + 1000 * GAP);
    n.costs.cores = 2;
    assert_int_equal(time_of(&n, TB_OPERATION_BCAST, "linear", 0, 1000, false), alone);
    n.costs.cores = 1;
    n.costs.change = 7 * NS;
    assert_int_equal(time_of(&n, TB_OPERATION_BCAST, "linear", 0, 1000, false), 200 * NS + 2000 * GAP + 2 * 7 * NS);
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
    struct tb_simulation s = {.programs = h->programs,
                              .shape = n->shape,
                              .costs = &n->costs,
                              .bytes = bytes,
                              .blocks = true,
                              .limit = limit,
                              .ends = ends};
    int error = tb_simulate(&s);
    for (uint32_t i = 0; i < h->count; i++)
        tb_program_free(h->programs[i]);
    return error;
}

static void ranks_of_a_host_share_its_port(void **state)
{
    struct network n;
    struct hand h;
    uint64_t ends[4];
    network_open(&n, 4, 2);
    hand_open(&h, 4);
    hand_message(&h, 0, 2, 1);
    hand_message(&h, 1, 3, 1);
    assert_int_equal(hand_run(&h, &n, 100000, 1000, ends), TB_OK);
    assert_int_equal(ends[2], message(100000));
    assert_int_equal(ends[3], message(100000) + 100000 * GAP);
    network_close(&n);
}

/* A short message passes while a long one of the same host is on its way. */
static void short_messages_overtake(void **state)
{
    struct network n;
    struct hand h;
    uint64_t ends[4];
    network_open(&n, 4, 2);
    n.costs.short_bytes = 1000;
    hand_open(&h, 4);
    tb_builder_receive(&h.builders[2], 0, 0, (struct tb_slice){TB_SYMBOL_OUT, 0, 1, 200});
    tb_builder_join(&h.builders[2]);
    tb_builder_send(&h.builders[0], 2, 0, (struct tb_slice){TB_SYMBOL_OUT, 0, 1, 200});
    tb_builder_join(&h.builders[0]);
    hand_message(&h, 1, 3, 1);
    assert_int_equal(hand_run(&h, &n, 1000, 1000, ends), TB_OK);
    assert_int_equal(ends[3], message(1000));
    assert_int_equal(ends[2], message(200000));
    network_close(&n);
}

static void half_run(const void *context, uint32_t rank, struct tb_shape_run *run)
{
    *run = (struct tb_shape_run){.host = rank, .place = rank < 2 ? 1 : 2, .who = TB_COST_NONE, .count = 1};
}

static void clusters_share_their_link(void **state)
{
    struct network n;
    struct hand h;
    uint64_t ends[4];
    network_open(&n, 1, 1);
    network_close(&n);
    struct tb_place_row rows[] = {{.parent = TB_PLACE_NONE, .end = 3},
                                  {.end = 2, .name = 1, .depth = 1, .level = TB_LEVEL_CLUSTER},
                                  {.end = 3, .name = 6, .depth = 1, .level = TB_LEVEL_CLUSTER}};
    char names[] = "\0left\0right";
    const struct tb_places places = {.count = 3, .name_bytes = sizeof names, .rows = rows, .names = names};
    struct tb_cost_table table;
    void *bytes;
    size_t length;
    assert_int_equal(tb_param_set("links", "left:100:1:hub,left/right:100:5,left>right:10:7", TB_PARAM_LAUNCHER),
                     TB_OK);
    assert_int_equal(tb_cost_table_make_plain(&places, 4, &bytes, &length), TB_OK);
    assert_int_equal(tb_cost_table_view(&table, bytes, length), TB_OK);
    struct tb_shape_source source = {.size = 4, .host_limit = 4, .table = &table, .run = half_run};
    assert_int_equal(tb_group_shape_make(&n.shape, &source), TB_OK);
    assert_int_equal(n.shape->cluster_count, 2);
    assert_int_equal(tb_costs_open(&n.costs, n.shape), TB_OK);
    assert_true(tb_costs_link(&n.costs, 0, 0)->hub && !tb_costs_link(&n.costs, 1, 1)->hub);
    assert_int_equal(tb_costs_link(&n.costs, 1, 0)->latency, 5000000 * NS);
    assert_int_equal(tb_costs_link(&n.costs, 0, 1)->latency, 7000000 * NS);
    hand_open(&h, 4);
    hand_message(&h, 0, 2, 1);
    hand_message(&h, 1, 3, 1);
    assert_int_equal(hand_run(&h, &n, 1000000, 1000, ends), TB_OK);
    uint64_t gap = tb_cost_at(&tb_costs_link(&n.costs, 0, 1)->gap, 1000000);
    assert_true(gap > 800000000 * NS && gap < 900000000 * NS);
    assert_int_equal(ends[3] - ends[2], gap);
    network_close(&n);
    free(bytes);
}

/* On a hub pairs that have nothing to do with each other wait for each other. */
static void hosts_of_a_hub_share_its_wire(void **state)
{
    struct network n;
    struct hand h;
    uint64_t ends[4];
    for (int hub = 0; hub < 2; hub++) {
        network_open(&n, 4, 4);
        n.costs.links[0].hub = hub == 1;
        hand_open(&h, 4);
        hand_message(&h, 0, 1, 1);
        hand_message(&h, 2, 3, 1);
        assert_int_equal(hand_run(&h, &n, 100000, 1000, ends), TB_OK);
        assert_int_equal(ends[1], message(100000));
        assert_int_equal(ends[3], message(100000) + hub * 100000 * GAP);
        network_close(&n);
    }
}

/* What many hosts send to one at the same time does not fit into the switch; what one sends in many pieces does. */
static void many_senders_overrun_a_switch(void **state)
{
    struct network n;
    const uint64_t bytes = 20000;
    network_open(&n, 8, 8);
    n.costs.queue = 65536;
    n.costs.loss = 1000000000 * NS;
    assert_true(time_of(&n, TB_OPERATION_GATHER, "linear", 0, bytes, true) > n.costs.loss);
    assert_true(time_of(&n, TB_OPERATION_GATHER, "bounded", 2, bytes, true) < n.costs.loss);
    assert_true(time_of(&n, TB_OPERATION_GATHER, "linear", 0, 1000, true) < n.costs.loss);
    assert_true(time_of(&n, TB_OPERATION_BCAST, "chain", 1000, 100 * bytes, false) < n.costs.loss);
    assert_true(time_of(&n, TB_OPERATION_ALLTOALL, "pairwise", 0, bytes, true) < n.costs.loss);
    uint64_t lossy = time_of(&n, TB_OPERATION_GATHER, "linear", 0, bytes, true);
    n.costs.queue = 0;
    assert_int_equal(time_of(&n, TB_OPERATION_GATHER, "linear", 0, bytes, true) + n.costs.loss, lossy);
    network_close(&n);
}

static void composite_steps_wait_for_all(void **state)
{
    struct network n;
    struct hand h;
    uint64_t ends[3];
    const struct tb_contract contract = {.composite = TB_COMPOSITE_BARRIER, .rounds = 2, .passes = 1};
    network_open(&n, 3, 3);
    hand_open(&h, 3);
    hand_message(&h, 0, 1, 1);
    for (uint32_t i = 0; i < 3; i++) {
        tb_builder_composite(&h.builders[i], &contract, 0, (struct tb_slice){TB_SYMBOL_OUT, 0, 1, 1},
                             (struct tb_slice){.symbol = TB_SYMBOL_OUT});
        if (i == 1)
            tb_builder_after(&h.builders[i], 0);
    }
    assert_int_equal(hand_run(&h, &n, 1000, 1000, ends), TB_OK);
    for (uint32_t i = 0; i < 3; i++)
        assert_int_equal(ends[i], message(1000) + 2 * (2 * OVERHEAD + LATENCY) + 1000 * GAP);
    network_close(&n);
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
    network_open(&n, 4, 2);
    hand_open(&h, 4);
    hand_message(&h, 0, 2, 1);
    for (uint32_t i = 0; i < 4; i++) {
        tb_builder_composite(&h.builders[i], &contract, 0, nothing, nothing);
        tb_builder_members(&h.builders[i], hosts[i / 2], 2);
        if (i == 2)
            tb_builder_after(&h.builders[i], 0);
    }
    const struct tb_cost_link *host = &n.costs.host;
    uint64_t round = tb_cost_at(&host->send, 0) + host->latency;
    assert_int_equal(hand_run(&h, &n, 1000, 1000, ends), TB_OK);
    assert_int_equal(ends[1], 2 * round);
    assert_int_equal(ends[3], message(1000) + 2 * round);
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

/* Pieces come one after the other, and are passed on as they come, or when all are there. */
static void composite_steps_go_item_by_item(void **state)
{
    struct network n;
    struct hand h;
    uint64_t ends[3], rounds = 2 * (2 * OVERHEAD + LATENCY), piece = 1000 * GAP;
    const struct tb_contract contract = {.composite = TB_COMPOSITE_BCAST, .rounds = 2, .passes = 1};
    const struct tb_slice all = {TB_SYMBOL_OUT, 0, 1, 4}, nothing = {.symbol = TB_SYMBOL_OUT};
    static const uint32_t members[] = {1, 2};
    network_open(&n, 3, 3);
    for (uint32_t join = 1; join <= 4; join += 3) {
        hand_open(&h, 3);
        tb_builder_send(&h.builders[0], 1, 0, all);
        tb_builder_receive(&h.builders[1], 0, 0, all);
        for (uint32_t i = 1; i < 3; i++) {
            tb_builder_composite(&h.builders[i], &contract, 1, i == 1 ? all : nothing, i == 1 ? nothing : all);
            tb_builder_members(&h.builders[i], members, 2);
            tb_builder_cut(&h.builders[i], join);
            if (i == 1)
                tb_builder_after_pieces(&h.builders[i], 0);
        }
        assert_int_equal(hand_run(&h, &n, 1000, 1000, ends), TB_OK);
        /* Between two pieces rank 1 is busy with both the last one and the next. */
        uint64_t apart = message(1000) + 3 * (piece + OVERHEAD) + piece + rounds;
        assert_int_equal(ends[2], join == 1 ? apart : message(1000) + 3 * piece + 4 * piece + rounds);
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
    network_open(&n, 3, 3);
    hand_open(&h, 3);
    tb_builder_send(&h.builders[0], 1, 0, all);
    tb_builder_cut(&h.builders[0], 4);
    tb_builder_receive(&h.builders[1], 0, 0, all);
    tb_builder_cut(&h.builders[1], 4);
    tb_builder_send(&h.builders[1], 2, 0, all);
    tb_builder_after_pieces(&h.builders[1], 0);
    tb_builder_receive(&h.builders[2], 1, 0, all);
    assert_int_equal(hand_run(&h, &n, 1000, 1000, ends), TB_OK);
    uint64_t sent = message(8000) + OVERHEAD + 4 * 1000 * GAP;
    assert_int_equal(ends[1], sent);
    assert_int_equal(ends[2], sent + LATENCY + OVERHEAD);
    network_close(&n);
}

/* Blocks in parts: as many bytes as before, in messages that are multiples of the unit. */
static void blocks_in_parts(void **state)
{
    struct network n;
    struct hand h;
    const struct tb_slice all = {TB_SYMBOL_OUT, 0, 1, 6};
    uint64_t ends[2];
    network_open(&n, 2, 2);
    hand_open(&h, 2);
    for (uint32_t i = 0; i < 2; i++)
        tb_builder_parts(&h.builders[i], 3);
    tb_builder_send(&h.builders[0], 1, 0, all);
    tb_builder_receive(&h.builders[1], 0, 0, all);
    assert_int_equal(hand_run(&h, &n, 1000, 1000, ends), TB_OK);
    /* The last part, of forty bytes, waits until the one before it has been received. */
    assert_int_equal(ends[1], message(2000) - 40 * GAP + OVERHEAD);
    network_close(&n);
}

static void what_never_ends_is_found_out(void **state)
{
    struct network n;
    struct hand h;
    network_open(&n, 2, 2);
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

/* ---- costs ------------------------------------------------------------------------------------------------------- */

static void curves_are_straight_between_points(void **state)
{
    struct tb_cost_curve c = {.count = 3, .points = {{0, 10}, {100, 110}, {200, 410}}};
    assert_int_equal(tb_cost_at(&c, 0), 10);
    assert_int_equal(tb_cost_at(&c, 50), 60);
    assert_int_equal(tb_cost_at(&c, 100), 110);
    assert_int_equal(tb_cost_at(&c, 150), 260);
    assert_int_equal(tb_cost_at(&c, 300), 710);
    assert_int_equal(tb_cost_at(&c, UINT64_MAX), NEVER);
    c.points[2].time = 50;
    assert_int_equal(tb_cost_at(&c, 150), 80);
    assert_int_equal(tb_cost_at(&c, 5000), 50);
    c = tb_cost_line(7, 0);
    assert_int_equal(tb_cost_at(&c, 1 << 30), 7);
}

static void tables_and_links_are_checked(void **state)
{
    static const char *const bad_tables[] = {"1:2:3:4", "0:1:2", "0:1:2:3,0:1:2:3", "0:1:2:x", "0:1:2:-3", "0:1:2:3;"};
    static const char *const bad_links[] = {"a:1",      "a/b:0:1",   "a/:1:1",      "/b:1:1",    "a/b:1:1x",
                                            "a/b:-1:1", "a>b/c:1:1", "a/b:1:1:hub", "a:1:1:hubs"};
    assert_int_equal(tb_param_load(), TB_OK);
    for (size_t i = 0; i < sizeof bad_tables / sizeof bad_tables[0]; i++) {
        assert_int_equal(tb_param_set("ethernet_table", bad_tables[i], TB_PARAM_LAUNCHER), TB_OK);
        assert_int_equal(tb_cost_parameters_check(), TB_ERR_ARGUMENT);
        assert_non_null(strstr(tb_error_story(), "ethernet_table"));
    }
    assert_int_equal(tb_param_set("ethernet_table", "0:4000:4000:0,1000:5000:5000:90000", TB_PARAM_LAUNCHER), TB_OK);
    assert_int_equal(tb_cost_parameters_check(), TB_OK);
    for (size_t i = 0; i < sizeof bad_links / sizeof bad_links[0]; i++) {
        assert_int_equal(tb_param_set("links", bad_links[i], TB_PARAM_LAUNCHER), TB_OK);
        assert_int_equal(tb_cost_parameters_check(), TB_ERR_ARGUMENT);
    }
    assert_int_equal(tb_param_load(), TB_OK);
}

/* ---- more than can be simulated ---------------------------------------------------------------------------------- */

static uint64_t rated(uint32_t ranks, enum tb_operation operation, const char *name, uint64_t argument, uint64_t bytes)
{
    struct network n;
    network_open(&n, ranks, ranks);
    struct tb_collective c = {
        .operation = operation, .size = ranks, .elements = bytes, .element_bytes = 1, .commutative = true};
    struct tb_candidate rows[30];
    /* Many candidates have little time each. */
    for (uint32_t i = 0; i < 30; i++)
        rows[i] = (struct tb_candidate){row_find(operation, name), argument, NEVER};
    assert_int_equal(tb_rating_rate(n.shape, &n.costs, &c, rows, 30, true), TB_OK);
    assert_int_equal(rows[0].time, rows[29].time);
    network_close(&n);
    return rows[0].time;
}

static void assert_near(uint64_t a, uint64_t b)
{
    if (a > b + b / 50 || b > a + a / 50)
        fail_msg("%llu and %llu differ by more than 2 %%", (unsigned long long)a, (unsigned long long)b);
}

static void larger_groups_and_messages_are_continued(void **state)
{
    assert_near(rated(1024, TB_OPERATION_BCAST, "binomial", 1000, 1000), 10 * message(1000));
    assert_near(rated(512, TB_OPERATION_ALLGATHER, "ring", 0, 1000), 511 * message(1000));
    assert_near(rated(8, TB_OPERATION_BCAST, "chain", 10000, 100000000), 7 * message(10000) + 9999 * 10000 * GAP);
    assert_near(rated(256, TB_OPERATION_BCAST, "chain", 10000, 100000000), 255 * message(10000) + 9999 * 10000 * GAP);
}

/* Pieces whose latency counts while there are few of them, as on a ring, do not look cheaper than they are. */
static void few_pieces_do_not_deceive(void **state)
{
    struct network n;
    network_open(&n, 8, 8);
    uint64_t whole = time_of(&n, TB_OPERATION_ALLREDUCE, "ring", 2048, 1 << 20, false);
    network_close(&n);
    assert_near(rated(8, TB_OPERATION_ALLREDUCE, "ring", 2048, 1 << 20), whole);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(linear_takes_a_gap_for_each_rank),
        cmocka_unit_test(a_chain_is_a_pipeline),
        cmocka_unit_test(binomial_takes_a_message_for_each_level),
        cmocka_unit_test(a_ring_takes_a_message_for_each_other_rank),
        cmocka_unit_test(ranks_of_a_host_need_cores),
        cmocka_unit_test(ranks_of_a_host_share_its_port),
        cmocka_unit_test(short_messages_overtake),
        cmocka_unit_test(clusters_share_their_link),
        cmocka_unit_test(hosts_of_a_hub_share_its_wire),
        cmocka_unit_test(many_senders_overrun_a_switch),
        cmocka_unit_test(composite_steps_wait_for_all),
        cmocka_unit_test(composite_steps_of_some_ranks),
        cmocka_unit_test(composite_steps_go_item_by_item),
        cmocka_unit_test(items_of_several_pieces),
        cmocka_unit_test(blocks_in_parts),
        cmocka_unit_test(what_never_ends_is_found_out),
        cmocka_unit_test(curves_are_straight_between_points),
        cmocka_unit_test(tables_and_links_are_checked),
        cmocka_unit_test(larger_groups_and_messages_are_continued),
        cmocka_unit_test(few_pieces_do_not_deceive),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
