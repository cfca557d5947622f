/* A long message at its root. Fragments go out as the pace allows; every so many of them, one is marked, and members
 * report up to there what is missing. The reports of all come merged in one. What is missing was lost if it was sent
 * before the mark: then it is sent again, before anything new, to the one who misses it, or to all if several do; what
 * was repeated in vain a few times goes as control messages. The root has finished when a report says that nobody needs
 * it any more.
 *
 * If a report does not come, the root polls, by datagrams a few times and then by control messages; a member that is
 * not there yet, or is stopped, holds it up, and what is out by then fits its receive buffer. */
#ifndef TB_LINK_MULTICAST_LONG_H
#define TB_LINK_MULTICAST_LONG_H

#include "link/multicast_source.h"

/* It sends what it can; always TB_PENDING. */
int tb_multicast_long_start(struct tb_multicast *m, struct tb_multicast_operation *o);
void tb_multicast_long_stop(struct tb_multicast_operation *o);
/* False: it does not come from whom it should. */
bool tb_multicast_long_hear(struct tb_multicast *m, struct tb_multicast_operation *o, uint32_t from,
                            const struct tb_multicast_report *report);
uint64_t tb_multicast_long_moved(const struct tb_multicast_operation *o);
void tb_multicast_long_advance(struct tb_multicast *m, struct tb_multicast_operation *o);

#endif
