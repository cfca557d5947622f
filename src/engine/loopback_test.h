/* Engines of one process on a simulated network without delay, for tests. The network can be told to take nothing
 * (TB_AGAIN), to hold payload back (TB_PENDING), to allow or forbid reading, and to break. Safe for engines that are
 * used by different threads. */
#ifndef TB_ENGINE_LOOPBACK_TEST_H
#define TB_ENGINE_LOOPBACK_TEST_H

#include "engine/engine_state.h"
#include "transport/sim/sim.h"

#include <stdlib.h>

#define LOOP_ENGINES TB_SIM_NODES
#define LOOP_PERCENT (TB_SIM_MILLION / 100)

struct loop_net {
    struct tb_sim sim;
    bool remote;                     /* engines take it for the transport to other hosts, */
    bool relayed;                    /* or for the one by which agents pass frames on */
    struct tb_distance far;          /* what they are told of each other */
    struct tb_transport_table table; /* that of the simulated network, for one or the other */
    const struct tb_transport_table *transports[2];
    struct tb_engine *engines[LOOP_ENGINES];
    struct tb_channel *channels[LOOP_ENGINES];
    uint32_t count;
    uint32_t lanes[LOOP_ENGINES]; /* of each of them; 0: none */
    uint32_t losses;              /* connections that an owner was told to be lost; the last one: */
    struct tb_proc lost;
    int lost_error;
};

static bool loop_is_local(void *context, struct tb_proc proc)
{
    return true;
}

static int loop_reach(void *context, struct tb_proc proc, struct tb_reach *reach)
{
    *reach = (struct tb_reach){.relayed = true};
    return TB_OK;
}

static void loop_distance(void *context, struct tb_proc proc, struct tb_distance *distance)
{
    *distance = ((const struct loop_net *)context)->far;
}

static void loop_connection_lost(void *context, struct tb_proc with, int error)
{
    struct loop_net *net = context;
    net->losses++;
    net->lost = with;
    net->lost_error = error;
}

static inline void loop_net_init(struct loop_net *net, uint32_t count)
{
    *net = (struct loop_net){.count = count};
    tb_sim_init(&net->sim, 1);
    net->sim.max_payload = 4096;
    net->sim.eager_limit = 1024;
    net->sim.bells = true;
    if (tb_param_load() != TB_OK)
        abort();
}

#define LOOP_CONTEXT tb_context_make(0, 1, TB_PLANE_POINT)

static inline void loop_net_open(struct loop_net *net, bool threaded)
{
    net->table = tb_transport_sim;
    net->table.scope = net->relayed ? TB_SCOPE_RELAYED : net->remote ? TB_SCOPE_DIRECT : TB_SCOPE_HOST;
    net->table.capabilities = net->sim.capabilities;
    net->transports[0] = &net->table;
    for (uint32_t i = 0; i < net->count; i++) {
        struct tb_engine_config config = {.transport = {.self = {7, i}, .local_count = net->count, .sim = &net->sim},
                                          .processes = net->count,
                                          .threaded = threaded || net->lanes[i] > 1,
                                          .lanes = net->lanes[i],
                                          .transports = net->transports,
                                          .is_local = loop_is_local,
                                          .reach = net->relayed ? loop_reach : NULL,
                                          .distance = loop_distance,
                                          .connection_lost = loop_connection_lost,
                                          .context = net,
                                          .control = -1};
        struct tb_channel_config channel = {.context = LOOP_CONTEXT, .size = net->count, .rank = i};
        if (tb_engine_open(&config, &net->engines[i]) != TB_OK ||
            tb_channel_open(net->engines[i], &channel, &net->channels[i]) != TB_OK)
            abort();
        struct tb_transport *t;
        if (tb_engine_transport(net->engines[i], &net->table, &t) != TB_OK) /* as a connection from outside would */
            abort();
    }
}

static inline void loop_net_close(struct loop_net *net)
{
    for (uint32_t i = 0; i < net->count; i++)
        if (net->channels[i] != NULL)
            tb_channel_close(net->channels[i]);
    for (uint32_t i = 0; i < net->count; i++)
        tb_engine_close(net->engines[i]);
    tb_sim_destroy(&net->sim);
}

/* Rounds of progress everywhere until nothing happens any more. */
static inline void loop_net_settle(struct loop_net *net)
{
    for (int quiet = 0; quiet < 2;) {
        int n = 0;
        for (uint32_t i = 0; i < net->count; i++)
            n += tb_engine_progress(net->engines[i]);
        quiet = n == 0 ? quiet + 1 : 0;
    }
}

#endif
