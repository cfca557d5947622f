#include "collectives/levels.h"

#include <stdlib.h>

static bool counts(const struct tb_collective *c, enum tb_level level)
{
    return (c->skip & 1u << level) == 0;
}

/* ---- parts ------------------------------------------------------------------------------------------------------- */

static bool place_has(const struct tb_group_shape *s, uint32_t place, uint32_t rank)
{
    uint32_t at = tb_group_shape_place(s, rank);
    return at >= place && at < s->places[place].end;
}

static uint32_t place_stands(const struct tb_levels *l, uint32_t place)
{
    const struct tb_group_shape *s = l->call->shape;
    return place_has(s, place, l->root) ? l->root : s->places[place].first_rank;
}

static uint32_t host_stands(const struct tb_levels *l, uint32_t host)
{
    const struct tb_group_shape *s = l->call->shape;
    return tb_group_shape_host(s, l->root) == host ? l->root : s->hosts[host].first_rank;
}

/* Adds a part to the room, or only counts it while there is none. */
static void part_add(struct tb_levels *l, enum tb_level_part_kind kind, uint32_t number, uint32_t first, uint32_t rank)
{
    const struct tb_level_part part = {kind, number, first, rank};
    if (l->room != NULL)
        l->room[l->part_count] = part;
    else if (l->visit != NULL)
        l->visit(l->visit_context, &part);
    l->part_count++;
}

static void host_ranks_add(struct tb_levels *l, uint32_t host)
{
    const struct tb_group_shape *s = l->call->shape;
    for (uint32_t r = s->hosts[host].first_rank; r != TB_PLACE_NONE; r = tb_group_shape_next(s, r))
        part_add(l, TB_PART_RANK, r, r, r);
}

static void hosts_add(struct tb_levels *l, uint32_t place)
{
    const struct tb_group_shape *s = l->call->shape;
    const struct tb_shape_place *p = &s->places[place];
    if (p->cluster == TB_PLACE_NONE)
        return; /* all hosts in it are in places of their own */
    for (uint32_t i = p->host; i < p->host + p->hosts; i++) {
        uint32_t host = s->order[i];
        if (s->hosts[host].place != place)
            continue;
        if (counts(l->call, TB_LEVEL_HOST))
            part_add(l, TB_PART_HOST, host, s->hosts[host].first_rank, host_stands(l, host));
        else
            host_ranks_add(l, host);
    }
}

/* The parts of a place. Places in it whose level does not count are gone through. */
static void parts_add(struct tb_levels *l, uint32_t place)
{
    const struct tb_shape_place *places = l->call->shape->places;
    uint32_t end = places[place].end;
    hosts_add(l, place);
    for (uint32_t q = place + 1; q < end;) {
        if (counts(l->call, places[q].level)) {
            part_add(l, TB_PART_PLACE, q, places[q].first_rank, place_stands(l, q));
            q = places[q].end;
        } else {
            hosts_add(l, q++);
        }
    }
}

static int parts_compare(const void *a, const void *b)
{
    uint32_t x = ((const struct tb_level_part *)a)->first, y = ((const struct tb_level_part *)b)->first;
    return x < y ? -1 : x > y;
}

uint32_t tb_part_size(const struct tb_collective *c, const struct tb_level_part *part)
{
    return part->kind == TB_PART_PLACE  ? c->shape->places[part->number].rank_count
           : part->kind == TB_PART_HOST ? c->shape->hosts[part->number].rank_count
                                        : 1;
}

