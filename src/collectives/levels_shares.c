/* Which pieces each of several trees has that are packed into the widest stage. In those of other parts a piece crosses
 * two links one after the other, in the one of the root a single one, but once for each part. So the last pieces take
 * that one: as many as the root can send to everyone in the time that the second link takes. The others are dealt out
 * alike. Where parts are joined pairwise, that is what a link passes in its latency; where everything that the root
 * sends shares its uplink, as much for all other parts together. Both make all links end at the same time. */
#include "collectives/levels_steps.h"

#define PS_PER_SECOND 1000000000000ull

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

struct tb_level_shares tb_shares_packed(const struct tb_levels *l, const struct tb_level_kinds *k, uint32_t pieces)
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
    struct tb_level_shares shares = tb_shares_alike(l->parts - 1, pieces - (uint32_t)tail);
    shares.low[++shares.count] = pieces;
    return shares;
}
