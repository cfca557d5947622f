/* What is fitted to a stage: formulas beside trees that are walked through, and which tree and which length of messages
 * comes out where latency rules, where the rate does, and between. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "collectives/levels_fit.h"

#define PARTS 70u

/* A stage whose ranks spend nothing on combining: `own` ps for each message at either end. */
static struct tb_cost_ends ends;

static struct tb_stage_cost stage_of(uint32_t parts, uint64_t latency, uint64_t rate, uint64_t own)
{
    ends.send = ends.receive = tb_cost_line(own, 0);
    return (struct tb_stage_cost){.parts = parts, .latency = latency, .rate = rate, .shared = rate, .ends = &ends};
}

static struct tb_stage_fit fit_of(const struct tb_stage_cost *c, uint64_t bytes, uint32_t count, uint32_t join)
{
    const struct tb_fit_pieces pieces = {bytes, count, join};
    return tb_fit_find(c, &pieces);
}

/* ---- formulas ---------------------------------------------------------------------------------------------------- */

/* When the last part has a message that goes along a tree, each part sending one after the other. */
static uint64_t tree_last(enum tb_tree_kind kind, uint64_t argument, uint32_t parts, uint64_t gap, uint64_t arrive)
{
    uint64_t told[PARTS] = {0}, last = 0;
    uint32_t order[PARTS] = {0}, known = 1;
    for (uint32_t n = 0; n < known; n++) {
        struct tb_tree t;
        tb_tree_find(&t, kind, argument, parts, 0, order[n]);
        for (uint32_t i = 0; i < t.count; i++) {
            uint32_t child = t.children[i];
            told[child] = told[order[n]] + i * gap + arrive;
            last = told[child] > last ? told[child] : last;
            order[known++] = child;
        }
    }
    assert_int_equal(known, parts);
    return last;
}

static enum tb_tree_kind kind_of(enum tb_level_tree tree)
{
    return tree == TB_LEVEL_BINOMIAL ? TB_TREE_BINOMIAL
           : tree == TB_LEVEL_CHAIN  ? TB_TREE_CHAIN
           : tree == TB_LEVEL_EVEN   ? TB_TREE_EVEN
                                     : TB_TREE_POSTAL;
}

/* Of one message the time that is told is the one of the tree that is named, and no other kind of tree is much better:
 * formulas round up. */
static void one_message_takes_what_is_told(void **state)
{
    uint32_t seen[TB_LEVEL_FITTED + 1] = {0};
    for (uint32_t way = 0; way < 8000; way++) {
        uint32_t parts = 2 + way % 63; /* more are not told by one */
        uint64_t own = 1000ull << way % 7, latency = 500ull << way / 63 % 12;
        struct tb_stage_cost cost = stage_of(parts, latency, 0, own);
        struct tb_stage_fit fit = fit_of(&cost, 1000, 1, 1);
        uint64_t arrive = latency + 2 * own, flat = arrive + (parts - 2) * own;
        uint64_t is = fit.tree == TB_LEVEL_FLAT ? flat : tree_last(kind_of(fit.tree), fit.argument, parts, own, arrive);
        seen[fit.tree]++;
        if (is > fit.time)
            fail_msg("%u parts, gap %llu, latency %llu: tree %d takes %llu, not %llu", parts, (unsigned long long)own,
                     (unsigned long long)latency, fit.tree, (unsigned long long)is, (unsigned long long)fit.time);
        for (uint64_t lambda = 1; lambda <= 16; lambda++)
            if (is > tree_last(TB_TREE_POSTAL, lambda, parts, own, arrive) * 5 / 4)
                fail_msg("%u parts, gap %llu, latency %llu: tree %d:%u takes %llu, postal:%llu %llu", parts,
                         (unsigned long long)own, (unsigned long long)latency, fit.tree, fit.argument,
                         (unsigned long long)is, (unsigned long long)lambda,
                         (unsigned long long)tree_last(TB_TREE_POSTAL, lambda, parts, own, arrive));
        uint64_t binomial = tree_last(TB_TREE_BINOMIAL, 0, parts, own, arrive);
        if (is > flat * 5 / 4 || is > binomial * 5 / 4)
            fail_msg("%u parts, gap %llu, latency %llu: tree %d:%u takes %llu, flat %llu, binomial %llu", parts,
                     (unsigned long long)own, (unsigned long long)latency, fit.tree, fit.argument,
                     (unsigned long long)is, (unsigned long long)flat, (unsigned long long)binomial);
    }
    assert_true(seen[TB_LEVEL_FLAT] > 100 && seen[TB_LEVEL_POSTAL] > 100);
}

/* ---- what comes out ---------------------------------------------------------------------------------------------- */

#define MS 1000000000ull
#define US 1000000ull

static void trees_follow_what_rules(void **state)
{
    struct tb_stage_cost cost = stage_of(12, 50 * MS, 100000000, 5 * US); /* far away: all at once */
    assert_int_equal(fit_of(&cost, 1000, 1, 1).tree, TB_LEVEL_FLAT);
    cost = stage_of(32, US, 100000000, 1 * US); /* a long message on a fast network: each sends it on */
    assert_int_equal(fit_of(&cost, 1000000, 1, 1).tree, TB_LEVEL_BINOMIAL);
    cost = stage_of(32, 200 * US, 1000000000, 50 * US); /* as long to send four as for one to come */
    assert_int_equal(fit_of(&cost, 100, 1, 1).tree, TB_LEVEL_POSTAL);
    assert_in_range(fit_of(&cost, 100, 1, 1).argument, 5, 7);
    cost = stage_of(6, 50 * US, 100000000, 5 * US); /* many pieces of a long message, and not many parts */
    assert_int_equal(fit_of(&cost, 8192, 128, 1).tree, TB_LEVEL_CHAIN);
    cost = stage_of(1000, 50 * US, 100000000, 5 * US); /* so many that a chain takes too long */
    struct tb_stage_fit fit = fit_of(&cost, 8192, 128, 1);
    assert_int_equal(fit.tree, TB_LEVEL_EVEN);
    assert_int_equal(fit.argument, 2);
}

