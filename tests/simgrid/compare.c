/* Compares the simulator of src/planner with SimGrid: planned trees and algorithms of the catalogue on random grids,
 * the same programs and wires in both.
 *
 * Of the simulator's assumptions those are taken away that a fluid model does not have: what ranks spend on a message,
 * queues that overflow, what sockets take in beforehand, and that short messages overtake. All others are the same in
 * both (fluid.c). Broadcast and reduce along planned trees must take the same time within 5 %. Other operations and
 * algorithms of the catalogue are counted, too, and must do so within 15 %: there a few messages in a row make up the
 * time, some of which the simulator does not cut at all. Of those that meet at a wire the first passes it as if it were
 * alone, and SimGrid shares the wire from when the second comes. And a part is on several wires at once, where SimGrid
 * has a chunk, were it only the header of an empty message, on one after the other.
 *
 *   compare [LAST [FIRST]]
 *
 * prints a line for each schedule on these grids, a table for each operation, and a verdict for each grid. */
#include "fluid.h"

#include "planner/network_test.h"
#include "planner/random_grid_test.h"
#include "search/search.h"

#define GRIDS       20u
#define SEED        7u
#define EVALUATIONS 300u /* of the searcher that takes as many as it gets */
#define CLOSE       0.05
#define LESS_CLOSE  0.15
#define CASES       6u /* of a grid, of algorithms of the catalogue */
#define PS_PER_MS   1e9

/* What became of the schedules of an operation. */
struct sum {
    uint32_t count;
    double total, lowest, highest;
};

static struct sum planned[TB_OPERATION_COUNT], catalogue;

/* One grid, and what is wrong with it. */
struct scene {
    struct network network;
    uint32_t number;
    uint32_t wrong;
};

/* ---- grids ------------------------------------------------------------------------------------------------------- */

enum kind { KIND_LINKS, KIND_UPLINKS, KIND_GATEWAYS, KIND_COUNT };

/* Two to five clusters of up to eight hosts, on wires of 10 to 1000 Mbit/s: linked one by one, or by uplinks, or one by
 * one through gateways. */
static void grid_draw(char *at, enum kind kind)
{
    static const uint32_t ports[] = {100, 200, 500, 1000};
    uint32_t clusters = 2 + random_below(4);
    at += sprintf(at, "clusters:\n");
    for (uint32_t i = 0; i < clusters; i++) {
        uint32_t hosts = 1 + (i == 0) + random_below(8 - (i == 0)), port = ports[random_below(4)];
        uint32_t latency = 20 + random_below(100), up = 10 + random_below(190), far = 1 + random_below(5);
        at += sprintf(at, "- {name: c%u, hosts: 'c%un[1-%u]:1', ethernet: {bandwidth: %u, latency: 0.%03u}", i, i,
                      hosts, port, latency);
        if (kind == KIND_UPLINKS)
            at += sprintf(at, ", uplink: {bandwidth: %u, latency: %u}", up, far);
        if (kind == KIND_GATEWAYS)
            at += sprintf(at, ", gateways: [c%un1]", i);
        at += sprintf(at, "}\n");
    }
    if (kind == KIND_UPLINKS)
        return;
    at += sprintf(at, "links:\n");
    for (uint32_t i = 0; i < clusters; i++)
        for (uint32_t k = i + 1; k < clusters; k++) {
            uint32_t rate = 10 + random_below(190), latency = 1 + random_below(10);
            at += sprintf(at, "- {from: c%u, to: c%u, bandwidth: %u, latency: %u}\n", i, k, rate, latency);
        }
}

/* What a fluid model does not have. */
static void network_fluid(struct network *n)
{
    struct tb_cost_constants *c = &n->bytes->constants;
    network_unlimited(n);
    for (int i = 0; i < TB_ENDS_COUNT; i++)
        c->ends[i] = (struct tb_cost_ends){.send = {.count = 0}};
    c->memory.count = 0;
    c->short_bytes = c->unsent = 0;
}

/* ---- one schedule ------------------------------------------------------------------------------------------------ */

static void sum_add(struct sum *s, double ratio)
{
    s->lowest = s->count == 0 || ratio < s->lowest ? ratio : s->lowest;
    s->highest = ratio > s->highest ? ratio : s->highest;
    s->total += ratio;
    s->count++;
}

