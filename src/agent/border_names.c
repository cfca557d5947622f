#include "agent/border_names.h"

#include <stdlib.h>
#include <string.h>

static int by_first(const void *a, const void *b)
{
    const struct tb_border_range *x = a, *y = b;
    return x->first < y->first ? -1 : x->first > y->first;
}

static int by_home(const void *a, const void *b)
{
    const struct tb_border_range *x = a, *y = b;
    return x->home < y->home ? -1 : x->home > y->home;
}

/* NULL: it makes no sense, or there is no memory. */
static struct tb_border_range *take_ranges(struct tb_reader *r, bool theirs, uint32_t *count)
{
    *count = tb_get_u32(r);
    if (r->error != TB_OK || *count > (r->length - r->at) / (theirs ? 12u : 8u))
        return NULL;
    struct tb_border_range *ranges = calloc(*count + 1u, sizeof *ranges);
    for (uint32_t i = 0; ranges != NULL && i < *count; i++) {
        ranges[i].first = tb_get_u32(r);
        ranges[i].count = tb_get_u32(r);
        ranges[i].home = theirs ? tb_get_u32(r) : 0;
    }
    if (ranges != NULL)
        qsort(ranges, *count, sizeof *ranges, by_first);
    return ranges;
}

int tb_border_names_take(struct tb_border_names *names, struct tb_reader *r)
{
    struct tb_border_names fresh = {.job = tb_get_u32(r)};
    fresh.theirs = take_ranges(r, true, &fresh.their_count);
    fresh.own = fresh.theirs != NULL ? take_ranges(r, false, &fresh.own_count) : NULL;
    fresh.theirs_by_home = calloc(fresh.their_count + 1u, sizeof *fresh.theirs_by_home);
    if (fresh.own == NULL || fresh.theirs_by_home == NULL || tb_reader_end(r) != TB_OK || fresh.job == 0) {
        tb_border_names_close(&fresh);
        return tb_error(TB_ERR_PROTOCOL, "what was told of another job makes no sense, or there is no memory for it");
    }
    memcpy(fresh.theirs_by_home, fresh.theirs, fresh.their_count * sizeof *fresh.theirs);
    qsort(fresh.theirs_by_home, fresh.their_count, sizeof *fresh.theirs, by_home);
    tb_border_names_close(names);
    *names = fresh;
    return TB_OK;
}

void tb_border_names_close(struct tb_border_names *names)
{
    free(names->theirs);
    free(names->theirs_by_home);
    free(names->own);
    *names = (struct tb_border_names){0};
}

/* The last range that begins at or before the index; NULL: all begin behind it. */
static const struct tb_border_range *find(const struct tb_border_range *ranges, uint32_t count, uint32_t index,
                                          bool home)
{
    uint32_t low = 0, high = count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if ((home ? ranges[middle].home : ranges[middle].first) <= index)
            low = middle + 1;
        else
            high = middle;
    }
    return low > 0 ? &ranges[low - 1] : NULL;
}

bool tb_border_names_here(const struct tb_border_names *names, uint32_t home, uint32_t *index)
{
    const struct tb_border_range *range = find(names->theirs_by_home, names->their_count, home, true);
    if (range == NULL || home - range->home >= range->count)
        return false;
    *index = range->first + (home - range->home);
    return true;
}

bool tb_border_names_there(const struct tb_border_names *names, uint32_t index, uint32_t *home)
{
    const struct tb_border_range *range = find(names->theirs, names->their_count, index, false);
    if (range == NULL || index - range->first >= range->count)
        return false;
    *home = range->home + (index - range->first);
    return true;
}

bool tb_border_names_shows(const struct tb_border_names *names, uint32_t index)
{
    const struct tb_border_range *range = find(names->own, names->own_count, index, false);
    return range != NULL && index - range->first < range->count;
}
