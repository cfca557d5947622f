#include "launch/grid_plan.h"

#include "launch/host_names.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const char two_gates[] = "clusters:\n"
                                "  - {name: office, hosts: ['o[1-2]:1'], ethernet: {bandwidth: 100, latency: 0.05}}\n"
                                "  - name: farm\n"
                                "    gateways: [g1, g2]\n"
                                "    nat: true\n"
                                "    port: 7123\n"
                                "    start: lead there\n"
                                "    program: {x: /bin/y}\n"
                                "    directory: /d\n"
                                "    environment: {A: 1, B: 2}\n"
                                "    hosts: [g1:0, g2:0, 'f[1-3]:1']\n"
                                "    ethernet: {bandwidth: 50, latency: 0.1}\n"
                                "links:\n"
                                "  - {from: g1, to: office, bandwidth: 10, latency: 4, loss: 1%}\n"
                                "  - {from: g2, to: office, bandwidth: 5, latency: 20}\n";

static const char nested[] = "clusters:\n"
                             "  - name: outer\n"
                             "    gateways: [o1]\n"
                             "    hosts: [o1:0, o2:1]\n"
                             "    clusters:\n"
                             "      - name: inner\n"
                             "        gateways: [i1]\n"
                             "        hosts: [i1:0, i2:1]\n"
                             "  - {name: far, hosts: [f1:1, f2:0]}\n";

struct world {
    struct tb_grid grid;
    struct tb_options options;
    struct tb_placement placement;
    struct tb_grid_plan plan;
    bool missing[256];
};

static const struct tb_options fresh;

/* The grid plan for these words of a command line; the result of the first step that fails. */
static int make(struct world *w, const char *text, char **words)
{
    memset(w, 0, sizeof *w);
    w->options = fresh;
    assert_int_equal(tb_grid_parse(&w->grid, text, strlen(text), "g.yaml"), TB_OK);
    assert_int_equal(tb_options_parse(&w->options, words), TB_OK);
    w->options.grid = &w->grid;
    assert_int_equal(tb_host_list_take(&w->options.hosts, &w->grid, w->missing), TB_OK);
    int rc = tb_grid_plan_open(&w->plan, &w->options,
                               tb_host_names_find_here(&w->grid, w->missing, w->options.lab != NULL), w->missing);
    if (rc == TB_OK)
        rc = tb_placement_make(&w->placement, &w->options);
    return rc == TB_OK ? tb_grid_plan_settle(&w->plan, &w->options, &w->placement) : rc;
}

static void unmake(struct world *w)
{
    tb_grid_plan_close(&w->plan);
    tb_placement_close(&w->placement);
    tb_options_close(&w->options);
    tb_grid_close(&w->grid);
}

static uint32_t find(const struct world *w, const char *name)
{
    for (uint32_t i = 0; i < w->placement.book.host_count; i++)
        if (strcmp(w->placement.book.hosts[i].name, name) == 0)
            return i;
    return TB_GRID_NONE;
}

static void expect_parent(const struct world *w, const char *name, const char *parent)
{
    uint32_t host = find(w, name);
    assert_int_not_equal(host, TB_GRID_NONE);
    assert_int_equal(w->plan.parents[host], parent != NULL ? find(w, parent) : TB_GRID_NONE);
}

static struct tb_host_route route_between(const struct world *w, const char *from, const char *to)
{
    struct tb_host_routes routes;
    assert_int_equal(tb_grid_plan_routes(&w->plan, &w->placement, find(w, from), &routes), TB_OK);
    struct tb_host_route route = *tb_host_routes_to(&routes, &w->placement.book, find(w, to));
    tb_host_routes_close(&routes);
    return route;
}

