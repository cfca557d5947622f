#include "topology/grid.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static int parse(struct tb_grid *grid, const char *text)
{
    return tb_grid_parse(grid, text, strlen(text), "g.yaml");
}

static void must_parse(struct tb_grid *grid, const char *text)
{
    if (parse(grid, text) != TB_OK)
        fail_msg("%s", tb_error_story());
}

static const char delft[] = "sites:\n"
                            "  - name: TU Delft\n"
                            "    clusters:\n"
                            "      - name: venus\n"
                            "        gateways: [venus1]\n"
                            "        nat: true\n"
                            "        hosts: [venus1:0, venus2:4, \"venus[3-5]:2\"]\n"
                            "        ethernet: {bandwidth: 1000, latency: 50us, hub: yes, loss: 0.1%}\n"
                            "      - name: jupiter\n"
                            "        hosts:\n"
                            "          - n[08-11].example.org:3\n"
                            "          - {name: x, slots: 7, address: 'fe80::1', user: kate, port: 2222}\n"
                            "          - joe@y\n"
                            "links:\n"
                            "  - {from: venus, to: jupiter, bandwidth: 437, latency: 12.5, jitter: 1, loss: 5%}\n"
                            "  - {from: jupiter, to: venus, bandwidth: 1.5 Gbit/s, loss: 0.25, reorder: 1e-3}\n";

static void a_file_is_read(void **state)
{
    struct tb_grid grid;
    must_parse(&grid, delft);
    assert_string_equal(grid.file, "g.yaml");
    assert_int_equal(grid.site_count, 1);
    assert_string_equal(grid.sites[0].name, "TU Delft");
    assert_int_equal(grid.cluster_count, 2);
    const struct tb_grid_cluster *venus = &grid.clusters[0], *jupiter = &grid.clusters[1];
    assert_true(venus->nat && venus->gated && !jupiter->nat && !jupiter->gated);
    assert_int_equal(venus->gateway_count, 1);
    assert_int_equal(venus->gateways[0], 0);
    assert_int_equal(venus->host_count, 5);
    assert_int_equal(venus->medium, TB_GRID_HUB);
    assert_int_equal(venus->ethernet.bandwidth, 1000000000);
    assert_int_equal(venus->ethernet.latency, 50000);
    assert_int_equal(venus->ethernet.loss, 1000);
    assert_int_equal(jupiter->medium, TB_GRID_SWITCH);
    assert_int_equal(jupiter->ethernet.bandwidth, 0);
    assert_true(jupiter->ethernet.latency == UINT64_MAX);
    assert_int_equal(grid.hosts[0].slots, 0);
    assert_int_equal(grid.hosts[1].slots, 4);
    assert_string_equal(grid.hosts[4].name, "venus5");
    assert_int_equal(grid.hosts[4].slots, 2);
    assert_int_equal(grid.hosts[4].line, 7);
    assert_string_equal(grid.hosts[5].name, "n08.example.org");
    assert_string_equal(grid.hosts[8].name, "n11.example.org");
    assert_int_equal(grid.hosts[8].slots, 3);
    const struct tb_grid_host *x = &grid.hosts[tb_grid_host_find(&grid, "x")], *y = &grid.hosts[10];
    assert_int_equal(x->slots, 7);
    assert_string_equal(x->address, "fe80::1");
    assert_string_equal(x->user, "kate");
    assert_int_equal(x->port, 2222);
    assert_string_equal(y->user, "joe");
    assert_null(y->address);
    assert_int_equal(y->slots, 1);
    assert_int_equal(y->cluster, 1);
    assert_int_equal(tb_grid_host_find(&grid, "z"), TB_GRID_NONE);
    assert_int_equal(tb_grid_cluster_find(&grid, "jupiter"), 1);
    assert_int_equal(tb_grid_cluster_find(&grid, "x"), TB_GRID_NONE);
    assert_true(tb_grid_cluster_has(venus, 4) && !tb_grid_cluster_has(venus, 5));
    assert_true(tb_grid_is_gateway(venus, 0) && !tb_grid_is_gateway(venus, 1));
    tb_grid_close(&grid);
}

