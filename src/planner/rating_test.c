/* Ratings against closed formulas and against simulations of the whole: what is continued from fewer ranks and pieces
 * comes out as it would be, and the work stays within its bound. */
#include "planner/choice.h"
#include "planner/folds.h"
#include "planner/network_test.h"
#include "planner/rating.h"
#include "planner/simulator.h"

/* Alike clusters with uplinks; ranks in blocks, or dealt to the clusters in turn. */
static void clusters_open(struct network *n, uint32_t clusters, uint32_t hosts, bool deal)
{
    char *text = malloc(clusters * 200 + 100), *at = text;
    assert_non_null(text);
    at += sprintf(at, "clusters:\n");
    for (uint32_t i = 0; i < clusters; i++)
        at += sprintf(at,
                      "- {name: c%u, hosts: \"c%un[1-%u]\", ethernet: {bandwidth: 1000, latency: 0.1}, "
                      "uplink: {bandwidth: 100, latency: 5}}\n",
                      i, i, hosts);
    network_open(n, text, NULL, 1);
    free(text);
    if (!deal)
        return;
    for (uint32_t i = 0; i < n->size; i++)
        n->hosts[i] = i % clusters * hosts + i / clusters;
    tb_ways_close(&n->ways);
    tb_group_shape_release(n->shape);
    struct tb_shape_source ranks = {
        .size = n->size, .host_limit = n->grid.host_count, .table = &n->table, .run = network_run, .context = n};
    assert_int_equal(tb_group_shape_make(&n->shape, &ranks), TB_OK);
    assert_int_equal(tb_ways_open(&n->ways, &n->table, n->shape), TB_OK);
}

static struct tb_collective call_of(const struct network *n, enum tb_operation operation, uint64_t bytes)
{
    return (struct tb_collective){.operation = operation,
                                  .size = n->size,
                                  .elements = bytes,
                                  .element_bytes = 1,
                                  .commutative = true,
                                  .shape = n->shape,
                                  .costs = &n->table};
}

static bool cut_evenly(enum tb_operation o)
{
    return o == TB_OPERATION_BCAST || o == TB_OPERATION_REDUCE || o == TB_OPERATION_ALLREDUCE ||
           o == TB_OPERATION_SCAN || o == TB_OPERATION_EXSCAN;
}

/* All ranks and all pieces. */
static uint64_t simulated(struct network *n, const struct tb_collective *call, const struct tb_candidate *row)
{
    struct tb_simulator *simulator;
    struct tb_collective c = *call;
    c.argument = row->argument;
    struct tb_program **programs = programs_make(row->algorithm, &c);
    struct tb_simulation run = {.programs = programs,
                                .ways = &n->ways,
                                .bytes = c.elements,
                                .blocks = !cut_evenly(c.operation),
                                .limit = 100000000};
    assert_int_equal(tb_simulator_open(&simulator), TB_OK);
    assert_int_equal(tb_simulate(simulator, &run), TB_OK);
    tb_simulator_close(simulator);
    programs_close(programs, c.size);
    return run.end;
}

static void assert_near(uint64_t a, uint64_t b, uint64_t percent)
{
    if (a > b + b / 100 * percent || b > a + a / 100 * percent)
        fail_msg("%llu and %llu differ by more than %llu %%", (unsigned long long)a, (unsigned long long)b,
                 (unsigned long long)percent);
}

/* ---- more than can be simulated ---------------------------------------------------------------------------------- */

/* What a port is busy with so many bytes, and one message alone. */
static uint64_t wire(const struct network *n, uint64_t bytes)
{
    return tb_wire_time(&n->table, n->ways.wires[0].wire, bytes);
}

static uint64_t message(const struct network *n, uint64_t bytes)
{
    return 2 * NETWORK_OVERHEAD + NETWORK_LATENCY + wire(n, bytes);
}

