#include "launch/detours.h"

#include "remote/virtual_loop_test.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define SECOND UINT64_C(1000000000)

static const char gates[] = "clusters:\n"
                            "  - {name: office, hosts: ['o[1-2]:1']}\n"
                            "  - {name: farm, gateways: [g1, g2], hosts: [g1:0, g2:0, f1:1]}\n"
                            "links: [{from: g1, to: office, latency: 4}, {from: g2, to: office, latency: 20}]\n";

/* Both gateways cross the same link, and there is no other. */
static const char shared[] = "clusters:\n"
                             "  - {name: office, hosts: ['o[1-2]:1']}\n"
                             "  - {name: farm, gateways: [g1, g2], hosts: [g1:0, g2:0, f1:1]}\n"
                             "links: [{from: office, to: farm, latency: 4}]\n";

/* A job on a grid whose agents are only streams: what is queued for them is looked at. */
struct world {
    struct virtual_loop loop;
    struct tb_grid grid;
    struct tb_options options;
    struct tb_grid_plan grid_plan;
    struct tb_job_plan plan;
    struct tb_host_agent_events agent_events;
    struct tb_host_agents agents;
    struct tb_detours detours;
    bool missing[16];
    uint32_t said, failed;
    char text[600];
};

static void say(void *context, const char *text)
{
    struct world *w = context;
    w->said++;
    snprintf(w->text, sizeof w->text, "%s", text);
}

static void fail_job(void *context, const char *text)
{
    struct world *w = context;
    w->failed++;
    snprintf(w->text, sizeof w->text, "%s", text);
}

static void world_open_on(struct world *w, const char *grid)
{
    memset(w, 0, sizeof *w);
    char *words[] = {(char *)"x", NULL};
    assert_int_equal(virtual_loop_open(&w->loop), TB_OK);
    w->loop.now = 100 * SECOND;
    assert_int_equal(tb_grid_parse(&w->grid, grid, strlen(grid), "g.yaml"), TB_OK);
    assert_int_equal(tb_options_parse(&w->options, words), TB_OK);
    w->options.grid = &w->grid;
    assert_int_equal(tb_host_list_take(&w->options.hosts, &w->grid, w->missing), TB_OK);
    assert_int_equal(tb_grid_plan_open(&w->grid_plan, &w->options, TB_GRID_NONE, w->missing), TB_OK);
    assert_int_equal(tb_placement_make(&w->plan.placement, &w->options), TB_OK);
    assert_int_equal(tb_grid_plan_settle(&w->grid_plan, &w->options, &w->plan.placement), TB_OK);
    w->plan.grid = &w->grid_plan;
    w->plan.options = &w->options;
    struct tb_cost_head *costs; /* and the hosts learn where they are */
    assert_int_equal(tb_job_plan_make_costs(&w->plan, &costs), TB_OK);
    free(costs);
    uint32_t count = w->plan.placement.book.host_count;
    assert_int_equal(tb_host_agents_open(&w->agents, &w->loop.loop, count, &w->agent_events), TB_OK);
    for (uint32_t i = 0; i < count; i++) {
        w->agents.all[i].phase = TB_HOST_AGENT_STARTED;
        tb_control_stream_open(&w->agents.all[i].control, -1, -1);
    }
    assert_int_equal(tb_detours_open(&w->detours, &w->loop.loop, &w->plan, &w->agents,
                                     &(struct tb_detours_events){.context = w, .say = say, .fail = fail_job}),
                     TB_OK);
}

static void world_open(struct world *w)
{
    world_open_on(w, gates);
}

static void world_close(struct world *w)
{
    tb_detours_close(&w->detours);
    for (uint32_t i = 0; i < w->agents.count; i++)
        tb_host_agent_give_up(&w->agents.all[i]);
    tb_host_agents_close(&w->agents);
    tb_grid_plan_close(&w->grid_plan);
    tb_placement_close(&w->plan.placement);
    tb_options_close(&w->options);
    tb_grid_close(&w->grid);
    virtual_loop_close(&w->loop);
}

static uint32_t find(const struct world *w, const char *name)
{
    uint32_t i = 0;
    while (strcmp(w->plan.placement.book.hosts[i].name, name) != 0)
        i++;
    return i;
}

/* Bytes that wait for all agents together; each has some, or none has. */
static size_t queued(const struct world *w)
{
    size_t all = 0;
    for (uint32_t i = 0; i < w->agents.count; i++) {
        size_t bytes = tb_control_stream_queued(&w->agents.all[i].control);
        assert_true(i == 0 || (bytes > 0) == (all > 0));
        all += bytes;
    }
    return all;
}

/* Both ends of the link complain once a second, or are content. */
static void pass(struct world *w, const char *a, const char *b, bool silent, uint64_t time)
{
    for (uint64_t i = 0; i < time / SECOND; i++) {
        for (uint32_t host = 0; host < w->agents.count; host++)
            tb_link_states_heard(&w->detours.states, host);
        tb_link_states_report(&w->detours.states, find(w, a), find(w, b), silent, (3 + i) * SECOND, "no answer");
        tb_link_states_report(&w->detours.states, find(w, b), find(w, a), silent, (3 + i) * SECOND, "no answer");
        for (int k = 0; k < 10; k++)
            virtual_loop_pass(&w->loop, SECOND / 10);
    }
}

static uint32_t next_hop(const struct world *w, const char *from, const char *to)
{
    struct tb_host_routes routes;
    assert_int_equal(tb_grid_plan_routes(&w->grid_plan, &w->plan.placement, find(w, from), &routes), TB_OK);
    uint32_t hop = tb_host_routes_to(&routes, &w->plan.placement.book, find(w, to))->hops[0];
    tb_host_routes_close(&routes);
    return hop;
}

