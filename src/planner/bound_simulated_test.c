/* No program ends before the bound: every algorithm with every argument worth a try, simulated as it is, of few ranks
 * and short and long messages, on random grids. */
#include "planner/bound.h"
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
                           const struct tb_candidate *row, const struct tb_bound *bound, const char *text)
{
    const struct tb_item_data data = tb_item_data_of(&c);
    struct tb_simulation run = {.ways = &n->ways, .bytes = data.bytes, .blocks = data.blocks, .limit = EVENTS_MOST};
    c.argument = row->argument;
    struct tb_program **programs = programs_make(row->algorithm, &c);
    run.programs = programs;
    int error = tb_simulate(simulator, &run);
    assert_true(error == TB_OK || error == TB_ERR_LIMIT);
    compared += error == TB_OK ? 1 : 0;
    if (error == TB_OK && run.end < bound->time)
        fail_msg("%s of %llu bytes by %s:%llu, %u ranks, root %u: %.6f us, and the bound is %.6f, on\n%s",
                 tb_operation_name(c.operation), (unsigned long long)data.bytes, row->algorithm->name,
                 (unsigned long long)row->argument, n->size, c.root, (double)run.end / 1e6, (double)bound->time / 1e6,
                 text);
    programs_close(programs, c.size);
}

/* `most`: candidates that are looked at. */
static void call_look(struct network *n, struct tb_simulator *simulator, enum tb_operation operation, uint64_t bytes,
                      uint32_t most, const char *text)
{
    struct tb_candidate rows[TB_CANDIDATES_LIMIT];
    struct tb_bound bound;
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
    assert_int_equal(tb_bound_find(&n->ways, &c, &bound), TB_OK);
    assert_true(bound.time > 0 || n->size == 1);
    uint32_t count = tb_rating_list(&c, NULL, rows), step = count / most + 1;
    assert_true(count > 0);
    for (uint32_t i = 0; i < count; i += step)
        candidate_look(n, simulator, c, &rows[i], &bound, text);
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

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(any_grid)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