/* `run` has been simulated. */
static void schedule_compare(struct scene *scene, const struct tb_collective *c, const char *name,
                             const struct tb_simulation *run, struct sum *sum, double close)
{
    double fluid = fluid_time(run) * 1e3, ours = (double)run->end / PS_PER_MS, ratio = ours / fluid;
    bool good = ratio <= 1 + close && ratio >= 1 - close;
    printf("%4u %5u  %-22s %8llu  %-30s %12.3f %12.3f  %.3f%s\n", scene->number, scene->network.size,
           tb_operation_name(c->operation) + 4, (unsigned long long)c->elements, name, ours, fluid, ratio,
           good ? "" : "  !");
    fflush(stdout);
    scene->wrong += !good;
    sum_add(sum, ratio);
}

static struct tb_collective call_of(const struct network *n, enum tb_operation operation, uint64_t bytes)
{
    return (struct tb_collective){.operation = operation,
                                  .size = n->size,
                                  .root = n->size / 3,
                                  .elements = bytes,
                                  .element_bytes = 1,
                                  .commutative = true,
                                  .shape = n->shape,
                                  .costs = n->shape->table};
}

/* ---- planned trees ----------------------------------------------------------------------------------------------- */

static void forest_compare(struct scene *scene, struct tb_grid_problem *p, const char *planner,
                           const struct tb_forest *forest)
{
    char name[64];
    struct tb_simulation run = {.ends = NULL};
    enum tb_operation o = p->call.operation;
    snprintf(name, sizeof name, "%s %ux%llu", planner, forest->trees, (unsigned long long)forest->piece);
    assert_int_equal(tb_grid_problem_make(p, forest), TB_OK);
    assert_int_equal(tb_grid_problem_run(p, &run), TB_OK);
    bool plain = o == TB_OPERATION_BCAST || o == TB_OPERATION_REDUCE;
    schedule_compare(scene, &p->call, name, &run, &planned[o], plain ? CLOSE : LESS_CLOSE);
}

/* With whole messages, and where that can be in pieces; the one that chooses pieces itself has its own. */
static void planner_compare(struct scene *scene, struct tb_grid_problem *p, enum tb_searcher searcher)
{
    const struct tb_search_wish wish = {.seed = 1, .evaluations = EVALUATIONS};
    struct tb_search_result found;
    const char *name = tb_searcher_name(searcher);
    assert_int_equal(tb_search(&p->problem, searcher, &wish, &found), TB_OK);
    forest_compare(scene, p, name, found.forest);
    if (searcher != TB_SEARCH_OWN && p->problem.bytes > 0) {
        found.forest->piece = p->problem.bytes / 8;
        forest_compare(scene, p, name, found.forest);
    }
    tb_forest_close(found.forest);
}

static void operation_compare(struct scene *scene, enum tb_operation operation, uint64_t bytes)
{
    static const enum tb_searcher searchers[] = {TB_SEARCH_BINOMIAL, TB_SEARCH_ECEF, TB_SEARCH_LPBF, TB_SEARCH_OWN};
    struct tb_collective c = call_of(&scene->network, operation, bytes);
    struct tb_grid_problem p;
    if (tb_grid_problem_open(&p, &c) != TB_OK)
        fail_msg("%s", tb_error_story());
    for (size_t i = 0; i < sizeof searchers / sizeof searchers[0]; i++)
        planner_compare(scene, &p, searchers[i]);
    tb_grid_problem_close(&p);
}

static void planned_compare(struct scene *scene)
{
    static const uint64_t sizes[] = {1 << 19, 1 << 20, 1 << 21, 1 << 22};
    for (uint32_t i = 0; i < 2; i++) {
        uint64_t bytes = sizes[(scene->number + 2 * i) % 4];
        operation_compare(scene, TB_OPERATION_BCAST, bytes);
        operation_compare(scene, TB_OPERATION_REDUCE, bytes);
    }
    uint64_t bytes = sizes[scene->number % 4];
    operation_compare(scene, TB_OPERATION_ALLREDUCE, bytes);
    operation_compare(scene, TB_OPERATION_GATHER, bytes / 16);
    operation_compare(scene, TB_OPERATION_SCATTER, bytes / 16);
    operation_compare(scene, TB_OPERATION_BARRIER, 0);
}

