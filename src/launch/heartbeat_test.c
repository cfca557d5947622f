/* The heartbeat of the launcher in virtual time, with agents that the test plays. */
#include "launch/heartbeat.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "remote/virtual_loop_test.h"

#define HEARTBEAT 9000000000u
#define BEAT      (HEARTBEAT / 36)
#define STOPPED   8000000000u
#define AGENTS    4u

struct world {
    struct virtual_loop loop;
    struct tb_host_agents agents;
    struct tb_host_agent_events agent_events;
    struct tb_heartbeat heartbeat;
    uint64_t spoken[AGENTS]; /* when each agent has spoken last, */
    bool stopped[AGENTS];    /* if it does; they speak each half second */
    uint32_t silent;         /* how many were reported, */
    uint32_t host;           /* and the last of them */
    uint64_t when;
};

static void take_frame(void *context, struct tb_host_agent *agent, struct tb_control_frame *frame) {}

static void take_silent(void *context, struct tb_host_agent *agent)
{
    struct world *w = context;
    w->silent++;
    w->host = agent->host;
    w->when = w->loop.now;
    agent->phase = TB_HOST_AGENT_GONE;
}

/* 0 and 1 have shells, 2 is behind 1, and 3 behind 2. All of them run their ranks. */
static void make(struct world *w)
{
    memset(w, 0, sizeof *w);
    virtual_loop_open(&w->loop);
    tb_param.heartbeat = HEARTBEAT;
    w->agent_events = (struct tb_host_agent_events){.context = w, .frame = take_frame};
    assert_int_equal(tb_host_agents_open(&w->agents, &w->loop.loop, AGENTS, &w->agent_events), TB_OK);
    for (uint32_t i = 0; i < AGENTS; i++)
        w->agents.all[i].phase = TB_HOST_AGENT_STARTED;
    w->agents.all[2].parent = &w->agents.all[1];
    w->agents.all[3].parent = &w->agents.all[2];
    tb_host_agents_sort(&w->agents);
    tb_heartbeat_init(&w->heartbeat, &w->loop.loop, &w->agents,
                      &(struct tb_heartbeat_events){.context = w, .silent = take_silent});
    tb_heartbeat_start(&w->heartbeat);
}

static void unmake(struct world *w)
{
    tb_heartbeat_stop(&w->heartbeat);
    for (uint32_t i = AGENTS; i-- > 0;)
        tb_control_stream_close(&w->agents.all[i].control);
    tb_host_agents_close(&w->agents);
    virtual_loop_close(&w->loop);
}

/* What an agent says comes through, if all that are on the way to it run. */
static void agent_speaks(struct world *w, uint32_t host)
{
    for (const struct tb_host_agent *at = &w->agents.all[host]; at != NULL; at = at->parent)
        if (w->stopped[at->host])
            return;
    w->spoken[host] = w->loop.now;
    for (struct tb_host_agent *at = &w->agents.all[host]; at != NULL; at = at->parent)
        at->silence.heard = true;
}

/* How agents and launcher spend their time, when the latter is not stopped. */
static void pass(struct world *w, uint64_t ns)
{
    uint64_t until = w->loop.now + ns;
    while (w->loop.now < until) {
        for (uint32_t i = 0; i < AGENTS; i++)
            if (w->loop.now - w->spoken[i] >= 2 * BEAT)
                agent_speaks(w, i);
        virtual_loop_pass(&w->loop, BEAT / 5);
    }
}

static void a_dead_agent_is_noticed(void **state)
{
    for (uint32_t host = 0; host < AGENTS; host++) {
        struct world w;
        make(&w);
        pass(&w, 20000000000u);
        assert_int_equal(w.silent, 0);
        w.stopped[host] = true;
        uint64_t begun = w.loop.now;
        pass(&w, 12000000000u);
        assert_true(w.silent >= 1);
        assert_int_equal(w.host, host);
        assert_int_equal(w.silent, 1); /* and not those behind it */
        assert_in_range(w.when - begun, 8500000000u, 9800000000u);
        unmake(&w);
    }
}

/* One after the other, those on the way and those behind them, without a pause. */
static void stopped_agents_are_not_dead(void **state)
{
    struct world w;
    make(&w);
    pass(&w, 2000000000u);
    for (uint32_t round = 0; round < 3; round++)
        for (uint32_t i = 0; i < AGENTS; i++) {
            uint32_t host = round == 1 ? AGENTS - 1 - i : i;
            w.stopped[host] = true;
            pass(&w, STOPPED);
            w.stopped[host] = false;
            agent_speaks(&w, host);
        }
    assert_int_equal(w.silent, 0);
    unmake(&w);
}

/* They run once in eight seconds. */
static void agents_that_hardly_run_are_not_dead(void **state)
{
    struct world w;
    make(&w);
    for (uint32_t i = 0; i < 15; i++) {
        memset(w.stopped, true, sizeof w.stopped);
        pass(&w, STOPPED);
        memset(w.stopped, false, sizeof w.stopped);
        for (uint32_t host = 0; host < AGENTS; host++)
            agent_speaks(&w, host);
    }
    assert_int_equal(w.silent, 0);
    unmake(&w);
}

/* The launcher itself is stopped, or hardly runs; agents that are stopped meanwhile are not dead either, and one that
 * is dead will be noticed when the launcher has looked for long enough. */
static void the_launcher_counts_only_what_it_has_seen(void **state)
{
    struct world w;
    make(&w);
    for (uint32_t i = 0; i < 10; i++) {
        pass(&w, BEAT);
        virtual_loop_pass(&w.loop, STOPPED);
    }
    memset(w.stopped, true, sizeof w.stopped);
    for (uint32_t i = 0; i < 10; i++)
        virtual_loop_pass(&w.loop, STOPPED);
    assert_int_equal(w.silent, 0);
    w.stopped[1] = w.stopped[2] = w.stopped[3] = false;
    uint64_t begun = w.loop.now;
    pass(&w, 10000000000u);
    assert_int_equal(w.silent, 1);
    assert_int_equal(w.host, 0);
    assert_in_range(w.when - begun, 6000000000u, 9500000000u);
    unmake(&w);
}

/* Those to whom nothing else was said hear a PING each half second, and not more. */
static void agents_hear_something(void **state)
{
    struct world w;
    make(&w);
    pass(&w, 18000000000u);
    for (uint32_t i = 0; i < AGENTS; i++)
        assert_int_equal(w.agents.all[i].control.sequence_out, 1); /* which has not left: nobody flushes here */
    for (uint32_t k = 0; k < 18; k++) {
        size_t length;
        tb_control_stream_take(&w.agents.all[0].control, SIZE_MAX, &length);
        pass(&w, 500000000u);
    }
    assert_in_range(w.agents.all[0].control.sequence_out, 18, 19);
    for (uint32_t k = 0; k < 18; k++) { /* also if we run only for moments */
        size_t length;
        uint32_t before = w.agents.all[0].control.sequence_out;
        tb_control_stream_take(&w.agents.all[0].control, SIZE_MAX, &length);
        virtual_loop_pass(&w.loop, STOPPED);
        assert_int_equal(w.agents.all[0].control.sequence_out, before + 1);
    }
    unmake(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_dead_agent_is_noticed),
        cmocka_unit_test(stopped_agents_are_not_dead),
        cmocka_unit_test(agents_that_hardly_run_are_not_dead),
        cmocka_unit_test(the_launcher_counts_only_what_it_has_seen),
        cmocka_unit_test(agents_hear_something),
    };
    tb_param_load();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
