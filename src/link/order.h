/* Order: a decorator of a transport that is reliable and faithful, but lets frames overtake each other, as those that
 * agents pass on do. Its owner sees frames in order.
 *
 * Out: frames to a process are numbered from 1, both streams together, and go straight to the transport; no copy is
 * kept, since whoever passes them on repeats what gets lost. In: they are handed up in order; those that come early
 * wait in copies. What the other process has consumed it acknowledges, on frames that go back anyway, or by one of its
 * own after a while. A window bounds what is out: frames and bytes for one process, bytes for all of them; when it is
 * full, send answers TB_AGAIN. So nothing waits anywhere for a process that computes beyond a window.
 *
 * Acknowledgements by themselves, and goodbyes, are frames of kind LINK, which have numbers too and are consumed in
 * their turn. They may use numbers beyond the window of the others, so that two whose windows are full can still
 * acknowledge; each of them acknowledges something new, and each frame of the other side all of them before it, so that
 * they do not run out. A goodbye comes after everything that was sent before it; closing waits only until it has left.
 */
#ifndef TB_LINK_ORDER_H
#define TB_LINK_ORDER_H

#include "link/link_counters.h"
#include "transport/transport.h"

extern const struct tb_transport_table tb_transport_order;

/* As table->open with the decorator around it. */
int tb_order_open(const struct tb_transport_table *table, const struct tb_transport_config *config,
                  struct tb_transport **transport);
void tb_order_count(const struct tb_transport *transport, struct tb_link_counters *counters);

#define TB_ORDER_WINDOW 1024u /* frames to one process; the parameter relay_window bounds their bytes */
#define TB_ORDER_LIMIT  (2u * TB_ORDER_WINDOW) /* numbers that may be out, with those of kind LINK */

#endif
