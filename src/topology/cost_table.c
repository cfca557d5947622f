#include "topology/cost_table.h"

#include <string.h>

#define PS_PER_S 1000000000000u

/* On Ethernet 1448 bytes of data travel in a frame that takes the time of 1538, and every message begins with a header
 * of ours and ends in a frame that is not full. */
#define FRAME_DATA     1448u
#define FRAME_WIRE     1538u
#define MESSAGE_HEADER 154u

/* ---- looking at bytes -------------------------------------------------------------------------------------------- */

static int senseless(const char *what)
{
    return tb_error(TB_ERR_ARGUMENT, "what links cost makes no sense: %s", what);
}

/* Whether `count` elements of `size` bytes lie between the head and the end. */
static bool fits(const struct tb_cost_head *head, uint64_t offset, uint64_t count, size_t size)
{
    return offset % 8 == 0 && offset >= sizeof *head && offset <= head->bytes && count <= (head->bytes - offset) / size;
}

int tb_cost_table_view(struct tb_cost_table *table, const void *bytes, size_t length)
{
    const struct tb_cost_head *h = bytes;
    *table = (struct tb_cost_table){0};
    if (length < sizeof *h || h->magic != TB_COST_TABLE_MAGIC || h->format != TB_COST_TABLE_FORMAT)
        return senseless("it is no table, or one of another version");
    if (h->bytes != length || length > TB_COST_TABLE_LIMIT)
        return senseless("it has another length than it says");
    if (!fits(h, h->places, h->place_count, sizeof *table->places) ||
        !fits(h, h->kinds, h->kind_count, sizeof *table->kinds) ||
        !fits(h, h->feet, h->foot_count, sizeof *table->feet) ||
        !fits(h, h->relays, h->relay_count, sizeof *table->relays) ||
        !fits(h, h->links, h->link_count, sizeof *table->links) ||
        !fits(h, h->link_index, h->link_room, sizeof *table->link_index) ||
        !fits(h, h->wires, h->wire_count, sizeof *table->wires) ||
        !fits(h, h->curves, h->curve_count, sizeof *table->curves) ||
        !fits(h, h->ends, h->ends_count, sizeof *table->ends) ||
        !fits(h, h->detours, h->detour_count, sizeof *table->detours) ||
        !fits(h, h->hops, h->hop_count, sizeof *table->hops))
        return senseless("a part of it lies outside");
    if (h->place_count == 0 || h->kind_count == 0 || (h->link_room & (h->link_room - 1)) != 0 ||
        h->link_room / 2 < h->link_count)
        return senseless("a part of it is too small");
    const char *base = bytes;
    table->head = h;
    table->places = (const void *)(base + h->places);
    table->kinds = (const void *)(base + h->kinds);
    table->feet = (const void *)(base + h->feet);
    table->relays = (const void *)(base + h->relays);
    table->links = (const void *)(base + h->links);
    table->link_index = (const void *)(base + h->link_index);
    table->wires = (const void *)(base + h->wires);
    table->curves = (const void *)(base + h->curves);
    table->ends = (const void *)(base + h->ends);
    table->detours = (const void *)(base + h->detours);
    table->hops = (const void *)(base + h->hops);
    return TB_OK;
}

/* ---- looking at everything --------------------------------------------------------------------------------------- */

static bool is_curve(const struct tb_cost_curve *curve)
{
    if (curve->count > TB_COST_POINTS || (curve->count > 0 && curve->points[0].bytes != 0))
        return false;
    for (uint32_t i = 1; i < curve->count; i++)
        if (curve->points[i].bytes <= curve->points[i - 1].bytes)
            return false;
    return true;
}

static bool are_ends(const struct tb_cost_ends *ends)
{
    return is_curve(&ends->send) && is_curve(&ends->receive);
}

/* An index, or none. */
static bool is_none_or(uint32_t index, uint32_t count)
{
    return index == TB_COST_NONE || index < count;
}

static bool is_part(uint32_t first, uint32_t count, uint32_t all)
{
    return first <= all && count <= all - first;
}

static bool is_constants(const struct tb_cost_head *h)
{
    const struct tb_cost_constants *c = &h->constants;
    for (int i = 0; i < TB_ENDS_COUNT; i++)
        if (!are_ends(&c->ends[i]))
            return false;
    return is_curve(&c->copy) && is_curve(&c->reduce) && is_curve(&c->memory) && c->agent < h->wire_count &&
           c->wide < h->wire_count && c->ack_share <= 1000;
}

/* In preorder, as places.h says: what ends before a place, or at the end of all, ends just there. */
static bool is_behind(const struct tb_cost_table *t, uint32_t i, uint32_t parent)
{
    uint32_t before = i - 1;
    while (before != parent && before != TB_PLACE_NONE && t->places[before].end == i)
        before = t->places[before].parent;
    return before == parent;
}