/* ---- the catalogue ----------------------------------------------------------------------------------------------- */

static bool has_composites(struct tb_program *const *programs, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t k = 0; k < programs[i]->step_count; k++)
            if (programs[i]->steps[k].kind == TB_STEP_COMPOSITE)
                return true;
    return false;
}

/* With the argument in the middle of those that would be rated. */
static void algorithm_compare(struct scene *scene, const struct tb_algorithm *a, struct tb_simulator *simulator)
{
    uint64_t arguments[64];
    char name[64];
    struct tb_collective c = call_of(&scene->network, a->operation, 1 << 16);
    uint32_t count = a->candidates != NULL ? a->candidates(&c, arguments, 64)
                     : a->argument != NULL ? tb_candidates_piece(&c, arguments, 64)
                                           : 0;
    c.argument = count > 0 ? arguments[count / 2] : 0;
    if (!tb_algorithm_fits(a, &c))
        return;
    struct tb_program **programs = programs_make(a, &c);
    const struct tb_item_data data = tb_item_data_of(&c);
    struct tb_simulation run = {.programs = programs,
                                .ways = &scene->network.ways,
                                .bytes = data.bytes,
                                .blocks = data.blocks,
                                .limit = 1u << 30};
    if (!has_composites(programs, c.size)) {
        assert_int_equal(tb_simulate(simulator, &run), TB_OK);
        snprintf(name, sizeof name, "%s:%llu", a->name, (unsigned long long)c.argument);
        schedule_compare(scene, &c, name, &run, &catalogue, LESS_CLOSE);
    }
    programs_close(programs, c.size);
}

/* Some of its algorithms on each grid, and all of them on several. */
static void catalogue_compare(struct scene *scene)
{
    struct tb_simulator *simulator;
    uint32_t count = 0;
    assert_int_equal(tb_simulator_open(&simulator), TB_OK);
    while (tb_catalogue[count] != NULL)
        count++;
    const uint32_t turns = count / CASES;
    for (uint32_t i = 0; i < count;
         i++) // NOLINTNEXTLINE(clang-analyzer-core.DivideZero): it has more of them than CASES
        if (i % turns == scene->number % turns && tb_catalogue[i]->operation <= TB_OPERATION_EXSCAN)
            algorithm_compare(scene, tb_catalogue[i], simulator);
    tb_simulator_close(simulator);
}

/* ---- all of it --------------------------------------------------------------------------------------------------- */

static void sum_print(const char *name, const struct sum *s)
{
    if (s->count > 0)
        printf("| %s | %u | %.3f | %.3f | %.3f |\n", name, s->count, s->total / s->count, s->lowest, s->highest);
}

/* Whether all of its schedules take as long in both. */
static bool grid_compare(uint32_t number, const char *text)
{
    struct scene scene = {.number = number};
    network_open(&scene.network, text, NULL, 1);
    network_fluid(&scene.network);
    planned_compare(&scene);
    catalogue_compare(&scene);
    network_close(&scene.network);
    printf("case: grid-%u %s\n", number, scene.wrong == 0 ? "ok" : "failed");
    return scene.wrong == 0;
}

int main(int argc, char **argv)
{
    static char text[65536];
    uint32_t last = argc > 1 ? (uint32_t)atoi(argv[1]) : GRIDS, first = argc > 2 ? (uint32_t)atoi(argv[2]) : 1;
    bool good = first > 0 && first <= last;
    random_seed = SEED;
    printf("grid hosts  %-22s %8s  %-30s %12s %12s  ratio\n", "operation", "bytes", "schedule", "Tombolo, ms",
           "SimGrid, ms");
    for (uint32_t i = 1; i <= last; i++) {
        grid_draw(text, (enum kind)(i % KIND_COUNT)); /* also of those before the first, so that all are the same */
        if (i >= first)
            good = grid_compare(i, text) && good;
    }
    printf("\n| | schedules | mean | lowest | highest |\n| --- | ---: | ---: | ---: | ---: |\n");
    for (uint32_t i = 0; i < TB_OPERATION_COUNT; i++) {
        char name[64];
        snprintf(name, sizeof name, "%s along planned trees", tb_operation_name(i) + 4);
        sum_print(name, &planned[i]);
    }
    sum_print("algorithms of the library", &catalogue);
    return good ? 0 : 1;
}
