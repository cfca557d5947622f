#include "planner/bound_cut.h"

#include <stdlib.h>
#include <string.h>

#define PS_PER_S  1000000000000u
#define RATE_MOST (1ull << 50) /* bytes a second that count */
#define RATE_FAR  TB_BOUND_UNLIMITED
#define PRECISE   65536u /* of a time one part in so many */

/* ---- wires ------------------------------------------------------------------------------------------------------- */

uint64_t tb_bound_wire_rate(const struct tb_cost_table *table, const struct tb_wire *wire)
{
    const uint64_t much = 1ull << 30;
    uint64_t time = TB_COST_NEVER;
    if (wire->curve == TB_COST_NONE) {
        time = tb_wire_time(table, wire, much) - tb_wire_time(table, wire, 0);
    } else {
        const struct tb_cost_curve *curve = &table->curves[wire->curve];
        uint64_t slope = tb_cost_at(curve, 2 * much) - tb_cost_at(curve, much);
        time = slope;
        for (uint32_t i = 1; i < curve->count; i++) {
            unsigned __int128 all = (unsigned __int128)curve->points[i].time * much / curve->points[i].bytes;
            time = all < time ? (uint64_t)all : time;
        }
    }
    unsigned __int128 rate = time > 0 ? (unsigned __int128)much * PS_PER_S / time + 1 : RATE_FAR;
    return rate > RATE_FAR ? RATE_FAR : (uint64_t)rate;
}

uint64_t tb_bound_bytes_time(uint64_t bytes, uint64_t rate)
{
    unsigned __int128 time = rate > 0 && rate != RATE_FAR ? (unsigned __int128)bytes * PS_PER_S / rate : 0;
    return time < TB_COST_NEVER ? (uint64_t)time : TB_COST_NEVER;
}

/* Where a wire's mark is: wires by their number, ports of the ends by their spots. */
static struct tb_bound_mark *mark_of(const struct tb_bound_state *s, uint32_t wire, uint32_t from, uint32_t to)
{
    if (wire == TB_WAY_OUT || wire == TB_WAY_OUT_AGENT)
        return &s->taken[2 * from];
    if (wire == TB_WAY_IN || wire == TB_WAY_IN_AGENT)
        return &s->taken[2 * to + 1];
    return &s->taken[2 * s->spot_count + wire];
}

/* A wire of a way, and how far behind its beginning it is. */
struct crossing {
    uint32_t code;
    const struct tb_wire *wire;
    uint64_t before, behind; /* latency */
    uint32_t worth;          /* how well it stands for the boundary */
    bool known;              /* it has been counted before */
};

/* That of the place itself, or of one in it that all who go there pass, rather than those of others. */
static uint32_t uplink_worth(const struct tb_bound_state *s, const struct tb_bound_cut *cut,
                             const struct tb_wire_use *use)
{
    if (cut->place == TB_BOUND_NONE)
        return 5;
    bool within = s->within[use->a] != 0 && (use->role == TB_ROLE_DOWN) == cut->in;
    return s->within[use->a] == 2 ? 8 : within ? 7 : 5;
}

/* One that crosses the boundary itself, rather than one that some of what crosses it has passed elsewhere. */
static uint32_t link_worth(const struct tb_bound_state *s, const struct tb_bound_cut *cut, uint32_t from, uint32_t to)
{
    return cut->place != TB_BOUND_NONE && (s->within[from] != 0) != (s->within[to] != 0) ? 8 : 6;
}

static uint32_t wire_worth(const struct tb_bound_state *s, const struct tb_bound_cut *cut, uint32_t code)
{
    if (code == TB_WAY_OUT_AGENT || code == TB_WAY_IN_AGENT)
        return 0;
    if (code == TB_WAY_OUT || code == TB_WAY_IN)
        return cut->host != TB_BOUND_NONE && (code == TB_WAY_IN) == cut->in ? 9 : 1;
    const struct tb_wire_use *use = &s->ways->wires[code].use;
    switch (use->role) {
    case TB_ROLE_AGENT:
        return 0;
    case TB_ROLE_UP:
    case TB_ROLE_DOWN:
        return uplink_worth(s, cut, use);
    case TB_ROLE_LINK:
        return link_worth(s, cut, s->ways->table->links[use->a].from, s->ways->table->links[use->a].to);
    case TB_ROLE_WIDE:
        return link_worth(s, cut, use->a, use->b);
    case TB_ROLE_HUB:
        return cut->host == TB_BOUND_NONE ? 4 : use->a == tb_group_shape_spot(s->shape, cut->host).place ? 9 : 7;
    default:
        return 1;
    }
}

