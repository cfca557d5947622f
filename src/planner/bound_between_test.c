/* The bound between two groups and among neighbours, by hand, and against simulations where there can be some. */
#include "planner/bound.h"
#include "planner/item_bytes.h"
#include "planner/network_test.h"
#include "planner/simulator.h"

#define NET   "ethernet: {bandwidth: 100, latency: 0.05}"
#define CROSS 30100000000ull /* both networks, and the link */
#define SLACK 1000000000ull  /* for what ranks spend, and headers */

static const char text[] = "clusters:\n- {name: a, hosts: 'a[1-4]', " NET "}\n- {name: b, hosts: 'b[1-4]', " NET "}\n"
                           "links:\n- {from: a, to: b, bandwidth: 20, latency: 30}\n";

/* The first group is cluster a, the other one b. */
static void groups_open(struct network *n, struct tb_ways *ways)
{
    const struct tb_group_shape *shape;
    network_open(n, text, NULL, 1);
    struct tb_shape_source ranks = {.size = n->size,
                                    .split = 4,
                                    .host_limit = n->grid.host_count,
                                    .table = &n->table,
                                    .run = network_run,
                                    .context = n};
    assert_int_equal(tb_group_shape_make(&shape, &ranks), TB_OK);
    assert_int_equal(tb_ways_open(ways, &n->table, shape), TB_OK);
}

static uint64_t bound_of(struct tb_ways *ways, struct tb_collective c)
{
    struct tb_bound bound;
    c.shape = ways->shape;
    c.costs = ways->table;
    c.element_bytes = 1;
    assert_int_equal(tb_bound_find(ways, &c, &bound), TB_OK);
    return bound.time;
}

static void two_groups_by_hand(void **state)
{
    struct network n;
    struct tb_ways ways;
    groups_open(&n, &ways);
    struct tb_collective c = {
        .operation = TB_OPERATION_BARRIER, .size = 4, .remote_size = 4, .inter = true, .first = true};
    assert_in_range(bound_of(&ways, c), CROSS, CROSS + SLACK);
    c.operation = TB_OPERATION_ALLREDUCE;
    c.elements = 8;
    assert_in_range(bound_of(&ways, c), CROSS, CROSS + SLACK);
    /* From the root of the other group, as seen here, and there: 10 Mbit leave its port at 100 Mbit/s. */
    c.operation = TB_OPERATION_BCAST;
    c.elements = 1250000;
    c.root = 2;
    uint64_t here = bound_of(&ways, c), least = CROSS + 100000000000ull;
    assert_in_range(here, least, least + least / 10);
    c.first = false;
    c.root = TB_ROOT_HERE;
    c.rank = 2;
    assert_int_equal(bound_of(&ways, c), here);
    /* Four blocks leave it one after the other. */
    c.operation = TB_OPERATION_SCATTER;
    least = CROSS + 400000000000ull;
    assert_in_range(bound_of(&ways, c), least, least + least / 10);
    c.operation = TB_OPERATION_GATHER;
    assert_in_range(bound_of(&ways, c), least, least + least / 10);
    /* Who is beside the root does not know where that is. */
    c.root = TB_ROOT_BESIDE;
    assert_int_equal(bound_of(&ways, c), 0);
    const struct tb_group_shape *shape = ways.shape;
    tb_ways_close(&ways);
    tb_group_shape_release(shape);
    network_close(&n);
}

/* Everyone's neighbours are those before and behind it: nobody ends before the bound of any rank. */
static void a_ring_is_not_faster(void **state)
{
    static const enum tb_operation operations[] = {TB_OPERATION_NEIGHBOR_ALLGATHER, TB_OPERATION_NEIGHBOR_ALLTOALL};
    static const uint64_t lengths[] = {1, 1000, 100000, 3000000};
    static const uint16_t here[] = {0, 1}, there[] = {1, 0};
    struct tb_simulator *simulator;
    struct network n;
    assert_int_equal(tb_simulator_open(&simulator), TB_OK);
    network_open(&n, text, NULL, 2);
    for (uint32_t i = 0; i < 8; i++) {
        struct tb_program **programs = calloc(n.size, sizeof *programs);
        struct tb_collective c = {.operation = operations[i % 2],
                                  .size = n.size,
                                  .elements = lengths[i / 2],
                                  .element_bytes = 1,
                                  .source_edges = here,
                                  .target_edges = there,
                                  .source_count = 2,
                                  .target_count = 2,
                                  .shape = n.shape,
                                  .costs = &n.table};
        const struct tb_algorithm *a = algorithm_find(c.operation, "linear");
        uint64_t most = 0;
        assert_non_null(programs);
        for (c.rank = 0; c.rank < n.size; c.rank++) {
            const uint32_t beside[] = {(c.rank + n.size - 1) % n.size, (c.rank + 1) % n.size};
            c.sources = c.targets = beside;
            uint64_t bound = bound_of(&n.ways, c);
            most = bound > most ? bound : most;
            assert_int_equal(a->make(&c, &programs[c.rank]), TB_OK);
        }
        struct tb_simulation run = {
            .programs = programs, .ways = &n.ways, .bytes = lengths[i / 2], .blocks = true, .limit = 1000000};
        assert_int_equal(tb_simulate(simulator, &run), TB_OK);
        assert_in_range(most, CROSS, run.end);
        programs_close(programs, n.size);
    }
    network_close(&n);
    tb_simulator_close(simulator);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(two_groups_by_hand), cmocka_unit_test(a_ring_is_not_faster)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
