#include "topology/connectivity.h"
#include "topology/cost_grid.h"
#include "topology/hop_wires.h"
#include "topology/places_grid.h"
#include "topology/reach.h"

#include <stdlib.h>
#include <string.h>

#define PS_PER_NS 1000u

#define TIME_TOP UINT64_C(1000000000000000) /* ns of one wire; so many sums of it fit into 64 bits */

/* What a connection meets on its way: with what is assumed where the file does not say, and only what it says. */
struct way {
    uint64_t latency, rate;
    struct tb_grid_wire said;
    const struct tb_grid_link *link; /* the first that it crosses, between neighbours before others; NULL: none */
};

void tb_grid_wire_add(struct tb_grid_wire *wire, const struct tb_grid_wire *more)
{
    uint64_t kept = (1000000u - (uint64_t)wire->loss) * (1000000u - (uint64_t)more->loss) / 1000000u;
    if (more->latency != UINT64_MAX) {
        uint64_t latency = more->latency < TIME_TOP ? more->latency : TIME_TOP;
        wire->latency = wire->latency != UINT64_MAX ? wire->latency + latency : latency;
    }
    if (more->bandwidth != 0 && (wire->bandwidth == 0 || more->bandwidth < wire->bandwidth))
        wire->bandwidth = more->bandwidth;
    wire->jitter += more->jitter < TIME_TOP ? more->jitter : TIME_TOP;
    wire->loss = (uint32_t)(1000000u - kept);
}

/* Before anything is added. */
static const struct way way_none = {.rate = UINT64_MAX, .said.latency = UINT64_MAX};

/* The network of a cluster counts at both ends, also for a gateway, which need not cross it: who passes something on
 * is no better placed than who does not. */
static void way_add_near(struct way *way, const struct tb_grid_wire *wire)
{
    uint64_t latency = wire->latency != UINT64_MAX ? wire->latency : TB_CONNECTIVITY_NEAR_LATENCY;
    uint64_t rate = wire->bandwidth != 0 ? wire->bandwidth : TB_CONNECTIVITY_NEAR_RATE;
    way->latency += latency < TIME_TOP ? latency : TIME_TOP;
    way->rate = rate < way->rate ? rate : way->rate;
    tb_grid_wire_add(&way->said, wire);
}

static void way_add_wire(struct way *way, const struct tb_wire *wire)
{
    struct tb_grid_wire said = {.bandwidth = (wire->assumed & TB_WIRE_BANDWIDTH_ASSUMED) == 0 ? wire->bandwidth : 0,
                                .latency = (wire->assumed & TB_WIRE_LATENCY_ASSUMED) == 0 ? wire->latency / PS_PER_NS
                                                                                          : UINT64_MAX,
                                .jitter = wire->jitter / PS_PER_NS,
                                .loss = wire->loss};
    way->latency += wire->latency / PS_PER_NS;
    if (wire->bandwidth != 0 && wire->bandwidth < way->rate)
        way->rate = wire->bandwidth;
    tb_grid_wire_add(&way->said, &said);
}

/* A port counts with what its host says of it; else the network of its cluster stands for it. */
static void way_add_port(struct way *way, const struct tb_wire *wire)
{
    struct tb_grid_wire said = {.bandwidth = (wire->assumed & TB_WIRE_BANDWIDTH_ASSUMED) == 0 ? wire->bandwidth : 0,
                                .latency = UINT64_MAX};
    if (wire->bandwidth < way->rate)
        way->rate = wire->bandwidth;
    tb_grid_wire_add(&way->said, &said);
}

/* A half-duplex link has one number for both directions; which of them leads from one foot to the other? */
static uint32_t link_of(const struct tb_connectivity *c, uint32_t link, uint32_t from_foot, uint32_t to_foot)
{
    const struct tb_cost_table *t = &c->table;
    const struct tb_link_cost *l = &t->links[link];
    const struct tb_cost_place *a = &t->places[l->from], *b = &t->places[l->to];
    bool leaves = from_foot >= l->from && from_foot < a->end && (to_foot < l->from || to_foot >= a->end);
    bool enters = to_foot >= l->to && to_foot < b->end && (from_foot < l->to || from_foot >= b->end);
    return leaves || enters ? link : l->back;
}

