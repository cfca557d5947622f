#include "topology/connectivity.h"
#include "topology/reach.h"

#include <stdlib.h>

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

static void way_add(struct way *way, const struct tb_grid_wire *wire, uint64_t latency, uint64_t rate)
{
    latency = wire != NULL && wire->latency != UINT64_MAX ? wire->latency : latency;
    rate = wire != NULL && wire->bandwidth != 0 ? wire->bandwidth : rate;
    way->latency += latency < TIME_TOP ? latency : TIME_TOP;
    way->rate = rate < way->rate ? rate : way->rate;
    if (wire != NULL)
        tb_grid_wire_add(&way->said, wire);
}

/* A link between a cluster and the one around it is a wire only if the file has it. */
static void way_add_step(struct way *way, const struct tb_grid *grid, uint32_t from, uint32_t from_host, uint32_t to,
                         uint32_t to_host)
{
    const struct tb_grid_link *link = tb_grid_link_find(grid, from, from_host, to, to_host);
    if (link == NULL)
        return;
    way_add(way, &link->wire, TB_CONNECTIVITY_FAR_LATENCY, TB_CONNECTIVITY_FAR_RATE);
    way->link = way->link != NULL ? way->link : link;
}

static void way_add_near(struct way *way, const struct tb_grid_cluster *cluster)
{
    way_add(way, &cluster->ethernet, TB_CONNECTIVITY_NEAR_LATENCY, TB_CONNECTIVITY_NEAR_RATE);
}

static struct way feet_way(const struct tb_grid *grid, uint32_t from, uint32_t from_foot, uint32_t to, uint32_t to_foot)
{
    struct way way = way_none;
    struct tb_ladder up, down;
    way_add_near(&way, &grid->clusters[from_foot]);
    if (from_foot != to_foot) {
        way_add_near(&way, &grid->clusters[to_foot]);
        tb_ladders_make(grid, from_foot, to_foot, &up, &down);
        uint32_t skipped = 0; /* a link between neighbours stands for both steps by the network around them */
        if (up.steps > 0 && down.steps > 0) {
            const struct tb_grid_link *link =
                tb_grid_link_find(grid, up.rungs[up.steps - 1], from, down.rungs[down.steps - 1], to);
            bool outermost = up.steps == up.count;
            if (link != NULL || outermost)
                way_add(&way, link != NULL ? &link->wire : NULL, TB_CONNECTIVITY_FAR_LATENCY, TB_CONNECTIVITY_FAR_RATE);
            skipped = link != NULL ? 1 : 0;
            way.link = link;
        }
        for (uint32_t i = 0; i + skipped < up.steps && i + 1 < up.count; i++)
            way_add_step(&way, grid, up.rungs[i], from, up.rungs[i + 1], to);
        for (uint32_t i = 0; i + skipped < down.steps && i + 1 < down.count; i++)
            way_add_step(&way, grid, down.rungs[i + 1], from, down.rungs[i], to);
    }
    return way;
}

static uint64_t way_cost(const struct way *way)
{
    uint64_t bits = TB_CONNECTIVITY_BYTES * UINT64_C(8) * UINT64_C(1000000000);
    return TB_CONNECTIVITY_RELAY + way->latency + bits / way->rate;
}

/* Of the ways by which they can connect in either direction; of all, if there is none and somebody found that they can
 * nevertheless. */
static struct way hosts_way(const struct tb_grid *grid, uint32_t from, uint32_t to)
{
    const struct tb_grid_host *a = &grid->hosts[from], *b = &grid->hosts[to];
    struct way best = way_none, any = way_none;
    uint64_t best_cost = UINT64_MAX, any_cost = UINT64_MAX;
    for (uint32_t i = 0; i < a->cluster_count; i++) {
        for (uint32_t j = 0; j < b->cluster_count; j++) {
            uint32_t x = a->clusters[i], y = b->clusters[j];
            struct way way = feet_way(grid, from, x, to, y);
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
            struct way way = hosts_way(c->grid, from, to);
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
    return hosts_way(c->grid, from, to);
}

void tb_connectivity_wire(const struct tb_connectivity *c, uint32_t from_class, uint32_t to_class,
                          struct tb_grid_wire *wire)
{
    *wire = classes_way(c, from_class, to_class).said;
}

static bool is_direct(const struct tb_connectivity *c, uint32_t from, uint32_t to)
{
    const struct tb_grid_link *link = tb_connectivity_link(c, from, to);
    return link != NULL && link->direct && tb_grid_link_is_wide(c->grid, link);
}

bool tb_connectivity_direct(const struct tb_connectivity *c, uint32_t a, uint32_t b)
{
    return is_direct(c, a, b) && is_direct(c, b, a);
}

int tb_connectivity_open(struct tb_connectivity *c, const struct tb_grid *grid)
{
    *c = (struct tb_connectivity){.grid = grid};
    int rc = tb_host_classes_open(&c->classes, grid);
    if (rc != TB_OK)
        return rc;
    uint32_t n = c->classes.class_count;
    if (n > TB_CONNECTIVITY_CLASSES_LIMIT) {
        tb_connectivity_close(c);
        return tb_error(TB_ERR_LIMIT,
                        "%s: routes are found among at most %u kinds of hosts (in the same clusters, gateways of the "
                        "same ones, equal ports, no links of their own), but there are %u",
                        grid->file, TB_CONNECTIVITY_CLASSES_LIMIT, n);
    }
    c->reach = calloc((size_t)n * n + 1, sizeof *c->reach);
    c->costs = calloc((size_t)n * n + 1, sizeof *c->costs);
    c->links = calloc((size_t)n * n + 1, sizeof *c->links);
    if (c->reach == NULL || c->costs == NULL || c->links == NULL) {
        tb_connectivity_close(c);
        return tb_error(TB_ERR_MEMORY, "no memory for who reaches whom among %u kinds of hosts", n);
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
