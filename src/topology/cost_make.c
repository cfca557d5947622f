#include "topology/cost_make.h"
#include "topology/cost_grid.h"
#include "topology/cost_links.h"
#include "topology/cost_parameters.h"

int tb_cost_table_make(const struct tb_cost_source *source, void **bytes, size_t *length)
{
    struct tb_cost_builder builder;
    struct tb_cost_grid grid = {.grid = source->grid,
                                .classes = source->classes,
                                .cluster_places = source->cluster_places,
                                .site_places = source->site_places,
                                .hosts = source->hosts};
    int rc = tb_cost_parameters_open(&builder, source->places);
    if (rc != TB_OK)
        goto out;
    builder.host_count = source->host_count;
    builder.version = source->version;
    builder.constants.flags |= source->closed ? TB_COSTS_CLOSED : 0;
    tb_cost_grid_fill(&builder, &grid);
    tb_cost_grid_gates(&builder, &grid);
    rc = tb_cost_links_take(&builder, tb_param.links);
    if (rc == TB_OK)
        rc = tb_cost_builder_seal(&builder, bytes, length);
out:
    tb_cost_builder_close(&builder);
    return rc;
}