/* What comes slowly from elsewhere need not be passed on faster, but soon. */
static void what_comes_slowly_is_passed_on_soon(void **state)
{
    struct tb_stage_cost cost = stage_of(8, 50 * US, 1000000000, 5 * US);
    assert_int_equal(fit_of(&cost, 65536, 64, 1).tree, TB_LEVEL_CHAIN);
    cost.come = 20000000;
    struct tb_stage_fit fit = fit_of(&cost, 65536, 64, 1);
    assert_int_not_equal(fit.tree, TB_LEVEL_CHAIN);
    assert_true(fit.time >= tb_rate_time(65536 * 64, cost.come));
}

/* Where all that leaves a cluster shares its uplink nobody is told before the others: fewer children are better. */
static void mixed_streams_have_fewer_children(void **state)
{
    struct tb_stage_cost cost = stage_of(64, 20 * MS, 100000000, 5 * US);
    uint64_t apart = fit_of(&cost, 65536, 1, 1).time;
    cost.mixed = true;
    struct tb_stage_fit fit = fit_of(&cost, 65536, 1, 1);
    assert_true(fit.time > apart);
    assert_int_equal(fit.tree, TB_LEVEL_EVEN);
}

/* Messages are long where each of them costs much, and short where they follow each other through many. */
static void lengths_follow_costs(void **state)
{
    struct tb_stage_cost cost = stage_of(3, 10 * US, 10000000000, 100 * US);
    assert_int_equal(fit_of(&cost, 1024, 128, 16).join, 16);
    cost = stage_of(20, 10 * US, 100000000, 1 * US);
    assert_int_equal(fit_of(&cost, 8192, 128, 16).join, 1);
    assert_int_equal(fit_of(&cost, 8192, 1, 16).join, 1); /* there is one piece */
}

static void what_is_not_known_is_told_directly_or_along_a_tree(void **state)
{
    struct tb_stage_cost cost = {.parts = 5};
    assert_int_equal(fit_of(&cost, 1000, 4, 4).tree, TB_LEVEL_FLAT);
    assert_int_equal(fit_of(&cost, 1000, 4, 4).join, 1);
    cost.parts = 50;
    assert_int_equal(fit_of(&cost, 1000, 4, 4).tree, TB_LEVEL_BINOMIAL);
}

/* No number is too large. */
static void times_end_somewhere(void **state)
{
    struct tb_stage_cost cost = stage_of(4000000, UINT64_MAX / 4, 1, UINT64_MAX / 4);
    assert_int_equal(fit_of(&cost, UINT64_MAX / 2, 4096, 4096).time, TB_COST_NEVER);
    assert_int_equal(tb_rate_time(UINT64_MAX, 1), TB_COST_NEVER);
    assert_int_equal(tb_rate_time(1000, 8000), 1000000000000ull);
    assert_int_equal(tb_rate_time(4000000000ull, 8000), 4000000000000000000ull);
}

/* ---- arguments --------------------------------------------------------------------------------------------------- */

/* A part of a message that is simulated is cut as the whole is; what a user says is taken as it is. */
static void arguments_say_how_a_message_is_cut(void **state)
{
    struct tb_group_shape shape = {.size = 12, .cluster_count = 3};
    struct tb_collective c = {.operation = TB_OPERATION_BCAST, .size = 12, .elements = 1 << 20, .element_bytes = 1};
    uint64_t values[16];
    c.shape = &shape;
    uint32_t count = tb_candidates_fitted(&c, values, 16), pieces = 0;
    TB_ASSERT(count > 0);
    assert_int_equal(count, 5);
    for (uint32_t i = 0; i < count; i++) {
        c.argument = values[i];
        c.elements = 1 << 20;
        struct tb_fit_pieces whole = tb_fit_pieces(&c);
        assert_true(whole.count > pieces && whole.bytes * whole.count == c.elements);
        assert_int_equal(tb_pieces(&c), whole.count);
        pieces = whole.count;
        c.elements /= 8;
        struct tb_fit_pieces part = tb_fit_pieces(&c);
        assert_int_equal(part.count, whole.count);
        assert_int_equal(part.bytes, whole.bytes);
        assert_int_equal(whole.join, whole.count >= 32 ? 4 : 1);
        assert_int_equal(part.join, whole.join);
    }
    c.argument = tb_argument_of(8192, 2048);
    c.elements = 65536;
    struct tb_fit_pieces said = tb_fit_pieces(&c);
    assert_int_equal(said.bytes, 2048);
    assert_int_equal(said.count, 32);
    assert_int_equal(said.join, 4);
    c.argument = tb_argument_of(4096, 65536);
    assert_int_equal(tb_fit_pieces(&c).join, 16);
    char text[64];
    tb_argument_print(values[count - 1], true, text, sizeof text);
    assert_string_equal(text, "8k");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(one_message_takes_what_is_told),
                                       cmocka_unit_test(trees_follow_what_rules),
                                       cmocka_unit_test(what_comes_slowly_is_passed_on_soon),
                                       cmocka_unit_test(mixed_streams_have_fewer_children),
                                       cmocka_unit_test(lengths_follow_costs),
                                       cmocka_unit_test(what_is_not_known_is_told_directly_or_along_a_tree),
                                       cmocka_unit_test(times_end_somewhere),
                                       cmocka_unit_test(arguments_say_how_a_message_is_cut)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
