#include "launch/host_agents.h"

#include "launch/delivery.h"
#include "launch/host_tunnel.h"

#include <stdlib.h>
#include <sys/wait.h>

#define STARTING_LIMIT 64u /* agents that may be starting at once */

int tb_host_agents_open(struct tb_host_agents *agents, struct tb_loop *loop, uint32_t count,
                        const struct tb_host_agent_events *events)
{
    *agents = (struct tb_host_agents){.all = calloc(count, sizeof *agents->all),
                                      .order = calloc(count, sizeof *agents->order)};
    if (agents->all == NULL || agents->order == NULL) {
        tb_host_agents_close(agents);
        return tb_error(TB_ERR_MEMORY, "no memory for %u hosts", count);
    }
    agents->count = count;
    for (uint32_t i = 0; i < count; i++)
        tb_host_agent_open(&agents->all[i], loop, i, events, &agents->counts);
    return TB_OK;
}

void tb_host_agents_close(struct tb_host_agents *agents)
{
    for (uint32_t i = 0; i < agents->count; i++)
        tb_host_agent_close(&agents->all[i]);
    free(agents->all);
    free(agents->order);
    *agents = (struct tb_host_agents){0};
}

/* By depth, in as many passes as there are depths, which are few. */
void tb_host_agents_sort(struct tb_host_agents *agents)
{
    uint32_t deepest = 0, count = 0;
    for (uint32_t i = 0; i < agents->count; i++) {
        agents->all[i].depth = 0;
        for (const struct tb_host_agent *at = agents->all[i].parent; at != NULL; at = at->parent)
            agents->all[i].depth++;
    }
    for (uint32_t i = 0; i < agents->count; i++)
        deepest = agents->all[i].depth > deepest ? agents->all[i].depth : deepest;
    for (uint32_t depth = deepest + 1; depth-- > 0;)
        for (uint32_t i = 0; i < agents->count; i++)
            if (agents->all[i].depth == depth)
                agents->order[count++] = i;
}

struct tb_host_agent *tb_host_agents_next(struct tb_host_agents *agents, uint32_t *at)
{
    while (agents->next_start < agents->count && agents->all[agents->next_start].phase != TB_HOST_AGENT_WAITING)
        agents->next_start++;
    if (*at < agents->next_start)
        *at = agents->next_start;
    while (*at < agents->count && agents->counts.silent < STARTING_LIMIT) {
        struct tb_host_agent *agent = &agents->all[(*at)++];
        if (agent->phase == TB_HOST_AGENT_WAITING &&
            (agent->parent == NULL || agent->parent->phase >= TB_HOST_AGENT_READY))
            return agent;
    }
    return NULL;
}

void tb_host_agents_reap(struct tb_host_agents *agents)
{
    int status;
    pid_t pid;
    while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
        for (uint32_t i = 0; i < agents->count; i++)
            if (agents->all[i].pid == pid) {
                tb_host_agent_collect(&agents->all[i], status);
                break;
            }
}

void tb_host_agents_stop(struct tb_host_agents *agents, bool now)
{
    for (uint32_t i = 0; i < agents->count; i++)
        tb_host_agent_stop(&agents->all[i], now);
}

void tb_host_agents_abandon(struct tb_host_agents *agents)
{
    for (uint32_t i = 0; i < agents->count; i++) {
        struct tb_host_agent *agent = &agents->all[i];
        if (agent->phase < TB_HOST_AGENT_GONE)
            tb_host_agent_give_up(agent);
        /* A local agent sees the end of its stream and ends, and its guardian with it. */
        if (!agent->target.local)
            tb_host_agent_kill(agent);
    }
}

void tb_host_agents_signal(struct tb_host_agents *agents, int signal)
{
    for (uint32_t i = 0; i < agents->count; i++) {
        struct tb_host_agent *agent = &agents->all[i];
        if (agent->phase <= TB_HOST_AGENT_SILENT || agent->phase == TB_HOST_AGENT_GONE)
            continue;
        tb_put_u32(tb_control_stream_begin(&agent->control, TB_CONTROL_SIGNAL), (uint32_t)signal);
        tb_control_stream_end(&agent->control);
    }
}

