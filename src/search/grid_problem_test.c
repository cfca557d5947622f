/* Forests on described grids: what they are rated at, compared with the catalogue, the bound, and themselves. */
#include "collectives/forest_test.h"
#include "planner/network_test.h"
#include "planner/random_grid_test.h"

#include "search/grid_problem.h"

#define CLUSTER "clusters: [{name: c, hosts: \"c[1-11]:1\"}]\n"
#define TWO     "clusters: [{name: a, hosts: \"a[1-3]:1\"}, {name: b, hosts: \"b[1-4]:1\"}]\n"

static struct tb_collective call_of(const struct network *n, enum tb_operation operation, uint64_t bytes, uint32_t root)
{
    return (struct tb_collective){.operation = operation,
                                  .size = n->shape->size,
                                  .root = root,
                                  .elements = bytes,
                                  .element_bytes = 1,
                                  .commutative = true,
                                  .common = n->shape->most > 1,
                                  .shape = n->shape,
                                  .costs = n->shape->table};
}

/* How long the programs of an algorithm of the catalogue take. */
static uint64_t catalogue_time(struct network *n, const struct tb_collective *c, const char *name, uint64_t argument)
{
    struct tb_simulator *simulator;
    struct tb_collective call = *c;
    call.argument = argument;
    const struct tb_algorithm *a = algorithm_find(c->operation, name);
    assert_true(tb_algorithm_fits(a, &call));
    struct tb_program **programs = programs_make(a, &call);
    struct tb_simulation run = {.programs = programs, .ways = &n->ways, .bytes = c->elements, .limit = 1u << 30};
    run.blocks = c->operation == TB_OPERATION_GATHER || c->operation == TB_OPERATION_SCATTER;
    assert_int_equal(tb_simulator_open(&simulator), TB_OK);
    assert_int_equal(tb_simulate(simulator, &run), TB_OK);
    tb_simulator_close(simulator);
    programs_close(programs, c->size);
    return run.end;
}

/* The catalogue's binomial tree, for hosts of one rank, as a forest. */
static struct tb_forest *binomial_forest(uint32_t nodes, uint32_t root, uint64_t piece)
{
    static uint32_t parents[FOREST_NODES];
    static uint64_t order[FOREST_NODES];
    struct tb_forest source = {.nodes = nodes, .root = root, .trees = 1, .piece = piece, .parents = parents}, *made;
    for (uint32_t i = 0; i < nodes; i++) {
        parents[(root + i) % nodes] = i == 0 ? root : (root + (i & (i - 1))) % nodes;
        order[(root + i) % nodes] = nodes - (i & -i); /* the furthest first */
    }
    assert_int_equal(tb_forest_make(&made, &source, order), TB_OK);
    return made;
}

static void near(uint64_t time, uint64_t wanted, double part, const char *what)
{
    if ((double)time > (double)wanted * (1 + part) || (double)time < (double)wanted * (1 - part))
        fail_msg("%s: %.3f us, not %.3f us", what, (double)time / 1e6, (double)wanted / 1e6);
}

/* Planned, the same trees take as long as those of the catalogue. */
static void binomial_trees_take_as_long(void **state)
{
    static const enum tb_operation operations[] = {TB_OPERATION_BCAST, TB_OPERATION_REDUCE, TB_OPERATION_ALLREDUCE,
                                                   TB_OPERATION_GATHER, TB_OPERATION_SCATTER};
    static const uint64_t sizes[][2] = {{1, 0}, {4096, 0}, {1u << 20, 0}, {1u << 20, 1u << 16}, {1u << 23, 1u << 17}};
    struct network n;
    network_open(&n, CLUSTER, NULL, 1);
    for (int o = 0; o < 5; o++)
        for (int i = 0; i < 5; i++) {
            enum tb_operation operation = operations[o];
            bool blocks = o > 2;
            uint32_t root = o == 2 || blocks ? 0 : (uint32_t)i * 3 % n.size;
            struct tb_collective c = call_of(&n, operation, blocks ? sizes[i][0] / 64 : sizes[i][0], root);
            /* The catalogue's scatter sends to all children at once. */
            struct tb_forest *forest = binomial_forest(n.size, root, blocks ? 1u << 30 : sizes[i][1]);
            struct tb_grid_problem p;
            uint64_t time;
            assert_int_equal(tb_grid_problem_open(&p, &c), TB_OK);
            assert_int_equal(p.problem.rate(&p.problem, forest, &time), TB_OK);
            near(time, catalogue_time(&n, &c, "binomial", blocks ? 0 : sizes[i][1]), o == 0 ? 0 : 0.02,
                 tb_operation_name(operation));
            tb_grid_problem_close(&p);
            tb_forest_close(forest);
        }
    network_close(&n);
}

