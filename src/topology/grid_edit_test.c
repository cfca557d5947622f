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
    const struct tb_grid_measure m = {94.126, 0.04321, ""};
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
    const struct tb_grid_measure there = {20.1, 10, ""}, other = {back, 10.2, ""};
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

#define TABLE "0:5000:6000:1232,1024:5000:6000:90000"

/* By message size, in quotes; what was measured another time goes. */
static void tables_are_changed(void **state)
{
    struct tb_grid_measure m = {.bandwidth = 94, .latency = 0.04, .table = TABLE};
    struct tb_grid_edit edit =
        edit_of("clusters:\n  - name: east # home\n    hosts: e\n    ethernet: {bandwidth: 5} # slow\n"
                "  - name: west\n    hosts: w\n    ethernet:\n      bandwidth: 5\n"
                "      table: \"0:1:1:1,1024:2:2:2\" # old\n      latency: 3\n"
                "links:\n  - {from: east, table: '0:1:1:1', to: west} # far\n");
    struct tb_grid grid;
    assert_int_equal(tb_grid_edit_ethernet(&edit, "east", &m), TB_OK);
    assert_int_equal(tb_grid_edit_ethernet(&edit, "west", &m), TB_OK);
    assert_int_equal(tb_grid_edit_link(&edit, "east", "west", &m, &m), TB_OK);
    assert_string_equal(edit.text, "clusters:\n  - name: east # home\n    hosts: e\n"
                                   "    ethernet: {bandwidth: 94, latency: 0.04, table: \"" TABLE "\"} # slow\n"
                                   "  - name: west\n    hosts: w\n    ethernet:\n      bandwidth: 94\n"
                                   "      table: \"" TABLE "\" # old\n      latency: 0.04\n"
                                   "links:\n  - {from: east, table: \"" TABLE
                                   "\", to: west, bandwidth: 94, latency: 0.04} # far\n");
    assert_int_equal(tb_grid_parse(&grid, edit.text, strlen(edit.text), "g.yaml"), TB_OK);
    assert_string_equal(grid.clusters[0].ethernet.table, TABLE);
    assert_string_equal(grid.clusters[1].ethernet.table, TABLE);
    assert_string_equal(grid.links[1].wire.table, TABLE);
    tb_grid_close(&grid);
    m.table[0] = 0;
    assert_int_equal(tb_grid_edit_ethernet(&edit, "east", &m), TB_OK);
    assert_int_equal(tb_grid_edit_ethernet(&edit, "west", &m), TB_OK);
    assert_int_equal(tb_grid_edit_link(&edit, "east", "west", &m, &m), TB_OK);
    assert_string_equal(edit.text, "clusters:\n  - name: east # home\n    hosts: e\n"
                                   "    ethernet: {bandwidth: 94, latency: 0.04} # slow\n"
                                   "  - name: west\n    hosts: w\n    ethernet:\n      bandwidth: 94\n"
                                   "      latency: 0.04\nlinks:\n  - {from: east, to: west, bandwidth: 94, latency: "
                                   "0.04} # far\n");
    tb_grid_edit_close(&edit);
}

static void expect_uplink(const char *place, const char *before, double down, const char *after)
{
    const struct tb_grid_measure out = {.bandwidth = 50, .latency = 5}, in = {.bandwidth = down, .latency = 5};
    struct tb_grid_edit edit = edit_of(before);
    if (tb_grid_edit_uplink(&edit, place, &out, &in) != TB_OK)
        fail_msg("%s", tb_error_story());
    assert_string_equal(edit.text, after);
    tb_grid_edit_close(&edit);
}

