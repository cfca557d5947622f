/* Where hosts are, as a host file, their own environment or a grid file says; and who of these is believed. */
#include "launch/job_plan.h"
#include "launch/told_places.h"
#include "remote/virtual_loop_test.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

struct world {
    struct virtual_loop loop;
    struct tb_grid grid;
    struct tb_options options;
    struct tb_job_plan plan;
    struct tb_host_agents agents;
    int agents_rc;
};

static const struct tb_options fresh;
static const struct tb_host_agent_events no_events;

static void note(void *context, const char *text) {}

/* The plan of a job on the hosts of a host file (text), or on a grid (text), or on this machine (neither). */
static void open_world(struct world *w, const char *hosts, const char *grid, const char *map, const char *count)
{
    char *words[] = {(char *)"--map", (char *)map, (char *)"-n", (char *)count, (char *)"x", NULL};
    memset(w, 0, sizeof *w);
    virtual_loop_open(&w->loop);
    w->options = fresh;
    assert_int_equal(tb_options_parse(&w->options, words), TB_OK);
    if (hosts != NULL)
        assert_int_equal(tb_host_list_read(&w->options.hosts, hosts, "hosts"), TB_OK);
    if (grid != NULL) {
        if (tb_grid_parse(&w->grid, grid, strlen(grid), "g.yaml") != TB_OK)
            fail_msg("%s", tb_error_story());
        w->options.grid = &w->grid;
    }
    w->plan = (struct tb_job_plan){.options = &w->options, .program = "tombolo"};
    if (tb_job_plan_open(&w->plan, note, NULL) != TB_OK)
        fail_msg("%s", tb_error_story());
    w->agents_rc = tb_job_plan_open_agents(&w->plan, &w->agents, &w->loop.loop, &no_events);
}

static void close_world(struct world *w)
{
    tb_host_agents_close(&w->agents);
    tb_job_plan_close(&w->plan);
    free(w->plan.missing);
    tb_options_close(&w->options);
    if (w->grid.file != NULL)
        tb_grid_close(&w->grid);
    virtual_loop_close(&w->loop);
}

static int tell(struct world *w, uint32_t host, const char *site, const char *cluster)
{
    static struct tb_agent_ready ready; /* is large */
    memset(&ready, 0, sizeof ready);
    ready.machine = tb_wire_machine();
    tb_told_places_keep(ready.where.site, sizeof ready.where.site, site, strlen(site));
    tb_told_places_keep(ready.where.cluster, sizeof ready.where.cluster, cluster, strlen(cluster));
    return tb_job_plan_take_ready(&w->plan, host, &ready);
}

static void expect_where(const struct world *w, uint32_t host, const char *site, const char *cluster)
{
    assert_string_equal(w->plan.placement.wheres[host].site, site);
    assert_string_equal(w->plan.placement.wheres[host].cluster, cluster);
}

/* ---- names ------------------------------------------------------------------------------------------------------- */

static void what_does_not_fit_is_no_name(void **state)
{
    char kept[16], name[300], long_one[64];
    tb_told_places_keep(kept, sizeof kept, "delft", 5);
    assert_string_equal(kept, "delft");
    tb_told_places_keep(kept, sizeof kept, "", 0);
    assert_string_equal(kept, "");
    tb_told_places_keep(kept, sizeof kept, "123456789012345", 15);
    assert_string_equal(kept, "123456789012345");
    tb_told_places_keep(kept, sizeof kept, "1234567890123456", 16);
    assert_string_equal(kept, "12345678901 ...");
    tb_told_places_keep(kept, sizeof kept, "a\0b", 3);
    assert_false(tb_grid_is_name(kept, strlen(kept)));
    memset(name, 'a', sizeof name);
    tb_told_places_keep(long_one, sizeof long_one, name, sizeof name);
    assert_false(tb_grid_is_name(long_one, strlen(long_one)));
    tb_told_places_keep(long_one, sizeof long_one, name, sizeof long_one - 1);
    assert_true(tb_grid_is_name(long_one, strlen(long_one)));
}

