#include "topology/cost_build.h"
#include "topology/cost_make.h"
#include "topology/cost_parameters.h"
#include "topology/hop_wires.h"
#include "topology/places_grid.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* ---- making ------------------------------------------------------------------------------------------------------ */

struct made {
    struct tb_grid grid;
    struct tb_places places;
    struct tb_cost_table table;
    uint32_t *cluster_places, *site_places;
    void *bytes;
    size_t length;
};

static void make(struct made *m, const char *text)
{
    struct tb_host_classes classes;
    if (tb_grid_parse(&m->grid, text, strlen(text), "g.yaml") != TB_OK)
        fail_msg("%s", tb_error_story());
    m->cluster_places = calloc(m->grid.cluster_count + 1, sizeof(uint32_t));
    m->site_places = calloc(m->grid.site_count + 1, sizeof(uint32_t));
    assert_int_equal(tb_places_from_grid(&m->places, &m->grid, m->cluster_places, m->site_places), TB_OK);
    assert_int_equal(tb_host_classes_open(&classes, &m->grid), TB_OK);
    struct tb_cost_source source = {.places = &m->places,
                                    .grid = &m->grid,
                                    .cluster_places = m->cluster_places,
                                    .site_places = m->site_places,
                                    .classes = &classes,
                                    .host_count = m->grid.host_count,
                                    .version = 3};
    tb_param.forbid_direct = true;
    assert_int_equal(tb_cost_table_make(&source, &m->bytes, &m->length), TB_OK);
    tb_param.forbid_direct = false;
    tb_host_classes_close(&classes);
    assert_int_equal(tb_cost_table_view(&m->table, m->bytes, m->length), TB_OK);
    if (tb_cost_table_check(&m->table, m->grid.host_count) != TB_OK)
        fail_msg("%s", tb_error_story());
}

static void unmake(struct made *m)
{
    free(m->bytes);
    free(m->cluster_places);
    free(m->site_places);
    tb_places_close(&m->places);
    tb_grid_close(&m->grid);
}

static uint64_t link_rate(const struct made *m, uint32_t from, uint32_t to)
{
    uint32_t link = tb_cost_link_find(&m->table, from, TB_COST_NONE, to, TB_COST_NONE);
    return link != TB_COST_NONE ? m->table.wires[m->table.links[link].wire].bandwidth : 0;
}

static void within(size_t bytes, double expected)
{
    if ((double)bytes < 0.95 * expected || (double)bytes > 1.05 * expected)
        fail_msg("%zu bytes, not about %.0f", bytes, expected);
}

/* Every link of a full mesh is there, with its own rate in each direction. */
static void a_mesh_arrives_whole(void **state)
{
    const uint32_t n = 32;
    struct made m;
    char *text = malloc(1 << 20), *at = text + sprintf(text, "clusters:\n");
    for (uint32_t i = 0; i < n; i++)
        at += sprintf(at, "- {name: c%u, hosts: ['h%u_[1-2]']}\n", i, i);
    at += sprintf(at, "links:\n");
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t k = 0; k < n; k++)
            if (i != k)
                at += sprintf(at, "- {from: c%u, to: c%u, bandwidth: %u}\n", i, k, 1 + 100 * i + k);
    make(&m, text);
    free(text);
    assert_int_equal(m.table.head->link_count, n * (n - 1));
    assert_int_equal(m.table.head->version, 3);
    assert_true((m.table.head->constants.flags & (TB_COSTS_GRID | TB_COSTS_CLOSED)) ==
                (TB_COSTS_GRID | TB_COSTS_CLOSED));
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t k = 0; k < n; k++)
            assert_int_equal(link_rate(&m, m.cluster_places[i], m.cluster_places[k]),
                             i != k ? (1 + 100 * i + k) * UINT64_C(1000000) : 0);
    within(m.length, 95000);
    unmake(&m);
}

/* What is alike is there once: ten thousand clusters cost their places and kinds. */
static void alike_wires_are_kept_once(void **state)
{
    struct made m;
    char *text = malloc(2 << 20), *at = text + sprintf(text, "clusters:\n");
    for (int i = 0; i < 10000; i++)
        at += sprintf(at,
                      "- {name: c%d, hosts: ['g%d', 'h%d_[1-3]'], gateways: g%d, nat: true, uplink: {bandwidth: %d}}\n",
                      i, i, i, i, i == 77 ? 8 : 9);
    make(&m, text);
    free(text);
    within(m.length, 1.2e6);
    assert_true(m.table.head->wire_count < 10);
    /* Alike places look alike. */
    const struct tb_cost_place *places = m.table.places;
    assert_int_equal(places[1].look, places[9999].look);
    assert_int_not_equal(places[1].look, places[m.cluster_places[77]].look);
    assert_int_equal(places[5].gates, 1);
    assert_int_equal(m.table.relays[places[5].gate].who, tb_grid_host_find(&m.grid, "g4"));
    unmake(&m);
}

