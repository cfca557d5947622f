/* Where hosts are and what links cost, from what the user says to what agents are told. */
#include "launch/job_plan.h"
#include "topology/topology.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

struct world {
    struct tb_grid grid;
    struct tb_options options;
    struct tb_job_plan plan;
    struct tb_cost_head *head;
    struct tb_cost_table table;
};

static const struct tb_options fresh;

static void make_costs(struct world *w)
{
    assert_int_equal(tb_job_plan_make_costs(&w->plan, &w->head), TB_OK);
    assert_int_equal(tb_cost_table_view(&w->table, w->head, (size_t)w->head->bytes), TB_OK);
    const struct tb_address_book *book = &w->plan.placement.book;
    if (tb_cost_table_check(&w->table, book->host_count) != TB_OK)
        fail_msg("%s", tb_error_story());
    assert_int_equal(w->head->place_count, book->places.count);
    assert_int_equal(w->head->version, book->version);
    for (uint32_t i = 0; i < book->host_count; i++)
        assert_true(book->hosts[i].place < w->head->place_count && book->hosts[i].kind < w->head->kind_count);
}

static void note(void *context, const char *text) {}

/* The plan of a job on a grid, or without one (NULL). */
static void open_world(struct world *w, const char *grid, char **words)
{
    memset(w, 0, sizeof *w);
    w->options = fresh;
    assert_int_equal(tb_options_parse(&w->options, words), TB_OK);
    if (grid != NULL) {
        if (tb_grid_parse(&w->grid, grid, strlen(grid), "g.yaml") != TB_OK)
            fail_msg("%s", tb_error_story());
        w->options.grid = &w->grid;
    }
    w->plan = (struct tb_job_plan){.options = &w->options, .program = "tombolo"};
    if (tb_job_plan_open(&w->plan, note, NULL) != TB_OK)
        fail_msg("%s", tb_error_story());
}

static void close_world(struct world *w)
{
    free(w->head);
    tb_job_plan_close(&w->plan);
    free(w->plan.missing);
    tb_options_close(&w->options);
    if (w->options.grid != NULL || w->grid.file != NULL)
        tb_grid_close(&w->grid);
}

static uint32_t host_find(const struct world *w, const char *name)
{
    const struct tb_address_book *book = &w->plan.placement.book;
    for (uint32_t i = 0; i < book->host_count; i++)
        if (strcmp(book->hosts[i].name, name) == 0)
            return i;
    fail_msg("no host %s", name);
    return 0;
}

static struct tb_way_brief brief(const struct world *w, const char *from, const char *to)
{
    const struct tb_host *hosts = w->plan.placement.book.hosts;
    uint32_t a = host_find(w, from), b = host_find(w, to);
    struct tb_spot out = {hosts[a].place, hosts[a].kind, a}, in = {hosts[b].place, hosts[b].kind, b};
    return tb_cost_brief(&w->table, &out, &in);
}

/* ---- without a grid ---------------------------------------------------------------------------------------------- */

/* A cluster's name counts within its site; whoever says nothing is in the world. */
static void hosts_say_where_they_are(void **state)
{
    static const struct tb_host_where wheres[] = {{"delft", "a"}, {"leiden", "a"}, {"delft", "a"}, {"delft", ""},
                                                  {"", "a"},      {"", ""},        {"", "b"}};
    static const uint32_t places[] = {2, 4, 2, 1, 5, 0, 6};
    struct world w;
    char *words[] = {(char *)"-H", (char *)"h0,h1,h2,h3,h4,h5,h6", (char *)"x", NULL};
    open_world(&w, NULL, words);
    for (uint32_t i = 0; i < 7; i++) {
        struct tb_agent_ready ready = {.where = wheres[i], .machine = tb_wire_machine()};
        assert_int_equal(tb_job_plan_take_ready(&w.plan, i, &ready), TB_OK);
    }
    make_costs(&w);
    const struct tb_address_book *book = &w.plan.placement.book;
    assert_int_equal(book->places.count, 7);
    for (uint32_t i = 0; i < 7; i++) {
        assert_int_equal(book->hosts[i].place, places[i]);
        assert_string_equal(tb_address_book_cluster(book, i), wheres[i].cluster);
    }
    assert_int_equal(w.head->kind_count, 1);
    uint64_t far = (uint64_t)tb_param.wide_latency * 1000;
    assert_true(brief(&w, "h0", "h2").latency < far && brief(&w, "h0", "h1").latency >= far);
    assert_int_equal(brief(&w, "h0", "h1").agents, 0);
    close_world(&w);
}

/* What a list of hosts says goes before what a host says; and the parameter links knows its names. */
static void a_list_says_where_hosts_are(void **state)
{
    struct world w;
    char *words[] = {
        (char *)"--set", (char *)"links=v:100:0.5,v/m:10:20", (char *)"-H", (char *)"h0,h1", (char *)"x", NULL};
    open_world(&w, NULL, words);
    snprintf(w.plan.placement.wheres[0].cluster, sizeof w.plan.placement.wheres[0].cluster, "v");
    struct tb_agent_ready ready = {.where = {"", "m"}, .machine = tb_wire_machine()};
    assert_int_equal(tb_job_plan_take_ready(&w.plan, 0, &ready), TB_OK);
    assert_int_equal(tb_job_plan_take_ready(&w.plan, 1, &ready), TB_OK);
    make_costs(&w);
    assert_string_equal(tb_address_book_cluster(&w.plan.placement.book, 0), "v");
    assert_int_equal(brief(&w, "h0", "h1").bandwidth, 10000000);
    close_world(&w);
    assert_int_equal(tb_param_set("links", "", TB_PARAM_LAUNCHER), TB_OK);
}

