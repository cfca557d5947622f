/* Which wires connections cross, by name. */
#include "topology/cost_make.h"
#include "topology/hop_wires.h"
#include "topology/places_grid.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

struct fixture {
    struct tb_grid grid;
    struct tb_places places;
    struct tb_host_classes classes;
    struct tb_cost_table table;
    uint32_t *cluster_places, *site_places;
    void *bytes;
};

static void open_text(struct fixture *f, const char *text)
{
    size_t length;
    assert_int_equal(tb_param_load(), TB_OK);
    if (tb_grid_parse(&f->grid, text, strlen(text), "g.yaml") != TB_OK)
        fail_msg("%s", tb_error_story());
    f->cluster_places = calloc(f->grid.cluster_count + 1, sizeof(uint32_t));
    f->site_places = calloc(f->grid.site_count + 1, sizeof(uint32_t));
    assert_int_equal(tb_places_from_grid(&f->places, &f->grid, f->cluster_places, f->site_places), TB_OK);
    assert_int_equal(tb_host_classes_open(&f->classes, &f->grid), TB_OK);
    struct tb_cost_source source = {.places = &f->places,
                                    .grid = &f->grid,
                                    .cluster_places = f->cluster_places,
                                    .site_places = f->site_places,
                                    .classes = &f->classes,
                                    .host_count = f->grid.host_count,
                                    .version = 1};
    assert_int_equal(tb_cost_table_make(&source, &f->bytes, &length), TB_OK);
    assert_int_equal(tb_cost_table_view(&f->table, f->bytes, length), TB_OK);
    if (tb_cost_table_check(&f->table, f->grid.host_count) != TB_OK)
        fail_msg("%s", tb_error_story());
}

static void close_text(struct fixture *f)
{
    free(f->bytes);
    free(f->cluster_places);
    free(f->site_places);
    tb_places_close(&f->places);
    tb_host_classes_close(&f->classes);
    tb_grid_close(&f->grid);
}

static struct tb_spot spot_of(const struct fixture *f, const char *name)
{
    uint32_t host = tb_grid_host_find(&f->grid, name);
    assert_int_not_equal(host, TB_GRID_NONE);
    return (struct tb_spot){f->cluster_places[f->grid.hosts[host].cluster], f->classes.of[host], host};
}

static size_t say(const struct fixture *f, const struct tb_wire_use *use, char *out, size_t size)
{
    static const char *const roles[] = {"out", "in", "hub", "up", "down", "link", "wide", "agent"};
    const char *first = "*", *second = "";
    switch (use->role) {
    case TB_ROLE_PORT_OUT:
    case TB_ROLE_PORT_IN:
        first = f->grid.hosts[use->a].name;
        second = use->b == 0 ? "@" : "";
        break;
    case TB_ROLE_LINK:
        first = f->grid.links[use->a].name;
        second = use->a % 2 == 0 ? "+" : "-";
        break;
    case TB_ROLE_WIDE:
        first = tb_places_name(&f->places, use->a);
        second = tb_places_name(&f->places, use->b);
        break;
    default:
        first = tb_places_name(&f->places, use->a);
        break;
    }
    uint64_t rate = f->table.wires[use->wire].bandwidth / 1000000;
    return (size_t)snprintf(out, size, "%s:%s%s=%u ", roles[use->role], first, second, (unsigned)rate);
}

/* Each wire as role:name=Mbit/s, and then the microseconds of the whole. */
static void check(const struct fixture *f, const char *from, const char *to, const char *expected)
{
    struct tb_wire_use uses[TB_HOP_WIRES_LIMIT];
    struct tb_spot a = spot_of(f, from), b = spot_of(f, to);
    uint64_t latency;
    uint32_t count = tb_cost_hop_wires(&f->table, &a, &b, uses, &latency);
    char text[2048];
    size_t at = 0;
    for (uint32_t i = 0; i < count; i++)
        at += say(f, &uses[i], text + at, sizeof text - at);
    snprintf(text + at, sizeof text - at, "%u", (unsigned)(latency / 1000000));
    if (strcmp(text, expected) != 0)
        fail_msg("from %s to %s:\nexpected %s\nbut got  %s", from, to, expected, text);
}

