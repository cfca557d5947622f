#include "launch/heartbeat.h"

static void beat(struct tb_timer *timer);

void tb_heartbeat_init(struct tb_heartbeat *heartbeat, struct tb_loop *loop, struct tb_host_agents *agents,
                       const struct tb_heartbeat_events *events)
{
    *heartbeat = (struct tb_heartbeat){.loop = loop, .events = *events, .agents = agents};
    tb_timer_init(&heartbeat->timer, beat);
}

static void set_timer(struct tb_heartbeat *heartbeat)
{
    heartbeat->due = tb_loop_now(heartbeat->loop) + tb_param.heartbeat / 3;
    tb_timer_set(heartbeat->loop, &heartbeat->timer, tb_param.heartbeat / 3);
}

/* One behind another is only judged by the time in which that one has said something. */
static bool is_silent(const struct tb_host_agent *agent, uint64_t now)
{
    uint64_t until = agent->parent != NULL ? agent->parent->heard : now;
    return until > agent->heard && until - agent->heard > tb_param.heartbeat;
}

static void beat(struct tb_timer *timer)
{
    struct tb_heartbeat *heartbeat = TB_CONTAINER(timer, struct tb_heartbeat, timer);
    uint64_t now = tb_loop_now(heartbeat->loop);
    /* If we are late ourselves, what the agents have said meanwhile is still to be read; the next beat judges. */
    bool late = now > heartbeat->due + tb_param.heartbeat / 3;
    for (uint32_t i = 0; i < heartbeat->agents->count; i++) {
        struct tb_host_agent *agent = &heartbeat->agents->all[i];
        if (agent->target.local || !tb_host_agent_is_ready(agent))
            continue;
        tb_control_stream_tell_heard(&agent->control, 1);
        if (agent->detached)
            continue;
        if (!late && is_silent(agent, now))
            heartbeat->events.silent(heartbeat->events.context, agent);
        else if (tb_control_stream_queued(&agent->control) == 0)
            tb_control_stream_send(&agent->control, TB_CONTROL_PING);
    }
    set_timer(heartbeat);
}

void tb_heartbeat_start(struct tb_heartbeat *heartbeat)
{
    bool needed = false;
    for (uint32_t i = 0; i < heartbeat->agents->count; i++)
        needed = needed || !heartbeat->agents->all[i].target.local;
    if (needed && tb_param.heartbeat > 0 && !tb_timer_is_set(&heartbeat->timer))
        set_timer(heartbeat);
}

void tb_heartbeat_stop(struct tb_heartbeat *heartbeat)
{
    tb_timer_clear(&heartbeat->timer);
}
