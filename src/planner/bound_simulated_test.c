/* No program ends before the bound, neither before that of pairs of places nor before that of many places: every
 * algorithm with every argument worth a try, simulated as it is, of few ranks and short and long messages, on random
 * grids; and on grids of more places than are looked at in pairs. */
#include "planner/bound_many.h"
#include "planner/bound_state.h"
#include "planner/item_bytes.h"
#include "planner/network_test.h"
#include "planner/random_grid_test.h"
#include "planner/rating.h"
#include "planner/simulator.h"

#define EVENTS_MOST 200000u /* of one simulation; longer ones are left out */

static const uint64_t lengths[] = {1, 8, 1000, 30000, 200000, 1000000, 9000000};
#define LENGTHS (sizeof lengths / sizeof lengths[0])

/* How many simulations were compared. */
static uint32_t compared;

static void candidate_look(struct network *n, struct tb_simulator *simulator, struct tb_collective c,
                           const struct tb_candidate *row, const struct tb_bound bound[2], const char *text)
{
    const struct tb_item_data data = tb_item_data_of(&c);
    struct tb_simulation run = {.ways = &n->ways, .bytes = data.bytes, .blocks = data.blocks, .limit = EVENTS_MOST};
    c.argument = row->argument;
    struct tb_program **programs = programs_make(row->algorithm, &c);
    run.programs = programs;
    int error = tb_simulate(simulator, &run);
    assert_true(error == TB_OK || error == TB_ERR_LIMIT);
    compared += error == TB_OK ? 1 : 0;
    for (int i = 0; i < 2 && error == TB_OK; i++)
        if (run.end < bound[i].time)
            fail_msg("%s of %llu bytes by %s:%llu, %u ranks, root %u: %.6f us, and the bound%s is %.6f, on\n%s",
                     tb_operation_name(c.operation), (unsigned long long)data.bytes, row->algorithm->name,
                     (unsigned long long)row->argument, n->size, c.root, (double)run.end / 1e6,
                     i == 1 ? " of many" : "", (double)bound[i].time / 1e6, text);
    programs_close(programs, c.size);
}

/* `most`: candidates that are looked at. */
static void call_look(struct network *n, struct tb_simulator *simulator, enum tb_operation operation, uint64_t bytes,
                      uint32_t most, const char *text)
{
    struct tb_candidate rows[TB_CANDIDATES_LIMIT];
    struct tb_bound bound[2] = {{.time = 0}, {.time = 0}};
    uint64_t looks;
    bool none = operation == TB_OPERATION_BARRIER || tb_operation_unsized(operation);
    struct tb_collective c = {.operation = operation,
                              .size = n->size,
                              .root = random_below(n->size),
                              .elements = none ? 0 : bytes,
                              .element_bytes = 1,
                              .commutative = true,
                              .common = n->shape->most > 1,
                              .shape = n->shape,
                              .costs = &n->table};
    tb_param.assumed_block = (long long)bytes;
    assert_int_equal(tb_bound_find(&n->ways, &c, &bound[0]), TB_OK);
    assert_true(bound[0].time > 0 || n->size == 1);
    if (tb_param.port_burst == 0) { /* it is without what passes at once */
        assert_int_equal(tb_bound_many(&n->ways, &c, UINT64_MAX, &bound[1], &looks), TB_OK);
        assert_true(bound[1].time > 0 || n->shape->host_count == 1);
    }
    uint32_t count = tb_rating_list(&c, NULL, rows), step = count / most + 1;
    assert_true(count > 0);
    for (uint32_t i = 0; i < count; i += step)
        candidate_look(n, simulator, c, &rows[i], bound, text);
}

static void grid_look(struct tb_simulator *simulator, const char *text, uint32_t each, uint32_t most)
{
    struct network n;
    network_open(&n, text, NULL, each);
    for (int o = 0; o <= TB_OPERATION_EXSCAN; o++)
        for (uint32_t l = 0; l < LENGTHS; l++)
            call_look(&n, simulator, (enum tb_operation)o, lengths[l], most, text);
    network_close(&n);
}

static void any_grid(void **state)
{
    /* Of the last four something was once simulated that ended earlier. */
    static const uint32_t draws[] = {0, 1, 2, 3, 104, 124, 144, 151};
    struct tb_simulator *simulator;
    assert_int_equal(tb_simulator_open(&simulator), TB_OK);
    for (uint32_t i = 0; i < sizeof draws / sizeof draws[0]; i++) {
        char text[4096];
        random_seed = draws[i] * 7919 + 3;
        random_grid(text, 4, 3);
        network_multicasts = draws[i] % 2 == 0;
        grid_look(simulator, text, 1 + random_below(3), TB_CANDIDATES_LIMIT);
    }
    tb_simulator_close(simulator);
    assert_true(compared > 1000);
}

/* Ports through which something passes at once after they have rested, as in a lab. */
static void ports_with_buckets(void **state)
{
    struct tb_simulator *simulator;
    assert_int_equal(tb_simulator_open(&simulator), TB_OK);
    setenv("TOMBOLO_PORT_BURST", "2048", 1);
    uint32_t before = compared;
    for (uint32_t draw = 200; draw < 206; draw++) {
        char text[4096];
        random_seed = draw * 7919 + 3;
        random_grid(text, 4, 3);
        network_multicasts = draw % 2 == 0;
        grid_look(simulator, text, 1 + random_below(3), 12);
    }
    unsetenv("TOMBOLO_PORT_BURST");
    tb_simulator_close(simulator);
    assert_true(compared > before + 1000);
}