#define NET "ethernet: {bandwidth: 1000, latency: 0.1}"

static void clusters_and_hubs(void **state)
{
    struct fixture f;
    open_text(&f,
              "clusters:\n- {name: a, hosts: [a1, a2, {name: a3, bandwidth: 10}, {name: a4, duplex: half}], " NET "}\n"
              "- {name: h, hosts: [h1, h2], ethernet: {hub: true, bandwidth: 10, latency: 1}}\n"
              "- {name: n, hosts: n1}\n");
    check(&f, "a1", "a2", "out:a1=1000 in:a2=1000 100");
    check(&f, "a3", "a1", "out:a3=10 in:a1=1000 100");
    check(&f, "a4", "a3", "out:a4=1000 in:a3=10 100");
    check(&f, "a3", "a4", "out:a3=10 out:a4=1000 100"); /* one wire for both directions */
    check(&f, "h1", "h2", "hub:h=10 1000");
    check(&f, "a1", "h1", "out:a1=1000 wide:ah=100 hub:h=10 11100");
    check(&f, "h1", "a1", "hub:h=10 wide:ha=100 in:a1=1000 11100");
    check(&f, "n1", "a1", "out:n1=1000 wide:na=100 in:a1=1000 10120"); /* what is assumed where nothing is said */
    close_text(&f);
}

static void uplinks_and_links(void **state)
{
    struct fixture f;
    open_text(&f, "sites:\n"
                  "- {name: S, uplink: {bandwidth: 30, latency: 1}, downlink: {bandwidth: 40}, clusters: [\n"
                  "    {name: a, hosts: a1, " NET ", uplink: {bandwidth: 20, latency: 2}}, {name: b, hosts: b1, " NET
                  "}]}\n"
                  "- {name: T, clusters: [{name: c, hosts: c1, " NET "}, {name: d, hosts: d1, " NET "}]}\n"
                  "clusters: [{name: e, hosts: e1, " NET "}, {name: x, hosts: x1, uplink: {duplex: half}, " NET "}]\n"
                  "links: [{from: S, to: T, bandwidth: 7, latency: 5}, {from: a, to: c, bandwidth: 8, latency: 3},\n"
                  "  {from: c, to: e, bandwidth: 9, latency: 1, duplex: half}]\n");
    check(&f, "a1", "b1", "out:a1=1000 up:a=20 in:b1=1000 2200"); /* the site is not left */
    check(&f, "b1", "a1", "out:b1=1000 down:a=20 in:a1=1000 2200");
    check(&f, "a1", "c1", "out:a1=1000 up:a=20 up:S=30 link:a-c+=8 in:c1=1000 6200");
    check(&f, "c1", "a1", "out:c1=1000 link:a-c-=8 down:S=40 down:a=20 in:a1=1000 6200");
    check(&f, "b1", "d1", "out:b1=1000 up:S=30 link:S-T+=7 in:d1=1000 6200");
    check(&f, "b1", "e1", "out:b1=1000 up:S=30 in:e1=1000 1200"); /* an uplink: nothing else is assumed */
    check(&f, "c1", "d1", "out:c1=1000 wide:cd=100 in:d1=1000 10200");
    check(&f, "c1", "e1", "out:c1=1000 link:c-e+=9 in:e1=1000 1200");
    check(&f, "e1", "c1", "out:e1=1000 link:c-e+=9 in:c1=1000 1200"); /* the same wire */
    check(&f, "x1", "e1", "out:x1=1000 up:x=0 in:e1=1000 200");
    check(&f, "e1", "x1", "out:e1=1000 up:x=0 in:x1=1000 200");
    close_text(&f);
}