/* The wire of a way that stands for the boundary: one that was counted before, or the best one. False: nothing limits
 * it. */
static bool way_cross(const struct tb_bound_state *s, const struct tb_bound_cut *cut, const struct tb_way *way,
                      uint32_t from, uint32_t to, struct crossing *best)
{
    uint64_t before = 0;
    bool found = false;
    for (uint32_t h = 0; h < way->hop_count; h++) {
        const struct tb_way_hop *hop = &s->ways->hops[way->first_hop + h];
        const uint32_t far = tb_way_hop_far(s->ways, hop);
        for (uint32_t i = 0; i < hop->wire_count; i++) {
            struct crossing c = {.code = s->ways->list[hop->first_wire + i]};
            uint32_t number = tb_way_wire(s->ways, hop, i, s->spots[from].host, s->spots[to].host);
            c.wire = s->ways->wires[number].wire;
            c.before = i > far ? tb_cost_add(before, hop->latency) : before;
            if (way->agents > 0 && h + i > 0) /* the sender's agent, and those that have passed it on */
                c.before = tb_cost_add(c.before, (h + 1) * s->ways->table->head->constants.agent_latency);
            c.behind = way->latency > c.before ? way->latency - c.before : 0;
            c.worth = wire_worth(s, cut, c.code);
            c.known = mark_of(s, c.code, from, to)->search == s->search;
            if (c.worth > 0 &&
                (!found || (c.known && !best->known) || (c.known == best->known && c.worth > best->worth))) {
                *best = c;
                found = true;
            }
        }
        before = tb_cost_add(before, hop->latency);
    }
    return found;
}

/* ---- cuts -------------------------------------------------------------------------------------------------------- */

/* A way across the boundary, and the wire that stands for it there. */
struct passage {
    uint32_t from, to; /* spots */
    const struct tb_way *way;
    struct crossing wire;
    bool limited; /* there is such a wire */
};

/* False: there is no memory. */
static bool passage_find(struct tb_bound_state *s, const struct tb_bound_cut *cut, uint32_t from, uint32_t to,
                         const uint32_t hosts[2], struct passage *p)
{
    *p = (struct passage){.from = from, .to = to, .way = tb_ways_between(s->ways, hosts[0], hosts[1])};
    if (p->way == NULL || !tb_bound_marks_grow(s)) {
        s->error = TB_ERR_MEMORY;
        return false;
    }
    p->limited = way_cross(s, cut, p->way, from, to, &p->wire);
    return true;
}

/* One that passes nothing, until a way is found. */
static struct tb_bound_entrance entrance_of(uint64_t rate)
{
    return (struct tb_bound_entrance){
        .rate = rate, .before = TB_COST_NEVER, .behind = TB_COST_NEVER, .apart = TB_COST_NEVER};
}

/* The first look: counts the wire, once, and how far the boundary is from the two ends. */
static void passage_count(struct tb_bound_state *s, const struct tb_bound_cut *cut, const struct passage *p)
{
    const struct crossing *c = &p->wire;
    uint32_t outside = cut->in ? p->from : p->to, inside = cut->in ? p->to : p->from;
    uint64_t outer = cut->in ? c->before : c->behind, inner = cut->in ? c->behind : c->before;
    if (p->limited && !c->known) {
        bool port = c->code == TB_WAY_OUT || c->code == TB_WAY_IN;
        uint32_t spot = c->code == TB_WAY_OUT ? p->from : p->to;
        bool own = cut->host != TB_BOUND_NONE && (c->code == TB_WAY_IN) == cut->in;
        uint64_t rate = tb_bound_wire_rate(s->ways->table, c->wire), all;
        bool far = __builtin_mul_overflow(rate, !port || own ? 1ull : s->spots[spot].hosts, &all) || all > RATE_MOST;
        *mark_of(s, c->code, p->from, p->to) = (struct tb_bound_mark){s->search, s->entrance_count};
        s->entrances[s->entrance_count++] = entrance_of(far ? RATE_FAR : all);
        if (c->wire->burst > 0)
            s->burst +=
                far ? 0 : (uint64_t)((unsigned __int128)all * c->wire->burst * TB_COST_BURST_UNIT / PS_PER_S) + 1;
    }
    uint64_t *near = s->near + (outside == inside ? s->spot_count : 0); /* the other hosts of a spot that is cut */
    near[outside] = outer < near[outside] ? outer : near[outside];
    s->near[inside] = inner < s->near[inside] ? inner : s->near[inside];
}

