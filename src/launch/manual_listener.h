/* The listener for clusters that are started by hand: somebody types a command there, which connects to us and proves
 * that it knows the secret that we have shown here. What comes out is a proved socket and the key of the TLS that runs
 * over it. A stranger gets no answer, and a place among the callers for as long as nobody else needs it; a hello is
 * answered once. Belongs to the launcher; its one thread. */
#ifndef TB_LAUNCH_MANUAL_LISTENER_H
#define TB_LAUNCH_MANUAL_LISTENER_H

#include "job/job.h"
#include "remote/remote.h"

#define TB_MANUAL_SECRET_BYTES 48u  /* of a secret as text, with its end */
#define TB_MANUAL_CALLERS      256u /* connections that have not proved a secret yet */

struct tb_manual_listener_events {
    void *context;
    /* Whether the agent of this host is still to come: a secret is good for one. */
    bool (*wanted)(void *context, uint32_t host);
    /* It has come. The socket belongs to the callee. */
    void (*came)(void *context, uint32_t host, int socket, const struct tb_key *secret);
};

struct tb_manual_listener {
    struct tb_loop *loop; /* NULL: not open */
    struct tb_manual_listener_events events;
    struct tb_callers callers;
    struct tb_nonces nonces; /* of the hellos that were answered */
    struct tb_list expected;
    uint16_t port;
    char addresses[512]; /* "192.0.2.1:4711,[2001:db8::1]:4711": all addresses that others could know */
};

/* Listens on the first free port of the parameter `ports`. */
int tb_manual_listener_open(struct tb_manual_listener *listener, struct tb_loop *loop,
                            const struct tb_manual_listener_events *events);
void tb_manual_listener_close(struct tb_manual_listener *listener);
/* Makes a secret for the agent of a host, which is shown to the user. */
int tb_manual_listener_expect(struct tb_manual_listener *listener, uint32_t host,
                              char secret[static TB_MANUAL_SECRET_BYTES]);
/* Before another attempt: nobody is expected any more, and callers that have not proved anything yet are closed.
 * Harmless when it is not open. */
void tb_manual_listener_forget(struct tb_manual_listener *listener);

#endif
