/* Everything between this host and others: the dialer, the listener, the forwarder, the watches over those who are to
 * answer and over connections of ranks, and the reach probe, wired to each other. What concerns the ranks, the
 * launcher or the user it tells its owner, the agent. One thread. */
#ifndef TB_AGENT_HOST_NETWORK_H
#define TB_AGENT_HOST_NETWORK_H

#include "agent/dialer.h"
#include "agent/forwarder.h"
#include "agent/link_watch.h"
#include "agent/listener.h"
#include "agent/reach_probe.h"
#include "agent/stuck_watch.h"
#include "agent/wan_watch.h"

struct tb_host_network_events {
    void *context;
    bool (*has_rank)(void *context, uint32_t rank); /* is it on this host, and has not ended? */
    bool (*is_gone)(void *context, uint32_t rank);  /* the process that was this rank has ended; its parent may not */
    /* What a rank has asked for, or what somebody else has asked of it. Takes the descriptor; refused (error is not
     * TB_OK): -1, and the story is in tb_error. */
    void (*connection)(void *context, uint32_t rank, struct tb_proc proc, enum tb_stream stream, int error,
                       int descriptor);
    /* Another agent has lost its control stream and comes to us; takes the socket, on which TLS begins. */
    void (*control_stream)(void *context, const struct tb_connected *connected);
    /* For the launcher: TB_CONTROL_CALL, and TB_CONTROL_PROBED. */
    void (*call)(void *context, uint32_t host, struct tb_proc there, struct tb_proc here, uint32_t stream);
    void (*probed)(void *context, const struct tb_reach_report *reports, uint32_t count);
    /* For the launcher: TB_CONTROL_LINK. */
    void (*link)(void *context, uint32_t host, enum tb_link_report state, uint64_t time, const char *why);
    /* For the user. */
    void (*note)(void *context, const char *text);
};

struct tb_host_network {
    struct tb_member *member;
    struct tb_host_network_events events;
    struct tb_dialer dialer;
    struct tb_listener listener;
    struct tb_wan_watch wan_watch;
    struct tb_link_watch link_watch;
    struct tb_stuck_watch stuck_watch;
    struct tb_forwarder forwarder;
    struct tb_reach_probe reach_probe;
    bool told_of_size; /* the user, that large packets are lost */
};

void tb_host_network_open(struct tb_host_network *network, struct tb_member *member,
                          const struct tb_host_network_events *events);
void tb_host_network_close(struct tb_host_network *network);
/* Opens the port for other hosts, and finds out the addresses of this one. */
int tb_host_network_listen(struct tb_host_network *network, const struct tb_setup *setup);
/* A rank asks for a connection; the answer comes by a call, perhaps from inside. */
void tb_host_network_connect(struct tb_host_network *network, uint32_t rank, struct tb_proc to, enum tb_stream stream);
/* Whom a rank waits for. */
void tb_host_network_want(struct tb_host_network *network, uint32_t rank, const struct tb_job_waiting *waiting);
void tb_host_network_forget(struct tb_host_network *network, uint32_t rank);       /* it has ended */
void tb_host_network_called(struct tb_host_network *network, struct tb_reader *r); /* TB_CONTROL_CALL */
void tb_host_network_reroute(struct tb_host_network *network);                     /* the routes have changed */

#endif
