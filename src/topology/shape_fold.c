/* Smaller groups that resemble a large one. */
#include <stdlib.h>
#include <string.h>

#include "topology/shape.h"

#define RANKS_TIMES 4u /* so many times more ranks of a host stay than hosts of a place */

/* Some ranks of a shape. */
struct part {
    const struct tb_group_shape *of;
    const uint32_t *ranks;
    uint32_t count;
};

static void part_run(const void *context, uint32_t rank, struct tb_shape_run *run)
{
    const struct part *p = context;
    uint32_t host = tb_group_shape_host(p->of, p->ranks[rank]);
    struct tb_spot spot = tb_group_shape_spot(p->of, host);
    *run = (struct tb_shape_run){.host = host,
                                 .place = spot.place,
                                 .kind = spot.kind,
                                 .who = spot.who,
                                 .multicast = p->of->places[p->of->hosts[host].place].multicast != 0,
                                 .count = 1,
                                 .seats = p->of->seats != NULL ? &p->of->seats[p->ranks[rank]] : NULL};
}

static int part_make(const struct tb_group_shape **shape, const struct tb_group_shape *of, const uint32_t *ranks,
                     uint32_t count, uint32_t split)
{
    const struct part part = {of, ranks, count};
    return tb_group_shape_make(shape, &(struct tb_shape_source){.size = count,
                                                                .split = split,
                                                                .host_limit = of->host_count,
                                                                .table = of->table,
                                                                .run = part_run,
                                                                .context = &part});
}

int tb_group_shape_part(const struct tb_group_shape **part, const struct tb_group_shape *s, const uint32_t *ranks,
                        uint32_t count)
{
    return part_make(part, s, ranks, count, 0);
}

/* ---- folding ----------------------------------------------------------------------------------------------------- */

/* Which places stay. `met`: how many of those that are alike to one have stayed. */
static void places_fold(const struct tb_group_shape *s, uint32_t most, uint32_t keep, uint32_t *met, bool *stay)
{
    uint32_t kept = s->hosts[keep].place;
    for (uint32_t i = 0; i < s->place_count; i++) {
        const struct tb_shape_place *place = &s->places[i];
        bool has_kept = kept >= i && kept < place->end;
        met[i] = 0;
        stay[i] = i == 0 || (stay[place->parent] && (has_kept || met[place->alike] < most));
        met[place->alike] += stay[i];
    }
}

/* The same for hosts, which are alike also to those of other places: hosts of a place stand together in the order.
 * `left`: how many ranks of each may stay, of the first group and of the other. */
static void hosts_fold(const struct tb_group_shape *s, uint32_t most, uint32_t keep, const bool *place_stays,
                       uint32_t *met, uint32_t *left)
{
    uint32_t place = TB_PLACE_NONE, begin = 0;
    for (uint32_t i = 0; i < s->host_count; i++) {
        uint32_t host = s->order[i];
        const struct tb_shape_host *h = &s->hosts[host];
        if (h->place != place) {
            for (uint32_t k = begin; k < i; k++)
                met[s->hosts[s->order[k]].alike] = 0;
            place = h->place;
            begin = i;
        }
        bool stays = place_stays[place] && (host == keep || met[h->alike] < most);
        met[h->alike] += stays;
        left[2 * host] = left[2 * host + 1] = stays ? RANKS_TIMES * most : 0;
    }
}

int tb_group_shape_fold(const struct tb_group_shape **folded, const struct tb_group_shape *s, uint32_t places,
                        uint32_t most, uint32_t keep, uint32_t *ranks)
{
    uint32_t room = s->place_count > s->host_count ? s->place_count : s->host_count, count = 0, split = 0;
    uint32_t kept = tb_group_shape_host(s, keep);
    uint32_t *met = calloc(room, sizeof *met), *left = malloc(2 * (size_t)s->host_count * sizeof *left);
    bool *stay = calloc(s->place_count, sizeof *stay);
    int error = TB_OK;
    TB_ASSERT(places > 0 && most > 0 && keep < s->size);
    if (met == NULL || left == NULL || stay == NULL) {
        error = tb_error(TB_ERR_MEMORY, "no memory to fold a group of %u ranks", s->size);
        goto out;
    }
    places_fold(s, places, kept, met, stay);
    memset(met, 0, room * sizeof *met);
    hosts_fold(s, most, kept, stay, met, left);
    for (uint32_t rank = 0; rank < s->size; rank++) {
        uint32_t *more = &left[2 * tb_group_shape_host(s, rank) + (rank < s->split)];
        if (rank != keep && *more == 0)
            continue;
        *more -= *more > 0;
        split += rank < s->split;
        ranks[count++] = rank;
    }
    if (count == s->size)
        *folded = tb_group_shape_hold(s);
    else
        error = part_make(folded, s, ranks, count, split);
out:
    free(met);
    free(left);
    free(stay);
    return error;
}

/* ---- a sample ---------------------------------------------------------------------------------------------------- */

int tb_group_shape_sample(const struct tb_group_shape **sample, const struct tb_group_shape *s, uint32_t size,
                          uint32_t *ranks)
{
    TB_ASSERT(size > 0 && size <= s->size);
    /* Neighbours on a host stay together. */
    uint32_t chunk = 1;
    while (chunk < size && tb_group_shape_host(s, chunk) == tb_group_shape_host(s, 0))
        chunk++;
    uint32_t chunks = (size + chunk - 1) / chunk, all = s->size / chunk;
    for (uint32_t i = 0; i < size; i++) {
        uint64_t from = (uint64_t)(i / chunk) * all / chunks * chunk;
        ranks[i] = (uint32_t)(from + i % chunk);
    }
    return part_make(sample, s, ranks, size, 0);
}
