/* What agents report of each other: pairs of hosts of which one gets no answer from the other. The user hears of such a
 * pair when it is certain that not merely one of them stands still: both say so, or the launcher hears the other one.
 * After link_patience the job ends. Belongs to the launch; one thread. */
#ifndef TB_LAUNCH_LINK_REPORTS_H
#define TB_LAUNCH_LINK_REPORTS_H

#include "launch/host_agents.h"

struct tb_link_reports_events {
    void *context;
    void (*say)(void *context, const char *text);
    void (*fail)(void *context, const char *text); /* the job has to end */
};

struct tb_link_reports {
    struct tb_loop *loop;
    struct tb_host_agents *agents;
    struct tb_link_reports_events events;
    struct tb_list pairs;
    struct tb_timer tick;
};

void tb_link_reports_open(struct tb_link_reports *reports, struct tb_loop *loop, struct tb_host_agents *agents,
                          const struct tb_link_reports_events *events);
void tb_link_reports_stop(struct tb_link_reports *reports); /* forgets everything */
/* TB_CONTROL_LINK of the agent of `from`: silent for so long (ns), or not any more. */
void tb_link_reports_add(struct tb_link_reports *reports, uint32_t from, uint32_t to, bool silent, uint64_t time,
                         const char *why);

#endif
