#include "topology/cost_grid.h"
#include "topology/reach.h"

#define PS_PER_NS 1000u

static uint32_t book_host(const struct tb_cost_grid *s, uint32_t host)
{
    return host == TB_GRID_NONE || s->hosts == NULL ? host : s->hosts[host];
}

/* ---- wires ------------------------------------------------------------------------------------------------------- */

/* `assumed`: what holds where nothing is said; a rate of 0: no limit. */
static struct tb_wire wire_of(struct tb_cost_builder *b, const struct tb_grid_wire *said, uint64_t assumed_latency,
                              uint64_t assumed_rate)
{
    struct tb_wire wire = {.bandwidth = said->bandwidth != 0 ? said->bandwidth : assumed_rate,
                           .latency = said->latency != UINT64_MAX ? said->latency * PS_PER_NS : assumed_latency,
                           .jitter = said->jitter * PS_PER_NS,
                           .queue = said->queue,
                           .loss = said->loss,
                           .curve = TB_COST_NONE,
                           .ends = TB_COST_NONE,
                           .half = said->duplex == TB_GRID_HALF};
    wire.assumed = (uint8_t)((said->bandwidth == 0 ? TB_WIRE_BANDWIDTH_ASSUMED : 0) |
                             (said->latency == UINT64_MAX ? TB_WIRE_LATENCY_ASSUMED : 0));
    if (said->table != NULL)
        (void)tb_cost_builder_measured(b, said->table, &wire.curve, &wire.ends); /* the reader has looked at it */
    return wire;
}

/* Of links and uplinks. */
static uint32_t far_wire(struct tb_cost_builder *b, const struct tb_grid_wire *said, uint64_t latency, uint64_t rate)
{
    struct tb_wire wire = wire_of(b, said, latency, rate);
    if (wire.queue == 0 && wire.bandwidth != 0)
        wire.queue = tb_cost_default_queue(wire.bandwidth, wire.latency);
    return tb_cost_builder_wire(b, &wire);
}

/* The latency is the network's, once, however many ports are passed. */
static struct tb_wire port_of(struct tb_cost_builder *b, const struct tb_grid_cluster *cluster)
{
    struct tb_wire wire = wire_of(b, &cluster->ethernet, 0, b->assumed.near_rate);
    wire.latency = 0;
    wire.burst = tb_cost_builder_burst(b, wire.bandwidth);
    if (wire.queue == 0)
        wire.queue = b->assumed.near_queue;
    if (cluster->ethernet.bandwidth == 0 && wire.curve == TB_COST_NONE) {
        wire.curve = b->near_curve;
        wire.ends = b->near_ends;
    }
    return wire;
}

/* What a host says of its port holds in all clusters where it stands; the rest is as in its own. */
static uint32_t own_port(struct tb_cost_builder *b, const struct tb_grid *grid, const struct tb_grid_host *host)
{
    struct tb_wire wire = port_of(b, &grid->clusters[host->cluster]);
    if (host->wire->bandwidth != 0) {
        wire.bandwidth = host->wire->bandwidth;
        wire.burst = tb_cost_builder_burst(b, wire.bandwidth);
        wire.assumed &= (uint8_t)~TB_WIRE_BANDWIDTH_ASSUMED;
        wire.curve = wire.ends = TB_COST_NONE;
    }
    if (host->wire->queue != 0)
        wire.queue = host->wire->queue;
    if (host->wire->duplex != TB_GRID_DUPLEX_NOT_SAID)
        wire.half = host->wire->duplex == TB_GRID_HALF;
    return tb_cost_builder_wire(b, &wire);
}

static void fill_uplink(struct tb_cost_builder *b, uint32_t place, const struct tb_grid_uplink *uplink)
{
    if (!uplink->given)
        return;
    uint32_t up = far_wire(b, &uplink->up, 0, 0), down = far_wire(b, &uplink->down, 0, 0);
    tb_cost_builder_place(b, place)->up = up;
    tb_cost_builder_place(b, place)->down = down;
}

/* A lab does not emulate it: what is assumed holds. */
static bool is_own(const struct tb_cost_builder *b, const struct tb_grid_wire *said)
{
    return b->assumed.near_own > 0 && said->latency <= TB_COST_OWN_MOST && said->jitter == 0 && said->loss == 0;
}

static void fill_places(struct tb_cost_builder *b, const struct tb_cost_grid *s)
{
    for (uint32_t i = 0; i < s->grid->site_count; i++)
        fill_uplink(b, s->site_places[i], &s->grid->sites[i].uplink);
    for (uint32_t i = 0; i < s->grid->cluster_count; i++) {
        const struct tb_grid_cluster *cluster = &s->grid->clusters[i];
        struct tb_wire wire = port_of(b, cluster);
        struct tb_cost_place *place = tb_cost_builder_place(b, s->cluster_places[i]);
        place->hub = cluster->medium == TB_GRID_HUB;
        if (place->hub)
            wire.half = 1;
        place->port = tb_cost_builder_wire(b, &wire);
        if (cluster->ethernet.latency != UINT64_MAX && !is_own(b, &cluster->ethernet))
            place->near = cluster->ethernet.latency * PS_PER_NS;
        fill_uplink(b, s->cluster_places[i], &cluster->uplink);
    }
}

