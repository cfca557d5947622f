/* Which pieces each of several trees has that are packed into the widest stage. In those of other parts a piece crosses
 * two links one after the other, in the one of the root a single one, but once for each part. So the last pieces take
 * that one: as many as the root can send to everyone in the time that the second link takes. The others are dealt out
 * by the rates of links: as much to a part as it gets from the root, and can pass on to the slowest of the others.
 * Where parts are joined pairwise, that is what a link passes in its latency; where everything that the root sends
 * shares its uplink, as much for all other parts together. Both make all links end at the same time. */
#include "collectives/levels_steps.h"

#define PS_PER_SECOND 1000000000000ull
#define RATE_MOST     (1ull << 50) /* bit/s, where nothing limits it */
#define RATED_PARTS   5u           /* of more a way between each two is too much to look at */

bool tb_levels_packed(const struct tb_levels *l, const struct tb_level_kinds *k)
{
    return k->wide == TB_LEVEL_PACKED && l->wide && l->parts > 2 && l->parts <= TB_LEVEL_SHARES;
}

struct tb_level_shares tb_shares_alike(uint32_t count, uint32_t pieces)
{
    struct tb_level_shares shares = {.count = count};
    for (uint32_t i = 0; i <= count; i++)
        shares.low[i] = (uint32_t)((uint64_t)pieces * i / count);
    return shares;
}

static struct tb_spot spot_of(const struct tb_group_shape *s, uint32_t rank)
{
    const struct tb_shape_host *h = &s->hosts[tb_group_shape_host(s, rank)];
    return (struct tb_spot){s->places[h->place].place, h->kind, h->who};
}

/* Whether what a host sends that far all passes an uplink that is no faster. */
static bool shares_uplink(const struct tb_levels *l, uint32_t rank, uint64_t bandwidth)
{
    const struct tb_group_shape *s = l->call->shape;
    const struct tb_cost_table *table = s->table;
    uint32_t place = s->hosts[tb_group_shape_host(s, rank)].place;
    for (; place != TB_PLACE_NONE && place != l->top; place = s->places[place].parent) {
        uint32_t up = table->places[s->places[place].place].up;
        if (up != TB_COST_NONE && table->wires[up].bandwidth > 0 && table->wires[up].bandwidth <= bandwidth)
            return true;
    }
    return false;
}

/* Bytes that the root tells everyone itself. */
static uint64_t tail_bytes(const struct tb_levels *l)
{
    const struct tb_group_shape *s = l->call->shape;
    const struct tb_spot root = spot_of(s, l->root);
    uint64_t least = UINT64_MAX, slowest = 0;
    for (uint32_t i = 0; i < l->parts; i++) {
        if (l->top_parts[i].rank == l->root)
            continue;
        const struct tb_spot other = spot_of(s, l->top_parts[i].rank);
        struct tb_way_brief way = tb_cost_brief(s->table, &root, &other);
        unsigned __int128 bytes = (unsigned __int128)(way.bandwidth / 8) * way.latency / PS_PER_SECOND;
        if (way.bandwidth > 0 && bytes < least) {
            least = (uint64_t)bytes;
            slowest = way.bandwidth;
        }
    }
    if (least == UINT64_MAX)
        return 0;
    return shares_uplink(l, l->root, slowest) ? least / (l->parts - 1) : least;
}

/* The parts of the widest place in order; the number of the root's. */
static uint32_t parts_sort(const struct tb_levels *l, struct tb_spot *spots)
{
    uint32_t order[TB_LEVEL_SHARES], root = 0;
    for (uint32_t i = 0; i < l->parts; i++) {
        uint32_t at = i;
        for (; at > 0 && l->top_parts[order[at - 1]].first > l->top_parts[i].first; at--)
            order[at] = order[at - 1];
        order[at] = i;
    }
    for (uint32_t i = 0; i < l->parts; i++) {
        spots[i] = spot_of(l->call->shape, l->top_parts[order[i]].rank);
        root = l->top_parts[order[i]].rank == l->root ? i : root;
    }
    return root;
}

/* Bit/s at which a part can be the second in a tree, `hub`: it gets what it passes on from the root. */
static uint64_t hub_rate(const struct tb_levels *l, const struct tb_spot *spots, uint32_t root, uint32_t hub)
{
    uint64_t rate = RATE_MOST;
    for (uint32_t i = 0; i < l->parts; i++) {
        if (i == hub)
            continue;
        bool from = i == root; /* of a reduction the other way round */
        from = l->call->operation == TB_OPERATION_REDUCE ? !from : from;
        struct tb_way_brief way = tb_cost_brief(l->call->shape->table, &spots[from ? i : hub], &spots[from ? hub : i]);
        rate = way.bandwidth > 0 && way.bandwidth < rate ? way.bandwidth : rate;
    }
    return rate;
}

/* Shares of trees of the other parts. */
static struct tb_level_shares shares_deal(const struct tb_levels *l, uint32_t pieces, uint32_t *looks)
{
    struct tb_level_shares shares = tb_shares_alike(l->parts - 1, pieces);
    const struct tb_cost_table *table = l->call->shape->table;
    if (table == NULL || table->head->link_count == 0 || l->parts > RATED_PARTS)
        return shares;
    struct tb_spot spots[TB_LEVEL_SHARES];
    uint64_t rates[TB_LEVEL_SHARES], all = 0, before = 0;
    uint32_t root = parts_sort(l, spots);
    for (uint32_t i = 0; i < shares.count; i++)
        all += rates[i] = hub_rate(l, spots, root, (root + 1 + i) % l->parts);
    for (uint32_t i = 0; i < shares.count; i++) {
        before += rates[i];
        shares.low[i + 1] = (uint32_t)((unsigned __int128)pieces * before / all);
    }
    *looks += shares.count * shares.count;
    return shares;
}

struct tb_level_shares tb_shares_packed(const struct tb_levels *l, const struct tb_level_kinds *k, uint32_t pieces,
                                        uint32_t *looks)
{
    if (!tb_levels_packed(l, k))
        return tb_shares_alike(1, pieces);
    const struct tb_cost_table *table = l->call->shape->table;
    uint64_t bytes = l->call->elements * l->call->element_bytes, tail = pieces / l->parts; /* without costs */
    if (table != NULL && table->head->wire_count > 0 && bytes > 0) {
        unsigned __int128 all = (unsigned __int128)tail_bytes(l) * pieces;
        tail = (uint64_t)((all + bytes / 2) / bytes);
    }
    tail = tail < pieces ? tail : pieces;
    struct tb_level_shares shares = shares_deal(l, pieces - (uint32_t)tail, looks);
    shares.low[++shares.count] = pieces;
    return shares;
}
