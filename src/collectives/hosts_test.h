/* Shapes of several hosts, for tests of algorithms that depend on who is on which host. */
#ifndef TB_COLLECTIVES_HOSTS_TEST_H
#define TB_COLLECTIVES_HOSTS_TEST_H

#include <string.h>

#include "collectives/collectives.h"
#include "collectives/forest_test.h"

#define HOSTS_SIZES 65

/* Which host a rank is on: in blocks of three, dealt to four hosts, or neither, with hosts of one rank among them. */
static void hosts_run(const void *context, uint32_t rank, struct tb_shape_run *run)
{
    uint32_t size = *(const uint32_t *)context;
    uint32_t host = size % 3 == 0 ? rank % 4 : size % 3 == 1 ? rank / 3 : rank * rank % 7 + (rank == size / 2 ? 7 : 0);
    *run = (struct tb_shape_run){.host = host, .who = TB_COST_NONE, .count = 1};
}

/* The one of a number of ranks; NULL: these are too many. They are kept until the end of the process. */
static const struct tb_group_shape *hosts_shape(uint32_t size)
{
    static const struct tb_group_shape *shapes[HOSTS_SIZES];
    if (size >= HOSTS_SIZES)
        return NULL;
    const struct tb_shape_source source = {.size = size, .host_limit = size + 8, .run = hosts_run, .context = &size};
    if (shapes[size] == NULL && tb_group_shape_make(&shapes[size], &source) != TB_OK)
        return NULL;
    return shapes[size];
}

/* ---- places ------------------------------------------------------------------------------------------------------ */

#define PLACES_COUNT 14u

/* Places within places, up to five levels below the world, as unequal as they come. */
static const struct tb_cost_table *places_table(void)
{
    static const uint32_t parents[PLACES_COUNT] = {TB_PLACE_NONE, 0, 1, 2, 3, 4, 2, 1, 0, 8, 8, 10, 0, 0};
    static struct tb_cost_place rows[PLACES_COUNT];
    static struct tb_cost_kind kind;
    static struct tb_cost_head head = {.place_count = PLACES_COUNT, .kind_count = 1, .version = 1};
    static struct tb_cost_table table = {.head = &head, .places = rows, .kinds = &kind};
    kind = (struct tb_cost_kind){.port = TB_COST_NONE, .gate_of = TB_COST_NONE};
    for (uint32_t i = 0; i < PLACES_COUNT; i++) {
        rows[i].parent = parents[i];
        rows[i].depth = i == 0 ? 0 : (uint8_t)(rows[parents[i]].depth + 1);
        rows[i].level = rows[i].depth == 0 ? TB_LEVEL_WORLD : rows[i].depth == 1 ? TB_LEVEL_SITE : TB_LEVEL_CLUSTER;
        rows[i].look = i;
    }
    return &table;
}

/* Ranks in blocks, dealt, or neither; hosts in few places or in many, some of them in the world itself. */
static void places_run(const void *context, uint32_t rank, struct tb_shape_run *run)
{
    static const uint32_t few[] = {5, 9, 12}, many[] = {3, 5, 5, 6, 7, 9, 11, 11, 0, 13, 12, 2};
    uint32_t size = *(const uint32_t *)context, way = size / 2 % 3, hosts = size / 2 + 1;
    uint32_t host = way == 0 ? rank / 2 : way == 1 ? rank % hosts : (rank * rank + rank / 3) % hosts;
    uint32_t place = size % 4 < 2 ? few[host % 3] : many[host % 12];
    *run = (struct tb_shape_run){
        .host = host, .place = place, .who = TB_COST_NONE, .multicast = place != 6 && place != 13, .count = 1};
}

#define SIDES_SIZES 10

/* Two groups together, the first one of `size` ranks; other numbers of ranks make other places. */
static const struct tb_group_shape *places_sides(uint32_t size, uint32_t remote)
{
    static const struct tb_group_shape *shapes[SIDES_SIZES][SIDES_SIZES];
    if (size >= SIDES_SIZES || remote >= SIDES_SIZES)
        return NULL;
    uint32_t both = size + remote;
    const struct tb_shape_source source = {.size = both,
                                           .split = size,
                                           .host_limit = both + 8,
                                           .run = places_run,
                                           .context = &both,
                                           .table = places_table()};
    const struct tb_group_shape **shape = &shapes[size][remote];
    return *shape != NULL || tb_group_shape_make(shape, &source) == TB_OK ? *shape : NULL;
}

static const struct tb_group_shape *places_shape(uint32_t size)
{
    static const struct tb_group_shape *shapes[HOSTS_SIZES];
    if (size >= HOSTS_SIZES)
        return NULL;
    const struct tb_shape_source source = {
        .size = size, .host_limit = size + 8, .run = places_run, .context = &size, .table = places_table()};
    if (shapes[size] == NULL && tb_group_shape_make(&shapes[size], &source) != TB_OK)
        return NULL;
    return shapes[size];
}

static const struct tb_group_shape *places_given; /* instead of that; or NULL, */
static uint8_t places_skip;                       /* and the levels that are left out then */

static uint64_t forest_seed; /* other numbers make other forests */

/* Trees over the hosts of a group, for a root among its ranks; the same ones until others are asked for. */
static const struct tb_forest *forest_given(const struct tb_group_shape *shape, uint32_t root)
{
    static struct tb_forest *forest;
    static uint64_t made_of[3];
    uint64_t node = tb_group_shape_host(shape, root), of[3] = {shape->key[0], node, forest_seed};
    if (forest == NULL || memcmp(of, made_of, sizeof of) != 0) {
        tb_forest_close(forest);
        forest = forest_random(shape->key[0] + node * 131 + forest_seed, shape->host_count, (uint32_t)node);
        memcpy(made_of, of, sizeof of);
    }
    return forest;
}

/* What an algorithm must be told of the group so that it fits. */
static void hosts_allow(struct tb_collective *c, const struct tb_algorithm *a)
{
    bool hosts = strcmp(a->name, "hosts") == 0, levels = strncmp(a->name, "levels", 6) == 0;
    bool planned = strcmp(a->name, "planned") == 0;
    c->common = hosts || strcmp(a->name, "shm") == 0 || ((levels || planned) && c->size % 5 != 3);
    if ((hosts || (planned && places_given == NULL && c->size % 4 == 2)) && !c->inter)
        c->shape = hosts_shape(c->size);
    else if ((levels || planned) && !c->inter)
        c->shape = places_given != NULL ? places_given : places_shape(c->size);
    if (levels && c->inter) {
        uint32_t size = c->first ? c->size : c->remote_size;
        c->shape = places_given != NULL ? places_given : places_sides(size, c->size + c->remote_size - size);
        c->common = false;
    }
    if (planned && c->shape != NULL && !c->inter)
        c->forest = forest_given(c->shape, c->root);
    c->skip = places_given != NULL ? places_skip : 0;
}

#endif