static bool is_place(const struct tb_cost_table *t, uint32_t i)
{
    const struct tb_cost_head *h = t->head;
    const struct tb_cost_place *p = &t->places[i];
    if (p->port >= h->wire_count || !is_none_or(p->up, h->wire_count) || !is_none_or(p->down, h->wire_count) ||
        !is_part(p->gate, p->gates, h->relay_count) || p->depth >= TB_PLACES_DEPTH_LIMIT)
        return false;
    if (i == 0)
        return p->parent == TB_PLACE_NONE && p->end == h->place_count && p->depth == 0 && p->level == TB_LEVEL_WORLD;
    if (p->parent >= i)
        return false;
    const struct tb_cost_place *around = &t->places[p->parent];
    bool below = p->level == TB_LEVEL_SITE ? around->level == TB_LEVEL_WORLD : p->level == TB_LEVEL_CLUSTER;
    return below && p->end > i && p->end <= around->end && p->depth == around->depth + 1 && is_behind(t, i, p->parent);
}

static bool is_kind(const struct tb_cost_table *t, uint32_t i)
{
    const struct tb_cost_head *h = t->head;
    const struct tb_cost_kind *k = &t->kinds[i];
    bool gate =
        k->gate_of == TB_COST_NONE || (k->gate_of < h->place_count && t->places[k->gate_of].level == TB_LEVEL_CLUSTER);
    return gate && k->reach < h->place_count && is_none_or(k->port, h->wire_count) &&
           is_part(k->foot, k->feet, h->foot_count);
}

static bool is_link(const struct tb_cost_table *t, uint32_t i, uint32_t host_count)
{
    const struct tb_cost_head *h = t->head;
    const struct tb_link_cost *l = &t->links[i];
    return l->from < h->place_count && l->to < h->place_count && l->wire < h->wire_count &&
           is_none_or(l->from_host, host_count) && is_none_or(l->to_host, host_count) &&
           is_none_or(l->back, h->link_count);
}

static bool is_detour(const struct tb_cost_table *t, uint32_t i)
{
    const struct tb_cost_head *h = t->head;
    const struct tb_cost_detour *d = &t->detours[i], *before = i > 0 ? d - 1 : NULL;
    bool rises = before == NULL || before->from < d->from || (before->from == d->from && before->to < d->to);
    return rises && d->from < h->kind_count && d->to < h->kind_count && is_part(d->first, d->count, h->hop_count);
}

static bool are_feet(const struct tb_cost_table *t)
{
    uint32_t places = t->head->place_count;
    for (uint32_t i = 0; i < t->head->foot_count; i++)
        if (t->feet[i].place >= places || t->feet[i].leave >= places || t->feet[i].enter >= places)
            return false;
    return true;
}

static bool are_spots(const struct tb_cost_table *t, const struct tb_spot *spots, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (spots[i].place >= t->head->place_count || spots[i].kind >= t->head->kind_count ||
            spots[i].who >= t->head->host_count)
            return false;
    return true;
}

/* At least one slot of the index is free, so that looking ends. */
static bool is_index(const struct tb_cost_table *t)
{
    uint32_t used = 0;
    for (uint32_t i = 0; i < t->head->link_room; i++) {
        if (!is_none_or(t->link_index[i], t->head->link_count))
            return false;
        used += t->link_index[i] != TB_COST_NONE;
    }
    return used <= t->head->link_count;
}

static bool are_wires(const struct tb_cost_table *t)
{
    const struct tb_cost_head *h = t->head;
    for (uint32_t i = 0; i < h->curve_count; i++)
        if (!is_curve(&t->curves[i]))
            return false;
    for (uint32_t i = 0; i < h->ends_count; i++)
        if (!are_ends(&t->ends[i]))
            return false;
    for (uint32_t i = 0; i < h->wire_count; i++)
        if (!is_none_or(t->wires[i].curve, h->curve_count) || !is_none_or(t->wires[i].ends, h->ends_count) ||
            t->wires[i].loss > 1000000)
            return false;
    return true;
}