static void gateways(void **state)
{
    struct fixture f;
    open_text(&f, "clusters:\n"
                  "- {name: a, hosts: [ga, {name: gb, bandwidth: 50}, a1], gateways: [ga, gb], nat: true, " NET ",\n"
                  "   uplink: {bandwidth: 20, latency: 2}}\n"
                  "- {name: c, hosts: [gc, c1], gateways: gc, " NET "}\n"
                  "links: [{from: gb, to: c, bandwidth: 5, latency: 1}, {from: a, to: c, bandwidth: 6, latency: 4}]\n");
    check(&f, "a1", "ga", "out:a1=1000 in:ga=1000 100");
    check(&f, "ga", "gc", "up:a=20 link:a-c+=6 6000");             /* no port inside is passed */
    check(&f, "gb", "gc", "out:gb@=50 up:a=20 link:gb-c+=5 3000"); /* but its own outside, if it has a rate */
    check(&f, "gc", "gb", "link:gb-c-=5 down:a=20 in:gb@=50 3000");
    check(&f, "a1", "gc", "out:a1=1000 up:a=20 link:a-c+=6 6100"); /* as NAT lets it */
    close_text(&f);
}

static void nested_clusters(void **state)
{
    struct fixture f;
    open_text(&f, "clusters:\n"
                  "- {name: p, hosts: p1, " NET ", uplink: {bandwidth: 11}, clusters: [\n"
                  "    {name: q, hosts: [q1, q2], gateways: q1, " NET ", clusters: [\n"
                  "       {name: r, hosts: r1, " NET ", uplink: {bandwidth: 12, latency: 1}}]},\n"
                  "    {name: s, hosts: s1, " NET "}, {name: t, hosts: t1, " NET "}]}\n"
                  "- {name: o, hosts: o1, " NET "}\n"
                  "links: [{from: q, to: p, bandwidth: 13, latency: 2}, {from: s, to: t, bandwidth: 14, latency: 3},\n"
                  "  {from: s, to: p, bandwidth: 15, latency: 4}]\n");
    check(&f, "r1", "q2", "out:r1=1000 up:r=12 in:q2=1000 1200");
    check(&f, "r1", "p1", "out:r1=1000 up:r=12 link:q-p+=13 in:p1=1000 3200");
    check(&f, "p1", "r1", "out:p1=1000 link:q-p-=13 down:r=12 in:r1=1000 3200");
    check(&f, "q1", "p1", "link:q-p+=13 in:p1=1000 2100");
    check(&f, "s1", "t1", "out:s1=1000 link:s-t+=14 in:t1=1000 3200"); /* stands for both steps by the network around */
    check(&f, "s1", "q2", "out:s1=1000 link:s-p+=15 link:q-p-=13 in:q2=1000 6200");
    check(&f, "r1", "o1", "out:r1=1000 up:r=12 link:q-p+=13 up:p=11 in:o1=1000 3200");
    check(&f, "o1", "s1", "out:o1=1000 down:p=11 link:s-p-=15 in:s1=1000 4200");
    close_text(&f);
}

/* Of two hosts in several clusters the feet count by which it is cheapest. */
static void several_feet(void **state)
{
    struct fixture f;
    open_text(&f, "clusters: [{name: a, hosts: [h, i, a1], " NET "}, {name: b, hosts: [i, h], "
                  "ethernet: {bandwidth: 10000, latency: 0.01}}, {name: c, hosts: [c1, i], " NET "}]\n");
    check(&f, "h", "i", "out:h=10000 in:i=10000 10");
    check(&f, "h", "a1", "out:h=1000 in:a1=1000 100");
    check(&f, "i", "c1", "out:i=1000 in:c1=1000 100");
    check(&f, "a1", "i", "out:a1=1000 in:i=1000 100");
    close_text(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(clusters_and_hubs), cmocka_unit_test(uplinks_and_links), cmocka_unit_test(gateways),
        cmocka_unit_test(nested_clusters),   cmocka_unit_test(several_feet),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