/* As many clusters and links as there can be, all different. */
static void the_largest_table(void **state)
{
    const uint32_t n = 16384, links = 262144;
    static const struct tb_cost_assumed assumed = {.near_rate = 1000};
    struct tb_places_builder *tree;
    struct tb_places places;
    struct tb_cost_builder b;
    struct tb_cost_table table;
    uint32_t *numbers = malloc((n + 1) * sizeof *numbers), handle;
    void *bytes;
    size_t length;
    assert_int_equal(tb_places_builder_open(&tree), TB_OK);
    for (uint32_t i = 0; i < n; i++) {
        char name[16];
        snprintf(name, sizeof name, "c%u", i);
        assert_int_equal(tb_places_builder_add(tree, 0, TB_LEVEL_CLUSTER, name, &handle), TB_OK);
    }
    assert_int_equal(tb_places_builder_seal(tree, &places, numbers), TB_OK);
    tb_places_builder_close(tree);
    assert_int_equal(tb_cost_builder_open(&b, &places, &assumed), TB_OK);
    for (uint32_t i = 0; i < links; i++) {
        struct tb_wire wire = {.bandwidth = i + 1, .curve = TB_COST_NONE, .ends = TB_COST_NONE};
        struct tb_link_cost link = {.from = 1 + i % n,
                                    .to = 1 + (i % n + 1 + i / n) % n,
                                    .from_host = TB_COST_NONE,
                                    .to_host = TB_COST_NONE,
                                    .wire = tb_cost_builder_wire(&b, &wire)};
        tb_cost_builder_link(&b, &link);
    }
    struct tb_cost_kind kind = {.port = TB_COST_NONE, .gate_of = TB_COST_NONE};
    for (uint32_t i = 0; i < 2 * n; i++)
        tb_cost_builder_push(&b, &b.kinds, &kind);
    assert_int_equal(tb_cost_builder_seal(&b, &bytes, &length), TB_OK);
    tb_cost_builder_close(&b);
    within(length, 24.6e6);
    assert_int_equal(tb_cost_table_view(&table, bytes, length), TB_OK);
    assert_int_equal(tb_cost_table_check(&table, 0), TB_OK);
    uint32_t link = tb_cost_link_find(&table, 1 + 5, TB_COST_NONE, 1 + 8, TB_COST_NONE);
    assert_int_equal(table.wires[table.links[link].wire].bandwidth, 2 * n + 5 + 1);
    free(bytes);
    free(numbers);
    tb_places_close(&places);
}

/* ---- parameters -------------------------------------------------------------------------------------------------- */

static void plain_tables_follow_the_parameters(void **state)
{
    static const char text[] = "sites: [{name: S, clusters: [{name: a, hosts: a1}, {name: b, hosts: b1}]}]";
    struct made m;
    make(&m, text);
    assert_int_equal(tb_param_set("links", "a:10:2:hub,S^:7:1,a/b:5:3,b>a:6:4,nobody:1:1", TB_PARAM_LAUNCHER), TB_OK);
    assert_int_equal(tb_param_set("ethernet_table", "0:1000:2000:3000,1000:1500:2500:13000", TB_PARAM_LAUNCHER), TB_OK);
    assert_int_equal(tb_cost_parameters_check(), TB_OK);
    struct tb_cost_table t;
    void *bytes;
    size_t length;
    assert_int_equal(tb_cost_table_make_plain(&m.places, 2, &bytes, &length), TB_OK);
    assert_int_equal(tb_cost_table_view(&t, bytes, length), TB_OK);
    assert_int_equal(tb_cost_table_check(&t, 2), TB_OK);
    assert_int_equal(tb_cost_table_check(&t, 3), TB_ERR_ARGUMENT);
    uint32_t s = m.site_places[0], a = m.cluster_places[0], b = m.cluster_places[1];
    assert_true(t.places[a].hub && t.wires[t.places[a].port].bandwidth == 10000000);
    assert_int_equal(t.places[a].near, UINT64_C(2000000000));
    assert_int_equal(t.wires[t.places[s].up].bandwidth, 7000000);
    assert_int_equal(t.wires[t.places[s].down].latency, 1000000000);
    uint32_t there = tb_cost_link_find(&t, a, TB_COST_NONE, b, TB_COST_NONE);
    uint32_t back = tb_cost_link_find(&t, b, TB_COST_NONE, a, TB_COST_NONE);
    assert_int_equal(t.wires[t.links[there].wire].bandwidth, 5000000);
    assert_int_equal(t.wires[t.links[back].wire].bandwidth, 6000000);
    assert_int_equal(t.links[there].back, back);
    assert_int_equal(t.links[back].back, there);
    /* A port of which nothing is said takes what was measured; one with a rate does not. */
    assert_int_equal(tb_wire_time(&t, &t.wires[t.places[b].port], 500), 8000000);
    assert_int_equal(tb_wire_time(&t, &t.wires[t.places[a].port], 1448), (1538 + 154) * 8 * 100000);
    assert_int_equal(t.head->constants.ends[TB_ENDS_TCP].receive.points[0].time, 2000000);
    free(bytes);
    unmake(&m);
    assert_int_equal(tb_param_set("links", "a^b:1:1", TB_PARAM_LAUNCHER), TB_OK);
    assert_int_equal(tb_cost_parameters_check(), TB_ERR_ARGUMENT);
    assert_non_null(strstr(tb_error_story(), "parameter links"));
    assert_int_equal(tb_param_load(), TB_OK);
}