/* How a job is started in a cluster. */
static void starts_are_read(void **state)
{
    struct tb_grid grid;
    must_parse(&grid,
               "clusters:\n- name: a\n  hosts: a1\n  start: ssh -J gate\n  start_inside: rsh\n  tombolo: /opt/t\n"
               "  port: 7000\n  program: /bin/x\n  directory: /tmp\n  environment: {A: 'b c', _D2: ''}\n"
               "- {name: b, hosts: b1, program: {x: /y, ./z: z2}}\n");
    const struct tb_grid_start *a = &grid.clusters[0].start, *b = &grid.clusters[1].start;
    assert_string_equal(a->command, "ssh -J gate");
    assert_string_equal(a->inside, "rsh");
    assert_string_equal(a->tombolo, "/opt/t");
    assert_string_equal(a->directory, "/tmp");
    assert_int_equal(a->port, 7000);
    assert_int_equal(a->program_count, 1);
    assert_null(a->programs[0].name);
    assert_string_equal(a->programs[0].value, "/bin/x");
    assert_int_equal(a->variable_count, 2);
    assert_string_equal(a->variables[0].value, "b c");
    assert_string_equal(a->variables[1].name, "_D2");
    assert_int_equal(b->program_count, 2);
    assert_string_equal(b->programs[1].name, "./z");
    assert_null(b->command);
    assert_int_equal(b->port, 0);
    tb_grid_close(&grid);
}

static void links_have_two_directions(void **state)
{
    struct tb_grid grid;
    must_parse(&grid, delft);
    assert_int_equal(grid.link_count, 2);
    assert_string_equal(grid.links[0].name, "venus-jupiter");
    assert_string_equal(grid.links[1].name, "venus-jupiter");
    assert_int_equal(grid.links[0].wire.bandwidth, 437000000);
    assert_int_equal(grid.links[0].wire.latency, 12500000);
    assert_int_equal(grid.links[0].wire.jitter, 1000000);
    assert_int_equal(grid.links[0].wire.loss, 50000);
    assert_int_equal(grid.links[1].from, 1);
    assert_int_equal(grid.links[1].wire.bandwidth, 1500000000);
    assert_int_equal(grid.links[1].wire.latency, 12500000); /* as in the other direction */
    assert_int_equal(grid.links[1].wire.jitter, 0);
    assert_int_equal(grid.links[1].wire.loss, 250000);
    assert_int_equal(grid.links[1].wire.reorder, 1000);
    assert_ptr_equal(tb_grid_link_find(&grid, 1, TB_GRID_NONE, 0, TB_GRID_NONE), &grid.links[1]);
    assert_ptr_equal(tb_grid_link_find(&grid, 1, 9, 0, 0), &grid.links[1]);
    tb_grid_close(&grid);

    must_parse(&grid,
               "clusters: [{name: a, hosts: [a1, a2], gateways: [a1, a2]}, {name: b, hosts: b1},\n"
               "  {name: c, hosts: c1}]\n"
               "links: [{from: a, to: b, latency: 1}, {from: c, to: b, latency: 2, name: sea}, {from: a2, to: b, "
               "latency: 3}]");
    assert_int_equal(grid.link_count, 6);
    assert_int_equal(grid.links[1].wire.latency, 1000000);
    assert_string_equal(grid.links[3].name, "sea");
    assert_int_equal(grid.links[3].from, 1);
    assert_int_equal(grid.links[3].to, 2);
    assert_int_equal(tb_grid_link_find(&grid, 1, 2, 0, 1)->wire.latency, 3000000); /* between the very hosts */
    assert_int_equal(tb_grid_link_find(&grid, 1, 2, 0, 0)->wire.latency, 1000000);
    assert_null(tb_grid_link_find(&grid, 0, 0, 2, 3));
    tb_grid_close(&grid);

    /* Trust has no direction. */
    must_parse(&grid, "clusters: [{name: a, hosts: a1}, {name: b, hosts: b1}, {name: c, hosts: c1}]\n"
                      "links: [{from: a, to: b}, {from: b, to: a, latency: 1, direct: yes}, {from: c, to: b}]");
    assert_true(grid.links[0].direct && grid.links[1].direct);
    assert_false(grid.links[2].direct || grid.links[3].direct);
    tb_grid_close(&grid);
}

