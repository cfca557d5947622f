/* Which trees come out of the costs of unlike links: those of LPBF, those that are fitted, and what is chosen where one
 * site is far away. */
#include "planner/choice.h"
#include "planner/item_bytes.h"
#include "planner/network_test.h"

static struct tb_collective call_of(const struct network *n, enum tb_operation operation, uint64_t bytes, uint32_t root)
{
    return (struct tb_collective){.operation = operation,
                                  .size = n->size,
                                  .root = root,
                                  .elements = bytes,
                                  .element_bytes = 1,
                                  .commutative = true,
                                  .shape = n->shape,
                                  .costs = &n->table};
}

static uint32_t cluster_of(const struct network *n, uint32_t rank)
{
    return n->grid.hosts[n->hosts[rank]].cluster;
}

/* Who a rank sends to in other clusters, in the order of its steps; how many. */
static uint32_t far_peers(const struct network *n, struct tb_program *const *programs, uint32_t rank, uint32_t *peers)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < programs[rank]->step_count; i++) {
        const struct tb_step *s = &programs[rank]->steps[i];
        if (s->kind == TB_STEP_SEND && cluster_of(n, s->peer) != cluster_of(n, rank))
            peers[count++] = s->peer;
    }
    return count;
}

static struct tb_program **programs_of(const struct network *n, const char *name, enum tb_operation operation,
                                       uint64_t bytes, uint32_t root)
{
    struct tb_collective c = call_of(n, operation, bytes, root);
    const struct tb_algorithm *a = algorithm_find(operation, name);
    c.argument = bytes;
    assert_true(tb_algorithm_fits(a, &c));
    return programs_make(a, &c);
}

/* ---- LPBF -------------------------------------------------------------------------------------------------------- */

/* b is near to a, d to c, and c much nearer to b than to a. e is as far from a as f, and has many hosts. */
static const char unlike[] = "clusters:\n"
                             "- {name: a, hosts: 'a[1-2]:1', ethernet: {bandwidth: 1000, latency: 0.05}}\n"
                             "- {name: b, hosts: 'b[1-2]:1', ethernet: {bandwidth: 1000, latency: 0.05}}\n"
                             "- {name: c, hosts: 'c[1-2]:1', ethernet: {bandwidth: 1000, latency: 0.05}}\n"
                             "- {name: d, hosts: 'd[1-2]:1', ethernet: {bandwidth: 1000, latency: 0.05}}\n"
                             "- {name: e, hosts: 'e[1-2]:1', ethernet: {bandwidth: 1000, latency: 0.05}}\n"
                             "- {name: f, hosts: 'f[1-16]:1', ethernet: {bandwidth: 10, latency: 0.05}}\n"
                             "links:\n"
                             "- {from: a, to: b, bandwidth: 100, latency: 1}\n"
                             "- {from: a, to: c, bandwidth: 10, latency: 60}\n"
                             "- {from: a, to: d, bandwidth: 10, latency: 60}\n"
                             "- {from: a, to: e, bandwidth: 100, latency: 5}\n"
                             "- {from: a, to: f, bandwidth: 100, latency: 5}\n"
                             "- {from: b, to: c, bandwidth: 100, latency: 20}\n"
                             "- {from: b, to: d, bandwidth: 10, latency: 60}\n"
                             "- {from: b, to: e, bandwidth: 100, latency: 30}\n"
                             "- {from: b, to: f, bandwidth: 100, latency: 30}\n"
                             "- {from: c, to: d, bandwidth: 100, latency: 1}\n"
                             "- {from: c, to: e, bandwidth: 10, latency: 60}\n"
                             "- {from: c, to: f, bandwidth: 10, latency: 60}\n"
                             "- {from: d, to: e, bandwidth: 10, latency: 60}\n"
                             "- {from: d, to: f, bandwidth: 10, latency: 60}\n"
                             "- {from: e, to: f, bandwidth: 10, latency: 60}\n";

/* The edge that completes earliest, again and again: a to b, both to those near them, b to c, c to d. Of the three that
 * a serves, f comes first, which takes longest itself, then b, behind whom most parts are, then e. */