/* ---- three sites ------------------------------------------------------------------------------------------------- */

#define SITE(name) "- {name: " name ", hosts: '" name "[1-4]:1'}\n"
static const char mesh[] =
    "clusters:\n" SITE("a") SITE("b") SITE("c") "links:\n"
                                                "- {from: a, to: b, bandwidth: 20, latency: 10}\n"
                                                "- {from: b, to: c, bandwidth: 20, latency: 10}\n"
                                                "- {from: c, to: a, bandwidth: 20, latency: 10}\n";

/* From host 0 to the first of another site, from there to the first of the third, and a chain in each: one tree for
 * each of the two others. */
static struct tb_forest *packed_forest(const struct network *n, uint64_t piece)
{
    static uint32_t parents[2 * FOREST_NODES];
    static uint64_t order[2 * FOREST_NODES];
    uint32_t nodes = n->shape->host_count, each = nodes / 3;
    for (uint32_t t = 0; t < 2; t++)
        for (uint32_t i = 0; i < nodes; i++) {
            uint32_t site = i / each;
            bool first = i % each == 0;
            parents[t * nodes + i] = i == 0 ? 0 : !first ? i - 1 : site == t + 1 ? 0 : (t + 1) * each;
            order[t * nodes + i] = first ? 0 : 1; /* far away first */
        }
    struct tb_forest source = {.nodes = nodes, .trees = 2, .piece = piece, .parents = parents}, *made;
    assert_int_equal(tb_forest_make(&made, &source, order), TB_OK);
    return made;
}

/* As many trees as there are other sites use all links at once, as the catalogue's packed ones do. */
static void trees_use_links_side_by_side(void **state)
{
    static const enum tb_operation operations[] = {TB_OPERATION_BCAST, TB_OPERATION_REDUCE};
    struct network n;
    network_open(&n, mesh, NULL, 1);
    for (int o = 0; o < 2; o++) {
        struct tb_collective c = call_of(&n, operations[o], 1u << 22, 0);
        struct tb_forest *packed = packed_forest(&n, 1u << 16), *one = binomial_forest(n.size, 0, 1u << 16);
        struct tb_grid_problem p;
        uint64_t time, slow;
        struct tb_bound bound;
        assert_int_equal(tb_grid_problem_open(&p, &c), TB_OK);
        assert_int_equal(p.problem.cluster_count, 3);
        assert_int_equal(p.problem.clusters[5], 1);
        assert_int_equal(p.problem.rate(&p.problem, packed, &time), TB_OK);
        assert_int_equal(p.problem.rate(&p.problem, one, &slow), TB_OK);
        assert_int_equal(tb_grid_problem_bound(&p, &bound), TB_OK);
        near(time, catalogue_time(&n, &c, "levels-packed-chain", 1u << 16), 0.05, tb_operation_name(operations[o]));
        if (slow < time + time / 2 || bound.time > time)
            fail_msg("%.3f us, one tree %.3f us, bound %.3f us", (double)time / 1e6, (double)slow / 1e6,
                     (double)bound.time / 1e6);
        tb_grid_problem_close(&p);
        tb_forest_close(packed);
        tb_forest_close(one);
    }
    network_close(&n);
}

/* Where links to the other sites are unequal, trees get shares that use both up; the search finds that with few looks,
 * and comes near the bound. One tree takes a third longer at least. */