/* A cluster with one nested in it or without, the hosts of which are names with a number. */
static int cluster_text(char *at, uint32_t number)
{
    char *begin = at;
    at += sprintf(at, "{name: c%u, hosts: \"c%un[1-%u]\"", number, number, 1 + random_below(3));
    at += wire_text(at, ", ethernet: ");
    if (random_below(2) == 0)
        at += wire_text(at, ", uplink: ");
    if (random_below(2) == 0)
        at += sprintf(at, ", gateways: [c%un1]", number);
    if (random_below(2) == 0) {
        at += sprintf(at, ", clusters: [{name: d%u, hosts: [\"d%un[1-%u]\"", number, number, 1 + random_below(3));
        if (random_below(3) == 0) /* a host that stands in both */
            at += sprintf(at, ", c%un1", number);
        at += sprintf(at, "]");
        at += wire_text(at, ", ethernet: ");
        if (random_below(2) == 0)
            at += wire_text(at, ", uplink: ");
        at += sprintf(at, "%s}]", random_below(2) == 0 ? ", nat: true" : "");
    }
    return (int)(at + sprintf(at, "}") - begin);
}

/* Sites with uplinks or without, clusters with clusters in them, and links between any of them. */
static void world_text(char *at, uint32_t sites, uint32_t clusters)
{
    uint32_t count = 0;
    bool links = false;
    if (sites > 0)
        at += sprintf(at, "sites:\n");
    for (uint32_t i = 0; i < sites; i++) {
        at += sprintf(at, "- {name: s%u", i);
        if (random_below(2) == 0)
            at += wire_text(at, ", uplink: ");
        at += sprintf(at, ", clusters: [");
        for (uint32_t k = 1 + random_below(2); k > 0; k--) {
            at += cluster_text(at, count++);
            at += sprintf(at, "%s", k > 1 ? ", " : "]}\n");
        }
    }
    at += sprintf(at, "clusters:\n");
    for (uint32_t i = 0; i < clusters; i++) {
        at += sprintf(at, "- ");
        at += cluster_text(at, count++);
        at += sprintf(at, "\n");
    }
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t k = i + 1; k < count; k++)
            if (random_below(3) == 0) {
                uint32_t rate = 1 + random_below(100), latency = 1 + random_below(50);
                at += sprintf(at, "%s- {from: c%u, to: c%u, bandwidth: %u, latency: %u}\n", links ? "" : "links:\n", i,
                              k, rate, latency);
                links = true;
            }
    if (sites > 1)
        sprintf(at, "%s- {from: s0, to: s1, bandwidth: %u, latency: %u}\n", links ? "" : "links:\n",
                1 + random_below(100), 1 + random_below(50));
}

static void any_world(void **state)
{
    struct tb_simulator *simulator;
    assert_int_equal(tb_simulator_open(&simulator), TB_OK);
    network_multicasts = false;
    for (uint32_t i = 0; i < 5; i++) {
        char text[8192];
        random_seed = i * 104729 + 5;
        uint32_t sites = random_below(3);
        world_text(text, sites, 1 + random_below(2));
        grid_look(simulator, text, 1 + random_below(2), 32);
    }
    tb_simulator_close(simulator);
}

/* More places than are looked at in pairs: the bound is not nothing, and true. */
static void many_places(void **state)
{
    const uint32_t clusters = TB_BOUND_SPOTS + 8;
    static const enum tb_operation operations[] = {TB_OPERATION_BARRIER,   TB_OPERATION_BCAST,  TB_OPERATION_GATHER,
                                                   TB_OPERATION_ALLGATHER, TB_OPERATION_REDUCE, TB_OPERATION_SCATTER,
                                                   TB_OPERATION_ALLREDUCE, TB_OPERATION_SCAN};
    struct tb_simulator *simulator;
    char *text = malloc(clusters * 256ul);
    assert_non_null(text);
    assert_int_equal(tb_simulator_open(&simulator), TB_OK);
    for (uint32_t i = 0; i < 4; i++) {
        struct network n;
        char *at = text + sprintf(text, "clusters:\n");
        random_seed = 11 + i;
        for (uint32_t k = 0; k < clusters; k++) {
            at += sprintf(at, "- {name: c%u, hosts: c%un1", k, k);
            at += wire_text(at, ", ethernet: ");
            if (i % 2 == 0)
                at += wire_text(at, ", uplink: ");
            at += sprintf(at, "%s}\n", i < 2 ? "" : ", gateways: []");
        }
        network_open(&n, text, NULL, 1);
        for (uint32_t o = 0; o < sizeof operations / sizeof operations[0]; o++)
            for (uint32_t l = 0; l < 3; l++)
                call_look(&n, simulator, operations[o], lengths[l], 3, "more than 256 places");
        network_close(&n);
    }
    tb_simulator_close(simulator);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(any_grid), cmocka_unit_test(ports_with_buckets),
                                       cmocka_unit_test(any_world), cmocka_unit_test(many_places)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
