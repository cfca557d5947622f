/* Who can connect to whom, as the head of grid.h says. Each cluster is a network, and so is the wide area; a host has
 * a foot in each cluster that names it. A connection climbs from one of the caller's feet as far as a network that
 * both have in common, and descends from there to a foot of the other; every step must be allowed. */
#include "topology/reach.h"
#include "topology/grid_file.h"

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

static void ladder_make(const struct tb_grid *grid, uint32_t cluster, struct tb_ladder *ladder)
{
    ladder->count = 0;
    for (; cluster != TB_GRID_NONE; cluster = grid->clusters[cluster].parent) {
        TB_ASSERT(ladder->count < TB_GRID_NESTING_LIMIT);
        ladder->rungs[ladder->count++] = cluster;
    }
}

/* The first `climbs` rungs of `up` are left and the first `descents` of `down` are entered; what follows is common. */
static bool is_way_blocked(const struct tb_grid *grid, uint32_t from, uint32_t to, const struct tb_ladder *up,
                           uint32_t climbs, const struct tb_ladder *down, uint32_t descents)
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

void tb_ladders_make(const struct tb_grid *grid, uint32_t from_foot, uint32_t to_foot, struct tb_ladder *up,
                     struct tb_ladder *down)
{
    ladder_make(grid, from_foot, up);
    ladder_make(grid, to_foot, down);
    up->steps = up->count;
    down->steps = down->count;
    while (up->steps > 0 && down->steps > 0 && up->rungs[up->steps - 1] == down->rungs[down->steps - 1]) {
        up->steps--;
        down->steps--;
    }
}

bool tb_grid_feet_reach(const struct tb_grid *grid, uint32_t from, uint32_t from_foot, uint32_t to, uint32_t to_foot)
{
    struct tb_ladder up, down;
    if (from_foot == to_foot)
        return true;
    if ((grid->clusters[from_foot].ip & grid->clusters[to_foot].ip) == 0)
        return false; /* nobody translates between IP families */
    tb_ladders_make(grid, from_foot, to_foot, &up, &down);
    uint32_t climbs = up.steps, descents = down.steps;
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

uint32_t tb_grid_confined_to(const struct tb_grid *grid, uint32_t host, uint32_t foot, bool leaves, bool enters)
{
    uint32_t network = foot;
    while (network != TB_GRID_NONE && (!leaves || may_leave(&grid->clusters[network], host)) &&
           (!enters || may_enter(&grid->clusters[network], host)))
        network = grid->clusters[network].parent;
    return network;
}

bool tb_grid_reaches(const struct tb_grid *grid, uint32_t from, uint32_t to)
{
    TB_ASSERT(from < grid->host_count && to < grid->host_count);
    const struct tb_grid_host *caller = &grid->hosts[from], *called = &grid->hosts[to];
    if (from == to)
        return true;
    for (uint32_t i = 0; i < caller->cluster_count; i++) {
        for (uint32_t j = 0; j < called->cluster_count; j++) {
            if (tb_grid_feet_reach(grid, from, caller->clusters[i], to, called->clusters[j]))
                return true;
        }
    }
    return false;
}

static bool is_said(const struct tb_grid *grid, uint32_t from, uint32_t from_host, uint32_t to, uint32_t to_host)
{
    const struct tb_grid_link *forth = tb_grid_link_find(grid, from, from_host, to, to_host);
    const struct tb_grid_link *back = tb_grid_link_find(grid, to, to_host, from, from_host);
    return (forth != NULL && forth->said) || (back != NULL && back->said);
}

/* The part of a way between one foot and the network that both have in common. */
static bool is_ladder_said(const struct tb_grid *grid, const struct tb_ladder *ladder, uint32_t host, uint32_t other)
{
    for (uint32_t i = 0; i < ladder->steps; i++) {
        const struct tb_grid_cluster *cluster = &grid->clusters[ladder->rungs[i]];
        if (cluster->gated || cluster->said ||
            (i + 1 < ladder->count && is_said(grid, ladder->rungs[i], host, ladder->rungs[i + 1], other)))
            return true;
    }
    return false;
}

static bool are_feet_said(const struct tb_grid *grid, uint32_t from, uint32_t from_foot, uint32_t to, uint32_t to_foot)
{
    struct tb_ladder up, down;
    if (from_foot == to_foot)
        return true;
    tb_ladders_make(grid, from_foot, to_foot, &up, &down);
    return is_ladder_said(grid, &up, from, to) || is_ladder_said(grid, &down, to, from) ||
           (up.steps > 0 && down.steps > 0 &&
            is_said(grid, up.rungs[up.steps - 1], from, down.rungs[down.steps - 1], to));
}

bool tb_grid_supposes(const struct tb_grid *grid, uint32_t from, uint32_t to)
{
    const struct tb_grid_host *caller = &grid->hosts[from], *called = &grid->hosts[to];
    bool reaches = false;
    for (uint32_t i = 0; i < caller->cluster_count && from != to; i++) {
        for (uint32_t j = 0; j < called->cluster_count; j++) {
            if (!tb_grid_feet_reach(grid, from, caller->clusters[i], to, called->clusters[j]))
                continue;
            if (are_feet_said(grid, from, caller->clusters[i], to, called->clusters[j]))
                return false;
            reaches = true;
        }
    }
    return reaches;
}

bool tb_grid_outsider_reaches(const struct tb_grid *grid, uint32_t to)
{
    const struct tb_grid_host *called = &grid->hosts[to];
    for (uint32_t i = 0; i < called->cluster_count; i++) {
        struct tb_ladder ladder;
        bool open = true;
        ladder_make(grid, called->clusters[i], &ladder);
        for (uint32_t k = 0; k < ladder.count && open; k++)
            open = may_enter(&grid->clusters[ladder.rungs[k]], to);
        if (open)
            return true;
    }
    return false;
}
