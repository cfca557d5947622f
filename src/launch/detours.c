#include "launch/detours.h"

#include "launch/agent_orders.h"

static uint64_t pair(void *context, uint32_t a, uint32_t b, const char **link)
{
    *link = NULL;
    return a < b ? (uint64_t)a << 32 | b : (uint64_t)b << 32 | a;
}

static uint64_t way(void *context, uint32_t a, uint32_t b, const char **link)
{
    const struct tb_detours *detours = context;
    const struct tb_job_plan *plan = detours->plan;
    *link = NULL;
    if (plan->grid != NULL)
        return tb_grid_plan_way(plan->grid, &plan->placement, a, b, link);
    return pair(context, a, b, link);
}

static int reroute(void *context, uint32_t a, uint32_t b, bool cut)
{
    struct tb_detours *detours = context;
    struct tb_job_plan *plan = detours->plan;
    if (plan->grid == NULL)
        return TB_ERR_UNSUPPORTED;
    uint32_t version = plan->grid->version;
    int rc = tb_grid_plan_cut(plan->grid, &plan->placement, a, b, cut);
    if (rc != TB_OK || plan->grid->version == version)
        return rc;
    rc = tb_agent_orders_routes(detours->agents, plan->grid, &plan->placement);
    tb_agent_orders_stand_ins_all(detours->agents, plan->grid, &plan->placement);
    return rc;
}

static int no_other_way(void *context, uint32_t a, uint32_t b, bool cut)
{
    return TB_ERR_UNSUPPORTED;
}

static void say(void *context, const char *text)
{
    const struct tb_detours *detours = context;
    detours->events.say(detours->events.context, text);
}

static void fail(void *context, const char *text)
{
    const struct tb_detours *detours = context;
    detours->events.fail(detours->events.context, text);
}

int tb_detours_open(struct tb_detours *detours, struct tb_loop *loop, struct tb_job_plan *plan,
                    struct tb_host_agents *agents, const struct tb_detours_events *events)
{
    *detours = (struct tb_detours){.plan = plan, .agents = agents, .events = *events};
    struct tb_link_states_events told = {.context = detours, .way = way, .reroute = reroute, .say = say, .fail = fail};
    int rc = tb_link_states_open(&detours->states, loop, &plan->placement.book, &told);
    told.way = pair;
    told.reroute = no_other_way;
    told.connections = true;
    return rc == TB_OK ? tb_link_states_open(&detours->connections, loop, &plan->placement.book, &told) : rc;
}

void tb_detours_close(struct tb_detours *detours)
{
    tb_link_states_close(&detours->states);
    tb_link_states_close(&detours->connections);
}

void tb_detours_stop(struct tb_detours *detours)
{
    tb_link_states_stop(&detours->states);
    tb_link_states_stop(&detours->connections);
}

void tb_detours_heard(struct tb_detours *detours, uint32_t host)
{
    tb_link_states_heard(&detours->states, host);
    tb_link_states_heard(&detours->connections, host);
}

/* Whoever has used one that died asks it until the job ends. */
static bool is_gone(const struct tb_detours *detours, uint32_t host)
{
    return host >= detours->agents->count || detours->agents->all[host].phase >= TB_HOST_AGENT_GONE;
}

void tb_detours_report(struct tb_detours *detours, uint32_t host, const struct tb_agent_link *link)
{
    if (is_gone(detours, link->host))
        return;
    bool connection = link->state == TB_LINK_STUCK || link->state == TB_LINK_PASSES;
    bool bad = link->state == TB_LINK_STUCK || link->state == TB_LINK_SILENT;
    tb_link_states_report(connection ? &detours->connections : &detours->states, host, link->host, bad, link->time,
                          link->why);
}

void tb_detours_forget(struct tb_detours *detours, uint32_t host)
{
    tb_link_states_forget(&detours->states, host);
    tb_link_states_forget(&detours->connections, host);
}
