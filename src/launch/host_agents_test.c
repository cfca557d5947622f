/* Agents behind one other share its stream: each gets what it is told, in order, and none waits for the others. */
#include "launch/agent_shell_test.h"

#include <string.h>

#include "remote/virtual_loop_test.h"

#define HOSTS 6u /* the first has a shell, the others are behind it */
#define EACH  40u
#define PIECE 65536u

struct world {
    struct virtual_loop loop;
    struct tb_host_agents agents;
    struct tb_host_agent_events events;
    struct tb_control_stream far;           /* the agent's side of host 0 */
    struct tb_control_stream behind[HOSTS]; /* those of the others */
    uint32_t frames[HOSTS];                 /* that have come there */
    int errors;
};

static void take_frame(void *context, struct tb_host_agent *agent, struct tb_control_frame *frame) {}

static void take_lost(void *context, struct tb_host_agent *agent, bool exited, int status) {}

static void make(struct world *w)
{
    memset(w, 0, sizeof *w);
    virtual_loop_open(&w->loop);
    w->events = (struct tb_host_agent_events){.context = w, .frame = take_frame, .lost = take_lost};
    assert_int_equal(tb_host_agents_open(&w->agents, &w->loop.loop, HOSTS, &w->events), TB_OK);
    for (uint32_t i = 0; i < HOSTS; i++) {
        w->agents.all[i].target = (struct tb_shell_target){.host = "host", .program = "/tombolo"};
        w->agents.all[i].parent = i > 0 ? &w->agents.all[0] : NULL;
        tb_control_stream_open(&w->behind[i], -1, -1);
    }
    tb_host_agents_sort(&w->agents);
    w->errors = agent_shell_open(&w->agents, &w->far);
    for (uint32_t i = 0; i < HOSTS; i++)
        w->agents.all[i].phase = TB_HOST_AGENT_READY;
}

static void unmake(struct world *w)
{
    close(w->errors);
    for (uint32_t i = HOSTS; i-- > 0;)
        tb_host_agent_give_up(&w->agents.all[i]);
    if (w->agents.all[0].errors.descriptor >= 0)
        tb_host_agent_collect(&w->agents.all[0], 0);
    for (uint32_t i = 0; i < HOSTS; i++) {
        tb_timer_clear(&w->agents.all[i].patience);
        tb_control_stream_close(&w->behind[i]);
    }
    tb_control_stream_close(&w->far);
    tb_host_agents_close(&w->agents);
    virtual_loop_close(&w->loop);
}

/* Frames that are told apart by their first field. */
static void tell(struct world *w, uint32_t host)
{
    static const char bytes[PIECE];
    for (uint32_t i = 0; i < EACH; i++) {
        struct tb_writer *f = tb_control_stream_begin(&w->agents.all[host].control, TB_CONTROL_COSTS);
        tb_put_u32(f, i);
        tb_put_bytes(f, bytes, sizeof bytes);
        assert_int_equal(tb_control_stream_end(&w->agents.all[host].control), TB_OK);
    }
}

/* What has come out of the stream of the first host, for whom. False: nothing has. */
static bool hear(struct world *w)
{
    struct tb_control_frame frame, inner;
    size_t length;
    tb_host_agents_flush(&w->agents);
    if (tb_control_stream_fill(&w->far) != TB_OK)
        return false;
    while (tb_control_stream_next(&w->far, &frame) == TB_OK) {
        assert_int_equal(frame.kind, TB_CONTROL_TUNNEL);
        uint32_t host = tb_get_u32(&frame.fields);
        assert_in_range(host, 1, HOSTS - 1);
        const void *bytes = tb_get_bytes(&frame.fields, &length);
        assert_int_equal(tb_control_stream_feed(&w->behind[host], bytes, length), TB_OK);
        while (tb_control_stream_next(&w->behind[host], &inner) == TB_OK)
            assert_int_equal(tb_get_u32(&inner.fields), w->frames[host]++);
    }
    return true;
}

static void those_behind_one_take_turns(void **state)
{
    struct world w;
    make(&w);
    for (uint32_t i = 1; i < HOSTS; i++)
        tell(&w, i);
    uint32_t least = 0, most = 0, longest = 0;
    while (hear(&w)) {
        least = UINT32_MAX;
        most = 0;
        for (uint32_t i = 1; i < HOSTS; i++) {
            least = w.frames[i] < least ? w.frames[i] : least;
            most = w.frames[i] > most ? w.frames[i] : most;
        }
        longest = most - least > longest ? most - least : longest;
    }
    assert_int_equal(least, EACH);
    assert_in_range(longest, 0, EACH / 4);
    unmake(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(those_behind_one_take_turns)};
    tb_param_load();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
