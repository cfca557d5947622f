/* A connected, proved socket between a process of this host and another one: what the dialer and the listener make, and
 * what ranks and the forwarder are given. */
#ifndef TB_AGENT_CONNECTED_H
#define TB_AGENT_CONNECTED_H

#include "wire/wire.h"

#define TB_STRIPES_LIMIT 16u /* parallel streams of one kind that one side may open between two agents */

/* The `stream` of hello and TB_CONTROL_CALL. */
#define TB_STREAM_MASK         0xffu
#define TB_STREAM_STRIPE_SHIFT 8

struct tb_connected {
    struct tb_proc self; /* the one of this host, perhaps the agent */
    struct tb_proc proc; /* the other one */
    enum tb_stream stream;
    uint32_t stripe;
    int socket;                   /* belongs to whoever is called */
    bool dialed;                  /* this side has opened it */
    const struct tb_hello *hello; /* as they were exchanged, valid during the call; NULL inside of a host */
    const struct tb_welcome *welcome;
};

#endif
