/* What pipelines promise: on hosts of one switch little more than the time in which one copy passes a port, and between
 * sites little more than the bound. */
#include "planner/bound.h"
#include "planner/network_test.h"
#include "planner/simulator.h"

#define CANDIDATES 32

struct cell {
    const char *grid;
    enum tb_operation operation;
    const char *algorithm;
    uint64_t bytes;
    double most; /* times one copy on the wire */
};

static struct tb_collective call_of(const struct network *n, const struct cell *cell)
{
    return (struct tb_collective){.operation = cell->operation,
                                  .size = n->size,
                                  .elements = cell->bytes / 4,
                                  .element_bytes = 4,
                                  .commutative = true,
                                  .shape = n->shape,
                                  .costs = &n->table};
}

/* The best of the lengths of pieces that are rated. */
static uint64_t best_time(struct network *n, const struct cell *cell, struct tb_simulator *simulator)
{
    const struct tb_algorithm *a = algorithm_find(cell->operation, cell->algorithm);
    struct tb_collective c = call_of(n, cell);
    uint64_t values[CANDIDATES], best = TB_COST_NEVER;
    uint32_t count = a->candidates(&c, values, CANDIDATES);
    for (uint32_t i = 0; i < count; i++) {
        c.argument = values[i];
        struct tb_program **programs = programs_make(a, &c);
        struct tb_simulation run = {.programs = programs, .ways = &n->ways, .bytes = cell->bytes, .limit = 10000000};
        assert_int_equal(tb_simulate(simulator, &run), TB_OK);
        best = run.end < best ? run.end : best;
        programs_close(programs, c.size);
    }
    return best;
}

static void pipelines_keep_ports_busy(void **state)
{
    static const char sixteen[] =
        "clusters:\n- {name: c, hosts: 'c[1-16]:1', ethernet: {bandwidth: 100, latency: 0.05}}\n";
    static const char many[] = "clusters:\n- {name: c, hosts: 'c[1-32]:1', ethernet: {bandwidth: 25, latency: 0.05}}\n";
    static const struct cell cells[] = {
        {sixteen, TB_OPERATION_BCAST, "circulant", 1u << 20, 1.09},
        {sixteen, TB_OPERATION_REDUCE, "circulant", 1u << 20, 1.12},
        {sixteen, TB_OPERATION_BCAST, "circulant", 1u << 16, 1.4},
        {sixteen, TB_OPERATION_REDUCE, "circulant", 1u << 16, 1.5},
        {many, TB_OPERATION_BCAST, "circulant", 1u << 20, 1.10},
        {many, TB_OPERATION_REDUCE, "circulant", 1u << 20, 1.12},
    };
    struct tb_simulator *simulator;
    assert_int_equal(tb_simulator_open(&simulator), TB_OK);
    for (size_t i = 0; i < sizeof cells / sizeof cells[0]; i++) {
        struct network n;
        network_open(&n, cells[i].grid, NULL, 1);
        network_unlimited(&n);
        uint64_t time = best_time(&n, &cells[i], simulator);
        uint64_t copy = tb_wire_time(&n.table, n.ways.wires[0].wire, cells[i].bytes);
        if ((double)time > cells[i].most * (double)copy)
            fail_msg("%s of %llu bytes on %u hosts by %s: %.3f times one copy on the wire",
                     tb_operation_name(cells[i].operation), (unsigned long long)cells[i].bytes, n.size,
                     cells[i].algorithm, (double)time / (double)copy);
        network_close(&n);
    }
    tb_simulator_close(simulator);
}

/* Three sites joined pairwise, or on a star. */
static void levels_keep_links_busy(void **state)
{
#define SITE(name) "- {name: " name ", hosts: '" name "[1-4]:1', ethernet: {bandwidth: 100, latency: 0.05}"
#define LINE       ", uplink: {bandwidth: 20, latency: 5}"
    static const char mesh[] = "clusters:\n" SITE("a") "}\n" SITE("b") "}\n" SITE(
        "c") "}\n"
             "links:\n- {from: a, to: b, bandwidth: 20, latency: 10}\n"
             "- {from: b, to: c, bandwidth: 20, latency: 10}\n"
             "- {from: c, to: a, bandwidth: 20, latency: 10}\n";
    static const char star[] = "clusters:\n" SITE("a") LINE "}\n" SITE("b") LINE "}\n" SITE("c") LINE "}\n";
    static const struct cell cells[] = {
        {mesh, TB_OPERATION_BCAST, "levels-packed-chain", 1u << 16, 1.15},
        {mesh, TB_OPERATION_REDUCE, "levels-packed-chain", 1u << 16, 1.15},
        {mesh, TB_OPERATION_ALLREDUCE, "levels-packed-chain", 1u << 16, 1.2},
        {mesh, TB_OPERATION_BCAST, "levels-packed-chain", 1u << 20, 1.1},
        {mesh, TB_OPERATION_REDUCE, "levels-packed-chain", 1u << 20, 1.15},
        {mesh, TB_OPERATION_ALLREDUCE, "levels-packed-chain", 1u << 20, 1.1},
        {star, TB_OPERATION_BCAST, "levels-packed-chain", 1u << 16, 1.15},
        {star, TB_OPERATION_REDUCE, "levels-packed-chain", 1u << 16, 1.22},
        {star, TB_OPERATION_ALLREDUCE, "levels-packed-chain", 1u << 16, 1.2},
        {star, TB_OPERATION_BCAST, "levels-packed-chain", 1u << 20, 1.1},
        {star, TB_OPERATION_REDUCE, "levels-chain-chain", 1u << 20, 1.1},
        {star, TB_OPERATION_ALLREDUCE, "levels-packed-chain", 1u << 20, 1.1},
    };
    struct tb_simulator *simulator;
    assert_int_equal(tb_simulator_open(&simulator), TB_OK);
    for (size_t i = 0; i < sizeof cells / sizeof cells[0]; i++) {
        struct network n;
        network_open(&n, cells[i].grid, NULL, 1);
        network_unlimited(&n);
        struct tb_collective c = call_of(&n, &cells[i]);
        struct tb_bound bound;
        c.elements = cells[i].bytes;
        c.element_bytes = 1;
        assert_int_equal(tb_bound_find(&n.ways, &c, &bound), TB_OK);
        uint64_t time = best_time(&n, &cells[i], simulator);
        if (time < bound.time || (double)time > cells[i].most * (double)bound.time)
            fail_msg("%s of %llu bytes by %s: %.3f times the bound on\n%s", tb_operation_name(cells[i].operation),
                     (unsigned long long)cells[i].bytes, cells[i].algorithm, (double)time / (double)bound.time,
                     cells[i].grid);
        network_close(&n);
    }
    tb_simulator_close(simulator);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(pipelines_keep_ports_busy),
                                       cmocka_unit_test(levels_keep_links_busy)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
