/* A stranger: a process of another job. What it sends is believed as far as it is a member of the communicator that it
 * names, which nobody asks of processes of our own job. Messages that come before their communicator is known are
 * looked at when it is. Touched with the engine locked. */
#ifndef TB_ENGINE_STRANGER_H
#define TB_ENGINE_STRANGER_H

#include "engine/channel.h"
#include "engine/peer.h"

/* A frame of a stranger; false: it may not say that, and was given up. */
bool tb_stranger_may(struct tb_peer *p, const struct tb_message *m);
/* The channel of a context is known from now on: what strangers have sent there before who are not in it is gone. */
void tb_strangers_leave(struct tb_context *c);

#endif
