/* A switch in one process in place of multicast groups, whose functions are wrapped: what is multicast comes to all
 * members, or to nobody. RANKS, the most members, is defined by whoever includes it. */
#ifndef TB_ENGINE_MULTICAST_SWITCH_TEST_H
#define TB_ENGINE_MULTICAST_SWITCH_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "transport/transport.h"

#define PIECE 1400u /* payload of a datagram */
#define QUEUE (1u << 14)

struct flying {
    struct tb_datagram head;
    uint32_t length, from;
    uint8_t payload[PIECE];
};

/* What takes the place of a group: the port number of its own address is the process. */
struct tb_mcast_group {
    struct tb_mcast_config config;
    struct tb_mcast_counters counters;
    struct flying *queue;
    uint32_t first, count;
};

static struct tb_mcast_group *members[RANKS];
static bool cut;       /* multicasts do not pass */
static bool forbidden; /* no group can be opened */
static bool full;      /* nothing is taken */
static uint64_t multicasts;
/* Of a process: what comes to it in addition, each time that it looks. */
static struct {
    uint32_t to;
    uint64_t right, strange; /* datagrams that are counted, */
    uint32_t echoes;         /* and those that it gets, as one that was sent before, with this head and no payload */
    struct tb_datagram echo;
} flood;

int __wrap_tb_mcast_group_open(struct tb_mcast_group **group, const struct tb_mcast_config *config);
void __wrap_tb_mcast_group_close(struct tb_mcast_group *g);
int __wrap_tb_mcast_group_send(struct tb_mcast_group *g, const union tb_mcast_address *to,
                               const struct tb_mcast_datagram *datagrams, uint32_t count);
int __wrap_tb_mcast_group_poll(struct tb_mcast_group *g);
int __wrap_tb_mcast_group_descriptor(const struct tb_mcast_group *g);
uint64_t __wrap_tb_mcast_group_deadline(const struct tb_mcast_group *g);
const struct tb_mcast_counters *__wrap_tb_mcast_group_counters(struct tb_mcast_group *g);
uint64_t __wrap_tb_mcast_group_overflowed(const struct tb_mcast_group *g);
const union tb_mcast_address *__wrap_tb_mcast_group_own(const struct tb_mcast_group *g);

int __wrap_tb_mcast_group_open(struct tb_mcast_group **group, const struct tb_mcast_config *config)
{
    if (forbidden)
        return tb_error(TB_ERR_SYSTEM, "as this test wants it");
    struct tb_mcast_group *g = calloc(1, sizeof *g);
    assert_non_null(g);
    g->queue = malloc(QUEUE * sizeof *g->queue);
    assert_non_null(g->queue);
    g->config = *config;
    *group = members[config->self] = g;
    return TB_OK;
}

void __wrap_tb_mcast_group_close(struct tb_mcast_group *g)
{
    if (members[g->config.self] == g)
        members[g->config.self] = NULL;
    free(g->queue);
    free(g);
}

static void fly(const struct tb_mcast_group *g, uint32_t to, const struct tb_mcast_datagram *d)
{
    struct tb_mcast_group *there = members[to];
    if (to == g->config.self || there == NULL || there->count == QUEUE ||
        there->config.group.in4.sin_port != g->config.group.in4.sin_port)
        return;
    struct flying *f = &there->queue[(there->first + there->count++) % QUEUE];
    f->head = d->head;
    f->head.job = g->config.job;
    f->head.sender = f->from = g->config.self;
    f->length = (uint32_t)d->length;
    assert_true(d->length <= PIECE);
    if (d->length > 0)
        memcpy(f->payload, d->payload, d->length);
}

int __wrap_tb_mcast_group_send(struct tb_mcast_group *g, const union tb_mcast_address *to,
                               const struct tb_mcast_datagram *datagrams, uint32_t count)
{
    if (full)
        return 0;
    for (uint32_t i = 0; i < count; i++) {
        multicasts += to == NULL;
        if (to != NULL)
            fly(g, to->in4.sin_port, &datagrams[i]);
        for (uint32_t k = 0; k < RANKS && to == NULL && !cut; k++)
            fly(g, k, &datagrams[i]);
    }
    return (int)count;
}

static void flood_come(struct tb_mcast_group *g)
{
    const union tb_mcast_address from = {.in4 = {.sin_family = AF_INET}};
    const struct tb_mcast_arrival a = {.head = flood.echo, .from = &from};
    g->counters.forged += flood.strange;
    g->counters.received += flood.right + flood.echoes;
    for (uint32_t i = 0; i < flood.echoes; i++)
        g->config.upcalls.datagram(g->config.upcalls.context, &a);
}

int __wrap_tb_mcast_group_poll(struct tb_mcast_group *g)
{
    int n = 0;
    if (g->config.self == flood.to)
        flood_come(g);
    for (; g->count > 0 && n < 64; n++) {
        static struct flying f;
        f = g->queue[g->first++ % QUEUE];
        g->count--;
        union tb_mcast_address from = {.in4 = {.sin_family = AF_INET, .sin_port = (in_port_t)f.from}};
        const struct tb_mcast_arrival a = {.head = f.head, .payload = f.payload, .length = f.length, .from = &from};
        g->config.upcalls.datagram(g->config.upcalls.context, &a);
    }
    return n;
}

int __wrap_tb_mcast_group_descriptor(const struct tb_mcast_group *g)
{
    return -1;
}

uint64_t __wrap_tb_mcast_group_deadline(const struct tb_mcast_group *g)
{
    return g->count > 0 ? 0 : TB_NEVER;
}

const struct tb_mcast_counters *__wrap_tb_mcast_group_counters(struct tb_mcast_group *g)
{
    return &g->counters;
}

uint64_t __wrap_tb_mcast_group_overflowed(const struct tb_mcast_group *g)
{
    return g->config.self + 1;
}

const union tb_mcast_address *__wrap_tb_mcast_group_own(const struct tb_mcast_group *g)
{
    static union tb_mcast_address own;
    own = (union tb_mcast_address){.in4 = {.sin_family = AF_INET, .sin_port = (in_port_t)g->config.self}};
    return &own;
}

#endif
