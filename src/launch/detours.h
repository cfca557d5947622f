/* Detours: when a link is cut while a job runs, messages go another way, if there is one. What agents tell of their
 * links goes to the link states; what follows from these, to the plan of the grid and from there to all agents. Belongs
 * to the launcher; its one thread. */
#ifndef TB_LAUNCH_DETOURS_H
#define TB_LAUNCH_DETOURS_H

#include "launch/job_plan.h"
#include "launch/link_states.h"

struct tb_detours_events {
    void *context;
    void (*say)(void *context, const char *text);
    void (*fail)(void *context, const char *text); /* a link was cut for too long */
};

struct tb_detours {
    struct tb_job_plan *plan;
    struct tb_host_agents *agents;
    struct tb_detours_events events;
    struct tb_link_states states;
};

/* For one attempt, whose plan and agents are made. */
int tb_detours_open(struct tb_detours *detours, struct tb_loop *loop, struct tb_job_plan *plan,
                    struct tb_host_agents *agents, const struct tb_detours_events *events);
void tb_detours_close(struct tb_detours *detours); /* a zeroed one too */

#endif
