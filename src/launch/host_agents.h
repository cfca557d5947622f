/* All host agents of a job: their order, who may be started next, what concerns all of them or two of them. Owns them;
 * the one thread of the launcher. */
#ifndef TB_LAUNCH_HOST_AGENTS_H
#define TB_LAUNCH_HOST_AGENTS_H

#include "launch/host_agent.h"

struct tb_delivery;

struct tb_host_agents {
    uint32_t count; /* hosts of the address book */
    struct tb_host_agent *all;
    uint32_t *order; /* indices, the deepest first */
    uint32_t next_start;
    struct tb_host_agent_counts counts;
    struct tb_delivery *delivery; /* that is under way; or NULL */
};

/* `events` must live as long. */
int tb_host_agents_open(struct tb_host_agents *agents, struct tb_loop *loop, uint32_t count,
                        const struct tb_host_agent_events *events);
void tb_host_agents_close(struct tb_host_agents *agents); /* all of them are gone */
void tb_host_agents_sort(struct tb_host_agents *agents);  /* after somebody has got a parent, or another one */

/* The next that may be started now, since its parent is ready and not too many are starting; NULL: none. *at is where
 * to go on looking, 0 at first. */
struct tb_host_agent *tb_host_agents_next(struct tb_host_agents *agents, uint32_t *at);
/* Waits for processes that have ended, and collects those that are shells of agents. */
void tb_host_agents_reap(struct tb_host_agents *agents);
void tb_host_agents_stop(struct tb_host_agents *agents, bool now);
void tb_host_agents_abandon(struct tb_host_agents *agents); /* kills shells that are still there */
void tb_host_agents_signal(struct tb_host_agents *agents, int signal);
/* Before each sleep: sends what is queued, and of a delivery as much as there is room for. */
void tb_host_agents_flush(struct tb_host_agents *agents);
void tb_host_agents_excuse(struct tb_host_agents *agents, uint64_t now); /* they could not be heard until now */
bool tb_host_agents_gone(const struct tb_host_agents *agents);

/* Those whose streams go through this one are gone with it; */
void tb_host_agents_give_up_behind(struct tb_host_agents *agents, const struct tb_host_agent *parent);
/* or those of them that know another one are expected to come by it. */
void tb_host_agents_detach_behind(struct tb_host_agents *agents, const struct tb_host_agent *parent);
/* Which agent a frame of its parent is about; NULL: it is over with it, or there is none. */
struct tb_host_agent *tb_host_agents_find_behind(struct tb_host_agents *agents, const struct tb_host_agent *parent,
                                                 uint32_t host);
/* An agent comes by another one, perhaps before we have noticed why, with a number for the answer. NULL: it is refused;
 * unless `open`, everybody is. */
struct tb_host_agent *tb_host_agents_attach(struct tb_host_agents *agents, struct tb_host_agent *parent, uint32_t host,
                                            uint32_t coming, bool open);

#endif
