/* What a grid file says of wires: uplinks, links of sites, ports of hosts, queues, duplex, tables; and IP families. */
#include "topology/class.h"
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

static void uplinks_are_read(void **state)
{
    struct tb_grid grid;
    must_parse(&grid, "sites:\n"
                      "- name: Delft\n"
                      "  uplink: {bandwidth: 100, latency: 2, queue: 64k, duplex: half}\n"
                      "  downlink: {bandwidth: 50}\n"
                      "  clusters: [{name: a, hosts: a1, uplink: {bandwidth: 10, loss: 1%}}, {name: b, hosts: b1}]\n"
                      "clusters: [{name: c, hosts: c1, uplink: {latency: 1}, clusters:\n"
                      "  [{name: d, hosts: d1, uplink: {bandwidth: 5}}]}]\n");
    const struct tb_grid_uplink *site = &grid.sites[0].uplink, *a = &grid.clusters[0].uplink;
    assert_true(site->given && a->given && !grid.clusters[1].uplink.given);
    assert_int_equal(site->up.bandwidth, 100000000);
    assert_int_equal(site->up.queue, 65536);
    assert_int_equal(site->down.bandwidth, 50000000);
    assert_int_equal(site->down.latency, 2000000); /* as outward, where it does not say */
    assert_int_equal(site->down.queue, 0);
    assert_int_equal(site->up.duplex, TB_GRID_HALF);
    assert_int_equal(site->down.duplex, TB_GRID_HALF);
    assert_true(tb_grid_wire_same(&a->up, &a->down) && a->down.loss == 10000);
    assert_true(grid.clusters[2].uplink.up.bandwidth == 0 && grid.clusters[3].uplink.given);
    assert_int_equal(tb_grid_site_find(&grid, "Delft"), 0);
    assert_int_equal(tb_grid_site_find(&grid, "delft"), TB_GRID_NONE);
    tb_grid_close(&grid);
}

static void hosts_have_ports(void **state)
{
    struct tb_grid grid;
    struct tb_host_classes classes;
    must_parse(&grid, "clusters:\n"
                      "- name: a\n"
                      "  hosts: [{name: 'n[1-3]', bandwidth: 100}, {name: n4, duplex: half, queue: 1m}, n5, n6]\n"
                      "- {name: b, hosts: [{name: n5, bandwidth: 1 Gbit/s}, {name: n1, queue: 3000}]}\n");
    assert_int_equal(grid.hosts[1].wire->bandwidth, 100000000);
    assert_int_equal(grid.hosts[0].wire->queue, 3000);
    assert_int_equal(grid.hosts[3].wire->queue, 1 << 20);
    assert_int_equal(grid.hosts[3].wire->duplex, TB_GRID_HALF);
    assert_int_equal(grid.hosts[3].wire->bandwidth, 0);
    assert_int_equal(grid.hosts[4].wire->bandwidth, 1000000000);
    assert_null(grid.hosts[5].wire);
    /* n2 and n3 are alike; the others differ by their feet or by their ports. */
    assert_int_equal(tb_host_classes_open(&classes, &grid), TB_OK);
    assert_int_equal(classes.class_count, 5);
    assert_int_equal(classes.of[1], classes.of[2]);
    assert_int_not_equal(classes.of[1], classes.of[5]);
    tb_host_classes_close(&classes);
    tb_grid_close(&grid);
}

#define SITES                                                                                                          \
    "sites:\n"                                                                                                         \
    "- {name: X, clusters: [{name: x1, hosts: hx1}, {name: x2, hosts: [hx2, gx2], gateways: [gx2]}]}\n"                \
    "- {name: Y Z, clusters: [{name: y1, hosts: hy1}, {name: y2, hosts: hy2, clusters: [{name: y3, hosts: hy3}]}]}\n"  \
    "clusters: [{name: c, hosts: hc}, {name: X2, hosts: q}]\n"

static const char *link_name(const struct tb_grid *grid, const char *from, const char *to)
{
    const struct tb_grid_link *link =
        tb_grid_link_find(grid, tb_grid_cluster_find(grid, from), tb_grid_host_find(grid, "gx2"),
                          tb_grid_cluster_find(grid, to), TB_GRID_NONE);
    return link != NULL ? link->name : "none";
}

