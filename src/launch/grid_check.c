/* Whether a job could run on a grid: the plan of `mpiexec --grid` is made, and nothing is started. Of clusters that are
 * alike some stand for all, so that this takes as long as there are sorts of clusters. */
#include "launch/launch.h"

#include "launch/grid_plan.h"
#include "launch/host_names.h"

#include <stdlib.h>

struct check {
    const struct tb_grid *grid;
    struct tb_grid_fold fold;
    bool *left_out; /* by host: it stands in a cluster that others stand for */
    bool *ranked;   /* by host: the others, if they have slots */
    bool *missing;  /* by host: nobody is */
};

static void check_close(struct check *check)
{
    tb_grid_fold_close(&check->fold);
    free(check->left_out);
    free(check->ranked);
    free(check->missing);
}

static int check_open(struct check *check, const struct tb_grid *grid)
{
    size_t hosts = (size_t)grid->host_count + 1;
    *check = (struct check){.grid = grid,
                            .left_out = calloc(hosts, sizeof *check->left_out),
                            .ranked = calloc(hosts, sizeof *check->ranked),
                            .missing = calloc(hosts, sizeof *check->missing)};
    int rc = check->left_out != NULL && check->ranked != NULL && check->missing != NULL
                 ? tb_grid_fold_open(&check->fold, grid, NULL)
                 : tb_error(TB_ERR_MEMORY, "no memory for the hosts of %s", grid->file);
    for (uint32_t i = 0; i < grid->host_count && rc == TB_OK; i++) {
        check->left_out[i] = !check->fold.stays[grid->hosts[i].cluster];
        check->ranked[i] = !check->left_out[i] && grid->hosts[i].slots > 0;
    }
    if (rc != TB_OK)
        check_close(check);
    return rc;
}

/* With ranks on all slots that count, started on a host of the grid or (TB_GRID_NONE) outside of it; `by_hand`: each
 * cluster is started by somebody who is there. */
static int plan_from(const struct check *check, uint32_t here, bool by_hand)
{
    static char *program[] = {(char *)"program", NULL};
    const struct tb_grid *grid = check->grid;
    struct tb_section section = {.arguments = program, .argument_count = 1};
    struct tb_options options = {
        .name = "mpiexec", .section_count = 1, .sections = &section, .grid = grid, .oversubscribes = true};
    for (uint32_t i = 0; by_hand && i < grid->cluster_count && options.manual_count < TB_MANUAL_LIMIT; i++)
        if (check->fold.stays[i])
            options.manual[options.manual_count++] = grid->clusters[i].name;
    struct tb_grid_plan plan;
    struct tb_placement placement = {0};
    int rc = tb_grid_plan_open_for(&plan, &options, here, check->missing, check->ranked);
    bool opened = rc == TB_OK;
    if (rc == TB_OK)
        rc = tb_host_list_take(&options.hosts, grid, check->left_out);
    if (rc == TB_OK)
        rc = tb_placement_make(&placement, &options);
    if (rc == TB_OK)
        rc = tb_grid_plan_settle(&plan, &options, &placement);
    tb_placement_close(&placement);
    tb_host_list_close(&options.hosts);
    if (opened)
        tb_grid_plan_close(&plan);
    return rc;
}

/* Not from here; perhaps from inside. Hosts of a cluster are alike, but for gateways, which are before them. */
static int plan_inside(const struct check *check, uint32_t *host)
{
    const struct tb_grid *grid = check->grid;
    int rc = TB_ERR_UNSUPPORTED;
    for (uint32_t i = 0; i < grid->cluster_count && rc == TB_ERR_UNSUPPORTED; i++) {
        const struct tb_grid_cluster *cluster = &grid->clusters[i];
        for (uint32_t k = 0; k < cluster->host_count && check->fold.stays[i] && rc == TB_ERR_UNSUPPORTED; k++)
            if (k == 0 || tb_grid_is_gateway(cluster, cluster->hosts[k])) {
                *host = cluster->hosts[k];
                rc = plan_from(check, *host, false);
            }
    }
    return rc;
}

int tb_grid_check(const struct tb_grid *grid, bool in_lab, struct tb_start_place *start)
{
    struct check check;
    int rc = check_open(&check, grid);
    if (rc != TB_OK)
        return rc;
    *start = (struct tb_start_place){.host = tb_host_names_find_here(grid, check.missing, in_lab)};
    rc = plan_from(&check, start->host, false);
    if (rc == TB_ERR_UNSUPPORTED)
        rc = plan_inside(&check, &start->host);
    if (rc == TB_ERR_UNSUPPORTED) {
        /* If not even that helps, messages have no way, and that is what is to be said. */
        *start = (struct tb_start_place){.host = TB_GRID_NONE, .by_hand = true};
        rc = plan_from(&check, TB_GRID_NONE, true);
    }
    check_close(&check);
    return rc;
}
