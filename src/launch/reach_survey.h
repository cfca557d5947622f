/* The survey of who can reach whom, where the grid file only supposes it: when all agents are there and before they are
 * told their routes, they try. Belongs to the launcher; its one thread. */
#ifndef TB_LAUNCH_REACH_SURVEY_H
#define TB_LAUNCH_REACH_SURVEY_H

#include "launch/grid_plan.h"
#include "launch/host_agents.h"

struct tb_reach_survey_events {
    void *context;
    void (*finished)(void *context); /* `results` has what was found out */
};

struct tb_reach_survey {
    struct tb_loop *loop;
    struct tb_reach_survey_events events;
    bool running;
    uint64_t began;
    struct tb_timer timer;
    const struct tb_address_book *book;
    struct tb_reach_results results;
    bool *asked;          /* by row of the results: has not answered yet */
    uint32_t asked_count; /* of them */
};

void tb_reach_survey_init(struct tb_reach_survey *survey, struct tb_loop *loop,
                          const struct tb_reach_survey_events *events);
/* Asks the agents, which all are ready. TB_OK without `running`: there is nothing to find out. */
int tb_reach_survey_begin(struct tb_reach_survey *survey, const struct tb_grid_plan *plan,
                          const struct tb_placement *placement, struct tb_host_agents *agents);
void tb_reach_survey_take(struct tb_reach_survey *survey, uint32_t host, struct tb_reader *r); /* TB_CONTROL_PROBED */
void tb_reach_survey_cancel(struct tb_reach_survey *survey);
void tb_reach_survey_close(struct tb_reach_survey *survey); /* it may begin again, with another plan */

#endif
