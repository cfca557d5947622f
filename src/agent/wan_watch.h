/* Links between clusters that ranks cross by themselves, with a connection straight to a rank of another cluster. TCP
 * keeps what it was given through any cut, but nobody hears of it. So a descriptor of each such socket is kept, and it
 * is looked now and then whether what was sent is acknowledged. If it is not, the agent over there is asked, again and
 * again: that decides whether the link is down, since a connection may also be slow to notice that it is up, or have a
 * receiver who does not read.
 *
 * The kernel itself is told not to give up. Its own limit, TCP_USER_TIMEOUT, also ends connections whose receiver
 * answers, but has been computing for too long to have room.
 *
 * The agent owns it; one thread. */
#ifndef TB_AGENT_WAN_WATCH_H
#define TB_AGENT_WAN_WATCH_H

#include "agent/member.h"

struct tb_wan_watch_events {
    void *context;
    bool (*is_awaited)(void *context, uint32_t host);  /* does some rank wait for a connection to it? */
    void (*ask)(void *context, uint32_t host);         /* until it answers (tb_wan_watch_found); once is enough */
    void (*ask_no_more)(void *context, uint32_t host); /* nobody needs to know any more */
    bool (*is_gone)(void *context, uint32_t rank);     /* the process that was this rank has ended */
    /* The link to a host has been down for so long (ns); `at_last`: too long, and the job has to end. */
    void (*down)(void *context, uint32_t host, uint64_t time, const char *why, bool at_last);
    void (*up)(void *context, uint32_t host); /* one that was told to be down */
    /* The link is up, and yet a connection has taken nothing for so long: whatever is on the way does not know it. */
    void (*stuck)(void *context, uint32_t host, uint64_t time);
};

struct tb_wan_watch {
    const struct tb_member *member;
    struct tb_wan_watch_events events;
    struct tb_list links, connections; /* of connections, whose turn it is to be looked at comes first */
    uint32_t connection_count;
    struct tb_timer tick;
};

void tb_wan_watch_open(struct tb_wan_watch *watch, const struct tb_member *member,
                       const struct tb_wan_watch_events *events);
void tb_wan_watch_close(struct tb_wan_watch *watch);
void tb_wan_watch_prepare(int socket); /* sets the options of such a connection */
/* A connection of a rank with a host of another cluster. The socket stays the caller's. */
void tb_wan_watch_add(struct tb_wan_watch *watch, uint32_t rank, uint32_t host, int socket);
void tb_wan_watch_forget(struct tb_wan_watch *watch, uint32_t rank); /* it has ended */
void tb_wan_watch_found(struct tb_wan_watch *watch, uint32_t host);  /* there was an answer */
/* There was none since then, or none yet, and why. */
void tb_wan_watch_lost(struct tb_wan_watch *watch, uint32_t host, uint64_t since, const char *why);

#endif