static void way_add_use(const struct tb_connectivity *c, struct way *way, const struct tb_wire_use *use,
                        const struct tb_spot *from, const struct tb_spot *to, uint32_t from_foot, uint32_t to_foot)
{
    const struct tb_wire *wire = &c->table.wires[use->wire];
    if (use->role == TB_ROLE_HUB)
        return;
    if (use->role == TB_ROLE_PORT_OUT || use->role == TB_ROLE_PORT_IN) {
        if (use->wire == c->table.kinds[from->kind].port || use->wire == c->table.kinds[to->kind].port)
            way_add_port(way, wire);
        return;
    }
    way_add_wire(way, wire);
    if (use->role != TB_ROLE_LINK)
        return;
    const struct tb_grid_link *link = &c->grid->links[link_of(c, use->a, from_foot, to_foot)];
    bool step = link->from != TB_GRID_NONE && link->to != TB_GRID_NONE &&
                (c->grid->clusters[link->from].parent == link->to || c->grid->clusters[link->to].parent == link->from);
    if (way->link == NULL || !step)
        way->link = link;
}

static struct tb_spot spot_of(const struct tb_connectivity *c, uint32_t host)
{
    return (struct tb_spot){c->cluster_places[c->grid->hosts[host].cluster], c->kinds[host], host};
}

/* The feet are clusters. */
static struct way feet_way(const struct tb_connectivity *c, uint32_t from, uint32_t from_foot, uint32_t to,
                           uint32_t to_foot)
{
    struct way way = way_none;
    struct tb_wire_use uses[TB_HOP_WIRES_LIMIT];
    struct tb_spot a = spot_of(c, from), b = spot_of(c, to);
    uint32_t x = c->cluster_places[from_foot], y = c->cluster_places[to_foot];
    uint64_t latency;
    way_add_near(&way, &c->grid->clusters[from_foot].ethernet);
    if (from_foot != to_foot)
        way_add_near(&way, &c->grid->clusters[to_foot].ethernet);
    uint32_t count = tb_cost_feet_wires(&c->table, &a, x, &b, y, uses, &latency);
    for (uint32_t i = 0; i < count; i++)
        way_add_use(c, &way, &uses[i], &a, &b, x, y);
    return way;
}

static uint64_t way_cost(const struct way *way)
{
    uint64_t bits = TB_CONNECTIVITY_BYTES * UINT64_C(8) * UINT64_C(1000000000);
    return TB_CONNECTIVITY_RELAY + way->latency + bits / way->rate;
}

/* Of the ways by which they can connect in either direction; of all, if there is none and somebody found that they can
 * nevertheless. */
static struct way hosts_way(const struct tb_connectivity *c, uint32_t from, uint32_t to)
{
    const struct tb_grid *grid = c->grid;
    const struct tb_grid_host *a = &grid->hosts[from], *b = &grid->hosts[to];
    struct way best = way_none, any = way_none;
    uint64_t best_cost = UINT64_MAX, any_cost = UINT64_MAX;
    for (uint32_t i = 0; i < a->cluster_count; i++) {
        for (uint32_t j = 0; j < b->cluster_count; j++) {
            uint32_t x = a->clusters[i], y = b->clusters[j];
            struct way way = feet_way(c, from, x, to, y);
            uint64_t cost = way_cost(&way);
            if (cost < any_cost) {
                any = way;
                any_cost = cost;
            }
            if (cost < best_cost &&
                (tb_grid_feet_reach(grid, from, x, to, y) || tb_grid_feet_reach(grid, to, y, from, x))) {
                best = way;
                best_cost = cost;
            }
        }
    }
    return best_cost != UINT64_MAX ? best : any;
}

/* Two hosts that stand for their classes. */
static void choose_examples(const struct tb_connectivity *c, uint32_t from_class, uint32_t to_class, uint32_t *from,
                            uint32_t *to)
{
    bool other = from_class == to_class && tb_host_classes_size(&c->classes, to_class) > 1;
    *from = tb_host_classes_member(&c->classes, from_class, 0);
    *to = tb_host_classes_member(&c->classes, to_class, other ? 1 : 0);
}