static void unequal_links_get_unequal_shares(void **state)
{
    static const enum tb_operation operations[] = {TB_OPERATION_BCAST, TB_OPERATION_REDUCE, TB_OPERATION_ALLREDUCE};
    struct network n;
    network_open(&n,
                 "clusters:\n" SITE("a") SITE("b") SITE("c") "links:\n"
                                                             "- {from: a, to: b, bandwidth: 30, latency: 5}\n"
                                                             "- {from: a, to: c, bandwidth: 10, latency: 2}\n"
                                                             "- {from: b, to: c, bandwidth: 90, latency: 3}\n",
                 NULL, 1);
    for (uint32_t o = 0; o < 3; o++) {
        struct tb_collective c = call_of(&n, operations[o], 1u << 22, o);
        struct tb_grid_problem p;
        struct tb_search_result found, again;
        struct tb_bound bound;
        const struct tb_search_wish wish = {.seed = 5, .evaluations = 150};
        assert_int_equal(tb_grid_problem_open(&p, &c), TB_OK);
        assert_int_equal(tb_grid_problem_bound(&p, &bound), TB_OK);
        assert_int_equal(tb_search(&p.problem, TB_SEARCH_OWN, &wish, &found), TB_OK);
        assert_int_equal(tb_search(&p.problem, TB_SEARCH_OWN, &wish, &again), TB_OK);
        assert_true(found.forest->trees > 1 && found.forest->piece > 0);
        assert_true(found.time == again.time && found.evaluations == again.evaluations);
        assert_memory_equal(found.forest->shares, again.forest->shares, found.forest->trees * sizeof(uint32_t));
        assert_memory_equal(found.forest->parents, again.forest->parents,
                            found.forest->trees * (size_t)n.size * sizeof(uint32_t));
        if (found.time < bound.time || (o < 2 && found.time > bound.time + bound.time / 20))
            fail_msg("%s: %.3f us, the bound is %.3f us", tb_operation_name(operations[o]), (double)found.time / 1e6,
                     (double)bound.time / 1e6);
        if (o < 2) { /* what one link alone lets through takes a third longer than both together */
            p.problem.whole = true;
            tb_forest_close(again.forest);
            assert_int_equal(tb_search(&p.problem, TB_SEARCH_OWN, &wish, &again), TB_OK);
            assert_true(again.time > found.time + found.time / 4);
        }
        tb_forest_close(found.forest);
        tb_forest_close(again.forest);
        tb_grid_problem_close(&p);
    }
    network_close(&n);
}

/* ---- random grids ------------------------------------------------------------------------------------------------ */

/* No forest is faster than the bound, and what is kept of the forest before changes nothing. */
static void bound_is_below_every_rating(void **state)
{
    static const enum tb_operation operations[] = {TB_OPERATION_BCAST,  TB_OPERATION_REDUCE,  TB_OPERATION_ALLREDUCE,
                                                   TB_OPERATION_GATHER, TB_OPERATION_SCATTER, TB_OPERATION_BARRIER};
    static const uint64_t sizes[] = {0, 1, 5000, 1000000};
    static char text[8192];
    uint32_t rated = 0;
    random_seed = 17;
    for (uint32_t i = 0; i < 60; i++) {
        struct network n;
        random_grid(text, 4, 5);
        network_open(&n, text, NULL, 1 + i % 3);
        struct tb_collective c = call_of(&n, operations[i % 6], sizes[i / 6 % 4], i * 5 % n.size);
        struct tb_grid_problem p, fresh;
        struct tb_bound bound;
        int error = tb_grid_problem_open(&p, &c);
        assert_int_equal(error, n.shape->host_count > 1 ? TB_OK : TB_ERR_ARGUMENT);
        for (uint32_t k = 0; error == TB_OK && k < 6; k++) {
            struct tb_forest *forest = forest_random(i * 7 + k / 2, n.shape->host_count, p.problem.root);
            uint64_t time, again;
            assert_non_null(forest);
            forest->piece = forest->piece * 256;
            assert_int_equal(p.problem.rate(&p.problem, forest, &time), TB_OK);
            assert_int_equal(tb_grid_problem_bound(&p, &bound), TB_OK);
            if (time < bound.time)
                fail_msg("%s of %llu bytes in %llu ps, the bound is %llu\n%s", tb_operation_name(c.operation),
                         (unsigned long long)c.elements, (unsigned long long)time, (unsigned long long)bound.time,
                         text);
            assert_int_equal(tb_grid_problem_open(&fresh, &c), TB_OK);
            assert_int_equal(fresh.problem.rate(&fresh.problem, forest, &again), TB_OK);
            assert_int_equal(time, again);
            tb_grid_problem_close(&fresh);
            tb_forest_close(forest);
            rated++;
        }
        tb_grid_problem_close(&p);
        network_close(&n);
    }
    assert_in_range(rated, 200, 360);
}

