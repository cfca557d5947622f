#include "topology/way.h"
#include "topology/hops.h"

#include <stdlib.h>
#include <string.h>

/* ---- who connects ------------------------------------------------------------------------------------------------ */

static uint32_t outermost(const struct tb_cost_table *t, uint32_t place)
{
    while (t->places[place].level == TB_LEVEL_CLUSTER && t->places[t->places[place].parent].level == TB_LEVEL_CLUSTER)
        place = t->places[place].parent;
    return place;
}

/* Whether some of their feet stand in one outermost cluster. */
static bool have_one_root(const struct tb_cost_table *t, const struct tb_spot *from, const struct tb_spot *to)
{
    for (uint32_t i = 0; i < tb_cost_feet_of(t, from); i++)
        for (uint32_t k = 0; k < tb_cost_feet_of(t, to); k++)
            if (outermost(t, tb_cost_foot_of(t, from, i).place) == outermost(t, tb_cost_foot_of(t, to, k).place))
                return true;
    return false;
}

/* Whether the link between outermost clusters or sites that they cross is direct, in both directions. */
static bool cross_directly(const struct tb_cost_table *t, const struct tb_wire_use *uses, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        const struct tb_link_cost *link = &t->links[uses[i].a];
        if (uses[i].role == TB_ROLE_LINK && outermost(t, link->from) != outermost(t, link->to))
            return (link->flags & TB_LINK_DIRECT) != 0 && link->back != TB_COST_NONE &&
                   (t->links[link->back].flags & TB_LINK_DIRECT) != 0;
    }
    return false;
}

/* The same between some of their feet, of which one can connect to the other. */
static bool feet_cross_directly(const struct tb_cost_table *t, const struct tb_spot *from, const struct tb_spot *to)
{
    struct tb_wire_use uses[TB_HOP_WIRES_LIMIT];
    uint64_t latency;
    for (uint32_t i = 0; i < tb_cost_feet_of(t, from); i++)
        for (uint32_t k = 0; k < tb_cost_feet_of(t, to); k++) {
            struct tb_cost_foot a = tb_cost_foot_of(t, from, i), b = tb_cost_foot_of(t, to, k);
            uint32_t count = tb_cost_feet_wires(t, from, a.place, to, b.place, uses, &latency);
            if (cross_directly(t, uses, count) && tb_cost_feet_connect(t, &a, &b))
                return true;
        }
    return false;
}

/* `uses` is their way. Where a host stands in several clusters it is open if one way between them is. */
static bool is_open(const struct tb_cost_table *t, const struct tb_spot *from, const struct tb_spot *to,
                    const struct tb_wire_use *uses, uint32_t count)
{
    uint32_t flags = t->head->constants.flags;
    if ((flags & TB_COSTS_CLOSED) != 0)
        return false;
    if ((flags & TB_COSTS_GRID) == 0 || have_one_root(t, from, to) || cross_directly(t, uses, count))
        return true;
    bool several = tb_cost_feet_of(t, from) > 1 || tb_cost_feet_of(t, to) > 1;
    return several && feet_cross_directly(t, from, to);
}

/* ---- without a workspace ----------------------------------------------------------------------------------------- */

static void brief_add(struct tb_way_brief *brief, const struct tb_cost_table *t, uint32_t wire)
{
    uint64_t rate = t->wires[wire].bandwidth;
    if (rate != 0 && (brief->bandwidth == 0 || rate < brief->bandwidth))
        brief->bandwidth = rate;
}

struct tb_way_brief tb_cost_brief(const struct tb_cost_table *t, const struct tb_spot *from, const struct tb_spot *to)
{
    struct tb_spot hosts[TB_HOPS_LIMIT + 1];
    struct tb_wire_use uses[TB_HOP_WIRES_LIMIT];
    struct tb_way_brief brief = {.hops = 1 + tb_cost_hops(t, from, to, 0, hosts)};
    hosts[brief.hops - 1] = *to;
    bool open = false;
    for (uint32_t i = 0; i < brief.hops; i++) {
        const struct tb_spot *begin = i > 0 ? &hosts[i - 1] : from;
        uint64_t latency;
        uint32_t count = tb_cost_hop_wires(t, begin, &hosts[i], uses, &latency);
        brief.latency = tb_cost_add(brief.latency, latency);
        for (uint32_t k = 0; k < count; k++)
            brief_add(&brief, t, uses[k].wire);
        open = brief.hops == 1 && is_open(t, from, to, uses, count);
    }
    if (!open) {
        brief.agents = brief.hops + 1; /* those of the two hosts, and of each that passes it on */
        brief.latency = tb_cost_add(brief.latency, brief.agents * t->head->constants.agent_latency);
        brief_add(&brief, t, t->head->constants.agent);
    }
    return brief;
}

