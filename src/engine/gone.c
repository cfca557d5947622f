/* Contexts that are gone, as ranges: an allocator counts up and never uses a number twice, so what one process has seen
 * and freed melts into few ranges. Sorted; all planes of a context are one entry.
 *
 * A process that is in every third communicator of an allocator sees ranges that never melt. When there are too many,
 * the oldest two of the allocator that has most become one: what lies between was made long ago without this process.
 * Should a communicator with such an id still be made, it is found before anybody looks here. */
#include "engine/lane.h"

#include <stdlib.h>
#include <string.h>

/* The first range that ends at or behind `key`. */
static uint32_t gone_search(const struct tb_engine *e, uint64_t key)
{
    uint32_t low = 0, high = e->gone_used;
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (e->gone[middle].high < key)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

bool tb_gone_contains(const struct tb_engine *e, uint64_t context)
{
    uint64_t key = context >> TB_CONTEXT_PLANE_BITS;
    uint32_t at = gone_search(e, key);
    return at < e->gone_used && e->gone[at].low <= key;
}

static uint64_t allocator_of(const struct tb_gone *range)
{
    return range->low >> TB_CONTEXT_COUNTER_BITS;
}

/* Makes room for one more range; false if every allocator has only one. */
static bool gone_condense(struct tb_engine *e)
{
    uint32_t best = 0, most = 1, first = 0;
    for (uint32_t i = 1; i <= e->gone_used; i++)
        if (i == e->gone_used || allocator_of(&e->gone[i]) != allocator_of(&e->gone[first])) {
            if (i - first > most) {
                best = first;
                most = i - first;
            }
            first = i;
        }
    if (most < 2)
        return false;
    e->gone[best].high = e->gone[best + 1].high;
    e->gone_used--;
    memmove(&e->gone[best + 1], &e->gone[best + 2], sizeof *e->gone * (e->gone_used - best - 1));
    return true;
}

static bool gone_grow(struct tb_engine *e)
{
    if (e->gone_used < e->gone_room)
        return true;
    uint32_t room = e->gone_room == 0 ? 16 : e->gone_room * 2;
    if (room > TB_GONE_LIMIT)
        return gone_condense(e);
    struct tb_gone *grown = realloc(e->gone, sizeof *grown * room);
    if (grown == NULL)
        return false;
    e->gone = grown;
    e->gone_room = room;
    return true;
}

/* Without memory it is not remembered: a late message would then be kept for a context that never comes. */
void tb_gone_add(struct tb_engine *e, uint64_t context)
{
    uint64_t key = context >> TB_CONTEXT_PLANE_BITS;
    uint32_t at = gone_search(e, key);
    if (at < e->gone_used && e->gone[at].low <= key)
        return;
    bool joins_left = at > 0 && e->gone[at - 1].high + 1 == key;
    bool joins_right = at < e->gone_used && e->gone[at].low == key + 1;
    if (joins_left && joins_right) {
        e->gone[at - 1].high = e->gone[at].high;
        e->gone_used--;
        memmove(&e->gone[at], &e->gone[at + 1], sizeof *e->gone * (e->gone_used - at));
    } else if (joins_left) {
        e->gone[at - 1].high = key;
    } else if (joins_right) {
        e->gone[at].low = key;
    } else if (gone_grow(e)) {
        at = gone_search(e, key);
        memmove(&e->gone[at + 1], &e->gone[at], sizeof *e->gone * (e->gone_used - at));
        e->gone[at] = (struct tb_gone){key, key};
        e->gone_used++;
    }
}
