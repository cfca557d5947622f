/* Decorator: a transport around another one, which owes something to some of the processes on the other side: an
 * acknowledgement, a repetition, the news that there is room. What the decorators have in common: the list of those
 * processes, when the next of them is due, and the calls that go on to the transport inside. First member of the
 * decorator's own struct; belongs to its owner and that one's thread. */
#ifndef TB_LINK_DECORATOR_H
#define TB_LINK_DECORATOR_H

#include "transport/transport.h"

struct tb_decorator {
    struct tb_transport head; /* what the owner sees; `inner` is what it is around */
    const struct tb_clock *clock;
    struct tb_list active; /* of processes with something to do, now or later */
    bool busy;             /* one of them has, now */
    uint64_t next_timer;   /* when one of them will have */
    /* Does what is due for a process, which may leave the list. Returns what was done. */
    int (*serve)(struct tb_decorator *decorator, struct tb_list *process, uint64_t now);
    /* What the owner gets to see in place of this endpoint, whose `user` it becomes. NULL: no memory. */
    struct tb_endpoint *(*wrap)(struct tb_decorator *decorator, struct tb_endpoint *inner);
};

/* `serve` and `wrap` are set. */
void tb_decorator_init(struct tb_decorator *decorator, const struct tb_clock *clock);

static inline void tb_decorator_wake(struct tb_decorator *decorator, struct tb_list *process, uint64_t when)
{
    if (tb_list_empty(process))
        tb_list_append(&decorator->active, process);
    if (when < decorator->next_timer)
        decorator->next_timer = when;
}

static inline void tb_decorator_hurry(struct tb_decorator *decorator, struct tb_list *process)
{
    tb_decorator_wake(decorator, process, TB_NEVER);
    decorator->busy = true;
}

/* For the tables of decorators. */
int tb_decorator_endpoint(struct tb_transport *transport, struct tb_proc proc, struct tb_endpoint **endpoint);
int tb_decorator_poll(struct tb_transport *transport);
bool tb_decorator_arm(struct tb_transport *transport);
void tb_decorator_disarm(struct tb_transport *transport);
int tb_decorator_descriptor(struct tb_transport *transport);
uint64_t tb_decorator_deadline(struct tb_transport *transport);
/* A call up for those whose frames have no token. */
void tb_decorator_sent(void *context, struct tb_endpoint *to, void *token, int error);

#endif
