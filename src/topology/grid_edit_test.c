#include "topology/grid_edit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static struct tb_grid_edit edit_of(const char *text)
{
    struct tb_grid_edit edit = {.file = strdup("g.yaml"), .text = strdup(text)};
    return edit;
}

/* The text after one change, and that it means what was measured. */
static void expect_ethernet(const char *before, const char *after)
{
    const struct tb_grid_measure m = {94.126, 0.04321};
    struct tb_grid_edit edit = edit_of(before);
    struct tb_grid grid;
    if (tb_grid_edit_ethernet(&edit, "east", &m) != TB_OK)
        fail_msg("%s", tb_error_story());
    assert_string_equal(edit.text, after);
    assert_int_equal(tb_grid_parse(&grid, edit.text, strlen(edit.text), "g.yaml"), TB_OK);
    uint32_t east = tb_grid_cluster_find(&grid, "east");
    assert_int_equal(grid.clusters[east].ethernet.bandwidth, 94130000);
    assert_int_equal(grid.clusters[east].ethernet.latency, 43210);
    tb_grid_close(&grid);
    tb_grid_edit_close(&edit);
}

static void ethernet_is_changed_in_place(void **state)
{
    expect_ethernet(
        "# mine\nclusters:\n  - name: west\n    hosts: w\n    ethernet: {bandwidth: 5}\n"
        "  - name: east   # home\n    hosts: [e1, e2]\n    ethernet: {bandwidth: 100,  latency: 0.05}  # new\n",
        "# mine\nclusters:\n  - name: west\n    hosts: w\n    ethernet: {bandwidth: 5}\n"
        "  - name: east   # home\n    hosts: [e1, e2]\n"
        "    ethernet: {bandwidth: 94.13,  latency: 0.04321}  # new\n");
    expect_ethernet("clusters:\n- hosts: [e1]\n  name: east\n  ethernet: {hub: yes, latency: 50us }\n",
                    "clusters:\n- hosts: [e1]\n  name: east\n"
                    "  ethernet: {hub: yes, latency: 0.04321, bandwidth: 94.13 }\n");
    expect_ethernet("clusters:\n  - name: \"east\"\n    ethernet:   # ports\n\n      latency: 1 # ms\n    hosts: e\n",
                    "clusters:\n  - name: \"east\"\n    ethernet:   # ports\n\n      latency: 0.04321 # ms\n"
                    "      bandwidth: 94.13\n    hosts: e\n");
    expect_ethernet("clusters: [{name: west, hosts: w}]\nsites:\n  - {name: s, clusters: [{name: o, hosts: x}]}\n"
                    "  - name: t\n    clusters:\n      - {name: east, hosts: [e]}\n",
                    "clusters: [{name: west, hosts: w}]\nsites:\n  - {name: s, clusters: [{name: o, hosts: x}]}\n"
                    "  - name: t\n    clusters:\n"
                    "      - {name: east, hosts: [e], ethernet: {bandwidth: 94.13, latency: 0.04321}}\n");
}

static void ethernet_is_added(void **state)
{
    expect_ethernet(
        "clusters:\n  - name: east # !\n    hosts:\n      - e1\n    clusters:\n      - name: in\n"
        "        hosts: i\n        ethernet: {bandwidth: 7}\n",
        "clusters:\n  - name: east # !\n    ethernet: {bandwidth: 94.13, latency: 0.04321}\n    hosts:\n"
        "      - e1\n    clusters:\n      - name: in\n        hosts: i\n        ethernet: {bandwidth: 7}\n");
}

#define TWO "clusters:\n  - {name: a, hosts: a1}\n  - {name: b, hosts: b1}\n"

static void expect_link(const char *before, double back, const char *after)
{
    const struct tb_grid_measure there = {20.1, 10}, other = {back, 10.2};
    struct tb_grid_edit edit = edit_of(before);
    struct tb_grid grid;
    if (tb_grid_edit_link(&edit, "a", "b", &there, &other) != TB_OK)
        fail_msg("%s", tb_error_story());
    assert_string_equal(edit.text, after);
    assert_int_equal(tb_grid_parse(&grid, edit.text, strlen(edit.text), "g.yaml"), TB_OK);
    uint32_t a = tb_grid_cluster_find(&grid, "a"), b = tb_grid_cluster_find(&grid, "b");
    const struct tb_grid_link *link = tb_grid_link_find(&grid, a, TB_GRID_NONE, b, TB_GRID_NONE);
    assert_in_range(link->wire.bandwidth, 20000000, 20200000);
    link = tb_grid_link_find(&grid, b, TB_GRID_NONE, a, TB_GRID_NONE);
    assert_in_range(link->wire.bandwidth, (uint64_t)(back * 0.89e6), (uint64_t)(back * 1.11e6));
    tb_grid_close(&grid);
    tb_grid_edit_close(&edit);
}

