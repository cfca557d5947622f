/* Repair: a decorator of a transport that may lose, repeat, reorder or corrupt frames; its owner sees none of that.
 *
 * Out: frames to a process are numbered from 1, both streams together, and a copy is kept until the other side has
 * acknowledged it. The window (frames and bytes a process, bytes in all) bounds the copies; when it is full, or the
 * transport below takes nothing, send answers TB_AGAIN. A frame is sent again when its timer runs out (by the measured
 * round trip, doubled each time up to a bound), or when later arrivals show that it is lost. In: frames are handed up
 * in order and once. Those that come early wait in a window of the same size. Acknowledgements ride on frames that go
 * back anyway; otherwise one travels by itself after a short delay, or at once when something is missing or came twice,
 * and then says which later frames are here.
 *
 * Frames come mostly in order, so that one which several later ones overtake is lost. Silence of a process that
 * computes is no failure: only after tb_param.link_timeout without any answer is it taken for unreachable.
 *
 * Closing: the last acknowledgement may be lost, and a process that has closed repeats nothing. So closing says
 * goodbye, with the last acknowledgement, again and again until everyone who was talked to has answered or has said
 * goodbye himself; a tenth of a second in all. A goodbye counts as acknowledgement of
 * everything, so nobody waits for one who has left. */
#ifndef TB_LINK_REPAIR_H
#define TB_LINK_REPAIR_H

#include "link/link.h"

extern const struct tb_transport_table tb_transport_repair;

/* As table->open with the decorator around it. */
int tb_repair_open(const struct tb_transport_table *table, const struct tb_transport_config *config,
                   struct tb_transport **transport);
void tb_repair_count(const struct tb_transport *transport, struct tb_link_counters *counters);
/* Bytes of payload that are kept in copies; for tests of the bound. */
size_t tb_repair_kept(const struct tb_transport *transport);

#define TB_REPAIR_WINDOW      64u /* frames to one process; the selective part of an acknowledgement covers them */
#define TB_REPAIR_PAYLOAD     (64u << 10) /* bytes of one frame at most */
#define TB_REPAIR_PEER_BYTES  (2u << 20)  /* kept for one process and direction */
#define TB_REPAIR_TOTAL_BYTES (64u << 20) /* kept in all */

#endif