/* Unless it is said of a cluster that it has none, there may be multicast, in those that nest in it, too. */
static void multicast_may_be_ruled_out(void **state)
{
    struct tb_grid grid;
    must_parse(&grid, "clusters:\n"
                      "- {name: a, hosts: a1, ethernet: {multicast: false}}\n"
                      "- {name: b, hosts: b1, ethernet: {bandwidth: 100}}\n"
                      "- {name: c, hosts: c1, ethernet: {multicast: no, hub: true}, clusters: [{name: d, hosts: d1}]}\n"
                      "- {name: e, hosts: e1, ethernet: {multicast: yes}}\n"
                      "- {name: f, hosts: f1}\n");
    const bool none[] = {true, false, true, false, false, false};
    for (uint32_t i = 0; i < grid.cluster_count; i++)
        assert_int_equal(grid.clusters[i].no_multicast, none[i]);
    tb_grid_close(&grid);
}

/* The most specific link holds. */
static void links_join_sites(void **state)
{
    struct tb_grid grid;
    must_parse(&grid, SITES "links:\n"
                            "- {from: X, to: Y Z, latency: 1, name: ss, duplex: half}\n"
                            "- {from: Y Z, to: X, latency: 2, blocked: true}\n"
                            "- {from: x1, to: Y Z, latency: 3, name: cs}\n"
                            "- {from: X, to: y2, latency: 4, name: sc}\n"
                            "- {from: x2, to: y2, latency: 5, name: cc}\n"
                            "- {from: gx2, to: y1, latency: 6, name: gc}\n"
                            "- {from: c, to: X}\n");
    assert_string_equal(link_name(&grid, "x2", "y1"), "gc");
    assert_string_equal(link_name(&grid, "x2", "y2"), "cc");
    assert_string_equal(link_name(&grid, "x1", "y2"), "sc");
    assert_string_equal(link_name(&grid, "x1", "y1"), "cs");
    assert_string_equal(link_name(&grid, "y1", "x1"), "cs");
    assert_string_equal(link_name(&grid, "x1", "x2"), "none");
    assert_string_equal(link_name(&grid, "x1", "y3"), "none");
    assert_string_equal(link_name(&grid, "c", "x2"), "c-X");
    assert_string_equal(link_name(&grid, "c", "y1"), "none");
    const struct tb_grid_link *ss = &grid.links[0], *back = &grid.links[1];
    assert_string_equal(tb_grid_link_end(&grid, ss, true), "Y Z");
    assert_string_equal(tb_grid_link_end(&grid, back, true), "X");
    assert_int_equal(ss->from, TB_GRID_NONE);
    assert_int_equal(back->from_site, 1);
    assert_int_equal(back->wire.latency, 2000000);
    assert_int_equal(back->wire.duplex, TB_GRID_HALF);
    assert_true(tb_grid_link_is_wide(&grid, ss) && tb_grid_link_is_wide(&grid, &grid.links[2]));
    tb_grid_close(&grid);

    /* What a site's link forbids holds for those without a link of their own. */
    must_parse(&grid, SITES "links: [{from: X, to: Y Z}, {from: Y Z, to: X, blocked: true}, {from: y2, to: x1}]\n");
    uint32_t x1 = tb_grid_host_find(&grid, "hx1"), y1 = tb_grid_host_find(&grid, "hy1");
    assert_true(tb_grid_reaches(&grid, x1, y1) && !tb_grid_reaches(&grid, y1, x1));
    assert_true(tb_grid_reaches(&grid, tb_grid_host_find(&grid, "hy2"), x1));
    tb_grid_close(&grid);
}

static void families_must_meet(void **state)
{
    struct tb_grid grid;
    must_parse(&grid, "congestion: bbr\n"
                      "clusters: [{name: a, hosts: a1}, {name: b, hosts: [b1, b2], ip: 6},\n"
                      "  {name: c, hosts: c1, ip: 46}, {name: d, hosts: d1, ip: 4}]\n");
    assert_string_equal(grid.congestion, "bbr");
    assert_int_equal(grid.clusters[0].ip, TB_GRID_IPV4);
    static const bool reaches[5][5] = {
        {1, 0, 0, 1, 1}, {0, 1, 1, 1, 0}, {0, 1, 1, 1, 0}, {1, 1, 1, 1, 1}, {1, 0, 0, 1, 1}};
    for (uint32_t i = 0; i < 5; i++)
        for (uint32_t k = 0; k < 5; k++)
            assert_int_equal(tb_grid_reaches(&grid, i, k), reaches[i][k]);
    tb_grid_close(&grid);
}

