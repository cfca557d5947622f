/* Detours: when a link is cut while a job runs, messages go another way, if there is one. What agents tell of their
 * links goes to the link states; what follows from these, to the plan of the grid and from there to all agents. What
 * they tell of connections that pass nothing goes to states of its own: there is no other way then. Belongs to the
 * launcher; its one thread. */
#ifndef TB_LAUNCH_DETOURS_H
#define TB_LAUNCH_DETOURS_H

#include "launch/agent_frames.h"
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
    struct tb_link_states states, connections;
};

/* For one attempt, whose plan and agents are made. */
int tb_detours_open(struct tb_detours *detours, struct tb_loop *loop, struct tb_job_plan *plan,
                    struct tb_host_agents *agents, const struct tb_detours_events *events);
void tb_detours_close(struct tb_detours *detours); /* a zeroed one too */
void tb_detours_stop(struct tb_detours *detours);  /* the job is being ended */
/* Something has come from the agent of a host; it has told this of another; or it is gone. What is told of one that is
 * gone does not count: its way may be that of others who live. */
void tb_detours_heard(struct tb_detours *detours, uint32_t host);
void tb_detours_report(struct tb_detours *detours, uint32_t host, const struct tb_agent_link *link);
void tb_detours_forget(struct tb_detours *detours, uint32_t host);

#endif
