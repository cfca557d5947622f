/* Who can connect to whom, as the head of grid.h says. Each cluster is a network, and so is the wide area; a host has
 * a foot in each cluster that names it. A connection climbs from one of the caller's feet as far as a network that
 * both have in common, and descends from there to a foot of the other; every step must be allowed. */
#include "topology/grid_file.h"

#include <stdlib.h>
#include <string.h>

/* The caller or the called one: a host that stands in this cluster, or, nearer to the common network, one that came
 * from further inside and is no gateway there. */
static bool may_leave(const struct tb_grid_cluster *cluster, uint32_t host)
{
    return !cluster->gated || cluster->nat || tb_grid_is_gateway(cluster, host);
}

static bool may_enter(const struct tb_grid_cluster *cluster, uint32_t host)
{
    return (!cluster->gated && !cluster->nat) || tb_grid_is_gateway(cluster, host);
}

static bool is_blocked(const struct tb_grid *grid, uint32_t from, uint32_t from_host, uint32_t to, uint32_t to_host)
{
    const struct tb_grid_link *link = tb_grid_link_find(grid, from, from_host, to, to_host);
    return link != NULL && link->blocked;
}

/* A cluster and all in which it nests, from inside to outside. */
struct ladder {
    uint32_t count;
    uint32_t rungs[TB_GRID_NESTING_LIMIT];
};

static void ladder_make(const struct tb_grid *grid, uint32_t cluster, struct ladder *ladder)
{
    ladder->count = 0;
    for (; cluster != TB_GRID_NONE; cluster = grid->clusters[cluster].parent) {
        TB_ASSERT(ladder->count < TB_GRID_NESTING_LIMIT);
        ladder->rungs[ladder->count++] = cluster;
    }
}

/* The first `climbs` rungs of `up` are left and the first `descents` of `down` are entered; what follows is common. */
static bool is_way_blocked(const struct tb_grid *grid, uint32_t from, uint32_t to, const struct ladder *up,
                           uint32_t climbs, const struct ladder *down, uint32_t descents)
{
    bool across = climbs > 0 && descents > 0; /* then the two outermost are neighbours, perhaps with a link between */
    if (across) {
        uint32_t a = up->rungs[climbs - 1], b = down->rungs[descents - 1];
        const struct tb_grid_link *link = tb_grid_link_find(grid, a, from, b, to);
        if (link != NULL && link->blocked)
            return true;
        across = link != NULL;
    }
    uint32_t skipped = across ? 1 : 0; /* that link stands for both steps by the network around them */
    for (uint32_t i = 0; i + skipped < climbs && i + 1 < up->count; i++) {
        if (is_blocked(grid, up->rungs[i], from, up->rungs[i + 1], to))
            return true;
    }
    for (uint32_t i = 0; i + skipped < descents && i + 1 < down->count; i++) {
        if (is_blocked(grid, down->rungs[i + 1], from, down->rungs[i], to))
            return true;
    }
    return false;
}

static bool feet_reach(const struct tb_grid *grid, uint32_t from, uint32_t from_foot, uint32_t to, uint32_t to_foot)
{
    struct ladder up, down;
    if (from_foot == to_foot)
        return true;
    ladder_make(grid, from_foot, &up);
    ladder_make(grid, to_foot, &down);
    uint32_t climbs = up.count, descents = down.count;
    while (climbs > 0 && descents > 0 && up.rungs[climbs - 1] == down.rungs[descents - 1]) {
        climbs--;
        descents--;
    }
    for (uint32_t i = 0; i < climbs; i++) {
        if (!may_leave(&grid->clusters[up.rungs[i]], from))
            return false;
    }
    for (uint32_t i = 0; i < descents; i++) {
        if (!may_enter(&grid->clusters[down.rungs[i]], to))
            return false;
    }
    return !tb_grid_has_blocked(grid) || !is_way_blocked(grid, from, to, &up, climbs, &down, descents);
}

bool tb_grid_reaches(const struct tb_grid *grid, uint32_t from, uint32_t to)
{
    TB_ASSERT(from < grid->host_count && to < grid->host_count);
    const struct tb_grid_host *caller = &grid->hosts[from], *called = &grid->hosts[to];
    if (from == to)
        return true;
    for (uint32_t i = 0; i < caller->cluster_count; i++) {
        for (uint32_t j = 0; j < called->cluster_count; j++) {
            if (feet_reach(grid, from, caller->clusters[i], to, called->clusters[j]))
                return true;
        }
    }
    return false;
}

