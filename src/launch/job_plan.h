/* The plan of a job: where its ranks go, who takes part besides, and what each host is told. Made anew for each
 * attempt; the hosts that turned out to be missing are left out of the next one. Belongs to the launcher; its one
 * thread. */
#ifndef TB_LAUNCH_JOB_PLAN_H
#define TB_LAUNCH_JOB_PLAN_H

#include "launch/agent_frames.h"
#include "launch/grid_plan.h"
#include "launch/host_agents.h"
#include "launch/told_places.h"
#include "topology/topology.h"

struct tb_job_plan {
    struct tb_options *options;
    const char *program; /* path of this executable */
    struct tb_placement placement;
    struct tb_setup setup;      /* what holds for all hosts */
    struct tb_grid_plan *grid;  /* NULL: no grid */
    bool *missing;              /* hosts of the grid that cannot take part */
    bool *ranked;               /* hosts of the grid that get ranks */
    bool *avoided;              /* links of the grid across which nobody answered when agents were to be started */
    bool with_helpers;          /* hosts without ranks take part too, in the hope that they lead on */
    uint32_t machine_host;      /* the first that told of its machine, */
    uint32_t machine;           /* and what it told; 0: none has */
    struct tb_told_places told; /* on a grid: what hosts say of where they are, and are not */
};

/* `note` is told of hosts that nobody can start. */
int tb_job_plan_open(struct tb_job_plan *plan, void (*note)(void *context, const char *text), void *context);
/* One agent for each host of the address book, and how to get there. `events` must live as long. */
int tb_job_plan_open_agents(struct tb_job_plan *plan, struct tb_host_agents *agents, struct tb_loop *loop,
                            const struct tb_host_agent_events *events);
/* Whether all is known of where hosts are before any agent has answered. */
bool tb_job_plan_knows_places(const struct tb_job_plan *plan, const struct tb_host_agents *agents);
/* What an agent has told about its host goes to the address book, with what the grid file knows besides.
 * TB_ERR_UNSUPPORTED: it writes numbers in another way than one before it; TB_ERR_ARGUMENT: it says to be in a place
 * that has no proper name. */
int tb_job_plan_take_ready(struct tb_job_plan *plan, uint32_t host, const struct tb_agent_ready *ready);
/* When all have told where they are, and who reaches whom is known: gives the hosts of the address book their places,
 * and makes the table of what it costs to get from one to another, a malloc'd block (plan_costs.c). */
int tb_job_plan_make_costs(struct tb_job_plan *plan, struct tb_cost_head **table);
/* What is to be said when all have told where they are; false: nothing. */
bool tb_job_plan_remark(const struct tb_job_plan *plan, char *text, size_t size);
/* The next attempt is to start nobody across the link from one host of the grid to another. Its name; NULL: there is
 * none, or no other way. */
const char *tb_job_plan_avoid(struct tb_job_plan *plan, uint32_t from, uint32_t to);
void tb_job_plan_close(struct tb_job_plan *plan); /* before another attempt: what is missing and avoided is kept */

#endif