static void gateways_start_and_relay(void **state)
{
    struct world w;
    assert_int_equal(make(&w, two_gates, (char *[]){(char *)"x", NULL}), TB_OK);
    assert_int_equal(w.placement.book.ranks, 5);
    assert_int_equal(w.placement.book.host_count, 7); /* with the gateway that is only in reserve */
    expect_parent(&w, "o1", NULL);
    expect_parent(&w, "g1", NULL);
    expect_parent(&w, "g2", NULL);
    expect_parent(&w, "f2", "g1");
    struct tb_host_route route = route_between(&w, "f1", "f3");
    assert_int_equal(route.means, TB_HOST_ROUTE_DIRECT);
    assert_int_equal(route.latency, 100000);
    route = route_between(&w, "f1", "o2"); /* behind NAT it could connect, but the other side could not */
    assert_int_equal(route.means, TB_HOST_ROUTE_RELAYED);
    assert_int_equal(route.hop_count, 1);
    assert_int_equal(route.hops[0], find(&w, "g1"));
    assert_int_equal(route.latency, 100000 + 100000 + 4000000 + 50000);
    assert_int_equal(route.bandwidth, 10000000);
    assert_int_equal(route.loss, 10000);
    assert_int_equal(route_between(&w, "g1", "o1").means, TB_HOST_ROUTE_DIRECT);
    unmake(&w);
}

static void a_lost_gateway_is_gone_around(void **state)
{
    struct world w;
    uint32_t stand_ins[4];
    assert_int_equal(make(&w, two_gates, (char *[]){(char *)"x", NULL}), TB_OK);
    uint32_t g1 = find(&w, "g1"), g2 = find(&w, "g2"), f1 = find(&w, "f1");
    assert_int_equal(tb_grid_plan_stand_ins(&w.plan, &w.placement, f1, 4, stand_ins), 1);
    assert_int_equal(stand_ins[0], g2);
    /* To whom the launcher has a way of its own, whoever it can connect to and does not depend on it. */
    uint32_t count = tb_grid_plan_stand_ins(&w.plan, &w.placement, g1, 4, stand_ins);
    bool named[8] = {false};
    for (uint32_t i = 0; i < count; i++)
        named[stand_ins[i]] = true;
    assert_true(named[g2] && named[find(&w, "o1")] && !named[g1] && !named[f1] && !named[find(&w, "f2")]);
    assert_true(tb_grid_plan_can_miss(&w.plan, &w.options, &w.placement, tb_grid_host_find(&w.grid, "g1")));
    assert_false(tb_grid_plan_can_miss(&w.plan, &w.options, &w.placement, tb_grid_host_find(&w.grid, "f1")));
    assert_int_equal(tb_grid_plan_lose(&w.plan, &w.placement, g1), TB_OK);
    assert_int_equal(w.plan.version, 1);
    struct tb_host_route route = route_between(&w, "o1", "f2");
    assert_int_equal(route.hop_count, 1);
    assert_int_equal(route.hops[0], g2);
    assert_int_equal(tb_grid_plan_lose(&w.plan, &w.placement, g2), TB_OK); /* NAT lets them out, and be called */
    assert_int_equal(route_between(&w, "f2", "o1").means, TB_HOST_ROUTE_DIRECT);
    assert_int_equal(route_between(&w, "o1", "f2").means, TB_HOST_ROUTE_CALLED);
    assert_int_equal(tb_grid_plan_stand_ins(&w.plan, &w.placement, f1, 4, stand_ins), 0);
    unmake(&w);
    assert_int_equal(make(&w, nested, (char *[]){(char *)"x", NULL}), TB_OK);
    assert_int_equal(tb_grid_plan_lose(&w.plan, &w.placement, find(&w, "i1")), TB_ERR_PEER);
    unmake(&w);
}

static void clusters_nest(void **state)
{
    struct world w;
    assert_int_equal(make(&w, nested, (char *[]){(char *)"x", NULL}), TB_OK);
    assert_int_equal(w.placement.book.host_count, 5); /* nobody needs f2 */
    expect_parent(&w, "o1", NULL);
    expect_parent(&w, "i1", "o1");
    expect_parent(&w, "i2", "i1");
    expect_parent(&w, "f1", NULL);
    assert_int_equal(route_between(&w, "i2", "f1").hops[0], find(&w, "i1"));
    assert_int_equal(route_between(&w, "i1", "f1").hops[0], find(&w, "o1"));
    assert_false(tb_grid_plan_can_miss(&w.plan, &w.options, &w.placement, tb_grid_host_find(&w.grid, "i1")));
    unmake(&w);
    char *few[] = {(char *)"-n", (char *)"1", (char *)"x", NULL};
    assert_int_equal(make(&w, nested, few), TB_OK); /* o2 and its gateway */
    assert_int_equal(w.placement.book.host_count, 2);
    unmake(&w);
}

