/* What pipelines promise on hosts of one switch: little more than the time in which one copy passes a port. */
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

/* The best of the lengths of pieces that are rated. */
static uint64_t best_time(struct network *n, const struct cell *cell, struct tb_simulator *simulator)
{
    const struct tb_algorithm *a = algorithm_find(cell->operation, cell->algorithm);
    struct tb_collective c = {.operation = cell->operation, .size = n->size, .elements = cell->bytes / 4};
    uint64_t values[CANDIDATES], best = TB_COST_NEVER;
    c.element_bytes = 4;
    c.commutative = true;
    c.shape = n->shape;
    c.costs = &n->table;
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
        {sixteen, TB_OPERATION_BCAST, "circulant", 1u << 20, 1.10},
        {sixteen, TB_OPERATION_REDUCE, "two-tree", 1u << 20, 1.12},
        {sixteen, TB_OPERATION_BCAST, "circulant", 1u << 16, 1.5},
        {sixteen, TB_OPERATION_REDUCE, "two-tree", 1u << 16, 1.5},
        {many, TB_OPERATION_BCAST, "circulant", 1u << 20, 1.10},
        {many, TB_OPERATION_REDUCE, "two-tree", 1u << 20, 1.12},
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

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(pipelines_keep_ports_busy)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