/* ---- the workspace ----------------------------------------------------------------------------------------------- */

/* Ways between two spots: `variants` of them from `first` on, for different gateways; not all may be found yet. */
struct way_pair {
    uint32_t from, to; /* spots */
    uint32_t first, variants;
};

struct tb_ways_index {
    uint32_t *spots; /* of each host of the group: the first host at the same one */
    struct way_pair *pairs;
    uint32_t pair_count, pair_room, way_room, hop_count, hop_room, list_count, list_room, wire_room;
    struct tb_hash_table known_pairs;
    struct tb_hash_table known_wires; /* that are no host's own */
    struct tb_hash_table known_hosts; /* that are told apart */
};

static uint32_t hash_of(uint32_t a, uint32_t b, uint32_t c)
{
    return tb_hash_fold(tb_hash_number(tb_hash_number(tb_hash_number(TB_HASH_BASIS, a), b), c));
}

/* Makes room for `more` elements behind `count`. */
static bool room_make(void **data, uint32_t *room, uint32_t count, uint32_t more, size_t size)
{
    uint64_t wanted = (uint64_t)count + more, next = *room == 0 ? 16 : *room;
    if (wanted <= *room)
        return true;
    while (next < wanted)
        next *= 2;
    void *grown = next <= UINT32_MAX ? realloc(*data, next * size) : NULL;
    if (grown == NULL)
        return false;
    *data = grown;
    *room = (uint32_t)next;
    return true;
}

/* The host of the group that is this host of the book; TB_HASH_NONE: it is not in it. */
static uint32_t host_find(const struct tb_ways *ways, uint32_t who)
{
    uint32_t hash = hash_of(who, 0, 0), at = hash, host;
    while ((host = tb_hash_table_next(&ways->index->known_hosts, hash, &at)) != TB_HASH_NONE)
        if (ways->shape->hosts[host].who == who)
            break;
    return host;
}

/* The spot of each host, as the first host that is there. */
static bool spots_find(struct tb_ways *ways)
{
    const struct tb_group_shape *s = ways->shape;
    struct tb_hash_table known = {0};
    bool room = true;
    for (uint32_t i = 0; i < s->host_count && room; i++) {
        const struct tb_shape_host *h = &s->hosts[i];
        uint32_t hash = hash_of(h->place, h->kind, h->who), at = hash, found;
        while ((found = tb_hash_table_next(&known, hash, &at)) != TB_HASH_NONE) {
            const struct tb_shape_host *other = &s->hosts[found];
            if (other->place == h->place && other->kind == h->kind && other->who == h->who)
                break;
        }
        ways->index->spots[i] = found != TB_HASH_NONE ? found : i;
        if (found == TB_HASH_NONE)
            room = tb_hash_table_add(&known, hash, i) == TB_OK;
        if (found == TB_HASH_NONE && h->who != TB_COST_NONE && room)
            room = tb_hash_table_add(&ways->index->known_hosts, hash_of(h->who, 0, 0), i) == TB_OK;
    }
    tb_hash_table_close(&known);
    return room;
}

/* The ports and the agent of each host. */
static void host_wires(struct tb_ways *ways)
{
    const struct tb_cost_table *t = ways->table;
    for (uint32_t i = 0; i < ways->shape->host_count; i++) {
        struct tb_spot spot = tb_group_shape_spot(ways->shape, i);
        uint32_t own = t->kinds[spot.kind].port, port = own != TB_COST_NONE ? own : t->places[spot.place].port;
        uint32_t agent = t->head->constants.agent;
        struct tb_way_wire *wires = &ways->wires[3 * (size_t)i];
        wires[0] = (struct tb_way_wire){&t->wires[port], {port, TB_ROLE_PORT_OUT, spot.who, spot.place}};
        wires[1] = (struct tb_way_wire){&t->wires[port], {port, TB_ROLE_PORT_IN, spot.who, spot.place}};
        wires[2] = (struct tb_way_wire){&t->wires[agent], {agent, TB_ROLE_AGENT, spot.who, 0}};
    }
}