static void lpbf_takes_the_edges_that_complete_earliest(void **state)
{
    struct network n;
    uint32_t peers[32];
    network_open(&n, unlike, NULL, 1);
    for (int way = 0; way < 2; way++) {
        enum tb_operation operation = way == 0 ? TB_OPERATION_BCAST : TB_OPERATION_REDUCE;
        struct tb_program **programs = programs_of(&n, "levels-lpbf-fitted", operation, 10000, 0);
        if (way == 0) {
            assert_int_equal(far_peers(&n, programs, 0, peers), 3);
            assert_int_equal(peers[0], 10); /* f1, */
            assert_int_equal(peers[1], 2);  /* b1, */
            assert_int_equal(peers[2], 8);  /* e1 */
            assert_int_equal(far_peers(&n, programs, 2, peers), 1);
            assert_int_equal(peers[0], 4); /* b1 to c1 */
            assert_int_equal(far_peers(&n, programs, 4, peers), 1);
            assert_int_equal(peers[0], 6); /* c1 to d1 */
        } else {
            static const uint32_t parents[][2] = {{2, 0}, {4, 2}, {6, 4}, {8, 0}, {10, 0}};
            for (int i = 0; i < 5; i++) {
                assert_int_equal(far_peers(&n, programs, parents[i][0], peers), 1);
                assert_int_equal(peers[0], parents[i][1]);
            }
        }
        programs_close(programs, n.size);
    }
    network_close(&n);
}

/* From d's side it is d, c, b, a, and a tells e and f, whoever of a cluster is the root. */
static void lpbf_follows_the_root(void **state)
{
    struct network n;
    uint32_t peers[32];
    network_open(&n, unlike, NULL, 1);
    for (uint32_t root = 6; root < 8; root++) {
        struct tb_program **programs = programs_of(&n, "levels-lpbf-fitted", TB_OPERATION_BCAST, 10000, root);
        static const uint32_t tells[][2] = {{4, 2}, {2, 0}};
        assert_int_equal(far_peers(&n, programs, root, peers), 1);
        assert_int_equal(peers[0], 4);
        for (int i = 0; i < 2; i++) {
            assert_int_equal(far_peers(&n, programs, tells[i][0], peers), 1);
            assert_int_equal(peers[0], tells[i][1]);
        }
        assert_int_equal(far_peers(&n, programs, 0, peers), 2);
        assert_int_equal(peers[0], 10);
        assert_int_equal(peers[1], 8);
        programs_close(programs, n.size);
    }
    network_close(&n);
}

/* Many clusters, of which the last is on a slow line, joined by links to the first or not. */
static void many_open(struct network *n, uint32_t clusters, bool linked)
{
    char *text = malloc(200 * clusters + 64), *at = text;
    assert_non_null(text);
    at += sprintf(at, "clusters:\n");
    for (uint32_t i = 0; i < clusters; i++)
        at += sprintf(at,
                      "- {name: c%u, hosts: 'c%un[1-2]:1', ethernet: {bandwidth: 1000, latency: 0.05}, "
                      "uplink: {bandwidth: %u, latency: 5}}\n",
                      i, i, i + 1 < clusters ? 100 : 10);
    if (linked)
        sprintf(at, "links:\n- {from: c0, to: c1, bandwidth: 100, latency: 5}\n");
    network_open(n, text, NULL, 1);
    free(text);
}

/* 32 clusters are not too many; what is told of each is the same as of few. */
static void lpbf_is_for_many_parts(void **state)
{
    static const struct {
        uint32_t clusters;
        bool linked, fits;
    } cases[] = {{32, false, true}, {33, false, false}, {24, true, true}, {25, true, false}};
    for (uint32_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct network n;
        many_open(&n, cases[i].clusters, cases[i].linked);
        struct tb_collective c = call_of(&n, TB_OPERATION_BCAST, 100000, 0);
        const struct tb_algorithm *a = algorithm_find(TB_OPERATION_BCAST, "levels-lpbf-fitted");
        assert_int_equal(tb_algorithm_fits(a, &c), cases[i].fits);
        if (cases[i].fits) {
            struct tb_program **programs = programs_make(a, &c);
            uint32_t peers[64], last = n.size - 2, told = 0;
            /* The one on the slow line is a leaf, and is told once. */
            assert_int_equal(far_peers(&n, programs, last, peers), 0);
            for (uint32_t rank = 0; rank < n.size; rank++)
                for (uint32_t k = far_peers(&n, programs, rank, peers); k-- > 0;)
                    told += peers[k] == last;
            assert_int_equal(told, 1);
            uint32_t looks = programs[0]->looks; /* few kinds of clusters, or each two of them */
            if (cases[i].linked)
                assert_in_range(looks, cases[i].clusters * (cases[i].clusters - 1) / 2, 400);
            else
                assert_in_range(looks, 4, 100);
            programs_close(programs, c.size);
        }
        network_close(&n);
    }
}

