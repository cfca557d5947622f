#include "picture/picture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static char *picture_of(const char *text)
{
    struct tb_grid grid;
    char *svg = NULL;
    size_t length = 0;
    if (tb_grid_parse(&grid, text, strlen(text), "g<&>.yaml") != TB_OK)
        fail_msg("%s", tb_error_story());
    FILE *to = open_memstream(&svg, &length);
    assert_int_equal(tb_picture_grid(to, &grid), TB_OK);
    fclose(to);
    tb_grid_close(&grid);
    assert_int_equal(strncmp(svg, "<?xml", 5), 0);
    assert_string_equal(svg + length - 7, "</svg>\n");
    return svg;
}

static void names_are_escaped(void **state)
{
    char *svg = picture_of("sites: [{name: 'R&D <lab> \"x\"', clusters: [{name: a, hosts: a1}]}]");
    assert_non_null(strstr(svg, "R&amp;D &lt;lab&gt; &quot;x&quot;"));
    assert_non_null(strstr(svg, "g&lt;&amp;&gt;.yaml"));
    assert_null(strstr(svg, "<lab>"));
    free(svg);
}

static void everything_is_shown(void **state)
{
    char *svg =
        picture_of("clusters:\n"
                   "- {name: mercury, hosts: [m1, m2:3], ethernet: {hub: true}}\n"
                   "- {name: venus, hosts: ['v1:0', 'v[2-40]:2'], gateways: v1, nat: true}\n"
                   "- {name: mars, hosts: [m2, x], clusters: [{name: moon, hosts: y}]}\n"
                   "links: [{from: mercury, to: venus, bandwidth: 10, latency: 75, loss: 0.5%},\n"
                   "  {from: mars, to: venus, latency: 3}, {from: venus, to: mars, blocked: true}, {from: moon, to: "
                   "mars, latency: 9}]");
    static const char *const parts[] = {">mercury<",
                                        ">venus<",
                                        ">moon<",
                                        ">hub",
                                        ">NAT<",
                                        ">closed<",
                                        ">v2<",
                                        ">v40<",
                                        "37 × 2 slots",
                                        "gateway, 0 slots",
                                        "10 Mbit/s · 75 ms · loss 0.5 %",
                                        "to mars: blocked · 3 ms",
                                        "m2 in both",
                                        "moon → mars: 9 ms"};
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        if (strstr(svg, parts[i]) == NULL)
            fail_msg("%s is not in the picture", parts[i]);
    }
    free(svg);
}

static void sites_and_uplinks_are_shown(void **state)
{
    char *svg = picture_of("sites:\n"
                           "- {name: Delft, uplink: {bandwidth: 30}, clusters: [{name: a, hosts: a1}]}\n"
                           "- {name: Utrecht, clusters: [{name: b, hosts: b1,\n"
                           "    uplink: {bandwidth: 20, duplex: half}, downlink: {bandwidth: 25}}]}\n"
                           "- {name: empty, clusters: []}\n"
                           "clusters: [{name: c, hosts: c1}]\n"
                           "links: [{from: Delft, to: Utrecht, bandwidth: 10}, {from: c, to: Delft, latency: 3},\n"
                           "  {from: empty, to: c, latency: 4}]");
    static const char *const parts[] = {"Delft – Utrecht: Delft-Utrecht 10 Mbit/s", "c – Delft: c-Delft 3 ms",
                                        "uplink · 30 Mbit/s", "uplink · 20 Mbit/s · half duplex",
                                        "downlink · 25 Mbit/s · half duplex"};
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        if (strstr(svg, parts[i]) == NULL)
            fail_msg("%s is not in the picture", parts[i]);
    }
    assert_null(strstr(svg, "empty – c"));
    free(svg);
}

/* One cluster, and a hundred of which each has a link to all others. */
static void any_size_can_be_drawn(void **state)
{
    free(picture_of("clusters: [{name: a, hosts: a1}]"));
    char *text = malloc(1 << 20), *at = text + sprintf(text, "clusters:\n");
    for (int i = 0; i < 100; i++)
        at += sprintf(at, "- {name: c%d, hosts: ['h%d_[1-300]:%d']}\n", i, i, i % 5);
    at += sprintf(at, "links:\n");
    for (int i = 0; i < 100; i++) {
        for (int j = 0; j < i; j++)
            at += sprintf(at, "- {from: c%d, to: c%d, latency: %d}\n", i, j, i);
    }
    char *svg = picture_of(text);
    assert_non_null(strstr(svg, ">c99<"));
    assert_null(strstr(svg, "nan"));
    free(svg);
    free(text);
}

/* The picture of routes with the way between two hosts, or NULL. */
static char *routes_of(const char *text, const char *from, const char *to)
{
    struct tb_grid grid;
    struct tb_connectivity connectivity;
    struct tb_cluster_graph graph;
    struct tb_routes routes = {0};
    char *svg = NULL;
    size_t length = 0;
    uint32_t path[16], count = 0;
    if (tb_grid_parse(&grid, text, strlen(text), "g<&>.yaml") != TB_OK)
        fail_msg("%s", tb_error_story());
    assert_int_equal(tb_connectivity_open(&connectivity, &grid), TB_OK);
    assert_int_equal(tb_cluster_graph_open(&graph, &connectivity), TB_OK);
    if (from != NULL) {
        assert_int_equal(tb_routes_open(&routes, &connectivity), TB_OK);
        count = tb_routes_path(&routes, tb_grid_host_find(&grid, from), tb_grid_host_find(&grid, to), 16, path);
    }
    FILE *out = open_memstream(&svg, &length);
    assert_int_equal(tb_picture_routes(out, &graph, path, count), TB_OK);
    fclose(out);
    tb_routes_close(&routes);
    tb_cluster_graph_close(&graph);
    tb_connectivity_close(&connectivity);
    tb_grid_close(&grid);
    assert_string_equal(svg + length - 7, "</svg>\n");
    assert_null(strstr(svg, "nan"));
    return svg;
}

static void routes_are_shown(void **state)
{
    char *svg = routes_of("clusters: [{name: a, hosts: ['a[1-9]', g], gateways: g}, {name: b, hosts: b1},"
                          "{name: c, hosts: c1, nat: true}]",
                          "a3", "c1");
    static const char *const parts[] = {">VC1<",
                                        ">VC2<",
                                        ">VC3<",
                                        ">a1 … a9<",
                                        "9 hosts",
                                        "1 slot, passes on",
                                        "g&lt;&amp;&gt;.yaml",
                                        "from a3 to c1 in 2 hops",
                                        "class=\"way\"",
                                        "class=\"call\"",
                                        "class=\"same\"",
                                        "a3 → g"};
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        if (strstr(svg, parts[i]) == NULL)
            fail_msg("%s is not in the picture", parts[i]);
    }
    free(svg);
    char *text = malloc(1 << 20), *at = text + sprintf(text, "clusters:\n");
    for (int i = 0; i < 450; i++)
        at += sprintf(at, "- {name: c%d, hosts: ['h%d_[1-30]', g%d], gateways: g%d}\n", i, i, i, i);
    svg = routes_of(text, NULL, NULL);
    assert_non_null(strstr(svg, "51 more virtual clusters are not shown"));
    assert_non_null(strstr(svg, "more kinds of hosts"));
    free(svg);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_are_escaped),
        cmocka_unit_test(everything_is_shown),
        cmocka_unit_test(sites_and_uplinks_are_shown),
        cmocka_unit_test(any_size_can_be_drawn),
        cmocka_unit_test(routes_are_shown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
