#include "engine/freed_contexts.h"
#include "wire/wire.h"

#include <stdlib.h>
#include <string.h>

/* The first range that ends at or behind `key`. */
static uint32_t freed_search(const struct tb_freed_contexts *f, uint64_t key)
{
    uint32_t low = 0, high = f->used;
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (f->ranges[middle].high < key)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

bool tb_freed_contexts_contains(const struct tb_freed_contexts *f, uint64_t context)
{
    uint64_t key = context >> TB_CONTEXT_PLANE_BITS;
    uint32_t at = freed_search(f, key);
    return at < f->used && f->ranges[at].low <= key;
}

static uint64_t allocator_of(const struct tb_context_range *range)
{
    return range->low >> TB_CONTEXT_COUNTER_BITS;
}

/* Makes room for one more range; false if every allocator has only one. */
static bool freed_condense(struct tb_freed_contexts *f)
{
    uint32_t best = 0, most = 1, first = 0;
    for (uint32_t i = 1; i <= f->used; i++)
        if (i == f->used || allocator_of(&f->ranges[i]) != allocator_of(&f->ranges[first])) {
            if (i - first > most) {
                best = first;
                most = i - first;
            }
            first = i;
        }
    if (most < 2)
        return false;
    f->ranges[best].high = f->ranges[best + 1].high;
    f->used--;
    memmove(&f->ranges[best + 1], &f->ranges[best + 2], sizeof *f->ranges * (f->used - best - 1));
    return true;
}

static bool freed_grow(struct tb_freed_contexts *f)
{
    if (f->used < f->room)
        return true;
    uint32_t room = f->room == 0 ? 16 : f->room * 2;
    if (room > TB_FREED_CONTEXTS_LIMIT)
        return freed_condense(f);
    struct tb_context_range *grown = realloc(f->ranges, sizeof *grown * room);
    if (grown == NULL)
        return false;
    f->ranges = grown;
    f->room = room;
    return true;
}

void tb_freed_contexts_add(struct tb_freed_contexts *f, uint64_t context)
{
    uint64_t key = context >> TB_CONTEXT_PLANE_BITS;
    uint32_t at = freed_search(f, key);
    if (at < f->used && f->ranges[at].low <= key)
        return;
    bool joins_left = at > 0 && f->ranges[at - 1].high + 1 == key;
    bool joins_right = at < f->used && f->ranges[at].low == key + 1;
    if (joins_left && joins_right) {
        f->ranges[at - 1].high = f->ranges[at].high;
        f->used--;
        memmove(&f->ranges[at], &f->ranges[at + 1], sizeof *f->ranges * (f->used - at));
    } else if (joins_left) {
        f->ranges[at - 1].high = key;
    } else if (joins_right) {
        f->ranges[at].low = key;
    } else if (freed_grow(f)) {
        at = freed_search(f, key);
        memmove(&f->ranges[at + 1], &f->ranges[at], sizeof *f->ranges * (f->used - at));
        f->ranges[at] = (struct tb_context_range){key, key};
        f->used++;
    }
}

void tb_freed_contexts_close(struct tb_freed_contexts *f)
{
    free(f->ranges);
    *f = (struct tb_freed_contexts){.used = 0};
}