/* A table belongs to the grid, so that its text may go. */
static void tables_are_kept(void **state)
{
    struct tb_grid grid;
    char text[] = "clusters: [{name: a, hosts: a1, ethernet: {table: '0:5000:5000:1232,1024:5600:5600:9000'}},\n"
                  "  {name: b, hosts: b1}]\nlinks: [{from: a, to: b, table: '0:1:2:3', queue: 1}]\n";
    must_parse(&grid, text);
    memset(text, 'x', sizeof text);
    assert_int_equal(grid.table_count, 2);
    assert_string_equal(grid.clusters[0].ethernet.table, "0:5000:5000:1232,1024:5600:5600:9000");
    assert_string_equal(grid.links[1].wire.table, "0:1:2:3");
    assert_int_equal(grid.links[1].wire.queue, 1);
    assert_null(grid.clusters[1].ethernet.table);
    tb_grid_close(&grid);
}

#define A    "clusters:\n- name: a\n  hosts: a1\n"
#define AB   "clusters:\n- {name: a, hosts: a1}\n- {name: b, hosts: b1}\nlinks:\n"
#define NEST "clusters:\n- {name: a, hosts: a1, clusters: [{name: b, hosts: b1, uplink: {}}]}\nlinks:\n"

static const struct bad {
    const char *text;
    unsigned line;
    const char *expected;
} bad_files[] = {
    {A "  downlink: {}\n", 2, "cluster a has a downlink but no uplink; expected both, or uplink alone"},
    {"sites:\n- name: S\n  clusters: []\n  downlink: {}\n", 2, "site S has a downlink but no uplink"},
    {A "  uplink: 100\n", 4, "an uplink should be a map"},
    {A "  uplink: {speed: 1}\n", 4, "expected bandwidth, latency, jitter, loss, reorder, queue, duplex or table"},
    {A "  uplink: {jitter: 1}\n", 4, "more than the latency"},
    {A "  uplink: {duplex: full}\n  downlink: {duplex: half}\n", 5, "both directions of an uplink have one duplex"},
    {A "  uplink: {duplex: both}\n", 4, "expected full or half, not \"both\""},
    {A "  ip: 5\n", 4, "expected 4, 6 or 46, not \"5\""},
    {A "  ip: [4, 6]\n", 4, "expected 4, 6 or 46, not a list"},
    {A "  ethernet: {queue: 64q}\n", 4, "expected bytes as 64k or 1m, not \"64q\""},
    {A "  ethernet: {queue: 0}\n", 4, "expected bytes as 64k or 1m"},
    {A "  ethernet: {multicast: maybe}\n", 4, "true or false"},
    {A "  ethernet: {hub: yes, duplex: full}\n", 4, "a hub is a half-duplex medium"},
    {A "  ethernet: {table: 5}\n", 4,
     "expected up to 12 points BYTES:SEND:RECEIVE:GAP with commas between, rising from 0 bytes, not \"5\""},
    {A "  ethernet: {table: '1:0:0:0'}\n", 4, "expected up to 12 points"},
    {A "  ethernet: {table: '0:0:0:0,0:0:0:0'}\n", 4, "expected up to 12 points"},
    {A "  ethernet: {table: ''}\n", 4, "expected up to 12 points"},
    {A "  ethernet: {table: []}\n", 4, "expected up to 12 points"},
    {A "congestion: Cubic\n", 4, "expected a congestion control of TCP"},
    {A "congestion: abcdefghijklmnop\n", 4, "at most 15"},
    {A "- {name: b, hosts: [{name: a1, bandwidth: 10}]}\n- {name: c, hosts: [{name: a1, bandwidth: 100}]}\n", 5,
     "host a1 has bandwidth 100 here but 10 in line 4; expected the same"},
    {A "- {name: b, hosts: [{name: a1, queue: 10}]}\n- {name: c, hosts: [{name: a1, queue: 100}]}\n", 5,
     "host a1 has a queue of 100 here but 10 in line 4"},
    {A "- {name: b, hosts: [{name: a1, duplex: full}]}\n- {name: c, hosts: [{name: a1, duplex: half}]}\n", 5,
     "host a1 has another duplex here than in line 4"},
    {A "  ethernet: {hub: true}\n- {name: b, hosts: [{name: a1, bandwidth: 10}]}\n", 5,
     "the ports of a hub have no rate, duplex or queue of their own; host a1 on the hub a says bandwidth"},
    {AB "- {from: a, to: b, duplex: full}\n- {from: b, to: a, duplex: half}\n", 6,
     "both directions of a link have one duplex"},
    {NEST "- {from: b, to: a}\n", 4,
     "cluster b in line 2 has an uplink, and this link leads to the cluster in which it nests; expected one of them"},
    {NEST "- {from: a, to: b}\n", 4, "expected one of them"},
    {SITES "links: [{from: X, to: X}]\n", 5, "a link from X to itself"},
    {SITES "links: [{from: X, to: x1}]\n", 5, "two sites, or a site and an outermost cluster outside of it"},
    {SITES "links: [{from: y3, to: X}]\n", 5, "nothing joins y3 and X"},
    {SITES "links: [{from: Y Z, to: gx2}]\n", 5, "nothing joins Y Z and gx2"},
    {SITES "links: [{from: Z, to: X}]\n", 5, "\"Z\" is not in this file; expected a cluster, a gateway or a site"},
    {SITES "links: [{from: X, to: Y Z}, {from: X, to: Y Z}]\n", 5, "stands in line 5 already"},
};