/* Ranks connect to others of their outermost cluster; agents of hosts inside of a gated one have nothing to pass on. */
static void borders_are_for_agents(void **state)
{
    struct world w;
    assert_int_equal(make(&w, nested, (char *[]){(char *)"x", NULL}), TB_OK);
    assert_int_equal(route_between(&w, "o1", "i1").open, 1);
    assert_int_equal(route_between(&w, "o1", "i1").near, 0);
    assert_int_equal(route_between(&w, "i2", "o2").open, 1);
    assert_int_equal(route_between(&w, "o1", "f1").means, TB_HOST_ROUTE_DIRECT);
    assert_int_equal(route_between(&w, "o1", "f1").open, 0);
    assert_int_equal(route_between(&w, "f1", "i2").open, 0);
    static const char *const relays[] = {"o1", "o2", "i1", "f1", NULL};
    for (int i = 0; relays[i] != NULL; i++)
        assert_int_equal(route_between(&w, "i2", relays[i]).relays, 1);
    assert_int_equal(route_between(&w, "o1", "i2").relays, 0);
    unmake(&w);
    static const char trusted[] = "clusters: [{name: a, hosts: [a1]}, {name: b, hosts: [b1]}, {name: c, hosts: [c1]}]\n"
                                  "links: [{from: a, to: b, direct: yes}, {from: b, to: c}]\n";
    assert_int_equal(make(&w, trusted, (char *[]){(char *)"x", NULL}), TB_OK);
    assert_int_equal(route_between(&w, "a1", "b1").open, 1);
    assert_int_equal(route_between(&w, "b1", "a1").open, 1);
    assert_int_equal(route_between(&w, "b1", "c1").open, 0);
    assert_int_equal(route_between(&w, "c1", "a1").open, 0); /* no link at all */
    unmake(&w);
}

/* ---- links that are cut ------------------------------------------------------------------------------------------ */

static const char three[] = "clusters:\n"
                            "  - {name: mercury, hosts: ['m[1-2]:1']}\n"
                            "  - {name: venus, gateways: [v1], nat: true, hosts: [v1:1, v2:1]}\n"
                            "  - {name: jupiter, gateways: [j1], nat: true, hosts: [j1:1, j2:1]}\n"
                            "links:\n"
                            "  - {from: mercury, to: venus, bandwidth: 437, latency: 5}\n"
                            "  - {from: mercury, to: jupiter, bandwidth: 35, latency: 12}\n"
                            "  - {from: venus, to: jupiter, bandwidth: 16, latency: 15}\n";

static int cut(struct world *w, const char *a, const char *b, bool cut)
{
    return tb_grid_plan_cut(&w->plan, &w->placement, find(w, a), find(w, b), cut);
}

/* All routes of all hosts as bytes. */
static void write_routes(const struct world *w, struct tb_writer *out)
{
    tb_writer_open(out);
    for (uint32_t i = 0; i < w->placement.book.host_count; i++) {
        struct tb_host_routes routes;
        assert_int_equal(tb_grid_plan_routes(&w->plan, &w->placement, i, &routes), TB_OK);
        routes.version = 0;
        assert_int_equal(tb_host_routes_encode(&routes, out), TB_OK);
        tb_host_routes_close(&routes);
    }
}

static void expect_routes(const struct world *w, const struct tb_writer *expected)
{
    struct tb_writer now;
    write_routes(w, &now);
    assert_int_equal(now.length, expected->length);
    assert_memory_equal(now.bytes, expected->bytes, now.length);
    tb_writer_close(&now);
}

