/* From a grid file to what is measured, and from figures back to the file. */
#include "topology/measure_lines.h"
#include "topology/measure_write.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define WIRE (1538.0 / 1448)

struct world {
    struct tb_grid grid;
    struct tb_grid_costs costs;
    struct tb_measure_plan plan;
    struct tb_grid_edit edit;
    char *words;
    uint32_t begun, changes, failures;
};

static void world_open(struct world *w, const char *text)
{
    memset(w, 0, sizeof *w);
    assert_int_equal(tb_param_load(), TB_OK);
    if (tb_grid_parse(&w->grid, text, strlen(text), "g.yaml") != TB_OK)
        fail_msg("%s", tb_error_story());
    assert_int_equal(tb_grid_costs_open(&w->costs, &w->grid), TB_OK);
    assert_int_equal(tb_measure_plan_open(&w->plan, &w->costs), TB_OK);
    w->edit = (struct tb_grid_edit){.file = strdup("g.yaml"), .text = strdup(text)};
}

static void world_close(struct world *w)
{
    tb_measure_plan_close(&w->plan);
    tb_grid_costs_close(&w->costs);
    tb_grid_edit_close(&w->edit);
    tb_grid_close(&w->grid);
    free(w->words);
}

static void expect_plan(struct world *w, uint32_t tasks, const char *lines, const char *hosts)
{
    char *text, *names;
    assert_int_equal(tb_measure_plan_staff(&w->plan), tasks);
    assert_int_equal(tb_measure_lines_print(&w->plan, 0, UINT32_MAX, &text, &names), TB_OK);
    char *to = text; /* without rates, of which nobody knows the last digit */
    for (const char *at = text; *at != 0;) {
        size_t digits = at > text && at[-1] == ' ' ? strspn(at, "0123456789") : 0;
        *to++ = digits > 5 ? '#' : *at;
        at += digits > 5 ? digits : 1;
    }
    *to = 0;
    assert_string_equal(text, lines);
    assert_string_equal(names, hosts);
    free(text);
    free(names);
}

static void write_all(struct world *w)
{
    size_t size;
    FILE *words = open_memstream(&w->words, &size);
    struct tb_measure_writer writer = {.plan = &w->plan, .edit = &w->edit, .words = words, .tables = true};
    assert_non_null(words);
    assert_int_equal(tb_measure_write(&writer), TB_OK);
    fclose(words);
    w->changes = writer.changes;
    w->failures = writer.failures;
}

/* What ranks say of a pair: Mbit/s there and back, ms one way. Calls take 5 us each. */
static void feed_pair(struct world *w, uint32_t task, double there, double back, double ms)
{
    char line[1024];
    double gaps[2] = {16384 * 8e3 * WIRE / there, 16384 * 8e3 * WIRE / back};
    size_t at = (size_t)snprintf(line, sizeof line, "probe pair %u %.0f 5000 5000 %.0f %.0f %.0f %.0f", task,
                                 ms * 1e6 + 10000, there * 1e5, there * 1e5, back * 1e5, back * 2e5);
    for (int i = 0; i < 2; i++)
        at += (size_t)snprintf(line + at, sizeof line - at, " 3 0 9000 1024 %.1f 16384 %.1f", gaps[i] / 12, gaps[i]);
    snprintf(line + at, sizeof line - at, "\n");
    assert_true(tb_measure_lines_take(&w->plan, line, &w->begun));
    assert_true(w->plan.tasks[task].done);
}

/* Of two streams: each alone, and what part of that both get at the same time. */
static void feed_flows(struct world *w, uint32_t task, double first, double second, double part)
{
    char line[256];
    double unit = 1e6 / 8 / WIRE, a = first * unit, b = second * unit;
    snprintf(line, sizeof line, "probe flows %u %.0f %.0f %.0f %.0f %.0f %.0f %.0f %.0f\n", task, a, b, a * part,
             b * part, a, b, a * part, b * part);
    assert_true(tb_measure_lines_take(&w->plan, line, &w->begun));
    assert_true(w->plan.tasks[task].done);
}

