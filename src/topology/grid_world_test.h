/* Grids for tests: one that is read from a text, with everything that a job makes of it; and random ones, whose
 * clusters nest up to five deep, with gateways, NAT, hosts that stand in two clusters, and links. */
#ifndef TB_TOPOLOGY_GRID_WORLD_TEST_H
#define TB_TOPOLOGY_GRID_WORLD_TEST_H

#include "topology/cost_make.h"
#include "topology/hops.h"
#include "topology/places_grid.h"
#include "topology/way.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define TEXT_BYTES 8192

struct grid_world {
    struct tb_grid grid;
    struct tb_connectivity connectivity;
    struct tb_routes routes;
    struct tb_places places;
    struct tb_cost_table table;
    uint32_t *cluster_places, *site_places;
    void *bytes;
};

static inline void world_open(struct grid_world *w, const char *text)
{
    size_t length;
    assert_int_equal(tb_param_load(), TB_OK);
    if (tb_grid_parse(&w->grid, text, strlen(text), "g.yaml") != TB_OK ||
        tb_connectivity_open(&w->connectivity, &w->grid) != TB_OK ||
        tb_routes_open(&w->routes, &w->connectivity) != TB_OK)
        fail_msg("%s in\n%s", tb_error_story(), text);
    w->cluster_places = calloc(w->grid.cluster_count + 1, sizeof(uint32_t));
    w->site_places = calloc(w->grid.site_count + 1, sizeof(uint32_t));
    assert_int_equal(tb_places_from_grid(&w->places, &w->grid, w->cluster_places, w->site_places), TB_OK);
    struct tb_cost_source source = {.places = &w->places,
                                    .grid = &w->grid,
                                    .cluster_places = w->cluster_places,
                                    .site_places = w->site_places,
                                    .classes = &w->connectivity.classes,
                                    .routes = &w->routes,
                                    .host_count = w->grid.host_count,
                                    .version = 1};
    if (tb_cost_table_make(&source, &w->bytes, &length) != TB_OK ||
        tb_cost_table_view(&w->table, w->bytes, length) != TB_OK ||
        tb_cost_table_check(&w->table, w->grid.host_count) != TB_OK)
        fail_msg("%s in\n%s", tb_error_story(), text);
}

static inline void world_close(struct grid_world *w)
{
    free(w->bytes);
    free(w->cluster_places);
    free(w->site_places);
    tb_places_close(&w->places);
    tb_routes_close(&w->routes);
    tb_connectivity_close(&w->connectivity);
    tb_grid_close(&w->grid);
}

static inline struct tb_spot spot_of(const struct grid_world *w, uint32_t host)
{
    return (struct tb_spot){w->cluster_places[w->grid.hosts[host].cluster], w->connectivity.classes.of[host], host};
}

/* Ranks on hosts of the grid, in the order of a list. */
struct grid_group {
    const struct grid_world *world;
    const uint32_t *hosts; /* of each rank */
};

static inline void grid_run(const void *context, uint32_t rank, struct tb_shape_run *run)
{
    const struct grid_group *g = context;
    struct tb_spot spot = spot_of(g->world, g->hosts[rank]);
    bool apart = (g->world->table.kinds[spot.kind].flags & TB_KIND_TOLD_APART) != 0;
    *run = (struct tb_shape_run){
        .host = spot.who, .place = spot.place, .kind = spot.kind, .who = apart ? spot.who : TB_COST_NONE, .count = 1};
}

static inline const struct tb_group_shape *grid_shape(const struct grid_world *w, const uint32_t *hosts, uint32_t size,
                                                      uint32_t split)
{
    const struct tb_group_shape *shape;
    const struct grid_group group = {w, hosts};
    const struct tb_shape_source source = {.size = size,
                                           .split = split,
                                           .host_limit = w->grid.host_count,
                                           .table = &w->table,
                                           .run = grid_run,
                                           .context = &group};
    assert_int_equal(tb_group_shape_make(&shape, &source), TB_OK);
    return shape;
}

/* ---- random grids ------------------------------------------------------------------------------------------------ */

struct grid_maker {
    uint64_t seed;
    char text[TEXT_BYTES];
    size_t at;
    uint32_t clusters, hosts;
};

static inline uint32_t draw(struct grid_maker *m, uint32_t below)
{
    m->seed = m->seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
    return (uint32_t)(m->seed >> 33) % below; // NOLINT(clang-analyzer-core.DivideZero): it is never 0
}

__attribute__((format(printf, 2, 3))) static inline void put(struct grid_maker *m, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    m->at += (size_t)vsnprintf(m->text + m->at, sizeof m->text - m->at, format, list);
    va_end(list);
    assert_true(m->at < sizeof m->text);
}

static inline void put_cluster(struct grid_maker *m, uint32_t depth)
{
    uint32_t first = m->hosts, own = 1 + draw(m, 3);
    put(m, "{name: c%u, hosts: [", m->clusters++);
    if (first > 0 && draw(m, 6) == 0)
        put(m, "h%u, ", draw(m, first)); /* stands in two */
    for (uint32_t i = 0; i < own; i++)
        put(m, "%sh%u", i > 0 ? ", " : "", m->hosts++);
    put(m, "], ethernet: {latency: %u}", draw(m, 4));
    if (draw(m, 3) == 0)
        put(m, ", gateways: [h%u%s]", first, "");
    if (draw(m, 5) == 0)
        put(m, ", nat: true");
    if (depth < 4 && draw(m, 3) == 0) {
        put(m, ", clusters: [");
        put_cluster(m, depth + 1);
        if (draw(m, 2) == 0) {
            put(m, ", ");
            put_cluster(m, depth + 1);
        }
        put(m, "]");
    }
    put(m, "}");
}

/* The next grid, as text. */
static inline void grid_draw(struct grid_maker *m)
{
    uint32_t tops[4] = {0}, count = 2 + draw(m, 3);
    m->at = m->clusters = m->hosts = 0;
    put(m, "clusters: [");
    for (uint32_t i = 0; i < count; i++) {
        put(m, "%s", i > 0 ? ", " : "");
        tops[i] = m->clusters;
        put_cluster(m, 0);
    }
    uint32_t latency = draw(m, 20); /* one after the other, so that all compilers draw the same grids */
    bool blocked = draw(m, 3) == 0, direct = !blocked && draw(m, 2) == 0;
    put(m, "]\nlinks: [{from: c0, to: c%u, latency: %u%s}]\n", tops[1], latency,
        blocked  ? ", blocked: true"
        : direct ? ", direct: yes"
                 : "");
}

#endif