/* ---- fitted ------------------------------------------------------------------------------------------------------ */

/* Pieces that a rank sends as one message inside of its cluster. */
static uint32_t inner_join(const struct network *n, struct tb_program *const *programs, uint32_t rank)
{
    uint32_t join = 0;
    for (uint32_t i = 0; i < programs[rank]->step_count; i++) {
        const struct tb_step *s = &programs[rank]->steps[i];
        if (s->kind == TB_STEP_SEND && cluster_of(n, s->peer) == cluster_of(n, rank))
            join = s->join;
    }
    return join;
}

/* Each level has its own tree: sites far away are told by one, the many hosts of a cluster by each other, and lengths
 * of messages differ. */
static void each_level_has_its_own_tree(void **state)
{
    static const char text[] = "sites:\n"
                               "- name: A\n  clusters:\n"
                               "  - {name: a, hosts: 'a[1-24]:1', ethernet: {bandwidth: 100, latency: 0.05}, uplink: "
                               "{bandwidth: 1000, latency: 20}}\n"
                               "- name: B\n  clusters:\n"
                               "  - {name: b, hosts: 'b[1-3]:1', ethernet: {bandwidth: 20000, latency: 0.05}, uplink: "
                               "{bandwidth: 1000, latency: 20}}\n"
                               "- name: C\n  clusters:\n"
                               "  - {name: c, hosts: 'c[1-5]:1', ethernet: {bandwidth: 1000, latency: 4}, uplink: "
                               "{bandwidth: 1000, latency: 20}}\n";
    struct network n;
    uint32_t peers[32];
    network_open(&n, text, NULL, 1);
    struct tb_program **programs = programs_of(&n, "levels-fitted-fitted", TB_OPERATION_BCAST, 1000, 0);
    assert_int_equal(far_peers(&n, programs, 0, peers), 2); /* flat between sites */
    uint32_t near = 0;
    for (uint32_t i = 0; i < programs[0]->step_count; i++)
        near += programs[0]->steps[i].kind == TB_STEP_SEND;
    assert_in_range(near - 2, 2, 12);              /* in a neither flat nor a chain */
    assert_int_equal(programs[27]->step_count, 5); /* in c all are told by c1, which is told by a1 */
    programs_close(programs, n.size);
    struct tb_collective c = call_of(&n, TB_OPERATION_BCAST, 1 << 20, 24);
    c.argument = 1 << 11;
    programs = programs_make(algorithm_find(TB_OPERATION_BCAST, "levels-fitted-fitted"), &c);
    assert_int_equal(inner_join(&n, programs, 0), 1); /* through many hosts of a slow network in short messages */
    assert_int_equal(inner_join(&n, programs, 24), 4);
    programs_close(programs, n.size);
    network_close(&n);
}

/* ---- one site is far away ---------------------------------------------------------------------------------------- */

/* Bytes that come to a cluster, or leave it. */
static uint64_t crossing(const struct network *n, const struct tb_collective *c, struct tb_program *const *programs,
                         uint32_t far, bool in)
{
    uint64_t bytes = 0;
    const struct tb_item_data data = tb_item_data_of(c);
    for (uint32_t rank = 0; rank < n->size; rank++)
        for (uint32_t i = 0; i < programs[rank]->step_count; i++) {
            const struct tb_step *s = &programs[rank]->steps[i];
            if (s->kind == TB_STEP_SEND && (cluster_of(n, rank) == far) == !in && (cluster_of(n, s->peer) == far) == in)
                for (uint32_t item = 0; item < s->items; item++)
                    bytes += tb_item_bytes(&data, programs[rank], s, item);
        }
    return bytes;
}

/* Two sites near to each other, and one overseas, on lines of their own or joined pairwise: what is chosen crosses to
 * the far side once, with any root, and spreads there. Back again comes at most what it passes on for others, where
 * pieces take several trees. */