static void a_cut_link_is_gone_around(void **state)
{
    struct world w;
    struct tb_writer first;
    assert_int_equal(make(&w, two_gates, (char *[]){(char *)"x", NULL}), TB_OK);
    write_routes(&w, &first);
    assert_int_equal(cut(&w, "o2", "g1", true), TB_OK);
    assert_int_equal(w.plan.version, 1);
    assert_int_equal(cut(&w, "g1", "o1", true), TB_OK); /* it is the same link */
    assert_int_equal(w.plan.version, 1);
    static const char *const office[] = {"o1", "o2"}, *const farm[] = {"f1", "f2", "f3"};
    for (int i = 0; i < 2; i++)
        for (int k = 0; k < 3; k++) {
            struct tb_host_route there = route_between(&w, office[i], farm[k]);
            struct tb_host_route back = route_between(&w, farm[k], office[i]);
            assert_int_equal(there.hop_count, 1);
            assert_int_equal(there.hops[0], find(&w, "g2"));
            assert_int_equal(back.hops[0], find(&w, "g2"));
            assert_int_equal(there.latency, 20000000 + 2 * 100000 + 50000);
        }
    assert_int_equal(route_between(&w, "o1", "g1").hops[0], find(&w, "g2")); /* for its agent, too */
    assert_int_equal(cut(&w, "o1", "g2", true), TB_OK);                      /* NAT lets them out, and be called */
    assert_int_equal(route_between(&w, "o1", "f2").means, TB_HOST_ROUTE_CALLED);
    assert_int_equal(cut(&w, "g2", "o1", false), TB_OK);
    assert_int_equal(cut(&w, "o1", "g1", false), TB_OK);
    expect_routes(&w, &first);
    assert_int_equal(cut(&w, "o1", "o2", true), TB_ERR_UNSUPPORTED);
    assert_int_equal(w.plan.version, 4);
    tb_writer_close(&first);
    unmake(&w);
}

static void without_a_way_around_all_stays(void **state)
{
    struct world w;
    struct tb_writer first, second;
    const char *link;
    assert_int_equal(make(&w, three, (char *[]){(char *)"x", NULL}), TB_OK);
    write_routes(&w, &first);
    assert_int_equal(cut(&w, "m2", "v1", true), TB_OK);
    assert_int_equal(route_between(&w, "m1", "v2").hops[0], find(&w, "j1"));
    assert_int_equal(route_between(&w, "v1", "m2").hops[0], find(&w, "j1"));
    assert_int_equal(route_between(&w, "m1", "v2").relays, 1);
    uint64_t way = tb_grid_plan_way(&w.plan, &w.placement, find(&w, "m2"), find(&w, "v1"), &link);
    assert_string_equal(link, "mercury-venus");
    assert_int_equal(tb_grid_plan_way(&w.plan, &w.placement, find(&w, "v2"), find(&w, "m1"), &link), way);
    assert_int_not_equal(tb_grid_plan_way(&w.plan, &w.placement, find(&w, "j1"), find(&w, "m1"), &link), way);
    write_routes(&w, &second);
    assert_int_equal(cut(&w, "j1", "v1", true), TB_ERR_UNSUPPORTED);
    expect_routes(&w, &second);
    assert_int_equal(cut(&w, "v1", "m1", false), TB_OK);
    expect_routes(&w, &first);
    /* Ranks of one cluster have connected to each other. */
    assert_int_equal(cut(&w, "v1", "v2", true), TB_ERR_UNSUPPORTED);
    tb_grid_plan_way(&w.plan, &w.placement, find(&w, "v2"), find(&w, "v1"), &link);
    assert_null(link);
    expect_routes(&w, &first);
    tb_writer_close(&first);
    tb_writer_close(&second);
    unmake(&w);
}

/* The gateway by which everything goes around a cut is lost: then the cut link has to do. */
static void a_gateway_is_lost_while_a_link_is_cut(void **state)
{
    struct world w;
    static const char gates[] = "clusters:\n"
                                "  - {name: office, hosts: [o1:1]}\n"
                                "  - {name: farm, gateways: [g1, g2], hosts: [g1:0, g2:0, f1:1]}\n"
                                "links: [{from: g1, to: office, latency: 4}, {from: g2, to: office, latency: 20}]\n";
    assert_int_equal(make(&w, gates, (char *[]){(char *)"x", NULL}), TB_OK);
    assert_int_equal(cut(&w, "o1", "g1", true), TB_OK);
    assert_int_equal(route_between(&w, "o1", "f1").hops[0], find(&w, "g2"));
    assert_int_equal(tb_grid_plan_lose(&w.plan, &w.placement, find(&w, "g2")), TB_OK);
    assert_int_equal(route_between(&w, "o1", "f1").hops[0], find(&w, "g1"));
    assert_int_equal(cut(&w, "o1", "g1", true), TB_ERR_UNSUPPORTED);
    assert_int_equal(route_between(&w, "f1", "o1").hops[0], find(&w, "g1"));
    unmake(&w);
}

