/* The plan of a lab: addresses, feet, routes. */
#include "lab/lab_plan.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* An open cluster, one behind NAT with a gateway, one closed with a gateway, and one that nests in the first. */
static const char text[] = "clusters:\n"
                           "  - name: open\n"
                           "    hosts: [o1, o2]\n"
                           "    clusters:\n"
                           "      - name: inner\n"
                           "        hosts: [i1]\n"
                           "  - name: nat\n"
                           "    nat: true\n"
                           "    gateways: [n1]\n"
                           "    hosts: [n1, n2]\n"
                           "  - name: shut\n"
                           "    gateways: [s1]\n"
                           "    hosts: [s1, s2]\n"
                           "  - name: masked\n"
                           "    nat: true\n"
                           "    hosts: [m1, o2]\n";

struct fixture {
    struct tb_grid grid;
    struct tb_lab_plan plan;
};

static int open_fixture(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    *state = f;
    int rc = tb_grid_parse(&f->grid, text, strlen(text), "test.yaml");
    if (rc == TB_OK)
        rc = tb_lab_plan_make(&f->plan, &f->grid);
    if (rc != TB_OK)
        fprintf(stderr, "%s\n", tb_error_story());
    return rc;
}

static int close_fixture(void **state)
{
    struct fixture *f = *state;
    tb_lab_plan_close(&f->plan);
    tb_grid_close(&f->grid);
    free(f);
    return 0;
}

/* Every address and every MAC is there once, inside of its segment; names of interfaces are unique where they meet. */
static void addresses(void **state)
{
    struct fixture *f = *state;
    const struct tb_lab_plan *plan = &f->plan;
    for (uint32_t i = 0; i < plan->foot_count; i++) {
        const struct tb_lab_plan_foot *a = &plan->feet[i];
        const struct tb_lab_plan_segment *segment = &plan->segments[a->segment];
        assert_int_equal(a->address >> (32 - segment->prefix), segment->subnet >> (32 - segment->prefix));
        assert_int_equal(a->mac[0] & 3, 2); /* local, to one */
        for (uint32_t k = 0; k < i; k++) {
            const struct tb_lab_plan_foot *b = &plan->feet[k];
            assert_int_not_equal(a->address, b->address);
            assert_memory_not_equal(a->mac, b->mac, 6);
            assert_string_not_equal(a->port, b->port);
            assert_true(a->node != b->node || strcmp(a->name, b->name) != 0);
        }
    }
}

static void feet(void **state)
{
    struct fixture *f = *state;
    const struct tb_lab_plan *plan = &f->plan;
    uint32_t o2 = tb_lab_plan_node_find(plan, "o2"), n1 = tb_lab_plan_node_find(plan, "n1"),
             n2 = tb_lab_plan_node_find(plan, "n2");
    assert_int_equal(plan->nodes[o2].foot_count, 2); /* in two clusters */
    assert_false(plan->nodes[o2].forwards);
    assert_int_equal(plan->nodes[n1].foot_count, 2); /* inside and outside */
    assert_true(plan->nodes[n1].forwards);
    assert_int_equal(plan->nodes[n2].foot_count, 1);
    assert_int_equal(tb_lab_plan_node_find(plan, "nat.router"), TB_GRID_NONE);
    assert_int_equal(tb_lab_plan_node_find(plan, "shut.router"), TB_GRID_NONE);
    assert_true(plan->nodes[tb_lab_plan_node_find(plan, "open.router")].forwards);
    assert_true(plan->nodes[tb_lab_plan_node_find(plan, "masked.router")].forwards);
    assert_false(plan->nodes[tb_lab_plan_node_find(plan, "s1")].forwards);
    assert_int_equal(plan->nodes[plan->node_count - 1].role, TB_LAB_PLAN_THE_CONSOLE);
}

/* A host sees another exactly if the grid says that it reaches it. */
static void routes(void **state)
{
    struct fixture *f = *state;
    const struct tb_lab_plan *plan = &f->plan;
    struct tb_lab_plan_route seen[16];
    assert_true(plan->segment_count <= 16);
    for (uint32_t a = 0; a < f->grid.host_count; a++) {
        tb_lab_plan_routes(plan, a, TB_GRID_IPV4, seen);
        for (uint32_t b = 0; b < f->grid.host_count; b++) {
            bool is_seen = tb_lab_plan_seen(plan, seen, TB_GRID_IPV4, b) != NULL;
            if (is_seen != tb_grid_reaches(&f->grid, a, b))
                fail_msg("%s %s %s", f->grid.hosts[a].name, is_seen ? "sees" : "does not see", f->grid.hosts[b].name);
        }
    }
}

