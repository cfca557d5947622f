#include "topology/grid.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void must_parse(struct tb_grid *grid, const char *text)
{
    if (tb_grid_parse(grid, text, strlen(text), "g.yaml") != TB_OK)
        fail_msg("%s", tb_error_story());
}

/* Both directions at once: "a>b" is so from a to b but not the reverse, "a=b" both, "a/b" neither. */
static void expect_of(const struct tb_grid *grid, const char *statement,
                      bool (*is_so)(const struct tb_grid *, uint32_t, uint32_t))
{
    size_t length = strcspn(statement, ">=/");
    char from[64];
    snprintf(from, sizeof from, "%.*s", (int)length, statement);
    uint32_t a = tb_grid_host_find(grid, from), b = tb_grid_host_find(grid, statement + length + 1);
    assert_true(a != TB_GRID_NONE && b != TB_GRID_NONE);
    char sign = statement[length];
    if (is_so(grid, a, b) != (sign != '/') || is_so(grid, b, a) != (sign == '='))
        fail_msg("not %s", statement);
}

static void expect(const struct tb_grid *grid, const char *statement)
{
    expect_of(grid, statement, tb_grid_reaches);
}

/* What the fast search says must be what asking for all pairs says. */
static void check_first(const struct tb_grid *grid, bool expected)
{
    uint32_t from = TB_GRID_NONE, to = TB_GRID_NONE, low = TB_GRID_NONE, high = TB_GRID_NONE;
    bool found = tb_grid_first_unreachable(grid, &from, &to), any = false;
    for (uint32_t i = 0; i < grid->host_count && !any; i++) {
        for (uint32_t j = i + 1; j < grid->host_count && !any; j++) {
            if (grid->hosts[i].slots == 0 || grid->hosts[j].slots == 0)
                continue;
            any = !tb_grid_reaches(grid, i, j) || !tb_grid_reaches(grid, j, i);
            low = i;
            high = j;
        }
    }
    assert_int_equal(found, any);
    assert_int_equal(found, expected);
    if (found) {
        assert_int_equal(from < to ? from : to, low);
        assert_int_equal(from < to ? to : from, high);
        assert_false(tb_grid_reaches(grid, from, to));
    }
}

/* Figure 5 of the MPITH thesis. */
static void closed_clusters_connect_outward(void **state)
{
    struct tb_grid grid;
    must_parse(&grid, "clusters:\n"
                      "- {name: mercury, hosts: [m1, m2]}\n"
                      "- {name: venus, hosts: [v1, v2, v3], gateways: [v1], nat: true}\n"
                      "- {name: jupiter, hosts: [j1, j2], gateways: [j1], nat: true}\n");
    static const char *const facts[] = {"m1=m2", "m1=v1", "v2>m1", "v1=j1", "v2>j1",
                                        "v2/j2", "v2=v3", "v1=v2", "m1=m1"};
    for (size_t i = 0; i < sizeof facts / sizeof facts[0]; i++)
        expect(&grid, facts[i]);
    check_first(&grid, true);
    tb_grid_close(&grid);
}

static void gateways_without_nat_shut_the_others_in(void **state)
{
    struct tb_grid grid;
    must_parse(&grid, "clusters:\n"
                      "- {name: a, hosts: [a1, a2, a3], gateways: [a1, a2]}\n"
                      "- {name: b, hosts: [b1, b2], gateways: []}\n"
                      "- {name: c, hosts: [c1, c2], nat: true}\n"
                      "- {name: d, hosts: [d1, d2]}\n"
                      "- {name: e, hosts: [e1], gateways: [], nat: true}\n");
    static const char *const facts[] = {"a1=d1", "a2=d2", "a3/d1", "a1=a3", "b1/d1",
                                        "b1=b2", "c1>d1", "c1=c2", "e1>a1", "e1/c1"};
    for (size_t i = 0; i < sizeof facts / sizeof facts[0]; i++)
        expect(&grid, facts[i]);
    check_first(&grid, true);
    tb_grid_close(&grid);
}

/* A chain of clusters that only shared hosts join. */
static void hosts_have_a_foot_in_each_cluster(void **state)
{
    struct tb_grid grid;
    must_parse(&grid, "clusters:\n"
                      "- {name: a, hosts: [a1, ab], gateways: []}\n"
                      "- {name: b, hosts: [ab, b1, bc], gateways: []}\n"
                      "- {name: c, hosts: [bc, c1], gateways: []}\n");
    static const char *const facts[] = {"a1=ab", "ab=b1", "ab=bc", "bc=c1", "a1/b1", "a1/bc", "b1/c1", "ab/c1"};
    for (size_t i = 0; i < sizeof facts / sizeof facts[0]; i++)
        expect(&grid, facts[i]);
    check_first(&grid, true);
    tb_grid_close(&grid);
}

static void nesting_is_climbed_step_by_step(void **state)
{
    struct tb_grid grid;
    must_parse(&grid, "clusters:\n"
                      "- name: campus\n"
                      "  hosts: [front, mail]\n"
                      "  gateways: [front]\n"
                      "  nat: true\n"
                      "  clusters:\n"
                      "  - {name: lab, hosts: [front, l1], gateways: [front]}\n"
                      "  - {name: room, hosts: [r1]}\n"
                      "  - {name: vault, hosts: [v1, v2], gateways: [v1], nat: true}\n"
                      "- {name: world, hosts: [w1]}\n");
    static const char *const facts[] = {"front=w1", "mail>w1", "mail=front", "l1=front", "l1/mail", "l1/w1",
                                        "r1=mail",  "r1>w1",   "v2>r1",      "v1=r1",    "v2>w1",   "v1>w1"};
    for (size_t i = 0; i < sizeof facts / sizeof facts[0]; i++)
        expect(&grid, facts[i]);
    check_first(&grid, true);
    tb_grid_close(&grid);
}