static void clusters_are_started_by_hand(void **state)
{
    struct world w;
    char *words[] = {(char *)"--grid", (char *)"g.yaml", (char *)"--manual", (char *)"farm", (char *)"x", NULL};
    assert_int_equal(make(&w, two_gates, words), TB_OK);
    assert_true(w.plan.manual[tb_grid_host_find(&w.grid, "g1")]);
    expect_parent(&w, "g1", NULL);
    expect_parent(&w, "g2", "g1"); /* nobody else can */
    expect_parent(&w, "f1", "g1");
    unmake(&w);
    words[3] = (char *)"mars";
    assert_int_equal(make(&w, two_gates, words), TB_ERR_ARGUMENT);
    unmake(&w);
}

static void who_cannot_be_joined_is_named(void **state)
{
    struct world w;
    static const char shut[] = "clusters:\n  - {name: a, hosts: [a1]}\n  - {name: b, gateways: [], hosts: [b1]}\n";
    assert_int_equal(make(&w, shut, (char *[]){(char *)"x", NULL}), TB_ERR_UNSUPPORTED);
    assert_non_null(strstr(tb_error_story(), "g.yaml:3: nobody can start an agent on host b1 of cluster b"));
    unmake(&w);
    static const char apart[] = "clusters:\n  - {name: a, hosts: [a1]}\n  - {name: b, hosts: [b1]}\n"
                                "links:\n  - {from: a, to: b, blocked: true}\n  - {from: b, to: a, blocked: true}\n";
    assert_int_equal(make(&w, apart, (char *[]){(char *)"x", NULL}), TB_ERR_UNSUPPORTED);
    assert_non_null(strstr(tb_error_story(), "a1 and b1"));
    unmake(&w);
}

static void clusters_have_their_own_routes_to_start(void **state)
{
    struct world w;
    struct tb_shell_target target;
    char *words[] = {(char *)"--launcher", (char *)"rsh", (char *)"-x", (char *)"B=7", (char *)"x", (char *)"y", NULL};
    assert_int_equal(make(&w, two_gates, words), TB_OK);
    tb_grid_plan_target(&w.plan, &w.options, "/here", &w.placement, find(&w, "g1"), &target);
    assert_string_equal(target.command, "lead there");
    assert_string_equal(target.program, "/here");
    tb_grid_plan_target(&w.plan, &w.options, "/here", &w.placement, find(&w, "f1"), &target);
    assert_string_equal(target.command, "rsh");
    struct tb_setup setup = {
        .own_parameters = (char *)"ports=1\n", .app_count = w.placement.app_count, .apps = w.placement.apps};
    struct tb_setup gate = setup, inner = setup, outer = setup;
    struct tb_host *book = w.placement.book.hosts;
    book[find(&w, "g1")].address_count = 2;
    book[find(&w, "g1")].addresses[1] = (struct tb_address){.family = 4, .bytes = {10, 0, 0, 1}, .prefix = 24};
    book[find(&w, "f2")].address_count = 1;
    book[find(&w, "f2")].addresses[0] = (struct tb_address){.family = 4, .bytes = {10, 0, 1, 2}, .prefix = 24};
    book[find(&w, "o2")].address_count = 1; /* does not reach it */
    assert_int_equal(tb_grid_plan_setup(&w.plan, &w.placement, find(&w, "g1"), &gate), TB_OK);
    assert_int_equal(tb_grid_plan_setup(&w.plan, &w.placement, find(&w, "f1"), &inner), TB_OK);
    assert_int_equal(tb_grid_plan_setup(&w.plan, &w.placement, find(&w, "o1"), &outer), TB_OK);
    assert_int_equal(gate.flags | outer.flags, 0);
    assert_int_equal(gate.neighbour_count + outer.neighbour_count, 0);
    assert_int_equal(inner.flags, TB_SETUP_INNER);
    assert_int_equal(inner.neighbour_count, 3);
    assert_int_equal(inner.neighbours[1].bytes[3], 1);
    assert_int_equal(inner.neighbours[2].bytes[3], 2);
    assert_string_equal(gate.own_parameters, "#'port' of cluster farm (g.yaml:3)\nports=7123\nports=1\n");
    assert_string_equal(inner.own_parameters, "ports=1\n");
    assert_string_equal(inner.apps[0].arguments[0], "/bin/y");
    assert_string_equal(inner.apps[0].arguments[1], "y");
    assert_string_equal(inner.apps[0].directory, "/d");
    assert_int_equal(inner.apps[0].variable_count, 2);
    assert_string_equal(inner.apps[0].variables[0], "B=7");
    assert_string_equal(inner.apps[0].variables[1], "A=1");
    assert_string_equal(outer.apps[0].arguments[0], "x");
    assert_string_equal(outer.apps[0].directory, "");
    tb_grid_plan_setup_close(&gate);
    tb_grid_plan_setup_close(&inner);
    tb_grid_plan_setup_close(&outer);
    unmake(&w);
}

