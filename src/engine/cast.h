/* A cast: one message to several ranks, of which those in the multicast group of this process get the data of a long
 * one together. Each is sent an envelope as in any rendezvous, in order with the other sends to it, so that matching
 * knows nothing of casts. Those whose receives have asked for all of it, when all have or the others have kept them
 * waiting for long, are invited to an operation of the multicast protocol, by a frame that says who takes part. The
 * context of these operations is that of the sender's MPI_COMM_SELF, on which nothing else is multicast; it counts
 * them.
 *
 * Whenever something is amiss (a member has died, cannot take part, has another connection that broke, or computes, so
 * that nothing goes on), the operation is given up and the data goes to each of its members as after any CLEAR. A
 * member that cannot take part asks for that by a second CLEAR; one that takes part stops when data comes this way.
 *
 * Part of the engine, touched with it locked. */
#ifndef TB_ENGINE_CAST_H
#define TB_ENGINE_CAST_H

#include "engine/engine.h"
#include "wire/wire.h"

struct tb_multicast_port;

/* What sends and receives messages comes here through tables, since casts are made of these. Of the sender: */
struct tb_cast_sender {
    /* The receiver of a send of a cast has asked for all of it. */
    void (*cleared)(struct tb_request *r);
    /* A member of an operation does not take part. */
    void (*refused)(struct tb_request *r);
    /* Sends the invitation of a member. TB_AGAIN: there is no room. */
    int (*invite)(struct tb_request *r);
};
extern const struct tb_cast_sender tb_cast_sender;

/* Of a receiver: */
struct tb_cast_receiver {
    /* The receive with this message id is sent its data as after any CLEAR: then it no longer takes part. */
    void (*quit)(struct tb_peer *p, uint64_t id);
    /* The receive, which takes part, ends. */
    void (*forget)(struct tb_request *r);
};
extern const struct tb_cast_receiver tb_cast_receiver;

/* Those that have waited for long enough get their data, without others or one by one. How many casts that were. */
int tb_casts_advance(struct tb_multicast_port *port);
uint64_t tb_casts_deadline(const struct tb_multicast_port *port);

/* An invitation: the handler of a frame. */
void tb_cast_invited(struct tb_peer *p, const struct tb_message *m, const void *payload, size_t length);

#endif
