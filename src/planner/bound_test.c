/* The bound: as it is by hand on small grids, and never above what any algorithm takes on random ones. */
#include "planner/bound.h"
#include "planner/item_bytes.h"
#include "planner/network_test.h"
#include "planner/random_grid_test.h"
#include "planner/rating.h"
#include "planner/simulator.h"

static uint64_t bound_of(struct network *n, enum tb_operation operation, uint64_t bytes, uint32_t root)
{
    struct tb_bound bound;
    struct tb_collective c = {.operation = operation,
                              .size = n->size,
                              .root = root,
                              .elements = bytes,
                              .element_bytes = 1,
                              .commutative = true};
    assert_int_equal(tb_bound_find(&n->ways, &c, &bound), TB_OK);
    assert_true(bound.latency <= bound.time);
    return bound.time;
}

/* What two ranks spend on a message, and latencies of so many microseconds, and bytes at so many Mbit/s. */
static uint64_t by_hand(const struct network *n, enum tb_ends ends, double latency_us, uint64_t bytes, double mbit)
{
    const struct tb_cost_ends *e = &n->bytes->constants.ends[ends];
    double load = mbit > 0 ? (double)bytes * 1538 / 1448 * 8e6 / mbit : 0;
    return tb_cost_at(&e->send, 0) + tb_cost_at(&e->receive, 0) + (uint64_t)(latency_us * 1e6) + (uint64_t)load;
}

static void assert_near(uint64_t a, uint64_t b)
{
    if (a > b + b / 1000 || b > a + a / 1000)
        fail_msg("%.3f us and %.3f us differ", (double)a / 1e6, (double)b / 1e6);
}

#define NET  "ethernet: {bandwidth: 100, latency: 0.1}"
#define FAST "ethernet: {bandwidth: 1000, latency: 0.1}"

static void one_cluster_by_hand(void **state)
{
    struct network n;
    const uint64_t m = 1000000;
    network_open(&n, "clusters:\n- {name: a, hosts: \"n[1-4]\", " NET "}\n", NULL, 1);
    assert_near(bound_of(&n, TB_OPERATION_BCAST, m, 1), by_hand(&n, TB_ENDS_TCP, 100, m, 100));
    assert_near(bound_of(&n, TB_OPERATION_REDUCE, m, 1), by_hand(&n, TB_ENDS_TCP, 100, m, 100));
    assert_near(bound_of(&n, TB_OPERATION_ALLREDUCE, m, 0), by_hand(&n, TB_ENDS_TCP, 100, m, 100));
    assert_near(bound_of(&n, TB_OPERATION_SCATTER, m, 1), by_hand(&n, TB_ENDS_TCP, 100, 3 * m, 100));
    assert_near(bound_of(&n, TB_OPERATION_GATHER, m, 2), by_hand(&n, TB_ENDS_TCP, 100, 3 * m, 100));
    assert_near(bound_of(&n, TB_OPERATION_ALLGATHER, m, 0), by_hand(&n, TB_ENDS_TCP, 100, 3 * m, 100));
    assert_near(bound_of(&n, TB_OPERATION_ALLTOALL, m, 0), by_hand(&n, TB_ENDS_TCP, 100, 3 * m, 100));
    assert_near(bound_of(&n, TB_OPERATION_REDUCE_SCATTER, 4 * m, 0), by_hand(&n, TB_ENDS_TCP, 100, 3 * m, 100));
    assert_near(bound_of(&n, TB_OPERATION_BARRIER, 0, 0), by_hand(&n, TB_ENDS_TCP, 100, 0, 0));
    network_close(&n);
}

