/* Where the hosts of a job are, and what it costs to get from one to another. */
#include "launch/job_plan.h"

#include "topology/topology.h"

#include <stdlib.h>

#define FIRST_VERSION 1u

/* ---- without a grid ---------------------------------------------------------------------------------------------- */

/* What the list of hosts, or the host itself, says: a cluster in its site, the site alone, or nothing. */
static int find_place(struct tb_places_builder *builder, const struct tb_host_where *where, uint32_t *handle)
{
    int rc = TB_OK;
    *handle = 0;
    if (*where->site != 0)
        rc = tb_places_builder_add(builder, 0, TB_LEVEL_SITE, where->site, handle);
    if (rc == TB_OK && *where->cluster != 0)
        rc = tb_places_builder_add(builder, *handle, TB_LEVEL_CLUSTER, where->cluster, handle);
    return rc;
}

static int place_hosts(struct tb_placement *placement)
{
    struct tb_address_book *book = &placement->book;
    struct tb_places_builder *builder;
    uint32_t *numbers = NULL;
    int rc = tb_places_builder_open(&builder);
    for (uint32_t i = 0; i < book->host_count && rc == TB_OK; i++)
        rc = find_place(builder, &placement->wheres[i], &book->hosts[i].place);
    if (rc != TB_OK)
        goto out;
    numbers = malloc(tb_places_builder_count(builder) * sizeof *numbers);
    rc = numbers != NULL ? tb_places_builder_seal(builder, &book->places, numbers)
                         : tb_error(TB_ERR_MEMORY, "no memory for the places of a job");
    for (uint32_t i = 0; i < book->host_count && rc == TB_OK; i++)
        book->hosts[i].place = numbers[book->hosts[i].place];
out:
    free(numbers);
    tb_places_builder_close(builder);
    return rc;
}

/* ---- on a grid --------------------------------------------------------------------------------------------------- */

static int make_of_grid(const struct tb_grid_plan *plan, struct tb_placement *placement, void **bytes, size_t *length)
{
    const struct tb_grid *grid = plan->grid;
    struct tb_address_book *book = &placement->book;
    uint32_t *clusters = malloc((grid->cluster_count + 1u) * sizeof *clusters);
    uint32_t *sites = malloc((grid->site_count + 1u) * sizeof *sites);
    struct tb_cost_source source = {.places = &book->places,
                                    .grid = grid,
                                    .cluster_places = clusters,
                                    .site_places = sites,
                                    .classes = &plan->connectivity.classes,
                                    .routes = &plan->routes,
                                    .hosts = plan->book,
                                    .host_count = book->host_count,
                                    .version = FIRST_VERSION};
    int rc = clusters != NULL && sites != NULL ? tb_places_from_grid(&book->places, grid, clusters, sites)
                                               : tb_error(TB_ERR_MEMORY, "no memory for the places of %s", grid->file);
    for (uint32_t i = 0; i < book->host_count && rc == TB_OK; i++)
        book->hosts[i].place = clusters[grid->hosts[placement->entries[i]].cluster];
    if (rc == TB_OK)
        rc = tb_cost_table_make(&source, bytes, length);
    free(clusters);
    free(sites);
    return rc;
}

int tb_job_plan_make_costs(struct tb_job_plan *plan, struct tb_cost_head **table)
{
    struct tb_address_book *book = &plan->placement.book;
    void *bytes = NULL;
    size_t length = 0;
    int rc;
    tb_places_close(&book->places);
    book->version = FIRST_VERSION;
    if (plan->grid != NULL) {
        rc = make_of_grid(plan->grid, &plan->placement, &bytes, &length);
    } else {
        rc = place_hosts(&plan->placement);
        if (rc == TB_OK)
            rc = tb_cost_table_make_plain(&book->places, book->host_count, &bytes, &length);
    }
    *table = rc == TB_OK ? bytes : NULL;
    if (rc == TB_OK)
        tb_log(TB_LOG_DEBUG, "launch", "costs: version %u, %u places, %u wires, %u links, %zu bytes", (*table)->version,
               (*table)->place_count, (*table)->wire_count, (*table)->link_count, length);
    return rc;
}
