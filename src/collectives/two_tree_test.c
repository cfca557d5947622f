#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "collectives/two_tree.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define EVERY_NODES 500
#else
#define EVERY_NODES 3000
#endif

static struct tb_two_tree nodes[EVERY_NODES + 1][2];

static void all_nodes(uint32_t n)
{
    for (uint32_t v = 1; v <= n; v++)
        tb_two_tree_find(nodes[v], n, v);
}

/* How many nodes are at and below `v`, of which the lowest and the highest are found, too. */
static uint32_t walk(uint32_t n, uint32_t tree, uint32_t v, uint32_t depth, uint32_t *low, uint32_t *high)
{
    uint32_t children[2] = {nodes[v][tree].left, nodes[v][tree].right}, count = 1;
    if (depth == 0)
        fail_msg("tree %u of %u nodes is too deep at %u", tree, n, v);
    *low = *high = v;
    for (int i = 0; i < 2; i++) {
        uint32_t first, last;
        if (children[i] == 0)
            continue;
        if (children[i] > n || nodes[children[i]][tree].parent != v)
            fail_msg("tree %u of %u nodes: %u is not the parent of %u", tree, n, v, children[i]);
        count += walk(n, tree, children[i], depth - 1, &first, &last);
        if (n % 2 == 0 && (i == 0 ? last + 1 != v : first != v + 1))
            fail_msg("tree %u of %u nodes is not in order at %u", tree, n, v);
        *low = first < *low ? first : *low;
        *high = last > *high ? last : *high;
    }
    if (n % 2 == 0 && (nodes[v][tree].first != *low || nodes[v][tree].last != *high))
        fail_msg("tree %u of %u nodes: below %u is %u to %u", tree, n, v, *low, *high);
    return count;
}

static void every_tree_is_one(void **state)
{
    for (uint32_t n = 1; n <= EVERY_NODES; n++) {
        uint32_t depth = 0, low, high;
        while (1u << depth < n + 1)
            depth++;
        all_nodes(n);
        for (uint32_t tree = 0; tree < 2; tree++) {
            uint32_t root = tb_two_tree_root(n, tree);
            assert_int_equal(nodes[root][tree].parent, 0);
            assert_int_equal(walk(n, tree, root, depth, &low, &high), n);
        }
    }
}

static void nobody_is_interior_in_both(void **state)
{
    for (uint32_t n = 1; n <= EVERY_NODES; n++) {
        all_nodes(n);
        for (uint32_t v = 1; v <= n; v++) {
            bool first = nodes[v][0].left != 0 || nodes[v][0].right != 0;
            bool second = nodes[v][1].left != 0 || nodes[v][1].right != 0;
            if (first && second)
                fail_msg("%u of %u is interior twice", v, n);
        }
    }
}

static void many_nodes(void **state)
{
    static const uint32_t counts[] = {1000000, (1u << 31) - 1, 1u << 31, UINT32_MAX - 1, UINT32_MAX};
    for (int i = 0; i < 5; i++)
        for (uint32_t k = 0; k < 100; k++)
            for (uint32_t tree = 0; tree < 2; tree++) {
                struct tb_two_tree t[2], up[2];
                uint32_t v = k % 2 == 0 ? k + 1 : counts[i] - k, depth = 0;
                for (tb_two_tree_find(t, counts[i], v); t[tree].parent != 0; v = t[tree].parent, t[tree] = up[tree]) {
                    tb_two_tree_find(up, counts[i], t[tree].parent);
                    assert_true(up[tree].left == v || up[tree].right == v);
                    assert_in_range(depth++, 0, 31);
                }
                assert_int_equal(v, tb_two_tree_root(counts[i], tree));
            }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_tree_is_one),
                                       cmocka_unit_test(nobody_is_interior_in_both), cmocka_unit_test(many_nodes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
