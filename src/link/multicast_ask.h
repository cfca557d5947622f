/* Asking: when a member that misses something of a short message asks for it. While fragments come, it waits; when they
 * have come to their end, it asks after the time in which they may overtake each other; if nothing was heard at all,
 * after the time that roots usually take. Before it asks, it waits a random time, the longer the more members there
 * are, since an answer for one of them is often one for all. What was asked in vain is asked again, each time later;
 * then by a control message, of which only one is under way. */
#ifndef TB_LINK_MULTICAST_ASK_H
#define TB_LINK_MULTICAST_ASK_H

#include "link/multicast_state.h"

void tb_multicast_ask_begin(struct tb_multicast *m, struct tb_multicast_operation *o);
/* A fragment that was missing has come. */
void tb_multicast_ask_progress(struct tb_multicast *m, struct tb_multicast_operation *o);
/* The root has sent this message: what is not here is lost. */
void tb_multicast_ask_begun(struct tb_multicast *m, struct tb_multicast_operation *o);
/* The root has not begun it, and nobody need ask for so long. */
void tb_multicast_ask_hold(struct tb_multicast *m, struct tb_multicast_operation *o, uint64_t hold);
/* The root's answer to a control message. */
void tb_multicast_ask_told(struct tb_multicast *m, struct tb_multicast_operation *o, bool begun);
/* What was asked for by a control message comes. */
void tb_multicast_ask_served(struct tb_multicast *m, struct tb_multicast_operation *o);
void tb_multicast_ask_advance(struct tb_multicast *m, struct tb_multicast_operation *o);

#endif
