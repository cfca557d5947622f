/* When the agent of a gateway is lost while a job runs: others stand in for it, if there are some. What it passed on
 * goes by them, and the agents whose control streams it carried come to them. Functions on plan and agents. */
#ifndef TB_LAUNCH_STAND_INS_H
#define TB_LAUNCH_STAND_INS_H

#include "launch/job_plan.h"

/* Whether this agent was on a gateway that carries no ranks, and everything can go by others: the routes of all, and
 * the streams of those behind it. It takes no part in the plan any more. */
bool tb_stand_ins_exist(struct tb_job_plan *plan, const struct tb_host_agents *agents,
                        const struct tb_host_agent *agent);
/* It is given up, and all others are told how to go on. */
int tb_stand_ins_take_over(struct tb_job_plan *plan, struct tb_host_agents *agents, struct tb_host_agent *agent);
/* The agent of `host` has come to this one; see tb_host_agents_attach. */
void tb_stand_ins_take_attach(struct tb_job_plan *plan, struct tb_host_agents *agents, struct tb_host_agent *parent,
                              uint32_t host, uint32_t coming, bool open);

#endif
