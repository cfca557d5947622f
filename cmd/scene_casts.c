/* Where multicast works in a scene. What a job finds out by a test is taken for granted here, unless the grid file says
 * otherwise. */
#include "scene.h"

#include <stdlib.h>

#define KINDS_MOST 64u /* of hosts in one cluster, as a job looks at */

bool tb_scene_casts_among(uint64_t hosts)
{
    return tb_param_multicasts() && tb_param_shares_memory() && hosts >= (uint64_t)tb_param.mcast_hosts;
}

/* Ranks connect to get what datagrams do not bring. */
static bool is_direct(const struct tb_routes *routes, uint32_t from, uint32_t to)
{
    return routes->class_count == 0 ||
           (tb_routes_between(routes, from, to)->hops == 1 && tb_routes_between(routes, to, from)->hops == 1);
}

/* Of a cluster: the hosts that have ranks and stand in no other are enough, and reach each other directly. */
static bool cluster_casts(const struct scene *s, const bool *ranked, uint32_t number)
{
    const struct tb_grid_cluster *cluster = &s->grid.clusters[number];
    uint32_t known[KINDS_MOST], known_count = 0; /* kinds of hosts */
    uint64_t members = 0;
    for (uint32_t i = 0; i < cluster->host_count; i++) {
        uint32_t host = cluster->hosts[i], kind = s->connectivity.classes.of[host];
        if (!ranked[host] || s->grid.hosts[host].cluster != number)
            continue;
        members++;
        bool is_new = true;
        for (uint32_t k = 0; k < known_count && is_new; k++)
            is_new = known[k] != kind;
        for (uint32_t k = 0; k < known_count && is_new; k++)
            if (!is_direct(&s->routes, known[k], kind))
                return false;
        if (is_new && known_count < KINDS_MOST)
            known[known_count++] = kind;
    }
    return !cluster->no_multicast && tb_scene_casts_among(members);
}

int tb_scene_cast(struct scene *s, const bool *ranked)
{
    s->casts = calloc((size_t)s->grid.cluster_count + 1, sizeof *s->casts);
    if (s->casts == NULL)
        return tb_error(TB_ERR_MEMORY, "%s: no memory for its clusters", s->grid.file);
    for (uint32_t i = 0; i < s->grid.cluster_count; i++)
        s->casts[i] = cluster_casts(s, ranked, i);
    return TB_OK;
}
