#include "collectives/levels_ranks.h"

#include <stdlib.h>
#include <string.h>

static int ranks_compare(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

static void others_find(struct tb_stage_ranks *r)
{
    uint32_t before = r->starts[r->mine], behind = r->starts[r->mine + 1], all = r->starts[r->count];
    r->other_count = before + all - behind;
    memcpy(r->others, r->ranks, before * sizeof(*r->others));
    memcpy(r->others + before, r->ranks + behind, (all - behind) * sizeof(*r->others));
    qsort(r->others, r->other_count, sizeof(*r->others), ranks_compare);
}

int tb_stage_ranks_open(struct tb_stage_ranks *r, const struct tb_collective *c, const struct tb_stage *s)
{
    size_t total = 0;
    *r = (struct tb_stage_ranks){.count = s->count, .mine = s->mine};
    for (uint32_t i = 0; i < s->count; i++)
        total += tb_part_size(c, &s->parts[i]);
    r->starts = malloc((s->count + 1 + 2 * total) * sizeof(*r->starts));
    if (r->starts == NULL)
        return tb_error(TB_ERR_MEMORY, "no memory for the ranks of %u parts of a group", s->count);
    r->ranks = r->starts + s->count + 1;
    r->others = r->ranks + total;
    r->starts[0] = 0;
    for (uint32_t i = 0; i < s->count; i++) {
        tb_part_ranks(c, &s->parts[i], r->ranks + r->starts[i]);
        r->starts[i + 1] = r->starts[i] + tb_part_size(c, &s->parts[i]);
    }
    r->position = tb_stage_before(r, r->mine, c->rank);
    others_find(r);
    return TB_OK;
}

void tb_stage_ranks_close(struct tb_stage_ranks *r)
{
    free(r->starts);
    r->starts = NULL;
}

static uint32_t share_start(uint32_t count, uint32_t size, uint32_t position)
{
    return (uint32_t)((uint64_t)count * position / size);
}

uint32_t tb_stage_share(const struct tb_stage_ranks *r, uint32_t position)
{
    return share_start(r->other_count, tb_stage_size(r, r->mine), position);
}

uint32_t tb_stage_sharer(const struct tb_stage_ranks *r, uint32_t part, uint32_t rank)
{
    uint32_t size = tb_stage_size(r, part), others = r->starts[r->count] - size, before = 0, position = 0;
    for (uint32_t i = 0; i < r->count; i++)
        before += i == part ? 0 : tb_stage_before(r, i, rank);
    while (share_start(others, size, position + 1) <= before)
        position++;
    return tb_stage_part(r, part)[position];
}

uint32_t tb_stage_before(const struct tb_stage_ranks *r, uint32_t part, uint32_t rank)
{
    const uint32_t *ranks = tb_stage_part(r, part);
    uint32_t low = 0, high = tb_stage_size(r, part);
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (ranks[middle] < rank)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

bool tb_stage_in_order(const struct tb_stage_ranks *r)
{
    for (uint32_t i = 1; i < r->starts[r->count]; i++)
        if (r->ranks[i] < r->ranks[i - 1])
            return false;
    return true;
}

bool tb_ranks_follow(const uint32_t *ranks, uint32_t count)
{
    return count == 0 || ranks[count - 1] - ranks[0] == count - 1;
}

/* Whether `rank`, whose host and places are entered after those of the rank before, is the first one in each of them.
 */
static bool enters(const struct tb_collective *c, uint32_t rank)
{
    const struct tb_group_shape *s = c->shape;
    uint32_t host = tb_group_shape_host(s, rank), left = tb_group_shape_host(s, rank - 1);
    if (host == left)
        return true;
    if ((c->skip & 1u << TB_LEVEL_HOST) == 0 && s->hosts[host].first_rank != rank)
        return false;
    for (uint32_t p = s->hosts[host].place, at = s->hosts[left].place; p != TB_PLACE_NONE; p = s->places[p].parent) {
        if (at >= p && at < s->places[p].end)
            return true;
        if ((c->skip & 1u << s->places[p].level) == 0 && s->places[p].first_rank != rank)
            return false;
    }
    return true;
}

bool tb_levels_in_order(const struct tb_collective *c)
{
    for (uint32_t rank = 1; rank < c->size; rank++)
        if (!enters(c, rank))
            return false;
    return true;
}
