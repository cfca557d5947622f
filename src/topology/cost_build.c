#include "topology/cost_build.h"

#include <stdlib.h>
#include <string.h>

#define LOOK_ROUNDS 3
#define BITS_US     8000000u /* what a byte takes at 1 bit/s */

static void fail(struct tb_cost_builder *b, int error)
{
    b->error = b->error != TB_OK ? b->error : error;
}

static void fail_memory(struct tb_cost_builder *b)
{
    if (b->error == TB_OK)
        fail(b, tb_error(TB_ERR_MEMORY, "no memory for what links cost"));
}

static uint64_t mix(uint64_t hash)
{
    hash = (hash ^ (hash >> 31)) * UINT64_C(0x9e3779b97f4a7c15);
    hash = (hash ^ (hash >> 29)) * UINT64_C(0xbf58476d1ce4e5b9);
    return hash ^ (hash >> 32);
}

/* ---- sections ---------------------------------------------------------------------------------------------------- */

static void *at(const struct tb_cost_section *s, uint32_t i)
{
    return (char *)s->data + (size_t)i * s->size;
}

static uint64_t hash_bytes(const void *bytes, size_t size)
{
    uint64_t hash = size;
    for (size_t i = 0; i < size; i += 4) { /* elements are whole words */
        uint32_t word;
        memcpy(&word, (const char *)bytes + i, sizeof word);
        hash = mix(hash ^ word) + i;
    }
    return hash;
}

/* Links are found by their ends, everything else by all its bytes. */
static uint64_t hash_element(const struct tb_cost_builder *b, const struct tb_cost_section *s, const void *element)
{
    if (s != &b->links)
        return hash_bytes(element, s->size);
    const struct tb_link_cost *link = element;
    return tb_cost_link_hash(link->from, link->from_host, link->to, link->to_host);
}

static bool same_element(const struct tb_cost_builder *b, const struct tb_cost_section *s, const void *x, const void *y)
{
    if (s != &b->links)
        return memcmp(x, y, s->size) == 0;
    const struct tb_link_cost *l = x, *k = y;
    return l->from == k->from && l->to == k->to && l->from_host == k->from_host && l->to_host == k->to_host;
}

/* Where in the index it is, or would be. */
static uint32_t slot_of(const struct tb_cost_builder *b, const struct tb_cost_section *s, const void *element)
{
    uint32_t slot = (uint32_t)hash_element(b, s, element) & (s->index_room - 1);
    while (s->index[slot] != TB_COST_NONE && !same_element(b, s, at(s, s->index[slot]), element))
        slot = (slot + 1) & (s->index_room - 1);
    return slot;
}

static bool index_grow(struct tb_cost_builder *b, struct tb_cost_section *s)
{
    if (2 * (s->count + 1) <= s->index_room)
        return true;
    uint32_t room = s->index_room != 0 ? 2 * s->index_room : 16;
    uint32_t *grown = malloc(room * sizeof *grown);
    if (grown == NULL) {
        fail_memory(b);
        return false;
    }
    memset(grown, 0xff, room * sizeof *grown);
    free(s->index);
    s->index = grown;
    s->index_room = room;
    for (uint32_t i = 0; i < s->count; i++)
        s->index[slot_of(b, s, at(s, i))] = i;
    return true;
}

uint32_t tb_cost_builder_push(struct tb_cost_builder *b, struct tb_cost_section *s, const void *element)
{
    if (b->error != TB_OK)
        return 0;
    if (s->count == s->room) {
        uint32_t room = s->room != 0 ? 2 * s->room : 8;
        void *grown = reallocarray(s->data, room, s->size);
        if (grown == NULL) {
            fail_memory(b);
            return 0;
        }
        s->data = grown;
        s->room = room;
    }
    memcpy(at(s, s->count), element, s->size);
    return s->count++;
}

/* One that is there already stands for it. */
static uint32_t intern(struct tb_cost_builder *b, struct tb_cost_section *s, const void *element)
{
    if (b->error != TB_OK || !index_grow(b, s))
        return 0;
    uint32_t slot = slot_of(b, s, element);
    if (s->index[slot] == TB_COST_NONE) {
        uint32_t i = tb_cost_builder_push(b, s, element);
        if (b->error == TB_OK)
            s->index[slot] = i;
        return i;
    }
    return s->index[slot];
}

