#include "launch/stand_ins.h"

#include "launch/agent_orders.h"

bool tb_stand_ins_exist(struct tb_job_plan *plan, const struct tb_host_agents *agents,
                        const struct tb_host_agent *agent)
{
    if (plan->grid == NULL || agent->target.local || agent->rank_count > 0)
        return false;
    for (uint32_t i = 0; i < agents->count; i++)
        if (agents->all[i].phase <
            (tb_host_agent_is_behind(&agents->all[i], agent) ? TB_HOST_AGENT_TOLD : TB_HOST_AGENT_READY))
            return false; /* who comes by another one must know it; the others will */
    if (tb_grid_plan_lose(plan->grid, &plan->placement, agent->host) != TB_OK)
        return false;
    for (uint32_t i = 0; i < agents->count; i++) {
        uint32_t stand_in;
        if (agents->all[i].parent == agent && tb_host_agent_is_told(&agents->all[i]) &&
            tb_grid_plan_stand_ins(plan->grid, &plan->placement, i, 1, &stand_in) == 0)
            return false;
    }
    return true;
}

int tb_stand_ins_take_over(struct tb_job_plan *plan, struct tb_host_agents *agents, struct tb_host_agent *agent)
{
    tb_host_agents_detach_behind(agents, agent);
    agent->phase = TB_HOST_AGENT_GONE; /* so that it is told nothing */
    int rc = tb_agent_orders_routes(agents, plan->grid, &plan->placement);
    tb_agent_orders_stand_ins_all(agents, plan->grid, &plan->placement);
    tb_host_agent_give_up(agent);
    return rc;
}

void tb_stand_ins_take_attach(struct tb_job_plan *plan, struct tb_host_agents *agents, struct tb_host_agent *parent,
                              uint32_t host, uint32_t coming, bool open)
{
    struct tb_host_agent *agent = tb_host_agents_attach(agents, parent, host, coming, open);
    if (agent == NULL)
        return;
    plan->grid->parents[host] = parent->host;
    tb_agent_orders_stand_ins(agent, plan->grid, &plan->placement);
}
