#include "topology/topology.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#define HOSTS_TOP 40u

/* Everything that is made of a grid. */
struct world {
    struct tb_grid grid;
    struct tb_connectivity connectivity;
    struct tb_routes routes;
    struct tb_cluster_graph graph;
};

static void world_open(struct world *w, const char *text)
{
    if (tb_grid_parse(&w->grid, text, strlen(text), "g.yaml") != TB_OK ||
        tb_connectivity_open(&w->connectivity, &w->grid) != TB_OK ||
        tb_routes_open(&w->routes, &w->connectivity) != TB_OK ||
        tb_cluster_graph_open(&w->graph, &w->connectivity) != TB_OK)
        fail_msg("%s", tb_error_story());
}

static void world_close(struct world *w)
{
    tb_cluster_graph_close(&w->graph);
    tb_routes_close(&w->routes);
    tb_connectivity_close(&w->connectivity);
    tb_grid_close(&w->grid);
}

static uint32_t host(const struct world *w, const char *name)
{
    uint32_t found = tb_grid_host_find(&w->grid, name);
    assert_true(found != TB_GRID_NONE);
    return found;
}

static uint64_t cost_between(const struct world *w, const char *from, const char *to)
{
    const struct tb_host_classes *classes = &w->connectivity.classes;
    return tb_connectivity_cost(&w->connectivity, classes->of[host(w, from)], classes->of[host(w, to)]);
}

/* The way as in "a b c"; "" if there is none. */
static void expect_path(const struct world *w, const char *from, const char *to, const char *expected)
{
    uint32_t hosts[HOSTS_TOP], count = tb_routes_path(&w->routes, host(w, from), host(w, to), HOSTS_TOP, hosts);
    char text[1024] = "";
    for (uint32_t i = 0, at = 0; i < count; i++)
        at += (uint32_t)snprintf(text + at, sizeof text - at, "%s%s", i > 0 ? " " : "", w->grid.hosts[hosts[i]].name);
    assert_string_equal(text, expected);
}

/* The hosts of a virtual cluster as in "a b c". */
static void expect_cluster(const struct world *w, uint32_t cluster, const char *expected)
{
    const struct tb_host_classes *classes = &w->connectivity.classes;
    char text[1024] = "";
    for (uint32_t i = 0, at = 0; i < w->grid.host_count; i++) {
        if (tb_cluster_graph_has(&w->graph, cluster, classes->of[i]))
            at += (uint32_t)snprintf(text + at, sizeof text - at, "%s%s", at > 0 ? " " : "", w->grid.hosts[i].name);
    }
    assert_string_equal(text, expected);
}

/* Figure 5, tables 2 and 4 and the example of the MPITH thesis. Its VC1, VC2, VC3 are our 1, 2, 0. */
static const char figure5[] = "clusters:\n"
                              "- {name: mercury, hosts: [m1, m2]}\n"
                              "- {name: venus, hosts: [v1, v2, v3], gateways: [v1], nat: true}\n"
                              "- {name: jupiter, hosts: [j1, j2], gateways: [j1], nat: true}\n"
                              "links:\n"
                              "- {from: mercury, to: venus, bandwidth: 437}\n"
                              "- {from: mercury, to: jupiter, bandwidth: 35}\n"
                              "- {from: venus, to: jupiter, bandwidth: 16, latency: 50}\n";

