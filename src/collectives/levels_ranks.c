#include "collectives/levels_ranks.h"

#include <stdlib.h>

int tb_stage_ranks_open(struct tb_stage_ranks *r, const struct tb_collective *c, const struct tb_stage *s)
{
    size_t total = 0;
    *r = (struct tb_stage_ranks){.count = s->count, .mine = s->mine};
    for (uint32_t i = 0; i < s->count; i++)
        total += tb_part_size(c, &s->parts[i]);
    r->starts = malloc((s->count + 1 + total) * sizeof(*r->starts));
    if (r->starts == NULL)
        return tb_error(TB_ERR_MEMORY, "no memory for the ranks of %u parts of a group", s->count);
    r->ranks = r->starts + s->count + 1;
    r->starts[0] = 0;
    for (uint32_t i = 0; i < s->count; i++) {
        tb_part_ranks(c, &s->parts[i], r->ranks + r->starts[i]);
        r->starts[i + 1] = r->starts[i] + tb_part_size(c, &s->parts[i]);
    }
    r->position = tb_stage_before(r, r->mine, c->rank);
    return TB_OK;
}

void tb_stage_ranks_close(struct tb_stage_ranks *r)
{
    free(r->starts);
    r->starts = NULL;
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
