/* The start of a job: from nothing to agents that all know the address book and start their ranks. Those that do not
 * come make it fail, or the attempt is made again without them. Belongs to the launcher; its one thread. */
#ifndef TB_LAUNCH_JOB_START_H
#define TB_LAUNCH_JOB_START_H

#include "launch/delivery.h"
#include "launch/group_tests.h"
#include "launch/job_plan.h"
#include "launch/manual_listener.h"
#include "launch/reach_survey.h"

struct tb_job_start_events {
    void *context;
    void (*note)(void *context, const char *text);   /* for the user */
    void (*failed)(void *context, const char *text); /* the job is to end */
    void (*again)(void *context);                    /* this attempt is to end, for another one */
};

struct tb_job_start {
    struct tb_loop *loop;
    struct tb_job_start_events events;
    struct tb_job_plan *plan;
    struct tb_host_agents *agents;
    const sigset_t *mask;             /* for shells */
    struct tb_manual_listener manual; /* for clusters that are started by hand */
    struct tb_reach_survey survey;
    struct tb_group_tests groups;
    struct tb_delivery delivery;
    struct tb_cost_head *costs; /* to be delivered; else NULL */
    struct tb_timer timer;
    uint64_t began;
    uint32_t missed_count; /* agents of this attempt that do not come, with those behind them */
    bool known;            /* the address book was whole before anybody had answered */
    bool booked;           /* all have been told about each other, */
    bool begun;            /* and know it: ranks run, so that there is no other attempt */
    bool over;             /* the attempt is ending */
};

void tb_job_start_init(struct tb_job_start *start, struct tb_loop *loop, struct tb_job_plan *plan,
                       struct tb_host_agents *agents, const struct tb_job_start_events *events);
/* Begins an attempt. */
void tb_job_start_begin(struct tb_job_start *start, const sigset_t *mask);
/* An agent is ready, and what it has told about its host is in the plan. */
void tb_job_start_take_ready(struct tb_job_start *start);
/* An agent has been told everything, or is not to be waited for any more. */
void tb_job_start_take_told(struct tb_job_start *start);
/* An agent is silent. True: there will be another attempt, which gets to it another way. */
bool tb_job_start_go_around(struct tb_job_start *start, const struct tb_host_agent *agent);
/* The stream of an agent has ended. True: it was silent before that, and there will be another attempt. */
bool tb_job_start_lose(struct tb_job_start *start, const struct tb_host_agent *agent);
/* An agent did not come to life, and this is why. */
void tb_job_start_miss(struct tb_job_start *start, struct tb_host_agent *agent, const char *why);
void tb_job_start_stop(struct tb_job_start *start);   /* the attempt ends; nothing more is started */
void tb_job_start_forget(struct tb_job_start *start); /* before another attempt */

#endif