static void the_thesis_comes_out(void **state)
{
    static const uint32_t table[3][3] = {{0, 1, 2}, {0, 1, 0}, {0, 0, 2}};
    struct world w;
    world_open(&w, figure5);
    assert_int_equal(w.graph.clusters.count, 3);
    expect_cluster(&w, 0, "m1 m2 v1 j1");
    expect_cluster(&w, 1, "v1 v2 v3");
    expect_cluster(&w, 2, "j1 j2");
    for (uint32_t i = 0; i < 3; i++) {
        for (uint32_t j = 0; j < 3; j++)
            assert_int_equal(tb_cluster_graph_next(&w.graph, &w.routes, i, j), table[i][j]);
    }
    uint32_t shared[2];
    assert_int_equal(tb_cluster_graph_shared(&w.graph, 1, 2, 2, shared), 0);
    assert_int_equal(tb_cluster_graph_shared(&w.graph, 0, 1, 2, shared), 1);
    assert_int_equal(shared[0], w.connectivity.classes.of[host(&w, "v1")]);
    expect_path(&w, "j2", "v1", "j2 j1 v1");
    /* Who can connect does connect, though by mercury it would be cheaper. */
    expect_path(&w, "v2", "j2", "v2 v1 j1 j2");
    expect_path(&w, "v1", "j1", "v1 j1");
    expect_path(&w, "m2", "m2", "m2");
    expect_path(&w, "v2", "m2", "v2 v1 m2"); /* v2 could open a connection, but only one way */
    world_close(&w);
}

static const char *link_between(const struct world *w, const char *from, const char *to)
{
    const struct tb_host_classes *classes = &w->connectivity.classes;
    const struct tb_grid_link *link =
        tb_connectivity_link(&w->connectivity, classes->of[host(w, from)], classes->of[host(w, to)]);
    return link != NULL ? link->name : "";
}

/* Uplinks, links of sites and ports of hosts count like links. ns of 16 KiB at the slowest rate, and all latencies. */
static void every_wire_counts(void **state)
{
    struct world w;
    world_open(&w, "sites:\n"
                   "- {name: S, uplink: {bandwidth: 8, latency: 1}, clusters: [{name: a, hosts: [a1, {name: a2, "
                   "bandwidth: 2}]}]}\n"
                   "- {name: T, clusters: [{name: b, hosts: b1}, {name: c, hosts: c1, uplink: {latency: 3}}]}\n"
                   "links: [{from: S, to: T, bandwidth: 4, latency: 2, duplex: half, direct: yes}]\n");
    const uint64_t both = 120000, bits = UINT64_C(16384) * 8 * 1000; /* the networks of two clusters, and a relay */
    struct tb_grid_wire wire;
    assert_int_equal(cost_between(&w, "a1", "b1"), both + 3000000 + bits / 4);
    assert_int_equal(cost_between(&w, "b1", "a1"), both + 3000000 + bits / 4);
    assert_int_equal(cost_between(&w, "a2", "b1"), both + 3000000 + bits / 2);
    assert_int_equal(cost_between(&w, "a1", "c1"), both + 6000000 + bits / 4);
    assert_int_equal(cost_between(&w, "b1", "c1"), both + 3000000 + bits / 1000); /* nothing else is assumed */
    assert_int_equal(cost_between(&w, "a1", "a2"), 70000 + bits / 2);
    const struct tb_host_classes *classes = &w.connectivity.classes;
    uint32_t a2 = classes->of[host(&w, "a2")], b1 = classes->of[host(&w, "b1")];
    tb_connectivity_wire(&w.connectivity, a2, b1, &wire);
    assert_int_equal(wire.bandwidth, 2000000);
    assert_int_equal(wire.latency, 3000000);
    assert_true(tb_connectivity_direct(&w.connectivity, a2, b1));
    assert_ptr_equal(tb_connectivity_link(&w.connectivity, a2, b1), &w.grid.links[0]);
    assert_ptr_equal(tb_connectivity_link(&w.connectivity, b1, a2), &w.grid.links[1]);
    world_close(&w);
}

static bool is_direct(const struct world *w, const char *a, const char *b)
{
    const struct tb_host_classes *classes = &w->connectivity.classes;
    return tb_connectivity_direct(&w->connectivity, classes->of[host(w, a)], classes->of[host(w, b)]);
}

