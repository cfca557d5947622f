/* Which wires one connection crosses. Clusters are networks, and so is any other place with hosts; what lies around the
 * outermost ones is the wide area. The way climbs from one foot as far as the network where both meet, crosses it, and
 * descends to the other foot. */
#include "topology/hop_wires.h"

#define PS_PER_S     1000000000000u
#define SAMPLE_BYTES 16384u /* of the message by which ways between several feet are compared */

/* The networks that are left on the way outward, from inside to outside; those around both ends are not in it. */
struct ladder {
    uint32_t steps;
    uint32_t begin; /* the first that counts: a gateway begins where it leads to the outside */
    uint32_t rungs[TB_PLACES_DEPTH_LIMIT];
    const struct tb_spot *spot;
    uint32_t port; /* its own wire; TB_COST_NONE */
};

struct trip {
    const struct tb_cost_table *table;
    struct tb_wire_use *uses;
    uint32_t count;
    uint64_t latency;
};

static void ladder_make(const struct tb_cost_table *t, uint32_t foot, const struct tb_spot *spot, struct ladder *ladder)
{
    *ladder = (struct ladder){.spot = spot, .port = t->kinds[spot->kind].port};
    ladder->rungs[ladder->steps++] = foot;
    while (t->places[foot].level == TB_LEVEL_CLUSTER && t->places[t->places[foot].parent].level == TB_LEVEL_CLUSTER) {
        foot = t->places[foot].parent;
        ladder->rungs[ladder->steps++] = foot;
    }
}

/* Takes away what is around both. */
static void ladders_part(struct ladder *a, struct ladder *b)
{
    while (a->steps > 0 && b->steps > 0 && a->rungs[a->steps - 1] == b->rungs[b->steps - 1]) {
        a->steps--;
        b->steps--;
    }
}

static void ladder_begin(const struct tb_cost_table *t, struct ladder *ladder)
{
    uint32_t gate_of = t->kinds[ladder->spot->kind].gate_of;
    for (uint32_t i = 0; i < ladder->steps && gate_of != TB_COST_NONE; i++)
        if (ladder->rungs[i] == gate_of)
            ladder->begin = i + 1; /* behind what it need not cross, before the uplink of this very rung */
}

static void trip_add(struct trip *trip, uint32_t wire, enum tb_wire_role role, uint32_t a, uint32_t b)
{
    trip->latency = tb_cost_add(trip->latency, trip->table->wires[wire].latency);
    if (trip->count < TB_HOP_WIRES_LIMIT)
        trip->uses[trip->count++] = (struct tb_wire_use){.wire = wire, .role = (uint8_t)role, .a = a, .b = b};
}

/* The port of one end: inside its foot, or, of a gateway, outside; there only if it says a rate of its own. */
static void trip_add_port(struct trip *trip, const struct ladder *ladder, bool in)
{
    const struct tb_cost_table *t = trip->table;
    uint32_t foot = ladder->rungs[0], wire = ladder->port;
    if (ladder->begin == 0) {
        wire = wire != TB_COST_NONE ? wire : t->places[foot].port;
        trip->latency = tb_cost_add(trip->latency, t->places[foot].near);
    } else {
        uint32_t around = t->places[ladder->rungs[ladder->begin - 1]].parent;
        foot = t->places[around].level == TB_LEVEL_CLUSTER ? around : 0;
    }
    if (wire == TB_COST_NONE)
        return;
    if (ladder->begin == 0 && t->places[foot].hub)
        trip_add(trip, wire, TB_ROLE_HUB, foot, 0);
    else
        trip_add(trip, wire, in && !t->wires[wire].half ? TB_ROLE_PORT_IN : TB_ROLE_PORT_OUT, ladder->spot->who, foot);
}

static void trip_add_uplink(struct trip *trip, uint32_t place, bool in)
{
    const struct tb_cost_place *p = &trip->table->places[place];
    uint32_t wire = in ? p->down : p->up;
    if (wire != TB_COST_NONE)
        trip_add(trip, wire, in && !trip->table->wires[wire].half ? TB_ROLE_DOWN : TB_ROLE_UP, place, 0);
}