static void hosts_stand_in_several_clusters(void **state)
{
    struct tb_grid grid;
    must_parse(&grid, "clusters:\n"
                      "- name: a\n"
                      "  hosts: [h1, h2:3]\n"
                      "  clusters: [{name: inner, hosts: [h2, h3], gateways: h2}]\n"
                      "- {name: b, hosts: [{name: h1, slots: 5, user: kate}, 'h2:3']}\n");
    assert_int_equal(grid.host_count, 3);
    assert_int_equal(grid.hosts[0].slots, 5);
    assert_string_equal(grid.hosts[0].user, "kate");
    assert_int_equal(grid.hosts[1].slots, 3);
    assert_int_equal(grid.hosts[1].cluster, 0);
    assert_int_equal(grid.hosts[1].cluster_count, 3);
    assert_int_equal(grid.hosts[1].clusters[2], 2);
    assert_int_equal(grid.hosts[2].cluster, 1);
    assert_int_equal(grid.clusters[1].parent, 0);
    assert_int_equal(grid.clusters[2].parent, TB_GRID_NONE);
    assert_int_equal(grid.clusters[2].site, TB_GRID_NONE);
    tb_grid_close(&grid);
}

/* Anchors are there to be used; the node is read as often as it is named. */
static void aliases_are_followed(void **state)
{
    struct tb_grid grid;
    must_parse(&grid,
               "clusters: [{name: a, hosts: a1, ethernet: &fast {bandwidth: 10}}, {name: b, hosts: b1, ethernet: "
               "*fast}]");
    assert_int_equal(grid.clusters[1].ethernet.bandwidth, 10000000);
    tb_grid_close(&grid);
}

struct bad {
    const char *text;
    unsigned line;
    const char *expected;
};

#define CLUSTERS "clusters:\n- {name: a, hosts: [a1, a2], gateways: [a1]}\n- {name: b, hosts: [b1]}\n"