/* Each node behind the one at half of its distance from the root. */
static struct tb_forest *forest_of_many(uint32_t nodes, uint32_t root)
{
    uint32_t *parents = calloc(nodes, sizeof *parents);
    uint64_t *order = calloc(nodes, sizeof *order);
    struct tb_forest source = {.nodes = nodes, .root = root, .trees = 1, .parents = parents}, *made;
    assert_true(parents != NULL && order != NULL);
    for (uint32_t i = 0; i < nodes; i++)
        parents[(root + i) % nodes] = (root + i / 2) % nodes;
    assert_int_equal(tb_forest_make(&made, &source, order), TB_OK);
    free(parents);
    free(order);
    return made;
}

/* Where there are more places than the bound looks at in pairs, wires that all data must pass are left, and for short
 * messages the longest way. */
static void bound_of_many_places(void **state)
{
    static char text[65536];
    for (int way = 0; way < 3; way++) {
        bool linked = way == 2;
        struct network n;
        struct tb_grid_problem p;
        struct tb_bound bound;
        uint64_t time;
        char *at = text + sprintf(text, "clusters:\n");
        for (int i = 0; i < 300; i++)
            at += sprintf(at,
                          "- {name: c%d, hosts: 'c%dn[1-2]:1', ethernet: {bandwidth: 1000}, uplink: {bandwidth: %d, "
                          "latency: 5}}\n",
                          i, i, 100 + i % 2);
        if (linked)
            sprintf(at, "links: [{from: c0, to: c1, bandwidth: 50, latency: 20}]\n");
        network_open(&n, text, NULL, 1);
        struct tb_collective c = call_of(&n, TB_OPERATION_BCAST, way == 1 ? 1 : 1000000, 3);
        assert_int_equal(tb_grid_problem_open(&p, &c), TB_OK);
        assert_int_equal(tb_grid_problem_bound(&p, &bound), TB_OK);
        /* 8 Mbit at 100 Mbit/s; two latencies of uplinks. */
        uint64_t least = way == 1 ? 10000000000ull : 80000000000ull;
        assert_in_range(bound.time, least, least + least / 5);
        struct tb_forest *forest = forest_of_many(n.shape->host_count, p.problem.root);
        assert_int_equal(p.problem.rate(&p.problem, forest, &time), TB_OK);
        assert_true(time >= bound.time);
        tb_forest_close(forest);
        tb_grid_problem_close(&p);
        network_close(&n);
    }
}

#define FEW_LOOKS 8u /* fewer than pairs of places need, and as many as single ones do */

/* What is found with few looks is never above what many find. */
static void rough_bounds_are_below(void **state)
{
    static const enum tb_operation operations[] = {TB_OPERATION_BCAST,  TB_OPERATION_REDUCE,  TB_OPERATION_ALLREDUCE,
                                                   TB_OPERATION_GATHER, TB_OPERATION_SCATTER, TB_OPERATION_BARRIER};
    static char text[8192];
    uint32_t found = 0;
    random_seed = 23;
    for (uint32_t i = 0; i < 60; i++) {
        struct network n;
        char *at = text + sprintf(text, "clusters:\n");
        uint32_t clusters = 2 + random_below(8);
        for (uint32_t k = 0; k < clusters; k++) {
            uint32_t kind = random_below(3);
            at += sprintf(at, "- {name: c%u, hosts: 'c%un[1-%u]:1', %suplink: {bandwidth: %u, latency: %u%s}}\n", k, k,
                          1 + kind, random_below(6) == 0 ? "ethernet: {hub: true, bandwidth: 10, latency: 0.2}, " : "",
                          20 + 200 * kind, 1 + 5 * kind, kind == 1 ? ", duplex: half" : "");
        }
        network_open(&n, text, NULL, 1 + i % 2);
        for (uint32_t k = 0; k < 12; k++) {
            struct tb_collective c = call_of(&n, operations[k % 6], k < 6 ? 1 : 1000000, i * 5 % n.size);
            struct tb_grid_problem p;
            struct tb_bound bound, rough;
            assert_int_equal(tb_grid_problem_open(&p, &c), TB_OK);
            assert_int_equal(tb_grid_problem_bound(&p, &bound), TB_OK);
            p.looks = FEW_LOOKS;
            assert_int_equal(tb_grid_problem_bound(&p, &rough), TB_OK);
            assert_true(rough.time <= bound.time);
            found += rough.time > bound.time / 2;
            tb_grid_problem_close(&p);
        }
        network_close(&n);
    }
    assert_in_range(found, 360, 720);
}

