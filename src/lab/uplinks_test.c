/* Which pipes lie between two feet of a lab's network, and what the ports of machines are given: all that follows from
 * the grid, before anything is built. */
#include "lab/network.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const char text[] = "sites:\n"
                           "  - name: The Hague\n"
                           "    uplink: {bandwidth: 20}\n"
                           "    clusters:\n"
                           "      - {name: a, hosts: a1, uplink: {bandwidth: 30}}\n"
                           "      - {name: b, hosts: [b1, b2], gateways: [b1, b2], uplink: {}}\n"
                           "  - name: e\n"
                           "    uplink: {bandwidth: 5}\n"
                           "    clusters:\n"
                           "      - {name: c, hosts: c1}\n"
                           "clusters:\n"
                           "  - name: e\n"
                           "    hosts: [e1, {name: e2, bandwidth: 10}, {name: e3, duplex: half}, g]\n"
                           "    gateways: g\n"
                           "    ethernet: {bandwidth: 100, queue: 30k}\n"
                           "    clusters:\n"
                           "      - {name: inner, hosts: i1, uplink: {latency: 1}}\n"
                           "      - {name: beside, hosts: j1}\n"
                           "  - name: h\n"
                           "    hosts: [{name: h1, bandwidth: 7, queue: 9k}, h2]\n"
                           "    gateways: h1\n"
                           "  - {name: hub, hosts: k1, ethernet: {hub: true, bandwidth: 10, duplex: half}}\n"
                           "links:\n"
                           "  - {from: The Hague, to: c, latency: 1}\n"
                           "  - {from: b, to: c, latency: 2}\n"
                           "  - {from: inner, to: beside, latency: 2}\n";

struct fixture {
    struct tb_grid grid;
    struct tb_lab_network network;
};

static int open_fixture(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    *state = f;
    int rc = tb_grid_parse(&f->grid, text, strlen(text), "test.yaml");
    if (rc == TB_OK)
        rc = tb_lab_plan_make(&f->network.plan, &f->grid);
    f->network.grid = &f->grid;
    f->network.feet = calloc(f->network.plan.foot_count, sizeof *f->network.feet);
    if (rc != TB_OK)
        fprintf(stderr, "%s\n", tb_error_story());
    return rc;
}

static int close_fixture(void **state)
{
    struct fixture *f = *state;
    free(f->network.feet);
    tb_lab_plan_close(&f->network.plan);
    tb_grid_close(&f->grid);
    free(f);
    return 0;
}

/* The foot of a machine in a segment; "" is whatever else is in it. */
static uint32_t foot_in(const struct fixture *f, uint32_t segment, const char *name)
{
    const struct tb_lab_plan *plan = &f->network.plan;
    if (*name == 0)
        return TB_GRID_NONE;
    uint32_t node = tb_lab_plan_node_find(plan, name);
    assert_int_not_equal(node, TB_GRID_NONE);
    const struct tb_lab_plan_foot *foot = tb_lab_plan_foot_find(plan, node, segment);
    assert_non_null(foot);
    return (uint32_t)(foot - plan->feet);
}