/* What several ranks need passes a shared uplink once, and each link by itself. */
static void clusters_by_hand(void **state)
{
    struct network n;
    const uint64_t m = 1000000;
    network_open(&n,
                 "clusters:\n- {name: a, hosts: [a1, a2, a3, a4], " FAST ", uplink: {bandwidth: 20, latency: 2}}\n"
                 "- {name: b, hosts: [b1, b2, b3, b4], " FAST ", uplink: {bandwidth: 50, latency: 3}}\n"
                 "- {name: c, hosts: [c1, c2, c3, c4], " FAST ", uplink: {bandwidth: 50, latency: 1}}\n",
                 NULL, 1);
    const struct tb_way *way = tb_ways_between(&n.ways, 0, 4);
    double agents = (double)way->agents * (double)n.bytes->constants.agent_latency / 1e6;
    /* The root is in a. Bytes may go to c, which is nearest, and from there to b, which is as far again, and more: so
     * that all but the last do, which leave for both. Latencies are all in front of the uplink, as the ways have
     * them. */
    uint64_t once = by_hand(&n, TB_ENDS_AGENTS, 200 + 3000 + agents, m, 20);
    uint64_t again = by_hand(&n, TB_ENDS_AGENTS, 200 + 4000 + agents, 0, 0);
    assert_near(bound_of(&n, TB_OPERATION_BCAST, m, 0), once + again / 2);
    assert_near(bound_of(&n, TB_OPERATION_REDUCE, m, 0), once + again / 2);
    assert_near(bound_of(&n, TB_OPERATION_SCATTER, m, 0), by_hand(&n, TB_ENDS_AGENTS, 200 + 3000 + agents, 8 * m, 20));
    assert_near(bound_of(&n, TB_OPERATION_ALLTOALL, m, 0),
                by_hand(&n, TB_ENDS_AGENTS, 200 + 3000 + agents, 32 * m, 20));
    assert_near(bound_of(&n, TB_OPERATION_BARRIER, 0, 0), by_hand(&n, TB_ENDS_AGENTS, 200 + 5000 + agents, 0, 0));
    network_close(&n);
}

/* Of prefixes something passes into and out of a cluster each time when the next rank is on the other side. */
static void prefixes_by_hand(void **state)
{
    static const char text[] = "clusters:\n- {name: a, hosts: [a1, a2, a3, a4], " FAST "}\n"
                               "- {name: b, hosts: [b1, b2, b3, b4], " FAST "}\n"
                               "links:\n- {from: a, to: b, bandwidth: 20, latency: 5}\n";
    static const struct {
        const char *names;
        uint64_t passes;
    } cases[] = {{"a1 a2 a3 a4 b1 b2 b3 b4", 1},
                 {"a1 b1 a2 b2 a3 b3 a4 b4", 4},
                 {"a1 a2 b1 b2 a3 a4 b3 b4", 2},
                 {"b1 a1 a2 a3 a4 b2 b3 b4", 1}};
    const uint64_t m = 1000000;
    struct network n;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        network_open(&n, text, cases[i].names, 1);
        uint64_t once = bound_of(&n, TB_OPERATION_SCAN, m, 0);
        uint64_t load = by_hand(&n, TB_ENDS_TCP, 0, cases[i].passes * m, 20) - by_hand(&n, TB_ENDS_TCP, 0, 0, 0);
        assert_true(once > load && once - load < 10000000000u);
        assert_int_equal(bound_of(&n, TB_OPERATION_EXSCAN, m, 0), once);
        network_close(&n);
    }
}

static void a_hub_by_hand(void **state)
{
    struct network n;
    const uint64_t m = 100000;
    network_open(&n, "clusters:\n- {name: a, hosts: \"n[1-4]\", ethernet: {bandwidth: 10, latency: 0.1, hub: true}}\n",
                 NULL, 1);
    assert_near(bound_of(&n, TB_OPERATION_BCAST, m, 0), by_hand(&n, TB_ENDS_TCP, 100, m, 10));
    assert_near(bound_of(&n, TB_OPERATION_ALLGATHER, m, 0), by_hand(&n, TB_ENDS_TCP, 100, 3 * m, 10));
    network_close(&n);
}

/* By way of a third cluster it is less far than straight. */
static void others_may_pass_things_on(void **state)
{
    struct network n;
    network_open(&n,
                 "clusters:\n- {name: a, hosts: a1, " NET "}\n- {name: b, hosts: b1, " NET "}\n"
                 "- {name: c, hosts: c1, " NET "}\n"
                 "links:\n- {from: a, to: b, bandwidth: 100, latency: 100}\n"
                 "- {from: a, to: c, bandwidth: 100, latency: 1}\n- {from: c, to: b, bandwidth: 100, latency: 1}\n",
                 NULL, 1);
    uint64_t time = bound_of(&n, TB_OPERATION_BCAST, 1, 0);
    assert_true(time > 2000000000ull && time < 10000000000ull);
    network_close(&n);
}