/* Who has been served waits until all others behind the same agent have been; then it is the turn of everyone again. */
static bool begin_rounds(struct tb_host_agents *agents)
{
    bool begun = false;
    for (uint32_t i = 0; i < agents->count; i++)
        begun = tb_host_agent_begin_round(&agents->all[i]) || begun;
    return begun;
}

/* A piece for each; those behind others then have their turn before there is another one. */
static bool deliver(struct tb_host_agents *agents)
{
    bool any = false;
    for (uint32_t i = 0; i < agents->count && agents->delivery != NULL; i++)
        if (agents->all[i].phase < TB_HOST_AGENT_GONE)
            any = tb_delivery_go_on(agents->delivery, &agents->all[i]) || any;
    return any;
}

/* From the deepest on, so that everything arrives where a descriptor is; and again while a stream that was full has got
 * room for what is behind it. */
static void flush_queued(struct tb_host_agents *agents)
{
    for (bool moved = true; moved;) {
        moved = false;
        for (uint32_t i = 0; i < agents->count; i++)
            moved = tb_host_agent_flush(&agents->all[agents->order[i]]) || moved;
        moved = begin_rounds(agents) || moved;
    }
}

void tb_host_agents_flush(struct tb_host_agents *agents)
{
    for (uint32_t i = 0; i < agents->count; i++)
        tb_host_agent_gather(&agents->all[i]);
    do
        flush_queued(agents);
    while (deliver(agents));
}

void tb_host_agents_excuse(struct tb_host_agents *agents, uint64_t now)
{
    for (uint32_t i = 0; i < agents->count; i++)
        agents->all[i].heard = now;
    for (uint32_t i = 0; i < agents->count; i++)
        agents->all[i].silence = (struct tb_silence){0};
}

bool tb_host_agents_gone(const struct tb_host_agents *agents)
{
    for (uint32_t i = 0; i < agents->count; i++)
        if (agents->all[i].phase < TB_HOST_AGENT_GONE || agents->all[i].pid > 0)
            return false;
    return true;
}

void tb_host_agents_give_up_behind(struct tb_host_agents *agents, const struct tb_host_agent *parent)
{
    for (uint32_t i = 0; i < agents->count; i++) {
        struct tb_host_agent *agent = &agents->all[i];
        if (agent->parent != parent || agent->phase == TB_HOST_AGENT_GONE)
            continue;
        tb_host_agent_give_up(agent);
        tb_host_agents_give_up_behind(agents, agent);
    }
}

void tb_host_agents_detach_behind(struct tb_host_agents *agents, const struct tb_host_agent *parent)
{
    for (uint32_t i = 0; i < agents->count; i++)
        if (agents->all[i].parent == parent && tb_host_agent_is_told(&agents->all[i]))
            tb_host_agent_detach(&agents->all[i]);
}

struct tb_host_agent *tb_host_agents_find_behind(struct tb_host_agents *agents, const struct tb_host_agent *parent,
                                                 uint32_t host)
{
    struct tb_host_agent *agent = host < agents->count ? &agents->all[host] : NULL;
    return agent != NULL && agent->parent == parent && agent->phase > TB_HOST_AGENT_WAITING &&
                   agent->phase < TB_HOST_AGENT_GONE
               ? agent
               : NULL;
}

struct tb_host_agent *tb_host_agents_attach(struct tb_host_agents *agents, struct tb_host_agent *parent, uint32_t host,
                                            uint32_t coming, bool open)
{
    if (host >= agents->count)
        return NULL;
    struct tb_host_agent *agent = &agents->all[host];
    if (!open || !tb_host_agent_is_told(agent) || !agent->control.keeps || agent->target.local ||
        tb_host_agent_is_behind(parent, agent)) {
        tb_host_tunnel_end(&parent->control, host, TB_TUNNEL_END_NOW);
        return NULL;
    }
    tb_host_tunnel_admit(&parent->control, host, coming, agent->control.sequence_in);
    tb_host_agent_attach(agent, parent);
    tb_host_agents_sort(agents);
    return agent;
}