int tb_cost_table_check(const struct tb_cost_table *t, uint32_t host_count)
{
    const struct tb_cost_head *h = t->head;
    if (h->host_count != host_count)
        return senseless("it is for another number of hosts");
    if (!are_wires(t) || !is_constants(h))
        return senseless("a wire");
    for (uint32_t i = 0; i < h->place_count; i++)
        if (!is_place(t, i))
            return senseless("a place");
    if (!is_behind(t, h->place_count, TB_PLACE_NONE))
        return senseless("a place");
    for (uint32_t i = 0; i < h->kind_count; i++)
        if (!is_kind(t, i))
            return senseless("a kind of hosts");
    for (uint32_t i = 0; i < h->link_count; i++)
        if (!is_link(t, i, host_count))
            return senseless("a link");
    for (uint32_t i = 0; i < h->detour_count; i++)
        if (!is_detour(t, i))
            return senseless("a detour");
    if (!is_index(t) || !are_feet(t) || !are_spots(t, t->relays, h->relay_count) ||
        !are_spots(t, t->hops, h->hop_count))
        return senseless("a host, or where it stands");
    return TB_OK;
}

/* ---- asking ------------------------------------------------------------------------------------------------------ */

uint64_t tb_wire_time(const struct tb_cost_table *table, const struct tb_wire *wire, uint64_t bytes)
{
    if (wire->curve != TB_COST_NONE)
        return tb_cost_at(&table->curves[wire->curve], bytes);
    if (wire->bandwidth == 0)
        return 0;
    unsigned __int128 bits = ((unsigned __int128)bytes * FRAME_WIRE / FRAME_DATA + MESSAGE_HEADER) * 8;
    unsigned __int128 time = bits * PS_PER_S / wire->bandwidth;
    return time > TB_COST_NEVER ? TB_COST_NEVER : (uint64_t)time;
}

uint32_t tb_cost_link_hash(uint32_t from, uint32_t from_host, uint32_t to, uint32_t to_host)
{
    uint64_t hash = ((uint64_t)from << 32 | to) * UINT64_C(0x9e3779b97f4a7c15);
    hash ^= ((uint64_t)from_host << 32 | to_host) * UINT64_C(0xc2b2ae3d27d4eb4f);
    hash = (hash ^ (hash >> 29)) * UINT64_C(0xbf58476d1ce4e5b9);
    return (uint32_t)(hash >> 32);
}

static uint32_t link_at(const struct tb_cost_table *t, uint32_t from, uint32_t from_host, uint32_t to, uint32_t to_host)
{
    uint32_t mask = t->head->link_room - 1;
    for (uint32_t at = tb_cost_link_hash(from, from_host, to, to_host);; at++) {
        uint32_t i = t->link_index[at & mask];
        if (i == TB_COST_NONE)
            return TB_COST_NONE;
        const struct tb_link_cost *link = &t->links[i];
        if (link->from == from && link->to == to && link->from_host == from_host && link->to_host == to_host)
            return i;
    }
}

/* A cluster below no other, or what stands for one. */
static bool is_outermost(const struct tb_cost_table *t, uint32_t place)
{
    return t->places[place].level != TB_LEVEL_CLUSTER || t->places[t->places[place].parent].level != TB_LEVEL_CLUSTER;
}

static uint32_t site_link_find(const struct tb_cost_table *t, uint32_t from, uint32_t to)
{
    if (!is_outermost(t, from) || !is_outermost(t, to))
        return TB_COST_NONE;
    uint32_t out = tb_cost_site_of(t, from), in = tb_cost_site_of(t, to);
    uint32_t ends[3][2] = {{out, to}, {from, in}, {out, in}};
    for (int i = 0; i < 3 && out != in; i++) {
        uint32_t link = ends[i][0] != TB_PLACE_NONE && ends[i][1] != TB_PLACE_NONE
                            ? link_at(t, ends[i][0], TB_COST_NONE, ends[i][1], TB_COST_NONE)
                            : TB_COST_NONE;
        if (link != TB_COST_NONE)
            return link;
    }
    return TB_COST_NONE;
}

uint32_t tb_cost_link_find(const struct tb_cost_table *t, uint32_t from, uint32_t from_host, uint32_t to,
                           uint32_t to_host)
{
    if (t->head->link_count == 0)
        return TB_COST_NONE;
    uint32_t flags = t->head->constants.flags;
    uint32_t ends[3][2] = {{from_host, to_host}, {from_host, TB_COST_NONE}, {TB_COST_NONE, to_host}};
    for (int i = 0; i < 3 && (flags & TB_COSTS_HOST_LINKS) != 0; i++) {
        if (ends[i][0] == TB_COST_NONE && ends[i][1] == TB_COST_NONE)
            continue;
        uint32_t link = link_at(t, from, ends[i][0], to, ends[i][1]);
        if (link != TB_COST_NONE)
            return link;
    }
    uint32_t link = link_at(t, from, TB_COST_NONE, to, TB_COST_NONE);
    return link == TB_COST_NONE && (flags & TB_COSTS_SITE_LINKS) != 0 ? site_link_find(t, from, to) : link;
}
