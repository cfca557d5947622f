#include "planner/network_test.h"
#include "planner/rating.h"
#include "planner/traffic.h"

/* Two sites, one with two clusters; a cluster in a cluster. */
#define TWO_CLUSTERS                                                                                                   \
    "clusters: [{name: a, hosts: 'a[1-2]:1'}, {name: b, hosts: 'b[1-2]:1'}]\n"                                         \
    "links: [{from: a, to: b, bandwidth: 10, latency: 10}]"
#define SITES                                                                                                          \
    "sites: [{name: S, clusters: [{name: a, hosts: a1}, {name: b, hosts: b1}]},\n"                                     \
    "  {name: T, clusters: [{name: c, hosts: [c1, c2], clusters: [{name: d, hosts: d1}]}]}]\n"                         \
    "links: [{from: S, to: T, bandwidth: 10, latency: 10}, {from: a, to: b, latency: 1}, {from: c, to: d, latency: "   \
    "1}]"
#define ONE_CLUSTER "clusters: [{name: a, hosts: 'a[1-8]:1'}]"

static struct tb_collective call_of(const struct network *n, enum tb_operation operation, uint64_t bytes)
{
    return (struct tb_collective){.operation = operation,
                                  .size = n->size,
                                  .elements = bytes,
                                  .element_bytes = 1,
                                  .commutative = true,
                                  .common = n->shape->most > 1,
                                  .shape = n->shape,
                                  .costs = n->shape->table};
}

static void traffic_of(struct tb_traffic *t, const struct network *n, enum tb_operation operation, const char *name,
                       uint64_t bytes, uint64_t argument)
{
    struct tb_collective call = call_of(n, operation, bytes);
    call.argument = argument;
    if (tb_traffic_open(t, algorithm_find(operation, name), &call, bytes) != TB_OK)
        fail_msg("%s", tb_error_story());
    uint64_t messages = 0;
    for (uint32_t i = 0; i < t->level_count; i++) {
        messages += t->levels[i].messages;
        assert_true(i == 0 || t->levels[i].kind > t->levels[i - 1].kind || t->levels[i].depth > t->levels[i - 1].depth);
    }
    for (uint32_t i = 0; i < t->flow_count; i++) {
        messages -= t->flows[i].messages;
        assert_true(t->flows[i].begin <= t->flows[i].there && t->flows[i].there <= t->flows[i].last);
        assert_true(t->flows[i].begin <= t->flows[i].sent && t->flows[i].last <= t->time);
    }
    assert_int_equal(messages, 0);
}

static void assert_level(const struct tb_traffic *t, uint32_t level, const char *name, uint64_t messages,
                         uint64_t bytes)
{
    char text[TB_TRAFFIC_NAME_BYTES];
    assert_true(level < t->level_count);
    assert_string_equal(tb_traffic_level_name(t, level, text), name);
    assert_int_equal(t->levels[level].messages, messages);
    assert_int_equal(t->levels[level].bytes, bytes);
}

/* ---- counts ------------------------------------------------------------------------------------------------------ */

static void binomial_tree_is_known(void **state)
{
    struct network n;
    struct tb_traffic t;
    network_open(&n, ONE_CLUSTER, NULL, 1);
    traffic_of(&t, &n, TB_OPERATION_BCAST, "binomial", 1000, 0);
    assert_int_equal(t.level_count, 1);
    assert_level(&t, 0, "between hosts", 7, 7000);
    assert_int_equal(t.pair_count, 0);
    assert_false(t.up);
    assert_int_equal(t.flow_count, 7);
    /* The root's first is the one with most below it. */
    static const uint32_t from[] = {0, 0, 0, 2, 4, 4, 6}, to[] = {4, 2, 1, 3, 6, 5, 7};
    for (uint32_t i = 0; i < 7; i++) {
        assert_int_equal(t.flows[i].from, from[i]);
        assert_int_equal(t.flows[i].to, to[i]);
        assert_int_equal(t.flows[i].messages, 1);
        assert_int_equal(t.flows[i].bytes, 1000);
        /* What a rank passes on it has got before. */
        assert_true(from[i] == 0 || t.flows[i].begin >= t.firsts[from[i]]);
    }
    assert_int_equal(t.flows[0].order, 0);
    assert_int_equal(t.flows[0].begin, 0);
    assert_int_equal(t.firsts[0], TB_COST_NEVER);
    for (uint32_t i = 1; i < 8; i++)
        assert_true(t.firsts[i] > 0 && t.firsts[i] <= t.ends[i] && t.ends[i] <= t.time);
    tb_traffic_close(&t);
    network_close(&n);
}

static void linear_gather_goes_to_the_root(void **state)
{
    struct network n;
    struct tb_traffic t;
    network_open(&n, ONE_CLUSTER, NULL, 1);
    traffic_of(&t, &n, TB_OPERATION_GATHER, "linear", 100, 0);
    assert_level(&t, 0, "between hosts", 7, 700);
    assert_true(t.up);
    for (uint32_t i = 0; i < 7; i++)
        assert_true(t.flows[i].from == i + 1 && t.flows[i].to == 0);
    tb_traffic_close(&t);
    network_close(&n);
}

