/* Contexts that are gone, as ranges: an allocator counts up and never uses a number twice, so what one process has seen
 * and freed melts into few ranges. Sorted; all planes of a context are one entry. */
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

static bool gone_grow(struct tb_engine *e)
{
    if (e->gone_used < e->gone_room)
        return true;
    uint32_t room = e->gone_room == 0 ? 16 : e->gone_room * 2;
    struct tb_gone *grown = room > TB_GONE_LIMIT ? NULL : realloc(e->gone, sizeof *grown * room);
    if (grown == NULL)
        return false;
    e->gone = grown;
    e->gone_room = room;
    return true;
}

/* At the limit it is not remembered: a late message would then be kept for a context that never comes. */
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
        memmove(&e->gone[at + 1], &e->gone[at], sizeof *e->gone * (e->gone_used - at));
        e->gone[at] = (struct tb_gone){key, key};
        e->gone_used++;
    }
}
