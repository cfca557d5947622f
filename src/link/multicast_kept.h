/* The kept store: copies of short messages that this process has sent, until all members have passed them. A root sends
 * such a message at once and is done with it; whoever misses something asks, also when the root computes again, as long
 * as somebody feeds its object. The store is bounded: when it is full, a root waits for confirmations; only of a
 * context of which nothing is kept one message goes all the same, so that members of one never wait for those of
 * another.
 *
 * What is asked for once is sent to whoever asks. If another one asks for the same soon after, more of them will, and
 * it is sent to all; whoever asks while that is under way is not answered. So the root answers a bounded number of
 * times, however many members miss the same fragment: those who hear it do not ask any more. */
#ifndef TB_LINK_MULTICAST_KEPT_H
#define TB_LINK_MULTICAST_KEPT_H

#include "link/multicast_source.h"

/* TB_OK: it was sent; TB_PENDING: there is no room or no memory for a copy, or the owner does not take all of it. */
int tb_multicast_kept_start(struct tb_multicast *m, struct tb_multicast_operation *o);
void tb_multicast_kept_stop(struct tb_multicast *m, struct tb_multicast_operation *o);
/* Sends what has not been sent and may be now, and copies what there is room for by now. */
void tb_multicast_kept_advance(struct tb_multicast *m);
/* All members of the context have passed all numbers before this one. */
void tb_multicast_kept_release(struct tb_multicast *m, struct tb_multicast_context *c, uint64_t number);
/* Somebody asks for parts of a message of this process. */
void tb_multicast_kept_answer(struct tb_multicast *m, struct tb_multicast_context *c, const struct tb_datagram *head,
                              const struct tb_multicast_question *q);

#endif