static uint32_t via(const struct tb_lab_plan *plan, const char *from, const char *to)
{
    struct tb_lab_plan_route seen[16];
    uint32_t a = tb_lab_plan_node_find(plan, from), b = tb_lab_plan_node_find(plan, to);
    tb_lab_plan_routes(plan, a, TB_GRID_IPV4, seen);
    const struct tb_lab_plan_foot *foot = tb_lab_plan_seen(plan, seen, TB_GRID_IPV4, b);
    assert_non_null(foot);
    uint32_t hop = seen[foot->segment].hop;
    return hop != TB_GRID_NONE ? plan->feet[hop].address : 0;
}

static void next_hops(void **state)
{
    struct fixture *f = *state;
    const struct tb_lab_plan *plan = &f->plan;
    struct tb_lab_plan_route seen[16];
    uint32_t n1 = tb_lab_plan_node_find(plan, "n1"), o = tb_lab_plan_node_find(plan, "open.router");
    assert_int_equal(via(plan, "n2", "n1"), 0);
    assert_int_equal(via(plan, "n2", "console"), plan->feet[plan->nodes[n1].first_foot].address);
    assert_int_equal(via(plan, "i1", "o1"),
                     tb_lab_plan_foot_find(plan, tb_lab_plan_node_find(plan, "inner.router"), 2)->address);
    assert_int_equal(via(plan, "s1", "o1"), tb_lab_plan_foot_find(plan, o, 0)->address);
    tb_lab_plan_routes(plan, tb_lab_plan_node_find(plan, "n2"), TB_GRID_IPV4, seen);
    assert_int_equal(tb_lab_plan_default(plan, seen), plan->nodes[n1].first_foot);
    tb_lab_plan_routes(plan, tb_lab_plan_node_find(plan, "o1"), TB_GRID_IPV4, seen); /* one hop up, another down */
    assert_int_equal(tb_lab_plan_default(plan, seen), TB_GRID_NONE);
    tb_lab_plan_routes(plan, tb_lab_plan_node_find(plan, "s2"), TB_GRID_IPV4, seen); /* nowhere */
    assert_int_equal(tb_lab_plan_default(plan, seen), TB_GRID_NONE);
}

static void limits(void **state)
{
    struct tb_lab_plan plan;
    struct tb_grid grid = {.file = (char *)"test.yaml", .cluster_count = TB_LAB_PLAN_CLUSTERS_LIMIT + 1};
    assert_int_equal(tb_lab_plan_make(&plan, &grid), TB_ERR_LIMIT);
    assert_non_null(strstr(tb_error_story(), "251"));
    uint32_t count = TB_LAB_PLAN_PORTS_LIMIT + 1;
    struct tb_grid_host *hosts = calloc(count, sizeof *hosts);
    uint32_t *members = calloc(count, sizeof *members);
    for (uint32_t i = 0; i < count; i++) {
        snprintf(hosts[i].name, sizeof hosts[i].name, "h%u", i);
        members[i] = i;
    }
    struct tb_grid_cluster cluster = {.name = "crowd",
                                      .site = TB_GRID_NONE,
                                      .parent = TB_GRID_NONE,
                                      .ip = TB_GRID_IPV4,
                                      .host_count = count,
                                      .hosts = members};
    grid = (struct tb_grid){
        .file = (char *)"test.yaml", .cluster_count = 1, .host_count = count, .clusters = &cluster, .hosts = hosts};
    assert_int_equal(tb_lab_plan_make(&plan, &grid), TB_ERR_LIMIT);
    assert_non_null(strstr(tb_error_story(), "crowd"));
    grid.host_count = cluster.host_count = 1;
    strcpy(hosts[0].name, TB_LAB_PLAN_CONSOLE);
    assert_int_equal(tb_lab_plan_make(&plan, &grid), TB_ERR_ARGUMENT);
    assert_non_null(strstr(tb_error_story(), TB_LAB_PLAN_CONSOLE));
    strcpy(hosts[0].name, "localhost");
    assert_int_equal(tb_lab_plan_make(&plan, &grid), TB_ERR_ARGUMENT);
    assert_non_null(strstr(tb_error_story(), "localhost"));
    free(hosts);
    free(members);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test_setup_teardown(addresses, open_fixture, close_fixture),
                                       cmocka_unit_test_setup_teardown(feet, open_fixture, close_fixture),
                                       cmocka_unit_test_setup_teardown(routes, open_fixture, close_fixture),
                                       cmocka_unit_test_setup_teardown(next_hops, open_fixture, close_fixture)};
    const struct CMUnitTest others[] = {cmocka_unit_test(limits)};
    int bad = cmocka_run_group_tests(tests, NULL, NULL);
    return bad + cmocka_run_group_tests(others, NULL, NULL);
}