int tb_ways_open(struct tb_ways *ways, const struct tb_cost_table *table, const struct tb_group_shape *shape)
{
    *ways = (struct tb_ways){.table = table, .shape = shape, .wire_count = 3 * shape->host_count};
    ways->index = calloc(1, sizeof *ways->index);
    if (ways->index == NULL)
        return tb_error(TB_ERR_MEMORY, "no memory for ways between hosts");
    ways->index->spots = malloc(shape->host_count * sizeof *ways->index->spots);
    if (ways->index->spots == NULL || !spots_find(ways) ||
        !room_make((void **)&ways->wires, &ways->index->wire_room, 0, ways->wire_count, sizeof *ways->wires)) {
        tb_ways_close(ways);
        return tb_error(TB_ERR_MEMORY, "no memory for ways between %u hosts", shape->host_count);
    }
    host_wires(ways);
    return TB_OK;
}

void tb_ways_close(struct tb_ways *ways)
{
    struct tb_ways_index *index = ways->index;
    if (index != NULL) {
        free(index->spots);
        free(index->pairs);
        tb_hash_table_close(&index->known_pairs);
        tb_hash_table_close(&index->known_wires);
        tb_hash_table_close(&index->known_hosts);
        free(index);
    }
    free(ways->wires);
    free(ways->ways);
    free(ways->hops);
    free(ways->list);
    *ways = (struct tb_ways){.table = NULL};
}

/* ---- finding a way ----------------------------------------------------------------------------------------------- */

/* The number of a wire that is no end's own. False: no memory. */
static bool wire_number(struct tb_ways *ways, const struct tb_wire_use *use, uint32_t *number)
{
    struct tb_ways_index *index = ways->index;
    bool agent = use->role == TB_ROLE_AGENT, port = use->role == TB_ROLE_PORT_OUT || use->role == TB_ROLE_PORT_IN;
    uint32_t host = agent || port ? host_find(ways, use->a) : TB_HASH_NONE;
    if (host != TB_HASH_NONE && (agent || ways->wires[3 * (size_t)host].use.b == use->b)) {
        *number = 3 * host + (agent ? 2 : use->role == TB_ROLE_PORT_IN);
        return true;
    }
    uint32_t hash = hash_of(use->role, use->a, use->b), at = hash;
    while ((*number = tb_hash_table_next(&index->known_wires, hash, &at)) != TB_HASH_NONE) {
        const struct tb_wire_use *other = &ways->wires[*number].use;
        if (other->role == use->role && other->a == use->a && other->b == use->b)
            return true;
    }
    *number = ways->wire_count;
    if (!room_make((void **)&ways->wires, &index->wire_room, *number, 1, sizeof *ways->wires) ||
        tb_hash_table_add(&index->known_wires, hash, *number) != TB_OK)
        return false;
    ways->wires[ways->wire_count++] = (struct tb_way_wire){&ways->table->wires[use->wire], *use};
    return true;
}

/* A way that is being found. */
struct way_search {
    struct tb_ways *ways;
    struct tb_spot hosts[TB_HOPS_LIMIT + 2]; /* on it, with both ends */
    struct tb_way way;
    struct tb_way_hop hops[TB_HOPS_LIMIT + 1];
    uint64_t ends_rate; /* of the wire whose measured ends count so far */
    uint32_t count;
    struct way_part {
        uint32_t number, hop;
        const struct tb_wire *wire;
        bool agent;
    } parts[(TB_HOPS_LIMIT + 1) * (TB_HOP_WIRES_LIMIT + 2)];
};

/* Whether it is the port of a host where it stands, which has a number of its own in the group. */
static bool is_own_port(const struct tb_wire_use *use, const struct tb_spot *spot)
{
    return (use->role == TB_ROLE_PORT_OUT || use->role == TB_ROLE_PORT_IN) && use->a == spot->who &&
           use->b == spot->place;
}

/* Adds a wire; `own` stands for it in the list if it is that of an end of the way, which differs between hosts at the
 * same spot. */
