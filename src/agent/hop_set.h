/* A hop set: what all connections of an agent to ranks and other agents share (hop_connection.h), and who hears of what
 * they bring. The forwarder owns it; one thread. */
#ifndef TB_AGENT_HOP_SET_H
#define TB_AGENT_HOP_SET_H

#include "agent/queue.h"
#include "remote/remote.h"

#define TB_HOP_SET_READ (64u << 10) /* bytes of one read */

struct tb_cargo;
struct tb_hop_connection;
struct tb_hop_peer;

struct tb_hop_set_events {
    void *context;
    /* An error (with its story) ends the connection. */
    int (*frame)(void *context, struct tb_hop_connection *from, struct tb_cargo *cargo);
    /* A PING (`about`: see TB_HOP_ABOUT) or a PONG (0) has come from an agent. */
    void (*asked)(void *context, struct tb_hop_connection *from, uint32_t about);
    void (*small)(void *context, struct tb_hop_peer *peer); /* an agent says that only small packets pass */
    void (*settle)(void *context);                          /* a connection has read or written what it could */
    /* It is closed and no longer in its peer. TB_ERR_CLOSED: the other side has said goodbye. The story is in
     * tb_error. */
    void (*ended)(void *context, struct tb_hop_peer *peer, const struct tb_hop_connection *connection, int error);
};

struct tb_hop_set {
    struct tb_loop *loop;
    struct tb_frame_pool *pool;     /* of what is passed on */
    struct tb_frame_pool *arrivals; /* of what waits for ranks of this host */
    struct tb_hop_set_events events;
    struct tb_list dead; /* ended connections that may still be pointed to */
    uint64_t frames_out, bytes_out;
    char *scratch;
};

int tb_hop_set_open(struct tb_hop_set *hop_set, struct tb_loop *loop, struct tb_frame_pool *pool,
                    struct tb_frame_pool *arrivals, const struct tb_hop_set_events *events);
void tb_hop_set_close(struct tb_hop_set *hop_set); /* all connections are closed */
void tb_hop_set_bury(struct tb_hop_set *hop_set);  /* frees ended connections; nobody is inside of a call */

#endif
