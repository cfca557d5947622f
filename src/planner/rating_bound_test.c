/* What is predicted is never below what is possible, also where it is continued from smaller groups and shorter
 * messages. */
#include "planner/bound.h"
#include "planner/network_test.h"
#include "planner/random_grid_test.h"
#include "planner/rating.h"

/* Whether some time was predicted, and none below the bound. */
static void predictions_hold(struct network *n, struct tb_collective c, bool all, const char *text)
{
    struct tb_candidate rows[TB_CANDIDATES_LIMIT];
    struct tb_bound bound;
    c.size = n->size;
    c.element_bytes = 1;
    c.commutative = true;
    c.shape = n->shape;
    c.costs = &n->table;
    assert_int_equal(tb_bound_find(&n->ways, &c, &bound), TB_OK);
    uint32_t count = tb_rating_list(&c, NULL, rows), rated = 0;
    assert_int_equal(tb_rating_rate(n->shape, &c, rows, count, all, NULL), TB_OK);
    for (uint32_t i = 0; i < count; i++) {
        rated += rows[i].time != TB_COST_NEVER;
        if (rows[i].time < bound.time)
            fail_msg("%s of %llu bytes by %s:%llu, %u ranks: %.3f us, and the bound is %.3f, on\n%s",
                     tb_operation_name(c.operation), (unsigned long long)c.elements, rows[i].algorithm->name,
                     (unsigned long long)rows[i].argument, n->size, (double)rows[i].time / 1e6,
                     (double)bound.time / 1e6, text);
    }
    assert_true(rated > 0);
}

/* Figure 8 of Karonis et al.: what crosses the country grows with the square of the ranks. */
static void the_square_of_the_ranks(void **state)
{
    static const char text[] =
        "sites:\n- name: SDSC\n  clusters:\n  - {name: sdsc, hosts: s, ethernet: {bandwidth: 100, latency: 0.1}}\n"
        "- name: ANL\n  clusters:\n  - {name: anl, hosts: [a, b], ethernet: {bandwidth: 100, latency: 0.1}}\n"
        "links:\n- {from: sdsc, to: anl, bandwidth: 20, latency: 30}\n";
    struct network n;
    network_open(&n, text, NULL, 16);
    for (uint64_t bytes = 1024; bytes <= 65536; bytes *= 8)
        for (int all = 0; all < 2; all++)
            predictions_hold(&n, (struct tb_collective){.operation = TB_OPERATION_ALLTOALL, .elements = bytes},
                             all == 1, text);
    network_close(&n);
}

static void any_grid(void **state)
{
    static const uint64_t lengths[] = {8, 1000, 30000, 1000000};
    random_seed = 3;
    for (int i = 0; i < 8; i++) {
        char text[4096];
        struct network n;
        random_grid(text, 4, 16);
        network_multicasts = i % 2 == 0;
        network_open(&n, text, NULL, 1 + random_below(8));
        for (int o = i % 2; o <= TB_OPERATION_EXSCAN; o += 2) {
            uint64_t bytes = lengths[random_below(4)];
            struct tb_collective c = {.operation = (enum tb_operation)o,
                                      .root = random_below(n.size),
                                      .elements = o == TB_OPERATION_BARRIER ? 0 : bytes};
            predictions_hold(&n, c, false, text);
        }
        network_close(&n);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_square_of_the_ranks), cmocka_unit_test(any_grid)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