static int ranks_compare(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

void tb_part_ranks(const struct tb_collective *c, const struct tb_level_part *part, uint32_t *ranks)
{
    const struct tb_group_shape *s = c->shape;
    uint32_t count = 0, first = part->number, hosts = 1;
    if (part->kind == TB_PART_RANK) {
        ranks[0] = part->number;
        return;
    }
    if (part->kind == TB_PART_PLACE) {
        first = s->places[part->number].host;
        hosts = s->places[part->number].hosts;
    }
    for (uint32_t i = first; i < first + hosts; i++) {
        uint32_t host = part->kind == TB_PART_PLACE ? s->order[i] : i;
        for (uint32_t r = s->hosts[host].first_rank; r != TB_PLACE_NONE; r = tb_group_shape_next(s, r))
            ranks[count++] = r;
    }
    if (hosts > 1)
        qsort(ranks, count, sizeof(*ranks), ranks_compare);
}

/* ---- stages ------------------------------------------------------------------------------------------------------ */

static bool any_place(const struct tb_level_part *parts, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (parts[i].kind == TB_PART_PLACE)
            return true;
    return false;
}

/* The places in which this rank has a stage: its own first, wider ones as far as it stands for what lies in them. */
static uint32_t places_of(const struct tb_levels *l, uint32_t *places)
{
    const struct tb_collective *c = l->call;
    const struct tb_group_shape *s = c->shape;
    uint32_t host = tb_group_shape_host(s, c->rank), count = 0;
    if (counts(c, TB_LEVEL_HOST) && host_stands(l, host) != c->rank)
        return 0;
    for (uint32_t p = s->hosts[host].place; p != TB_PLACE_NONE; p = s->places[p].parent) {
        if (p != 0 && !counts(c, s->places[p].level))
            continue;
        places[count++] = p;
        if (place_stands(l, p) != c->rank)
            break;
    }
    return count;
}

static void stage_add(struct tb_levels *l, uint32_t place, uint32_t from)
{
    struct tb_level_part *parts = l->room + from;
    uint32_t count = l->part_count - from;
    struct tb_stage stage = {.place = place, .count = count, .parts = parts, .wide = any_place(parts, count)};
    uint32_t top = place == TB_PLACE_NONE ? host_stands(l, tb_group_shape_host(l->call->shape, l->call->rank))
                                          : place_stands(l, place);
    if (count < 2)
        return;
    qsort(parts, count, sizeof(*parts), parts_compare);
    for (uint32_t i = 0; i < count; i++) {
        stage.mine = parts[i].rank == l->call->rank ? i : stage.mine;
        stage.root = parts[i].rank == top ? i : stage.root;
    }
    l->stages[l->stage_count++] = stage;
}

/* The widest place of several parts, which every rank must know. */
static void top_find(struct tb_levels *l)
{
    const struct tb_group_shape *s = l->call->shape;
    uint32_t host = tb_group_shape_host(s, l->call->rank), chain[TB_PLACES_DEPTH_LIMIT + 1], count = 0;
    for (uint32_t p = s->hosts[host].place; p != TB_PLACE_NONE; p = s->places[p].parent)
        if (p == 0 || counts(l->call, s->places[p].level))
            chain[count++] = p;
    l->top = TB_PLACE_NONE;
    while (count-- > 0) {
        uint32_t from = l->part_count;
        parts_add(l, chain[count]);
        uint32_t parts = l->part_count - from;
        bool wide = l->room != NULL && any_place(l->room + from, parts);
        l->part_count = from;
        if (parts < 2)
            continue;
        l->top = chain[count];
        l->parts = parts;
        l->wide = wide;
        return;
    }
    l->parts = s->size > 1 ? s->size : 0; /* all on one host */
}

uint32_t tb_levels_widest(const struct tb_collective *c, void (*visit)(void *context, const struct tb_level_part *part),
                          void *context)
{
    struct tb_collective first = *c;
    struct tb_levels l = {.call = &first};
    first.rank = 0;
    top_find(&l);
    l.visit = visit;
    l.visit_context = context;
    if (l.top != TB_PLACE_NONE)
        parts_add(&l, l.top);
    return l.parts;
}

/* The parts of a place, at most: counting them takes as long as finding them. */
static size_t place_most(const struct tb_collective *c, uint32_t place)
{
    const struct tb_shape_place *p = &c->shape->places[place];
    return (size_t)(counts(c, TB_LEVEL_HOST) ? p->hosts : p->rank_count) + (p->end - place);
}

int tb_levels_open(struct tb_levels *l, const struct tb_collective *c, uint32_t root)
{
    const struct tb_group_shape *s = c->shape;
    uint32_t places[TB_PLACES_DEPTH_LIMIT + 1];
    *l = (struct tb_levels){.call = c, .root = root};
    uint32_t count = places_of(l, places), host = tb_group_shape_host(s, c->rank);
    /* Those of each place around this rank, and of the widest once more. */
    size_t most = s->hosts[host].rank_count;
    for (uint32_t p = s->hosts[host].place; p != TB_PLACE_NONE; p = s->places[p].parent)
        most += 2 * place_most(c, p);
    l->room = malloc((most + 1) * sizeof(*l->room));
    if (l->room == NULL)
        return tb_error(TB_ERR_MEMORY, "no memory for %zu parts of a group", most);
    top_find(l);
    l->top_parts = l->room;
    l->part_count = l->top == TB_PLACE_NONE ? 0 : l->parts;
    for (uint32_t i = count; i-- > 0;) {
        uint32_t from = l->part_count;
        parts_add(l, places[i]);
        stage_add(l, places[i], from);
    }
    if (counts(c, TB_LEVEL_HOST) && s->hosts[host].rank_count > 1) {
        uint32_t from = l->part_count;
        host_ranks_add(l, host);
        stage_add(l, TB_PLACE_NONE, from);
        l->host = true;
    }
    return TB_OK;
}

void tb_levels_close(struct tb_levels *l)
{
    free(l->room);
    l->room = NULL;
}

/* Whether there is a place that counts, of several ranks but not of all. */
static bool place_between(const struct tb_collective *c)
{
    const struct tb_group_shape *s = c->shape;
    for (uint32_t p = 1; p < s->place_count; p++)
        if (counts(c, s->places[p].level) && s->places[p].rank_count < s->size && s->places[p].rank_count > 1)
            return true;
    return false;
}

bool tb_levels_there(const struct tb_collective *c)
{
    const struct tb_group_shape *s = c->shape;
    if (s == NULL || s->host_count < 2)
        return false;
    return (counts(c, TB_LEVEL_HOST) && s->most > 1) || place_between(c);
}

bool tb_fits_levels(const struct tb_collective *c)
{
    return !c->inter && (c->shape == NULL || c->shape->split == 0) && tb_levels_there(c);
}
