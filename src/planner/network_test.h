/* For tests: the ways of a group on a grid that a text describes. */
#ifndef TB_PLANNER_NETWORK_TEST_H
#define TB_PLANNER_NETWORK_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "collectives/collectives.h"
#include "topology/topology.h"

/* Of network_plain, in picoseconds. */
#define NETWORK_OVERHEAD 3000000ull /* of each end */
#define NETWORK_LATENCY  40000000ull

struct network {
    struct tb_grid grid;
    struct tb_places places;
    struct tb_host_classes classes;
    struct tb_cost_table table;
    uint32_t *cluster_places, *site_places;
    struct tb_cost_head *bytes; /* of the table, which tests may change */
    uint32_t *hosts;            /* of the grid, of each rank */
    uint32_t size;
    const struct tb_group_shape *shape;
    struct tb_ways ways;
};

static bool network_multicasts; /* one datagram reaches all hosts of a cluster; of networks that are opened then */

static inline void network_run(const void *context, uint32_t rank, struct tb_shape_run *run)
{
    const struct network *n = context;
    uint32_t host = n->hosts[rank], kind = n->classes.of[host];
    bool apart = (n->table.kinds[kind].flags & TB_KIND_TOLD_APART) != 0;
    *run = (struct tb_shape_run){.host = host,
                                 .place = n->cluster_places[n->grid.hosts[host].cluster],
                                 .kind = kind,
                                 .who = apart ? host : TB_COST_NONE,
                                 .multicast = network_multicasts,
                                 .count = 1};
}

/* Where its ranks are: names of hosts with spaces between. NULL: `each` ranks on every host, in order. */
static inline void network_ranks(struct network *n, const char *names, uint32_t each)
{
    n->hosts = calloc(names != NULL ? strlen(names) : (size_t)n->grid.host_count * each + 1, sizeof *n->hosts);
    assert_non_null(n->hosts);
    n->size = names != NULL ? 0 : n->grid.host_count * each;
    for (uint32_t i = 0; i < n->size; i++)
        n->hosts[i] = i / each;
    while (names != NULL && *names != 0) {
        char name[64];
        size_t length = strcspn(names, " ");
        memcpy(name, names, length);
        name[length] = 0;
        names += length + strspn(names + length, " ");
        uint32_t host = tb_grid_host_find(&n->grid, name);
        assert_int_not_equal(host, TB_GRID_NONE);
        n->hosts[n->size++] = host;
    }
}

static inline void network_open(struct network *n, const char *text, const char *names, uint32_t each)
{
    size_t length;
    assert_int_equal(tb_param_load(), TB_OK);
    if (tb_grid_parse(&n->grid, text, strlen(text), "g.yaml") != TB_OK)
        fail_msg("%s", tb_error_story());
    n->cluster_places = calloc(n->grid.cluster_count + 1, sizeof(uint32_t));
    n->site_places = calloc(n->grid.site_count + 1, sizeof(uint32_t));
    assert_int_equal(tb_places_from_grid(&n->places, &n->grid, n->cluster_places, n->site_places), TB_OK);
    assert_int_equal(tb_host_classes_open(&n->classes, &n->grid), TB_OK);
    struct tb_cost_source source = {.places = &n->places,
                                    .grid = &n->grid,
                                    .cluster_places = n->cluster_places,
                                    .site_places = n->site_places,
                                    .classes = &n->classes,
                                    .host_count = n->grid.host_count,
                                    .version = 1};
    void *bytes;
    assert_int_equal(tb_cost_table_make(&source, &bytes, &length), TB_OK);
    n->bytes = bytes;
    assert_int_equal(tb_cost_table_view(&n->table, bytes, length), TB_OK);
    network_ranks(n, names, each);
    struct tb_shape_source ranks = {
        .size = n->size, .host_limit = n->grid.host_count, .table = &n->table, .run = network_run, .context = n};
    assert_int_equal(tb_group_shape_make(&n->shape, &ranks), TB_OK);
    assert_int_equal(tb_ways_open(&n->ways, &n->table, n->shape), TB_OK);
}

static inline void network_close(struct network *n)
{
    tb_ways_close(&n->ways);
    tb_group_shape_release(n->shape);
    free(n->hosts);
    free(n->bytes);
    free(n->cluster_places);
    free(n->site_places);
    tb_places_close(&n->places);
    tb_host_classes_close(&n->classes);
    tb_grid_close(&n->grid);
}

/* Takes away the limits of queues, and acknowledgements: messages are all that is on wires. */
static inline void network_unlimited(struct network *n)
{
    struct tb_wire *wires = (struct tb_wire *)((char *)n->bytes + n->bytes->wires);
    for (uint32_t i = 0; i < n->bytes->wire_count; i++)
        wires[i].queue = 0;
    n->bytes->constants.ack_share = 0;
}

/* One cluster of so many hosts, in which messages take a fixed time besides that on the wire. */
static inline void network_plain(struct network *n, uint32_t hosts, uint32_t each)
{
    char text[256];
    snprintf(text, sizeof text,
             "clusters:\n- {name: a, hosts: \"n[1-%u]\", ethernet: {bandwidth: 100, latency: 0.04}}\n", hosts);
    network_open(n, text, NULL, each);
    struct tb_cost_constants *c = &n->bytes->constants;
    for (int i = 0; i < TB_ENDS_COUNT; i++)
        c->ends[i].send = c->ends[i].receive = tb_cost_line(NETWORK_OVERHEAD, 0);
    c->copy = c->reduce = c->memory = tb_cost_line(0, 0);
    c->short_bytes = 0;
    c->cores = 0;
    network_unlimited(n);
}

static inline const struct tb_algorithm *algorithm_find(enum tb_operation operation, const char *name)
{
    for (int i = 0; tb_catalogue[i] != NULL; i++)
        if (tb_catalogue[i]->operation == operation && strcmp(tb_catalogue[i]->name, name) == 0)
            return tb_catalogue[i];
    fail_msg("%s has no algorithm %s", tb_operation_name(operation), name);
    return NULL;
}

/* Everyone's programs. NULL: it cannot be. */
static inline struct tb_program **programs_make(const struct tb_algorithm *a, const struct tb_collective *c)
{
    struct tb_program **programs = calloc(c->size + (size_t)1, sizeof *programs);
    struct tb_collective mine = *c;
    assert_non_null(programs);
    for (mine.rank = 0; mine.rank < c->size; mine.rank++)
        assert_int_equal(a->make(&mine, &programs[mine.rank]), TB_OK);
    return programs;
}

static inline void programs_close(struct tb_program **programs, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        tb_program_free(programs[i]);
    free(programs);
}

#endif
