/* Faults on purpose between agents, by the parameter `fault`: frames that this agent sends to others get lost, come
 * twice or late, so that the repair between hosts can be tested anywhere. The forwarder owns it; one thread. */
#ifndef TB_AGENT_HOP_FAULT_H
#define TB_AGENT_HOP_FAULT_H

#include "agent/neighbour.h"
#include "transport/transport.h"

struct tb_hop_fault_events {
    void *context;
    /* It goes on now; takes the frame buffer. */
    void (*release)(void *context, struct tb_neighbour *to, struct tb_frame_buffer *buffer);
};

struct tb_hop_fault {
    bool active; /* else nothing else is set */
    const struct tb_member *member;
    struct tb_frame_pool *pool;
    struct tb_hop_fault_events events;
    struct tb_fault_dice dice;
    struct tb_list held;
    uint32_t held_count;
    struct tb_timer timer;
    uint64_t lost, repeated, delayed; /* counts */
};

void tb_hop_fault_open(struct tb_hop_fault *fault, const struct tb_member *member, struct tb_frame_pool *pool,
                       const struct tb_hop_fault_events *events);
void tb_hop_fault_close(struct tb_hop_fault *fault);
/* Rolls the dice for a frame. True: it is not to be sent, now or ever. */
bool tb_hop_fault_strikes(struct tb_hop_fault *fault, struct tb_neighbour *to, enum tb_stream stream,
                          const struct tb_cargo *cargo);

#endif
