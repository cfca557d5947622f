/* Shapes of several hosts, for tests of algorithms that depend on who is on which host. */
#ifndef TB_COLLECTIVES_HOSTS_TEST_H
#define TB_COLLECTIVES_HOSTS_TEST_H

#include <string.h>

#include "collectives/collectives.h"

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

/* What an algorithm must be told of the group so that it fits. */
static void hosts_allow(struct tb_collective *c, const struct tb_algorithm *a)
{
    bool hosts = strcmp(a->name, "hosts") == 0;
    c->common = hosts || strcmp(a->name, "shm") == 0;
    if (hosts && !c->inter)
        c->shape = hosts_shape(c->size);
}

#endif