/* Into a cluster of a mesh lead two links, of which the second has something to pass when it has come to the third
 * cluster. 20 Mbit/s and 10 ms each: 27.8 ms of wire and 10.1 ms by the one and 20.2 by the other are 29 in all. */
static void a_mesh_by_hand(void **state)
{
    struct network n;
    network_open(&n,
                 "clusters:\n- {name: a, hosts: \"a[1-4]\", " NET "}\n- {name: b, hosts: \"b[1-4]\", " NET "}\n"
                 "- {name: c, hosts: \"c[1-4]\", " NET "}\n"
                 "links:\n- {from: a, to: b, bandwidth: 20, latency: 10}\n"
                 "- {from: b, to: c, bandwidth: 20, latency: 10}\n- {from: c, to: a, bandwidth: 20, latency: 10}\n",
                 NULL, 1);
    const uint64_t m = 65536;
    const struct tb_way *way = tb_ways_between(&n.ways, 0, 4);
    const struct tb_cost_ends *ends = tb_way_ends(&n.table, way);
    uint64_t once = way->latency + tb_cost_at(&ends->send, 0) + tb_cost_at(&ends->receive, 0);
    uint64_t wire = by_hand(&n, TB_ENDS_TCP, 0, m, 20) - by_hand(&n, TB_ENDS_TCP, 0, 0, 0);
    uint64_t both = (wire + 3 * once) / 2;
    assert_true(both > 28500000000u && both < 29500000000u);
    assert_near(bound_of(&n, TB_OPERATION_BCAST, m, 0), both);
    /* And the other way round: what leaves a cluster for the root by the third one takes as long. */
    assert_near(bound_of(&n, TB_OPERATION_REDUCE, m, 0), both);
    assert_near(bound_of(&n, TB_OPERATION_ALLREDUCE, m, 0), both);
    /* Four copies must cross the six links, two of them into each cluster. */
    assert_near(bound_of(&n, TB_OPERATION_ALLREDUCE, 16 * m, 0), once + 16 * wire * 4 / 6);
    /* What has passed before there is anything for the second link passes the first alone. */
    assert_near(bound_of(&n, TB_OPERATION_BCAST, m / 4, 0), once + wire / 4);
    network_close(&n);
}

/* A host of c gets at most what its port lets in, 100 Mbit/s, but before the fast way by b has brought anything only
 * what the slow straight link does, 10 Mbit/s: what it could have got then is lost. */
static void a_port_behind_links_by_hand(void **state)
{
    struct network n;
    network_open(&n,
                 "clusters:\n- {name: a, hosts: \"a[1-2]\", " FAST "}\n- {name: b, hosts: \"b[1-2]\", " FAST "}\n"
                 "- {name: c, hosts: \"c[1-2]\", " NET "}\n"
                 "links:\n- {from: a, to: b, bandwidth: 900, latency: 40}\n"
                 "- {from: b, to: c, bandwidth: 900, latency: 40}\n"
                 "- {from: a, to: c, bandwidth: 10, latency: 1}\n",
                 NULL, 1);
    const uint64_t m = 10000000;
    const struct tb_way *straight = tb_ways_between(&n.ways, 0, 4);
    const struct tb_cost_ends *ends = tb_way_ends(&n.table, straight);
    uint64_t spent = tb_cost_at(&ends->send, 0) + tb_cost_at(&ends->receive, 0);
    uint64_t early = straight->latency + spent, none = by_hand(&n, TB_ENDS_TCP, 0, 0, 0);
    uint64_t late = tb_ways_between(&n.ways, 0, 2)->latency + tb_ways_between(&n.ways, 2, 4)->latency + 2 * spent;
    uint64_t port = by_hand(&n, TB_ENDS_TCP, 0, m, 100) - none;
    /* All of it at 100 Mbit/s from `late` on, but for a tenth of that rate from `early` on. */
    uint64_t wanted = late + port - (late - early) / 10;
    assert_true(wanted > 870000000000u && wanted < 940000000000u);
    assert_near(bound_of(&n, TB_OPERATION_BCAST, m, 0), wanted);
    assert_near(bound_of(&n, TB_OPERATION_REDUCE, m, 0), wanted);
    network_close(&n);
}

