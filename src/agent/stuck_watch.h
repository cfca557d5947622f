/* Connections between a rank of this host and one of another that pass nothing, as the ranks that wait for each other
 * tell (transport/tcp/pulse.h). If the other host gives no answer either, that is its story or that of the link, and
 * nothing is said here. If it does answer, and what was tried since then was in vain, something on the way has
 * forgotten the connection: the launcher is told so, again and again, until no rank complains any more. What it was
 * told once does not depend on the host's answers any more.
 *
 * Part of the agent's network; one thread. */
#ifndef TB_AGENT_STUCK_WATCH_H
#define TB_AGENT_STUCK_WATCH_H

#include "agent/member.h"

struct tb_stuck_watch_events {
    void *context;
    /* Whether the host is heard of, and since when (ns; 0: it always was). */
    bool (*answers)(void *context, uint32_t host, uint64_t *since);
    /* For the launcher: the connections of these ranks have passed nothing for so long (ns), or all pass again. */
    void (*report)(void *context, uint32_t host, bool stuck, uint64_t time, const char *ranks);
};

struct tb_stuck_watch {
    const struct tb_member *member;
    struct tb_stuck_watch_events events;
    struct tb_list hosts;
    struct tb_timer tick;
};

void tb_stuck_watch_open(struct tb_stuck_watch *watch, const struct tb_member *member,
                         const struct tb_stuck_watch_events *events);
void tb_stuck_watch_close(struct tb_stuck_watch *watch);
/* What a rank of this host says of its connections, in place of what it has said before; holds for a while. */
void tb_stuck_watch_take(struct tb_stuck_watch *watch, uint32_t rank, const struct tb_job_waiting *waiting);

#endif
