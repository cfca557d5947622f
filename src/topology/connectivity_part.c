/* Who reaches whom in a large grid, as far as some hosts need it: among all it would take long, and clusters without
 * them may lead on, but of many that are alike some are enough. */
#include "topology/connectivity.h"
#include "topology/grid_fold.h"

#include <stdlib.h>
#include <string.h>

#define WHOLE_CLUSTERS 256u /* so many are looked at as they are */

static int choose_part(const struct tb_grid *grid, const bool *wanted, const bool *apart, const bool *missing,
                       bool *part)
{
    struct tb_grid_fold fold;
    bool *marks = calloc(grid->cluster_count + 1u, sizeof *marks);
    if (marks == NULL)
        return tb_error(TB_ERR_MEMORY, "no memory for the clusters of %s", grid->file);
    if (apart != NULL)
        memcpy(marks, apart, grid->cluster_count * sizeof *marks);
    for (uint32_t i = 0; i < grid->host_count; i++)
        for (uint32_t k = 0; k < grid->hosts[i].cluster_count && (wanted[i] || (missing != NULL && missing[i])); k++)
            marks[grid->hosts[i].clusters[k]] = true;
    int rc = tb_grid_fold_open(&fold, grid, marks);
    if (rc == TB_OK) {
        tb_grid_fold_part(&fold, wanted, missing, part);
        tb_grid_fold_close(&fold);
    }
    free(marks);
    return rc;
}

int tb_connectivity_open_for(struct tb_connectivity *c, const struct tb_grid *grid, const bool *wanted,
                             const bool *apart, const bool *missing)
{
    int rc = grid->cluster_count <= WHOLE_CLUSTERS ? tb_connectivity_open(c, grid) : TB_ERR_LIMIT;
    if (rc != TB_ERR_LIMIT)
        return rc;
    bool *part = calloc(grid->host_count + 1u, sizeof *part);
    rc = part != NULL ? choose_part(grid, wanted, apart, missing, part)
                      : tb_error(TB_ERR_MEMORY, "no memory for the hosts of %s", grid->file);
    if (rc == TB_OK)
        rc = tb_connectivity_open_part(c, grid, part);
    free(part);
    return rc;
}
