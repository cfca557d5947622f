#include "launch/heartbeat.h"

#define BEATS 36u /* of one silence that is too long */
#define PING_PARTS                                                                                                     \
    24u /* of it somebody to whom nothing was said hears a PING: at the second beat, or late at the first */
#define HEARD_BEATS 12u /* those who wait for it hear which of their frames have come */
#define DOUBT_BEATS 4u  /* after so many of silence, those behind are not judged */

static void beat(struct tb_timer *timer);

void tb_heartbeat_init(struct tb_heartbeat *heartbeat, struct tb_loop *loop, struct tb_host_agents *agents,
                       const struct tb_heartbeat_events *events)
{
    *heartbeat = (struct tb_heartbeat){.loop = loop, .events = *events, .agents = agents};
    tb_timer_init(&heartbeat->timer, beat);
}

static uint64_t beat_time(void)
{
    return tb_param.heartbeat / BEATS;
}

/* One behind others is only judged by the time in which these have said something. */
static enum tb_silence_way way_to(const struct tb_host_agent *agent)
{
    enum tb_silence_way way = TB_SILENCE_OPEN;
    for (const struct tb_host_agent *at = agent->parent; at != NULL; at = at->parent)
        if (at->silence.time > DOUBT_BEATS * beat_time())
            return TB_SILENCE_SHUT;
        else if (at->silence.time > 0)
            way = TB_SILENCE_UNKNOWN;
    return way;
}

/* If the launcher gets the processor for a moment only, once in a while, it says something then. */
static void speak(struct tb_heartbeat *heartbeat, struct tb_host_agent *agent)
{
    if (heartbeat->beats % HEARD_BEATS == 0)
        tb_control_stream_tell_heard(&agent->control, 1);
    uint64_t now = tb_loop_now(heartbeat->loop);
    bool new = agent->said != agent->control.sequence_out;
    if (agent->detached || (!new &&now - agent->said_at < tb_param.heartbeat / PING_PARTS))
        return;
    /* What has not left yet says as much as another one. */
    if (!new &&tb_control_stream_queued(&agent->control) == 0)
        tb_control_stream_send(&agent->control, TB_CONTROL_PING);
    agent->said = agent->control.sequence_out;
    agent->said_at = now;
}

static void beat(struct tb_timer *timer)
{
    struct tb_heartbeat *heartbeat = TB_CONTAINER(timer, struct tb_heartbeat, timer);
    struct tb_host_agents *agents = heartbeat->agents;
    uint64_t now = tb_loop_now(heartbeat->loop);
    heartbeat->beats++;
    /* From the launcher outwards, so that those on the way are looked at before those behind them. */
    for (uint32_t i = agents->count; i-- > 0;) {
        struct tb_host_agent *agent = &agents->all[agents->order[i]];
        if (agent->target.local || !tb_host_agent_is_ready(agent))
            continue;
        tb_silence_look(&agent->silence, now, beat_time(), agent->detached ? TB_SILENCE_SHUT : way_to(agent));
        if (!agent->detached && agent->silence.time > tb_param.heartbeat)
            heartbeat->events.silent(heartbeat->events.context, agent);
        else
            speak(heartbeat, agent);
    }
    tb_timer_set(heartbeat->loop, timer, beat_time());
}

void tb_heartbeat_start(struct tb_heartbeat *heartbeat)
{
    bool needed = false;
    for (uint32_t i = 0; i < heartbeat->agents->count; i++)
        needed = needed || !heartbeat->agents->all[i].target.local;
    if (needed && tb_param.heartbeat > 0 && !tb_timer_is_set(&heartbeat->timer))
        tb_timer_set(heartbeat->loop, &heartbeat->timer, beat_time());
}

void tb_heartbeat_stop(struct tb_heartbeat *heartbeat)
{
    tb_timer_clear(&heartbeat->timer);
}
