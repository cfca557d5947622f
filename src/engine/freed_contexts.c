/* Contexts that are gone, as ranges: an allocator counts up and never uses a number twice, so what one process has seen
 * and freed melts into few ranges. Sorted; all planes of a context are one entry.
 *
 * A process that is in every third communicator of an allocator sees ranges that never melt. When there are too many,
 * the oldest two of the allocator that has most become one: what lies between was made long ago without this process.
 * Should a communicator with such an id still be made, it is found before anybody looks here. */
#include "engine/engine_state.h"

#include <stdlib.h>
#include <string.h>

/* The first range that ends at or behind `key`. */
static uint32_t freed_search(const struct tb_engine *e, uint64_t key)
{
    uint32_t low = 0, high = e->freed_used;
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (e->gone[middle].high < key)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

bool tb_freed_contexts_contains(const struct tb_engine *e, uint64_t context)
{
    uint64_t key = context >> TB_CONTEXT_PLANE_BITS;
    uint32_t at = freed_search(e, key);
    return at < e->freed_used && e->gone[at].low <= key;
}

static uint64_t allocator_of(const struct tb_freed_contexts *range)
{
    return range->low >> TB_CONTEXT_COUNTER_BITS;
}

/* Makes room for one more range; false if every allocator has only one. */
static bool freed_condense(struct tb_engine *e)
{
    uint32_t best = 0, most = 1, first = 0;
    for (uint32_t i = 1; i <= e->freed_used; i++)
        if (i == e->freed_used || allocator_of(&e->gone[i]) != allocator_of(&e->gone[first])) {
            if (i - first > most) {
                best = first;
                most = i - first;
            }
            first = i;
        }
    if (most < 2)
        return false;
    e->gone[best].high = e->gone[best + 1].high;
    e->freed_used--;
    memmove(&e->gone[best + 1], &e->gone[best + 2], sizeof *e->gone * (e->freed_used - best - 1));
    return true;
}

static bool freed_grow(struct tb_engine *e)
{
    if (e->freed_used < e->freed_room)
        return true;
    uint32_t room = e->freed_room == 0 ? 16 : e->freed_room * 2;
    if (room > TB_FREED_CONTEXTS_LIMIT)
        return freed_condense(e);
    struct tb_freed_contexts *grown = realloc(e->gone, sizeof *grown * room);
    if (grown == NULL)
        return false;
    e->gone = grown;
    e->freed_room = room;
    return true;
}

/* Without memory it is not remembered: a late message would then be kept for a context that never comes. */
void tb_freed_contexts_add(struct tb_engine *e, uint64_t context)
{
    uint64_t key = context >> TB_CONTEXT_PLANE_BITS;
    uint32_t at = freed_search(e, key);
    if (at < e->freed_used && e->gone[at].low <= key)
        return;
    bool joins_left = at > 0 && e->gone[at - 1].high + 1 == key;
    bool joins_right = at < e->freed_used && e->gone[at].low == key + 1;
    if (joins_left && joins_right) {
        e->gone[at - 1].high = e->gone[at].high;
        e->freed_used--;
        memmove(&e->gone[at], &e->gone[at + 1], sizeof *e->gone * (e->freed_used - at));
    } else if (joins_left) {
        e->gone[at - 1].high = key;
    } else if (joins_right) {
        e->gone[at].low = key;
    } else if (freed_grow(e)) {
        at = freed_search(e, key);
        memmove(&e->gone[at + 1], &e->gone[at], sizeof *e->gone * (e->freed_used - at));
        e->gone[at] = (struct tb_freed_contexts){key, key};
        e->freed_used++;
    }
}
