/* The heartbeat of agents on other hosts: says something to those to whom nothing else was said, and notices those that
 * have been silent for too long. Its times are parts of the parameter heartbeat, so that an agent which is stopped for
 * nearly as long is not taken for dead. Belongs to the launcher; its one thread. */
#ifndef TB_LAUNCH_HEARTBEAT_H
#define TB_LAUNCH_HEARTBEAT_H

#include "launch/host_agents.h"

struct tb_heartbeat_events {
    void *context;
    void (*silent)(void *context, struct tb_host_agent *agent); /* for longer than the parameter heartbeat */
};

struct tb_heartbeat {
    struct tb_loop *loop;
    struct tb_heartbeat_events events;
    struct tb_host_agents *agents;
    struct tb_timer timer;
    uint32_t beats;
};

void tb_heartbeat_init(struct tb_heartbeat *heartbeat, struct tb_loop *loop, struct tb_host_agents *agents,
                       const struct tb_heartbeat_events *events);
void tb_heartbeat_start(struct tb_heartbeat *heartbeat); /* if there is an agent that needs it */
void tb_heartbeat_stop(struct tb_heartbeat *heartbeat);

#endif
