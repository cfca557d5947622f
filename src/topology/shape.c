#include "topology/shape.h"

#include <stdlib.h>
#include <string.h>

const struct tb_group_shape *tb_group_shape_hold(const struct tb_group_shape *shape)
{
    /* The count is all that ever changes. */
    __atomic_add_fetch(&((struct tb_group_shape *)(uintptr_t)shape)->users, 1, __ATOMIC_RELAXED);
    return shape;
}

void tb_group_shape_release(const struct tb_group_shape *shape)
{
    struct tb_group_shape *s = (struct tb_group_shape *)(uintptr_t)shape;
    if (s != NULL && __atomic_sub_fetch(&s->users, 1, __ATOMIC_ACQ_REL) == 0)
        free(s);
}

bool tb_group_shape_same(const struct tb_group_shape *a, const struct tb_group_shape *b)
{
    /* The counts are in the keys, too, but these are short. */
    return a == b || (a->key[0] == b->key[0] && a->key[1] == b->key[1] && a->table == b->table && a->size == b->size &&
                      a->split == b->split && a->host_count == b->host_count && a->place_count == b->place_count &&
                      a->range_count == b->range_count && a->bytes == b->bytes && memcmp(a + 1, b + 1, a->bytes) == 0);
}

/* ---- where a rank is --------------------------------------------------------------------------------------------- */

uint32_t tb_group_shape_range(const struct tb_group_shape *s, uint32_t rank)
{
    uint32_t low = 0, high = s->range_count;
    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;
        if (s->ranges[middle].first <= rank)
            low = middle;
        else
            high = middle;
    }
    return low;
}

uint32_t tb_group_shape_host(const struct tb_group_shape *s, uint32_t rank)
{
    if (s->dense != NULL)
        return s->dense[rank];
    const struct tb_shape_range *r = &s->ranges[tb_group_shape_range(s, rank)];
    return r->host + (rank - r->first) / r->block % r->cycle;
}

uint32_t tb_group_shape_place(const struct tb_group_shape *s, uint32_t rank)
{
    return s->hosts[tb_group_shape_host(s, rank)].place;
}

uint32_t tb_group_shape_at(const struct tb_group_shape *s, uint32_t rank, uint32_t depth)
{
    uint32_t place = tb_group_shape_place(s, rank);
    if (s->places[place].depth < depth)
        return TB_PLACE_NONE;
    while (s->places[place].depth > depth)
        place = s->places[place].parent;
    return place;
}

uint32_t tb_group_shape_meet(const struct tb_group_shape *s, uint32_t a, uint32_t b)
{
    uint32_t host = tb_group_shape_host(s, a), other = tb_group_shape_host(s, b);
    if (host == other)
        return TB_PLACE_NONE;
    uint32_t place = s->hosts[host].place, inner = s->hosts[other].place;
    while (inner < place || inner >= s->places[place].end)
        place = s->places[place].parent;
    return place;
}

/* The first rank of a host in a range. */
static uint32_t range_begin(const struct tb_shape_range *r, uint32_t host)
{
    return r->first + (host - r->host) * r->block;
}

uint32_t tb_group_shape_next(const struct tb_group_shape *s, uint32_t rank)
{
    if (s->dense != NULL)
        return s->next[rank];
    uint32_t at = tb_group_shape_range(s, rank);
    const struct tb_shape_range *r = &s->ranges[at];
    uint32_t end = at + 1 < s->range_count ? r[1].first : s->size, offset = rank - r->first;
    uint32_t host = r->host + offset / r->block % r->cycle;
    uint64_t next = (uint64_t)rank + 1;
    if ((offset + 1) % r->block == 0)
        next += (uint64_t)r->block * (r->cycle - 1);
    if (next < end)
        return (uint32_t)next;
    uint32_t later = r->next != TB_PLACE_NONE ? s->next[r->next + (host - r->host)] : TB_PLACE_NONE;
    return later != TB_PLACE_NONE ? range_begin(&s->ranges[later], host) : TB_PLACE_NONE;
}

/* ---- below the host ---------------------------------------------------------------------------------------------- */

uint32_t tb_group_shape_below(const struct tb_group_shape *s, uint32_t rank, enum tb_level level)
{
    TB_ASSERT(level > TB_LEVEL_HOST && level <= TB_LEVEL_CORE);
    uint16_t number = s->seats != NULL ? s->seats[rank].at[level - TB_LEVEL_PACKAGE] : TB_SEAT_NONE;
    return number != TB_SEAT_NONE ? number : TB_PLACE_NONE;
}

enum tb_level tb_group_shape_level(const struct tb_group_shape *s, uint32_t a, uint32_t b)
{
    uint32_t place = tb_group_shape_meet(s, a, b);
    if (place != TB_PLACE_NONE)
        return (enum tb_level)s->places[place].level;
    return s->seats != NULL ? tb_seat_meet(&s->seats[a], &s->seats[b]) : TB_LEVEL_HOST;
}

void tb_group_shape_count_seats(const struct tb_group_shape *s, uint32_t *counts)
{
    memset(counts, 0, TB_SEAT_LEVELS * sizeof *counts);
    for (uint32_t host = 0; host < s->host_count && s->seats != NULL; host++)
        for (int i = 0; i < TB_SEAT_LEVELS; i++) {
            uint32_t most = 0; /* numbers have no gaps */
            for (uint32_t rank = s->hosts[host].first_rank; rank != TB_PLACE_NONE; rank = tb_group_shape_next(s, rank))
                if (s->seats[rank].at[i] != TB_SEAT_NONE && s->seats[rank].at[i] >= most)
                    most = s->seats[rank].at[i] + 1u;
            counts[i] += most;
        }
}

/* ---- kinds of ranks ---------------------------------------------------------------------------------------------- */

uint32_t tb_group_shape_kind(const struct tb_group_shape *s, uint32_t rank)
{
    if (s->host_count == 1)
        return 0;
    const struct tb_shape_host *host = &s->hosts[tb_group_shape_host(s, rank)];
    return 2 * host->alike + (rank != host->first_rank);
}

uint32_t tb_group_shape_of_kind(const struct tb_group_shape *s, uint32_t kind)
{
    uint32_t first = s->hosts[kind / 2].first_rank;
    return kind % 2 == 0 ? first : tb_group_shape_next(s, first);
}
