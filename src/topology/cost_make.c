#include "topology/cost_make.h"
#include "topology/cost_grid.h"
#include "topology/cost_links.h"
#include "topology/cost_parameters.h"
#include "topology/hops.h"

#include <stdlib.h>

/* The first two hosts of each class that take part; TB_GRID_NONE where there are fewer. NULL: no memory. */
static uint32_t *list_examples(const struct tb_cost_source *source)
{
    const struct tb_host_classes *classes = source->classes;
    uint32_t *examples = malloc((2 * (size_t)classes->class_count + 1) * sizeof *examples);
    for (uint32_t i = 0; examples != NULL && i < classes->class_count; i++) {
        uint32_t found = 0, size = tb_host_classes_size(classes, i);
        examples[2 * i] = examples[2 * i + 1] = TB_GRID_NONE;
        for (uint32_t k = 0; k < size && found < 2; k++) {
            uint32_t host = tb_host_classes_member(classes, i, k);
            if (source->hosts == NULL || source->hosts[host] != TB_GRID_NONE)
                examples[2 * i + found++] = host;
        }
    }
    return examples;
}

/* Whether the routes lead by other hosts than the table says; then these, without the ends, are in `path`. */
static bool differs(const struct tb_cost_source *source, const struct tb_cost_grid *grid,
                    const struct tb_cost_table *table, const uint32_t *examples, uint32_t from, uint32_t to,
                    uint32_t *path, uint32_t *count)
{
    struct tb_spot a = tb_cost_grid_spot(grid, from), b = tb_cost_grid_spot(grid, to), hops[TB_HOPS_LIMIT];
    uint32_t all = tb_routes_path(source->routes, from, to, TB_HOPS_LIMIT + 2, path);
    if (all < 2 || all > TB_HOPS_LIMIT + 2)
        return false; /* there is no way, or none that could be told */
    *count = all - 2;
    /* Routes know kinds; of each, somebody who takes part passes it on. */
    for (uint32_t i = 1; i <= *count; i++)
        if (tb_cost_grid_spot(grid, path[i]).who == TB_COST_NONE) {
            path[i] = examples[2 * source->classes->of[path[i]]];
            if (path[i] == TB_GRID_NONE)
                return false;
        }
    bool same = tb_cost_climb(table, &a, &b, 0, hops) == *count;
    for (uint32_t i = 0; i < *count && same; i++)
        same = tb_cost_grid_spot(grid, path[i + 1]).who == hops[i].who;
    return !same;
}

/* Looks at the table without detours, which has been sealed for that. Linear in hosts, quadratic only in kinds that
 * take part. */
static int find_detours(struct tb_cost_builder *builder, const struct tb_cost_source *source,
                        const struct tb_cost_grid *grid, const struct tb_cost_table *table)
{
    uint32_t n = source->classes->class_count, path[TB_HOPS_LIMIT + 2], count = 0, missed = 0;
    uint32_t *examples = list_examples(source);
    if (examples == NULL)
        return tb_error(TB_ERR_MEMORY, "no memory for the kinds of hosts of %s", source->grid->file);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t from = examples[2 * i];
        for (uint32_t k = 0; k < n && from != TB_GRID_NONE; k++) {
            uint32_t to = examples[2 * k + (k == i)];
            if (to == TB_GRID_NONE || !differs(source, grid, table, examples, from, to, path, &count))
                continue;
            if (builder->detours.count < TB_COST_DETOURS_LIMIT)
                tb_cost_grid_detour(builder, grid, i, k, path + 1, count);
            else
                missed++;
        }
    }
    if (missed > 0)
        tb_log(TB_LOG_WARN, "topology", "%u pairs of kinds of hosts take other ways than predictions assume", missed);
    free(examples);
    return TB_OK;
}

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
    tb_cost_grid_fill(&builder, &grid);
    tb_cost_grid_gates(&builder, &grid);
    rc = tb_cost_links_take(&builder, tb_param.links);
    if (rc == TB_OK)
        rc = tb_cost_builder_seal(&builder, bytes, length);
    if (rc == TB_OK && source->routes != NULL) {
        struct tb_cost_table table;
        TB_ASSERT(source->routes->class_count == source->classes->class_count);
        rc = tb_cost_table_view(&table, *bytes, *length);
        TB_ASSERT(rc == TB_OK);
        rc = find_detours(&builder, source, &grid, &table);
        if (rc != TB_OK || builder.detours.count > 0)
            free(*bytes);
        if (rc == TB_OK && builder.detours.count > 0)
            rc = tb_cost_builder_seal(&builder, bytes, length);
    }
out:
    tb_cost_builder_close(&builder);
    return rc;
}