/* A tree that differs in one node has a few new programs; those of the others stay. */
static void programs_are_kept(void **state)
{
    struct network n;
    network_open(&n, CLUSTER, NULL, 1);
    struct tb_collective c = call_of(&n, TB_OPERATION_BCAST, 1000, 0);
    struct tb_forest *forest = binomial_forest(n.size, 0, 0), *other;
    struct tb_grid_problem p, fresh;
    uint64_t time, again, order[FOREST_NODES] = {0};
    uint32_t parents[FOREST_NODES];
    assert_int_equal(tb_grid_problem_open(&p, &c), TB_OK);
    assert_int_equal(p.problem.rate(&p.problem, forest, &time), TB_OK);
    assert_int_equal(p.made, n.size);
    assert_int_equal(p.problem.rate(&p.problem, forest, &again), TB_OK);
    assert_int_equal(time, again);
    assert_int_equal(p.made, n.size);
    memcpy(parents, forest->parents, n.size * sizeof *parents);
    for (uint32_t i = 0; i + 1 < n.size; i++)
        order[forest->children[i]] = i;
    parents[9] = 2; /* from behind 8 */
    order[9] = 100;
    struct tb_forest source = *forest;
    source.parents = parents;
    assert_int_equal(tb_forest_make(&other, &source, order), TB_OK);
    assert_int_equal(p.problem.rate(&p.problem, other, &time), TB_OK);
    assert_int_equal(p.made, n.size + 3u);
    assert_int_equal(tb_grid_problem_open(&fresh, &c), TB_OK);
    assert_int_equal(fresh.problem.rate(&fresh.problem, other, &again), TB_OK);
    assert_int_equal(time, again);
    tb_grid_problem_close(&fresh);
    tb_grid_problem_close(&p);
    tb_forest_close(forest);
    tb_forest_close(other);
    network_close(&n);
}

/* ---- the rest ---------------------------------------------------------------------------------------------------- */

/* What the library would run, with the time that its programs take. */
static void library_is_simulated(void **state)
{
    struct network n;
    network_open(&n, mesh, NULL, 2);
    for (uint64_t bytes = 1; bytes <= 1u << 22; bytes *= 2048) {
        struct tb_collective c = call_of(&n, TB_OPERATION_REDUCE, bytes, 5);
        struct tb_grid_problem p;
        struct tb_choice choice;
        assert_int_equal(tb_grid_problem_open(&p, &c), TB_OK);
        assert_int_equal(tb_grid_problem_library(&p, NULL, &choice), TB_OK);
        assert_non_null(choice.best.algorithm);
        assert_string_not_equal(choice.best.algorithm->name, "planned");
        assert_int_equal(choice.best.time, catalogue_time(&n, &c, choice.best.algorithm->name, choice.best.argument));
        tb_grid_problem_close(&p);
    }
    network_close(&n);
}