/* ---- trying who reaches whom ------------------------------------------------------------------------------------- */

static const char three_open[] = "clusters:\n"
                                 "  - {name: a, hosts: [a1, a2]}\n"
                                 "  - {name: b, hosts: [b1, b2, b3]}\n"
                                 "  - {name: c, hosts: [c1]}\n"
                                 "  - {name: gated, hosts: [g1, g2], gateways: [g1]}\n";

static void find_out(const struct world *w, struct tb_reach_results *results, const char *from, const char *to)
{
    uint32_t row = 0, column = 0;
    assert_true(tb_reach_results_find(results, find(w, from), &row) &&
                tb_reach_results_find(results, find(w, to), &column));
    assert_int_equal(results->results[row * results->count + column], TB_REACH_NO);
    results->results[row * results->count + column] = TB_REACH_YES;
}

/* All of the first list reach all of the second. */
static void find_all_out(const struct world *w, struct tb_reach_results *results, const char *const *from,
                         const char *const *to)
{
    for (; *from != NULL; from++)
        for (const char *const *at = to; *at != NULL; at++)
            find_out(w, results, *from, *at);
}

static void hosts_of_a_class_may_turn_out_to_differ(void **state)
{
    static const char *const a[] = {"a1", "a2", NULL}, *const b[] = {"b1", "b2", "b3", NULL}, *const c[] = {"c1", NULL};
    static const char *const gate[] = {"b2", NULL};
    struct world w;
    struct tb_reach_results results;
    uint32_t index;
    assert_int_equal(make(&w, three_open, (char *[]){(char *)"x", NULL}), TB_OK);
    assert_int_equal(route_between(&w, "a1", "b3").means, TB_HOST_ROUTE_DIRECT);
    assert_int_equal(tb_grid_plan_ask(&w.plan, &w.placement, &results), TB_OK);
    assert_int_equal(results.count, 6);
    assert_true(results.all);
    assert_false(tb_reach_results_find(&results, find(&w, "g1"), &index)); /* of these the file speaks */
    find_all_out(&w, &results, a, gate);
    find_all_out(&w, &results, c, gate);
    find_all_out(&w, &results, b, a);
    find_all_out(&w, &results, b, c);
    find_all_out(&w, &results, a, c);
    find_all_out(&w, &results, c, a);
    assert_int_equal(tb_grid_plan_learn(&w.plan, &w.placement, &results), TB_OK);
    struct tb_host_route route = route_between(&w, "a1", "b3");
    assert_int_equal(route.means, TB_HOST_ROUTE_RELAYED);
    assert_int_equal(route.hop_count, 1);
    assert_int_equal(route.hops[0], find(&w, "b2"));
    assert_int_equal(route_between(&w, "b1", "c1").hops[0], find(&w, "b2"));
    assert_int_equal(route_between(&w, "a2", "b2").means, TB_HOST_ROUTE_DIRECT);
    assert_int_equal(route_between(&w, "b1", "b2").means, TB_HOST_ROUTE_DIRECT);
    assert_int_equal(route_between(&w, "b1", "b3").means, TB_HOST_ROUTE_DIRECT);
    assert_int_equal(w.placement.book.hosts[find(&w, "b1")].kind, w.placement.book.hosts[find(&w, "b3")].kind);
    assert_int_not_equal(w.placement.book.hosts[find(&w, "b1")].kind, w.placement.book.hosts[find(&w, "b2")].kind);
    unmake(&w);
    tb_reach_results_close(&results);
}

