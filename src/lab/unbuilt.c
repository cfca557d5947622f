#include "lab/unbuilt.h"

static int refuse(const struct tb_grid *grid, uint32_t line, const char *what, const char *of, const char *name)
{
    return tb_error(TB_ERR_UNSUPPORTED, "%s:%u: a lab cannot build %s yet, as %s %s has", grid->file, line, what, of,
                    name);
}

/* NULL: nothing. */
static const char *of_wire(const struct tb_grid_wire *wire)
{
    return wire->queue != 0 ? "a queue" : wire->duplex == TB_GRID_HALF ? "half duplex" : NULL;
}

static const char *of_cluster(const struct tb_grid_cluster *cluster)
{
    struct tb_grid_wire ethernet = cluster->ethernet;
    if (cluster->medium == TB_GRID_HUB)
        ethernet.duplex = TB_GRID_DUPLEX_NOT_SAID; /* a hub is half-duplex anyway, and built */
    if (cluster->uplink.given)
        return "an uplink";
    return cluster->ip != TB_GRID_IPV4 ? "IPv6" : of_wire(&ethernet);
}

int tb_lab_unbuilt_refuse(const struct tb_grid *grid)
{
    if (*grid->congestion != 0)
        return tb_error(TB_ERR_UNSUPPORTED, "%s: a lab cannot set the congestion control %s yet", grid->file,
                        grid->congestion);
    for (uint32_t i = 0; i < grid->site_count; i++)
        if (grid->sites[i].uplink.given)
            return refuse(grid, grid->sites[i].line, "an uplink", "site", grid->sites[i].name);
    for (uint32_t i = 0; i < grid->cluster_count; i++) {
        const char *what = of_cluster(&grid->clusters[i]);
        if (what != NULL)
            return refuse(grid, grid->clusters[i].line, what, "cluster", grid->clusters[i].name);
    }
    for (uint32_t i = 0; i < grid->host_count; i++)
        if (grid->hosts[i].wire != NULL)
            return refuse(grid, grid->hosts[i].line, "a port of its own rate", "host", grid->hosts[i].name);
    for (uint32_t i = 0; i < grid->link_count; i++) {
        const struct tb_grid_link *link = &grid->links[i];
        bool sites = link->from_site != TB_GRID_NONE || link->to_site != TB_GRID_NONE;
        const char *what = sites ? "a site as the end of a link" : of_wire(&link->wire);
        if (what != NULL)
            return refuse(grid, link->line, what, "link", link->name);
    }
    return TB_OK;
}