static uint64_t rated(struct network *n, enum tb_operation operation, const char *name, uint64_t argument,
                      uint64_t bytes)
{
    struct tb_collective c = call_of(n, operation, bytes);
    struct tb_candidate rows[30];
    uint64_t units;
    /* Many candidates have little time each. */
    for (uint32_t i = 0; i < 30; i++)
        rows[i] = (struct tb_candidate){algorithm_find(operation, name), argument, TB_COST_NEVER};
    assert_int_equal(tb_rating_rate(n->shape, &c, rows, 30, false, &units), TB_OK);
    assert_int_equal(rows[0].time, rows[29].time);
    assert_true(units <= TB_RATING_UNITS);
    return rows[0].time;
}

static void larger_groups_and_messages_are_continued(void **state)
{
    struct network n;
    network_plain(&n, 1024, 1);
    assert_near(rated(&n, TB_OPERATION_BCAST, "binomial", 1000, 1000), 10 * message(&n, 1000), 2);
    network_close(&n);
    network_plain(&n, 512, 1);
    assert_near(rated(&n, TB_OPERATION_ALLGATHER, "ring", 0, 1000), 511 * message(&n, 1000), 2);
    network_close(&n);
    for (uint32_t p = 8; p <= 256; p *= 32) {
        network_plain(&n, p, 1);
        assert_near(rated(&n, TB_OPERATION_BCAST, "chain", 10000, 100000000),
                    (p - 1) * message(&n, 10000) + 9999 * wire(&n, 10000), 2);
        network_close(&n);
    }
}

/* Pieces whose latency counts while there are few of them, as on a ring, do not look cheaper than they are. */
static void few_pieces_do_not_deceive(void **state)
{
    struct network n;
    network_plain(&n, 8, 1);
    struct tb_collective c = call_of(&n, TB_OPERATION_ALLREDUCE, 1 << 20);
    struct tb_candidate row = {algorithm_find(c.operation, "ring"), 2048, TB_COST_NEVER};
    assert_near(rated(&n, c.operation, "ring", 2048, 1 << 20), simulated(&n, &c, &row), 2);
    network_close(&n);
}

/* ---- alike clusters ---------------------------------------------------------------------------------------------- */

/* Sizes grow, the root stays, and the last one is the whole. */
static void folds_grow_to_the_whole(void **state)
{
    struct network n;
    for (uint32_t i = 0; i < 4; i++) {
        struct tb_folds f;
        uint32_t deal = i % 2, all = i / 2; /* clusters stay */
        clusters_open(&n, 8, 8, deal == 1);
        const uint32_t root = 37;
        assert_int_equal(tb_folds_open(&f, n.shape, root, all == 1), TB_OK);
        while (!tb_folds_are_whole(&f)) {
            assert_int_equal(tb_folds_grow(&f), TB_OK);
            const struct tb_fold_group *last = &f.list[f.count - 1];
            assert_true(f.count == 1 || last->shape->size > last[-1].shape->size);
            assert_true(last->root < last->shape->size);
            assert_int_equal(f.ranks[last->root], root);
            assert_true(all == 0 || last->shape->cluster_count == 8);
        }
        assert_true(f.count > 3 && f.list[0].shape->size < 8 + 2 * all);
        tb_folds_close(&f);
        network_close(&n);
    }
}

/* Where no two hosts are alike some of them stand for all. */
static void unlike_hosts_have_samples(void **state)
{
    struct network n;
    struct tb_folds f;
    char *text = malloc(100 * 100), *at = text;
    assert_non_null(text);
    at += sprintf(at, "clusters:\n- name: a\n  ethernet: {bandwidth: 1000, latency: 0.1}\n  hosts:\n");
    for (uint32_t i = 0; i < 90; i++)
        at += sprintf(at, "  - {name: n%u, bandwidth: %u}\n", i, 100 + i);
    network_open(&n, text, NULL, 1);
    free(text);
    assert_int_equal(tb_folds_open(&f, n.shape, 5, false), TB_OK);
    assert_int_equal(tb_folds_grow(&f), TB_OK);
    assert_int_equal(f.count, 4);
    assert_int_equal(f.list[0].shape->size, 8);
    assert_int_equal(f.list[2].shape->size, 32);
    assert_true(tb_folds_are_whole(&f));
    assert_int_equal(f.list[3].root, 5);
    tb_folds_close(&f);
    struct tb_collective c = call_of(&n, TB_OPERATION_ALLTOALL, 100000);
    struct tb_candidate rows[TB_CANDIDATES_LIMIT];
    uint64_t units;
    uint32_t count = tb_rating_list(&c, NULL, rows);
    assert_int_equal(tb_rating_rate(n.shape, &c, rows, count, false, &units), TB_OK);
    assert_true(units <= TB_RATING_UNITS && rows[0].time != TB_COST_NEVER);
    network_close(&n);
}