static void all_hear_of_other_ways(void **state)
{
    struct world w;
    world_open(&w);
    assert_int_equal(queued(&w), 0);
    pass(&w, "o2", "g1", true, SECOND);
    assert_string_equal(w.text, "link g1-office is cut (host o2 gets no answer from host g1); messages go around it");
    assert_int_equal(next_hop(&w, "o1", "f1"), find(&w, "g2"));
    size_t once = queued(&w);
    assert_true(once > 0);
    pass(&w, "o2", "g1", true, 10 * SECOND);
    assert_int_equal(queued(&w), once); /* nothing is new */
    pass(&w, "o2", "g1", false, 4 * SECOND);
    assert_string_equal(w.text, "link g1-office is up again after 14 s");
    assert_int_equal(next_hop(&w, "o1", "f1"), find(&w, "g1"));
    assert_true(queued(&w) > once);
    assert_int_equal(w.said, 2);
    world_close(&w);
}

/* What cannot go another way only waits. */
static void nobody_hears_without_another_way(void **state)
{
    struct world w;
    world_open(&w);
    tb_param.link_patience = 8 * SECOND;
    pass(&w, "o1", "o2", true, SECOND);
    assert_string_equal(w.text,
                        "hosts o1 and o2 of cluster office cannot reach each other, though the launcher reaches "
                        "both (no answer); waiting for up to 8 s (--set link_patience=TIME)");
    pass(&w, "o1", "o2", true, 20 * SECOND);
    assert_int_equal(w.failed, 1);
    assert_int_equal(queued(&w), 0);
    world_close(&w);
    world_open(&w); /* without a grid */
    w.plan.grid = NULL;
    pass(&w, "o1", "g1", true, SECOND);
    assert_non_null(strstr(w.text, "hosts o1 (cluster office) and g1 (cluster farm) cannot reach each other"));
    assert_int_equal(queued(&w), 0);
    world_close(&w);
}

/* A connection of ranks that passes nothing is no link that is cut, not even where there would be another way. */
static void connections_are_not_links(void **state)
{
    struct world w;
    world_open(&w);
    struct tb_agent_link link = {
        .host = find(&w, "g1"), .state = TB_LINK_STUCK, .why = "rank 0 on o1 and rank 4 on g1"};
    for (int i = 0; i < 5; i++) {
        for (uint32_t host = 0; host < w.agents.count; host++)
            tb_detours_heard(&w.detours, host);
        link.time = (uint64_t)(3 + i) * SECOND;
        tb_detours_report(&w.detours, find(&w, "o1"), &link);
        for (int k = 0; k < 10; k++)
            virtual_loop_pass(&w.loop, SECOND / 10);
    }
    assert_non_null(strstr(w.text, "nothing passes between rank 0 on o1 and rank 4 on g1, though"));
    assert_int_equal(queued(&w), 0);
    link.state = TB_LINK_PASSES;
    tb_detours_report(&w.detours, find(&w, "o1"), &link);
    for (int k = 0; k < 40; k++)
        virtual_loop_pass(&w.loop, SECOND / 10);
    assert_non_null(strstr(w.text, "messages pass between rank 0 on o1 and rank 4 on g1 again"));
    assert_int_equal(w.failed, 0);
    world_close(&w);
}

static void report(struct world *w, const char *from, const char *to, uint64_t time)
{
    struct tb_agent_link link = {.host = find(w, to), .state = TB_LINK_SILENT, .time = time, .why = "no answer"};
    tb_detours_report(&w->detours, find(w, from), &link);
}

/* A gateway has died, and an agent that has used it asks it until the end. The other gateway has the same link, which
 * is cut long after that: only then anything has been silent. */
static void nothing_that_is_told_of_the_dead_counts(void **state)
{
    struct world w;
    world_open_on(&w, shared);
    tb_param.link_patience = 20 * SECOND;
    for (uint64_t i = 0; i < 40; i++) {
        uint32_t g1 = find(&w, "g1");
        for (uint32_t host = 0; host < w.agents.count; host++)
            if (host != g1 || i < 2)
                tb_detours_heard(&w.detours, host);
        report(&w, "o1", "g1", (3 + i) * SECOND);
        if (i == 2) {
            w.agents.all[g1].phase = TB_HOST_AGENT_GONE;
            tb_detours_forget(&w.detours, g1);
        }
        if (i >= 30) {
            report(&w, "o1", "g2", (i - 27) * SECOND);
            report(&w, "g2", "o1", (i - 27) * SECOND);
        }
        for (int k = 0; k < 10; k++)
            virtual_loop_pass(&w.loop, SECOND / 10);
        assert_int_equal(w.detours.states.way_count, i < 2 || i >= 30 ? 1 : 0);
    }
    assert_int_equal(w.failed, 0);
    assert_int_equal(w.said, 1);
    assert_non_null(strstr(w.text, "host o1 gets no answer from host g2) and there is no way around it"));
    struct tb_agent_link nobody = {.host = w.agents.count, .state = TB_LINK_SILENT, .why = "nonsense"};
    tb_detours_report(&w.detours, find(&w, "o1"), &nobody);
    world_close(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_hear_of_other_ways),
        cmocka_unit_test(nobody_hears_without_another_way),
        cmocka_unit_test(connections_are_not_links),
        cmocka_unit_test(nothing_that_is_told_of_the_dead_counts),
    };
    tb_param_load();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
