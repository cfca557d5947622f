/* The dialer makes connections to other processes: for ranks of this host, and for the agent itself. A dial is one
 * connection that is asked for at present. It tries the addresses of the other agent, likely ones first, a little apart
 * but side by side; the first that proves the key is it. Where only the other side can connect, it is called through
 * the launcher, and the dial waits for it. Two ranks of this host get the two ends of a loopback
 * connection, a rank and its agent those of a pair of Unix sockets. If very many are asked for at once, some wait.
 *
 * A dial for a rank to another cluster goes on for as long as the link may be down; how long that is, its owner
 * decides, who hears of every round.
 *
 * The agent owns it. It knows nobody but the member that it was given, and answers by its calls: each dial is answered
 * by one call, after which it is no more. One thread. */
#ifndef TB_AGENT_DIALER_H
#define TB_AGENT_DIALER_H

#include "agent/connected.h"
#include "agent/dial_wishes.h"
#include "agent/loopback.h"
#include "agent/member.h"

struct tb_dialer_events {
    void *context;
    bool (*has_rank)(void *context, uint32_t rank); /* is it on this host, and has not ended? */
    /* What was asked for is there; takes the socket. Both ends of a connection inside of the host come like this. */
    void (*connected)(void *context, const struct tb_connected *connected);
    /* It cannot be had; the story is in tb_error. TB_ERR_CLOSED: for the agent, that process has ended. */
    void (*refused)(void *context, struct tb_proc self, struct tb_proc to, enum tb_stream stream, uint32_t stripe,
                    int error);
    /* The host is to open a connection, because ours cannot; `stream` holds the stripe, as in hello. */
    void (*call)(void *context, uint32_t host, struct tb_proc there, struct tb_proc here, uint32_t stream);
    /* The agent of a host of another cluster has answered; or it has not in time, and somebody still wants it. */
    void (*link_found)(void *context, uint32_t host);
    void (*link_lost)(void *context, uint32_t host, const char *why);
};

struct tb_dialer {
    const struct tb_member *member;
    struct tb_dialer_events events;
    struct tb_list dials;
    struct tb_dial_wishes wishes; /* those that wait for others */
    struct tb_timer more;         /* some of them may begin */
    struct tb_loopback loopback;
    bool *small; /* by host: packets; NULL: of none */
};

void tb_dialer_open(struct tb_dialer *dialer, const struct tb_member *member, const struct tb_dialer_events *events);
void tb_dialer_close(struct tb_dialer *dialer); /* nobody is told */
/* For a process of this host: a rank, or the agent. The answer may come from inside. An error (with its story) is the
 * whole answer. */
int tb_dialer_connect(struct tb_dialer *dialer, struct tb_proc self, struct tb_proc to, enum tb_stream stream,
                      uint32_t stripe);
/* The other side calls for a connection. It hears of it when it comes, so nobody here is told bad news. */
void tb_dialer_called(struct tb_dialer *dialer, struct tb_proc here, struct tb_proc there, uint32_t stream);
/* Somebody has connected to us: whom we had called, perhaps. */
void tb_dialer_arrived(struct tb_dialer *dialer, const struct tb_connected *connected);
/* Connections to this host use small packets from now on. */
void tb_dialer_use_small(struct tb_dialer *dialer, uint32_t host);
bool tb_dialer_uses_small(const struct tb_dialer *dialer, uint32_t host);
void tb_dialer_forget(struct tb_dialer *dialer, struct tb_proc self); /* it has ended, or needs no connections */

#endif
