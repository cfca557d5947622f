#include "topology/hops.h"

#include <string.h>

#define VARIANTS_LIMIT 64u /* of ways by different gateways */

static bool is_within(const struct tb_cost_table *t, uint32_t inner, uint32_t outer)
{
    return inner >= outer && inner < t->places[outer].end;
}

/* The network where hosts of two places meet: a cluster, or the wide area, which is the world's number. */
static uint32_t meeting(const struct tb_cost_table *t, uint32_t a, uint32_t b)
{
    while (!is_within(t, b, a))
        a = t->places[a].parent;
    return t->places[a].level == TB_LEVEL_CLUSTER ? a : 0;
}

/* From a host outward, gateway by gateway, until the network is reached. */
static uint32_t climb_one(const struct tb_cost_table *t, struct tb_spot at, uint32_t network, uint32_t deal,
                          struct tb_spot *gates)
{
    uint32_t count = 0;
    while (count < TB_HOPS_LIMIT / 2) {
        uint32_t reach = t->kinds[at.kind].reach;
        const struct tb_cost_place *closed = &t->places[reach];
        if (reach == network || !is_within(t, reach, network) || closed->gates == 0)
            break; /* it is there, or passes by itself, as NAT lets it */
        at = t->relays[closed->gate + deal % closed->gates];
        if (t->kinds[at.kind].reach == reach)
            break; /* leads nowhere */
        gates[count++] = at;
    }
    return count;
}

static bool is_host(const struct tb_spot *a, const struct tb_spot *b)
{
    return a->who == b->who && a->who != TB_COST_NONE;
}

uint32_t tb_cost_climb(const struct tb_cost_table *t, const struct tb_spot *from, const struct tb_spot *to,
                       uint32_t deal, struct tb_spot *hops)
{
    struct tb_spot down[TB_HOPS_LIMIT / 2];
    uint32_t network = meeting(t, from->place, to->place), kept = 0;
    uint32_t count = climb_one(t, *from, network, deal, hops);
    uint32_t descents = climb_one(t, *to, network, deal, down);
    while (descents > 0)
        hops[count++] = down[--descents];
    /* A gateway that is an end itself, or serves both sides, is passed once. */
    for (uint32_t i = 0; i < count; i++)
        if (!is_host(&hops[i], kept > 0 ? &hops[kept - 1] : from))
            hops[kept++] = hops[i];
    return kept > 0 && is_host(&hops[kept - 1], to) ? kept - 1 : kept;
}

static const struct tb_cost_detour *detour_find(const struct tb_cost_table *t, uint32_t from, uint32_t to)
{
    uint32_t low = 0, high = t->head->detour_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        const struct tb_cost_detour *d = &t->detours[middle];
        if (d->from == from && d->to == to)
            return d;
        if (d->from < from || (d->from == from && d->to < to))
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

uint32_t tb_cost_hops(const struct tb_cost_table *t, const struct tb_spot *from, const struct tb_spot *to,
                      uint32_t deal, struct tb_spot *hops)
{
    const struct tb_cost_detour *detour = detour_find(t, from->kind, to->kind);
    if (detour == NULL)
        return tb_cost_climb(t, from, to, deal, hops);
    uint32_t count = detour->count < TB_HOPS_LIMIT ? detour->count : TB_HOPS_LIMIT;
    memcpy(hops, &t->hops[detour->first], count * sizeof *hops);
    return count;
}

/* Counts up `*variants` by those that the gateways of one side make. */
static void variants_take(const struct tb_cost_table *t, struct tb_spot at, uint32_t network, uint32_t *variants)
{
    struct tb_spot gates[TB_HOPS_LIMIT / 2];
    uint32_t count = climb_one(t, at, network, 0, gates);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t a = t->places[t->kinds[i > 0 ? gates[i - 1].kind : at.kind].reach].gates, b = *variants, n = a;
        while (b % a != 0) { /* the greatest number that divides both */
            uint32_t rest = b % a;
            b = a;
            a = rest;
        }
        uint64_t multiple = (uint64_t)*variants / a * n;
        *variants = multiple < VARIANTS_LIMIT ? (uint32_t)multiple : VARIANTS_LIMIT;
    }
}

uint32_t tb_cost_variants(const struct tb_cost_table *t, const struct tb_spot *from, const struct tb_spot *to)
{
    uint32_t network = meeting(t, from->place, to->place), variants = 1;
    if (detour_find(t, from->kind, to->kind) != NULL)
        return 1;
    variants_take(t, *from, network, &variants);
    variants_take(t, *to, network, &variants);
    return variants;
}