/* A chain in blocks crosses once, in pieces; with ranks dealt it crosses with every message. */
static void crossings_are_counted(void **state)
{
    struct network n;
    struct tb_traffic t;
    network_open(&n, TWO_CLUSTERS, NULL, 1);
    traffic_of(&t, &n, TB_OPERATION_BCAST, "chain", 1000, 250);
    assert_level(&t, 0, "between clusters", 4, 1000);
    assert_level(&t, 1, "between hosts of one cluster", 8, 2000);
    assert_int_equal(t.flow_count, 3);
    assert_int_equal(t.pair_count, 1);
    assert_int_equal(t.pairs[0].messages, 4);
    assert_int_equal(n.shape->places[t.pairs[0].from].first_rank, 0);
    assert_int_equal(n.shape->places[t.pairs[0].to].first_rank, 2);
    assert_true(t.time >= 10000000000);
    tb_traffic_close(&t);
    network_close(&n);
    network_open(&n, TWO_CLUSTERS, "a1 b1 a2 b2", 1);
    traffic_of(&t, &n, TB_OPERATION_BCAST, "chain", 1000, 250);
    assert_int_equal(t.level_count, 1);
    assert_level(&t, 0, "between clusters", 12, 3000);
    assert_int_equal(t.pair_count, 2);
    assert_int_equal(t.pairs[0].messages + t.pairs[1].messages, 12);
    tb_traffic_close(&t);
    network_close(&n);
}

/* Of a class of sizes the program is one, but messages are counted as they are. */
static void sizes_are_those_of_the_call(void **state)
{
    struct network n;
    struct tb_traffic t;
    network_open(&n, ONE_CLUSTER, NULL, 1);
    struct tb_collective call = call_of(&n, TB_OPERATION_BCAST, 896);
    assert_int_equal(tb_traffic_open(&t, algorithm_find(TB_OPERATION_BCAST, "binomial"), &call, 1000), TB_OK);
    assert_level(&t, 0, "between hosts", 7, 7000);
    tb_traffic_close(&t);
    network_close(&n);
}

static void levels_are_told_apart(void **state)
{
    struct network n;
    struct tb_traffic t;
    network_open(&n, SITES, "a1 a1 b1 c1 c2 d1", 1);
    traffic_of(&t, &n, TB_OPERATION_ALLTOALL, "linear", 10, 0);
    assert_int_equal(t.level_count, 5);
    assert_level(&t, 0, "between sites", 18, 180);
    assert_level(&t, 1, "between clusters of one site", 4, 40);
    assert_level(&t, 2, "between clusters in a cluster", 4, 40);
    assert_level(&t, 3, "between hosts of one cluster", 2, 20);
    assert_level(&t, 4, "within hosts", 2, 20);
    assert_int_equal(t.levels[0].pairs, 2);
    assert_int_equal(t.pairs[t.levels[0].pair].messages, 9);
    tb_traffic_close(&t);
    network_close(&n);
}

/* ---- no data, one rank, common memory ---------------------------------------------------------------------------- */

static void nothing_is_sent(void **state)
{
    struct network n;
    struct tb_traffic t;
    network_open(&n, ONE_CLUSTER, NULL, 1);
    traffic_of(&t, &n, TB_OPERATION_BCAST, "binomial", 0, 0);
    assert_int_equal(t.flow_count, 0);
    assert_int_equal(t.time, 0);
    tb_traffic_close(&t);
    network_close(&n);
    network_open(&n, ONE_CLUSTER, "a1", 1);
    traffic_of(&t, &n, TB_OPERATION_BCAST, "binomial", 1000, 0);
    assert_int_equal(t.flow_count + t.level_count + t.pair_count + t.meeting_count + t.cast_count, 0);
    tb_traffic_close(&t);
    network_close(&n);
}

static void common_memory_is_one_meeting_a_host(void **state)
{
    struct network n;
    struct tb_traffic t;
    network_open(&n, TWO_CLUSTERS, NULL, 3);
    struct tb_collective call = call_of(&n, TB_OPERATION_BCAST, 1000);
    struct tb_candidate rows[TB_CANDIDATES_LIMIT];
    uint32_t count = tb_rating_list(&call, algorithm_find(TB_OPERATION_BCAST, "hosts"), rows);
    assert_true(count > 0);
    traffic_of(&t, &n, TB_OPERATION_BCAST, "hosts", 1000, rows[0].argument);
    assert_int_equal(t.meeting_count, 4);
    for (uint32_t i = 0; i < 4; i++) {
        assert_int_equal(t.meetings[i].host, i);
        assert_int_equal(t.meetings[i].members, 3);
        assert_int_equal(t.meetings[i].composite, TB_COMPOSITE_BCAST);
        assert_int_equal(t.meetings[i].bytes, 1000);
        assert_int_equal(t.meetings[i].root, 3 * i);
        assert_true(t.meetings[i].begin <= t.meetings[i].done && t.meetings[i].done <= t.time);
    }
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < t.level_count; i++)
        bytes += t.levels[i].bytes;
    assert_int_equal(bytes, 3000);
    tb_traffic_close(&t);
    network_close(&n);
}

