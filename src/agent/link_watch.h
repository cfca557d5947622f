/* Whether the agents of other hosts answer, where somebody needs that: a rank of this host waits for somebody there, an
 * agent before us passes such a wish on, frames were sent there just now, or there was no answer yet. A connection that
 * is open proves nothing; so whoever is needed and not heard of anyway is asked once a second. One who gives no answer
 * is suspect, and so is one who does and to whom nothing else passes: frames take other hops if there are some, and the
 * launcher is told, again and again, until an answer comes. It knows what others report, finds other ways, speaks to
 * the user, and ends the job if it must.
 *
 * For a host that is reached through others, the next hops are asked, and told for whose sake, so that they look after
 * their own next hop in turn.
 *
 * It knows no streams: its owner asks, and tells it what was heard. When this process itself has been stopped, all
 * waiting begins anew. Part of the agent's network; one thread. */
#ifndef TB_AGENT_LINK_WATCH_H
#define TB_AGENT_LINK_WATCH_H

#include "agent/member.h"

#define TB_LINK_WATCH_MOST  256u /* hosts that are watched at once */
#define TB_LINK_WATCH_STORY 320u

struct tb_link_watch_events {
    void *context;
    /* The agent of the host is to answer; a stream to it is opened if there is none. `about`: see TB_HOP_ABOUT.
     * TB_ERR_CLOSED: it has left in good order, and is needed by nobody. */
    int (*ask)(void *context, uint32_t host, uint32_t about);
    void (*ask_no_more)(void *context, uint32_t host);
    /* The last time at which something that was sent to it before our question was seen to arrive; 0: never. What has
     * been silent for too long is opened anew, sooner if the host has been silent and does answer `again`. */
    uint64_t (*progress)(void *context, uint32_t host, bool again);
    /* Since when it gives answers, and messages do not pass: with small packets or large, or for want of a connection;
     * 0: not so. *why is a text that stays. */
    uint64_t (*stuck_since)(void *context, uint32_t host, const char **why);
    void (*listen)(void *context);                              /* to what is used and heard from now on */
    void (*suspect)(void *context, uint32_t host, bool silent); /* it has begun, or is over */
    /* For the launcher: for so long (ns) there has been no answer, or one again. */
    void (*report)(void *context, uint32_t host, bool silent, uint64_t time, const char *why);
};

struct tb_link_watch {
    const struct tb_member *member;
    struct tb_link_watch_events events;
    struct tb_list links, wishes;
    uint32_t link_count;
    uint64_t looked_at;
    struct tb_timer tick;
};

void tb_link_watch_open(struct tb_link_watch *watch, const struct tb_member *member,
                        const struct tb_link_watch_events *events);
void tb_link_watch_close(struct tb_link_watch *watch);
/* A rank of this host waits for ranks on these hosts, and no longer for those of before; holds for a while. */
void tb_link_watch_want(struct tb_link_watch *watch, uint32_t rank, const uint32_t *hosts, uint32_t count);
/* An agent before us asks about this host; so many have passed that on. */
void tb_link_watch_pass_on(struct tb_link_watch *watch, uint32_t host, uint32_t passed);
/* Each of these once is enough between two calls of `listen`. */
void tb_link_watch_used(struct tb_link_watch *watch, uint32_t host);  /* something was sent there */
void tb_link_watch_heard(struct tb_link_watch *watch, uint32_t host); /* something has come from there */
/* A connection there broke, or could not be made; does not begin to watch. */
void tb_link_watch_lost(struct tb_link_watch *watch, uint32_t host, const char *why);
/* Whether nothing speaks against it that the host answers, and since when (0: it always did). */
bool tb_link_watch_answers(const struct tb_link_watch *watch, uint32_t host, uint64_t *since);

#endif