static void trip_add_link(struct trip *trip, uint32_t link)
{
    const struct tb_link_cost *l = &trip->table->links[link];
    bool half = trip->table->wires[l->wire].half != 0;
    trip_add(trip, l->wire, TB_ROLE_LINK, half && l->back < link ? l->back : link, 0);
}

/* Uplinks, and links to the network around, of the rungs of one side; of the last one the link is left out where one
 * between neighbours stands for it. */
static void trip_add_rung(struct trip *trip, const struct ladder *ladder, uint32_t i, uint32_t from_host,
                          uint32_t to_host, bool linked, bool in)
{
    const struct tb_cost_table *t = trip->table;
    uint32_t rung = ladder->rungs[i], around = t->places[rung].parent;
    bool nested = t->places[rung].level == TB_LEVEL_CLUSTER && t->places[around].level == TB_LEVEL_CLUSTER;
    uint32_t link = TB_COST_NONE;
    if (nested && linked)
        link = in ? tb_cost_link_find(t, around, from_host, rung, to_host)
                  : tb_cost_link_find(t, rung, from_host, around, to_host);
    if (in && link != TB_COST_NONE)
        trip_add_link(trip, link);
    trip_add_uplink(trip, rung, in);
    if (!in && link != TB_COST_NONE)
        trip_add_link(trip, link);
}

/* Whether it, or its site, has an uplink; then nothing else is assumed between it and others. */
static bool has_uplink(const struct tb_cost_table *t, uint32_t place)
{
    uint32_t site = tb_cost_site_of(t, place);
    return t->places[place].up != TB_COST_NONE || (site != TB_PLACE_NONE && t->places[site].up != TB_COST_NONE);
}

/* Between the outermost rungs of both sides: uplinks of sites, and the link or what is assumed. */
static void trip_cross(struct trip *trip, uint32_t from, uint32_t to, uint32_t link)
{
    const struct tb_cost_table *t = trip->table;
    bool wide = t->places[from].level != TB_LEVEL_CLUSTER || t->places[to].level != TB_LEVEL_CLUSTER ||
                t->places[t->places[from].parent].level != TB_LEVEL_CLUSTER;
    uint32_t out = tb_cost_site_of(t, from), in = tb_cost_site_of(t, to);
    bool leaves = wide && out != in;
    if (leaves && out != TB_PLACE_NONE && out != from)
        trip_add_uplink(trip, out, false);
    if (link != TB_COST_NONE)
        trip_add_link(trip, link);
    else if (wide && !has_uplink(t, from) && !has_uplink(t, to))
        trip_add(trip, t->head->constants.wide, TB_ROLE_WIDE, from, to);
    if (leaves && in != TB_PLACE_NONE && in != to)
        trip_add_uplink(trip, in, true);
}

static void trip_inside(struct trip *trip, const struct ladder *from, const struct ladder *to)
{
    const struct tb_cost_table *t = trip->table;
    uint32_t foot = from->rungs[0];
    trip->latency = t->places[foot].near;
    if (t->places[foot].hub) {
        trip_add(trip, t->places[foot].port, TB_ROLE_HUB, foot, 0);
        return;
    }
    uint32_t out = from->port != TB_COST_NONE ? from->port : t->places[foot].port;
    uint32_t in = to->port != TB_COST_NONE ? to->port : t->places[foot].port;
    trip_add(trip, out, TB_ROLE_PORT_OUT, from->spot->who, foot);
    trip_add(trip, in, t->wires[in].half ? TB_ROLE_PORT_OUT : TB_ROLE_PORT_IN, to->spot->who, foot);
}