static uint64_t lesser(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* How far those outside are from one of them, or to it, by ways that stay outside: of what crosses the boundary more
 * than once, it is the first time that counts on the way in, and the last one on the way out. */
static void outer_find(struct tb_bound_state *s, const struct tb_bound_cut *cut, uint32_t who)
{
    const uint32_t n = s->spot_count;
    bool done[TB_BOUND_SPOTS] = {false};
    for (uint32_t i = 0; i < n; i++)
        s->outer[i] = i == who ? 0 : TB_COST_NEVER;
    for (;;) {
        uint32_t next = TB_BOUND_NONE;
        for (uint32_t i = 0; i < n; i++)
            if (!done[i] && !s->inside[i] && s->outer[i] < (next != TB_BOUND_NONE ? s->outer[next] : TB_COST_NEVER))
                next = i;
        if (next == TB_BOUND_NONE)
            return;
        done[next] = true;
        for (uint32_t i = 0; i < n; i++) {
            size_t step = cut->in ? (size_t)next * n + i : (size_t)i * n + next;
            s->outer[i] = lesser(tb_cost_add(s->outer[next], i != next ? s->step[step] : 0), s->outer[i]);
        }
    }
}

/* From who has it to a way across, or from there to who must get it; past the part itself if that is outside. */
static uint64_t reach_far(const struct tb_bound_state *s, const struct tb_bound_cut *cut, uint32_t from, uint32_t to,
                          bool outside)
{
    return outside && cut->place != TB_BOUND_NONE ? s->outer[cut->in ? to : from] : tb_bound_far(s, from, to);
}

/* The second look: when the first byte can have come to the wire from who has it, and how long before the end the last
 * one must have left it for who must get it. Bytes that differ may differ in their ways. */
static void passage_reach(struct tb_bound_state *s, const struct tb_bound_cut *cut, const struct passage *p,
                          uint32_t giver, uint32_t taker)
{
    const struct tb_cost_ends *ends = tb_way_ends(s->ways->table, p->way);
    uint64_t before = tb_cost_add(p->wire.before, tb_cost_least(&ends->send)), behind = tb_cost_least(&ends->receive);
    behind = tb_cost_add(behind, p->limited ? p->wire.behind : p->way->latency);
    if (giver != TB_BOUND_NONE)
        before = tb_cost_add(before, reach_far(s, cut, giver, p->from, cut->in));
    if (taker != TB_BOUND_NONE)
        behind = tb_cost_add(behind, reach_far(s, cut, p->to, taker, !cut->in));
    s->spent = tb_cost_at(&ends->send, 0) > s->spent ? tb_cost_at(&ends->send, 0) : s->spent;
    s->spent = tb_cost_at(&ends->receive, 0) > s->spent ? tb_cost_at(&ends->receive, 0) : s->spent;
    struct tb_bound_entrance *e = &s->entrances[p->limited ? mark_of(s, p->wire.code, p->from, p->to)->entrance : 0];
    e->before = lesser(before, e->before);
    e->behind = lesser(behind, e->behind);
    uint64_t aside = cut->groups > 0 ? s->aside[cut->in ? p->from : p->to] : 0;
    e->apart = lesser(tb_cost_add(cut->in ? before : behind, aside), e->apart);
    tb_bound_windows_add(&e->windows, (struct tb_bound_window){before, behind, aside});
}

/* Which groups the spots outside are in, and how far each is from those of others. */
static void groups_find(struct tb_bound_state *s, const struct tb_bound_cut *cut)
{
    const struct tb_shape_place *places = s->shape->places;
    for (uint32_t i = 0; i < s->spot_count; i++) {
        uint32_t place = s->shape->hosts[s->spots[i].host].place;
        while (place != TB_PLACE_NONE && places[place].parent != places[cut->place].parent)
            place = places[place].parent;
        s->group[i] = place != TB_PLACE_NONE && !s->inside[i] ? place : TB_BOUND_NONE;
    }
    for (uint32_t i = 0; i < s->spot_count; i++) {
        s->aside[i] = TB_COST_NEVER;
        for (uint32_t k = 0; k < s->spot_count; k++)
            if (s->group[k] != TB_BOUND_NONE && s->group[k] != s->group[i])
                s->aside[i] = lesser(cut->in ? tb_bound_far(s, k, i) : tb_bound_far(s, i, k), s->aside[i]);
    }
}

/* The first place of a cut, or the one behind another; TB_BOUND_NONE: there is none. */
static uint32_t cut_part(const struct tb_bound_state *s, const struct tb_bound_cut *cut, uint32_t last)
{
    const struct tb_shape_place *places = s->shape->places;
    if (cut->parts == 0)
        return last == TB_BOUND_NONE ? cut->place : TB_BOUND_NONE;
    for (uint32_t i = cut->place + 1, bit = 1; i < places[cut->place].end; i = places[i].end, bit <<= 1)
        if ((cut->parts & bit) != 0 && (last == TB_BOUND_NONE || i > last))
            return i;
    return TB_BOUND_NONE;
}

bool tb_bound_cut_has(const struct tb_bound_state *s, const struct tb_bound_cut *cut, uint32_t place)
{
    for (uint32_t i = cut_part(s, cut, TB_BOUND_NONE); i != TB_BOUND_NONE; i = cut_part(s, cut, i))
        if (place >= i && place < s->shape->places[i].end)
            return true;
    return false;
}

/* Which spots are inside, wholly or in part, and which places. */
static void cut_mark(struct tb_bound_state *s, const struct tb_bound_cut *cut)
{
    const struct tb_group_shape *shape = s->shape;
    const struct tb_cost_table *table = s->ways->table;
    for (uint32_t i = 0; i < s->spot_count; i++) {
        s->inside[i] = cut->host != TB_BOUND_NONE ? s->spot_of[cut->host] == i
                                                  : tb_bound_cut_has(s, cut, shape->hosts[s->spots[i].host].place);
        s->near[i] = s->near[s->spot_count + i] = TB_COST_NEVER;
    }
    if (cut->place == TB_BOUND_NONE)
        return;
    memset(s->within, 0, table->head->place_count * sizeof *s->within);
    for (uint32_t i = cut_part(s, cut, TB_BOUND_NONE); i != TB_BOUND_NONE; i = cut_part(s, cut, i)) {
        uint32_t first = shape->places[i].place;
        memset(s->within + first, 1, table->places[first].end - first);
        s->within[first] = 2;
    }
}

/* Of one side, where everyone has to do with everything, who is farthest from the boundary. */
static uint32_t side_farthest(const struct tb_bound_state *s, bool inside, bool away)
{
    uint64_t most = 0;
    uint32_t farthest = TB_BOUND_NONE;
    for (uint32_t j = 0; j < s->spot_count; j++) {
        uint64_t least = TB_COST_NEVER;
        bool beside = !inside && s->near[s->spot_count + j] != TB_COST_NEVER;
        if (s->inside[j] != inside && !beside)
            continue;
        for (uint32_t i = 0; i < s->spot_count; i++) {
            uint64_t far = away ? tb_bound_far(s, i, j) : tb_bound_far(s, j, i), near = s->near[i];
            if (!inside && s->inside[i])
                near = s->near[s->spot_count + i];
            else if (s->inside[i] != inside)
                near = TB_COST_NEVER;
            uint64_t by = tb_cost_add(near, far);
            least = by < least ? by : least;
        }
        if (farthest == TB_BOUND_NONE || least > most) {
            farthest = j;
            most = least;
        }
    }
    return farthest;
}

static uint32_t side_who(const struct tb_bound_state *s, const struct tb_bound_side *side, bool inside, bool away)
{
    return side->all ? side_farthest(s, inside, away) : side->only;
}

/* All ways across the boundary, the inner end of which may be a single host among others: to be counted, or, with
 * `reach`, to be gone by from the one end to the other. */
static void cut_walk(struct tb_bound_state *s, const struct tb_bound_cut *cut, bool reach, uint32_t giver,
                     uint32_t taker)
{
    uint32_t a, b;
    for (uint32_t o = 0; o < s->spot_count; o++)
        for (uint32_t i = 0; i < s->spot_count; i++) {
            bool beside = o == i && cut->host != TB_BOUND_NONE && s->spots[i].hosts > 1;
            if (!s->inside[i] || (s->inside[o] && !beside))
                continue;
            for (struct tb_bound_pairs pairs = tb_bound_pairs_of(s, o, i, cut->host);
                 tb_bound_pairs_next(s, &pairs, &a, &b);) {
                struct passage p;
                if (!passage_find(s, cut, cut->in ? o : i, cut->in ? i : o,
                                  (const uint32_t[2]){cut->in ? a : b, cut->in ? b : a}, &p))
                    continue;
                if (reach)
                    passage_reach(s, cut, &p, giver, taker);
                else
                    passage_count(s, cut, &p);
            }
        }
}

static int entrance_order(const void *a, const void *b)
{
    uint64_t x = ((const struct tb_bound_entrance *)a)->latency, y = ((const struct tb_bound_entrance *)b)->latency;
    return (x > y) - (x < y);
}

/* The least time in which all entrances together pass so many bytes, each from its own latency on, and no more at a
 * time than the cut lets them. More and more of them pass something, so that who cannot take all of it from some time
 * on cannot make up for it later. */
static uint64_t latencies_time(struct tb_bound_state *s, const struct tb_bound_cut *cut)
{
    struct tb_bound_entrance *e = s->entrances;
    unsigned __int128 rate = 0, moved = (unsigned __int128)cut->bytes * PS_PER_S, time = TB_COST_NEVER;
    qsort(e, s->entrance_count, sizeof *e, entrance_order);
    for (uint32_t i = 0; i < s->entrance_count && e[i].latency < time; i++) {
        unsigned __int128 more = e[i].rate;
        if (cut->rate > 0 && more > cut->rate - rate)
            more = cut->rate - rate;
        else if (e[i].rate == RATE_FAR)
            return e[i].latency;
        rate += more;
        moved += more * e[i].latency;
        time = rate > 0 ? moved / rate : TB_COST_NEVER;
        if (rate == cut->rate)
            break;
    }
    return time > TB_COST_NEVER ? TB_COST_NEVER : (uint64_t)time;
}

/* The same if all ends at `end`, until when each cannot pass anything for some time. */
static uint64_t time_until(struct tb_bound_state *s, const struct tb_bound_cut *cut, uint64_t end)
{
    for (uint32_t i = 0; i < s->entrance_count; i++) {
        struct tb_bound_entrance *e = &s->entrances[i];
        e->latency = tb_bound_windows_shut(&e->windows, end);
    }
    return latencies_time(s, cut);
}

/* The same, if possible closer than with the latency that each has at least: between that and what single ways take it
 * grows shorter the later the end is, and the earliest end that is late enough for its own ones is the least time. */
static uint64_t entrances_time(struct tb_bound_state *s, const struct tb_bound_cut *cut)
{
    bool several = false;
    for (uint32_t i = 0; i < s->entrance_count; i++) {
        struct tb_bound_entrance *e = &s->entrances[i];
        e->latency = tb_cost_add(e->before, e->behind);
        several = several || e->windows.count > 1;
    }
    uint64_t low = latencies_time(s, cut);
    if (!s->thorough || !several || low == TB_COST_NEVER)
        return low;
    for (uint32_t i = 0; i < s->entrance_count; i++)
        s->entrances[i].latency = tb_bound_windows_least(&s->entrances[i].windows);
    uint64_t high = latencies_time(s, cut);
    while (high != TB_COST_NEVER && low < high && high - low > low / PRECISE) {
        uint64_t end = low + (high - low) / 2;
        if (time_until(s, cut, end) > end)
            low = end;
        else
            high = end;
    }
    return low;
}

/* All wires by which something passes the boundary, and from when on and until when. */
static void entrances_find(struct tb_bound_state *s, const struct tb_bound_cut *cut)
{
    s->search++;
    /* The first stands for ways that nothing limits. */
    s->entrances[0] = entrance_of(RATE_FAR);
    s->entrance_count = 1;
    s->spent = s->burst = 0;
    cut_mark(s, cut);
    if (cut->groups > 0)
        groups_find(s, cut);
    cut_walk(s, cut, false, TB_BOUND_NONE, TB_BOUND_NONE);
    uint32_t outside = side_who(s, &cut->outside, false, !cut->in), inside = side_who(s, &cut->inside, true, cut->in);
    if (cut->place != TB_BOUND_NONE && outside != TB_BOUND_NONE)
        outer_find(s, cut, outside);
    cut_walk(s, cut, true, cut->in ? outside : inside, cut->in ? inside : outside);
}

/* Of what leaves the root's place for several groups, a byte either leaves it once for each of them, or gets to one of
 * them by way of another, and has left it earlier by what lies between the two. If of all bytes the part x leaves k
 * times, k x + (1 - x) must pass until the end, and 1 - x early enough: together no more than if one in k parts of each
 * wire could be used until the end, and the others only so long. A reduction is the same in the other direction. */
static void entrances_part(struct tb_bound_state *s, const struct tb_bound_cut *cut)
{
    uint32_t count = s->entrance_count;
    for (uint32_t i = 0; cut->groups > 1 && i < count; i++) {
        struct tb_bound_entrance *e = &s->entrances[i], *early = &s->entrances[s->entrance_count];
        if (e->rate == RATE_FAR)
            continue;
        *early = *e;
        *(cut->in ? &early->before : &early->behind) = e->apart;
        tb_bound_windows_narrow(&early->windows, cut->in);
        early->rate -= e->rate / cut->groups;
        e->rate = e->rate / cut->groups + 1;
        s->entrance_count++;
    }
}

/* The cut for what does not pass at once; the bucket of who must get it fills again while that of the boundary is
 * empty, so that both count. */
static struct tb_bound_cut without_burst(const struct tb_bound_cut *cut, uint64_t burst)
{
    struct tb_bound_cut rest = *cut;
    burst += cut->burst;
    rest.bytes = cut->bytes > burst ? cut->bytes - burst : 0;
    return rest;
}

static uint64_t bound_time(struct tb_bound_state *s, const struct tb_bound_cut *cut, uint64_t *latency)
{
    uint64_t time = entrances_time(s, cut);
    if (s->error != TB_OK || time == TB_COST_NEVER || time <= cut->spent)
        return 0;
    *latency = s->entrances[0].latency > cut->spent ? s->entrances[0].latency - cut->spent : 0;
    return time - cut->spent;
}

uint64_t tb_bound_cut_time(struct tb_bound_state *s, const struct tb_bound_cut *cut, uint64_t *latency)
{
    *latency = 0;
    if (cut->bytes == 0)
        return 0;
    entrances_find(s, cut);
    entrances_part(s, cut);
    const struct tb_bound_cut rest = without_burst(cut, s->burst);
    return bound_time(s, &rest, latency);
}

uint64_t tb_bound_host_rate(struct tb_bound_state *s, uint32_t host, bool in, uint64_t *spent)
{
    const struct tb_bound_cut cut = {
        .host = host, .place = TB_BOUND_NONE, .in = in, .inside.only = TB_BOUND_NONE, .outside.only = TB_BOUND_NONE};
    uint64_t rate = 0;
    entrances_find(s, &cut);
    *spent = s->spent;
    for (uint32_t i = 0; i < s->entrance_count; i++) {
        if (s->entrances[i].rate == RATE_FAR && s->entrances[i].before != TB_COST_NEVER)
            return 0;
        rate += s->entrances[i].rate != RATE_FAR ? s->entrances[i].rate : 0;
    }
    return rate;
}

uint64_t tb_bound_children_time(struct tb_bound_state *s, uint32_t parent, uint64_t bytes, uint64_t *latency)
{
    const struct tb_shape_place *places = s->shape->places;
    struct tb_bound_entrance *all = NULL;
    uint64_t burst = 0;
    uint32_t count = 0;
    *latency = 0;
    for (uint32_t i = parent + 1; i < places[parent].end && s->error == TB_OK; i = places[i].end) {
        const struct tb_bound_cut cut = {.host = TB_BOUND_NONE,
                                         .place = i,
                                         .in = true,
                                         .bytes = bytes,
                                         .inside.only = TB_BOUND_NONE,
                                         .outside.only = TB_BOUND_NONE};
        entrances_find(s, &cut);
        struct tb_bound_entrance *more = realloc(all, (count + (size_t)s->entrance_count) * sizeof *all);
        if (more == NULL) {
            s->error = TB_ERR_MEMORY;
            break;
        }
        all = more;
        memcpy(all + count, s->entrances, s->entrance_count * sizeof *all);
        count += s->entrance_count;
        burst += s->burst;
    }
    struct tb_bound_entrance *mine = s->entrances;
    uint64_t time = 0;
    if (s->error == TB_OK && count > 0) {
        s->entrances = all;
        s->entrance_count = count;
        const struct tb_bound_cut rest = without_burst(&(struct tb_bound_cut){.bytes = bytes}, burst);
        time = bound_time(s, &rest, latency);
        s->entrances = mine;
    }
    free(all);
    return time;
}
