/* What the launcher tells agents beyond what keeps their streams alive: what to start, their routes, the address book,
 * whom to turn to. Functions on agents; they own nothing. */
#ifndef TB_LAUNCH_AGENT_ORDERS_H
#define TB_LAUNCH_AGENT_ORDERS_H

#include "launch/grid_plan.h"
#include "launch/host_agents.h"
#include "topology/topology.h"

/* `setup` is what holds for all hosts; `plan` may be NULL, as everywhere here: no grid. */
int tb_agent_orders_setup(struct tb_host_agent *agent, const struct tb_setup *setup, const struct tb_grid_plan *plan,
                          const struct tb_placement *placement);
/* To all that are ready. An error has the whole story. */
int tb_agent_orders_routes(struct tb_host_agents *agents, const struct tb_grid_plan *plan,
                           const struct tb_placement *placement);
int tb_agent_orders_address_book(struct tb_host_agent *agent, const struct tb_placement *placement);
/* Who can carry its stream if that comes no more. One that is a child of ours has nobody to go to. */
void tb_agent_orders_stand_ins(struct tb_host_agent *agent, const struct tb_grid_plan *plan,
                               const struct tb_placement *placement);
void tb_agent_orders_stand_ins_all(struct tb_host_agents *agents, const struct tb_grid_plan *plan,
                                   const struct tb_placement *placement); /* to all */
/* All know all that; in a grid, they start their ranks now. */
void tb_agent_orders_start(struct tb_host_agents *agents, const struct tb_grid_plan *plan);
/* An agent cannot connect where it wants to; the one there can. */
void tb_agent_orders_call(struct tb_host_agents *agents, uint32_t host, struct tb_reader *rest);
/* To all: so many processes, from this one on, are gone, and the job goes on without them. */
void tb_agent_orders_lost(struct tb_host_agents *agents, struct tb_proc proc, uint32_t count, const char *why);
void tb_agent_orders_lost_to(struct tb_host_agent *agent, struct tb_proc proc, uint32_t count, const char *why);
void tb_agent_orders_end_rank(struct tb_host_agent *agent, uint32_t rank);
/* To all: the ranks of a world, which was running, are ended. */
void tb_agent_orders_end_world(struct tb_host_agents *agents, uint32_t first);
/* What a rank has asked for (TB_CONTROL_SPAWN, _MEET, _REGISTRY, _BOND). */
struct tb_agent_answer {
    uint32_t number; /* of the question */
    int error;       /* TB_OK, or */
    const char *text;
    const void *bytes;
    size_t length;
};
void tb_agent_orders_answer(struct tb_host_agents *agents, const struct tb_address_book *book, uint32_t rank,
                            const struct tb_agent_answer *answer);
/* By the agent that has passed the question on, also if the book does not have such a rank there. */
void tb_agent_orders_reply(struct tb_host_agent *agent, uint32_t rank, const struct tb_agent_answer *answer);
void tb_agent_orders_input(struct tb_host_agent *agent, const char *bytes, size_t length);

#endif