/* What the user says of a link goes before what the file says; that ranks may cross it stays. */
static void parameters_go_before_the_file(void **state)
{
    static const char text[] =
        "clusters: [{name: a, hosts: a1}, {name: b, hosts: b1}, {name: c, hosts: c1}]\n"
        "links: [{from: a, to: b, direct: true, bandwidth: 3}, {from: a, to: c, bandwidth: 4}]\n";
    struct made m;
    assert_int_equal(tb_param_load(), TB_OK);
    assert_int_equal(tb_param_set("links", "a/b:9:1", TB_PARAM_LAUNCHER), TB_OK);
    make(&m, text);
    uint32_t a = m.cluster_places[0], b = m.cluster_places[1], c = m.cluster_places[2];
    assert_int_equal(m.table.head->link_count, 4);
    assert_int_equal(link_rate(&m, a, b), 9000000);
    assert_int_equal(link_rate(&m, c, a), 4000000);
    uint32_t back = tb_cost_link_find(&m.table, b, TB_COST_NONE, a, TB_COST_NONE);
    assert_int_equal(m.table.links[back].flags, TB_LINK_DIRECT);
    unmake(&m);
    assert_int_equal(tb_param_load(), TB_OK);
}

static void one_host_needs_little(void **state)
{
    struct tb_place_row world = {.parent = TB_PLACE_NONE, .end = 1};
    struct tb_places places = {.count = 1, .name_bytes = 1, .rows = &world, .names = (char[1]){0}};
    void *bytes;
    size_t length;
    assert_int_equal(tb_param_load(), TB_OK);
    assert_int_equal(tb_cost_table_make_plain(&places, 1, &bytes, &length), TB_OK);
    assert_true(length <= 4096);
    free(bytes);
}

/* Who is between them is somebody who takes part. */
static void detours_lead_by_hosts_of_the_job(void **state)
{
    static const char text[] = "clusters: [{name: a, hosts: [a1, x1, x2]}, {name: b, hosts: [b1, x1, x2]}]\n"
                               "links: [{from: a, to: b, blocked: true}]\n";
    static const uint32_t hosts[] = {0, TB_GRID_NONE, 1, 2};
    struct tb_connectivity connectivity;
    struct tb_routes routes;
    struct made m;
    make(&m, text);
    free(m.bytes);
    assert_int_equal(tb_connectivity_open(&connectivity, &m.grid), TB_OK);
    assert_int_equal(tb_routes_open(&routes, &connectivity), TB_OK);
    struct tb_cost_source source = {.places = &m.places,
                                    .grid = &m.grid,
                                    .cluster_places = m.cluster_places,
                                    .site_places = m.site_places,
                                    .classes = &connectivity.classes,
                                    .routes = &routes,
                                    .hosts = hosts,
                                    .host_count = 3,
                                    .version = 1};
    assert_int_equal(tb_cost_table_make(&source, &m.bytes, &m.length), TB_OK);
    assert_int_equal(tb_cost_table_view(&m.table, m.bytes, m.length), TB_OK);
    if (tb_cost_table_check(&m.table, 3) != TB_OK)
        fail_msg("%s", tb_error_story());
    assert_true(m.table.head->detour_count > 0);
    for (uint32_t i = 0; i < m.table.head->hop_count; i++)
        assert_int_equal(m.table.hops[i].who, 1);
    tb_routes_close(&routes);
    tb_connectivity_close(&connectivity);
    unmake(&m);
}

/* ---- bytes of strangers ------------------------------------------------------------------------------------------ */

