/* Composite steps by multicast: what they take does not depend on how many hosts there are. */
#include "planner/driver_cost.h"
#include "planner/item_bytes.h"
#include "planner/network_test.h"
#include "planner/simulator.h"

#define NS       1000ull
#define OVERHEAD (3000 * NS)
#define LATENCY  (40000 * NS)

static struct tb_simulator *simulator;

static int simulator_setup(void **state)
{
    network_multicasts = true;
    return tb_simulator_open(&simulator);
}

static int simulator_teardown(void **state)
{
    tb_simulator_close(simulator);
    return 0;
}

static void grid_open(struct network *n, const char *text, uint32_t each)
{
    network_open(n, text, NULL, each);
    struct tb_cost_constants *c = &n->bytes->constants;
    for (int i = 0; i < TB_ENDS_COUNT; i++)
        c->ends[i].send = c->ends[i].receive = tb_cost_line(OVERHEAD, 0);
    c->copy = c->reduce = c->memory = tb_cost_line(0, 0);
    c->short_bytes = 0;
    c->cores = 0;
    network_unlimited(n);
}

static void cluster_open(struct network *n, uint32_t hosts, uint32_t each)
{
    char text[256];
    snprintf(text, sizeof text,
             "clusters:\n- {name: a, hosts: \"n[1-%u]\", ethernet: {bandwidth: 100, latency: 0.04}}\n", hosts);
    grid_open(n, text, each);
}

/* The end, and, if it is wished for, those of all ranks. */
static uint64_t time_of(struct network *n, enum tb_operation operation, const char *name, uint64_t argument,
                        uint64_t bytes, uint32_t root, uint64_t *ends)
{
    struct tb_collective c = {.operation = operation,
                              .size = n->size,
                              .root = root,
                              .elements = bytes,
                              .element_bytes = 1,
                              .commutative = true,
                              .common = true,
                              .shape = n->shape,
                              .costs = &n->table,
                              .argument = argument};
    const struct tb_algorithm *a = algorithm_find(operation, name);
    assert_true(tb_algorithm_fits(a, &c));
    struct tb_program **programs = programs_make(a, &c);
    struct tb_item_data data = tb_item_data_of(&c);
    struct tb_simulation run = {.programs = programs,
                                .ways = &n->ways,
                                .bytes = data.bytes,
                                .blocks = data.blocks,
                                .ends = ends,
                                .limit = 1000000};
    assert_int_equal(tb_simulate(simulator, &run), TB_OK);
    programs_close(programs, n->size);
    return run.end;
}

/* What datagrams of so many bytes take a port. */
static uint64_t wire(const struct network *n, uint64_t bytes)
{
    return tb_wire_time(&n->table, n->ways.wires[0].wire, bytes + bytes / 50);
}

/* Short ones leave the root at once; the others get them all at the same time. */
static void one_copy_reaches_all_hosts(void **state)
{
    static const uint64_t sizes[] = {0, 1, 1420, 65536};
    uint64_t ends[64];
    for (uint32_t hosts = 2; hosts <= 64; hosts += 31)
        for (uint32_t i = 0; i < 4; i++) {
            struct network n;
            cluster_open(&n, hosts, 1);
            uint64_t all =
                time_of(&n, TB_OPERATION_BCAST, "levels-flat-multicast", sizes[i], sizes[i], hosts / 2, ends);
            assert_int_equal(all, 2 * OVERHEAD + LATENCY + wire(&n, sizes[i]));
            for (uint32_t rank = 0; rank < hosts; rank++)
                assert_int_equal(ends[rank], rank == hosts / 2 ? OVERHEAD : all);
            network_close(&n);
        }
}

/* Of long ones the root hears that all have them. */
static void the_root_of_a_long_one_waits(void **state)
{
    struct network n;
    uint64_t ends[16];
    cluster_open(&n, 16, 1);
    uint64_t all = time_of(&n, TB_OPERATION_BCAST, "levels-flat-multicast", 1 << 20, 1 << 20, 3, ends);
    assert_int_equal(ends[0], 2 * OVERHEAD + LATENCY + wire(&n, 1 << 20));
    assert_int_equal(ends[3], ends[0] + LATENCY);
    assert_int_equal(all, ends[3]);
    network_close(&n);
}

/* Pieces that come from elsewhere are passed on as they come: a little more than the slow link alone takes. */
static void pieces_go_on_as_they_come(void **state)
{
    static const char grid[] = "clusters:\n"
                               "- {name: a, hosts: \"a[1-4]\", ethernet: {bandwidth: 100, latency: 0.04}}\n"
                               "- {name: b, hosts: \"b[1-9]\", ethernet: {bandwidth: 100, latency: 0.04}}\n"
                               "links:\n"
                               "- {from: a, to: b, bandwidth: 50, latency: 10}\n";
    struct network n;
    grid_open(&n, grid, 1);
    uint64_t whole = time_of(&n, TB_OPERATION_BCAST, "levels-flat-multicast", 8 << 20, 8 << 20, 0, NULL);
    uint64_t pieces = time_of(&n, TB_OPERATION_BCAST, "levels-flat-multicast", 1 << 20, 8 << 20, 0, NULL);
    uint64_t link = 1342 * 1000000 * NS; /* 8 MiB at 50 Mbit/s */
    assert_in_range(whole, link + link / 2, 2 * link);
    assert_in_range(pieces, link, link + link / 5);
    network_close(&n);
}

