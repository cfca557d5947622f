/* Uplinks: the one wire that everything between the inside and the outside of a cluster or site shares, NAME.up and
 * NAME.down in the emulator. The emulator carries the segment around such a cluster (around a site: the wide area), and
 * what goes from one port to another there passes several pipes: up from the cluster, up from its site, the link, down
 * to the other site, down to the other cluster. */
#include "lab/network.h"

uint32_t tb_uplink_count(const struct tb_lab_network *network)
{
    return network->grid->cluster_count + network->grid->site_count;
}

const struct tb_grid_uplink *tb_uplink_of(const struct tb_lab_network *network, uint32_t which)
{
    const struct tb_grid *grid = network->grid;
    const struct tb_grid_uplink *uplink =
        which < grid->cluster_count ? &grid->clusters[which].uplink : &grid->sites[which - grid->cluster_count].uplink;
    return uplink->given ? uplink : NULL;
}

void tb_uplink_name(const struct tb_lab_network *network, uint32_t which, char *name)
{
    const struct tb_grid *grid = network->grid;
    if (which < grid->cluster_count) {
        snprintf(name, TB_UPLINK_NAME_BYTES, "%s", grid->clusters[which].name);
        return;
    }
    const char *site = grid->sites[which - grid->cluster_count].name;
    bool taken = tb_grid_cluster_find(grid, site) != TB_GRID_NONE;
    snprintf(name, TB_UPLINK_NAME_BYTES, "%s%s", taken ? "site:" : "", site);
}

void tb_uplink_pipe_name(const struct tb_lab_network *network, uint32_t which, bool up, char *name)
{
    char plain[TB_UPLINK_NAME_BYTES];
    tb_uplink_name(network, which, plain);
    size_t used = tb_lab_network_encode(plain, name);
    snprintf(name + used, TB_LAB_NETWORK_NAME_BYTES - used, "%s", up ? ".up" : ".down");
}

uint32_t tb_uplink_segment(const struct tb_lab_network *network, uint32_t which)
{
    return which < network->grid->cluster_count ? network->plan.segments[1 + which].outside : 0;
}

bool tb_uplink_crosses(const struct tb_lab_network *network, uint32_t segment)
{
    for (uint32_t i = 0; i < tb_uplink_count(network); i++)
        if (tb_uplink_of(network, i) != NULL && tb_uplink_segment(network, i) == segment)
            return true;
    return false;
}

static void add(const struct tb_lab_network *network, uint32_t which, bool up, struct tb_lab_network_way *way)
{
    if (tb_uplink_of(network, which) != NULL)
        tb_uplink_pipe_name(network, which, up, way->names[way->count++]);
}

/* The site of an outermost cluster; TB_GRID_NONE: none, or there is no cluster. */
static uint32_t site_of(const struct tb_lab_network *network, uint32_t cluster)
{
    return cluster != TB_GRID_NONE ? network->grid->clusters[cluster].site : TB_GRID_NONE;
}

void tb_lab_network_way(const struct tb_lab_network *network, uint32_t segment, uint32_t from, uint32_t to,
                        struct tb_lab_network_way *way)
{
    struct tb_lab_network_crossing crossing;
    tb_lab_network_cross(network, segment, from, to, &crossing);
    way->count = 0;
    way->link = crossing.link;
    uint32_t first = network->grid->cluster_count;
    uint32_t here = segment == 0 ? site_of(network, crossing.from) : TB_GRID_NONE;
    uint32_t there = segment == 0 ? site_of(network, crossing.to) : TB_GRID_NONE;
    if (crossing.from != TB_GRID_NONE)
        add(network, crossing.from, true, way);
    if (here != there && here != TB_GRID_NONE)
        add(network, first + here, true, way);
    if (crossing.link != TB_GRID_NONE)
        tb_lab_network_pipe_name(network, crossing.link, way->names[way->count++]);
    if (here != there && there != TB_GRID_NONE)
        add(network, first + there, false, way);
    if (crossing.to != TB_GRID_NONE)
        add(network, crossing.to, false, way);
}