static uint64_t way_by_hand(struct network *n, uint32_t from, uint32_t to)
{
    const struct tb_way *way = tb_ways_between(&n->ways, from, to);
    const struct tb_cost_ends *ends = tb_way_ends(&n->table, way);
    return way->latency + tb_cost_at(&ends->send, 0) + tb_cost_at(&ends->receive, 0);
}

/* What b and c need passes the two links from a, however fast they are between them, and what comes by b is late in c:
 * 20 Mbit/s twice as late as 10 Mbit/s. To d a fast one leads, and nothing in time from there. */
static void two_clusters_as_one_by_hand(void **state)
{
    struct network n;
    network_open(&n,
                 "clusters:\n- {name: a, hosts: \"a[1-4]\", " FAST "}\n- {name: b, hosts: \"b[1-4]\", " FAST "}\n"
                 "- {name: c, hosts: \"c[1-4]\", " FAST "}\n- {name: d, hosts: \"d[1-4]\", " FAST "}\n"
                 "links:\n- {from: a, to: b, bandwidth: 20, latency: 10}\n"
                 "- {from: b, to: c, bandwidth: 900, latency: 10}\n- {from: a, to: c, bandwidth: 10, latency: 10}\n"
                 "- {from: a, to: d, bandwidth: 900, latency: 10}\n- {from: b, to: d, bandwidth: 900, latency: 900}\n"
                 "- {from: c, to: d, bandwidth: 900, latency: 900}\n",
                 NULL, 1);
    const uint64_t m = 65536;
    uint64_t once = way_by_hand(&n, 0, 4);
    uint64_t wire = by_hand(&n, TB_ENDS_TCP, 0, m, 20) - by_hand(&n, TB_ENDS_TCP, 0, 0, 0);
    uint64_t wanted = (2 * wire + 5 * once) / 3;
    assert_true(wanted > 35000000000u && wanted < 36000000000u);
    assert_near(bound_of(&n, TB_OPERATION_BCAST, m, 0), wanted);
    assert_near(bound_of(&n, TB_OPERATION_REDUCE, m, 0), wanted);
    network_close(&n);
}

/* What comes into c by way of b has not been in c before: so it was under way for 31 ms, not for 12. */
static void nobody_gets_what_it_has(void **state)
{
    struct network n;
    network_open(&n,
                 "clusters:\n- {name: a, hosts: \"a[1-4]\", " FAST "}\n- {name: b, hosts: \"b[1-4]\", " FAST "}\n"
                 "- {name: c, hosts: \"c[1-4]\", " FAST "}\n"
                 "links:\n- {from: a, to: c, bandwidth: 20, latency: 10}\n"
                 "- {from: b, to: c, bandwidth: 10, latency: 1}\n- {from: a, to: b, bandwidth: 900, latency: 30}\n",
                 NULL, 1);
    const uint64_t m = 65536;
    uint64_t wire = by_hand(&n, TB_ENDS_TCP, 0, m, 20) - by_hand(&n, TB_ENDS_TCP, 0, 0, 0);
    uint64_t straight = way_by_hand(&n, 0, 8), around = way_by_hand(&n, 0, 4) + way_by_hand(&n, 4, 8);
    uint64_t wanted = (2 * (wire + straight) + around) / 3;
    assert_true(wanted > 35000000000u && wanted < 36000000000u);
    assert_near(bound_of(&n, TB_OPERATION_BCAST, m, 0), wanted);
    assert_near(bound_of(&n, TB_OPERATION_REDUCE, m, 0), wanted);
    network_close(&n);
}

/* What c gets by way of b has left a long before what it gets straight from there: between the two the uplink of a is
 * of no use to it. */
static void early_and_late_by_hand(void **state)
{
    struct network n;
    network_open(&n,
                 "clusters:\n- {name: a, hosts: [a1, a2], " FAST ", uplink: {bandwidth: 1, latency: 2}}\n"
                 "- {name: b, hosts: [b1, b2], " FAST ", uplink: {bandwidth: 100, latency: 1}}\n"
                 "- {name: c, hosts: [c1, c2], " FAST ", uplink: {bandwidth: 100, latency: 20}}\n",
                 NULL, 1);
    const uint64_t m = 1024;
    uint64_t wire = by_hand(&n, TB_ENDS_TCP, 0, m, 1) - by_hand(&n, TB_ENDS_TCP, 0, 0, 0);
    uint64_t straight = way_by_hand(&n, 0, 4), around = way_by_hand(&n, 0, 2) + way_by_hand(&n, 2, 4);
    uint64_t wanted = (wire + straight + around) / 2;
    assert_true(wanted > 27500000000u && wanted < 29000000000u);
    assert_near(bound_of(&n, TB_OPERATION_BCAST, m, 0), wanted);
    network_close(&n);
}