/* Where no two clusters are alike two hosts of some of them stand for all, with the root's among them, so that what
 * everyone sends everyone is rated in the time of a call; by levels, too. */
static void unlike_clusters_have_samples(void **state)
{
    struct network n;
    char *text = malloc(32 * 200), *at = text;
    assert_non_null(text);
    at += sprintf(at, "clusters:\n");
    for (uint32_t i = 0; i < 32; i++)
        at += sprintf(at,
                      "- {name: c%u, hosts: \"c%un[1-32]\", ethernet: {bandwidth: %u, latency: 0.1}, "
                      "uplink: {bandwidth: %u, latency: 5}}\n",
                      i, i, 1000 + 10 * i, 100 + i);
    network_open(&n, text, NULL, 1);
    free(text);
    for (uint32_t root = 5; root < n.size; root += 500) {
        struct tb_folds f;
        assert_int_equal(tb_folds_open(&f, n.shape, root, false), TB_OK);
        f.pairs = true;
        assert_int_equal(tb_folds_grow(&f), TB_OK);
        assert_int_equal(f.count, 2);
        for (uint32_t i = 0; i < 2; i++) {
            const struct tb_group_shape *shape = f.list[i].shape;
            assert_int_equal(shape->cluster_count, 4 << i);
            assert_int_equal(shape->host_count, (8 << i) + 1); /* the root is none of the first two hosts */
            assert_int_equal(tb_group_shape_spot(shape, tb_group_shape_host(shape, f.list[i].root)).place,
                             tb_group_shape_spot(n.shape, tb_group_shape_host(n.shape, root)).place);
        }
        tb_folds_close(&f);
    }
    struct tb_collective c = call_of(&n, TB_OPERATION_ALLGATHER, 65536);
    struct tb_candidate rows[TB_CANDIDATES_LIMIT];
    uint64_t units, levels = TB_COST_NEVER;
    uint32_t count = tb_rating_list(&c, NULL, rows);
    assert_int_equal(tb_rating_rate(n.shape, &c, rows, count, false, &units), TB_OK);
    assert_true(units <= TB_RATING_UNITS);
    for (uint32_t i = 0; i < count; i++)
        if (tb_algorithm_levels(rows[i].algorithm) && rows[i].time < levels)
            levels = rows[i].time;
    assert_true(levels < TB_COST_NEVER);
    network_close(&n);
}