/* ---- all pairs ---- */

/* Hosts with the same feet, gateways of the same clusters, are alike, and reach each other; so it is enough to ask for
 * one of each kind. `gates` has a bit for each foot. */
struct kind {
    uint32_t host;
    const struct tb_grid *grid;
    uint64_t gates;
    bool alone; /* a link ends at this very host, or it has too many feet: nobody is like it */
};

static int kind_compare(const void *left, const void *right)
{
    const struct kind *a = left, *b = right;
    const struct tb_grid_host *x = &a->grid->hosts[a->host], *y = &b->grid->hosts[b->host];
    if (x->cluster_count != y->cluster_count)
        return x->cluster_count < y->cluster_count ? -1 : 1;
    int order = memcmp(x->clusters, y->clusters, x->cluster_count * sizeof *x->clusters);
    if (order != 0)
        return order;
    if (a->gates != b->gates)
        return a->gates < b->gates ? -1 : 1;
    if (a->alone != b->alone)
        return a->alone ? 1 : -1;
    return a->host < b->host ? -1 : a->host > b->host;
}

static bool kind_equal(const struct kind *a, const struct kind *b)
{
    const struct tb_grid_host *x = &a->grid->hosts[a->host], *y = &b->grid->hosts[b->host];
    return !a->alone && !b->alone && a->gates == b->gates && x->cluster_count == y->cluster_count &&
           memcmp(x->clusters, y->clusters, x->cluster_count * sizeof *x->clusters) == 0;
}

static int host_compare(const void *left, const void *right)
{
    const struct kind *a = left, *b = right;
    return a->host < b->host ? -1 : a->host > b->host;
}

/* Which of its feet each host has as a gateway; one walk over all gateways instead of a search for each host. */
static void note_gates(const struct tb_grid *grid, struct kind *kinds)
{
    for (uint32_t c = 0; c < grid->cluster_count; c++) {
        const struct tb_grid_cluster *cluster = &grid->clusters[c];
        for (uint32_t g = 0; g < cluster->gateway_count; g++) {
            struct kind *kind = &kinds[cluster->gateways[g]];
            const struct tb_grid_host *host = &grid->hosts[kind->host];
            for (uint32_t foot = 0; foot < host->cluster_count; foot++) {
                if (host->clusters[foot] == c && foot < 64)
                    kind->gates |= UINT64_C(1) << foot;
            }
        }
    }
}

/* The first host of each kind that has slots, ascending; their number. */
static uint32_t find_kinds(const struct tb_grid *grid, struct kind *kinds)
{
    uint32_t count = 0, distinct = 0;
    for (uint32_t i = 0; i < grid->host_count; i++)
        kinds[i] = (struct kind){
            .host = i, .grid = grid, .alone = tb_grid_ends_at(grid, i) || grid->hosts[i].cluster_count > 64};
    note_gates(grid, kinds);
    for (uint32_t i = 0; i < grid->host_count; i++) {
        if (grid->hosts[i].slots > 0)
            kinds[count++] = kinds[i];
    }
    qsort(kinds, count, sizeof *kinds, kind_compare);
    for (uint32_t i = 0; i < count; i++) {
        if (distinct == 0 || !kind_equal(&kinds[distinct - 1], &kinds[i]))
            kinds[distinct++] = kinds[i];
    }
    qsort(kinds, distinct, sizeof *kinds, host_compare);
    return distinct;
}

bool tb_grid_first_unreachable(const struct tb_grid *grid, uint32_t *from, uint32_t *to)
{
    /* Without memory for the kinds all hosts are asked, which is slow but right. */
    struct kind *kinds = grid->host_count > 0 ? malloc(grid->host_count * sizeof *kinds) : NULL;
    uint32_t count = kinds != NULL ? find_kinds(grid, kinds) : grid->host_count;
    bool found = false;
    for (uint32_t i = 0; i < count && !found; i++) {
        for (uint32_t j = i + 1; j < count && !found; j++) {
            uint32_t a = kinds != NULL ? kinds[i].host : i, b = kinds != NULL ? kinds[j].host : j;
            bool forth = tb_grid_reaches(grid, a, b);
            if ((forth && tb_grid_reaches(grid, b, a)) || grid->hosts[a].slots == 0 || grid->hosts[b].slots == 0)
                continue;
            found = true;
            *from = forth ? b : a;
            *to = forth ? a : b;
        }
    }
    free(kinds);
    return found;
}
