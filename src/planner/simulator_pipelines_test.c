/* What pipelines promise: on hosts of one switch little more than the time in which one copy passes a port, between
 * sites little more than the bound, and on grids that levels overlap. */
#include "planner/bound.h"
#include "planner/network_test.h"
#include "planner/rating.h"
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

static uint64_t one_copy(struct network *n, const struct cell *cell)
{
    return tb_wire_time(&n->table, n->ways.wires[0].wire, cell->bytes);
}

static uint64_t bound_of(struct network *n, const struct cell *cell)
{
    struct tb_collective c = call_of(n, cell);
    struct tb_bound bound;
    c.elements = cell->bytes;
    c.element_bytes = 1;
    assert_int_equal(tb_bound_find(&n->ways, &c, &bound), TB_OK);
    return bound.time;
}

/* Each cell's best time is not below what it is compared with, and not much above. */
static void cells_judge(const struct cell *cells, size_t count,
                        uint64_t (*least)(struct network *n, const struct cell *cell), const char *what)
{
    struct tb_simulator *simulator;
    assert_int_equal(tb_simulator_open(&simulator), TB_OK);
    for (const struct cell *cell = cells; cell < cells + count; cell++) {
        struct network n;
        network_open(&n, cell->grid, NULL, 1);
        network_unlimited(&n);
        uint64_t time = best_time(&n, cell, simulator), bound = least(&n, cell);
        if (time < bound || (double)time > cell->most * (double)bound)
            fail_msg("%s of %llu bytes by %s: %.3f times %s on\n%s", tb_operation_name(cell->operation),
                     (unsigned long long)cell->bytes, cell->algorithm, (double)time / (double)bound, what, cell->grid);
        network_close(&n);
    }
    tb_simulator_close(simulator);
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
    cells_judge(cells, sizeof cells / sizeof cells[0], one_copy, "one copy on the wire");
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
    cells_judge(cells, sizeof cells / sizeof cells[0], bound_of, "the bound");
}

/* ---- levels that overlap ----------------------------------------------------------------------------------------- */

/* Three sites, and clusters in one another, five levels deep, as unequal as they come. */
#define PAIRWISE                                                                                                       \
    "sites: [{name: A, clusters: [{name: a, hosts: 'a[1-4]:1'}]}, {name: B, clusters: [{name: b, hosts: "              \
    "'b[1-4]:1'}]},\n  {name: C, clusters: [{name: c, hosts: 'c[1-4]:1'}]}]\n"                                         \
    "links: [{from: a, to: b, bandwidth: 20, latency: 10}, {from: b, to: c, bandwidth: 20, latency: 10},\n"            \
    "  {from: c, to: a, bandwidth: 20, latency: 10}]"
#define FIVE_LEVELS                                                                                                    \
    "sites:\n- name: S\n  clusters:\n  - name: v\n    hosts: 'v[1-2]:1'\n    uplink: {bandwidth: 20, latency: 4}\n"    \
    "    clusters:\n    - name: w\n      hosts: 'w[1-3]:1'\n      uplink: {bandwidth: 50, latency: 1}\n"               \
    "      clusters:\n      - name: x\n        hosts: x1\n        uplink: {bandwidth: 100, latency: 0.5}\n"            \
    "        clusters:\n        - name: y\n          hosts: 'y[1-2]:1'\n          uplink: {bandwidth: 10, latency: "   \
    "7}\n"                                                                                                             \
    "          clusters:\n          - {name: z, hosts: 'z[1-5]:1', uplink: {bandwidth: 100, latency: 0.2}}\n"          \
    "- name: T\n  clusters:\n  - {name: t, hosts: 't[1-2]:1', uplink: {bandwidth: 30, latency: 20}}\n"

/* When pieces are where. */
struct piece_times {
    struct tb_program **programs;
    struct tb_step_times *times; /* of the steps of all ranks */
    uint32_t *begins;            /* of each rank's in that */
};

static uint64_t first_piece(const struct piece_times *p, uint32_t rank, uint32_t *from)
{
    uint64_t first = TB_COST_NEVER;
    for (uint32_t i = 0; i < p->programs[rank]->step_count; i++) {
        const struct tb_step *s = &p->programs[rank]->steps[i];
        uint64_t done = p->times[p->begins[rank] + i].done;
        if (s->kind == TB_STEP_RECEIVE && done < first) {
            first = done;
            *from = s->peer;
        }
    }
    return first;
}