static void links_have_names(void **state)
{
    struct world w;
    world_open(&w, figure5);
    assert_string_equal(link_between(&w, "m1", "v1"), "mercury-venus");
    assert_string_equal(link_between(&w, "v2", "m2"), "mercury-venus"); /* which only v2 can open */
    assert_string_equal(link_between(&w, "j1", "v1"), "venus-jupiter");
    assert_string_equal(link_between(&w, "v1", "v2"), "");
    assert_false(is_direct(&w, "m1", "v1"));
    world_close(&w);
    world_open(&w, "clusters:\n"
                   "- {name: office, hosts: [o1, o2]}\n"
                   "- {name: farm, hosts: [g1, g2, f1], gateways: [g1, g2], clusters: [{name: pen, hosts: [p1]}]}\n"
                   "- {name: moor, hosts: [w1]}\n"
                   "links:\n"
                   "- {from: g1, to: office, direct: yes}\n"
                   "- {from: office, to: g2}\n"
                   "- {from: pen, to: farm, name: fence, direct: yes}\n"
                   "- {from: g2, to: moor}\n");
    assert_string_equal(link_between(&w, "o2", "g1"), "g1-office");
    assert_string_equal(link_between(&w, "g2", "o1"), "office-g2");
    assert_string_equal(link_between(&w, "p1", "f1"), "fence");
    assert_true(is_direct(&w, "o2", "g1") && is_direct(&w, "g1", "o2"));
    assert_false(is_direct(&w, "o2", "g2") || is_direct(&w, "g2", "o2"));
    assert_string_equal(link_between(&w, "p1", "w1"), "fence"); /* which is not the border that counts */
    assert_false(is_direct(&w, "p1", "w1") || is_direct(&w, "w1", "p1"));
    world_close(&w);
}

static void chains_are_passed_along(void **state)
{
    struct world w;
    world_open(&w, "clusters:\n"
                   "- {name: a, hosts: [a1, ab:0], gateways: []}\n"
                   "- {name: b, hosts: [ab, b1, bc], gateways: []}\n"
                   "- {name: c, hosts: [bc, c1, cd, ce], gateways: []}\n"
                   "- {name: d, hosts: [cd, ce, d1], gateways: []}\n");
    assert_int_equal(w.graph.clusters.count, 4);
    expect_cluster(&w, 3, "cd ce d1");
    expect_path(&w, "a1", "d1", "a1 ab bc cd d1");
    expect_path(&w, "d1", "a1", "d1 cd bc ab a1");
    assert_int_equal(tb_cluster_graph_next(&w.graph, &w.routes, 0, 3), 1);
    assert_int_equal(tb_cluster_graph_next(&w.graph, &w.routes, 3, 0), 2);
    assert_int_equal(tb_routes_choices(&w.routes, host(&w, "d1"), host(&w, "a1")), 2);
    assert_int_equal(tb_routes_choices(&w.routes, host(&w, "a1"), host(&w, "d1")), 1);
    assert_int_equal(tb_routes_next(&w.routes, host(&w, "d1"), host(&w, "a1"), 1), host(&w, "ce"));
    assert_int_equal(tb_routes_next(&w.routes, host(&w, "d1"), host(&w, "a1"), 2), host(&w, "cd"));
    uint32_t from, to;
    assert_false(tb_routes_first_missing(&w.routes, &from, &to));
    world_close(&w);
}

