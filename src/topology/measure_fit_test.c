#include "topology/measure_fit.h"
#include "topology/cost_curve.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static enum tb_sharing judge(double a, double b, double a_beside, double b_beside)
{
    return tb_sharing_judge(&(struct tb_sharing_round){{a, b}, {a_beside, b_beside}});
}

static void sharing_is_seen_in_the_sum(void **state)
{
    assert_int_equal(judge(50, 50, 25, 25), TB_SHARING_SHARED);
    assert_int_equal(judge(50, 50, 41, 8), TB_SHARING_SHARED); /* however unfairly they share */
    assert_int_equal(judge(50, 50, 50, 50), TB_SHARING_SEPARATE);
    assert_int_equal(judge(50, 50, 42, 44), TB_SHARING_SEPARATE); /* on a busy machine */
    assert_int_equal(judge(50, 50, 35, 36), TB_SHARING_UNCLEAR);
    assert_int_equal(judge(100, 40, 62, 39), TB_SHARING_SHARED); /* the slow one is slow elsewhere, too */
    assert_int_equal(judge(40, 100, 40, 98), TB_SHARING_SEPARATE);
    assert_int_equal(judge(40, 100, 40, 75), TB_SHARING_UNCLEAR);
    assert_int_equal(judge(100, 10, 92, 9), TB_SHARING_UNEQUAL);
    assert_int_equal(judge(100, 0, 92, 9), TB_SHARING_UNCLEAR);
    assert_int_equal(judge(50, 50, 18, 18), TB_SHARING_UNCLEAR); /* something is in the way of both */
    assert_int_equal(judge(46, 29, 17, 16), TB_SHARING_UNCLEAR);
    assert_int_equal(judge(46, 45, 20, 19), TB_SHARING_SHARED); /* streams that lose packets to each other */
}

static enum tb_sharing best(const struct tb_sharing_round *rounds, uint32_t count)
{
    struct tb_sharing_round round = tb_sharing_best(rounds, count);
    return tb_sharing_judge(&round);
}

/* Whatever comes in the way makes a round slower, never faster. */
static void the_best_of_rounds_counts(void **state)
{
    const struct tb_sharing_round rounds[] = {
        {{50, 50}, {25, 25}}, {{30, 51}, {16, 15}}, {{50, 29}, {20, 14}}, {{50, 50}, {50, 50}}};
    assert_int_equal(best(rounds, 0), TB_SHARING_UNCLEAR);
    assert_int_equal(best(rounds, 1), TB_SHARING_SHARED);
    assert_int_equal(best(rounds, 3), TB_SHARING_SHARED);
    assert_int_equal(best(rounds + 1, 2), TB_SHARING_UNCLEAR);
    assert_int_equal(best(rounds, 4), TB_SHARING_SEPARATE);
    assert_int_equal(best(rounds + 3, 1), TB_SHARING_SEPARATE);
    for (int i = TB_SHARING_UNCLEAR; i <= TB_SHARING_SHARED; i++)
        assert_non_null(tb_sharing_name((enum tb_sharing)i));
}

static void expect_near(double seen, double wanted, double by)
{
    if (seen < wanted - by || seen > wanted + by)
        fail_msg("%g instead of %g", seen, wanted);
}

static void latencies_are_divided(void **state)
{
    double parts[4];
    const double star[] = {-1, 10, 7, 10, -1, 9, 7, 9, -1}; /* 4, 6, 3 */
    assert_true(tb_uplink_latencies_fit(3, star, 0.2, parts));
    expect_near(parts[0], 4, 1e-9);
    expect_near(parts[1], 6, 1e-9);
    expect_near(parts[2], 3, 1e-9);
    /* Four places, each figure a little wrong. */
    const double four[] = {0, 10.2, 6.9, 5.1, 10.2, 0, 9.1, 6.9, 6.9, 9.1, 0, 4, 5.1, 6.9, 4, 0}; /* 4, 6, 3, 1 */
    assert_true(tb_uplink_latencies_fit(4, four, 0.2, parts));
    expect_near(parts[0], 4, 0.2);
    expect_near(parts[1], 6, 0.2);
    expect_near(parts[2], 3, 0.2);
    expect_near(parts[3], 1, 0.2);
}

static void other_latencies_are_not(void **state)
{
    double parts[4];
    const double two[] = {0, 10, 10, 0};
    assert_false(tb_uplink_latencies_fit(2, two, 0.2, parts)); /* any division would do */
    const double triangle[] = {0, 2, 20, 2, 0, 3, 20, 3, 0};   /* one would be negative */
    assert_false(tb_uplink_latencies_fit(3, triangle, 0.2, parts));
    const double missing[] = {0, 10, -1, 10, 0, 9, -1, 9, 0};
    assert_false(tb_uplink_latencies_fit(3, missing, 0.2, parts));
    const double mesh[] = {0, 10, 10, 30, 10, 0, 30, 10, 10, 30, 0, 10, 30, 10, 10, 0}; /* a ring of four */
    assert_false(tb_uplink_latencies_fit(4, mesh, 0.2, parts));
}

static void tables_rise(void **state)
{
    char text[TB_GRID_TABLE_BYTES];
    struct tb_cost_curve send, receive, gap;
    const struct tb_measured_point points[] = {
        {0, 1232}, {1024, 9000.4}, {4096, 8000}, {16384, 7001.6}, {65536, 90000}};
    tb_measured_table_print(points, 5, 5000, 6000, text);
    assert_string_equal(text, "0:5000:6000:1232,1024:5000:6000:8001,4096:5000:6000:8001,16384:5000:6000:8001,"
                              "65536:5000:6000:90000");
    assert_true(tb_cost_points_parse(text, &send, &receive, &gap));
    assert_int_equal(tb_cost_at(&gap, 65536), 90000000);
    assert_int_equal(tb_cost_at(&send, 65536), 5000000);
    tb_measured_table_print(points, 1, 5000, 6000, text);
    assert_string_equal(text, "0:5000:6000:1232");
    tb_measured_table_print(points, 0, 5000, 6000, text);
    assert_string_equal(text, "");
    /* As many as a table holds, and the longest numbers. */
    struct tb_measured_point many[20];
    for (int i = 0; i < 20; i++)
        many[i] = (struct tb_measured_point){i * 1e9, 1e15 + i};
    tb_measured_table_print(many, 20, 1e15, 1e15, text);
    assert_true(tb_cost_points_parse(text, &send, &receive, &gap));
    assert_int_equal(gap.count, TB_COST_POINTS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sharing_is_seen_in_the_sum),
        cmocka_unit_test(the_best_of_rounds_counts),
        cmocka_unit_test(latencies_are_divided),
        cmocka_unit_test(other_latencies_are_not),
        cmocka_unit_test(tables_rise),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
