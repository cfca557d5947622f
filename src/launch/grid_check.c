/* Whether a job could run on a grid: the plan of `mpiexec --grid` is made, and nothing is started. */
#include "launch/launch.h"

#include "launch/grid_plan.h"
#include "launch/host_names.h"

#include <stdlib.h>

/* With ranks on all its slots, started on a host of the grid or (TB_GRID_NONE) outside of it; `by_hand`: each cluster
 * is started by somebody who is there. */
static int plan_from(const struct tb_grid *grid, uint32_t here, bool by_hand)
{
    static char *program[] = {(char *)"program", NULL};
    struct tb_section section = {.arguments = program, .argument_count = 1};
    struct tb_options options = {
        .name = "mpiexec", .section_count = 1, .sections = &section, .grid = grid, .oversubscribes = true};
    for (uint32_t i = 0; by_hand && i < grid->cluster_count && i < TB_MANUAL_LIMIT; i++)
        options.manual[options.manual_count++] = grid->clusters[i].name;
    struct tb_grid_plan plan;
    struct tb_placement placement = {0};
    bool *missing = calloc(grid->host_count + 1u, sizeof *missing);
    if (missing == NULL)
        return tb_error(TB_ERR_MEMORY, "no memory for the hosts of %s", grid->file);
    int rc = tb_grid_plan_open(&plan, &options, here, missing);
    bool opened = rc == TB_OK;
    if (rc == TB_OK)
        rc = tb_host_list_take(&options.hosts, grid, NULL);
    if (rc == TB_OK)
        rc = tb_placement_make(&placement, &options);
    if (rc == TB_OK)
        rc = tb_grid_plan_settle(&plan, &options, &placement);
    tb_placement_close(&placement);
    tb_host_list_close(&options.hosts);
    if (opened)
        tb_grid_plan_close(&plan);
    free(missing);
    return rc;
}

int tb_grid_check(const struct tb_grid *grid, bool in_lab, struct tb_start_place *start)
{
    bool *nobody = calloc(grid->host_count + 1u, sizeof *nobody);
    if (nobody == NULL)
        return tb_error(TB_ERR_MEMORY, "no memory for the hosts of %s", grid->file);
    *start = (struct tb_start_place){.host = tb_host_names_find_here(grid, nobody, in_lab)};
    free(nobody);
    int rc = plan_from(grid, start->host, false);
    /* Not from here; perhaps from inside. Hosts of a cluster are alike, but for gateways, which are before them. */
    for (uint32_t i = 0; i < grid->cluster_count && rc == TB_ERR_UNSUPPORTED; i++) {
        const struct tb_grid_cluster *cluster = &grid->clusters[i];
        for (uint32_t k = 0; k < cluster->host_count && rc == TB_ERR_UNSUPPORTED; k++)
            if (k == 0 || tb_grid_is_gateway(cluster, cluster->hosts[k])) {
                start->host = cluster->hosts[k];
                rc = plan_from(grid, start->host, false);
            }
    }
    if (rc != TB_ERR_UNSUPPORTED)
        return rc;
    /* If not even that helps, messages have no way, and that is what is to be said. */
    *start = (struct tb_start_place){.host = TB_GRID_NONE, .by_hand = true};
    return plan_from(grid, TB_GRID_NONE, true);
}