/* What is chosen for many ranks is, simulated as a whole, about what was predicted, and about as good as anything. */
static void choices_for_many_ranks_hold(void **state)
{
    static const struct {
        enum tb_operation operation;
        uint64_t bytes;
    } cases[] = {{TB_OPERATION_BCAST, 1024},      {TB_OPERATION_BCAST, 65536},    {TB_OPERATION_REDUCE, 65536},
                 {TB_OPERATION_ALLREDUCE, 4096},  {TB_OPERATION_ALLGATHER, 1024}, {TB_OPERATION_ALLTOALL, 1024},
                 {TB_OPERATION_ALLREDUCE, 65536}, {TB_OPERATION_GATHER, 1024},    {TB_OPERATION_SCAN, 1024}};
    struct network n;
    for (int deal = 0; deal < 3; deal++) {
        if (deal < 2) {
            clusters_open(&n, 8, 12, deal == 1);
        } else {
            network_open(&n, "clusters:\n- {name: a, hosts: \"n[1-16]\", ethernet: {bandwidth: 1000, latency: 0.1}}\n",
                         NULL, 8);
            n.bytes->constants.cores = 8;
        }
        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
            struct tb_collective c = call_of(&n, cases[i].operation, cases[i].bytes);
            struct tb_candidate rows[TB_CANDIDATES_LIMIT];
            uint32_t count = tb_rating_list(&c, NULL, rows);
            assert_int_equal(tb_rating_rate(n.shape, &c, rows, count, true, NULL), TB_OK);
            tb_rating_sort(rows, count);
            uint64_t chosen = simulated(&n, &c, &rows[0]), least = chosen;
            /* Those that are predicted to be near. */
            for (uint32_t k = 1; k < count && rows[k].time / 2 <= rows[0].time; k++) {
                uint64_t time = simulated(&n, &c, &rows[k]);
                least = time < least ? time : least;
            }
            if (chosen > least + least / 4 || rows[0].time > 2 * chosen || chosen > 2 * rows[0].time)
                fail_msg("%s of %llu bytes, %s: %s:%llu is predicted to take %.1f us, takes %.1f, the best %.1f",
                         tb_operation_name(c.operation), (unsigned long long)c.elements,
                         deal == 0   ? "blocks"
                         : deal == 1 ? "dealt"
                                     : "several on a host",
                         rows[0].algorithm->name, (unsigned long long)rows[0].argument, (double)rows[0].time / 1e6,
                         (double)chosen / 1e6, (double)least / 1e6);
        }
        network_close(&n);
    }
}

/* What a call has time to choose, within its bound; how long that takes as a whole. */
static uint64_t chosen_find(struct network *n, const struct tb_collective *c, struct tb_candidate *chosen)
{
    struct tb_candidate rows[TB_CANDIDATES_LIMIT];
    uint64_t units;
    uint32_t count = tb_rating_list(c, NULL, rows);
    assert_int_equal(tb_rating_rate(n->shape, c, rows, count, false, &units), TB_OK);
    assert_true(units <= TB_RATING_UNITS);
    tb_rating_sort(rows, count);
    *chosen = rows[0];
    return simulated(n, c, chosen);
}

/* The shorter of what two rows take as a whole. */
static uint64_t shorter(struct network *n, const struct tb_collective *c, const char *name, uint64_t piece,
                        uint64_t than)
{
    struct tb_candidate row = {algorithm_find(c->operation, name), piece, TB_COST_NEVER};
    uint64_t time = simulated(n, c, &row);
    return time < than ? time : than;
}

/* What a call has time to choose for a group of which only parts are simulated is not much worse than rows that follow
 * all levels. */
static void calls_of_many_ranks_follow_levels(void **state)
{
    static const enum tb_operation operations[] = {TB_OPERATION_BCAST, TB_OPERATION_REDUCE, TB_OPERATION_ALLREDUCE};
    struct network n;
    for (int i = 0; i < 6; i++) {
        clusters_open(&n, 3, 32, i % 2 == 1);
        struct tb_collective c = call_of(&n, operations[i / 2], 1 << 20);
        struct tb_candidate best;
        uint64_t chosen = chosen_find(&n, &c, &best), least = TB_COST_NEVER;
        least = shorter(&n, &c, "levels-packed-chain", 8192, least);
        least = shorter(&n, &c, "levels-chain-chain", 8192, least);
        least = shorter(&n, &c, "levels-flat-binomial", 65536, least);
        if (chosen > least + least * 3 / 5)
            fail_msg("%s, %s: %s:%llu takes %.1f us, another one %.1f", tb_operation_name(c.operation),
                     i % 2 == 0 ? "blocks" : "dealt", best.algorithm->name, (unsigned long long)best.argument,
                     (double)chosen / 1e6, (double)least / 1e6);
        network_close(&n);
    }
}

/* The more clusters, the longer what goes to each of them by itself keeps the uplink of the root's busy: that a message
 * is better passed on from cluster to cluster is seen only on as many as there are. */
