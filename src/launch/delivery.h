/* What every agent is told at the start of a job and may be long: what links cost, the plan that the job follows. The
 * stream of an agent also carries those of the agents behind it, and heartbeats; so nothing long goes at once: each
 * agent gets a piece, and the next one while little of what it was told is still under way. Thus on slow links nobody
 * hears nothing for long, and little waits in the memory of the launcher and of gateways. Belongs to the start of a
 * job; the one thread of the launcher. */
#ifndef TB_LAUNCH_DELIVERY_H
#define TB_LAUNCH_DELIVERY_H

#include "launch/host_agent.h"

#define TB_DELIVERY_PARTS 2u

struct tb_delivery_part {
    enum tb_control kind;
    uint32_t version;
    const void *bytes;
    uint64_t length;
};

struct tb_delivery_place {
    uint32_t part; /* after the last one, all that follows was told, too */
    uint64_t at;
};

struct tb_delivery_events {
    void *context;
    /* All of it is queued, so what is to come after it may be; or an error, with a story, and nothing more comes. The
     * delivery may be closed from inside. */
    void (*ended)(void *context, struct tb_host_agent *agent, int error);
};

struct tb_delivery {
    struct tb_delivery_events events;
    struct tb_delivery_part parts[TB_DELIVERY_PARTS];
    uint32_t part_count;
    uint32_t piece;                   /* bytes, fewer if there are many hosts */
    struct tb_delivery_place *places; /* of each host; NULL: closed */
};

int tb_delivery_open(struct tb_delivery *delivery, uint32_t host_count, const struct tb_delivery_events *events);
void tb_delivery_close(struct tb_delivery *delivery); /* harmless when it is not open */
/* Before anything goes. The bytes must stay as long as the delivery. */
void tb_delivery_add(struct tb_delivery *delivery, const struct tb_delivery_part *part);
/* Queues the next piece for an agent. False: it has all, or is to get more only when less is under way. */
bool tb_delivery_go_on(struct tb_delivery *delivery, struct tb_host_agent *agent);
bool tb_delivery_has_ended(const struct tb_delivery *delivery, uint32_t host);

#endif