static void ways(void **state)
{
    struct fixture *f = *state;
    static const struct {
        const char *around, *from, *to, *expected; /* around: the cluster in whose network both stand; "": wide */
    } cases[] = {
        {"", "a.router", "b1", "a.up b.down"}, /* not out of their site */
        {"", "b1", "b2", ""},                  /* not out of their cluster */
        {"", "a.router", "c.router", "a.up The%20Hague.up The%20Hague>c site:e.down"},
        {"", "c.router", "a.router", "site:e.up c>The%20Hague The%20Hague.down a.down"},
        {"", "b2", "c.router", "b.up The%20Hague.up b>c site:e.down"},
        {"", "a.router", "h1", "a.up The%20Hague.up"},
        {"", "g", "h1", ""},
        {"", "console", "a.router", "The%20Hague.down a.down"},
        {"", "a.router", "console", "a.up The%20Hague.up"},
        {"e", "inner.router", "beside.router", "inner.up inner>beside"},
        {"e", "inner.router", "", "inner.up"},
        {"e", "", "inner.router", "inner.down"},
        {"e", "", "beside.router", ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        uint32_t segment = *cases[i].around == 0 ? 0 : 1 + tb_grid_cluster_find(&f->grid, cases[i].around);
        struct tb_lab_network_way way;
        char got[2048] = "";
        size_t used = 0;
        tb_lab_network_way(&f->network, segment, foot_in(f, segment, cases[i].from), foot_in(f, segment, cases[i].to),
                           &way);
        for (uint32_t k = 0; k < way.count; k++)
            used += (size_t)snprintf(got + used, sizeof got - used, "%s%s", k > 0 ? " " : "", way.names[k]);
        if (strcmp(got, cases[i].expected) != 0)
            fail_msg("from %s to %s: \"%s\" instead of \"%s\"", cases[i].from, cases[i].to, got, cases[i].expected);
    }
}

static void ports(void **state)
{
    struct fixture *f = *state;
    static const struct {
        const char *cluster, *host;
        uint64_t rate, queue;
        bool half;
    } cases[] = {
        {"e", "e1", 100, 30720, false},     {"e", "e2", 10, 30720, false}, {"e", "e3", 100, 30720, true},
        {"e", "inner.router", 0, 0, false}, {"", "g", 0, 0, false},        {"h", "h1", 7, 9216, false},
        {"", "h1", 7, 9216, false},         {"h", "h2", 0, 0, false},      {"hub", "k1", 10, 0, false},
        {"", "console", 0, 0, false},
    };
    tb_ports_assign(&f->network);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        uint32_t segment = *cases[i].cluster == 0 ? 0 : 1 + tb_grid_cluster_find(&f->grid, cases[i].cluster);
        const struct tb_lab_network_foot *foot = &f->network.feet[foot_in(f, segment, cases[i].host)];
        if (foot->out != cases[i].rate * 1000000 || foot->in != foot->out || foot->queue != cases[i].queue ||
            foot->half != cases[i].half)
            fail_msg("%s in \"%s\": %llu bit/s, queue %llu%s", cases[i].host, cases[i].cluster,
                     (unsigned long long)foot->out, (unsigned long long)foot->queue, foot->half ? ", half" : "");
    }
}

/* The kernel's netem has no shared wires. */
static void the_kernel_cannot(void **state)
{
    struct fixture *f = *state;
    assert_true(tb_uplink_crosses(&f->network, 0));
    assert_false(tb_kernel_links_fit(&f->network, 0));
    assert_false(tb_uplink_crosses(&f->network, 1));
    assert_true(tb_kernel_links_fit(&f->network, 1)); /* no links there */
}

static void written(char *to, size_t room, uint64_t before, uint64_t rate, uint64_t queue)
{
    memset(to, 0, room);
    FILE *file = fmemopen(to, room, "w");
    assert_non_null(file);
    tb_rate_write_change(file, "port7", before, rate, queue);
    fclose(file);
}

static void rates_as_tc_reads_them(void **state)
{
    char line[512] = "";
    FILE *file = fmemopen(line, sizeof line, "w");
    assert_non_null(file);
    tb_rate_write_bands(file, "eth7");
    fclose(file);
    assert_string_equal(line, "qdisc add dev eth7 parent 1:1 handle 2: pfifo_fast\n");
    written(line, sizeof line, 0, 100000000, 65536);
    assert_string_equal(line, "qdisc replace dev port7 root handle 1: stab mtu 2047 tsize 2048 mpu 84 overhead 24 "
                              "linklayer ethernet tbf rate 100000000bit burst 2048b limit 65536\n");
    written(line, sizeof line, 5, 1000000, 10); /* a frame has room in any queue */
    assert_non_null(strstr(line, "qdisc change "));
    assert_non_null(strstr(line, " limit 1538\n"));
    written(line, sizeof line, 5, 1000000, (uint64_t)1 << 40);
    assert_non_null(strstr(line, " limit 1073741824\n"));
    written(line, sizeof line, 5, 0, 0);
    assert_string_equal(line, "qdisc del dev port7 root\n");
    written(line, sizeof line, 0, 0, 0);
    assert_string_equal(line, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test_setup_teardown(ways, open_fixture, close_fixture),
                                       cmocka_unit_test_setup_teardown(ports, open_fixture, close_fixture),
                                       cmocka_unit_test_setup_teardown(the_kernel_cannot, open_fixture, close_fixture),
                                       cmocka_unit_test(rates_as_tc_reads_them)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