static void calls_of_many_clusters_share_uplinks(void **state)
{
    static const enum tb_operation operations[] = {TB_OPERATION_BCAST, TB_OPERATION_REDUCE, TB_OPERATION_ALLREDUCE};
    char *text = malloc(32 * 120), *at = text;
    struct network n;
    assert_non_null(text);
    at += sprintf(at, "clusters:\n");
    for (int i = 0; i < 32; i++)
        at += sprintf(at,
                      "- {name: c%d, hosts: 'c%dn[1-32]', ethernet: {bandwidth: 1000, latency: 0.05}, "
                      "uplink: {bandwidth: 100, latency: 5}}\n",
                      i, i);
    network_open(&n, text, NULL, 1);
    free(text);
    for (int i = 0; i < 3; i++) {
        struct tb_collective c = call_of(&n, operations[i], 1 << 16);
        struct tb_candidate best;
        uint64_t chosen = chosen_find(&n, &c, &best);
        uint64_t least = shorter(&n, &c, "levels-fitted-fitted", 8192, TB_COST_NEVER);
        if (chosen > least + least / 5)
            fail_msg("%s: %s:%llu takes %.1f us, another one %.1f", tb_operation_name(c.operation),
                     best.algorithm->name, (unsigned long long)best.argument, (double)chosen / 1e6,
                     (double)least / 1e6);
    }
    network_close(&n);
}

/* What is chosen is for all roots that nothing tells apart, and suits all of them: a tree by ranks that is as good as
 * one by levels for the first rank of a cluster crosses twice for others. */
static void a_choice_suits_all_its_roots(void **state)
{
    static const enum tb_operation operations[] = {TB_OPERATION_BCAST, TB_OPERATION_REDUCE};
    static const char mesh[] = "clusters:\n- {name: a, hosts: 'a[1-4]:1', ethernet: {bandwidth: 100, latency: 0.05}}\n"
                               "- {name: b, hosts: 'b[1-4]:1', ethernet: {bandwidth: 100, latency: 0.05}}\n"
                               "- {name: c, hosts: 'c[1-4]:1', ethernet: {bandwidth: 100, latency: 0.05}}\n"
                               "links:\n- {from: a, to: b, bandwidth: 20, latency: 10}\n"
                               "- {from: b, to: c, bandwidth: 20, latency: 10}\n"
                               "- {from: c, to: a, bandwidth: 20, latency: 10}\n";
    struct network n;
    for (int i = 0; i < 8; i++) {
        network_open(&n, mesh, NULL, 1);
        struct tb_collective c = call_of(&n, operations[i % 2], 16u << 2 * (i / 2));
        struct tb_choice_facts facts = {.shape = n.shape};
        struct tb_choice choice;
        assert_int_equal(tb_choice_make(&facts, &c, &choice), TB_OK);
        uint64_t first = simulated(&n, &c, &choice.best);
        for (c.root = 1; c.root < c.size; c.root++) {
            uint64_t time = simulated(&n, &c, &choice.best);
            if (time > first + first / 5)
                fail_msg("%s by %s: root %u %.1f us, the first %.1f", tb_operation_name(c.operation),
                         choice.best.algorithm->name, c.root, (double)time / 1e6, (double)first / 1e6);
        }
        network_close(&n);
    }
}

/* ---- long messages ----------------------------------------------------------------------------------------------- */

/* Three clusters behind gateways, with uplinks or joined pairwise, ranks in blocks or dealt, and one cluster. */
static void scene_open(struct network *n, int scene)
{
    static const char *const names[] = {"a2 a3 a4 a5 b2 b3 b4 b5 c2 c3 c4 c5", "a2 b2 c2 a3 b3 c3 a4 b4 c4 a5 b5 c5"};
    char text[1024] = "clusters:\n", *at = text + strlen(text);
    for (char c = 'a'; c <= 'c' && scene < 4; c++)
        at += sprintf(at,
                      "- {name: %c, hosts: '%c[1-5]', gateways: [%c1], nat: true, "
                      "ethernet: {bandwidth: 100, latency: 0.05}%s}\n",
                      c, c, c, scene < 2 ? ", uplink: {bandwidth: 50, latency: 5}" : "");
    if (scene == 2 || scene == 3)
        sprintf(at, "links:\n- {from: a, to: b, bandwidth: 50, latency: 10}\n"
                    "- {from: b, to: c, bandwidth: 50, latency: 10}\n- {from: c, to: a, bandwidth: 50, latency: 10}\n");
    if (scene == 4)
        sprintf(at, "- {name: a, hosts: 'a[1-8]', ethernet: {bandwidth: 100, latency: 0.05}}\n");
    network_open(n, text, scene < 4 ? names[scene % 2] : NULL, 1);
}