static void expect_near(double seen, double wanted)
{
    if (fabs(seen - wanted) > 0.01 * wanted)
        fail_msg("%g instead of %g", seen, wanted);
}

#define THREE                                                                                                          \
    "# mine\nclusters:\n"                                                                                              \
    "  - {name: a, gateways: [a1], nat: true, hosts: [a1:0, a2, a3, a4]}  # home\n"                                    \
    "  - {name: b, gateways: [b1], nat: true, hosts: [b1:0, b2, b3]}\n"                                                \
    "  - name: c\n    gateways: [c1]\n    nat: true\n    hosts: [c1:0, c2, c3]\n"

static void closed_clusters_are_measured_at_their_gateways(void **state)
{
    struct world w;
    char *text, *names;
    world_open(&w, THREE);
    expect_plan(&w, 9,
                "pair 0 a2 a3\npair 1 b2 b3\npair 2 c2 c3\npair 3 a1 b1\npair 4 a1 c1\npair 5 b1 c1\n"
                "pair 6 a2 b3\npair 7 b2 c3\npair 8 c2 a4\n",
                "a1:1,a2:1,a3:1,a4:1,b1:1,b2:1,b3:1,c1:1,c2:1,c3:1");
    assert_int_equal(tb_measure_lines_print(&w.plan, 3, 4, &text, &names), TB_OK); /* one alone */
    assert_string_equal(text, "pair 3 a1 b1\n");
    assert_string_equal(names, "a1:1,b1:1");
    free(text);
    free(names);
    world_close(&w);
}

/* Six links that three lines account for. */
static void feed_links(struct world *w, double latency)
{
    assert_int_equal(tb_measure_plan_staff(&w->plan), 9);
    for (uint32_t i = 0; i < 3; i++)
        feed_pair(w, i, 94, 94, 0.05);
    for (uint32_t i = 3; i < 6; i++)
        feed_pair(w, i, 50 - i, 48 - i, latency + 0.02); /* with two agents of 10 us */
    for (uint32_t i = 6; i < 9; i++)
        feed_pair(w, i, 44, 44, latency + 0.2);
    assert_int_equal(tb_measure_plan_add_sharing(&w->plan), TB_OK);
    assert_int_equal(w->plan.count, 15);
}

static void a_shared_line_becomes_an_uplink(void **state)
{
    struct world w;
    struct tb_grid grid;
    world_open(&w, THREE);
    feed_links(&w, 10);
    /* The fastest link against the other one, by the rates in that direction. */
    expect_plan(&w, 6,
                "flows 9 a1 b1 # a1 c1 #\nflows 10 b1 a1 # c1 a1 #\n"
                "flows 11 b1 a1 # b1 c1 #\nflows 12 a1 b1 # c1 b1 #\n"
                "flows 13 c1 a1 # c1 b1 #\nflows 14 a1 c1 # b1 c1 #\n",
                "a1:1,b1:1,c1:1");
    for (uint32_t i = 9; i < 15; i++)
        feed_flows(&w, i, 47, 45, 0.5);
    write_all(&w);
    assert_int_equal(w.failures, 0);
    assert_int_equal(w.changes, 6);
    assert_int_equal(tb_grid_parse(&grid, w.edit.text, strlen(w.edit.text), "g.yaml"), TB_OK);
    assert_int_equal(grid.link_count, 0);
    for (uint32_t i = 0; i < 3; i++) {
        assert_true(grid.clusters[i].uplink.given);
        expect_near((double)grid.clusters[i].uplink.up.latency, 5e6);
        expect_near((double)grid.clusters[i].uplink.up.bandwidth, i == 0 ? 47e6 : 46e6);
        assert_non_null(grid.clusters[i].uplink.up.table);
        assert_non_null(grid.clusters[i].ethernet.table);
        expect_near((double)grid.clusters[i].ethernet.bandwidth, 94e6);
        expect_near((double)grid.clusters[i].ethernet.latency, 5e4);
    }
    assert_non_null(strstr(w.edit.text, "# mine\n"));
    assert_non_null(strstr(w.edit.text, "# home\n"));
    assert_non_null(strstr(w.words,
                           "out of a, to b and c: 47 and 45 Mbit/s alone, 23.5 and 22.5 at the same time: they "
                           "share a line\n"));
    assert_non_null(
        strstr(w.words, "between a and b: bandwidth: 47, back: 45, latency: 10, which is what the uplinks do"));
    assert_non_null(strstr(w.words, "# from a2 to b3 by 3 hops: 44 Mbit/s, 10.2 ms; the file predicts "));
    assert_non_null(strstr(w.words, "does something else use it?")); /* twice as fast in a part of the time */
    tb_grid_close(&grid);
    world_close(&w);
}

