#include "lab/unbuilt.h"

static int refuse(const struct tb_grid *grid, uint32_t line, const char *what, const char *of, const char *name)
{
    return tb_error(TB_ERR_UNSUPPORTED, "%s:%u: a lab cannot build %s yet, as %s %s has", grid->file, line, what, of,
                    name);
}

int tb_lab_unbuilt_refuse(const struct tb_grid *grid)
{
    for (uint32_t i = 0; i < grid->cluster_count; i++)
        if (grid->clusters[i].ip != TB_GRID_IPV4)
            return refuse(grid, grid->clusters[i].line, "IPv6", "cluster", grid->clusters[i].name);
    return TB_OK;
}