static void fill(struct tb_connectivity *c)
{
    uint32_t n = c->classes.class_count;
    for (uint32_t i = 0; i < n; i++) {
        for (uint32_t j = 0; j < n; j++) {
            uint32_t from, to;
            choose_examples(c, i, j, &from, &to);
            struct way way = hosts_way(c, from, to);
            c->reach[(size_t)i * n + j] = tb_grid_reaches(c->grid, from, to);
            c->costs[(size_t)i * n + j] = way_cost(&way);
            c->links[(size_t)i * n + j] = way.link != NULL ? (uint32_t)(way.link - c->grid->links) : TB_GRID_NONE;
        }
    }
}

static struct way classes_way(const struct tb_connectivity *c, uint32_t from_class, uint32_t to_class)
{
    uint32_t from, to;
    choose_examples(c, from_class, to_class, &from, &to);
    return hosts_way(c, from, to);
}

void tb_connectivity_wire(const struct tb_connectivity *c, uint32_t from_class, uint32_t to_class,
                          struct tb_grid_wire *wire)
{
    *wire = classes_way(c, from_class, to_class).said;
}

static bool is_direct(const struct tb_connectivity *c, const struct tb_grid_link *link)
{
    return link != NULL && link->direct && tb_grid_link_is_wide(c->grid, link);
}

/* Whether some two of their feet, of which one can connect to the other, have a direct link, in both directions. */
static bool feet_are_direct(const struct tb_connectivity *c, uint32_t a, uint32_t b)
{
    const struct tb_grid *grid = c->grid;
    uint32_t from, to;
    choose_examples(c, a, b, &from, &to);
    for (uint32_t i = 0; i < grid->hosts[from].cluster_count; i++)
        for (uint32_t k = 0; k < grid->hosts[to].cluster_count; k++) {
            uint32_t x = grid->hosts[from].clusters[i], y = grid->hosts[to].clusters[k];
            struct way there = feet_way(c, from, x, to, y), back = feet_way(c, to, y, from, x);
            if (is_direct(c, there.link) && is_direct(c, back.link) &&
                (tb_grid_feet_reach(grid, from, x, to, y) || tb_grid_feet_reach(grid, to, y, from, x)))
                return true;
        }
    return false;
}

bool tb_connectivity_direct(const struct tb_connectivity *c, uint32_t a, uint32_t b)
{
    if (is_direct(c, tb_connectivity_link(c, a, b)) && is_direct(c, tb_connectivity_link(c, b, a)))
        return true;
    const struct tb_grid_host *from = &c->grid->hosts[tb_host_classes_member(&c->classes, a, 0)];
    const struct tb_grid_host *to = &c->grid->hosts[tb_host_classes_member(&c->classes, b, 0)];
    return (from->cluster_count > 1 || to->cluster_count > 1) && feet_are_direct(c, a, b);
}

/* A cost table with figures of its own, so that routes do not depend on parameters. */
static int make_table(struct tb_connectivity *c)
{
    static const struct tb_cost_assumed assumed = {.near_latency = TB_CONNECTIVITY_NEAR_LATENCY * (uint64_t)PS_PER_NS,
                                                   .near_rate = TB_CONNECTIVITY_NEAR_RATE,
                                                   .far_latency = TB_CONNECTIVITY_FAR_LATENCY * (uint64_t)PS_PER_NS,
                                                   .far_rate = TB_CONNECTIVITY_FAR_RATE};
    const struct tb_grid *grid = c->grid;
    struct tb_cost_builder builder;
    struct tb_places places = {0};
    uint32_t *sites = calloc(grid->site_count + 1u, sizeof *sites);
    size_t length;
    c->cluster_places = calloc(grid->cluster_count + 1u, sizeof *c->cluster_places);
    c->kinds = calloc(grid->host_count + 1u, sizeof *c->kinds);
    int rc = sites != NULL && c->cluster_places != NULL && c->kinds != NULL
                 ? tb_places_from_grid(&places, grid, c->cluster_places, sites)
                 : tb_error(TB_ERR_MEMORY, "no memory for the wires of %s", grid->file);
    if (rc != TB_OK)
        goto out;
    memcpy(c->kinds, c->classes.of, grid->host_count * sizeof *c->kinds);
    struct tb_cost_grid source = {
        .grid = grid, .classes = &c->classes, .cluster_places = c->cluster_places, .site_places = sites};
    rc = tb_cost_builder_open(&builder, &places, &assumed);
    if (rc == TB_OK) {
        tb_cost_grid_fill(&builder, &source);
        rc = tb_cost_builder_seal(&builder, &c->cost_bytes, &length);
    }
    tb_cost_builder_close(&builder);
    if (rc == TB_OK)
        rc = tb_cost_table_view(&c->table, c->cost_bytes, length);
out:
    tb_places_close(&places);
    free(sites);
    return rc;
}

