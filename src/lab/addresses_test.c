/* IP families in the plan of a lab: who sees whom at which address, and what is written for that. */
#include "lab/network.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define SEGMENTS 16

struct fixture {
    struct tb_grid grid;
    struct tb_lab_network network;
};

static void fixture_open(struct fixture *f, const char *text)
{
    memset(f, 0, sizeof *f);
    int rc = tb_grid_parse(&f->grid, text, strlen(text), "test.yaml");
    if (rc == TB_OK)
        rc = tb_lab_plan_make(&f->network.plan, &f->grid);
    if (rc != TB_OK)
        fail_msg("%s", tb_error_story());
    assert_true(f->network.plan.segment_count <= SEGMENTS);
    f->network.grid = &f->grid;
}

static void fixture_close(struct fixture *f)
{
    tb_lab_plan_close(&f->network.plan);
    tb_grid_close(&f->grid);
}

static const char kinds[] = "clusters:\n"
                            "  - {name: new, hosts: [n1, n2], ip: 6}\n"
                            "  - {name: old, hosts: o1}\n"
                            "  - name: both\n"
                            "    hosts: [b1, b2]\n"
                            "    ip: 46\n"
                            "  - name: closed\n"
                            "    hosts: [c1, c2]\n"
                            "    gateways: c1\n"
                            "    nat: true\n"
                            "    ip: 6\n"
                            "  - name: campus\n"
                            "    hosts: [k1, b2]\n"
                            "    clusters:\n"
                            "      - {name: inner, hosts: i1, ip: 6}\n"
                            "      - {name: masked, hosts: m1, ip: 46, nat: true}\n"
                            "links:\n"
                            "  - {from: new, to: both, blocked: true}\n"
                            "  - {from: both, to: new}\n";

/* What a plan makes of families is what the grid says of them; blocked links are no matter of addresses. */
static void sight_is_reach(void **state)
{
    static const char *const grids[] = {
        "clusters: [{name: a, hosts: a1, ip: 6}, {name: b, hosts: b1}, {name: c, hosts: [c1, a1], ip: 46}]",
        "clusters: [{name: a, hosts: [a1, g], gateways: g, ip: 4}, {name: b, hosts: [b1, g], gateways: g, ip: 6},"
        " {name: c, hosts: c1, ip: 6}, {name: d, hosts: d1}]",
        "clusters: [{name: a, hosts: a1, clusters: [{name: b, hosts: b1, ip: 6, clusters: [{name: c, hosts: c1, ip: "
        "46}]}]},"
        " {name: d, hosts: d1, ip: 6}, {name: e, hosts: e1}]",
    };
    for (size_t i = 0; i <= sizeof grids / sizeof grids[0]; i++) {
        struct fixture f;
        struct tb_lab_plan_route seen[2][SEGMENTS];
        fixture_open(&f, i < sizeof grids / sizeof grids[0] ? grids[i] : kinds);
        for (uint32_t l = 0; l < f.grid.link_count; l++)
            f.grid.links[l].blocked = false;
        for (uint32_t a = 0; a < f.grid.host_count; a++) {
            for (unsigned family = TB_GRID_IPV4; family <= TB_GRID_IPV6; family++)
                tb_lab_plan_routes(&f.network.plan, a, (uint8_t)family, seen[family - 1]);
            for (uint32_t b = 0; b < f.grid.host_count; b++) {
                bool is_seen = tb_lab_plan_seen(&f.network.plan, seen[0], TB_GRID_IPV4, b) != NULL ||
                               tb_lab_plan_seen(&f.network.plan, seen[1], TB_GRID_IPV6, b) != NULL;
                if (is_seen != tb_grid_reaches(&f.grid, a, b))
                    fail_msg("grid %zu: %s %s %s", i, f.grid.hosts[a].name, is_seen ? "sees" : "does not see",
                             f.grid.hosts[b].name);
            }
        }
        fixture_close(&f);
    }
}

static uint8_t families(const struct fixture *f, const char *name, uint32_t segment)
{
    uint32_t node = tb_lab_plan_node_find(&f->network.plan, name);
    assert_int_not_equal(node, TB_GRID_NONE);
    const struct tb_lab_plan_foot *foot = tb_lab_plan_foot_find(&f->network.plan, node, segment);
    assert_non_null(foot);
    return foot->ip;
}

static void feet_have_what_they_need(void **state)
{
    struct fixture f;
    fixture_open(&f, kinds);
    assert_int_equal(f.network.plan.segments[0].carries, TB_GRID_IPV4 | TB_GRID_IPV6);
    assert_int_equal(families(&f, "n1", 1), TB_GRID_IPV6);
    assert_int_equal(families(&f, "o1", 2), TB_GRID_IPV4);
    assert_int_equal(families(&f, "old.router", 0), TB_GRID_IPV4);
    assert_int_equal(families(&f, "both.router", 0), TB_GRID_IPV4 | TB_GRID_IPV6);
    assert_int_equal(families(&f, "b2", 5), TB_GRID_IPV4);
    assert_int_equal(families(&f, "c1", 0), TB_GRID_IPV6);
    assert_int_equal(families(&f, "k1", 5), TB_GRID_IPV4); /* IPv6 passes it by */
    assert_int_equal(families(&f, "campus.router", 5), TB_GRID_IPV4 | TB_GRID_IPV6);
    assert_int_equal(families(&f, "inner.router", 5), TB_GRID_IPV6);
    assert_int_equal(families(&f, "console", 0), TB_GRID_IPV4 | TB_GRID_IPV6);
    fixture_close(&f);
}