static void who_cannot_be_joined_is_named_with_what_was_tried(void **state)
{
    static const char *const b[] = {"b1", "b2", "b3", NULL}, *const c[] = {"c1", NULL};
    static const char two_open[] = "clusters: [{name: b, hosts: [b1, b2, b3]}, {name: c, hosts: [c1]}]\n";
    struct world w;
    struct tb_reach_results results;
    assert_int_equal(make(&w, two_open, (char *[]){(char *)"x", NULL}), TB_OK);
    assert_int_equal(tb_grid_plan_ask(&w.plan, &w.placement, &results), TB_OK);
    results.stories[0 * results.count + 3] = strdup("10.0.0.1:1: what a pity");
    assert_int_equal(tb_grid_plan_learn(&w.plan, &w.placement, &results), TB_ERR_UNSUPPORTED);
    assert_non_null(strstr(tb_error_story(), "b1 and c1"));
    assert_non_null(strstr(tb_error_story(), "b1 to c1: 10.0.0.1:1: what a pity; c1 to b1: no answer in time."));
    unmake(&w);
    tb_reach_results_close(&results);
    /* One direction is enough. */
    assert_int_equal(make(&w, two_open, (char *[]){(char *)"x", NULL}), TB_OK);
    assert_int_equal(tb_grid_plan_ask(&w.plan, &w.placement, &results), TB_OK);
    find_all_out(&w, &results, b, c);
    assert_int_equal(tb_grid_plan_learn(&w.plan, &w.placement, &results), TB_OK);
    assert_int_equal(route_between(&w, "c1", "b2").means, TB_HOST_ROUTE_CALLED);
    unmake(&w);
    tb_reach_results_close(&results);
}

static void others_are_taken_in_who_may_lead_on(void **state)
{
    struct world w;
    char *words[] = {(char *)"-n", (char *)"2", (char *)"x", NULL};
    assert_int_equal(make(&w, three_open, words), TB_OK);
    assert_int_equal(w.placement.book.host_count, 2);
    assert_true(tb_grid_plan_has_more(&w.plan));
    tb_placement_close(&w.placement);
    tb_grid_plan_close(&w.plan);
    assert_int_equal(tb_grid_plan_open(&w.plan, &w.options, w.plan.here, w.missing), TB_OK);
    w.plan.with_helpers = true;
    assert_int_equal(tb_placement_make(&w.placement, &w.options), TB_OK);
    assert_int_equal(tb_grid_plan_settle(&w.plan, &w.options, &w.placement), TB_OK);
    assert_int_equal(w.placement.book.host_count, 8);
    assert_int_equal(w.placement.book.ranks, 2);
    expect_parent(&w, "g2", "g1");
    assert_false(tb_grid_plan_has_more(&w.plan));
    unmake(&w);
}

/* The plan again, as somebody on a host of the grid makes it who starts nobody across some links. */
static void plan_at(struct world *w, const char *name, bool *avoided)
{
    tb_placement_close(&w->placement);
    tb_grid_plan_close(&w->plan);
    assert_int_equal(tb_grid_plan_open(&w->plan, &w->options, tb_grid_host_find(&w->grid, name), w->missing), TB_OK);
    tb_grid_plan_avoid(&w->plan, avoided);
    assert_int_equal(tb_placement_make(&w->placement, &w->options), TB_OK);
    assert_int_equal(tb_grid_plan_settle(&w->plan, &w->options, &w->placement), TB_OK);
}