/* Two gateways of which one has the better line; and two that are equal. */
static void gateways_are_weighed(void **state)
{
    static const char text[] = "clusters:\n"
                               "- {name: office, hosts: [o1, o2]}\n"
                               "- {name: farm, hosts: ['g1:0', 'g2:0', f1, f2], gateways: [g1, g2], nat: true}\n";
    char linked[1024];
    struct world w;
    world_open(&w, text);
    assert_int_equal(tb_routes_choices(&w.routes, host(&w, "f1"), host(&w, "o1")), 2);
    expect_path(&w, "f1", "o1", "f1 g1 o1");
    world_close(&w);
    snprintf(linked, sizeof linked, "%s%s", text,
             "links:\n- {from: g1, to: office, bandwidth: 5, latency: 4}\n"
             "- {from: g2, to: office, bandwidth: 50, latency: 5}\n");
    world_open(&w, linked);
    assert_int_equal(tb_routes_choices(&w.routes, host(&w, "f1"), host(&w, "o1")), 1);
    expect_path(&w, "f1", "o1", "f1 g2 o1");
    expect_path(&w, "o2", "f2", "o2 g2 f2");
    expect_path(&w, "g1", "o1", "g1 o1");

    /* One gateway dies: the other takes over. Both: there is no other way left than calls from inside. */
    tb_connectivity_cut(&w.connectivity, w.connectivity.classes.of[host(&w, "g2")]);
    tb_routes_close(&w.routes);
    assert_int_equal(tb_routes_open(&w.routes, &w.connectivity), TB_OK);
    expect_path(&w, "f1", "o1", "f1 g1 o1");
    expect_path(&w, "f1", "g2", "");
    tb_connectivity_cut(&w.connectivity, w.connectivity.classes.of[host(&w, "g1")]);
    tb_routes_close(&w.routes);
    assert_int_equal(tb_routes_open(&w.routes, &w.connectivity), TB_OK);
    expect_path(&w, "o1", "f1", "o1 f1");
    world_close(&w);
}

/* More hops win if they are quicker. */
static void time_counts_not_hops(void **state)
{
    struct world w;
    world_open(&w, "clusters:\n"
                   "- {name: a, hosts: [a1, slow, x], gateways: []}\n"
                   "- {name: b, hosts: [slow, b1, y], gateways: [], ethernet: {bandwidth: 1}}\n"
                   "- {name: c, hosts: [x, z], gateways: []}\n"
                   "- {name: d, hosts: [z, b1], gateways: []}\n");
    expect_path(&w, "a1", "b1", "a1 x z b1");
    expect_path(&w, "a1", "y", "a1 slow y");
    world_close(&w);
}

static void one_way_connections_are_a_last_resort(void **state)
{
    struct world w;
    world_open(&w, "clusters:\n"
                   "- {name: open, hosts: [o1]}\n"
                   "- {name: home, hosts: [h1, h2], nat: true}\n"
                   "- {name: work, hosts: [w1], nat: true}\n"
                   "- {name: vault, hosts: [v1, v2], gateways: []}\n");
    expect_path(&w, "h1", "o1", "h1 o1");
    expect_path(&w, "o1", "h1", "o1 h1"); /* which h1 has opened */
    expect_path(&w, "h2", "w1", "h2 o1 w1");
    expect_path(&w, "v1", "v2", "v1 v2");
    expect_path(&w, "v1", "o1", "");
    const struct tb_route *route = tb_routes_between(&w.routes, w.connectivity.classes.of[host(&w, "h2")],
                                                     w.connectivity.classes.of[host(&w, "w1")]);
    assert_int_equal(route->one_ways, 2);
    uint32_t from, to;
    assert_true(tb_routes_first_missing(&w.routes, &from, &to));
    assert_int_equal(from, host(&w, "o1"));
    assert_int_equal(to, host(&w, "v1"));
    assert_int_equal(tb_routes_next(&w.routes, from, to, 3), TB_GRID_NONE);
    assert_int_equal(tb_routes_choices(&w.routes, from, to), 0);
    assert_int_equal(tb_cluster_graph_next(&w.graph, &w.routes, 0, 3), TB_GRID_NONE);

    /* Somebody tried: the vault can call the open cluster after all, and home is shut. */
    const uint32_t *of = w.connectivity.classes.of;
    tb_connectivity_set(&w.connectivity, of[host(&w, "v1")], of[host(&w, "o1")], true);
    tb_connectivity_set(&w.connectivity, of[host(&w, "h1")], of[host(&w, "o1")], false);
    tb_routes_close(&w.routes);
    assert_int_equal(tb_routes_open(&w.routes, &w.connectivity), TB_OK);
    expect_path(&w, "v2", "w1", "v2 o1 w1");
    expect_path(&w, "h1", "o1", "");
    world_close(&w);
}

