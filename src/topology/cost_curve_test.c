#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "topology/cost_parameters.h"

static void curves_are_straight_between_points(void **state)
{
    struct tb_cost_curve c = {.count = 3, .points = {{0, 10}, {100, 110}, {200, 410}}};
    assert_int_equal(tb_cost_at(&c, 0), 10);
    assert_int_equal(tb_cost_at(&c, 50), 60);
    assert_int_equal(tb_cost_at(&c, 100), 110);
    assert_int_equal(tb_cost_at(&c, 150), 260);
    assert_int_equal(tb_cost_at(&c, 300), 710);
    assert_int_equal(tb_cost_at(&c, UINT64_MAX), TB_COST_NEVER);
    c.points[2].time = 50;
    assert_int_equal(tb_cost_at(&c, 150), 80);
    assert_int_equal(tb_cost_at(&c, 5000), 50);
    assert_int_equal(tb_cost_least(&c), 10);
    c.points[2].time = 5;
    assert_int_equal(tb_cost_least(&c), 5);
    c = tb_cost_line(7, 0);
    assert_int_equal(tb_cost_at(&c, 1 << 30), 7);
}

static void tables_and_links_are_checked(void **state)
{
    static const char *const bad_tables[] = {"1:2:3:4", "0:1:2", "0:1:2:3,0:1:2:3", "0:1:2:x", "0:1:2:-3", "0:1:2:3;"};
    static const char *const bad_links[] = {"a:1",      "a/b:0:1",   "a/:1:1",      "/b:1:1",    "a/b:1:1x",
                                            "a/b:-1:1", "a>b/c:1:1", "a/b:1:1:hub", "a:1:1:hubs"};
    assert_int_equal(tb_param_load(), TB_OK);
    for (size_t i = 0; i < sizeof bad_tables / sizeof bad_tables[0]; i++) {
        assert_int_equal(tb_param_set("ethernet_table", bad_tables[i], TB_PARAM_LAUNCHER), TB_OK);
        assert_int_equal(tb_cost_parameters_check(), TB_ERR_ARGUMENT);
        assert_non_null(strstr(tb_error_story(), "ethernet_table"));
    }
    assert_int_equal(tb_param_set("ethernet_table", "0:4000:4000:0,1000:5000:5000:90000", TB_PARAM_LAUNCHER), TB_OK);
    assert_int_equal(tb_cost_parameters_check(), TB_OK);
    for (size_t i = 0; i < sizeof bad_links / sizeof bad_links[0]; i++) {
        assert_int_equal(tb_param_set("links", bad_links[i], TB_PARAM_LAUNCHER), TB_OK);
        assert_int_equal(tb_cost_parameters_check(), TB_ERR_ARGUMENT);
    }
    assert_int_equal(tb_param_load(), TB_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(curves_are_straight_between_points),
                                       cmocka_unit_test(tables_and_links_are_checked)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