static void bad_wires_name_line_and_expectation(void **state)
{
    for (size_t i = 0; i < sizeof bad_files / sizeof bad_files[0]; i++) {
        struct tb_grid grid;
        char where[32];
        snprintf(where, sizeof where, "g.yaml:%u: ", bad_files[i].line);
        if (tb_grid_parse(&grid, bad_files[i].text, strlen(bad_files[i].text), "g.yaml") == TB_OK)
            fail_msg("accepted: %s", bad_files[i].text);
        if (strncmp(tb_error_story(), where, strlen(where)) != 0 ||
            strstr(tb_error_story(), bad_files[i].expected) == NULL)
            fail_msg("expected \"%s...%s\" of:\n%s\nbut got \"%s\"", where, bad_files[i].expected, bad_files[i].text,
                     tb_error_story());
        assert_null(grid.hosts);
    }
}

/* As many clusters as wanted, each in a site of its own, with so many hosts and a link to the next. */
static char *large_text(uint32_t clusters, uint32_t hosts)
{
    char *text = malloc((size_t)clusters * 200 + 100), *at = text;
    assert_non_null(text);
    at += sprintf(at, "sites:\n");
    for (uint32_t i = 0; i < clusters; i++)
        at += sprintf(at, "- {name: s%u, clusters: [{name: c%u, hosts: 'n%u-[1-%u]', gateways: n%u-1}]}\n", i, i, i,
                      hosts, i);
    at += sprintf(at, "links:\n");
    for (uint32_t i = 0; i + 1 < clusters; i++)
        at += sprintf(at, "- {from: s%u, to: s%u, latency: 1}\n", i, i + 1);
    return text;
}

static void large_grids_are_read(void **state)
{
    const uint32_t n = TB_GRID_CLUSTERS_LIMIT, hosts = TB_GRID_HOSTS_LIMIT / n;
    struct tb_grid grid;
    char *text = large_text(n, hosts);
    must_parse(&grid, text);
    free(text);
    assert_int_equal(grid.host_count, TB_GRID_HOSTS_LIMIT);
    assert_int_equal(grid.site_count, n);
    assert_int_equal(grid.link_count, 2 * (n - 1));
    assert_true(tb_grid_reaches(&grid, 0, hosts) && !tb_grid_reaches(&grid, 1, hosts));
    assert_int_equal(tb_grid_link_find(&grid, 7, TB_GRID_NONE, 8, TB_GRID_NONE) - grid.links, 14);
    tb_grid_close(&grid);
    text = large_text(n + 1, 1);
    assert_int_equal(tb_grid_parse(&grid, text, strlen(text), "g.yaml"), TB_ERR_ARGUMENT);
    assert_non_null(strstr(tb_error_story(), "at most 16384"));
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(uplinks_are_read),
        cmocka_unit_test(hosts_have_ports),
        cmocka_unit_test(multicast_may_be_ruled_out),
        cmocka_unit_test(links_join_sites),
        cmocka_unit_test(families_must_meet),
        cmocka_unit_test(tables_are_kept),
        cmocka_unit_test(bad_wires_name_line_and_expectation),
        cmocka_unit_test(large_grids_are_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
