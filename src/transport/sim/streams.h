/* The side of the simulated network that carries bytes: real sockets of this machine, with the network between them.
 * Whoever is tested reads, writes, connects and accepts as ever, and waits with epoll; what it writes arrives at the
 * other end when the virtual time has come. A stream takes a route of the network: its delay and rate hold, and while
 * it is dead, nothing passes, though the streams stay open, as where a cable was pulled out. TCP repairs losses, so
 * there are none. That a connection is made takes no time.
 *
 * Belongs to the test, which calls tb_sim_streams_move whenever those who are tested have nothing to do, and moves the
 * clock to tb_sim_streams_deadline, or to a timer before, if that has moved nothing either. See agent/loop_sim_test.h
 * for a loop that does so. */
#ifndef TB_TRANSPORT_SIM_STREAMS_H
#define TB_TRANSPORT_SIM_STREAMS_H

#include "transport/sim/sim.h"

struct tb_sim_streams {
    struct tb_sim *sim;
    struct tb_list streams, listeners;
    uint32_t count;    /* of streams that are open */
    uint64_t accepted; /* connections of listeners, since the beginning */
    uint64_t carried;  /* bytes that have arrived */
};

void tb_sim_streams_init(struct tb_sim_streams *s, struct tb_sim *sim);
/* Closes the network's ends and listeners; those of whoever was tested are his. */
void tb_sim_streams_destroy(struct tb_sim_streams *s);

/* Makes a connected pair of nonblocking sockets, which belong to the caller. They are of the local kind, since what is
 * written to those can be read at once. */
int tb_sim_streams_pair(struct tb_sim_streams *s, uint32_t route, int ends[2]);
/* Listens at a port of 127.0.0.1; whoever connects to it is connected to `target`, another such port, through the
 * network, by TCP. If nobody listens there, the connection is reset. The kernel may take a moment to pass something on:
 * wait a few real milliseconds before taking such streams for quiet. */
int tb_sim_streams_listen(struct tb_sim_streams *s, uint32_t route, uint16_t target, uint16_t *port);

/* What is connected by listeners from now on takes this route. */
void tb_sim_streams_divert(struct tb_sim_streams *s, uint32_t route);

/* Takes what was written, and delivers what is due. Returns how much has happened; 0: nothing. */
int tb_sim_streams_move(struct tb_sim_streams *s);
/* When something more is due; TB_NEVER. */
uint64_t tb_sim_streams_deadline(const struct tb_sim_streams *s);
/* All streams on a route end at both ends, those of TCP by a reset; what was under way is lost. */
void tb_sim_streams_reset(struct tb_sim_streams *s, uint32_t route);

#endif