/* A call without data ends at once; what its ranks do not know is taken for what is assumed. */
static void nothing_by_hand(void **state)
{
    struct network n;
    network_open(&n, "clusters:\n- {name: a, hosts: \"n[1-4]\", " NET "}\n", NULL, 1);
    assert_int_equal(bound_of(&n, TB_OPERATION_GATHER, 0, 0), 0);
    assert_int_equal(bound_of(&n, TB_OPERATION_BCAST, 0, 0), 0);
    assert_true(bound_of(&n, TB_OPERATION_BARRIER, 0, 0) > 0);
    assert_int_equal(bound_of(&n, TB_OPERATION_GATHERV, 0, 0),
                     bound_of(&n, TB_OPERATION_GATHER, tb_param.assumed_block, 0));
    network_close(&n);
}

/* ---- every algorithm --------------------------------------------------------------------------------------------- */

static void algorithm_check(struct network *n, struct tb_simulator *simulator, const struct tb_candidate *row,
                            const struct tb_collective *call, const struct tb_bound *bound, const char *text)
{
    struct tb_collective c = *call;
    c.argument = row->argument;
    struct tb_program **programs = programs_make(row->algorithm, &c);
    struct tb_item_data data = tb_item_data_of(&c);
    struct tb_simulation run = {
        .programs = programs, .ways = &n->ways, .bytes = data.bytes, .blocks = data.blocks, .limit = 1000000};
    assert_int_equal(tb_simulate(simulator, &run), TB_OK);
    if (run.end < bound->time)
        fail_msg("%s %s:%u of %u bytes, root %u takes %.3f us, and the bound is %.3f (host %d, place %d) on\n%s",
                 tb_operation_name(c.operation), row->algorithm->name, (unsigned)row->argument, (unsigned)c.elements,
                 c.root, (double)run.end / 1e6, (double)bound->time / 1e6, (int)bound->host, (int)bound->place, text);
    programs_close(programs, c.size);
}

/* All algorithms of an operation. */
static void algorithms_check(struct network *n, struct tb_simulator *simulator, struct tb_collective c,
                             const char *text)
{
    struct tb_candidate rows[TB_CANDIDATES_LIMIT];
    struct tb_bound bound;
    c.size = n->size;
    c.element_bytes = 1;
    c.commutative = true;
    assert_int_equal(tb_bound_find(&n->ways, &c, &bound), TB_OK);
    uint32_t count = tb_rating_list(&c, NULL, rows);
    for (uint32_t k = 0; k < count; k++)
        algorithm_check(n, simulator, &rows[k], &c, &bound, text);
}

/* Ranks on hosts of the grid, in any order. */
static void random_ranks(const char *text, char *at)
{
    struct tb_grid grid;
    assert_int_equal(tb_grid_parse(&grid, text, strlen(text), "g.yaml"), TB_OK);
    for (uint32_t i = 0, ranks = 1 + random_below(3 * grid.host_count); i < ranks; i++)
        at += sprintf(at, "%s ", grid.hosts[random_below(grid.host_count)].name);
    tb_grid_close(&grid);
}

static void nothing_is_faster(void **state)
{
    static const uint64_t lengths[] = {1, 1000, 30000, 300000}, shorts[] = {0, 2000, 40000};
    struct tb_simulator *simulator;
    assert_int_equal(tb_simulator_open(&simulator), TB_OK);
    for (int i = 0; i < 170; i++) {
        char text[4096], names[512];
        struct network n;
        random_grid(text, i % 4 == 0 ? 6 : 3, 3);
        random_ranks(text, names);
        bool even = random_below(2) == 0;
        network_open(&n, text, even ? NULL : names, 1 + random_below(2));
        n.bytes->constants.short_bytes = shorts[random_below(3)];
        uint32_t root = random_below(n.size);
        struct tb_collective c = {.operation = (enum tb_operation)(i % (TB_OPERATION_EXSCAN + 1)),
                                  .root = root,
                                  .elements = lengths[random_below(4)]};
        if (c.operation == TB_OPERATION_BARRIER)
            c.elements = 0;
        algorithms_check(&n, simulator, c, text);
        network_close(&n);
    }
    tb_simulator_close(simulator);
}

