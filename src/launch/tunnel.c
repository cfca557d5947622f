/* Hosts that only another agent reaches: their standard streams travel in the control stream of that agent's host, at
 * any depth. To everything else here they look like the others. */
#include "launch/state.h"

#include <stdlib.h>
#include <string.h>

#define PIECE_BYTES 65536u
#define AHEAD_LIMIT (1u << 20) /* bytes in the pipe of a parent; beyond it what is behind waits in its own pipe */

void tb_tunnel_start(struct tb_host_agent *agent)
{
    const struct tb_shell_target *target = &agent->target;
    struct tb_writer *w = tb_control_stream_begin(&agent->parent->pipe, TB_CONTROL_SHELL);
    tb_put_u32(w, agent->host);
    tb_put_text(w, target->host);
    tb_put_text(w, target->user != NULL ? target->user : "");
    tb_put_u32(w, target->port);
    tb_put_text(w, target->command != NULL ? target->command : "");
    tb_put_text(w, target->program);
    tb_control_stream_end(&agent->parent->pipe);
}

void tb_tunnel_close(struct tb_host_agent *agent, bool now)
{
    struct tb_host_agent *parent = agent->parent;
    if (parent->phase < TB_HOST_AGENT_SPOKEN || parent->phase >= TB_HOST_AGENT_GONE)
        return;
    struct tb_writer *w = tb_control_stream_begin(&parent->pipe, TB_CONTROL_TUNNEL_END);
    tb_put_u32(w, agent->host);
    tb_put_u8(w, now);
    tb_put_u32(w, 0);
    tb_control_stream_end(&parent->pipe);
}

bool tb_tunnel_flush(struct tb_host_agent *agent)
{
    struct tb_control_stream *to = &agent->parent->pipe;
    bool moved = false;
    if (agent->detached || agent->resuming)
        return false;
    while (tb_control_stream_queued(&agent->pipe) > 0 && tb_control_stream_queued(to) < AHEAD_LIMIT) {
        size_t length;
        const void *bytes = tb_control_stream_take(&agent->pipe, PIECE_BYTES, &length);
        struct tb_writer *w = tb_control_stream_begin(to, TB_CONTROL_TUNNEL);
        tb_put_u32(w, agent->host);
        tb_put_bytes(w, bytes, length);
        tb_control_stream_end(to);
        moved = true;
    }
    return moved;
}

/* Which agent a frame of its parent is about; NULL: it is over with it, or there is none. */
static struct tb_host_agent *find(struct tb_host_agent *parent, struct tb_reader *r)
{
    struct tb_launch *launch = parent->launch;
    uint32_t host = tb_get_u32(r);
    if (r->error != TB_OK || host >= launch->host_count)
        return NULL;
    struct tb_host_agent *agent = &launch->agents[host];
    return agent->parent == parent && agent->phase > TB_HOST_AGENT_WAITING && agent->phase < TB_HOST_AGENT_GONE ? agent
                                                                                                                : NULL;
}

void tb_tunnel_take(struct tb_host_agent *parent, struct tb_reader *r)
{
    struct tb_host_agent *agent = find(parent, r);
    size_t length = 0;
    const void *bytes = tb_get_bytes(r, &length);
    if (agent == NULL || r->error != TB_OK || agent->detached)
        return;
    const uint8_t *at = bytes;
    int rc = TB_OK;
    for (; agent->resuming && length > 0; at++, length--) {
        agent->next |= (uint32_t)*at << 8 * agent->next_have++;
        if (agent->next_have == 4) {
            agent->resuming = false;
            rc = tb_control_stream_resume(&agent->pipe, -1, -1, agent->next);
        }
    }
    if (rc == TB_OK)
        rc = tb_control_stream_feed(&agent->pipe, at, length);
    tb_host_agent_digest(agent, rc);
}

static bool is_behind(const struct tb_host_agent *agent, const struct tb_host_agent *parent)
{
    while (agent != NULL && agent != parent)
        agent = agent->parent;
    return agent != NULL;
}

/* An agent comes by another one, perhaps before we have noticed why. */
void tb_tunnel_take_attach(struct tb_host_agent *parent, struct tb_reader *r)
{
    struct tb_launch *launch = parent->launch;
    uint32_t host = tb_get_u32(r), coming = tb_get_u32(r);
    if (r->error != TB_OK || host >= launch->host_count)
        return;
    struct tb_host_agent *agent = &launch->agents[host];
    uint32_t next = agent->pipe.sequence_in;
    uint8_t bytes[4] = {(uint8_t)next, (uint8_t)(next >> 8), (uint8_t)(next >> 16), (uint8_t)(next >> 24)};
    bool good =
        !launch->ending && agent->phase == TB_HOST_AGENT_STARTED && agent->parent != NULL && !is_behind(parent, agent);
    struct tb_writer *w = tb_control_stream_begin(&parent->pipe, good ? TB_CONTROL_ATTACH : TB_CONTROL_TUNNEL_END);
    tb_put_u32(w, host);
    if (good) {
        tb_put_u32(w, coming);
        tb_control_stream_end(&parent->pipe);
        w = tb_control_stream_begin(&parent->pipe, TB_CONTROL_TUNNEL);
        tb_put_u32(w, host);
        tb_put_bytes(w, bytes, sizeof bytes);
    } else {
        tb_put_u8(w, 1);
        tb_put_u32(w, 0);
    }
    tb_control_stream_end(&parent->pipe);
    if (!good)
        return;
    tb_timer_clear(&agent->patience);
    agent->parent = parent;
    agent->detached = false;
    agent->resuming = agent->returning = true;
    agent->next = agent->next_have = 0;
    agent->heard = tb_clock_now_real();
    launch->plan->parents[host] = parent->host;
    tb_host_agents_sort(launch);
    tb_host_agent_send_anchors(agent);
}

void tb_tunnel_take_errors(struct tb_host_agent *parent, struct tb_reader *r)
{
    struct tb_host_agent *agent = find(parent, r);
    size_t length = 0;
    const char *bytes = tb_get_bytes(r, &length);
    if (agent != NULL && r->error == TB_OK)
        tb_host_agent_add_errors(agent, bytes, length);
}

void tb_tunnel_take_end(struct tb_host_agent *parent, struct tb_reader *r)
{
    struct tb_host_agent *agent = find(parent, r);
    bool exited = tb_get_u8(r) != 0;
    int status = (int)tb_get_u32(r);
    if (agent == NULL || r->error != TB_OK)
        return;
    if (!agent->returning) {
        tb_host_agent_ended(agent, exited, status);
        return;
    }
    /* It got no answer in time, and comes again. */
    agent->detached = true;
    agent->resuming = agent->returning = false;
    tb_timer_set(&agent->launch->loop, &agent->patience, tb_param.link_patience);
}