uint32_t tb_cost_feet_wires(const struct tb_cost_table *table, const struct tb_spot *from, uint32_t from_foot,
                            const struct tb_spot *to, uint32_t to_foot, struct tb_wire_use *uses, uint64_t *latency)
{
    struct trip trip = {.table = table, .uses = uses};
    struct ladder up, down;
    ladder_make(table, from_foot, from, &up);
    ladder_make(table, to_foot, to, &down);
    if (from_foot == to_foot) {
        trip_inside(&trip, &up, &down);
        *latency = trip.latency;
        return trip.count;
    }
    ladders_part(&up, &down);
    ladder_begin(table, &up);
    ladder_begin(table, &down);
    bool across = up.steps > 0 && down.steps > 0; /* then the two outermost are neighbours, perhaps with a link */
    uint32_t link =
        across ? tb_cost_link_find(table, up.rungs[up.steps - 1], from->who, down.rungs[down.steps - 1], to->who)
               : TB_COST_NONE;
    trip_add_port(&trip, &up, false);
    for (uint32_t i = up.begin > 0 ? up.begin - 1 : 0; i < up.steps; i++)
        trip_add_rung(&trip, &up, i, from->who, to->who, link == TB_COST_NONE || i + 1 < up.steps, false);
    if (across)
        trip_cross(&trip, up.rungs[up.steps - 1], down.rungs[down.steps - 1], link);
    for (uint32_t i = down.steps; i > (down.begin > 0 ? down.begin - 1 : 0); i--)
        trip_add_rung(&trip, &down, i - 1, from->who, to->who, link == TB_COST_NONE || i < down.steps, true);
    trip_add_port(&trip, &down, true);
    *latency = trip.latency;
    return trip.count;
}

static uint64_t trip_cost(const struct tb_cost_table *t, const struct tb_wire_use *uses, uint32_t count,
                          uint64_t latency)
{
    uint64_t slowest = UINT64_MAX;
    for (uint32_t i = 0; i < count; i++) {
        uint64_t rate = t->wires[uses[i].wire].bandwidth;
        slowest = rate != 0 && rate < slowest ? rate : slowest;
    }
    return tb_cost_add(latency, (uint64_t)SAMPLE_BYTES * 8 * PS_PER_S / slowest);
}

struct tb_cost_foot tb_cost_foot_of(const struct tb_cost_table *t, const struct tb_spot *spot, uint32_t i)
{
    const struct tb_cost_kind *kind = &t->kinds[spot->kind];
    return kind->feet > 0 ? t->feet[kind->foot + i] : (struct tb_cost_foot){spot->place, 0, 0};
}

bool tb_cost_feet_connect(const struct tb_cost_table *t, const struct tb_cost_foot *a, const struct tb_cost_foot *b)
{
    uint32_t meet = a->place;
    while (b->place < meet || b->place >= t->places[meet].end)
        meet = t->places[meet].parent;
    if (t->places[meet].level != TB_LEVEL_CLUSTER)
        meet = 0;
    /* What is as far outside as where they meet, or further, is around it. */
    uint32_t depth = t->places[meet].depth;
    return a->place == b->place || (t->places[a->leave].depth <= depth && t->places[b->enter].depth <= depth) ||
           (t->places[b->leave].depth <= depth && t->places[a->enter].depth <= depth);
}

uint32_t tb_cost_hop_wires(const struct tb_cost_table *table, const struct tb_spot *from, const struct tb_spot *to,
                           struct tb_wire_use *uses, uint64_t *latency)
{
    uint32_t from_feet = tb_cost_feet_of(table, from), to_feet = tb_cost_feet_of(table, to);
    if (from_feet == 1 && to_feet == 1)
        return tb_cost_feet_wires(table, from, from->place, to, to->place, uses, latency);
    uint32_t best_from = from->place, best_to = to->place;
    uint64_t best = UINT64_MAX;
    for (uint32_t i = 0; i < from_feet; i++)
        for (uint32_t k = 0; k < to_feet; k++) {
            struct tb_cost_foot a = tb_cost_foot_of(table, from, i), b = tb_cost_foot_of(table, to, k);
            uint32_t count = tb_cost_feet_wires(table, from, a.place, to, b.place, uses, latency);
            uint64_t cost = trip_cost(table, uses, count, *latency);
            if (cost < best && tb_cost_feet_connect(table, &a, &b)) {
                best = cost;
                best_from = a.place;
                best_to = b.place;
            }
        }
    return tb_cost_feet_wires(table, from, best_from, to, best_to, uses, latency);
}