static void separate_links_stay_links(void **state)
{
    struct world w;
    struct tb_grid grid;
    world_open(&w, THREE);
    feed_links(&w, 10);
    for (uint32_t i = 9; i < 15; i++)
        feed_flows(&w, i, 47, 45, 0.97);
    write_all(&w);
    assert_int_equal(tb_grid_parse(&grid, w.edit.text, strlen(w.edit.text), "g.yaml"), TB_OK);
    assert_int_equal(grid.link_count, 6);
    for (uint32_t i = 0; i < 3; i++)
        assert_false(grid.clusters[i].uplink.given);
    for (uint32_t i = 0; i < 6; i++) {
        expect_near((double)grid.links[i].wire.latency, 10e6);
        assert_non_null(grid.links[i].wire.table);
    }
    assert_int_equal(w.changes, 6);
    tb_grid_close(&grid);
    world_close(&w);
}

/* What is unclear, or shared by some links only, or in one direction. */
static void not_everything_is_believed(void **state)
{
    struct world w;
    struct tb_grid grid;
    world_open(&w, THREE);
    feed_links(&w, 10);
    feed_flows(&w, 9, 47, 45, 0.7);
    feed_flows(&w, 10, 47, 45, 0.7);
    feed_flows(&w, 11, 47, 45, 0.5); /* b: out, but not in */
    feed_flows(&w, 12, 47, 45, 1);
    write_all(&w);
    assert_int_equal(tb_grid_parse(&grid, w.edit.text, strlen(w.edit.text), "g.yaml"), TB_OK);
    assert_false(grid.clusters[0].uplink.given);
    assert_true(grid.clusters[1].uplink.given);
    assert_false(grid.clusters[2].uplink.given);
    expect_near((double)grid.clusters[1].uplink.up.bandwidth, 46e6);
    expect_near((double)grid.clusters[1].uplink.down.bandwidth, 92e6);
    assert_int_equal(grid.clusters[1].uplink.up.latency, 0); /* two places of three say nothing of theirs */
    assert_int_equal(grid.link_count, 6);
    assert_non_null(strstr(w.words, "at the same time: unclear\n"));
    assert_non_null(strstr(w.words, "# out of c, to a and b: not measured\n"));
    tb_grid_close(&grid);
    world_close(&w);
}

