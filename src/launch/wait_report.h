/* What each rank of the job waits for: asks all agents, joins what is alike, and says it in lines for the user. An
 * agent that does not answer in time is named instead. One question at a time.
 *
 * Belongs to the launcher; its one thread. Callbacks come from inside of tb_wait_report_take and of the loop. */
#ifndef TB_LAUNCH_WAIT_REPORT_H
#define TB_LAUNCH_WAIT_REPORT_H

#include "launch/host_agents.h"

struct tb_wait_report_events {
    void *context;
    void (*say)(void *context, const char *text); /* a line */
    void (*done)(void *context);                  /* all is said */
};

/* Ranks of which the same is to be said. */
struct tb_wait_group {
    enum tb_wait_answer what;
    char text[TB_WAIT_TEXT];
    uint64_t hash;           /* of the text */
    uint64_t least, longest; /* ns */
    uint32_t host, pid;      /* of the first rank that came */
    uint32_t count, room;
    uint32_t *ranks;
};

struct tb_wait_report {
    struct tb_loop *loop;
    struct tb_host_agents *agents;
    struct tb_wait_report_events events;
    struct tb_timer timer; /* set while a question is open */
    uint32_t number;       /* of the last question */
    bool *awaited;         /* by host: its answer; allocated while a question is open, as are: */
    uint32_t awaited_count;
    struct tb_wait_group *groups;
    uint32_t group_count, group_room;
    uint32_t left_out; /* ranks that are in no group, since there are too many */
};

void tb_wait_report_init(struct tb_wait_report *report, struct tb_loop *loop, struct tb_host_agents *agents,
                         const struct tb_wait_report_events *events);
/* False: no rank has been started yet, or all have ended; nothing will be said. */
bool tb_wait_report_ask(struct tb_wait_report *report);
void tb_wait_report_take(struct tb_wait_report *report, const struct tb_host_agent *agent, struct tb_reader *answers);
void tb_wait_report_stop(struct tb_wait_report *report); /* nobody wants to know any more */
static inline bool tb_wait_report_is_open(const struct tb_wait_report *report)
{
    return report->awaited != NULL;
}

#endif