/* Nor is what goes to all hosts of a cluster at once. */
static void multicast_is_not_faster(void **state)
{
    static const enum tb_operation operations[] = {TB_OPERATION_BCAST,      TB_OPERATION_BARRIER,
                                                   TB_OPERATION_ALLREDUCE,  TB_OPERATION_ALLGATHER,
                                                   TB_OPERATION_ALLGATHERV, TB_OPERATION_SCATTER};
    static const uint64_t lengths[] = {1, 1000, 30000, 300000};
    struct tb_candidate rows[TB_CANDIDATES_LIMIT];
    struct tb_simulator *simulator;
    struct tb_bound bound;
    uint32_t seen = 0;
    assert_int_equal(tb_simulator_open(&simulator), TB_OK);
    network_multicasts = true;
    for (int i = 0; i < 120; i++) {
        char text[2048];
        struct network n;
        random_grid(text, 3, 6);
        network_open(&n, text, NULL, 1 + random_below(2));
        uint32_t root = random_below(n.size);
        struct tb_collective c = {.operation = operations[i % 6],
                                  .size = n.size,
                                  .root = root,
                                  .elements = i % 6 == 1 ? 0 : lengths[random_below(4)],
                                  .element_bytes = 1,
                                  .commutative = true,
                                  .common = true,
                                  .shape = n.shape,
                                  .costs = &n.table};
        assert_int_equal(tb_bound_find(&n.ways, &c, &bound), TB_OK);
        uint32_t count = tb_rating_list(&c, NULL, rows);
        for (uint32_t k = 0; k < count; k++)
            if (strstr(rows[k].algorithm->name, "multicast") != NULL) {
                algorithm_check(&n, simulator, &rows[k], &c, &bound, text);
                seen++;
            }
        network_close(&n);
    }
    network_multicasts = false;
    assert_true(seen > 60);
    tb_simulator_close(simulator);
}

/* Subtrees send long messages over the slow link, and ranks short ones, which overtake: all of it takes its time. */
static void overtaking_is_not_for_nothing(void **state)
{
    static const char text[] = "clusters:\n- {name: a, hosts: a1, " NET "}\n- {name: b, hosts: [b1, b2], " NET "}\n"
                               "links:\n- {from: a, to: b, bandwidth: 20, latency: 30}\n";
    static const enum tb_operation operations[] = {TB_OPERATION_GATHER, TB_OPERATION_SCATTER, TB_OPERATION_ALLGATHER};
    struct tb_simulator *simulator;
    struct network n;
    char names[256] = "", *at = names;
    for (int i = 0; i < 32; i++)
        at += sprintf(at, i < 16 ? "a1 b1 " : "b2 ");
    assert_int_equal(tb_simulator_open(&simulator), TB_OK);
    network_open(&n, text, names, 1);
    for (int i = 0; i < 3; i++)
        for (uint64_t bytes = 4096; bytes <= 8192; bytes *= 2)
            algorithms_check(&n, simulator, (struct tb_collective){.operation = operations[i], .elements = bytes},
                             text);
    network_close(&n);
    tb_simulator_close(simulator);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_cluster_by_hand),
        cmocka_unit_test(clusters_by_hand),
        cmocka_unit_test(prefixes_by_hand),
        cmocka_unit_test(a_hub_by_hand),
        cmocka_unit_test(others_may_pass_things_on),
        cmocka_unit_test(a_mesh_by_hand),
        cmocka_unit_test(a_port_behind_links_by_hand),
        cmocka_unit_test(two_clusters_as_one_by_hand),
        cmocka_unit_test(nobody_gets_what_it_has),
        cmocka_unit_test(early_and_late_by_hand),
        cmocka_unit_test(nothing_by_hand),
        cmocka_unit_test(nothing_is_faster),
        cmocka_unit_test(multicast_is_not_faster),
        cmocka_unit_test(overtaking_is_not_for_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