/* ---- against brute force over hosts ------------------------------------------------------------------------------ */

static uint64_t draw(uint64_t *seed)
{
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return *seed >> 33;
}

struct key {
    uint64_t one_ways, cost, hops;
};

struct brute {
    uint32_t count;
    uint8_t tie[HOSTS_TOP][HOSTS_TOP];
    uint64_t cost[HOSTS_TOP][HOSTS_TOP];
    struct key floyd[HOSTS_TOP][HOSTS_TOP];
};

static bool less(struct key a, struct key b)
{
    if (a.one_ways != b.one_ways)
        return a.one_ways < b.one_ways;
    return a.cost != b.cost ? a.cost < b.cost : a.hops < b.hops;
}

static void brute_make(struct brute *b, const struct world *w)
{
    const struct tb_connectivity *c = &w->connectivity;
    b->count = w->grid.host_count;
    for (uint32_t i = 0; i < b->count; i++) {
        for (uint32_t j = 0; j < b->count; j++) {
            bool forth = tb_grid_reaches(&w->grid, i, j), back = tb_grid_reaches(&w->grid, j, i);
            b->tie[i][j] = forth && back ? 0 : (forth || back ? 1 : 2);
            assert_int_equal(b->tie[i][j], tb_connectivity_tie(c, c->classes.of[i], c->classes.of[j]));
            b->cost[i][j] = tb_connectivity_cost(c, c->classes.of[i], c->classes.of[j]);
            b->floyd[i][j] = i == j              ? (struct key){0, 0, 0}
                             : b->tie[i][j] == 2 ? (struct key){1000, UINT64_MAX / 4, 1000}
                                                 : (struct key){b->tie[i][j], b->cost[i][j], 1};
        }
    }
    for (uint32_t k = 0; k < b->count; k++) {
        for (uint32_t i = 0; i < b->count; i++) {
            for (uint32_t j = 0; j < b->count; j++) {
                struct key x = b->floyd[i][k], y = b->floyd[k][j];
                struct key sum = {x.one_ways + y.one_ways, x.cost + y.cost, x.hops + y.hops};
                if (less(sum, b->floyd[i][j]))
                    b->floyd[i][j] = sum;
            }
        }
    }
}

/* Follows one choice at each hop; every way must keep the rules, and its cost must be what the table says. */
static struct key walk(const struct brute *b, const struct world *w, uint32_t from, uint32_t to, uint32_t spread)
{
    struct key sum = {0, 0, 0};
    uint32_t before = TB_GRID_NONE;
    for (uint32_t at = from; at != to;) {
        uint32_t next = tb_routes_next(&w->routes, at, to, spread);
        assert_true(next != TB_GRID_NONE && next != at && b->tie[at][next] != 2 && sum.hops <= b->count);
        if (b->tie[at][to] == 0)
            assert_int_equal(next, to);
        if (before != TB_GRID_NONE)
            assert_true(b->tie[before][next] == 2 || b->tie[before][next] > b->tie[before][at] + b->tie[at][next]);
        sum.one_ways += b->tie[at][next];
        sum.cost += b->cost[at][next];
        sum.hops++;
        before = at;
        at = next;
    }
    return sum;
}

static struct key key_of(const struct world *w, uint32_t from, uint32_t to)
{
    const uint32_t *of = w->connectivity.classes.of;
    const struct tb_route *route = tb_routes_between(&w->routes, of[from], of[to]);
    if (from == to)
        return (struct key){0, 0, 0};
    if (route->cost == TB_ROUTE_COST_NONE)
        return (struct key){1000, UINT64_MAX / 4, 1000};
    return (struct key){route->one_ways, route->cost, route->hops};
}