static void a_name_that_is_none_ends_the_job(void **state)
{
    char name[65];
    memset(name, 'a', sizeof name - 1);
    name[64] = 0;
    const char *const bad[] = {"a b", "-a", ".", "a:b", "a/b", "a\nb", "\x1b[2J", "\xc3\xa4", name};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        for (int cluster = 0; cluster < 2; cluster++) {
            struct world w;
            open_world(&w, "h0\nh1 cluster=x\n", NULL, "slot", "2");
            assert_int_equal(tell(&w, 0, cluster ? "" : bad[i], cluster ? bad[i] : "ok"), TB_ERR_ARGUMENT);
            assert_non_null(strstr(tb_error_story(), cluster ? "host h0 says TOMBOLO_CLUSTER=" : "TOMBOLO_SITE="));
            expect_where(&w, 0, "", "");
            /* Where the host file says it, nobody looks at what the host says. */
            assert_int_equal(tell(&w, 1, bad[i], bad[i]), TB_OK);
            expect_where(&w, 1, "", "x");
            close_world(&w);
        }
}

/* ---- who is believed --------------------------------------------------------------------------------------------- */

/* Of each host either the file or the host itself: a cluster of the file would otherwise fall apart into sites. */
static void a_host_file_goes_before_the_host(void **state)
{
    struct world w;
    open_world(&w, "h0 cluster=east\nh1 cluster=east site=delft\nh2 site=delft\nh3\nh4\n", NULL, "slot", "5");
    assert_int_equal(w.agents_rc, TB_OK);
    assert_false(tb_job_plan_knows_places(&w.plan, &w.agents));
    for (uint32_t i = 0; i < 4; i++)
        assert_int_equal(tell(&w, i, "leiden", "west"), TB_OK);
    assert_int_equal(tell(&w, 4, "", ""), TB_OK);
    expect_where(&w, 0, "", "east");
    expect_where(&w, 1, "delft", "east");
    expect_where(&w, 2, "delft", "");
    expect_where(&w, 3, "leiden", "west");
    expect_where(&w, 4, "", "");
    char text[256];
    assert_false(tb_job_plan_remark(&w.plan, text, sizeof text));
    close_world(&w);
}

static const char sites[] = "sites: [{name: delft, clusters: [{name: venus, hosts: ['v1:1', 'v2:1']}]}]\n"
                            "clusters: [{name: mars, hosts: ['m1:1', 'm2:1']}]\n"
                            "links: [{from: venus, to: mars}]\n";

/* What says the same, or nothing, needs no remark. */
static void a_grid_file_rules(void **state)
{
    struct world w;
    char text[512];
    open_world(&w, NULL, sites, "slot", "4");
    uint32_t host[4];
    static const char *const names[] = {"v1", "v2", "m1", "m2"};
    for (uint32_t i = 0; i < 4; i++)
        for (uint32_t k = 0; k < 4; k++)
            if (strcmp(w.plan.placement.book.hosts[k].name, names[i]) == 0)
                host[i] = k;
    assert_int_equal(tell(&w, host[0], "delft", "venus"), TB_OK);
    assert_int_equal(tell(&w, host[1], "", ""), TB_OK);
    assert_int_equal(tell(&w, host[2], "", "mars"), TB_OK);
    assert_false(tb_job_plan_remark(&w.plan, text, sizeof text));
    assert_int_equal(tell(&w, host[3], "delft", "mars"), TB_OK);
    assert_true(tb_job_plan_remark(&w.plan, text, sizeof text));
    assert_non_null(strstr(text, "what host m2 says"));
    assert_non_null(strstr(text, "(TOMBOLO_SITE=delft)"));
    assert_int_equal(tell(&w, host[1], "", "no name"), TB_OK);
    assert_int_equal(tell(&w, host[0], "", "mars"), TB_OK);
    assert_true(tb_job_plan_remark(&w.plan, text, sizeof text));
    assert_non_null(strstr(text, "what host m2 and 2 others say"));
    expect_where(&w, host[3], "", "mars");
    expect_where(&w, host[0], "delft", "venus");
    tb_job_plan_close(&w.plan); /* another attempt */
    assert_false(tb_job_plan_remark(&w.plan, text, sizeof text));
    close_world(&w);
}