/* Any algorithm is simulated with all of its pieces; what takes too many events keeps the time that it had. */
static void algorithms_are_rated_as_a_whole(void **state)
{
    struct network n;
    network_open(&n, mesh, NULL, 1);
    struct tb_collective c = call_of(&n, TB_OPERATION_BCAST, 1u << 20, 5);
    struct tb_grid_problem p;
    struct tb_candidate row = {algorithm_find(TB_OPERATION_BCAST, "levels-chain-chain"), 4096, 77};
    assert_int_equal(tb_grid_problem_open(&p, &c), TB_OK);
    assert_int_equal(tb_grid_problem_rate(&p, &row), TB_OK);
    assert_int_equal(row.time, catalogue_time(&n, &c, "levels-chain-chain", 4096));
    p.limit = 1000;
    row.time = 77;
    assert_int_equal(tb_grid_problem_rate(&p, &row), TB_OK);
    assert_int_equal(row.time, 77);
    tb_grid_problem_close(&p);
    network_close(&n);
}

/* Costs of single messages: the wire and the latency between clusters, and the way that data takes. */
static void messages_cost_what_wires_say(void **state)
{
    static const char text[] = "clusters:\n" SITE("a") SITE("b") "links:\n"
                                                                 "- {from: a, to: b, bandwidth: 8, latency: 10}\n"
                                                                 "- {from: b, to: a, bandwidth: 4, latency: 20}\n";
    struct network n;
    network_open(&n, text, NULL, 1);
    struct tb_collective c = call_of(&n, TB_OPERATION_BCAST, 1000000, 0);
    struct tb_grid_problem down, up;
    assert_int_equal(tb_grid_problem_open(&down, &c), TB_OK);
    c.operation = TB_OPERATION_REDUCE;
    assert_int_equal(tb_grid_problem_open(&up, &c), TB_OK);
    near(down.problem.send(&down.problem, 0, 4), 1000000000000ull, 0.01, "send");
    near(down.problem.arrive(&down.problem, 0, 4), 1010000000000ull, 0.01, "arrive");
    near(down.problem.arrive(&down.problem, 4, 0), 2020000000000ull, 0.01, "arrive back");
    near(up.problem.arrive(&up.problem, 4, 0), 2020000000000ull, 0.01, "arrive from a child");
    assert_true(down.problem.arrive(&down.problem, 1, 2) < 200000000000ull);
    tb_grid_problem_close(&down);
    tb_grid_problem_close(&up);
    network_close(&n);
}

/* No trees fit, but what the library does can be asked for. */
static void unfit(const struct tb_collective *call, const char *why)
{
    struct tb_grid_problem p;
    struct tb_bound bound;
    struct tb_choice choice;
    assert_int_equal(tb_grid_problem_open(&p, call), TB_ERR_UNSUPPORTED);
    assert_non_null(strstr(tb_error_story(), why));
    assert_int_equal(tb_grid_problem_bound(&p, &bound), TB_OK);
    assert_int_equal(tb_grid_problem_library(&p, NULL, &choice), TB_OK);
    assert_true(bound.time > 0 && choice.best.time >= bound.time && choice.best.time != TB_COST_NEVER);
    tb_grid_problem_close(&p);
}

/* Data that flows to the root takes the links in that direction: three sites of which each two are joined by a link
 * that is fast one way and slow the other, so that a broadcast goes round one way, and a reduction the other. */
static void trees_follow_the_direction_of_data(void **state)
{
    static const char text[] = "clusters:\n" SITE("a") SITE("b")
        SITE("c") "links:\n"
                  "- {from: a, to: b, bandwidth: 50, latency: 1}\n- {from: b, to: a, bandwidth: 5}\n"
                  "- {from: b, to: c, bandwidth: 50, latency: 1}\n- {from: c, to: b, bandwidth: 5}\n"
                  "- {from: c, to: a, bandwidth: 50, latency: 1}\n- {from: a, to: c, bandwidth: 5}\n";
    static const enum tb_operation operations[] = {TB_OPERATION_BCAST, TB_OPERATION_REDUCE};
    struct network n;
    network_open(&n, text, NULL, 1);
    for (uint32_t i = 0; i < 2; i++) {
        struct tb_collective c = call_of(&n, operations[i], 1000000, 0);
        struct tb_grid_problem p;
        struct tb_search_result lpbf;
        assert_int_equal(tb_grid_problem_open(&p, &c), TB_OK);
        assert_int_equal(tb_search(&p.problem, TB_SEARCH_LPBF, &(struct tb_search_wish){0}, &lpbf), TB_OK);
        const uint32_t *parents = lpbf.forest->parents;
        assert_true(parents[i == 0 ? 4 : 8] < 4); /* the second site is entered from the first, the third from that */
        assert_int_equal(parents[i == 0 ? 8 : 4] / 4, i == 0 ? 1 : 2);
        tb_forest_close(lpbf.forest);
        tb_grid_problem_close(&p);
    }
    network_close(&n);
}

