#include "planner/bound_state.h"

#include <stdlib.h>
#include <string.h>

#define VARIANTS  8u  /* hosts of a spot that are looked at where ways differ by the gateways that they use */
#define FAR_LOOK  16u /* so many sums of distances take the time of a look at a way */
#define SPOT_LOOK 64u /* so many comparisons of hosts do */

/* ---- spots ------------------------------------------------------------------------------------------------------- */

static bool same_spot(const struct tb_group_shape *shape, uint32_t a, uint32_t b)
{
    const struct tb_shape_host *p = &shape->hosts[a], *q = &shape->hosts[b];
    return p->place == q->place && p->kind == q->kind && p->who == q->who;
}

static void spot_add(struct tb_bound_spot *spot, const struct tb_group_shape *shape, uint32_t host)
{
    const struct tb_shape_host *h = &shape->hosts[host];
    if (h->rank_count < shape->hosts[spot->few].rank_count)
        spot->few = host;
    if (h->rank_count > shape->hosts[spot->many].rank_count)
        spot->many = host;
    spot->first = h->first_rank < spot->first ? h->first_rank : spot->first;
    spot->hosts++;
}

/* False: there are too many. */
static bool spots_find(struct tb_bound_state *s)
{
    const struct tb_group_shape *shape = s->shape;
    for (uint32_t i = 0; i < shape->host_count; i++) {
        uint32_t at = 0;
        while (at < s->spot_count && !same_spot(shape, s->spots[at].host, i))
            at++;
        if (at == TB_BOUND_SPOTS)
            return false;
        if (at == s->spot_count)
            s->spots[s->spot_count++] =
                (struct tb_bound_spot){.host = i, .few = i, .many = i, .first = UINT32_MAX, .around = TB_COST_NEVER};
        spot_add(&s->spots[at], shape, i);
        s->spot_of[i] = at;
    }
    for (uint32_t rank = 0; rank < shape->size; rank++)
        s->spots[s->spot_of[tb_group_shape_host(shape, rank)]].last = rank;
    uint32_t total = 0;
    for (uint32_t i = 0; i < s->spot_count; i++) {
        s->firsts[i] = total;
        total += s->spots[i].hosts;
    }
    s->firsts[s->spot_count] = total;
    for (uint32_t i = shape->host_count; i-- > 0;)
        s->members[s->firsts[s->spot_of[i]] + --s->spots[s->spot_of[i]].hosts] = i;
    for (uint32_t i = 0; i < s->spot_count; i++)
        s->spots[i].hosts = s->firsts[i + 1] - s->firsts[i];
    return true;
}

/* ---- how far ----------------------------------------------------------------------------------------------------- */

struct tb_bound_pairs tb_bound_pairs_of(struct tb_bound_state *s, uint32_t from, uint32_t to, uint32_t only)
{
    const struct tb_bound_spot *p = &s->spots[from], *q = &s->spots[to];
    uint32_t there = tb_ways_variants(s->ways, p->host, q->host), back = tb_ways_variants(s->ways, q->host, p->host);
    if (there == 0 || back == 0)
        s->error = TB_ERR_MEMORY;
    uint32_t rows = p->hosts < VARIANTS ? p->hosts : VARIANTS, columns = q->hosts < VARIANTS ? q->hosts : VARIANTS;
    return (struct tb_bound_pairs){.from = from,
                                   .to = to,
                                   .only = only,
                                   .count = only == TB_BOUND_NONE ? rows * columns : rows,
                                   .alike = there == 1 && back == 1};
}

bool tb_bound_pairs_next(struct tb_bound_state *s, struct tb_bound_pairs *pairs, uint32_t *a, uint32_t *b)
{
    uint32_t hosts = s->spots[pairs->to].hosts, columns = hosts < VARIANTS ? hosts : VARIANTS;
    columns = pairs->only == TB_BOUND_NONE ? columns : 1;
    while (pairs->at < pairs->count && s->error == TB_OK) {
        uint32_t at = pairs->at++;
        *a = s->members[s->firsts[pairs->from] + at / columns];
        *b = pairs->only == TB_BOUND_NONE ? s->members[s->firsts[pairs->to] + at % columns] : pairs->only;
        if (*a == *b)
            continue;
        pairs->at = pairs->alike ? pairs->count : pairs->at;
        s->looks++;
        return true;
    }
    return false;
}

/* What a message costs at least that goes this way: its latency, and what the two ranks spend. */
static uint64_t way_cost(const struct tb_bound_state *s, const struct tb_way *way)
{
    const struct tb_cost_ends *ends = tb_way_ends(s->ways->table, way);
    return tb_cost_add(way->latency, tb_cost_add(tb_cost_least(&ends->send), tb_cost_least(&ends->receive)));
}

