#include "launch/detours.h"

#include "launch/agent_orders.h"

static uint64_t way(void *context, uint32_t a, uint32_t b, const char **link)
{
    const struct tb_detours *detours = context;
    const struct tb_job_plan *plan = detours->plan;
    *link = NULL;
    if (plan->grid != NULL)
        return tb_grid_plan_way(plan->grid, &plan->placement, a, b, link);
    return a < b ? (uint64_t)a << 32 | b : (uint64_t)b << 32 | a;
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
    return tb_link_states_open(
        &detours->states, loop, &plan->placement.book,
        &(struct tb_link_states_events){.context = detours, .way = way, .reroute = reroute, .say = say, .fail = fail});
}

void tb_detours_close(struct tb_detours *detours)
{
    tb_link_states_close(&detours->states);
}