static void refusals(void **state)
{
    struct network n;
    struct tb_grid_problem p;
    uint64_t time;
    network_open(&n, TWO, NULL, 1);
    struct tb_collective c = call_of(&n, TB_OPERATION_SCAN, 100, 0);
    assert_int_equal(tb_grid_problem_open(&p, &c), TB_ERR_ARGUMENT);
    tb_grid_problem_close(&p);
    c = call_of(&n, TB_OPERATION_BCAST, 100, n.size);
    assert_int_equal(tb_grid_problem_open(&p, &c), TB_ERR_ARGUMENT);
    tb_grid_problem_close(&p);
    c = call_of(&n, TB_OPERATION_GATHER, 1u << 25, 0);
    unfit(&c, "64 MiB");
    c.operation = TB_OPERATION_SCATTER;
    unfit(&c, "64 MiB");
    c = call_of(&n, TB_OPERATION_REDUCE, 100, 0);
    c.commutative = false;
    unfit(&c, "in order");
    c = call_of(&n, TB_OPERATION_BCAST, 100, 2);
    assert_int_equal(tb_grid_problem_open(&p, &c), TB_OK);
    struct tb_forest *other = binomial_forest(n.size, 1, 0), *more = binomial_forest(n.size + 1, 2, 0);
    assert_int_equal(p.problem.rate(&p.problem, other, &time), TB_ERR_ARGUMENT);
    assert_int_equal(p.problem.rate(&p.problem, more, &time), TB_ERR_ARGUMENT);
    struct tb_forest *good = binomial_forest(n.size, 2, 0);
    p.limit = 5;
    assert_int_equal(p.problem.rate(&p.problem, good, &time), TB_OK);
    assert_int_equal(time, TB_COST_NEVER);
    p.limit = 1000;
    assert_int_equal(p.problem.rate(&p.problem, good, &time), TB_OK);
    assert_true(time > 0 && time < TB_COST_NEVER);
    tb_grid_problem_close(&p);
    /* A tebibyte at a kilobit a second does not wait for ever, but longer than can be counted. */
    struct network slow;
    network_open(&slow, "clusters:\n- {name: a, hosts: 'a[1-4]:1', ethernet: {bandwidth: 0.001}}\n", NULL, 1);
    c = call_of(&slow, TB_OPERATION_BCAST, 1ull << 40, 2);
    assert_int_equal(tb_grid_problem_open(&p, &c), TB_OK);
    struct tb_forest *few = binomial_forest(slow.size, 2, 0);
    assert_int_equal(p.problem.rate(&p.problem, few, &time), TB_OK);
    assert_true(time == TB_COST_NEVER);
    tb_grid_problem_close(&p);
    tb_forest_close(few);
    network_close(&slow);
    tb_forest_close(other);
    tb_forest_close(more);
    tb_forest_close(good);
    network_close(&n);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(binomial_trees_take_as_long),
                                       cmocka_unit_test(trees_use_links_side_by_side),
                                       cmocka_unit_test(bound_is_below_every_rating),
                                       cmocka_unit_test(programs_are_kept),
                                       cmocka_unit_test(library_is_simulated),
                                       cmocka_unit_test(messages_cost_what_wires_say),
                                       cmocka_unit_test(trees_follow_the_direction_of_data),
                                       cmocka_unit_test(unequal_links_get_unequal_shares),
                                       cmocka_unit_test(algorithms_are_rated_as_a_whole),
                                       cmocka_unit_test(bound_of_many_places),
                                       cmocka_unit_test(rough_bounds_are_below),
                                       cmocka_unit_test(refusals)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
