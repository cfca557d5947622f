/* A stranger: a process of another job. What it sends is believed as far as it is a member of the communicator that it
 * names, which nobody asks of processes of our own job. Messages that come before their communicator is known are
 * looked at when it is (tb_channel_screen). Until then they wait, as many as peer.h says, and go with who is lost. It
 * is sent nothing but what its own job can have heard of, which would take anything else for nonsense and end the
 * connection. Touched with the engine locked. */
#ifndef TB_ENGINE_STRANGER_H
#define TB_ENGINE_STRANGER_H

#include "engine/arrival.h"
#include "engine/channel.h"
#include "engine/peer.h"

/* Whether a message to it may be sent in that context, of whoever it is. */
static inline bool tb_stranger_hears(const struct tb_peer *p, uint64_t context)
{
    return TB_LIKELY(!p->stranger) || tb_context_is_tagged(context);
}

/* Whether it may send that frame. */
bool tb_stranger_may(const struct tb_peer *p, const struct tb_message *m);
/* Of a context whose channel is known by now: whether what has arrived there is of one that is not in it; and
 * collectives that such have given up are forgotten. */
bool tb_stranger_sent(const struct tb_context *c, const struct tb_arrival *a);
void tb_strangers_forget(struct tb_contexts *all, struct tb_context *c);

#endif
