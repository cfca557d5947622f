/* Links between clusters that ranks cross by themselves, with a connection straight to a rank of another cluster. TCP
 * keeps what it was given through any cut, but nobody hears of it. So a descriptor of each such socket is kept, and it
 * is looked now and then whether what was sent is acknowledged. If it is not, its owner hears of it, who asks the agent
 * over there: that decides whether the link is down, since a connection may also be slow to notice that it is up, or
 * have a receiver who does not read. Connections that are forgotten on the way are found by those who wait (pulse.h).
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
    bool (*is_gone)(void *context, uint32_t rank); /* the process that was this rank has ended */
    void (*stalled)(void *context, uint32_t host); /* a connection there is, at this look */
};

struct tb_wan_watch {
    const struct tb_member *member;
    struct tb_wan_watch_events events;
    struct tb_list connections; /* whose turn it is to be looked at comes first */
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

#endif