/* ---- what is put in ---------------------------------------------------------------------------------------------- */

/* The same curve, what lies between and behind its points being zero, so that equal ones have equal bytes. */
static void curve_clean(struct tb_cost_curve *to, const struct tb_cost_curve *curve)
{
    memset(to, 0, sizeof *to);
    to->count = curve->count;
    for (uint32_t i = 0; i < curve->count; i++) {
        to->points[i].bytes = curve->points[i].bytes;
        to->points[i].time = curve->points[i].time;
    }
}

uint32_t tb_cost_builder_wire(struct tb_cost_builder *b, const struct tb_wire *wire)
{
    if (wire->burst * TB_COST_BURST_UNIT > b->constants.burst)
        b->constants.burst = wire->burst * TB_COST_BURST_UNIT;
    return intern(b, &b->wires, wire);
}

uint32_t tb_cost_builder_curve(struct tb_cost_builder *b, const struct tb_cost_curve *curve)
{
    struct tb_cost_curve clean;
    curve_clean(&clean, curve);
    return intern(b, &b->curves, &clean);
}

uint32_t tb_cost_builder_ends(struct tb_cost_builder *b, const struct tb_cost_curve *send,
                              const struct tb_cost_curve *receive)
{
    struct tb_cost_ends ends;
    curve_clean(&ends.send, send);
    curve_clean(&ends.receive, receive);
    return intern(b, &b->ends, &ends);
}

bool tb_cost_builder_measured(struct tb_cost_builder *b, const char *text, uint32_t *curve, uint32_t *ends)
{
    struct tb_cost_curve send, receive, gap;
    if (!tb_cost_points_parse(text, &send, &receive, &gap))
        return false;
    *curve = tb_cost_builder_curve(b, &gap);
    *ends = tb_cost_builder_ends(b, &send, &receive);
    return true;
}

uint32_t tb_cost_builder_link(struct tb_cost_builder *b, const struct tb_link_cost *link)
{
    struct tb_link_cost own = *link;
    struct tb_link_cost reverse = {
        .from = link->to, .to = link->from, .from_host = link->to_host, .to_host = link->from_host};
    own.back = TB_COST_NONE;
    uint32_t entry = intern(b, &b->links, &own);
    if (b->error != TB_OK)
        return 0;
    uint32_t back = b->links.index[slot_of(b, &b->links, &reverse)];
    own.back = back;
    own.flags |= ((const struct tb_link_cost *)at(&b->links, entry))->flags; /* other figures make it no other link */
    memcpy(at(&b->links, entry), &own, sizeof own);
    if (back != TB_COST_NONE)
        ((struct tb_link_cost *)at(&b->links, back))->back = entry;
    if (link->from_host != TB_COST_NONE || link->to_host != TB_COST_NONE)
        b->constants.flags |= TB_COSTS_HOST_LINKS;
    if (tb_cost_builder_place(b, link->from)->level == TB_LEVEL_SITE ||
        tb_cost_builder_place(b, link->to)->level == TB_LEVEL_SITE)
        b->constants.flags |= TB_COSTS_SITE_LINKS;
    return entry;
}

/* ---- beginning --------------------------------------------------------------------------------------------------- */

uint16_t tb_cost_builder_burst(const struct tb_cost_builder *b, uint64_t bandwidth)
{
    if (b->assumed.near_burst == 0 || bandwidth == 0)
        return 0;
    unsigned __int128 time = (unsigned __int128)b->assumed.near_burst * BITS_US / bandwidth;
    return time < TB_COST_BURST_LEAST ? TB_COST_BURST_LEAST : time < UINT16_MAX ? (uint16_t)time : UINT16_MAX;
}

