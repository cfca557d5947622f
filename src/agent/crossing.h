/* The crossing: what goes between ranks of this host and ranks of others, at its two ends. Out: a frame of a rank is
 * kept until it is there (replay.h), and leaves through the forwarder. In: a frame is handed to its rank once, if there
 * is room for it, and its sender's agent is told (receipts.h); what has been told is never dropped, unless its rank is
 * gone. The two agents speak about that in frames of kind HOST.
 *
 * The forwarder owns it, and finds ways for it; one thread. */
#ifndef TB_AGENT_CROSSING_H
#define TB_AGENT_CROSSING_H

#include "agent/neighbour.h"
#include "agent/receipts.h"
#include "agent/replay.h"

#define TB_CROSSING_ARRIVALS (8u << 20) /* bytes that wait for one rank of this host */

struct tb_crossing_events {
    void *context;
    /* The neighbour that leads to a process; NULL: nobody. `far`: what is known of the way, or NULL. */
    struct tb_neighbour *(*route)(void *context, const struct tb_cargo *cargo, enum tb_stream stream, uint32_t from,
                                  const struct tb_far_host *far);
    /* Sends the frame at once, or queues it; takes cargo->buffer then (set to NULL). An error: it was dropped. */
    int (*pass)(void *context, struct tb_neighbour *to, enum tb_stream stream, uint32_t from, struct tb_cargo *cargo);
    void (*settle)(void *context); /* something was queued, and nobody else flushes */
};

struct tb_crossing {
    const struct tb_member *member;
    struct tb_neighbour_table *table;
    struct tb_frame_pool *pool;
    struct tb_crossing_events events;
    struct tb_replay replay;
    struct tb_receipts receipts;
    struct tb_timer timer;
    struct tb_neighbour *asked_by; /* who has brought the question that is being answered; else NULL */
    uint64_t late, refused;        /* counts: for ranks that have left; for want of room */
};

int tb_crossing_open(struct tb_crossing *crossing, const struct tb_member *member, struct tb_neighbour_table *table,
                     struct tb_frame_pool *pool, const struct tb_crossing_events *events);
void tb_crossing_close(struct tb_crossing *crossing); /* all neighbours are closed */
/* A frame of a rank of this host. An error (with a story): the rank cannot go on. */
int tb_crossing_keep(struct tb_crossing *crossing, struct tb_neighbour *rank, enum tb_stream stream,
                     struct tb_cargo *cargo);
/* A frame from another host for a rank of this one, or for this agent; `by` has brought it. */
void tb_crossing_arrive(struct tb_crossing *crossing, struct tb_neighbour *by, enum tb_stream stream,
                        struct tb_cargo *cargo);
void tb_crossing_settle(struct tb_crossing *crossing); /* queues have moved */

#endif