/* Whether the rules let `from` hand what is meant for `to` to `by`. */
static bool may_hand(const struct brute *b, const struct world *w, uint32_t from, uint32_t by, uint32_t to)
{
    uint64_t one_ways = b->tie[from][by] + key_of(w, by, to).one_ways;
    if (by == from || b->tie[from][by] == 2 || one_ways >= 1000)
        return false;
    if (by == to)
        return true;
    if (b->tie[from][to] != 2 && b->tie[from][to] <= one_ways)
        return false;
    for (uint32_t i = 0; i < tb_routes_choices(&w->routes, by, to); i++) {
        uint32_t after = tb_routes_next(&w->routes, by, to, i);
        if (b->tie[from][after] != 2 && b->tie[from][after] <= b->tie[from][by] + b->tie[by][after])
            return false;
    }
    return true;
}

/* All hosts are asked: the best of those that may be handed it are the choices, and no others. */
static void check_choices(const struct brute *b, const struct world *w, uint32_t from, uint32_t to)
{
    struct key best = {1000, UINT64_MAX / 4, 1000};
    uint32_t hosts[HOSTS_TOP], count = 0;
    for (uint32_t by = 0; by < b->count; by++) {
        if (!may_hand(b, w, from, by, to))
            continue;
        struct key rest = key_of(w, by, to);
        struct key sum = {b->tie[from][by] + rest.one_ways, b->cost[from][by] + rest.cost, 1 + rest.hops};
        if (less(best, sum))
            continue;
        count = less(sum, best) ? 0 : count;
        best = sum;
        hosts[count++] = by;
    }
    struct key said = key_of(w, from, to);
    assert_false(less(best, said) || less(said, best));
    assert_int_equal(count, tb_routes_choices(&w->routes, from, to));
    for (uint32_t i = 0; i < count; i++) {
        uint32_t found = 0;
        while (found < count && tb_routes_next(&w->routes, from, to, found) != hosts[i])
            found++;
        assert_true(found < count);
    }
}

/* Whether no detour is cheaper than a direct connection: then the best ways are those of Floyd and Warshall. */
static bool is_metric(const struct brute *b)
{
    for (uint32_t i = 0; i < b->count; i++) {
        for (uint32_t j = 0; j < b->count; j++) {
            if (b->tie[i][j] <= b->floyd[i][j].one_ways && i != j && b->tie[i][j] != 2 &&
                b->floyd[i][j].cost != b->cost[i][j])
                return false;
        }
    }
    return true;
}

static void compare_pair(const struct brute *b, const struct world *w, uint32_t i, uint32_t j, bool metric)
{
    struct key said = key_of(w, i, j), shortest = b->floyd[i][j];
    assert_int_equal(said.one_ways >= 1000, shortest.one_ways >= 1000);
    if (i == j || said.one_ways >= 1000)
        return;
    for (uint32_t spread = 0; spread < 3; spread++) {
        struct key sum = walk(b, w, i, j, spread);
        assert_false(less(sum, said) || less(said, sum));
        assert_int_equal(sum.one_ways, shortest.one_ways);
        assert_true(metric ? sum.cost == shortest.cost : sum.cost >= shortest.cost);
    }
    check_choices(b, w, i, j);
}

static bool compare(const struct world *w)
{
    static struct brute b;
    brute_make(&b, w);
    bool metric = is_metric(&b);
    for (uint32_t i = 0; i < b.count; i++) {
        for (uint32_t j = 0; j < b.count; j++)
            compare_pair(&b, w, i, j, metric);
    }
    return metric;
}

