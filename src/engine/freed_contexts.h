/* The contexts of communicators that were freed. A message for one of them came too late and is dropped; a message for
 * a context that was never seen is kept, since its communicator may still be made here.
 *
 * They are kept as ranges: an allocator counts up and never uses a number twice, so what one process has seen and freed
 * melts into few ranges. Sorted; all planes of a context are one entry.
 *
 * A process that is in every third communicator of an allocator sees ranges that never melt. When there are too many,
 * the oldest two of the allocator that has most become one: what lies between was made long ago without this process.
 * Should a communicator with such an id still be made, it is found before anybody looks here.
 *
 * Part of the engine, touched with it locked. All zero is an empty one. */
#ifndef TB_ENGINE_FREED_CONTEXTS_H
#define TB_ENGINE_FREED_CONTEXTS_H

#include "base/base.h"

#define TB_FREED_CONTEXTS_LIMIT 4096u /* ranges */

struct tb_context_range {
    uint64_t low, high; /* context >> TB_CONTEXT_PLANE_BITS, inclusive: counters of an allocator are neighbours */
};

struct tb_freed_contexts {
    struct tb_context_range *ranges;
    uint32_t used, room;
};

bool tb_freed_contexts_contains(const struct tb_freed_contexts *f, uint64_t context);
/* Without memory it is not remembered: a late message would then be kept for a context that never comes. */
void tb_freed_contexts_add(struct tb_freed_contexts *f, uint64_t context);
void tb_freed_contexts_close(struct tb_freed_contexts *f);

#endif