/* A file with uplinks, of which one alone was seen again: it keeps its latency, and no link is invented beside it. */
static void latencies_that_cannot_be_told_stay(void **state)
{
    struct world w;
    struct tb_grid grid;
    world_open(
        &w, "clusters:\n"
            "  - {name: a, gateways: [a1], nat: true, hosts: [a1:0, a2, a3, a4], uplink: {bandwidth: 50, latency: 5}}\n"
            "  - {name: b, gateways: [b1], nat: true, hosts: [b1:0, b2, b3], uplink: {bandwidth: 50, latency: 5}}\n"
            "  - {name: c, gateways: [c1], nat: true, hosts: [c1:0, c2, c3], uplink: {bandwidth: 50, latency: 5}}\n");
    feed_links(&w, 10);
    feed_flows(&w, 9, 47, 45, 0.5);
    feed_flows(&w, 10, 47, 45, 0.5);
    for (uint32_t i = 11; i < 15; i++)
        feed_flows(&w, i, 47, 45, 0.7);
    write_all(&w);
    assert_int_equal(tb_grid_parse(&grid, w.edit.text, strlen(w.edit.text), "g.yaml"), TB_OK);
    for (uint32_t i = 0; i < 3; i++)
        expect_near((double)grid.clusters[i].uplink.up.latency, 5e6);
    assert_int_equal(grid.link_count, 0);
    tb_grid_close(&grid);
    world_close(&w);
}

static void hosts_that_are_missing_are_replaced(void **state)
{
    struct world w;
    world_open(&w, THREE);
    assert_int_equal(tb_measure_plan_staff(&w.plan), 9);
    feed_pair(&w, 1, 94, 94, 0.05);
    assert_true(tb_measure_lines_take(&w.plan, "probe absent a2\n", &w.begun));
    assert_true(tb_measure_lines_take(&w.plan, "probe absent c1\n", &w.begun));
    assert_true(tb_measure_lines_take(&w.plan, "probe absent nobody\n", &w.begun));
    expect_plan(&w, 6, "pair 0 a3 a4\npair 2 c2 c3\npair 3 a1 b1\npair 6 a3 b3\npair 7 b2 c3\npair 8 c2 a4\n",
                "a1:1,a3:1,a4:1,b1:1,b2:1,b3:1,c2:1,c3:1");
    assert_true(tb_measure_lines_take(&w.plan, "probe begin 3\n", &w.begun));
    assert_int_equal(w.begun, 3);
    w.plan.tasks[3].why = "the job has failed"; /* and is not tried again */
    assert_int_equal(tb_measure_plan_staff(&w.plan), 5);
    write_all(&w);
    assert_non_null(strstr(w.words, "# between a and b: not measured: the job has failed\n"));
    assert_non_null(strstr(w.words, "# between a and c: not measured: no host of the one"));
    assert_int_equal(w.changes, 1);
    assert_int_equal(w.failures, 6);
    world_close(&w);
}

static void lines_that_make_no_sense_are_not_taken(void **state)
{
    static const char *const lines[] = {
        "probe pair 0 1 2\n",
        "probe pair 0 1 1 1 1 1 1 1 3 0 9 1024 9 16384 9\n",
        "probe pair 0 1 1 1 1 1 1 1 3 0 9 1024 9 16384 9 2 0 9 1024 0\n",
        "probe pair 0 1 1 1 1 1 1 1 3 0 9 1024 9 16384 -9 2 0 9 1024 5\n",
        "probe pair 0 1 1 1 1 1 1 1 13 0 9 1024 9 16384 9 2 0 9 1024 5\n",
        "probe pair 0 1 1 1 1 1 1 1 2 5 9 1024 9 2 0 9 1024 5\n",
        "probe pair 0 1 1 1 1 1 1 1 2 0 nan 1024 nan 2 0 9 1024 5\n",
        "probe pair 99 1 1 1 1 1 1 1 2 0 9 1024 9 2 0 9 1024 5\n",
        "probe flows 0 1 2 3 4 5 6 7 8\n",
        "probe begin 77\n",
    };
    struct world w;
    world_open(&w, THREE);
    tb_measure_plan_staff(&w.plan);
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        assert_true(tb_measure_lines_take(&w.plan, lines[i], &w.begun));
        assert_int_equal(w.begun, TB_GRID_NONE);
        assert_false(w.plan.tasks[0].done);
    }
    assert_false(tb_measure_lines_take(&w.plan, "hello\n", &w.begun));
    assert_false(tb_measure_lines_take(&w.plan, "probe pair\n", &w.begun));
    world_close(&w);
}