static void fill_links(struct tb_cost_builder *b, const struct tb_cost_grid *s)
{
    for (uint32_t i = 0; i < s->grid->link_count; i++) {
        const struct tb_grid_link *l = &s->grid->links[i];
        struct tb_link_cost link = {
            .from = l->from_site != TB_GRID_NONE ? s->site_places[l->from_site] : s->cluster_places[l->from],
            .to = l->to_site != TB_GRID_NONE ? s->site_places[l->to_site] : s->cluster_places[l->to],
            .from_host = book_host(s, l->from_host),
            .to_host = book_host(s, l->to_host),
            .flags = l->direct ? TB_LINK_DIRECT : 0};
        /* A link of a gateway that takes no part is a link of nobody, and must not pass for one of its cluster. */
        if ((link.from_host == TB_GRID_NONE) != (l->from_host == TB_GRID_NONE) ||
            (link.to_host == TB_GRID_NONE) != (l->to_host == TB_GRID_NONE))
            continue;
        link.wire = far_wire(b, &l->wire, b->assumed.far_latency, b->assumed.far_rate);
        tb_cost_builder_link(b, &link);
    }
}

/* ---- kinds ------------------------------------------------------------------------------------------------------- */

static uint32_t depth_of(struct tb_cost_builder *b, uint32_t place)
{
    return tb_cost_builder_place(b, place)->depth;
}

static uint32_t confined_to(const struct tb_cost_grid *s, uint32_t host, uint32_t cluster, bool leaves, bool enters)
{
    uint32_t network = tb_grid_confined_to(s->grid, host, cluster, leaves, enters);
    return network != TB_GRID_NONE ? s->cluster_places[network] : 0;
}

static void fill_kind(struct tb_cost_builder *b, const struct tb_cost_grid *s, const struct tb_grid_host *host,
                      uint32_t number)
{
    struct tb_cost_kind kind = {.port = host->wire != NULL ? own_port(b, s->grid, host) : TB_COST_NONE,
                                .reach = TB_COST_NONE,
                                .foot = b->feet.count,
                                .gate_of = TB_COST_NONE,
                                .flags = host->cluster_count > 1 ? TB_KIND_TOLD_APART : 0};
    for (uint32_t i = 0; i < host->cluster_count; i++) {
        uint32_t cluster = host->clusters[i], reach = confined_to(s, number, cluster, true, true);
        struct tb_cost_foot foot = {.place = s->cluster_places[cluster],
                                    .leave = confined_to(s, number, cluster, true, false),
                                    .enter = confined_to(s, number, cluster, false, true)};
        if (host->cluster_count > 1 || reach != 0) {
            tb_cost_builder_push(b, &b->feet, &foot);
            kind.feet++;
        }
        if (kind.reach == TB_COST_NONE || depth_of(b, reach) < depth_of(b, kind.reach))
            kind.reach = reach;
        if (tb_grid_is_gateway(&s->grid->clusters[cluster], number) &&
            (kind.gate_of == TB_COST_NONE || depth_of(b, foot.place) < depth_of(b, kind.gate_of)))
            kind.gate_of = foot.place;
    }
    tb_cost_builder_push(b, &b->kinds, &kind);
}

void tb_cost_grid_fill(struct tb_cost_builder *b, const struct tb_cost_grid *s)
{
    b->constants.flags |= TB_COSTS_GRID;
    fill_places(b, s);
    fill_links(b, s);
    for (uint32_t i = 0; i < s->classes->class_count; i++) {
        uint32_t host = tb_host_classes_member(s->classes, i, 0);
        fill_kind(b, s, &s->grid->hosts[host], host);
    }
}

struct tb_spot tb_cost_grid_spot(const struct tb_cost_grid *s, uint32_t host)
{
    return (struct tb_spot){s->cluster_places[s->grid->hosts[host].cluster], s->classes->of[host], book_host(s, host)};
}

static void tell_apart(struct tb_cost_builder *b, uint32_t kind)
{
    if (b->error == TB_OK)
        ((struct tb_cost_kind *)b->kinds.data)[kind].flags |= TB_KIND_TOLD_APART;
}

void tb_cost_grid_gates(struct tb_cost_builder *b, const struct tb_cost_grid *s)
{
    for (uint32_t i = 0; i < s->grid->cluster_count && b->error == TB_OK; i++) {
        const struct tb_grid_cluster *cluster = &s->grid->clusters[i];
        struct tb_cost_place *place = tb_cost_builder_place(b, s->cluster_places[i]);
        place->gate = b->relays.count;
        for (uint32_t k = 0; k < cluster->gateway_count; k++) {
            struct tb_spot spot = tb_cost_grid_spot(s, cluster->gateways[k]);
            if (spot.who == TB_COST_NONE || spot.kind == TB_GRID_NONE)
                continue;
            tb_cost_builder_push(b, &b->relays, &spot);
            place->gates++;
            tell_apart(b, spot.kind);
        }
    }
}

void tb_cost_grid_detour(struct tb_cost_builder *b, const struct tb_cost_grid *s, uint32_t from_kind, uint32_t to_kind,
                         const uint32_t *hosts, uint32_t count)
{
    struct tb_cost_detour detour = {.from = from_kind, .to = to_kind, .first = b->hops.count, .count = count};
    for (uint32_t i = 0; i < count; i++) {
        struct tb_spot spot = tb_cost_grid_spot(s, hosts[i]);
        tb_cost_builder_push(b, &b->hops, &spot);
        tell_apart(b, spot.kind);
    }
    tb_cost_builder_push(b, &b->detours, &detour);
}