/* Some clusters that share hosts, nest, or have gateways, with links or without. */
static void random_grid(uint64_t *seed, bool links, char *text, size_t size)
{
    uint32_t clusters = 2 + (uint32_t)(draw(seed) % 6);
    size_t at = (size_t)snprintf(text, size, "clusters:\n");
    for (uint32_t c = 0; c < clusters; c++) {
        uint32_t hosts = 1 + (uint32_t)(draw(seed) % 4), kind = (uint32_t)(draw(seed) % 5);
        at += (size_t)snprintf(text + at, size - at, "- {name: c%u, hosts: [", c);
        for (uint32_t h = 0; h < hosts; h++)
            at += (size_t)snprintf(text + at, size - at, "%sh%ux%u", h > 0 ? ", " : "", c, h);
        if (c > 0 && draw(seed) % 2 == 0)
            at += (size_t)snprintf(text + at, size - at, ", h%ux0", (uint32_t)(draw(seed) % c));
        at += (size_t)snprintf(text + at, size - at, "]%s", kind == 1 || kind == 2 ? ", nat: true" : "");
        if (kind == 2 || kind == 3)
            at += (size_t)snprintf(text + at, size - at, ", gateways: [h%ux0%s%s]", c, hosts > 1 ? ", h" : "",
                                   hosts > 1 ? (char[]){(char)('0' + c), 'x', '1', 0} : "");
        if (kind == 4)
            at += (size_t)snprintf(text + at, size - at, ", gateways: []");
        at += (size_t)snprintf(text + at, size - at, "}\n");
    }
    if (!links)
        return;
    at += (size_t)snprintf(text + at, size - at, "links:\n");
    for (uint32_t c = 0; c + 1 < clusters; c++) {
        uint32_t rate = 1 + (uint32_t)(draw(seed) % 100), latency = (uint32_t)(draw(seed) % 40);
        at += (size_t)snprintf(text + at, size - at, "- {from: c%u, to: c%u, bandwidth: %u, latency: %u%s}\n", c, c + 1,
                               rate, latency, draw(seed) % 5 == 0 ? ", blocked: true" : "");
    }
}

static void brute_force_agrees(void **state)
{
    uint64_t seed = 2006;
    uint32_t metric = 0;
    for (uint32_t round = 0; round < 200; round++) {
        char text[8192];
        random_grid(&seed, round % 2 != 0, text, sizeof text);
        struct world w;
        world_open(&w, text);
        assert_true(w.grid.host_count <= HOSTS_TOP);
        metric += compare(&w);
        world_close(&w);
    }
    assert_in_range(metric, 20, 180); /* both kinds were there */
}

/* ---- size -------------------------------------------------------------------------------------------------------- */

static void large_grids_are_quick(void **state)
{
    char *text = malloc(1 << 16), *at = text + sprintf(text, "clusters:\n");
    for (int i = 0; i < 100; i++)
        at += sprintf(at, "- {name: c%d, hosts: ['h%dx[1-100]'], gateways: [h%dx1, h%dx2], nat: %s}\n", i, i, i, i,
                      i % 2 == 0 ? "true" : "false");
    struct world w;
    clock_t begin = clock();
    world_open(&w, text);
    double seconds = (double)(clock() - begin) / CLOCKS_PER_SEC;
    print_message("10000 hosts in 100 clusters: %.3f s\n", seconds);
    assert_true(seconds < 5);
    assert_int_equal(w.grid.host_count, 10000);
    assert_int_equal(w.routes.class_count, 200);
    assert_int_equal(w.graph.clusters.count, 101);
    assert_int_equal(tb_cluster_graph_size(&w.graph, 1), 200); /* all gateways; 0 and 2 on are the clusters' insides */
    expect_path(&w, "h7x50", "h93x50", "h7x50 h7x1 h93x1 h93x50");
    assert_int_equal(tb_routes_choices(&w.routes, host(&w, "h7x50"), host(&w, "h93x50")), 2);
    world_close(&w);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_thesis_comes_out),
        cmocka_unit_test(links_have_names),
        cmocka_unit_test(every_wire_counts),
        cmocka_unit_test(chains_are_passed_along),
        cmocka_unit_test(gateways_are_weighed),
        cmocka_unit_test(time_counts_not_hops),
        cmocka_unit_test(one_way_connections_are_a_last_resort),
        cmocka_unit_test(brute_force_agrees),
        cmocka_unit_test(large_grids_are_quick),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