static const char odd[] =
    "sites: [{name: S, uplink: {bandwidth: 9}, clusters: [{name: a, hosts: [a1, a2], gateways: a1}]}]\n"
    "clusters: [{name: b, hosts: [b1, a2, {name: b2, bandwidth: 5}], clusters: [{name: c, hosts: c1, ethernet:\n"
    "  {table: '0:1:1:1,10:2:2:2'}}]}, {name: d, hosts: [d1], ethernet: {hub: true}}]\n"
    "links: [{from: S, to: b, latency: 2}, {from: c, to: b}, {from: a1, to: d, latency: 1, duplex: half}]\n";

static void short_and_foreign_bytes_are_refused(void **state)
{
    struct made m;
    make(&m, odd);
    struct tb_cost_table t;
    for (size_t i = 0; i < m.length; i += 8)
        assert_int_equal(tb_cost_table_view(&t, m.bytes, i), TB_ERR_ARGUMENT);
    struct tb_cost_head *head = m.bytes;
    head->format++;
    assert_int_equal(tb_cost_table_view(&t, m.bytes, m.length), TB_ERR_ARGUMENT);
    unmake(&m);
}

/* A place that lies in another one by its number must do so by its parent. */
static void places_that_overlap_are_refused(void **state)
{
    struct made m;
    make(&m, "clusters: [{name: a, hosts: a1}, {name: b, hosts: b1}, {name: c, hosts: c1}]");
    struct tb_cost_place *places = (struct tb_cost_place *)((char *)m.bytes + m.table.head->places);
    for (uint32_t i = 1; i < 3; i++) {
        places[i].end = i + 2; /* the next one, too, whose parent is the world */
        assert_int_equal(tb_cost_table_check(&m.table, m.grid.host_count), TB_ERR_ARGUMENT);
        places[i].end = i + 1;
    }
    assert_int_equal(tb_cost_table_check(&m.table, m.grid.host_count), TB_OK);
    places[1].end = 3;
    places[2].parent = 1;
    places[2].depth = 2;
    assert_int_equal(tb_cost_table_check(&m.table, m.grid.host_count), TB_OK);
    unmake(&m);
}

/* From every kind in every place to every other. */
static void ask_everything(const struct tb_cost_table *t)
{
    struct tb_wire_use uses[TB_HOP_WIRES_LIMIT];
    uint64_t latency;
    for (uint32_t i = 0; i < t->head->kind_count; i++)
        for (uint32_t k = 0; k < t->head->kind_count; k++) {
            struct tb_spot a = {i % t->head->place_count, i, i}, b = {k % t->head->place_count, k, TB_COST_NONE};
            uint32_t count = tb_cost_hop_wires(t, &a, &b, uses, &latency);
            assert_true(count <= TB_HOP_WIRES_LIMIT);
            for (uint32_t n = 0; n < count; n++)
                assert_true(uses[n].wire < t->head->wire_count);
        }
}

/* Whatever is changed: it is found, or does no harm. */
static void changed_bytes_do_no_harm(void **state)
{
    struct made m;
    uint64_t seed = 1;
    uint32_t found = 0;
    make(&m, odd);
    ask_everything(&m.table);
    uint32_t *copy = malloc(m.length); /* of its own, so that reading behind the end is seen */
    for (uint32_t round = 0; round < 20000; round++) {
        struct tb_cost_table t;
        memcpy(copy, m.bytes, m.length);
        for (uint32_t i = 0; i < 1 + round % 3; i++) {
            seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
            uint32_t old = copy[(seed >> 33) % (m.length / 4)], how = (uint32_t)(seed >> 20) & 7;
            copy[(seed >> 33) % (m.length / 4)] = how < 3   ? old + how - 1
                                                  : how < 5 ? (uint32_t)(seed >> 24) % 16
                                                            : old ^ 1u << (seed >> 28) % 32;
        }
        if (tb_cost_table_view(&t, copy, m.length) == TB_OK && tb_cost_table_check(&t, m.grid.host_count) == TB_OK)
            ask_everything(&t);
        else
            found++;
    }
    assert_true(found > 1000);
    free(copy);
    unmake(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_mesh_arrives_whole),
        cmocka_unit_test(alike_wires_are_kept_once),
        cmocka_unit_test(the_largest_table),
        cmocka_unit_test(detours_lead_by_hosts_of_the_job),
        cmocka_unit_test(parameters_go_before_the_file),
        cmocka_unit_test(plain_tables_follow_the_parameters),
        cmocka_unit_test(one_host_needs_little),
        cmocka_unit_test(short_and_foreign_bytes_are_refused),
        cmocka_unit_test(places_that_overlap_are_refused),
        cmocka_unit_test(changed_bytes_do_no_harm),
    };
    tb_param_load();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
