/* Whether multicast works in the clusters of a job: the launcher chooses a group for each of them, has the agents open
 * it, and when all have, has them send each other something; what they tell is judged here, and the verdict told to
 * all agents of the job at once, when all clusters have theirs. Meanwhile the ranks are started; nobody waits but a
 * rank that wants to multicast, and every test ends, however it goes. Later a group is tested again if a rank is in
 * trouble with it.
 *
 * Belongs to the start of a job; the one thread of the launcher. */
#ifndef TB_LAUNCH_GROUP_TESTS_H
#define TB_LAUNCH_GROUP_TESTS_H

#include "launch/host_agents.h"
#include "launch/tested_group.h"

struct tb_group_tests_events {
    void *context;
    void (*note)(void *context, const char *text); /* one line for the user, who has asked for explanations */
};

struct tb_group_tests {
    struct tb_loop *loop;
    struct tb_group_tests_events events;
    const struct tb_address_book *book;
    struct tb_host_agents *agents;
    struct tb_random random;
    struct tb_group_choices choices;
    uint32_t count;
    struct tb_tested_group *groups; /* where there can be one */
    struct tb_tested_host *hosts;   /* of all of them */
    uint32_t *group_of, *index_of;  /* by host of the address book; TB_GRID_NONE: it is in none */
    uint32_t unjudged;              /* groups without a first verdict */
    uint32_t version;               /* of the last verdict */
    uint32_t test;                  /* the last number that was given to one */
    bool begun, stopped;
    struct tb_timer timer;
};

void tb_group_tests_init(struct tb_group_tests *tests, struct tb_loop *loop,
                         const struct tb_group_tests_events *events);
/* When all agents have told their addresses, and hosts have their places. `plan` may be NULL: no grid. */
int tb_group_tests_choose(struct tb_group_tests *tests, const struct tb_address_book *book,
                          const struct tb_grid_plan *plan, struct tb_host_agents *agents);
/* Tells an agent of its group; before the address book. Nothing if the job has none. */
int tb_group_tests_order(struct tb_group_tests *tests, struct tb_host_agent *agent);
void tb_group_tests_begin(struct tb_group_tests *tests); /* all have been told to start their ranks */
/* A frame of an agent: TB_CONTROL_GROUP_STATE, _HEARD or _TROUBLE. */
void tb_group_tests_take(struct tb_group_tests *tests, uint32_t host, enum tb_control kind, struct tb_reader *r);
void tb_group_tests_lose(struct tb_group_tests *tests, uint32_t host); /* its agent has ended */
void tb_group_tests_stop(struct tb_group_tests *tests);                /* the job ends: no more is told */
void tb_group_tests_close(struct tb_group_tests *tests);               /* it may be used again, for another attempt */

#endif