/* Links of gateways and of sites, clusters in one another. */
static void every_link_of_the_file_is_measured(void **state)
{
    struct world w;
    world_open(&w, "sites:\n"
                   "  - name: Delft\n    clusters:\n"
                   "      - name: d\n        hosts: [d1, d2]\n        clusters:\n"
                   "          - {name: i, hosts: [i1, i2], gateways: [i1], uplink: {bandwidth: 5}}\n"
                   "  - {name: Leiden, clusters: [{name: l, hosts: [l1]}]}\n"
                   "clusters:\n  - {name: g, hosts: [g1:0, g2:0, g3], gateways: [g1, g2]}\n"
                   "links:\n  - {from: Delft, to: Leiden, latency: 3}\n  - {from: g1, to: d, latency: 4}\n"
                   "  - {from: g2, to: d, latency: 20}\n");
    expect_plan(&w, 9,
                "pair 0 d1 d2\npair 1 i2 i1\npair 2 g3 g1\npair 3 d1 l1\npair 4 g1 d1\npair 5 g2 d1\npair 6 l1 g1\n"
                "pair 7 i1 d1\npair 8 g3 d2\n",
                "d1:1,d2:1,i1:1,i2:1,l1:1,g1:1,g2:1,g3:1");
    feed_pair(&w, 3, 30, 30, 3.06); /* with two networks of 20 us and two agents of 10 us */
    feed_pair(&w, 4, 40, 40, 4.04);
    feed_pair(&w, 5, 5, 5, 20.04);
    feed_pair(&w, 7, 90, 50, 2.02);
    write_all(&w);
    assert_non_null(strstr(w.edit.text, "{from: Delft, to: Leiden, latency: 3, bandwidth: 30, table: \"0:5000:5000:"));
    assert_non_null(strstr(w.edit.text, "{from: g1, to: d, latency: 4, bandwidth: 40, table: \"0:"));
    assert_non_null(strstr(w.edit.text, "{from: g2, to: d, latency: 20, bandwidth: 5, table: \"0:"));
    assert_non_null(strstr(w.edit.text, "uplink: {bandwidth: 90, latency: 2, table: \"0:"));
    assert_non_null(strstr(w.edit.text, "downlink: {bandwidth: 50, latency: 2, table: \"0:"));
    world_close(&w);
}

/* With one other cluster only it cannot be seen what is the uplink's, unless the file says that there is nothing else.
 */
static void an_uplink_that_the_file_has(void **state)
{
    struct world w;
    world_open(&w, "clusters:\n  - {name: a, hosts: [a1], uplink: {bandwidth: 7}}\n  - {name: b, hosts: [b1]}\n");
    expect_plan(&w, 1, "pair 0 a1 b1\n", "a1:1,b1:1");
    feed_pair(&w, 0, 30, 20, 5.06);
    write_all(&w);
    assert_non_null(strstr(w.edit.text, "{name: a, hosts: [a1], uplink: {bandwidth: 30, latency: 5, table: \"0:"));
    assert_non_null(strstr(w.edit.text, "downlink: {bandwidth: 20, latency: 5, "));
    assert_null(strstr(w.edit.text, "links:"));
    world_close(&w);
    world_open(&w, "clusters:\n  - {name: a, hosts: [a1], uplink: {bandwidth: 7}}\n"
                   "  - {name: b, hosts: [b1], uplink: {bandwidth: 9}}\n");
    tb_measure_plan_staff(&w.plan);
    feed_pair(&w, 0, 30, 20, 5.06);
    write_all(&w);
    assert_int_equal(w.changes, 0);
    assert_int_equal(w.failures, 1);
    assert_non_null(strstr(w.words, "# between a and b: not written: the file has uplinks there"));
    world_close(&w);
}

