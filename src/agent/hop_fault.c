#include "agent/hop_fault.h"

#include <stdlib.h>

#define HELD_MOST 4096u   /* beyond that frames pass unharmed */
#define AGAIN_NS  500000u /* a frame that is repeated comes again after this */

struct held_hop {
    struct tb_list node;
    struct tb_neighbour *to;
    struct tb_frame_buffer *buffer;
    uint64_t due;
};

static void set_timer(struct tb_hop_fault *fault)
{
    uint64_t first = TB_NEVER, now = tb_loop_now(fault->member->loop);
    const struct held_hop *h;
    TB_LIST_EACH (h, &fault->held, struct held_hop, node)
        first = h->due < first ? h->due : first;
    if (first != TB_NEVER)
        tb_timer_set(fault->member->loop, &fault->timer, first > now ? first - now : 0);
}

static void let_go(struct tb_timer *timer)
{
    struct tb_hop_fault *fault = TB_CONTAINER(timer, struct tb_hop_fault, timer);
    uint64_t now = tb_loop_now(fault->member->loop);
    struct tb_list due;
    struct held_hop *h;
    tb_list_init(&due);
    TB_LIST_EACH (h, &fault->held, struct held_hop, node)
        if (h->due <= now) {
            tb_list_remove(&h->node);
            tb_list_append(&due, &h->node);
        }
    while (!tb_list_empty(&due)) {
        h = TB_CONTAINER(due.next, struct held_hop, node);
        tb_list_remove(&h->node);
        fault->held_count--;
        fault->events.release(fault->events.context, h->to, h->buffer);
        free(h);
    }
    set_timer(fault);
}

/* False: nobody holds it. */
static bool hold(struct tb_hop_fault *fault, struct tb_neighbour *to, enum tb_stream stream,
                 const struct tb_cargo *cargo, uint64_t delay)
{
    struct held_hop *h = fault->held_count < HELD_MOST ? calloc(1, sizeof *h) : NULL;
    struct tb_frame_buffer *buffer = h != NULL ? tb_frame_buffer_make(fault->pool, cargo->length) : NULL;
    if (buffer == NULL) {
        free(h);
        return false;
    }
    memcpy(buffer->bytes, cargo->bytes, cargo->length);
    buffer->source = cargo->source;
    buffer->destination = cargo->destination;
    buffer->stream = (uint8_t)stream;
    *h = (struct held_hop){.to = to, .buffer = buffer, .due = tb_loop_now(fault->member->loop) + delay};
    tb_list_append(&fault->held, &h->node);
    fault->held_count++;
    set_timer(fault);
    return true;
}

bool tb_hop_fault_strikes(struct tb_hop_fault *fault, struct tb_neighbour *to, enum tb_stream stream,
                          const struct tb_cargo *cargo)
{
    struct tb_fault_fate fate = tb_fault_dice_roll(&fault->dice);
    fault->lost += fate.lost;
    if (fate.lost)
        return true;
    if (fate.repeated)
        fault->repeated += hold(fault, to, stream, cargo, AGAIN_NS);
    if (fate.delay == 0 || !hold(fault, to, stream, cargo, fate.delay))
        return false;
    fault->delayed++;
    return true;
}

void tb_hop_fault_open(struct tb_hop_fault *fault, const struct tb_member *member, struct tb_frame_pool *pool,
                       const struct tb_hop_fault_events *events)
{
    *fault = (struct tb_hop_fault){.member = member, .pool = pool, .events = *events};
    tb_list_init(&fault->held);
    tb_timer_init(&fault->timer, let_go);
    if (tb_param.fault != NULL && tb_param.fault[0] != 0) /* one that makes no sense ends the ranks */
        fault->active = tb_fault_dice_open(&fault->dice, tb_param.fault, member->self.index) == TB_OK;
}

void tb_hop_fault_close(struct tb_hop_fault *fault)
{
    if (!fault->active)
        return;
    tb_log(TB_LOG_DEBUG, "agent", "on purpose: %llu frames lost, %llu repeated, %llu delayed",
           (unsigned long long)fault->lost, (unsigned long long)fault->repeated, (unsigned long long)fault->delayed);
    tb_timer_clear(&fault->timer);
    struct held_hop *h;
    TB_LIST_EACH (h, &fault->held, struct held_hop, node) {
        tb_list_remove(&h->node);
        tb_frame_buffer_free(fault->pool, h->buffer);
        free(h);
    }
    fault->active = false;
}