int tb_connectivity_open(struct tb_connectivity *c, const struct tb_grid *grid)
{
    return tb_connectivity_open_part(c, grid, NULL);
}

int tb_connectivity_open_part(struct tb_connectivity *c, const struct tb_grid *grid, const bool *part)
{
    *c = (struct tb_connectivity){.grid = grid};
    int rc = tb_host_classes_open_part(&c->classes, grid, part);
    if (rc != TB_OK)
        return rc;
    uint32_t n = c->classes.class_count;
    if (n > TB_CONNECTIVITY_CLASSES_LIMIT) {
        tb_connectivity_close(c);
        return tb_error(TB_ERR_LIMIT,
                        "%s: routes are found among at most %u kinds of hosts (in the same clusters, gateways of the "
                        "same ones, equal ports, no links of their own), but there are %u%s",
                        grid->file, TB_CONNECTIVITY_CLASSES_LIMIT, n, part != NULL ? " that would take part" : "");
    }
    c->reach = calloc((size_t)n * n + 1, sizeof *c->reach);
    c->costs = calloc((size_t)n * n + 1, sizeof *c->costs);
    c->links = calloc((size_t)n * n + 1, sizeof *c->links);
    if (c->reach == NULL || c->costs == NULL || c->links == NULL) {
        tb_connectivity_close(c);
        return tb_error(TB_ERR_MEMORY, "no memory for who reaches whom among %u kinds of hosts", n);
    }
    rc = make_table(c);
    if (rc != TB_OK) {
        tb_connectivity_close(c);
        return rc;
    }
    fill(c);
    return TB_OK;
}

int tb_connectivity_split(struct tb_connectivity *c, const uint32_t *labels, uint32_t *origins)
{
    uint32_t old = c->classes.class_count;
    int rc = tb_host_classes_split(&c->classes, labels, origins);
    uint32_t n = c->classes.class_count;
    if (rc != TB_OK || n == old)
        return rc;
    if (n > TB_CONNECTIVITY_CLASSES_LIMIT)
        return tb_error(TB_ERR_LIMIT, "%s: routes are found among at most %u kinds of hosts, but there are %u",
                        c->grid->file, TB_CONNECTIVITY_CLASSES_LIMIT, n);
    uint8_t *reach = calloc((size_t)n * n, sizeof *reach);
    uint64_t *costs = calloc((size_t)n * n, sizeof *costs);
    uint32_t *links = calloc((size_t)n * n, sizeof *links);
    if (reach == NULL || costs == NULL || links == NULL) {
        free(reach);
        free(costs);
        free(links);
        return tb_error(TB_ERR_MEMORY, "no memory for who reaches whom among %u kinds of hosts", n);
    }
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t j = 0; j < n; j++) {
            reach[(size_t)i * n + j] = c->reach[(size_t)origins[i] * old + origins[j]];
            costs[(size_t)i * n + j] = c->costs[(size_t)origins[i] * old + origins[j]];
            links[(size_t)i * n + j] = c->links[(size_t)origins[i] * old + origins[j]];
        }
    free(c->reach);
    free(c->costs);
    free(c->links);
    c->reach = reach;
    c->costs = costs;
    c->links = links;
    return TB_OK;
}

void tb_connectivity_close(struct tb_connectivity *c)
{
    tb_host_classes_close(&c->classes);
    free(c->reach);
    free(c->costs);
    free(c->links);
    free(c->cluster_places);
    free(c->kinds);
    free(c->cost_bytes);
    *c = (struct tb_connectivity){0};
}

void tb_connectivity_set(struct tb_connectivity *c, uint32_t from, uint32_t to, bool reaches)
{
    uint32_t n = c->classes.class_count;
    TB_ASSERT(from < n && to < n && from != to);
    c->reach[(size_t)from * n + to] = reaches;
}

void tb_connectivity_cut(struct tb_connectivity *c, uint32_t class)
{
    for (uint32_t i = 0; i < c->classes.class_count; i++) {
        if (i == class)
            continue;
        tb_connectivity_set(c, class, i, false);
        tb_connectivity_set(c, i, class, false);
    }
}