static void far_find(struct tb_bound_state *s)
{
    uint32_t n = s->spot_count, a, b;
    for (uint32_t from = 0; from < n; from++)
        for (uint32_t to = 0; to < n; to++) {
            uint64_t least = TB_COST_NEVER;
            for (struct tb_bound_pairs pairs = tb_bound_pairs_of(s, from, to, TB_BOUND_NONE);
                 tb_bound_pairs_next(s, &pairs, &a, &b);) {
                const struct tb_way *way = tb_ways_between(s->ways, a, b);
                uint64_t cost = way != NULL ? way_cost(s, way) : 0;
                s->error = way != NULL ? TB_OK : TB_ERR_MEMORY;
                least = cost < least ? cost : least;
            }
            s->far[(size_t)from * n + to] = from == to ? 0 : least;
            if (from == to)
                s->spots[from].around = least;
        }
    memcpy(s->step, s->far, (size_t)n * n * sizeof *s->step);
    /* By way of other ranks it may be less far. */
    for (uint32_t k = 0; k < n; k++)
        for (uint32_t i = 0; i < n; i++)
            for (uint32_t j = 0; j < n; j++) {
                uint64_t by = tb_cost_add(s->far[(size_t)i * n + k], s->far[(size_t)k * n + j]);
                if (by < s->far[(size_t)i * n + j])
                    s->far[(size_t)i * n + j] = by;
            }
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t k = 0; k < n; k++) {
            uint64_t by = tb_cost_add(s->far[(size_t)i * n + k], s->far[(size_t)k * n + i]);
            if (i != k && s->spots[i].hosts > 1 && by < s->spots[i].around)
                s->spots[i].around = by;
        }
}

/* ---- all of it --------------------------------------------------------------------------------------------------- */

bool tb_bound_marks_grow(struct tb_bound_state *s)
{
    uint32_t need = 2 * s->spot_count + s->ways->wire_count;
    if (need <= s->taken_room)
        return true;
    struct tb_bound_mark *taken = realloc(s->taken, need * sizeof *taken);
    s->taken = taken != NULL ? taken : s->taken;
    struct tb_bound_entrance *entrances = realloc(s->entrances, 2 * (need + (size_t)1) * sizeof *entrances);
    s->entrances = entrances != NULL ? entrances : s->entrances;
    if (taken == NULL || entrances == NULL)
        return false;
    memset(taken + s->taken_room, 0, (need - s->taken_room) * sizeof *taken);
    s->taken_room = need;
    return true;
}

int tb_bound_state_open(struct tb_bound_state *s, struct tb_ways *ways, uint64_t limit)
{
    const struct tb_group_shape *shape = ways->shape;
    *s = (struct tb_bound_state){.ways = ways, .shape = shape};
    s->spots = calloc(TB_BOUND_SPOTS, sizeof *s->spots);
    s->spot_of = calloc(shape->host_count, sizeof *s->spot_of);
    s->members = calloc(shape->host_count, sizeof *s->members);
    s->firsts = calloc(TB_BOUND_SPOTS + 1, sizeof *s->firsts);
    s->near = calloc(2 * (size_t)TB_BOUND_SPOTS, sizeof *s->near);
    s->inside = calloc(TB_BOUND_SPOTS, sizeof *s->inside);
    s->within = calloc(ways->table->head->place_count, sizeof *s->within);
    s->aside = calloc(TB_BOUND_SPOTS, sizeof *s->aside);
    s->outer = calloc(TB_BOUND_SPOTS, sizeof *s->outer);
    s->group = calloc(TB_BOUND_SPOTS, sizeof *s->group);
    if (s->spots == NULL || s->spot_of == NULL || s->members == NULL || s->firsts == NULL || s->near == NULL ||
        s->inside == NULL || s->within == NULL || s->aside == NULL || s->outer == NULL || s->group == NULL)
        return tb_error(TB_ERR_MEMORY, "no memory for the bound of %u hosts", shape->host_count);
    bool found = spots_find(s);
    uint64_t n = s->spot_count;
    s->looks = shape->host_count * n / SPOT_LOOK + n * n * n / FAR_LOOK;
    if (!found || s->looks > limit) {
        s->spot_count = 0;
        return TB_OK;
    }
    s->far = calloc(2 * (size_t)s->spot_count * s->spot_count, sizeof *s->far);
    if (s->far == NULL)
        return tb_error(TB_ERR_MEMORY, "no memory for the bound of %u hosts", shape->host_count);
    s->step = s->far + (size_t)s->spot_count * s->spot_count;
    far_find(s);
    if (s->error == TB_OK && !tb_bound_marks_grow(s))
        return tb_error(TB_ERR_MEMORY, "no memory for the bound of %u hosts", shape->host_count);
    return s->error;
}

void tb_bound_state_close(struct tb_bound_state *s)
{
    free(s->spots);
    free(s->spot_of);
    free(s->members);
    free(s->firsts);
    free(s->far);
    free(s->near);
    free(s->inside);
    free(s->within);
    free(s->aside);
    free(s->outer);
    free(s->group);
    free(s->taken);
    free(s->entrances);
}