static void uplinks_are_changed_and_added(void **state)
{
    expect_uplink("a", TWO, 50,
                  "clusters:\n  - {name: a, hosts: a1, uplink: {bandwidth: 50, latency: 5}}\n"
                  "  - {name: b, hosts: b1}\n");
    expect_uplink("b", TWO, 80,
                  "clusters:\n  - {name: a, hosts: a1}\n  - {name: b, hosts: b1, "
                  "uplink: {bandwidth: 50, latency: 5}, downlink: {bandwidth: 80, latency: 5}}\n");
    expect_uplink("a", "clusters:\n  - name: a # home\n    hosts: a1\n", 80,
                  "clusters:\n  - name: a # home\n    uplink: {bandwidth: 50, latency: 5}\n"
                  "    downlink: {bandwidth: 80, latency: 5}\n    hosts: a1\n");
    expect_uplink("a",
                  "clusters:\n  - name: a\n    hosts: a1\n    uplink:   # DSL\n      queue: 64k\n"
                  "    downlink: {bandwidth: 7} # fast\n",
                  50,
                  "clusters:\n  - name: a\n    hosts: a1\n    uplink:   # DSL\n      queue: 64k\n      latency: 5\n"
                  "      bandwidth: 50\n    downlink: {bandwidth: 50, latency: 5} # fast\n");
    expect_uplink("The Hague", "sites:\n  - name: The Hague # by the sea\n    clusters: [{name: a, hosts: a1}]\n", 50,
                  "sites:\n  - name: The Hague # by the sea\n    uplink: {bandwidth: 50, latency: 5}\n"
                  "    clusters: [{name: a, hosts: a1}]\n");
    struct tb_grid_measure m = {.bandwidth = 50, .latency = 5};
    struct tb_grid_edit edit = edit_of(TWO);
    assert_true(tb_grid_edit_uplink(&edit, "nowhere", &m, &m) < 0);
    assert_string_equal(edit.text, TWO);
    /* Only a latency, or only a rate. */
    m.bandwidth = 0;
    assert_int_equal(tb_grid_edit_ethernet(&edit, "a", &m), TB_OK);
    m = (struct tb_grid_measure){.bandwidth = 3, .latency = -1};
    assert_int_equal(tb_grid_edit_ethernet(&edit, "b", &m), TB_OK);
    assert_string_equal(edit.text, "clusters:\n  - {name: a, hosts: a1, ethernet: {latency: 5}}\n"
                                   "  - {name: b, hosts: b1, ethernet: {bandwidth: 3}}\n");
    tb_grid_edit_close(&edit);
}

/* Ends of links are clusters, gateways or sites. */
static void links_of_gateways_and_sites_are_changed(void **state)
{
    const struct tb_grid_measure m = {.bandwidth = 50, .latency = 5};
    struct tb_grid_edit edit =
        edit_of("sites:\n  - {name: Delft, clusters: [{name: a, hosts: [a1, a2], gateways: [a1, a2]}]}\n"
                "  - {name: The Hague, clusters: [{name: b, hosts: b1}]}\n"
                "links:\n  - {from: a1, to: b, latency: 3} # one\n  - {from: a2, to: b, latency: 4}\n"
                "  - {from: Delft, to: The Hague, latency: 9} # canal\n");
    assert_int_equal(tb_grid_edit_link(&edit, "b", "a2", &m, &m), TB_OK);
    assert_int_equal(tb_grid_edit_link(&edit, "Delft", "The Hague", &m, &m), TB_OK);
    assert_string_equal(edit.text,
                        "sites:\n  - {name: Delft, clusters: [{name: a, hosts: [a1, a2], gateways: [a1, a2]}]}\n"
                        "  - {name: The Hague, clusters: [{name: b, hosts: b1}]}\n"
                        "links:\n  - {from: a1, to: b, latency: 3} # one\n"
                        "  - {from: a2, to: b, latency: 5, bandwidth: 50}\n"
                        "  - {from: Delft, to: The Hague, latency: 5, bandwidth: 50} # canal\n");
    tb_grid_edit_close(&edit);
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
    const struct tb_grid_measure m = {94, 0.04, ""};
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
    const struct tb_grid_measure m = {20.1, 10, ""};
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

/* What its owner has saved meanwhile is not written over. */
static void what_others_write_stays(void **state)
{
    char path[] = "/tmp/tombolo-edit-XXXXXX", text[512] = "";
    int fd = mkstemp(path);
    const struct tb_grid_measure m = {20.1, 10, ""};
    struct tb_grid_edit edit;
    assert_true(fd >= 0 && write(fd, TWO, strlen(TWO)) > 0);
    assert_int_equal(tb_grid_edit_open(&edit, path), TB_OK);
    assert_int_equal(tb_grid_edit_link(&edit, "b", "a", &m, &m), TB_OK);
    assert_true(write(fd, "# mine\n", 7) == 7);
    assert_int_equal(tb_grid_edit_save(&edit), TB_ERR_ARGUMENT);
    assert_non_null(strstr(tb_error_story(), "changed by somebody else"));
    close(fd);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    assert_true(fread(text, 1, sizeof text - 1, file) > 0);
    fclose(file);
    unlink(path);
    assert_string_equal(text, TWO "# mine\n");
    tb_grid_edit_close(&edit);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ethernet_is_changed_in_place),
        cmocka_unit_test(ethernet_is_added),
        cmocka_unit_test(links_are_changed_in_place),
        cmocka_unit_test(links_are_added),
        cmocka_unit_test(tables_are_changed),
        cmocka_unit_test(uplinks_are_changed_and_added),
        cmocka_unit_test(links_of_gateways_and_sites_are_changed),
        cmocka_unit_test(nothing_is_broken),
        cmocka_unit_test(the_file_is_replaced),
        cmocka_unit_test(what_others_write_stays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
