#include "launch/missing_hosts.h"

#include <stdio.h>

bool tb_missing_hosts_allow(const struct tb_grid_plan *plan, const struct tb_options *options,
                            const struct tb_placement *placement, uint32_t host)
{
    return options->allow_missing ||
           (placement->book.hosts[host].rank_count == 0 &&
            tb_grid_plan_can_miss(plan, options, placement, (uint32_t)placement->entries[host]));
}

void tb_missing_hosts_name(const struct tb_grid_plan *plan, const struct tb_placement *placement, uint32_t host,
                           char *text, size_t size)
{
    uint32_t own = (uint32_t)placement->entries[host];
    const struct tb_grid_cluster *cluster = &plan->grid->clusters[plan->grid->hosts[own].cluster];
    const uint32_t *entries = cluster->gateway_count > 0 ? cluster->gateways : cluster->hosts;
    uint32_t count = cluster->gateway_count > 0 ? cluster->gateway_count : cluster->host_count, left = 0;
    bool is_entry = false;
    for (uint32_t i = 0; i < count; i++) {
        is_entry = is_entry || entries[i] == own;
        left += entries[i] != own && !plan->missing[entries[i]];
    }
    *text = 0;
    if (is_entry && left == 0)
        snprintf(text, size, "cluster %s is missing: ", cluster->name);
}

uint32_t tb_missing_hosts_next(struct tb_grid_plan *plan, uint32_t from, bool *news)
{
    const struct tb_grid *grid = plan->grid;
    const uint32_t *classes = plan->connectivity.classes.of;
    for (uint32_t i = from; i < grid->host_count; i++) {
        if (plan->missing[i] || grid->hosts[i].slots == 0 || plan->manual[i] || i == plan->here ||
            classes[i] == TB_GRID_NONE || plan->depths[classes[i]] != TB_GRID_NONE)
            continue;
        /* Of a cluster of which somebody was missed everybody has heard already. */
        const struct tb_grid_cluster *cluster = &grid->clusters[grid->hosts[i].cluster];
        *news = true;
        for (uint32_t k = 0; k < cluster->host_count; k++)
            *news = *news && !plan->missing[cluster->hosts[k]];
        plan->missing[i] = true;
        return i;
    }
    return TB_GRID_NONE;
}
