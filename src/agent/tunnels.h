/* Tunnels: shells to hosts that the launcher does not reach but we do, and control streams of agents that have lost
 * theirs and came to us (attach.h), by TLS. What they read and write travels in our own control stream; we do not look
 * into it. A shell dies with us, and the agent behind it with the shell. Belongs to the agent and its one thread. */
#ifndef TB_AGENT_TUNNELS_H
#define TB_AGENT_TUNNELS_H

#include "agent/uplink.h"

struct tb_tunnels_events {
    void *context;
    void (*ended)(void *context); /* an agent that had come is gone; tb_tunnels_reap tells the end of shells itself */
};

struct tb_tunnels {
    struct tb_loop *loop;
    struct tb_uplink *uplink;
    struct tb_tunnels_events events;
    const sigset_t *mask; /* signals that are blocked in shells */
    struct tb_list all;
    struct tb_list left;     /* shells whose agents have gone on by another way */
    struct tb_list arriving; /* agents that have come, but have not said which frame they expect: nothing is known of
                                them yet but that they know the key */
    uint32_t arriving_count;
    size_t room, room_limit; /* for what waits for them: all of it, and what that may become */
    bool paused;             /* they are not read, since the launcher does not keep up */
    uint32_t adopted_count;  /* agents that have come to us with their streams so far */
};

void tb_tunnels_open(struct tb_tunnels *tunnels, struct tb_loop *loop, struct tb_uplink *uplink, const sigset_t *mask,
                     const struct tb_tunnels_events *events);
void tb_tunnels_close(struct tb_tunnels *tunnels);
static inline bool tb_tunnels_empty(const struct tb_tunnels *tunnels)
{
    return tb_list_empty(&tunnels->all);
}

/* The agent of a host has lost its control stream and came to us; takes the socket, on which TLS begins with this
 * secret. The launcher hears of it, and an earlier stream of that host is forgotten, only when TLS is there and the
 * agent has said which frame it expects. */
void tb_tunnels_adopt(struct tb_tunnels *tunnels, uint32_t host, int socket, const struct tb_key *secret);

/* A frame of the launcher. False: it is none of these. */
bool tb_tunnels_take(struct tb_tunnels *tunnels, struct tb_control_frame *frame);
void tb_tunnels_take_shell(struct tb_tunnels *tunnels, struct tb_reader *r);  /* TB_CONTROL_SHELL, */
void tb_tunnels_take_answer(struct tb_tunnels *tunnels, struct tb_reader *r); /* _ATTACH, */
void tb_tunnels_take_bytes(struct tb_tunnels *tunnels, struct tb_reader *r);  /* _TUNNEL, */
void tb_tunnels_take_end(struct tb_tunnels *tunnels, struct tb_reader *r);    /* and _TUNNEL_END */

void tb_tunnels_reap(struct tb_tunnels *tunnels, pid_t pid, int status); /* a child of ours was collected */
void tb_tunnels_settle(struct tb_tunnels *tunnels);                      /* before each sleep */

#endif