/* Ranks of a host get it in its memory. */
static void hosts_pass_it_on(void **state)
{
    struct network n;
    uint64_t ends[12];
    cluster_open(&n, 3, 4);
    time_of(&n, TB_OPERATION_BCAST, "levels-flat-multicast", 1000, 1000, 5, ends);
    for (uint32_t rank = 0; rank < 12; rank++)
        if (rank / 4 != 1)
            assert_true(ends[rank] >= 2 * OVERHEAD + LATENCY + wire(&n, 1000));
    network_close(&n);
}

/* The way down takes one message, however many hosts there are. */
static void barriers_and_sums_come_down_at_once(void **state)
{
    uint64_t before[2] = {0, 0};
    for (uint32_t levels = 2; levels <= 5; levels++) {
        struct network n;
        cluster_open(&n, 1u << levels, 1);
        uint64_t barrier = time_of(&n, TB_OPERATION_BARRIER, "levels-multicast", 0, 0, 0, NULL);
        uint64_t sum = time_of(&n, TB_OPERATION_ALLREDUCE, "levels-flat-binomial-multicast", 8, 8, 0, NULL);
        if (levels > 2) { /* a message more on the way up, and none more on the way down */
            assert_int_equal(barrier - before[0],
                             2 * OVERHEAD + LATENCY + tb_wire_time(&n.table, n.ways.wires[0].wire, 0));
            assert_int_equal(sum - before[1], 2 * OVERHEAD + LATENCY + tb_wire_time(&n.table, n.ways.wires[0].wire, 8));
        }
        before[0] = barrier;
        before[1] = sum;
        network_close(&n);
    }
}

/* Blocks for all leave as one message, and each host takes its own; those of all come together first. */
static void blocks_go_in_one_message(void **state)
{
    for (uint32_t hosts = 3; hosts <= 48; hosts *= 4) {
        struct network n;
        cluster_open(&n, hosts, 1);
        uint64_t all = 2 * OVERHEAD + LATENCY + wire(&n, 100ull * hosts);
        uint64_t scatter = time_of(&n, TB_OPERATION_SCATTER, "levels-multicast", 0, 100, hosts - 1, NULL);
        assert_in_range(scatter, all - NS, all + NS);
        uint64_t gather = OVERHEAD + LATENCY + (hosts - 1) * tb_wire_time(&n.table, n.ways.wires[0].wire, 100);
        uint64_t allgather = time_of(&n, TB_OPERATION_ALLGATHER, "levels-flat-multicast", 0, 100, 0, NULL);
        assert_in_range(allgather, gather + all, gather + all + hosts * OVERHEAD);
        network_close(&n);
    }
}

/* Places without multicast have trees, and where no place has it the algorithm does not fit. */
static void only_where_it_reaches_all(void **state)
{
    struct network n;
    network_multicasts = false;
    cluster_open(&n, 4, 1);
    struct tb_collective c = {.operation = TB_OPERATION_BCAST,
                              .size = n.size,
                              .elements = 8,
                              .element_bytes = 1,
                              .shape = n.shape,
                              .costs = &n.table};
    assert_false(tb_algorithm_fits(algorithm_find(TB_OPERATION_BCAST, "levels-flat-multicast"), &c));
    network_close(&n);
    network_multicasts = true;
    cluster_open(&n, 4, 2);
    c.size = n.size;
    c.shape = n.shape;
    assert_false(tb_algorithm_fits(algorithm_find(TB_OPERATION_BCAST, "levels-flat-multicast"), &c));
    c.common = true;
    assert_true(tb_algorithm_fits(algorithm_find(TB_OPERATION_BCAST, "levels-flat-multicast"), &c));
    c.inter = true;
    assert_false(tb_algorithm_fits(algorithm_find(TB_OPERATION_BCAST, "levels-flat-multicast"), &c));
    network_close(&n);
}

/* Every driver has a row of what it costs. */
static void every_driver_costs_something(void **state)
{
    for (int i = 0; i < TB_DRIVER_COUNT; i++)
        assert_true(tb_driver_costs[i].wires == (tb_driver_costs[i].time == NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_copy_reaches_all_hosts),          cmocka_unit_test(the_root_of_a_long_one_waits),
        cmocka_unit_test(pieces_go_on_as_they_come),           cmocka_unit_test(hosts_pass_it_on),
        cmocka_unit_test(barriers_and_sums_come_down_at_once), cmocka_unit_test(blocks_go_in_one_message),
        cmocka_unit_test(only_where_it_reaches_all),           cmocka_unit_test(every_driver_costs_something),
    };
    return cmocka_run_group_tests(tests, simulator_setup, simulator_teardown);
}