static void a_slow_link_is_crossed_once(void **state)
{
    static const char *const texts[] = {"clusters:\n"
                                        "- {name: a, hosts: 'a[1-3]:1', ethernet: {bandwidth: 1000, latency: 0.05}, "
                                        "uplink: {bandwidth: 1000, latency: 0.5}}\n"
                                        "- {name: b, hosts: 'b[1-2]:1', ethernet: {bandwidth: 1000, latency: 0.05}, "
                                        "uplink: {bandwidth: 1000, latency: 0.5}}\n"
                                        "- {name: f, hosts: 'f[1-3]:1', ethernet: {bandwidth: 1000, latency: 0.05}, "
                                        "uplink: {bandwidth: 5, latency: 35}}\n",
                                        "clusters:\n"
                                        "- {name: a, hosts: 'a[1-3]:1', ethernet: {bandwidth: 1000, latency: 0.05}}\n"
                                        "- {name: b, hosts: 'b[1-2]:1', ethernet: {bandwidth: 1000, latency: 0.05}}\n"
                                        "- {name: f, hosts: 'f[1-3]:1', ethernet: {bandwidth: 1000, latency: 0.05}}\n"
                                        "links:\n"
                                        "- {from: a, to: b, bandwidth: 1000, latency: 1}\n"
                                        "- {from: a, to: f, bandwidth: 5, latency: 35}\n"
                                        "- {from: b, to: f, bandwidth: 2, latency: 80}\n"};
    static const uint64_t sizes[] = {65536, 1 << 20};
    for (int way = 0; way < 8; way++) {
        struct network n;
        network_open(&n, texts[way / 4], NULL, 1);
        for (uint32_t root = 0; root < n.size; root++) {
            enum tb_operation operation = way % 2 == 0 ? TB_OPERATION_BCAST : TB_OPERATION_REDUCE;
            struct tb_collective c = call_of(&n, operation, sizes[way / 2 % 2], root);
            struct tb_choice_facts facts = {.shape = n.shape};
            struct tb_choice choice;
            assert_int_equal(tb_choice_make(&facts, &c, &choice), TB_OK);
            c.argument = choice.best.argument;
            struct tb_program **programs = programs_make(choice.best.algorithm, &c);
            bool in = (cluster_of(&n, root) == 2) == (operation == TB_OPERATION_REDUCE);
            uint64_t bytes = crossing(&n, &c, programs, 2, in), back = crossing(&n, &c, programs, 2, !in);
            if (bytes < c.elements || bytes > c.elements + c.elements / 100 * 8 + 2048 || back > c.elements / 2)
                fail_msg("%s of %llu bytes by %s, root %u, grid %d: %llu bytes cross, %llu back",
                         tb_operation_name(c.operation), (unsigned long long)c.elements, choice.best.algorithm->name,
                         root, way / 4, (unsigned long long)bytes, (unsigned long long)back);
            programs_close(programs, n.size);
        }
        network_close(&n);
    }
}

/* Where links are unlike, who is joined by a slow one passes on less: a fifth of what the other one
 * does. */
static void shares_follow_rates(void **state)
{
    static const char text[] = "clusters:\n"
                               "- {name: a, hosts: 'a[1-2]:1', ethernet: {bandwidth: 1000, latency: 0.05}}\n"
                               "- {name: b, hosts: 'b[1-2]:1', ethernet: {bandwidth: 1000, latency: 0.05}}\n"
                               "- {name: c, hosts: 'c[1-2]:1', ethernet: {bandwidth: 1000, latency: 0.05}}\n"
                               "links:\n"
                               "- {from: a, to: b, bandwidth: 100, latency: 0.1}\n"
                               "- {from: a, to: c, bandwidth: 20, latency: 0.1}\n"
                               "- {from: b, to: c, bandwidth: 100, latency: 0.1}\n";
    struct network n;
    network_open(&n, text, NULL, 1);
    struct tb_collective c = call_of(&n, TB_OPERATION_BCAST, 1 << 20, 0);
    c.argument = 1 << 13;
    struct tb_program **programs = programs_make(algorithm_find(TB_OPERATION_BCAST, "levels-packed-chain"), &c);
    uint32_t to[6] = {0};
    for (uint32_t i = 0; i < programs[0]->step_count; i++)
        to[programs[0]->steps[i].peer] += programs[0]->steps[i].slice.count;
    assert_in_range(to[2], 105, 109); /* of 128 */
    assert_in_range(to[4], 19, 23);
    programs_close(programs, n.size);
    network_close(&n);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(lpbf_takes_the_edges_that_complete_earliest),
                                       cmocka_unit_test(lpbf_follows_the_root),
                                       cmocka_unit_test(lpbf_is_for_many_parts),
                                       cmocka_unit_test(each_level_has_its_own_tree),
                                       cmocka_unit_test(a_slow_link_is_crossed_once),
                                       cmocka_unit_test(shares_follow_rates)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