static bool search_add(struct way_search *s, uint32_t hop, const struct tb_wire_use *use, const uint32_t *own)
{
    const struct tb_wire *wire = &s->ways->table->wires[use->wire];
    bool near = use->role == TB_ROLE_PORT_OUT || use->role == TB_ROLE_PORT_IN || use->role == TB_ROLE_HUB;
    uint64_t rate = wire->bandwidth == 0 ? UINT64_MAX : wire->bandwidth;
    if (rate < (s->way.slowest == 0 ? UINT64_MAX : s->way.slowest))
        s->way.slowest = rate;
    /* What was measured in a cluster does not hold for ranks that speak through agents. */
    if (wire->ends != TB_COST_NONE && (s->way.agents == 0 || !near) && rate < s->ends_rate) {
        s->ends_rate = rate;
        s->way.ends = TB_ENDS_COUNT + wire->ends;
    }
    if (wire->bandwidth == 0 && wire->curve == TB_COST_NONE)
        return true; /* without a limit it takes no time */
    struct way_part *part = &s->parts[s->count++];
    *part = (struct way_part){.hop = hop, .wire = wire, .agent = use->role == TB_ROLE_AGENT};
    if (own == NULL)
        return wire_number(s->ways, use, &part->number);
    part->number = *own;
    return true;
}

/* The wires of a hop, in order, behind the agent that sends on it; the last agent comes at the end. */
static bool search_hop(struct way_search *s, uint32_t hop)
{
    static const uint32_t out = TB_WAY_OUT, in = TB_WAY_IN, out_agent = TB_WAY_OUT_AGENT, in_agent = TB_WAY_IN_AGENT;
    const struct tb_cost_table *t = s->ways->table;
    const struct tb_spot *from = &s->hosts[hop], *to = &s->hosts[hop + 1];
    struct tb_wire_use uses[TB_HOP_WIRES_LIMIT];
    struct tb_wire_use agent = {t->head->constants.agent, TB_ROLE_AGENT, from->who, 0};
    struct tb_way_hop *row = &s->hops[hop];
    bool first = hop == 0, last = hop + 1 == s->way.hop_count, room = true;
    *row = (struct tb_way_hop){.relay = last ? TB_COST_NONE : to->who};
    uint32_t count = tb_cost_hop_wires(t, from, to, uses, &row->latency);
    if (s->way.hop_count == 1 && is_open(t, from, to, uses, count)) {
        s->way.agents = 0;
        s->way.ends = TB_ENDS_TCP;
    }
    s->way.latency = tb_cost_add(s->way.latency, row->latency);
    if (s->way.agents > 0)
        room = search_add(s, hop, &agent, first ? &out_agent : NULL);
    for (uint32_t i = 0; i < count && room; i++) {
        bool is_out = first && i == 0 && is_own_port(&uses[i], from);
        bool is_in = last && i + 1 == count && is_own_port(&uses[i], to);
        room = search_add(s, hop, &uses[i], is_out ? &out : is_in ? &in : NULL);
    }
    agent.a = to->who;
    if (s->way.agents > 0 && last && room)
        room = search_add(s, hop, &agent, &in_agent);
    return room;
}

/* Leaves out the fastest ones of too many. */
static void search_trim(struct way_search *s)
{
    while (s->count > TB_WAY_WIRES) {
        uint32_t fastest = 0;
        for (uint32_t i = 1; i < s->count; i++)
            if (s->parts[i].wire->bandwidth > s->parts[fastest].wire->bandwidth)
                fastest = i;
        s->count--;
        memmove(&s->parts[fastest], &s->parts[fastest + 1], (s->count - fastest) * sizeof s->parts[0]);
    }
}

/* Puts what was found behind the rest. */
static bool search_store(struct way_search *s, struct tb_way *way)
{
    struct tb_ways *ways = s->ways;
    struct tb_ways_index *index = ways->index;
    if (!room_make((void **)&ways->list, &index->list_room, index->list_count, s->count, sizeof *ways->list) ||
        !room_make((void **)&ways->hops, &index->hop_room, index->hop_count, s->way.hop_count, sizeof *ways->hops))
        return false;
    s->way.first_hop = index->hop_count;
    s->way.frame = tb_frame_bytes(s->way.slowest);
    uint32_t at = 0;
    for (uint32_t hop = 0; hop < s->way.hop_count; hop++) {
        struct tb_way_hop *row = &s->hops[hop];
        row->first_wire = index->list_count;
        for (; at < s->count && s->parts[at].hop == hop; at++) {
            const struct way_part *part = &s->parts[at];
            uint64_t time = tb_wire_time(ways->table, part->wire, s->way.frame);
            if (s->way.agents > 0 && !part->agent && time > row->store)
                row->store = time;
            ways->list[index->list_count++] = part->number;
            row->wire_count++;
        }
        ways->hops[index->hop_count++] = *row;
    }
    *way = s->way;
    return true;
}

