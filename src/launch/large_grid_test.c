/* Grids of thousands of clusters: what a job on a few of their hosts looks at, and whether one could run on all. */
#include "launch/job_plan.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define CLUSTERS 4000u

struct world {
    struct tb_grid grid;
    struct tb_options options;
    struct tb_job_plan plan;
    unsigned notes;
    char note[512];
};

static void note(void *context, const char *text)
{
    struct world *w = context;
    w->notes++;
    snprintf(w->note, sizeof w->note, "%s", text);
}

/* The clusters are made by a function of their numbers. */
static void grid_make(struct tb_grid *grid, uint32_t clusters, int (*print)(char *to, uint32_t i), const char *rest)
{
    char *text = malloc(300 * (size_t)clusters + strlen(rest) + 100), *at = text;
    assert_non_null(text);
    at += sprintf(at, "clusters:\n");
    for (uint32_t i = 0; i < clusters; i++)
        at += print(at, i);
    memcpy(at, rest, strlen(rest) + 1);
    if (tb_grid_parse(grid, text, strlen(text), "g.yaml") != TB_OK)
        fail_msg("%s", tb_error_story());
    free(text);
}

static int make(struct world *w, uint32_t clusters, int (*print)(char *to, uint32_t i), char **words)
{
    memset(w, 0, sizeof *w);
    grid_make(&w->grid, clusters, print, "");
    assert_int_equal(tb_param_load(), TB_OK);
    assert_int_equal(tb_options_parse(&w->options, words), TB_OK);
    w->options.grid = &w->grid;
    w->plan.options = &w->options;
    return tb_job_plan_open(&w->plan, note, w);
}

static void unmake(struct world *w)
{
    free(w->plan.missing);
    tb_job_plan_close(&w->plan);
    tb_options_close(&w->options);
    tb_grid_close(&w->grid);
}

static uint32_t find(const struct world *w, const char *name)
{
    for (uint32_t i = 0; i < w->plan.placement.book.host_count; i++)
        if (strcmp(w->plan.placement.book.hosts[i].name, name) == 0)
            return i;
    return TB_GRID_NONE;
}

static int closed(char *to, uint32_t i)
{
    return sprintf(to, "- {name: c%u, hosts: ['g%u:0', 'h%u_[1-3]:1'], gateways: g%u, uplink: {bandwidth: %u}}\n", i, i,
                   i, i, 1 + i % 7);
}

static int opened(char *to, uint32_t i)
{
    return sprintf(to, "- {name: c%u, hosts: ['h%u_[1-2]:1']}\n", i, i);
}

/* The first cluster can be reached by nobody. */
static int shut(char *to, uint32_t i)
{
    return sprintf(to, "- {name: c%u, hosts: ['h%u_[1-2]:1']%s}\n", i, i, i < 2 ? ", gateways: []" : "");
}

static int ported(char *to, uint32_t i)
{
    int length = sprintf(to, "- name: c%u\n  hosts:\n", i);
    for (uint32_t k = 0; k < 2; k++)
        length += sprintf(to + length, "  - {name: h%u_%u, slots: 1, bandwidth: %u}\n", i, k, 1 + k);
    return length;
}

/* Two clusters with many sorts of hosts. */
static int crowded(char *to, uint32_t i)
{
    if (i == 0 || i == 1500)
        return sprintf(to, "- name: c%u\n  hosts:\n  - {name: h%u, slots: 1, bandwidth: %u}\n", i, i, i + 1);
    return sprintf(to, "  - {name: h%u, slots: 1, bandwidth: %u}\n", i, i + 1);
}

static void a_job_looks_at_what_it_needs(void **state)
{
    struct world w;
    struct tb_cost_head *costs;
    struct tb_host_routes routes;
    char *words[] = {(char *)"--grid", (char *)"g.yaml", (char *)"-H", (char *)"h5_1,h3999_2", (char *)"x", NULL};
    if (make(&w, CLUSTERS, closed, words) != TB_OK)
        fail_msg("%s", tb_error_story());
    assert_int_equal(w.plan.placement.book.ranks, 2);
    assert_int_equal(w.plan.placement.book.host_count, 4);
    assert_true(w.plan.grid->connectivity.classes.class_count <= 12);
    assert_int_equal(w.plan.grid->parents[find(&w, "h5_1")], find(&w, "g5"));
    assert_int_equal(tb_grid_plan_routes(w.plan.grid, &w.plan.placement, find(&w, "h5_1"), &routes), TB_OK);
    const struct tb_host_route *route = tb_host_routes_to(&routes, &w.plan.placement.book, find(&w, "h3999_2"));
    assert_int_equal(route->means, TB_HOST_ROUTE_RELAYED);
    assert_int_equal(route->hops[0], find(&w, "g5"));
    tb_host_routes_close(&routes);
    /* The gateway may be missed where it is no use, and nowhere else. */
    assert_false(
        tb_grid_plan_can_miss(w.plan.grid, &w.options, &w.plan.placement, tb_grid_host_find(&w.grid, "g3999")));
    /* What ways cost: places of all, kinds of those that take part. */
    assert_int_equal(tb_job_plan_make_costs(&w.plan, &costs), TB_OK);
    assert_int_equal(costs->place_count, CLUSTERS + 1);
    assert_true(costs->kind_count <= 12 && costs->bytes < 60 * CLUSTERS);
    struct tb_cost_table table;
    assert_int_equal(tb_cost_table_view(&table, costs, costs->bytes), TB_OK);
    assert_int_equal(tb_cost_table_check(&table, w.plan.placement.book.host_count), TB_OK);
    free(costs);
    unmake(&w);
}

