/* Holes: which fragments of a message are here, as far as that is not simply all of them. Whoever sends is never more
 * than a span ahead of the first hole, so that room of a fixed size is enough for any message. Zeroed memory knows of
 * nothing. */
#ifndef TB_LINK_MULTICAST_HOLES_H
#define TB_LINK_MULTICAST_HOLES_H

#include "base/base.h"

#define TB_MULTICAST_SPAN 1024u /* fragments, a power of two */

struct tb_multicast_holes {
    uint32_t base;                          /* all before this one are here, and it is not */
    uint64_t bits[TB_MULTICAST_SPAN / 64u]; /* of the others up to a span beyond: is it here? */
};

/* What becomes of a fragment: it was missing; it was here; it cannot be remembered, or kept; it is for others. */
enum tb_multicast_arrival { TB_MULTICAST_NEW, TB_MULTICAST_REPEATED, TB_MULTICAST_FAR, TB_MULTICAST_FOREIGN };

/* FAR: it is more than a span ahead, and cannot be remembered. */
enum tb_multicast_arrival tb_multicast_holes_take(struct tb_multicast_holes *h, uint32_t fragment);
bool tb_multicast_holes_has(const struct tb_multicast_holes *h, uint32_t fragment);
/* The first fragment from this one on that is missing; `end` if there is none before it. */
uint32_t tb_multicast_holes_next(const struct tb_multicast_holes *h, uint32_t from, uint32_t end);
/* How many are missing from `from` up to and without `end`. */
uint32_t tb_multicast_holes_count(const struct tb_multicast_holes *h, uint32_t from, uint32_t end);

#endif