static const struct bad bad_files[] = {
    /* not YAML at all, or not a grid */
    {"", 1, "sites"},
    {"# nothing\n", 1, "sites"},
    {"clusters: [\n", 2, "no YAML"},
    {"clusters:\n  - {name: a, hosts: [n[1-4]:2]}\n", 2, "quotes"},
    {"a: b: c\n", 1, "no YAML"},
    {"clusters:\n\t- name: a\n", 2, "no YAML"},
    {"\x01\n", 1, "no YAML"},
    {"clusters: []\n# \xff\n", 2, "no YAML"},
    {"*a", 1, "no YAML"},
    {"hello", 1, "a map"},
    {"[a, b]", 1, "a map"},
    {"{}", 1, "no cluster"},
    {"clusters: []", 1, "no cluster"},
    {CLUSTERS "---\n" CLUSTERS, 4, "second document"},
    {"clusters: [{name: \"a\\0b\", hosts: a1}]", 1, "zero byte"},
    /* keys */
    {"cluster: []\n", 1, "expected sites, clusters, links or congestion"},
    {"clusters:\n- name: a\n  host: [a1]\n", 3,
     "expected name, hosts, gateways, nat, ethernet, clusters, uplink, downlink, ip, start"},
    {"clusters:\n- name: a\n  hosts: a1\n  start: {}\n", 4, "expected a command"},
    {"clusters:\n- name: a\n  hosts: a1\n  directory: x\n", 4, "begins with '/'"},
    {"clusters:\n- name: a\n  hosts: a1\n  program: [x]\n", 4, "expected a program"},
    {"clusters:\n- name: a\n  hosts: a1\n  program: {x: [y]}\n", 4, "expected a program and what"},
    {"clusters:\n- name: a\n  hosts: a1\n  environment: {A: [1]}\n", 4, "expected a text as the value of A"},
    {"clusters:\n- name: a\n  hosts: a1\n  environment:\n    A: 1\n    A: 2\n", 6, "stands twice"},
    {"clusters:\n- {name: a, hosts: a1, start: x}\n- {name: a, hosts: a2, start: x}\n", 3, "cluster a in line 2"},
    {"clusters:\n- name: a\n  hosts: [a1]\n  name: b\n", 4, "twice"},
    {"clusters:\n- hosts: [a1]\n", 2, "has no \"name\""},
    {"clusters:\n- {[a]: b}\n", 2, "a list is no key"},
    {"sites:\n- name: s\n", 2, "has no \"clusters\""},
    {"sites:\n- name: s\n  clusters: [{name: a, hosts: a1}]\n  x: 1\n", 4,
     "expected name, clusters, uplink or downlink"},
    {"clusters:\n- name: a\n  hosts:\n  - {name: a1, solts: 3}\n", 4,
     "expected name, slots, address, user, port, bandwidth, duplex or queue"},
    {CLUSTERS "links:\n- {from: a, to: b, bandwith: 5}\n", 5, "expected from, to, name, bandwidth"},
    {CLUSTERS "links:\n- {from: a}\n", 5, "has no \"to\""},
    {"clusters:\n- name: a\n  hosts: [a1]\n  ethernet: {speed: 5}\n", 4, "expected bandwidth, latency"},
    /* kinds */
    {"clusters: a\n", 1, "a list of clusters"},
    {"clusters:\n- a\n", 2, "a cluster should be a map"},
    {"sites: {}\n", 1, "a list of sites"},
    {"clusters:\n- name: [a]\n", 2, "expected a name"},
    {"clusters:\n- name: a\n  hosts: {a1: 2}\n", 3, "a list of hosts"},
    {"clusters:\n- name: a\n  hosts:\n", 3, "a list of hosts"},
    {"clusters:\n- name: a\n  hosts: [[a1]]\n", 3, "expected a host"},
    {"clusters:\n- name: a\n  hosts: [a1]\n  gateways:\n", 4, "a list of hosts"},
    {"clusters:\n- name: a\n  hosts: [a1]\n  nat: maybe\n", 4, "true or false"},
    {"clusters:\n- name: a\n  hosts: [a1]\n  nat: []\n", 4, "true or false"},
    {"clusters:\n- name: a\n  hosts: [a1]\n  ethernet: 100\n", 4, "should be a map"},
    {CLUSTERS "links: a\n", 4, "a list of links"},
    {CLUSTERS "links: [a]\n", 4, "a link should be a map"},
    /* names */
    {"clusters:\n- name: a b\n", 2, "expected a name"},
    {"clusters:\n- name: -a\n", 2, "expected a name"},
    {"clusters:\n- name: ''\n", 2, "expected a name"},
    {"clusters:\n- name: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\n", 2,
     "at most 63"},
    {"sites:\n- name: \"a\\nb\"\n", 2, "one line"},
    {"clusters:\n- name: a\n  hosts: [a1]\n- name: a\n  hosts: [a2]\n", 4, "cluster a in line 2"},
    {"sites:\n- name: s\n  clusters: []\n- name: s\n  clusters: []\n", 4, "site s in line 2"},
    {"clusters:\n- name: a\n  hosts:\n  - a1\n  - a2\n  - a1\n", 6, "host a1 stands twice in cluster a"},
    {"clusters:\n- name: a\n  hosts:\n  - a[1-3]\n  - a2:1\n", 5, "host a2 stands twice"},
    {"clusters:\n- name: a\n  hosts: ['-oProxy=x']\n", 3, "expected a host"},
    {"clusters:\n- name: a\n  hosts: ['a;b']\n", 3, "expected a host"},
    {"clusters:\n- name: a\n  hosts: ['@a']\n", 3, "expected a host"},
    {"clusters:\n- name: a\n  hosts: ['-x@a']\n", 3, "expected a host"},
    {"clusters:\n- name: a\n  hosts: [{name: 'a1:3'}]\n", 3, "keys of their own"},
    {"clusters:\n- name: a\n  hosts: [{name: a1, address: '-oX'}]\n", 3, "one word"},
    {"clusters:\n- name: a\n  hosts: [{name: a1, user: 'a b'}]\n", 3, "one word"},
    {"clusters:\n- name: a\n  hosts: []\n", 3, "no hosts"},
    {"clusters:\n- name: a\n", 2, "empty"},
    /* ranges and slots */
    {"clusters:\n- name: a\n  hosts: a[1-\n", 3, "expected a host"},
    {"clusters:\n- name: a\n  hosts: a[]\n", 3, "range"},
    {"clusters:\n- name: a\n  hosts: a[4-1]\n", 3, "from low to high"},
    {"clusters:\n- name: a\n  hosts: a[01-1]\n", 3, "range"},
    {"clusters:\n- name: a\n  hosts: a[1-4,]\n", 3, "range"},
    {"clusters:\n- name: a\n  hosts: a[1-2]b[1-2]\n", 3, "expected a host"},
    {"clusters:\n- name: a\n  hosts: a[1-99999999]\n", 3, "too many"},
    {"clusters:\n- name: a\n  hosts: a[0-1048575]\n- {name: b, hosts: b1}\n", 4, "at most 1048576"},
    {"clusters:\n- name: a\n  hosts: [{name: 'a[1-2]', address: x}]\n", 3, "cannot share the address"},
    {"clusters:\n- name: a\n  hosts: [a1:-1]\n", 3, "number of slots"},
    {"clusters:\n- name: a\n  hosts: [a1:4x]\n", 3, "number of slots"},
    {"clusters:\n- name: a\n  hosts: ['a1:']\n", 3, "number of slots"},
    {"clusters:\n- name: a\n  hosts: [a1:99999999999]\n", 3, "number of slots"},
    {"clusters:\n- name: a\n  hosts: [{name: a1, slots: 1.5}]\n", 3, "number of slots"},
    {"clusters:\n- name: a\n  hosts: [{name: a1, port: 70000}]\n", 3, "port number from 1 to 65535"},
    {"clusters:\n- {name: a, hosts: [a1:2]}\n- {name: b, hosts: [a1:3]}\n", 3, "but 2 in line 2"},
    {"clusters:\n- {name: a, hosts: [x@a1]}\n- {name: b, hosts: [y@a1]}\n", 3, "but x in line 2"},
    /* gateways */
    {"clusters:\n- name: a\n  hosts: [a1]\n  gateways: [a2]\n", 4, "not among the hosts of cluster a"},
    {"clusters:\n- {name: b, hosts: [b1]}\n- name: a\n  hosts: [a1]\n  gateways: [b1]\n", 5, "not among the hosts"},
    {"clusters:\n- name: a\n  hosts: [a1, a2]\n  gateways: [a1, a1]\n", 4, "twice"},
    {"clusters:\n- name: a\n  hosts: [a1]\n  gateways: [a1, a1]\n", 4, "more gateways than hosts"},
    {"clusters:\n- name: a\n  hosts: [a1]\n  gateways: [{name: a1}]\n", 4, "expected a name"},
    /* numbers */
    {CLUSTERS "links:\n- from: a\n  to: b\n  bandwidth: -5\n", 7, "a rate above 0 in Mbit/s"},
    {CLUSTERS "links:\n- from: a\n  to: b\n  bandwidth: 0\n", 7, "a rate above 0"},
    {CLUSTERS "links:\n- from: a\n  to: b\n  bandwidth: 5 MB/s\n", 7, "with its unit"},
    {CLUSTERS "links:\n- from: a\n  to: b\n  bandwidth: nan\n", 7, "a rate above 0"},
    {CLUSTERS "links:\n- from: a\n  to: b\n  bandwidth: 0x10\n", 7, "a rate above 0"},
    {CLUSTERS "links:\n- from: a\n  to: b\n  bandwidth: 1e99\n", 7, "a rate above 0"},
    {CLUSTERS "links:\n- from: a\n  to: b\n  bandwidth: 1.2.3\n", 7, "a rate above 0"},
    {CLUSTERS "links:\n- from: a\n  to: b\n  latency: -1\n", 7, "expected a time"},
    {CLUSTERS "links:\n- from: a\n  to: b\n  latency: 5 minutes\n", 7, "expected a time"},
    {CLUSTERS "links:\n- from: a\n  to: b\n  latency: []\n", 7, "not a list"},
    {CLUSTERS "links:\n- from: a\n  to: b\n  loss: 5\n", 7, "expected a share"},
    {CLUSTERS "links:\n- from: a\n  to: b\n  loss: 101%\n", 7, "expected a share"},
    {CLUSTERS "links:\n- from: a\n  to: b\n  reorder: -1%\n", 7, "expected a share"},
    {CLUSTERS "links:\n- from: a\n  to: b\n  blocked: 2\n", 7, "true or false"},
    {CLUSTERS "links:\n- {from: a, to: b, blocked: true, direct: yes}\n", 5, "blocked cannot be direct"},
    {CLUSTERS "links:\n- {from: a, to: b, latency: 5, jitter: 6}\n", 5, "more than the latency"},
    {CLUSTERS "links:\n- {from: a, to: b, jitter: 6}\n", 5, "more than the latency"},
    {"clusters:\n- name: a\n  hosts: a1\n  ethernet: {jitter: 1}\n", 4, "more than the latency"},
    {"clusters:\n- name: a\n  hosts: a1\n  ethernet: {bandwidth: -100}\n", 4, "a rate above 0"},
    /* links */
    {CLUSTERS "links:\n- {from: a, to: c}\n", 5, "leads to nowhere: \"c\""},
    {CLUSTERS "links:\n- {from: a2, to: b}\n", 5, "no gateway"},
    {CLUSTERS "links:\n- {from: a, to: a}\n", 5, "to itself"},
    {CLUSTERS "links:\n- {from: a, to: b}\n- {from: a, to: b}\n", 6, "in line 5 already"},
    {CLUSTERS "links:\n- {from: a, to: b}\n- {from: b, to: a}\n- {from: b, to: a}\n", 7, "in line 6 already"},
    {CLUSTERS "links:\n- {from: a, to: b}\n- {from: b, to: a, name: x}\n", 6, "expected \"a-b\""},
    {CLUSTERS "links:\n- {from: a, to: b, name: x}\n- {from: a1, to: b, name: x}\n", 6, "line 5 is called \"x\""},
    {"clusters:\n- {name: a, hosts: a1, clusters: [{name: c, hosts: c1}]}\n- {name: b, hosts: b1}\nlinks: [{from: c, "
     "to: "
     "b}]\n",
     4, "nothing joins c and b"},
    /* aliases that bite their tail */
    {"clusters: &c [{name: a, clusters: *c}]\n", 1, "cluster a in line 1"},
    {"clusters:\n- &c {name: a, hosts: *c}\n", 2, "a list of hosts"},
};