/* ---- texts ------------------------------------------------------------------------------------------------------- */

static void expect_lines(const char *text, const char *const *lines, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (strstr(text, lines[i]) == NULL)
            fail_msg("no \"%s\" in:\n%s", lines[i], text);
}

#define EXPECT_LINES(text, ...)                                                                                        \
    do {                                                                                                               \
        const char *const lines_[] = {__VA_ARGS__};                                                                    \
        expect_lines(text, lines_, sizeof lines_ / sizeof lines_[0]);                                                  \
    } while (0)

static char *names_of(const struct fixture *f, const char *host)
{
    struct tb_lab_plan_route routes[SEGMENTS];
    char *text = tb_addresses_names(&f->network.plan, tb_lab_plan_node_find(&f->network.plan, host), routes);
    assert_non_null(text);
    return text;
}

static void names(void **state)
{
    struct fixture f;
    fixture_open(&f, kinds);
    char *text = names_of(&f, "b1"); /* has both: IPv6 first */
    EXPECT_LINES(text, "::1 localhost\n", "127.0.0.1 localhost\n", "fd54:6f6d:626f:3::2 b2\n", "10.3.0.2 b2\n",
                 "fd54:6f6d:626f:1::1 n1\n", "10.2.0.1 o1\n", "fd54:6f6d:626f:0::1 c1\n");
    assert_true(strstr(text, "fd54:6f6d:626f:3::2 b2\n") < strstr(text, "10.3.0.2 b2\n"));
    assert_null(strstr(text, "10.1.0."));
    assert_null(strstr(text, " c2\n"));
    free(text);
    text = names_of(&f, "n1");
    assert_null(strstr(text, " o1\n"));
    assert_null(strstr(text, "10."));
    EXPECT_LINES(text, "fd54:6f6d:626f:3::1 b1\n", "fd54:6f6d:626f:6::1 i1\n");
    free(text);
    text = names_of(&f, "o1"); /* as without IPv6 */
    assert_null(strstr(text, ":"));
    EXPECT_LINES(text, "127.0.0.1 localhost\n", "10.3.0.1 b1\n", "10.5.0.2 k1\n");
    free(text);
    fixture_close(&f);
}

static char *written(const struct fixture *f, const char *host, bool filter)
{
    struct tb_lab_plan_route routes[SEGMENTS];
    uint32_t node = tb_lab_plan_node_find(&f->network.plan, host);
    char *text = NULL;
    size_t length = 0;
    FILE *to = open_memstream(&text, &length);
    assert_non_null(to);
    if (filter)
        tb_filter_write(to, &f->network, node);
    else
        tb_addresses_write(to, &f->network.plan, node, routes);
    fclose(to);
    return text;
}

static void addresses_and_routes(void **state)
{
    struct fixture f;
    fixture_open(&f, kinds);
    char *text = written(&f, "n1", false);
    assert_string_equal(text, "link set lo up\nlink set eth0 up\naddr add fd54:6f6d:626f:1::1/64 dev eth0 nodad\n"
                              "route add ::/0 via fd54:6f6d:626f:1::3\n");
    free(text);
    text = written(&f, "o1", false);
    assert_string_equal(text, "link set lo up\naddr add 10.2.0.1/16 brd + dev eth0\nlink set eth0 up\n"
                              "route add 0.0.0.0/0 via 10.2.0.2\n");
    free(text);
    text = written(&f, "campus.router", false);
    EXPECT_LINES(text, "addr add 10.5.0.3/16", "addr add fd54:6f6d:626f:5::3/64 dev eth0 nodad\n",
                 "route add fd54:6f6d:626f:6::/64 via fd54:6f6d:626f:5::4\n", "route add 10.2.0.0/16 via ");
    assert_null(strstr(text, "route add 10.6.")); /* nobody there has IPv4 */
    assert_null(strstr(text, "route add 10.1."));
    free(text);
    text = written(&f, "b2", false); /* one foot with both, one with IPv4 alone */
    EXPECT_LINES(text, "link set eth1 addrgenmode none\naddr add 10.5.0.1/16");
    assert_null(strstr(text, "eth0 addrgenmode"));
    free(text);
    fixture_close(&f);
}

static void filters(void **state)
{
    struct fixture f;
    fixture_open(&f, kinds);
    uint32_t router = tb_lab_plan_node_find(&f.network.plan, "both.router");
    assert_true(tb_filter_is_needed(&f.network, router));
    char *text = written(&f, "both.router", true);
    EXPECT_LINES(text, "table inet lab {\n",
                 "iifname eth1 ip6 saddr { fd54:6f6d:626f:0::2, fd54:6f6d:626f:1::/64 } ct state new drop\n");
    assert_null(strstr(text, "ip saddr"));
    free(text);
    text = written(&f, "c1", true);
    EXPECT_LINES(text, "table inet lab {\n", "policy drop;\n", "iifname eth0 oifname eth1 accept\n",
                 "oifname eth1 masquerade\n");
    free(text);
    text = written(&f, "old.router", true);
    EXPECT_LINES(text, "table ip lab {\n");
    free(text);
    fixture_close(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(sight_is_reach), cmocka_unit_test(feet_have_what_they_need),
                                       cmocka_unit_test(names), cmocka_unit_test(addresses_and_routes),
                                       cmocka_unit_test(filters)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