static bool way_find(struct tb_ways *ways, const struct way_pair *pair, uint32_t variant)
{
    const struct tb_cost_table *t = ways->table;
    struct way_search s;
    struct tb_spot from = tb_group_shape_spot(ways->shape, pair->from), to = tb_group_shape_spot(ways->shape, pair->to);
    uint32_t between = tb_cost_hops(t, &from, &to, variant, &s.hosts[1]);
    s.ways = ways;
    s.ends_rate = UINT64_MAX;
    s.count = 0;
    s.hosts[0] = from;
    s.hosts[between + 1] = to;
    s.way = (struct tb_way){.hop_count = between + 1, .agents = between + 2, .ends = TB_ENDS_AGENTS};
    for (uint32_t hop = 0; hop <= between; hop++)
        if (!search_hop(&s, hop))
            return false;
    s.way.latency = tb_cost_add(s.way.latency, s.way.agents * t->head->constants.agent_latency);
    search_trim(&s);
    return search_store(&s, &ways->ways[pair->first + variant]);
}

/* What is known of two spots; NULL: no memory, or there are too many. */
static const struct way_pair *pair_get(struct tb_ways *ways, uint32_t from, uint32_t to)
{
    struct tb_ways_index *index = ways->index;
    uint32_t hash = hash_of(from, to, 0), at = hash, found;
    while ((found = tb_hash_table_next(&index->known_pairs, hash, &at)) != TB_HASH_NONE)
        if (index->pairs[found].from == from && index->pairs[found].to == to)
            return &index->pairs[found];
    struct tb_spot a = tb_group_shape_spot(ways->shape, from), b = tb_group_shape_spot(ways->shape, to);
    struct way_pair pair = {from, to, ways->way_count, tb_cost_variants(ways->table, &a, &b)};
    if (pair.variants > TB_WAYS_LIMIT - ways->way_count) {
        tb_error(TB_ERR_LIMIT, "more than %u ways between hosts", TB_WAYS_LIMIT);
        return NULL;
    }
    if (!room_make((void **)&index->pairs, &index->pair_room, index->pair_count, 1, sizeof *index->pairs) ||
        !room_make((void **)&ways->ways, &index->way_room, ways->way_count, pair.variants, sizeof *ways->ways) ||
        tb_hash_table_add(&index->known_pairs, hash, index->pair_count) != TB_OK) {
        tb_error(TB_ERR_MEMORY, "no memory for ways between hosts");
        return NULL;
    }
    memset(&ways->ways[ways->way_count], 0, pair.variants * sizeof *ways->ways);
    ways->way_count += pair.variants;
    index->pairs[index->pair_count] = pair;
    return &index->pairs[index->pair_count++];
}

uint32_t tb_ways_variants(struct tb_ways *ways, uint32_t from_host, uint32_t to_host)
{
    const struct way_pair *pair = pair_get(ways, ways->index->spots[from_host], ways->index->spots[to_host]);
    return pair != NULL ? pair->variants : 0;
}

const struct tb_way *tb_ways_between(struct tb_ways *ways, uint32_t from_host, uint32_t to_host)
{
    TB_ASSERT(from_host != to_host);
    const struct way_pair *pair = pair_get(ways, ways->index->spots[from_host], ways->index->spots[to_host]);
    if (pair == NULL)
        return NULL;
    /* Agents deal pairs of hosts out by a hash, too. */
    uint32_t variant = pair->variants > 1 ? hash_of(from_host, to_host, 0) % pair->variants : 0;
    struct tb_way *way = &ways->ways[pair->first + variant];
    if (way->hop_count == 0 && !way_find(ways, pair, variant)) {
        tb_error(TB_ERR_MEMORY, "no memory for ways between hosts");
        return NULL;
    }
    return way;
}

uint32_t tb_way_hop_far(const struct tb_ways *ways, const struct tb_way_hop *hop)
{
    for (uint32_t i = 0; i < hop->wire_count; i++) {
        uint32_t wire = ways->list[hop->first_wire + i];
        bool of_end = wire >= TB_WAY_IN_AGENT;
        if (of_end ? wire == TB_WAY_OUT || wire == TB_WAY_IN : ways->wires[wire].use.role != TB_ROLE_AGENT)
            return i;
    }
    return 0;
}