static void bad_files_name_line_and_expectation(void **state)
{
    for (size_t i = 0; i < sizeof bad_files / sizeof bad_files[0]; i++) {
        struct tb_grid grid;
        char where[32];
        snprintf(where, sizeof where, "g.yaml:%u: ", bad_files[i].line);
        if (parse(&grid, bad_files[i].text) == TB_OK)
            fail_msg("accepted: %s", bad_files[i].text);
        if (strncmp(tb_error_story(), where, strlen(where)) != 0 ||
            strstr(tb_error_story(), bad_files[i].expected) == NULL)
            fail_msg("expected \"%s...%s\" of:\n%s\nbut got \"%s\"", where, bad_files[i].expected, bad_files[i].text,
                     tb_error_story());
        assert_null(grid.hosts);
    }
}

/* ---- sizes ------------------------------------------------------------------------------------------------------- */

static char *repeat(const char *head, const char *unit, size_t count, const char *tail)
{
    size_t length = strlen(unit);
    char *text = malloc(strlen(head) + count * length + strlen(tail) + 1), *at = stpcpy(text, head);
    for (size_t i = 0; i < count; i++)
        at = stpcpy(at, unit);
    stpcpy(at, tail);
    return text;
}

static void deep_and_long_files_are_refused(void **state)
{
    static const struct {
        const char *head, *unit;
        size_t count;
        const char *tail, *expected;
    } cases[] = {
        {"clusters: ", "[", 60, "", "no YAML"},
        {"clusters: ", "[", 1000000, "", "at most 64 levels"},
        {"", "- ", 100000, "a", "at most 64 levels"},
        {"", "{a: ", 100000, "", "at most 64 levels"},
        {"clusters: [{name: a, hosts: [x, ", "[", 50, "]]", "no YAML"},
        {"#", "x", TB_GRID_FILE_LIMIT, "", "too long"},
        {"clusters: [{name: '", "x", 100000, "', hosts: a}]", "at most 63"},
        {"clusters: [{name: x, hosts: ['", "x", 100000, "']}]", "expected a host"},
        {"clusters: [{name: x, hosts: ['n[", "1,", 1000, "1]']}]", "expected a host"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct tb_grid grid;
        char *text = repeat(cases[i].head, cases[i].unit, cases[i].count, cases[i].tail);
        assert_int_not_equal(parse(&grid, text), TB_OK);
        if (strstr(tb_error_story(), cases[i].expected) == NULL)
            fail_msg("case %zu: %s", i, tb_error_story());
        free(text);
    }
}

/* Seventeen clusters in one another: one more than fits. */
static void nesting_has_a_limit(void **state)
{
    for (uint32_t depth = TB_GRID_NESTING_LIMIT; depth <= TB_GRID_NESTING_LIMIT + 1; depth++) {
        char text[4096], *at = text;
        for (uint32_t i = 0; i < depth; i++)
            at += sprintf(at, "%s[{name: c%u, hosts: h%u", i == 0 ? "clusters: " : ", clusters: ", i, i);
        for (uint32_t i = 0; i < depth; i++)
            at += sprintf(at, "}]");
        struct tb_grid grid;
        assert_int_equal(parse(&grid, text), depth > TB_GRID_NESTING_LIMIT ? TB_ERR_ARGUMENT : TB_OK);
        if (depth <= TB_GRID_NESTING_LIMIT) {
            assert_true(tb_grid_reaches(&grid, 0, depth - 1) && tb_grid_reaches(&grid, depth - 1, 0));
            tb_grid_close(&grid);
        } else {
            assert_non_null(strstr(tb_error_story(), "at most 16 levels"));
        }
    }
}

/* An alias makes a short file name very many hosts. */
static void feet_have_a_limit(void **state)
{
    char *text = malloc(1 << 20), *at = text;
    at += sprintf(at, "clusters:\n- {name: c, hosts: &all ['h[1-60000]']}\n");
    for (int i = 0; i < 40; i++)
        at += sprintf(at, "- {name: c%d, hosts: *all}\n", i);
    struct tb_grid grid;
    assert_int_equal(parse(&grid, text), TB_ERR_ARGUMENT);
    assert_non_null(strstr(tb_error_story(), "too many hosts"));
    free(text);
}

/* ---- files and the template -------------------------------------------------------------------------------------- */

static void loading_tells_what_is_wrong(void **state)
{
    struct tb_grid grid;
    assert_int_equal(tb_grid_load(&grid, "/nonexistent/g.yaml"), TB_ERR_SYSTEM);
    assert_non_null(strstr(tb_error_story(), "/nonexistent/g.yaml"));
    assert_int_equal(tb_grid_load(&grid, "/"), TB_ERR_SYSTEM);
    assert_int_equal(tb_grid_load(&grid, "/dev/zero"), TB_ERR_LIMIT);
    char path[] = "/tmp/tombolo-grid-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, delft, strlen(delft)), strlen(delft));
    close(fd);
    int rc = tb_grid_load(&grid, path);
    unlink(path);
    assert_int_equal(rc, TB_OK);
    assert_int_equal(grid.host_count, 11);
    tb_grid_close(&grid);
}

static void check_template(uint32_t count, const struct tb_grid_seed *seeds, struct tb_grid *grid)
{
    char *text = NULL;
    size_t length = 0;
    FILE *to = open_memstream(&text, &length);
    assert_int_equal(tb_grid_write_template(to, count, seeds), TB_OK);
    fclose(to);
    must_parse(grid, text);
    free(text);
}

static void templates_are_grid_files(void **state)
{
    static const struct tb_grid_seed seeds[] = {{"a1", "east", NULL, NULL, 4, 0},
                                                {"b1", "west", NULL, NULL, 0, 0},
                                                {"a2", "east", NULL, "kate", 2, 2222},
                                                {"fe80::1", "", "", "", 1, 0}};
    struct tb_grid grid;
    check_template(0, NULL, &grid);
    assert_int_equal(grid.host_count, 8);
    tb_grid_close(&grid);
    check_template(1, seeds, &grid);
    assert_int_equal(grid.host_count, 1);
    tb_grid_close(&grid);
    check_template(4, seeds, &grid);
    assert_int_equal(grid.host_count, 4);
    assert_int_equal(grid.cluster_count, 3);
    assert_int_equal(grid.link_count, 2);
    assert_int_equal(grid.hosts[tb_grid_host_find(&grid, "a2")].port, 2222);
    assert_string_equal(grid.hosts[3].address, "fe80::1");
    tb_grid_close(&grid);
}

/* Sites first, each with its clusters; who is in none comes behind them. */
static void templates_have_sites(void **state)
{
    static const struct tb_grid_seed seeds[] = {{"a1", "a", "delft", NULL, 4, 0},    {"x1", "x", NULL, NULL, 1, 0},
                                                {"b1", "b", "delft", NULL, 1, 2222}, {"l1", NULL, "leiden", NULL, 1, 0},
                                                {"a2", "a", "delft", "kate", 2, 0},  {"y1", "", "", NULL, 1, 0}};
    static const char *const clusters[] = {"a", "x", "b", "leiden", "a", "cluster"};
    struct tb_grid grid;
    check_template(6, seeds, &grid);
    assert_int_equal(grid.host_count, 6);
    assert_int_equal(grid.site_count, 2);
    assert_int_equal(grid.cluster_count, 5);
    assert_int_equal(grid.link_count, 2);
    for (uint32_t i = 0; i < 6; i++) {
        const struct tb_grid_host *host = &grid.hosts[tb_grid_host_find(&grid, seeds[i].name)];
        const struct tb_grid_cluster *cluster = &grid.clusters[host->cluster];
        assert_string_equal(cluster->name, clusters[i]);
        assert_string_equal(cluster->site != TB_GRID_NONE ? grid.sites[cluster->site].name : "",
                            seeds[i].site != NULL ? seeds[i].site : "");
        assert_int_equal(host->slots, seeds[i].slots);
    }
    tb_grid_close(&grid);
    static const struct tb_grid_seed two[] = {{"a1", "a", "delft", NULL, 4, 0}, {"a2", "a", "leiden", NULL, 4, 0}};
    char *text = NULL;
    size_t length = 0;
    FILE *to = open_memstream(&text, &length);
    assert_int_equal(tb_grid_write_template(to, 2, two), TB_ERR_ARGUMENT);
    assert_non_null(strstr(tb_error_story(), "hosts a1 and a2 are in two clusters a"));
    fclose(to);
    assert_int_equal(length, 0);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_is_read),
        cmocka_unit_test(starts_are_read),
        cmocka_unit_test(links_have_two_directions),
        cmocka_unit_test(hosts_stand_in_several_clusters),
        cmocka_unit_test(aliases_are_followed),
        cmocka_unit_test(bad_files_name_line_and_expectation),
        cmocka_unit_test(deep_and_long_files_are_refused),
        cmocka_unit_test(nesting_has_a_limit),
        cmocka_unit_test(feet_have_a_limit),
        cmocka_unit_test(loading_tells_what_is_wrong),
        cmocka_unit_test(templates_are_grid_files),
        cmocka_unit_test(templates_have_sites),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