void tb_cost_builder_assume(struct tb_cost_builder *b)
{
    const struct tb_cost_assumed *a = &b->assumed;
    struct tb_wire port = {.bandwidth = a->near_rate,
                           .queue = a->near_queue,
                           .burst = tb_cost_builder_burst(b, a->near_rate),
                           .curve = b->near_curve,
                           .ends = b->near_ends,
                           .assumed = TB_WIRE_BANDWIDTH_ASSUMED | TB_WIRE_LATENCY_ASSUMED};
    struct tb_wire wide = {.bandwidth = a->far_rate,
                           .latency = a->far_latency,
                           .queue = tb_cost_default_queue(a->far_rate, a->far_latency),
                           .curve = TB_COST_NONE,
                           .ends = TB_COST_NONE,
                           .assumed = TB_WIRE_BANDWIDTH_ASSUMED | TB_WIRE_LATENCY_ASSUMED};
    uint32_t wire = tb_cost_builder_wire(b, &port);
    b->constants.wide = tb_cost_builder_wire(b, &wide);
    for (uint32_t i = 0; i < b->places.count; i++) {
        tb_cost_builder_place(b, i)->port = wire;
        tb_cost_builder_place(b, i)->near = a->near_latency;
    }
}

int tb_cost_builder_open(struct tb_cost_builder *b, const struct tb_places *places,
                         const struct tb_cost_assumed *assumed)
{
    memset(b, 0, sizeof *b);
    b->tree = places;
    b->version = 1;
    b->assumed = *assumed;
    b->near_curve = b->near_ends = TB_COST_NONE;
    b->places.size = sizeof(struct tb_cost_place);
    b->kinds.size = sizeof(struct tb_cost_kind);
    b->feet.size = sizeof(struct tb_cost_foot);
    b->relays.size = b->hops.size = sizeof(struct tb_spot);
    b->links.size = sizeof(struct tb_link_cost);
    b->wires.size = sizeof(struct tb_wire);
    b->curves.size = sizeof(struct tb_cost_curve);
    b->ends.size = sizeof(struct tb_cost_ends);
    b->detours.size = sizeof(struct tb_cost_detour);
    for (uint32_t i = 0; i < places->count; i++) {
        const struct tb_place_row *row = &places->rows[i];
        struct tb_cost_place place = {.parent = row->parent,
                                      .depth = row->depth,
                                      .level = row->level,
                                      .up = TB_COST_NONE,
                                      .down = TB_COST_NONE,
                                      .end = row->end};
        tb_cost_builder_push(b, &b->places, &place);
    }
    tb_cost_builder_assume(b);
    return b->error;
}

void tb_cost_builder_close(struct tb_cost_builder *b)
{
    struct tb_cost_section *const all[] = {&b->places, &b->kinds,  &b->feet, &b->relays,  &b->links,
                                           &b->wires,  &b->curves, &b->ends, &b->detours, &b->hops};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        free(all[i]->data);
        free(all[i]->index);
    }
    memset(b, 0, sizeof *b);
}

/* ---- sealing ----------------------------------------------------------------------------------------------------- */

/* What a place looks like: its own wires, and then, round by round, what lies behind its links. The sum over its links
 * does not depend on their order. */
static void looks_make(struct tb_cost_builder *b, uint64_t *looks, uint64_t *sums)
{
    for (uint32_t i = 0; i < b->places.count; i++) {
        const struct tb_cost_place *p = tb_cost_builder_place(b, i);
        uint64_t look = mix((uint64_t)p->port << 32 | p->up);
        look = mix(look ^ ((uint64_t)p->down << 32 | p->gates << 8 | (uint64_t)p->hub << 4 | p->level));
        looks[i] = mix(look ^ p->near);
    }
    for (int round = 0; round < LOOK_ROUNDS; round++) {
        memset(sums, 0, b->places.count * sizeof *sums);
        for (uint32_t i = 0; i < b->links.count; i++) {
            const struct tb_link_cost *link = at(&b->links, i);
            const struct tb_link_cost *back = link->back != TB_COST_NONE ? at(&b->links, link->back) : NULL;
            uint64_t wires = (uint64_t)link->wire << 32 | (back != NULL ? back->wire : TB_COST_NONE);
            uint64_t hosts = (link->from_host != TB_COST_NONE) + 2 * (link->to_host != TB_COST_NONE);
            sums[link->from] += mix(mix(wires + hosts) ^ looks[link->to]);
        }
        for (uint32_t i = 0; i < b->places.count; i++)
            looks[i] = mix(looks[i] ^ sums[i]);
    }
    for (uint32_t i = 0; i < b->places.count; i++)
        tb_cost_builder_place(b, i)->look = (uint32_t)(looks[i] >> 32);
}