static const char *avoidable(const struct world *w, const char *from, const char *to)
{
    const struct tb_grid_link *link = tb_grid_plan_avoidable(
        &w->plan, &w->options, &w->placement, tb_grid_host_find(&w->grid, from), tb_grid_host_find(&w->grid, to));
    return link != NULL ? link->name : "";
}

/* A link across which nobody answers when agents are to be started: they are started another way, if there is one. */
static void agents_are_started_around_a_cut(void **state)
{
    struct world w;
    bool avoided[2] = {false, false};
    assert_int_equal(make(&w, two_gates, (char *[]){(char *)"x", NULL}), TB_OK);
    plan_at(&w, "o1", NULL);
    expect_parent(&w, "g1", NULL);
    expect_parent(&w, "f2", "g1");
    assert_string_equal(avoidable(&w, "o1", "g1"), "g1-office");
    assert_string_equal(avoidable(&w, "o1", "g2"), "g2-office");
    assert_string_equal(avoidable(&w, "o1", "o2"), "");
    assert_string_equal(avoidable(&w, "g1", "f1"), "");
    avoided[0] = true;
    plan_at(&w, "o1", avoided);
    expect_parent(&w, "g2", NULL);
    expect_parent(&w, "g1", "g2");
    expect_parent(&w, "f2", "g2");
    assert_int_equal(route_between(&w, "o1", "g1").means, TB_HOST_ROUTE_DIRECT); /* for messages it may be up again */
    assert_string_equal(avoidable(&w, "o1", "g1"), "");                          /* it is avoided already */
    assert_string_equal(avoidable(&w, "o1", "g2"), "");                          /* there is no third way */
    unmake(&w);
}

static void few_stand_for_many(void **state)
{
    static const char many[] = "clusters: [{name: b, hosts: 'b[1-100]'}, {name: c, hosts: 'c[1-100]'}]\n";
    struct world w;
    struct tb_reach_results results;
    assert_int_equal(make(&w, many, (char *[]){(char *)"x", NULL}), TB_OK);
    assert_int_equal(tb_grid_plan_ask(&w.plan, &w.placement, &results), TB_OK);
    assert_int_equal(results.count, 4);
    assert_false(results.all);
    find_out(&w, &results, "b2", "c1");
    assert_int_equal(tb_grid_plan_learn(&w.plan, &w.placement, &results), TB_OK);
    assert_int_equal(route_between(&w, "b70", "c90").means, TB_HOST_ROUTE_DIRECT);
    assert_int_equal(route_between(&w, "c90", "b70").means, TB_HOST_ROUTE_CALLED);
    unmake(&w);
    tb_reach_results_close(&results);
    /* Where the file says everything nobody tries. */
    assert_int_equal(make(&w, two_gates, (char *[]){(char *)"x", NULL}), TB_OK);
    assert_int_equal(tb_grid_plan_ask(&w.plan, &w.placement, &results), TB_OK);
    assert_int_equal(results.count, 0);
    unmake(&w);
    tb_reach_results_close(&results);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gateways_start_and_relay),
        cmocka_unit_test(a_lost_gateway_is_gone_around),
        cmocka_unit_test(clusters_nest),
        cmocka_unit_test(borders_are_for_agents),
        cmocka_unit_test(a_cut_link_is_gone_around),
        cmocka_unit_test(without_a_way_around_all_stays),
        cmocka_unit_test(a_gateway_is_lost_while_a_link_is_cut),
        cmocka_unit_test(clusters_are_started_by_hand),
        cmocka_unit_test(who_cannot_be_joined_is_named),
        cmocka_unit_test(clusters_have_their_own_routes_to_start),
        cmocka_unit_test(hosts_of_a_class_may_turn_out_to_differ),
        cmocka_unit_test(who_cannot_be_joined_is_named_with_what_was_tried),
        cmocka_unit_test(few_stand_for_many),
        cmocka_unit_test(agents_are_started_around_a_cut),
        cmocka_unit_test(others_are_taken_in_who_may_lead_on),
    };
    tb_param_load();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