/* No rank connects by itself: everything passes two agents. */
static void agents_may_be_asked_for(void **state)
{
    struct world w;
    char *words[] = {(char *)"--set", (char *)"forbid_direct=yes", (char *)"-H", (char *)"h0,h1", (char *)"x", NULL};
    open_world(&w, NULL, words);
    make_costs(&w);
    assert_int_equal(brief(&w, "h0", "h1").agents, 2);
    close_world(&w);
    assert_int_equal(tb_param_set("forbid_direct", "no", TB_PARAM_LAUNCHER), TB_OK);
}

/* ---- on a grid --------------------------------------------------------------------------------------------------- */

/* What once had no room in a parameter: every link of a full mesh, in each direction. */
static void a_mesh_of_32_clusters(void **state)
{
    struct world w;
    char *text = malloc(1 << 18), *at = text + sprintf(text, "clusters:\n");
    char *words[] = {(char *)"-n", (char *)"32", (char *)"x", NULL};
    for (uint32_t i = 0; i < 32; i++)
        at += sprintf(at, "- {name: a-cluster-with-a-long-name-%u, hosts: ['h%u:1']}\n", i, i);
    at += sprintf(at, "links:\n");
    for (uint32_t i = 0; i < 32; i++)
        for (uint32_t k = 0; k < 32; k++)
            if (i != k)
                at += sprintf(at,
                              "- {from: a-cluster-with-a-long-name-%u, to: a-cluster-with-a-long-name-%u, bandwidth: "
                              "%u, latency: 7}\n",
                              i, k, 1 + 10 * i + k);
    open_world(&w, text, words);
    free(text);
    make_costs(&w);
    assert_string_equal(tb_param.links, "");
    assert_int_equal(w.head->link_count, 32 * 31);
    for (uint32_t i = 0; i < 32; i++)
        for (uint32_t k = 0; k < 32; k++) {
            char from[16], to[16];
            snprintf(from, sizeof from, "h%u", i);
            snprintf(to, sizeof to, "h%u", k);
            if (i != k)
                assert_int_equal(brief(&w, from, to).bandwidth, (1 + 10 * i + k) * UINT64_C(1000000));
        }
    close_world(&w);
}

static const char gates[] = "sites:\n"
                            "  - {name: south, uplink: {bandwidth: 8, latency: 1}, clusters: [\n"
                            "      {name: farm, gateways: [g1, g2], nat: true, hosts: [g1:0, g2:0, 'f[1-3]:1'],\n"
                            "       ethernet: {bandwidth: 50, latency: 0.1}}]}\n"
                            "clusters:\n"
                            "  - {name: office, hosts: ['o[1-2]:1'], ethernet: {bandwidth: 100, latency: 0.05}}\n"
                            "  - {name: unused, hosts: [u1:0]}\n"
                            "links:\n"
                            "  - {from: g1, to: office, bandwidth: 10, latency: 4}\n"
                            "  - {from: g2, to: office, bandwidth: 5, latency: 20}\n"
                            "  - {from: unused, to: office}\n";

/* Behind gateways a way is that by a gateway, by the numbers of the address book. */
static void gateways_are_on_the_way(void **state)
{
    struct world w;
    char *words[] = {(char *)"-n", (char *)"5", (char *)"x", NULL};
    open_world(&w, gates, words);
    make_costs(&w);
    const struct tb_address_book *book = &w.plan.placement.book;
    assert_int_equal(book->places.count, 5); /* also places without a host of the job */
    assert_string_equal(tb_address_book_cluster(book, host_find(&w, "f1")), "farm");
    assert_int_equal(book->hosts[host_find(&w, "f1")].place, book->hosts[host_find(&w, "g1")].place);
    struct tb_way_brief there = brief(&w, "f1", "o1"), inside = brief(&w, "f1", "f3");
    assert_int_equal(there.hops, 2);
    assert_int_equal(there.agents, 3);
    assert_true(there.bandwidth == 8000000 || there.bandwidth == 5000000);
    assert_true(there.latency >= UINT64_C(5000000000));
    assert_int_equal(inside.hops, 1);
    assert_int_equal(inside.agents, 0);
    assert_int_equal(inside.bandwidth, 50000000);
    bool relays = false;
    for (uint32_t i = 0; i < w.head->relay_count; i++)
        relays = relays || w.table.relays[i].who == host_find(&w, "g1");
    assert_true(relays);
    close_world(&w);
}

/* Once more, as with a second attempt. */
static void it_can_be_made_again(void **state)
{
    struct world w;
    char *words[] = {(char *)"-n", (char *)"2", (char *)"x", NULL};
    open_world(&w, gates, words);
    make_costs(&w);
    uint64_t bytes = w.head->bytes;
    free(w.head);
    make_costs(&w);
    assert_int_equal(w.head->bytes, bytes);
    close_world(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hosts_say_where_they_are), cmocka_unit_test(a_list_says_where_hosts_are),
        cmocka_unit_test(agents_may_be_asked_for),  cmocka_unit_test(a_mesh_of_32_clusters),
        cmocka_unit_test(gateways_are_on_the_way),  cmocka_unit_test(it_can_be_made_again),
    };
    tb_param_load();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