static void links_are_changed_in_place(void **state)
{
    expect_link(TWO "links:\n  - {from: a, to: b, bandwidth: 5, latency: 3, loss: 1%} # slow\n", 20,
                TWO "links:\n  - {from: a, to: b, bandwidth: 20.1, latency: 10, loss: 1%} # slow\n");
    expect_link(TWO "links:\n  - {from: b, to: a, latency: 3}\n", 20,
                TWO "links:\n  - {from: b, to: a, latency: 10.2, bandwidth: 20}\n");
    expect_link(TWO "links:\n  - from: a\n    to: b\n    name: line\n", 20,
                TWO "links:\n  - from: a\n    latency: 10\n    bandwidth: 20.1\n    to: b\n    name: line\n");
    expect_link(TWO "links: [{from: a, to: b}, {from: b, to: a, bandwidth: 3}]\n", 7,
                TWO "links: [{from: a, to: b, bandwidth: 20.1, latency: 10}, {from: b, to: a, bandwidth: 7, "
                    "latency: 10.2}]\n");
}

static void links_are_added(void **state)
{
    expect_link(TWO, 20, TWO "links:\n  - {from: a, to: b, bandwidth: 20.1, latency: 10}\n");
    expect_link(TWO "links:\n\n# none\n  - {from: a, to: b, bandwidth: 5}\n", 7,
                TWO "links:\n  - {from: b, to: a, bandwidth: 7, latency: 10.2}\n\n# none\n"
                    "  - {from: a, to: b, bandwidth: 20.1, latency: 10}\n");
    expect_link(TWO "links:\n  - {from: a, to: b, direct: yes}\n", 7, /* which holds for the other one too */
                TWO "links:\n  - {from: b, to: a, bandwidth: 7, latency: 10.2}\n"
                    "  - {from: a, to: b, direct: yes, bandwidth: 20.1, latency: 10}\n");
    expect_link(TWO "links: []\n", 20, TWO "links: [{from: a, to: b, bandwidth: 20.1, latency: 10}]\n");
    expect_link("clusters: [{name: a, hosts: x}, {name: b, hosts: y}]", 20,
                "clusters: [{name: a, hosts: x}, {name: b, hosts: y}]\nlinks:\n"
                "  - {from: a, to: b, bandwidth: 20.1, latency: 10}\n");
}

/* What is not understood stays as it is, and so does what would make no sense afterwards. */
static void nothing_is_broken(void **state)
{
    static const char *const texts[] = {
        "{clusters: [{name: west, hosts: w}, {name: east, hosts: e}]}\n",
        "clusters:\n  - name: east\n    hosts: e\n    ethernet: {latency: 5, jitter: 4}\n",
        "clusters:\n  - &x\n    name: east\n    hosts: e\n",
        "clusters:\n  - name: e\n    hosts: e\n",
    };
    const struct tb_grid_measure m = {94, 0.04};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        struct tb_grid_edit edit = edit_of(texts[i]);
        int error = tb_grid_edit_ethernet(&edit, "east", &m);
        assert_true(error < 0);
        assert_string_equal(edit.text, texts[i]);
        assert_true(tb_grid_edit_link(&edit, "east", "nowhere", &m, &m) < 0);
        assert_string_equal(edit.text, texts[i]);
        tb_grid_edit_close(&edit);
    }
}

static void the_file_is_replaced(void **state)
{
    char path[] = "/tmp/tombolo-edit-XXXXXX";
    int fd = mkstemp(path);
    const struct tb_grid_measure m = {20.1, 10};
    struct tb_grid_edit edit;
    struct stat status;
    char text[512] = "";
    assert_true(fd >= 0 && write(fd, TWO, strlen(TWO)) > 0 && fchmod(fd, 0640) == 0);
    close(fd);
    assert_int_equal(tb_grid_edit_open(&edit, path), TB_OK);
    assert_int_equal(tb_grid_edit_link(&edit, "b", "a", &m, &m), TB_OK);
    assert_int_equal(tb_grid_edit_save(&edit), TB_OK);
    tb_grid_edit_close(&edit);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    assert_true(fread(text, 1, sizeof text - 1, file) > 0);
    assert_int_equal(fstat(fileno(file), &status), 0);
    fclose(file);
    unlink(path);
    assert_int_equal(status.st_mode & 0777, 0640);
    assert_string_equal(text, TWO "links:\n  - {from: b, to: a, bandwidth: 20.1, latency: 10}\n");
    assert_true(tb_grid_edit_open(&edit, path) < 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ethernet_is_changed_in_place),
        cmocka_unit_test(ethernet_is_added),
        cmocka_unit_test(links_are_changed_in_place),
        cmocka_unit_test(links_are_added),
        cmocka_unit_test(nothing_is_broken),
        cmocka_unit_test(the_file_is_replaced),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