static uint32_t link_room(uint32_t links)
{
    uint32_t room = links > 0 ? 2 : 0;
    while (room < 2 * links)
        room *= 2;
    return room;
}

static void put_index(const struct tb_cost_builder *b, uint32_t *index, uint32_t room)
{
    if (room > 0) /* of none there may be no memory at all */
        memset(index, 0xff, room * sizeof *index);
    for (uint32_t i = 0; i < b->links.count; i++) {
        const struct tb_link_cost *link = at(&b->links, i);
        uint32_t slot = tb_cost_link_hash(link->from, link->from_host, link->to, link->to_host);
        while (index[slot & (room - 1)] != TB_COST_NONE)
            slot++;
        index[slot & (room - 1)] = i;
    }
}

/* Where a section goes, behind what is there already. */
static uint64_t lay_out(uint64_t *bytes, uint64_t count, size_t size)
{
    uint64_t offset = *bytes;
    *bytes = (offset + count * size + 7) / 8 * 8;
    return offset;
}

static void head_make(const struct tb_cost_builder *b, struct tb_cost_head *head)
{
    uint64_t bytes = (sizeof *head + 7) / 8 * 8;
    memset(head, 0, sizeof *head);
    head->magic = TB_COST_TABLE_MAGIC;
    head->format = TB_COST_TABLE_FORMAT;
    head->version = b->version;
    head->host_count = b->host_count;
    head->link_room = link_room(b->links.count);
    memcpy(&head->constants, &b->constants, sizeof head->constants);
    const struct {
        const struct tb_cost_section *section;
        uint32_t *count;
        uint64_t *offset;
    } rows[] = {
        {&b->places, &head->place_count, &head->places},    {&b->kinds, &head->kind_count, &head->kinds},
        {&b->feet, &head->foot_count, &head->feet},         {&b->relays, &head->relay_count, &head->relays},
        {&b->links, &head->link_count, &head->links},       {&b->wires, &head->wire_count, &head->wires},
        {&b->curves, &head->curve_count, &head->curves},    {&b->ends, &head->ends_count, &head->ends},
        {&b->detours, &head->detour_count, &head->detours}, {&b->hops, &head->hop_count, &head->hops},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        *rows[i].count = rows[i].section->count;
        *rows[i].offset = lay_out(&bytes, rows[i].section->count, rows[i].section->size);
    }
    head->link_index = lay_out(&bytes, head->link_room, sizeof(uint32_t));
    head->bytes = bytes;
}

static void put(const struct tb_cost_section *section, char *to)
{
    if (section->count > 0)
        memcpy(to, section->data, (size_t)section->count * section->size);
}

int tb_cost_builder_seal(struct tb_cost_builder *b, void **bytes, size_t *length)
{
    struct tb_cost_head head;
    uint64_t *looks = calloc(2 * (size_t)b->places.count + 1, sizeof *looks);
    if (looks == NULL)
        fail_memory(b);
    if (b->error == TB_OK)
        looks_make(b, looks, looks + b->places.count);
    free(looks);
    head_make(b, &head);
    if (b->error == TB_OK && head.bytes > TB_COST_TABLE_LIMIT)
        fail(b, tb_error(TB_ERR_LIMIT, "what links cost takes %llu bytes, more than the %u that a job can have",
                         (unsigned long long)head.bytes, TB_COST_TABLE_LIMIT));
    char *block = b->error == TB_OK ? calloc(1, head.bytes) : NULL;
    if (block == NULL) {
        fail_memory(b);
        return b->error;
    }
    memcpy(block, &head, sizeof head);
    put(&b->places, block + head.places);
    put(&b->kinds, block + head.kinds);
    put(&b->feet, block + head.feet);
    put(&b->relays, block + head.relays);
    put(&b->links, block + head.links);
    put(&b->wires, block + head.wires);
    put(&b->curves, block + head.curves);
    put(&b->ends, block + head.ends);
    put(&b->detours, block + head.detours);
    put(&b->hops, block + head.hops);
    put_index(b, (uint32_t *)(void *)(block + head.link_index), head.link_room);
    *bytes = block;
    *length = head.bytes;
    return TB_OK;
}