/* Clusters of a site share its line, but not what is between themselves. */
static void a_site_has_a_line(void **state)
{
    struct world w;
    world_open(
        &w, "sites:\n  - name: Delft # home\n    clusters: [{name: a, hosts: [a1, a2]}, {name: b, hosts: [b1, b2]}]\n"
            "clusters: [{name: c, hosts: c1}, {name: d, hosts: d1}]\n");
    assert_int_equal(tb_measure_plan_staff(&w.plan), 8); /* two insides, six pairs */
    feed_pair(&w, 2, 100, 100, 1.06);                    /* a, b */
    for (uint32_t i = 3; i < 7; i++)
        feed_pair(&w, i, 50, 50, 10.06); /* from these two to c and d */
    feed_pair(&w, 7, 90, 90, 10.06);
    assert_int_equal(tb_measure_plan_add_sharing(&w.plan), TB_OK);
    assert_int_equal(tb_measure_plan_staff(&w.plan), 2 + w.plan.count - 8);
    bool site = false;
    for (uint32_t i = 8; i < w.plan.count; i++) {
        const struct tb_measure_task *task = &w.plan.tasks[i];
        const struct tb_measure_task *first = &w.plan.tasks[task->links[0]], *second = &w.plan.tasks[task->links[1]];
        bool of_site = task->scope.cluster == TB_GRID_NONE;
        if (of_site)
            assert_true(first->from != second->from && first->to != second->to);
        if (task->scope.cluster < 2)
            assert_int_equal(task->links[0], 2);
        site = site || of_site;
        feed_flows(&w, i, first->rates[0], second->rates[0], of_site ? 0.5 : 1);
    }
    assert_true(site);
    write_all(&w);
    assert_non_null(strstr(w.edit.text, "  - name: Delft # home\n    uplink: {bandwidth: 50, table: \"0:"));
    assert_non_null(strstr(w.edit.text, "{from: a, to: b, bandwidth: 100, latency: 1, table: \"0:"));
    assert_non_null(strstr(w.edit.text, "{from: a, to: c, bandwidth: 50, latency: 10, table: \"0:"));
    assert_non_null(strstr(w.words, "# out of Delft, to c and d: 50 and 50 Mbit/s alone"));
    world_close(&w);
}

/* The number of measurements is bounded. */
static void large_grids_are_measured_in_part(void **state)
{
    struct world w;
    char *text = NULL;
    size_t size;
    FILE *file = open_memstream(&text, &size);
    fprintf(file, "clusters:\n");
    for (int i = 0; i < 300; i++)
        fprintf(file, "  - {name: c%d, hosts: [c%da, c%db]}\n", i, i, i);
    fclose(file);
    world_open(&w, text);
    assert_int_equal(w.plan.count, TB_MEASURE_CLUSTERS + TB_MEASURE_LINKS);
    assert_int_equal(w.plan.left_out, 300 + 299 - TB_MEASURE_CLUSTERS - TB_MEASURE_LINKS);
    assert_int_equal(tb_measure_plan_staff(&w.plan), TB_MEASURE_CLUSTERS + TB_MEASURE_LINKS);
    world_close(&w);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(closed_clusters_are_measured_at_their_gateways),
        cmocka_unit_test(a_shared_line_becomes_an_uplink),
        cmocka_unit_test(separate_links_stay_links),
        cmocka_unit_test(not_everything_is_believed),
        cmocka_unit_test(latencies_that_cannot_be_told_stay),
        cmocka_unit_test(hosts_that_are_missing_are_replaced),
        cmocka_unit_test(lines_that_make_no_sense_are_not_taken),
        cmocka_unit_test(every_link_of_the_file_is_measured),
        cmocka_unit_test(an_uplink_that_the_file_has),
        cmocka_unit_test(a_site_has_a_line),
        cmocka_unit_test(large_grids_are_measured_in_part),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
