/* Which hosts of a large grid a grid plan looks at. */
#include "launch/grid_plan.h"

#include <stdlib.h>
#include <string.h>

int tb_grid_plan_connect(struct tb_grid_plan *plan, const struct tb_options *options)
{
    const struct tb_grid *grid = plan->grid;
    if (plan->ranked == NULL)
        return tb_connectivity_open(&plan->connectivity, grid);
    bool *wanted = malloc(grid->host_count + 1u), *apart = calloc(grid->cluster_count + 1u, sizeof *apart);
    int rc =
        wanted != NULL && apart != NULL ? TB_OK : tb_error(TB_ERR_MEMORY, "no memory for the hosts of %s", grid->file);
    if (rc == TB_OK) {
        memcpy(wanted, plan->ranked, grid->host_count);
        if (plan->here != TB_GRID_NONE)
            wanted[plan->here] = true;
        for (uint32_t i = 0; i < options->manual_count; i++) {
            uint32_t cluster = tb_grid_cluster_find(grid, options->manual[i]);
            if (cluster != TB_GRID_NONE)
                apart[cluster] = true;
        }
        rc = tb_connectivity_open_for(&plan->connectivity, grid, wanted, apart, plan->missing);
    }
    free(wanted);
    free(apart);
    return rc;
}

bool tb_grid_plan_covers(const struct tb_grid_plan *plan, const struct tb_placement *placement)
{
    for (uint32_t i = 0; i < placement->book.host_count; i++)
        if (placement->entries[i] >= 0 && plan->connectivity.classes.of[placement->entries[i]] == TB_GRID_NONE)
            return false;
    return true;
}
