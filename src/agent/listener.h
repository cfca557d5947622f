/* The listener takes connections from other hosts. Whoever connects speaks first and must prove the job key; a stranger
 * gets no answer and a place among the callers for as long as nobody else needs it. A hello is answered once: who has
 * recorded one and says it again is a stranger. The agent owns it; one thread. */
#ifndef TB_AGENT_LISTENER_H
#define TB_AGENT_LISTENER_H

#include "agent/connected.h"
#include "agent/stranger_log.h"

#define TB_LISTENER_CALLERS 1024u /* incoming connections that are not proved yet; fewer where descriptors are few */

struct tb_listener_events {
    void *context;
    bool (*has_rank)(void *context, uint32_t rank); /* is it on this host, and has not ended? */
    /* Somebody has connected to a rank of this host or to the agent; takes the socket. The stream may be
     * TB_STREAM_CONTROL. */
    void (*connected)(void *context, const struct tb_connected *connected);
};

struct tb_listener {
    const struct tb_member *member;
    struct tb_listener_events events;
    uint16_t port; /* of the first address */
    struct tb_callers callers;
    struct tb_nonces nonces; /* of the hellos that were answered */
    struct tb_stranger_log strangers;
};

/* At the first free one of `ports`, as the parameter has it. Only at the addresses of `at`, unless that is NULL; they
 * get their ports, the same one if it is free at all, and those that cannot be used are taken out. */
int tb_listener_open(struct tb_listener *listener, const struct tb_member *member, const char *ports,
                     struct tb_address_list *at, const struct tb_listener_events *events);
/* Closes what has not been handed over; harmless on one that was never opened and is all zero. */
void tb_listener_close(struct tb_listener *listener);

#endif