static void blocked_links_stop_connections(void **state)
{
    struct tb_grid grid;
    must_parse(&grid, "clusters:\n"
                      "- {name: a, hosts: [a1, a2], gateways: [a1, a2]}\n"
                      "- {name: b, hosts: [b1]}\n"
                      "- name: c\n"
                      "  hosts: [c1]\n"
                      "  clusters: [{name: d, hosts: [d1]}, {name: e, hosts: [e1]}]\n"
                      "links:\n"
                      "- {from: a, to: b, blocked: true}\n"
                      "- {from: b, to: a}\n"
                      "- {from: a2, to: b}\n"
                      "- {from: a, to: c, blocked: true}\n"
                      "- {from: d, to: c, blocked: true}\n"
                      "- {from: c, to: d}\n");
    static const char *const facts[] = {"b1>a1", "a2=b1", "a1/c1", "c1>d1", "e1>d1",
                                        "c1=e1", "b1>d1", "b1=e1", "a1/e1"};
    for (size_t i = 0; i < sizeof facts / sizeof facts[0]; i++)
        expect(&grid, facts[i]);
    check_first(&grid, true);
    tb_grid_close(&grid);
}

static void what_the_file_says_is_not_supposed(void **state)
{
    struct tb_grid grid;
    must_parse(&grid, "clusters:\n"
                      "- {name: a, hosts: [a1, a2]}\n"
                      "- {name: b, hosts: [b1, two]}\n"
                      "- {name: c, hosts: [c1, two]}\n"
                      "- {name: said, hosts: [s1], nat: false}\n"
                      "- {name: nat, hosts: [n1], nat: true}\n"
                      "- {name: gated, hosts: [g1, g2], gateways: [g1]}\n"
                      "- name: outer\n"
                      "  hosts: [o1]\n"
                      "  gateways: [o1]\n"
                      "  clusters: [{name: d, hosts: [d1]}, {name: e, hosts: [e1]}]\n"
                      "- {name: x, hosts: [x1]}\n"
                      "- {name: y, hosts: [y1]}\n"
                      "- {name: z, hosts: [z1]}\n"
                      "links:\n"
                      "- {from: a, to: b, bandwidth: 10}\n"
                      "- {from: x, to: y, blocked: true}\n"
                      "- {from: y, to: x}\n"
                      "- {from: x, to: z, blocked: false}\n");
    static const char *const facts[] = {"a1/a1",  "a1/a2", "a1=b1", "a1=two", "b1/two", "c1/two", "b1=c1",
                                        "a1/s1",  "a1/n1", "a1/g1", "a1/g2",  "d1=e1",  "d1=o1",  "d1/a1",
                                        "two=a2", "x1/y1", "x1/z1", "y1=z1",  "x1=a1"};
    for (size_t i = 0; i < sizeof facts / sizeof facts[0]; i++)
        expect_of(&grid, facts[i], tb_grid_supposes);
    tb_grid_close(&grid);
}

static void hosts_without_slots_do_not_count(void **state)
{
    struct tb_grid grid;
    must_parse(&grid, "clusters: [{name: a, hosts: ['a1:2', 'a2:0'], gateways: [a1]}, {name: b, hosts: [b1]}]");
    expect(&grid, "a2/b1");
    check_first(&grid, false);
    tb_grid_close(&grid);
    must_parse(&grid, "clusters: [{name: a, hosts: [a1]}]");
    check_first(&grid, false);
    tb_grid_close(&grid);
}

/* Ten thousand hosts in a hundred clusters: asking for each pair would take minutes. */
static void large_grids_are_searched_by_kind(void **state)
{
    char *text = malloc(1 << 16), *at = text + sprintf(text, "clusters:\n");
    for (int i = 0; i < 100; i++)
        at += sprintf(at, "- {name: c%d, hosts: ['h%dx[1-100]'], gateways: [h%dx1], nat: %s}\n", i, i, i,
                      i == 99 ? "true" : "false");
    for (char *gate = text; (gate = strstr(gate, ", gateways")) != NULL && strstr(gate + 1, ", gateways") != NULL;)
        memset(gate, ' ', strcspn(gate, "]") + 1);
    struct tb_grid grid;
    uint32_t from, to;
    must_parse(&grid, text);
    assert_int_equal(grid.host_count, 10000);
    assert_true(tb_grid_first_unreachable(&grid, &from, &to));
    assert_string_equal(grid.hosts[from].name, "h0x1");
    assert_string_equal(grid.hosts[to].name, "h99x2");
    tb_grid_close(&grid);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(closed_clusters_connect_outward),   cmocka_unit_test(gateways_without_nat_shut_the_others_in),
        cmocka_unit_test(hosts_have_a_foot_in_each_cluster), cmocka_unit_test(nesting_is_climbed_step_by_step),
        cmocka_unit_test(blocked_links_stop_connections),    cmocka_unit_test(hosts_without_slots_do_not_count),
        cmocka_unit_test(large_grids_are_searched_by_kind),  cmocka_unit_test(what_the_file_says_is_not_supposed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
