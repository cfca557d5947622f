#include "topology/places_grid.h"

#include <stdlib.h>

/* Gives handles, which become numbers when all are there. */
static int add_all(struct tb_places_builder *builder, const struct tb_grid *grid, uint32_t *clusters, uint32_t *sites)
{
    int rc = TB_OK;
    for (uint32_t i = 0; i < grid->site_count && rc == TB_OK; i++)
        rc = tb_places_builder_add(builder, 0, TB_LEVEL_SITE, grid->sites[i].name, &sites[i]);
    for (uint32_t i = 0; i < grid->cluster_count && rc == TB_OK; i++) {
        const struct tb_grid_cluster *cluster = &grid->clusters[i]; /* a parent stands before its children */
        uint32_t parent = cluster->parent != TB_GRID_NONE ? clusters[cluster->parent]
                          : cluster->site != TB_GRID_NONE ? sites[cluster->site]
                                                          : 0;
        rc = tb_places_builder_add(builder, parent, TB_LEVEL_CLUSTER, cluster->name, &clusters[i]);
    }
    return rc;
}

int tb_places_from_grid(struct tb_places *places, const struct tb_grid *grid, uint32_t *cluster_places,
                        uint32_t *site_places)
{
    struct tb_places_builder *builder;
    uint32_t *numbers = NULL;
    *places = (struct tb_places){0};
    int rc = tb_places_builder_open(&builder);
    if (rc != TB_OK)
        return rc;
    rc = add_all(builder, grid, cluster_places, site_places);
    if (rc != TB_OK)
        goto out;
    numbers = malloc(tb_places_builder_count(builder) * sizeof *numbers);
    rc = numbers != NULL ? tb_places_builder_seal(builder, places, numbers)
                         : tb_error(TB_ERR_MEMORY, "no memory for the places of %s", grid->file);
    for (uint32_t i = 0; i < grid->site_count && rc == TB_OK; i++)
        site_places[i] = numbers[site_places[i]];
    for (uint32_t i = 0; i < grid->cluster_count && rc == TB_OK; i++)
        cluster_places[i] = numbers[cluster_places[i]];
out:
    free(numbers);
    tb_places_builder_close(builder);
    return rc;
}
