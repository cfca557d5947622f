/* For tests: groups whose ranks are in random trees of places, up to five levels deep and as unequal as they come, the
 * same on every machine; three of four with a cost table of wires that are as unequal. */
#ifndef TB_COLLECTIVES_RANDOM_PLACES_TEST_H
#define TB_COLLECTIVES_RANDOM_PLACES_TEST_H

#include <stdlib.h>

#include "base/base.h"
#include "collectives/collectives.h"

#define RANDOM_PLACES 64u
#define RANDOM_RANKS  64u
#define RANDOM_DEPTH  5u
#define RANDOM_WIRES  (3u * RANDOM_PLACES + 2u)

struct random_group {
    struct tb_random random;
    struct tb_cost_place rows[RANDOM_PLACES];
    struct tb_wire wires[RANDOM_WIRES]; /* a port, an uplink and a downlink of each place, the wide area, agents */
    struct tb_cost_kind kind;
    struct tb_cost_head head;
    struct tb_cost_table table;
    uint32_t host[RANDOM_RANKS], place[RANDOM_RANKS]; /* of each rank; of each host */
    const struct tb_group_shape *shape;
};

static uint32_t random_number(struct random_group *g, uint32_t below)
{
    return (uint32_t)tb_random_below(&g->random, below);
}

/* A place is in the one before, or in some place around that; or all are sites. */
static void random_tree(struct random_group *g, uint32_t count)
{
    uint32_t most = random_number(g, 6) == 0 ? 1 : RANDOM_DEPTH;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t parent = i == 0 ? TB_PLACE_NONE : i - 1;
        while (i > 0 && parent != 0 && (g->rows[parent].depth == most || random_number(g, 3) > 0))
            parent = g->rows[parent].parent;
        uint8_t depth = i == 0 ? 0 : (uint8_t)(g->rows[parent].depth + 1);
        g->rows[i] = (struct tb_cost_place){.parent = parent, .depth = depth, .look = i};
        g->rows[i].level = depth == 0 ? TB_LEVEL_WORLD : depth == 1 ? TB_LEVEL_SITE : TB_LEVEL_CLUSTER;
    }
}

static uint64_t random_rate(struct random_group *g)
{
    return 1000000ull << random_number(g, 11); /* from 1 Mbit/s on */
}

/* Costs: from fast networks to slow ones, from near ones to far ones, at random. */
static void random_costs(struct random_group *g, uint32_t places)
{
    struct tb_cost_constants *c = &g->head.constants;
    for (uint32_t i = 0; i < RANDOM_WIRES; i++) {
        g->wires[i] = (struct tb_wire){.bandwidth = random_rate(g), .curve = TB_COST_NONE, .ends = TB_COST_NONE};
        g->wires[i].latency = i % 3 == 0 && i < 3 * places ? 0 : 1000000ull << random_number(g, 16);
    }
    for (uint32_t i = 0; i < places; i++) {
        bool up = random_number(g, 2) == 0;
        uint32_t end = i + 1;
        while (end < places && g->rows[end].depth > g->rows[i].depth)
            end++;
        g->rows[i].end = end;
        g->rows[i].port = 3 * i;
        g->rows[i].up = up ? 3 * i + 1 : TB_COST_NONE;
        g->rows[i].down = up ? 3 * i + 2 : TB_COST_NONE;
        g->rows[i].near = 1000000ull << random_number(g, 10);
    }
    c->wide = RANDOM_WIRES - 2;
    c->agent = RANDOM_WIRES - 1;
    for (int i = 0; i < TB_ENDS_COUNT; i++) {
        c->ends[i].send = tb_cost_line(100000ull << random_number(g, 12), random_rate(g));
        c->ends[i].receive = tb_cost_line(100000ull << random_number(g, 12), random_rate(g));
    }
    c->shm_latency = 100000;
    c->reduce = tb_cost_line(0, random_rate(g));
    g->head.wire_count = RANDOM_WIRES;
    g->table.wires = g->wires;
}

static int numbers_compare(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

static void random_run(const void *context, uint32_t rank, struct tb_shape_run *run)
{
    const struct random_group *g = context;
    *run = (struct tb_shape_run){.host = g->host[rank], .place = g->place[g->host[rank]], .count = 1};
    run->multicast = run->place % 3 > 0; /* in most places one datagram reaches all hosts */
    run->who = TB_COST_NONE;
}

/* Every third has its ranks in blocks, place by place, every third dealt to hosts in turn; the others are in no order.
 * With a split, so many ranks are the first of two groups.
 */
static bool random_sides_open(struct random_group *g, uint32_t seed, uint32_t size, uint32_t split)
{
    *g = (struct random_group){.shape = NULL};
    tb_random_seed(&g->random, seed);
    uint32_t places = 2 + random_number(g, RANDOM_PLACES / 2), hosts = 2 + random_number(g, size);
    hosts = hosts > size ? size : hosts;
    TB_ASSERT(hosts > 0);
    random_tree(g, places);
    g->kind = (struct tb_cost_kind){.port = TB_COST_NONE, .gate_of = TB_COST_NONE};
    g->head = (struct tb_cost_head){.place_count = places, .kind_count = 1, .version = 1};
    g->table = (struct tb_cost_table){.head = &g->head, .places = g->rows, .kinds = &g->kind};
    if (seed % 4 > 0)
        random_costs(g, places);
    for (uint32_t i = 0; i < hosts; i++)
        g->place[i] = random_number(g, places);
    for (uint32_t i = 0; i < size; i++)
        g->host[i] = seed % 3 == 1 ? i % hosts : random_number(g, hosts);
    if (seed % 3 == 0) {
        qsort(g->place, hosts, sizeof(*g->place), numbers_compare);
        qsort(g->host, size, sizeof(*g->host), numbers_compare);
    }
    const struct tb_shape_source source = {
        .size = size, .split = split, .host_limit = RANDOM_RANKS, .run = random_run, .context = g, .table = &g->table};
    return tb_group_shape_make(&g->shape, &source) == TB_OK;
}

static bool random_group_open(struct random_group *g, uint32_t seed, uint32_t size)
{
    return random_sides_open(g, seed, size, 0);
}

static void random_group_close(struct random_group *g)
{
    tb_group_shape_release(g->shape);
}

#endif