/* When a rank has got half of what comes from the root: the root has sent it then. */
static uint64_t half_there(const struct piece_times *p, uint32_t rank, uint32_t root)
{
    uint64_t half = TB_COST_NEVER;
    for (uint32_t i = 0; i < p->programs[rank]->step_count; i++) {
        const struct tb_step *s = &p->programs[rank]->steps[i];
        uint64_t time = p->times[p->begins[rank] + i].half;
        if (s->kind == TB_STEP_RECEIVE && s->peer == root && time < half)
            half = time;
    }
    return half;
}

/* Does each rank have its first piece before the root has sent half of what goes in its direction? */
static bool is_overlapped(const struct piece_times *p, uint32_t size, uint32_t root)
{
    for (uint32_t rank = 0; rank < size; rank++) {
        uint32_t from = rank, child = rank;
        if (rank == root)
            continue;
        uint64_t first = first_piece(p, rank, &from), there;
        assert_int_not_equal(first, TB_COST_NEVER);
        while (from != root) {
            child = from;
            there = first_piece(p, child, &from);
            assert_true(there < first);
        }
        if (child != rank && first >= half_there(p, child, root))
            return false;
    }
    return true;
}

static bool overlaps(struct network *n, const struct tb_algorithm *a, const struct tb_collective *c)
{
    struct tb_simulator *simulator;
    struct piece_times p = {.programs = programs_make(a, c)};
    uint32_t steps = 0;
    p.begins = calloc(c->size, sizeof *p.begins);
    assert_non_null(p.begins);
    for (uint32_t rank = 0; rank < c->size; rank++) {
        p.begins[rank] = steps;
        steps += p.programs[rank]->step_count;
    }
    p.times = calloc(steps + 1u, sizeof *p.times);
    struct tb_simulation run = {
        .programs = p.programs, .ways = &n->ways, .bytes = c->elements, .limit = 100000000, .times = p.times};
    assert_int_equal(tb_simulator_open(&simulator), TB_OK);
    assert_int_equal(tb_simulate(simulator, &run), TB_OK);
    bool overlapped = is_overlapped(&p, c->size, c->root);
    tb_simulator_close(simulator);
    programs_close(p.programs, c->size);
    free(p.begins);
    free(p.times);
    return overlapped;
}

/* In a large broadcast the farthest rank has its first piece before the root has sent half, by what takes least
 * of what goes by levels. */
static void levels_overlap(void **state)
{
    static const char *const grids[] = {PAIRWISE, FIVE_LEVELS};
    static struct tb_candidate rows[TB_CANDIDATES_LIMIT];
    for (size_t i = 0; i < sizeof grids / sizeof grids[0]; i++) {
        struct network n;
        network_open(&n, grids[i], NULL, 1);
        for (uint32_t root = 0; root < n.size; root += 3) {
            struct tb_collective c = {
                .operation = TB_OPERATION_BCAST, .size = n.size, .root = root, .elements = 64u << 20};
            c.element_bytes = 1;
            c.shape = n.shape;
            c.costs = &n.table;
            uint32_t count = tb_rating_list(&c, NULL, rows);
            assert_int_equal(tb_rating_rate(n.shape, &c, rows, count, true, NULL), TB_OK);
            tb_rating_sort(rows, count);
            const struct tb_candidate *best = rows;
            while (!tb_algorithm_levels(best->algorithm))
                best++;
            c.argument = best->argument;
            if (!overlaps(&n, best->algorithm, &c))
                fail_msg("grid %zu, root %u: %s:%llu", i, root, best->algorithm->name, (unsigned long long)c.argument);
            c.argument = c.elements; /* in one piece they do not */
            assert_false(overlaps(&n, algorithm_find(TB_OPERATION_BCAST, "binomial"), &c));
        }
        network_close(&n);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(pipelines_keep_ports_busy),
                                       cmocka_unit_test(levels_keep_links_busy), cmocka_unit_test(levels_overlap)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