static void ranks_on_the_first_hosts(void **state)
{
    struct world w;
    char *words[] = {(char *)"-n", (char *)"5", (char *)"x", NULL};
    if (make(&w, CLUSTERS, opened, words) != TB_OK)
        fail_msg("%s", tb_error_story());
    assert_int_equal(w.plan.placement.book.host_count, 5);
    assert_true(w.plan.grid->connectivity.classes.class_count <= 8);
    unmake(&w);
}

/* When hosts are left out, others get their ranks, which were not looked at before. */
static void hosts_that_cannot_be_started_are_left_out(void **state)
{
    struct world w;
    char *words[] = {
        (char *)"--grid", (char *)"g.yaml", (char *)"--allow-missing", (char *)"-n", (char *)"4", (char *)"x", NULL};
    if (make(&w, CLUSTERS, shut, words) != TB_OK)
        fail_msg("%s", tb_error_story());
    assert_int_equal(w.plan.placement.book.host_count, 4);
    assert_string_equal(w.plan.placement.book.hosts[0].name, "h2_1");
    assert_string_equal(w.plan.placement.book.hosts[3].name, "h3_2");
    assert_int_equal(w.notes, 2);
    unmake(&w);
}

static void kinds_count_where_ranks_are(void **state)
{
    struct world w;
    char *few[] = {(char *)"--grid", (char *)"g.yaml", (char *)"-H", (char *)"h7,h2999", (char *)"x", NULL},
         *all[] = {(char *)"x", NULL};
    if (make(&w, 3000, crowded, few) != TB_OK)
        fail_msg("%s", tb_error_story());
    assert_int_equal(w.grid.cluster_count, 2);
    assert_int_equal(w.plan.placement.book.host_count, 2);
    assert_true(w.plan.grid->connectivity.classes.class_count <= 8);
    unmake(&w);
    assert_int_equal(make(&w, 3000, crowded, all), TB_ERR_LIMIT);
    assert_non_null(strstr(tb_error_story(), "3000 that would take part"));
    unmake(&w);
}

static void check(uint32_t clusters, int (*print)(char *to, uint32_t i), const char *rest, int expected, bool by_hand,
                  const char *story)
{
    struct tb_grid grid;
    struct tb_start_place start;
    grid_make(&grid, clusters, print, rest);
    int rc = tb_grid_check(&grid, true, &start);
    if (rc != expected)
        fail_msg("%d: %s", rc, tb_error_story());
    if (rc == TB_OK)
        assert_int_equal(start.by_hand, by_hand);
    else if (story != NULL)
        assert_non_null(strstr(tb_error_story(), story));
    tb_grid_close(&grid);
}

/* With ranks everywhere, from wherever it can be started. */
static void large_grids_are_checked(void **state)
{
    check(CLUSTERS, closed, "", TB_OK, false, NULL);
    check(CLUSTERS, opened, "", TB_OK, false, NULL);
    check(CLUSTERS, ported, "", TB_OK, false, NULL);
    check(CLUSTERS, opened, "links: [{from: c5, to: c6, blocked: true}, {from: c9, to: c8, latency: 7}]\n", TB_OK,
          false, NULL);
    check(CLUSTERS, shut, "", TB_ERR_UNSUPPORTED, false, "hosts h0_1 and h1_1 both carry ranks");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_job_looks_at_what_it_needs),
        cmocka_unit_test(ranks_on_the_first_hosts),
        cmocka_unit_test(hosts_that_cannot_be_started_are_left_out),
        cmocka_unit_test(kinds_count_where_ranks_are),
        cmocka_unit_test(large_grids_are_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