/* In each cluster what the root of its hosts sends leaves once and comes in at every other host; between clusters there
 * is a message, and within hosts memory. */
static void a_multicast_leaves_once(void **state)
{
    struct network n;
    struct tb_traffic t;
    network_multicasts = true;
    network_open(&n,
                 "clusters: [{name: a, hosts: 'a[1-5]:1'}, {name: b, hosts: 'b[1-3]:1'}, {name: c, hosts: c1}]\n"
                 "links: [{from: a, to: b, bandwidth: 10, latency: 10}, {from: a, to: c, latency: 10}, {from: b, to: "
                 "c, latency: 10}]",
                 NULL, 2);
    network_multicasts = false;
    traffic_of(&t, &n, TB_OPERATION_BCAST, "levels-flat-multicast", 1000, 250);
    assert_int_equal(t.level_count, 1);
    assert_level(&t, 0, "between clusters", 8, 2000);
    assert_int_equal(t.cast_count, 2);
    assert_int_equal(t.meeting_count, 9);
    for (uint32_t i = 0; i < 2; i++) {
        const struct tb_traffic_cast *c = &t.casts[i];
        uint32_t hosts = i == 0 ? 5 : 3;
        assert_int_equal(n.shape->places[c->place].hosts, hosts);
        assert_int_equal(c->root, i == 0 ? 0 : 10);
        assert_int_equal(c->composite, TB_COMPOSITE_BCAST);
        assert_int_equal(c->members, hosts);
        assert_int_equal(c->items, 4);
        assert_int_equal(c->sends, 4);
        assert_int_equal(c->sent_bytes, 1000);
        assert_int_equal(c->receives, 4 * (hosts - 1));
        assert_int_equal(c->received_bytes, 1000 * (hosts - 1));
        assert_true(c->begin <= c->done && c->done <= t.time);
    }
    for (uint32_t i = 1; i < n.size; i++)
        assert_true(t.firsts[i] <= t.ends[i]);
    tb_traffic_close(&t);
    traffic_of(&t, &n, TB_OPERATION_BARRIER, "levels-multicast", 0, 0);
    assert_int_equal(t.cast_count, 2);
    assert_int_equal(t.casts[0].sends, 1);
    assert_int_equal(t.casts[0].receives, 4);
    assert_int_equal(t.casts[0].sent_bytes + t.casts[0].received_bytes, 0);
    tb_traffic_close(&t);
    network_close(&n);
}

/* Whatever is in the catalogue can be shown, for odd numbers of ranks, and somebody gets something. */
static void everything_can_be_shown(void **state)
{
    static const char *const ranks[] = {"a1", "a1 b1 a1", "a1 a1 a2 b1 b2 b2 a1"};
    for (size_t k = 0; k < 3; k++) {
        struct network n;
        network_multicasts = true;
        network_open(&n, TWO_CLUSTERS, ranks[k], 1);
        network_multicasts = false;
        for (int i = 0; tb_catalogue[i] != NULL; i++) {
            struct tb_traffic t;
            struct tb_collective call = call_of(&n, tb_catalogue[i]->operation, 100);
            if (!tb_rating_possible(&call) || !tb_algorithm_fits(tb_catalogue[i], &call))
                continue;
            assert_int_equal(tb_traffic_open(&t, tb_catalogue[i], &call, 100), TB_OK);
            assert_int_not_equal(t.time, TB_COST_NEVER);
            if (n.size > 1 && t.flow_count + t.meeting_count + t.cast_count == 0)
                fail_msg("%s %s does nothing", tb_operation_name(tb_catalogue[i]->operation), tb_catalogue[i]->name);
            tb_traffic_close(&t);
        }
        network_close(&n);
    }
}

static void too_many_ranks_are_refused(void **state)
{
    struct network n;
    struct tb_traffic t;
    network_open(&n, ONE_CLUSTER, NULL, 1);
    struct tb_collective call = call_of(&n, TB_OPERATION_BCAST, 8);
    call.size = TB_TRAFFIC_RANKS + 1;
    assert_int_equal(tb_traffic_open(&t, algorithm_find(TB_OPERATION_BCAST, "binomial"), &call, 8), TB_ERR_LIMIT);
    tb_traffic_close(&t);
    network_close(&n);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(binomial_tree_is_known),
        cmocka_unit_test(linear_gather_goes_to_the_root),
        cmocka_unit_test(crossings_are_counted),
        cmocka_unit_test(sizes_are_those_of_the_call),
        cmocka_unit_test(levels_are_told_apart),
        cmocka_unit_test(nothing_is_sent),
        cmocka_unit_test(common_memory_is_one_meeting_a_host),
        cmocka_unit_test(a_multicast_leaves_once),
        cmocka_unit_test(everything_can_be_shown),
        cmocka_unit_test(too_many_ranks_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