/* What is chosen in the little time of a call is nearly as good as anything that is possible, and what is predicted for
 * those that look best, if there is more time, is so: few pieces of many would deceive, as the windows of steps are not
 * full with them. */
static void choices_for_many_pieces_hold(void **state)
{
    for (int scene = 0; scene < 5; scene++) {
        struct network n;
        scene_open(&n, scene);
        for (int i = 0; i < 6; i++) {
            static const enum tb_operation operations[] = {TB_OPERATION_BCAST, TB_OPERATION_REDUCE,
                                                           TB_OPERATION_ALLREDUCE};
            struct tb_collective c = call_of(&n, operations[i / 2], i % 2 == 0 ? 1 << 16 : 1 << 20);
            struct tb_candidate rows[TB_CANDIDATES_LIMIT], best;
            uint64_t chosen = chosen_find(&n, &c, &best), least = TB_COST_NEVER;
            uint32_t count = tb_rating_list(&c, NULL, rows);
            assert_int_equal(tb_rating_rate(n.shape, &c, rows, count, true, NULL), TB_OK);
            tb_rating_sort(rows, count);
            for (uint32_t k = 0; k < count && rows[k].time - rows[0].time <= rows[0].time / 10; k++) {
                uint64_t time = simulated(&n, &c, &rows[k]);
                assert_near(rows[k].time, time, 2);
                least = time < least ? time : least;
            }
            if (chosen > least + least / 100 * 3)
                fail_msg("scene %d, %s of %llu bytes: %s:%llu takes %.1f us, the best %.1f", scene,
                         tb_operation_name(c.operation), (unsigned long long)c.elements, best.algorithm->name,
                         (unsigned long long)best.argument, (double)chosen / 1e6, (double)least / 1e6);
        }
        network_close(&n);
    }
}

/* ---- the bound --------------------------------------------------------------------------------------------------- */

static void work_is_bounded(void **state)
{
    struct network n;
    for (int deal = 0; deal < 2; deal++) {
        clusters_open(&n, 32, 32, deal == 1);
        for (int o = 0; o <= TB_OPERATION_EXSCAN; o++)
            for (uint64_t bytes = 8; bytes <= 1 << 20; bytes <<= 17) {
                struct tb_collective c = call_of(&n, (enum tb_operation)o, bytes);
                struct tb_candidate rows[TB_CANDIDATES_LIMIT];
                uint32_t count = tb_rating_list(&c, NULL, rows), rated_rows = 0;
                uint64_t units;
                assert_int_equal(tb_rating_rate(n.shape, &c, rows, count, false, &units), TB_OK);
                for (uint32_t i = 0; i < count; i++)
                    rated_rows += rows[i].time != TB_COST_NEVER;
                if (units > TB_RATING_UNITS || rated_rows == 0)
                    fail_msg("%s of %llu bytes takes %llu units; %u rows of %u are rated",
                             tb_operation_name(c.operation), (unsigned long long)bytes, (unsigned long long)units,
                             rated_rows, count);
            }
        network_close(&n);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(larger_groups_and_messages_are_continued),
        cmocka_unit_test(few_pieces_do_not_deceive),
        cmocka_unit_test(folds_grow_to_the_whole),
        cmocka_unit_test(unlike_hosts_have_samples),
        cmocka_unit_test(unlike_clusters_have_samples),
        cmocka_unit_test(choices_for_many_ranks_hold),
        cmocka_unit_test(calls_of_many_ranks_follow_levels),
        cmocka_unit_test(calls_of_many_clusters_share_uplinks),
        cmocka_unit_test(a_choice_suits_all_its_roots),
        cmocka_unit_test(choices_for_many_pieces_hold),
        cmocka_unit_test(work_is_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