/* Nobody waits for what it says: it is what we see ourselves. One that is far is asked. */
static void one_host_that_is_here_is_known(void **state)
{
    struct world w;
    setenv("TOMBOLO_SITE", "delft", 1);
    setenv("TOMBOLO_CLUSTER", "venus", 1);
    open_world(&w, NULL, NULL, "slot", "3");
    assert_int_equal(w.agents_rc, TB_OK);
    assert_true(tb_job_plan_knows_places(&w.plan, &w.agents));
    expect_where(&w, 0, "delft", "venus");
    close_world(&w);
    open_world(&w, "localhost cluster=mine\n", NULL, "slot", "3");
    expect_where(&w, 0, "", "mine");
    close_world(&w);
    open_world(&w, "far.invalid\n", NULL, "slot", "3");
    assert_false(tb_job_plan_knows_places(&w.plan, &w.agents));
    expect_where(&w, 0, "", "");
    close_world(&w);
    open_world(&w, "far.invalid site=leiden\n", NULL, "slot", "3");
    assert_true(tb_job_plan_knows_places(&w.plan, &w.agents));
    close_world(&w);
    setenv("TOMBOLO_CLUSTER", "two words", 1);
    open_world(&w, NULL, NULL, "slot", "3");
    assert_int_equal(w.agents_rc, TB_ERR_ARGUMENT);
    close_world(&w);
    unsetenv("TOMBOLO_SITE");
    unsetenv("TOMBOLO_CLUSTER");
    open_world(&w, NULL, NULL, "slot", "3");
    expect_where(&w, 0, "", "");
    close_world(&w);
}

/* ---- the host file ----------------------------------------------------------------------------------------------- */

static void lines_of_one_host_agree(void **state)
{
    struct tb_host_list list = {0};
    assert_int_equal(tb_host_list_read(&list, "a site=delft\nb\na cluster=x slots=2\na site=delft\n", "hosts"), TB_OK);
    assert_int_equal(list.count, 2);
    assert_int_equal(list.entries[0].slots, 4);
    assert_string_equal(list.entries[0].site, "delft");
    assert_string_equal(list.entries[0].cluster, "x");
    assert_string_equal(list.entries[1].site, "");
    assert_int_equal(tb_host_list_read(&list, "b\n\na cluster=y\n", "more"), TB_ERR_ARGUMENT);
    assert_non_null(strstr(tb_error_story(), "more:3: host a is in cluster y here, and in x by hosts:1"));
    assert_int_equal(tb_host_list_read(&list, "a site=leiden\n", "more"), TB_ERR_ARGUMENT);
    tb_host_list_close(&list);
}

/* Clusters of one name in two sites are two, and each has its turn. */
static void ranks_are_dealt_to_clusters_in_sites(void **state)
{
    static const uint32_t hosts[] = {0, 1, 2, 0, 1, 2};
    struct world w;
    open_world(&w, "h0 slots=2 cluster=a site=s\nh1 slots=2 cluster=a site=t\nh2 slots=2 site=t\n", NULL, "cluster",
               "6");
    for (uint32_t rank = 0; rank < 6; rank++)
        assert_int_equal(tb_address_book_host_of(&w.plan.placement.book, rank), hosts[rank]);
    close_world(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_does_not_fit_is_no_name),         cmocka_unit_test(a_name_that_is_none_ends_the_job),
        cmocka_unit_test(a_host_file_goes_before_the_host),     cmocka_unit_test(a_grid_file_rules),
        cmocka_unit_test(one_host_that_is_here_is_known),       cmocka_unit_test(lines_of_one_host_agree),
        cmocka_unit_test(ranks_are_dealt_to_clusters_in_sites),
    };
    tb_param_load();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
