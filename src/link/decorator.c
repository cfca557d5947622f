#include "link/decorator.h"

void tb_decorator_init(struct tb_decorator *decorator, const struct tb_clock *clock)
{
    decorator->clock = clock;
    decorator->next_timer = TB_NEVER;
    tb_list_init(&decorator->active);
}

static int serve_all(struct tb_decorator *d)
{
    if (tb_list_empty(&d->active)) {
        d->busy = false; /* whoever had something to do has left meanwhile */
        return 0;
    }
    uint64_t now = tb_clock_now(d->clock);
    if (!d->busy && now < d->next_timer)
        return 0;
    d->busy = false;
    d->next_timer = TB_NEVER;
    int count = 0;
    uint32_t todo = 0;
    for (struct tb_list *at = d->active.next; at != &d->active; at = at->next)
        todo++;
    /* Serving may call up, and the owner may send: anyone may enter or leave the list meanwhile. */
    while (todo-- > 0 && !tb_list_empty(&d->active)) {
        struct tb_list *process = d->active.next;
        tb_list_remove(process);
        tb_list_append(&d->active, process);
        count += d->serve(d, process, now);
    }
    return count;
}

int tb_decorator_poll(struct tb_transport *transport)
{
    struct tb_decorator *d = (struct tb_decorator *)transport;
    int count = d->head.inner->table->poll(d->head.inner);
    return count + serve_all(d);
}

bool tb_decorator_arm(struct tb_transport *transport)
{
    struct tb_decorator *d = (struct tb_decorator *)transport;
    return !d->busy && d->head.inner->table->arm(d->head.inner);
}

void tb_decorator_disarm(struct tb_transport *transport)
{
    struct tb_decorator *d = (struct tb_decorator *)transport;
    d->head.inner->table->disarm(d->head.inner);
}

int tb_decorator_descriptor(struct tb_transport *transport)
{
    struct tb_decorator *d = (struct tb_decorator *)transport;
    return d->head.inner->table->descriptor(d->head.inner);
}

uint64_t tb_decorator_deadline(struct tb_transport *transport)
{
    struct tb_decorator *d = (struct tb_decorator *)transport;
    uint64_t inner = d->head.inner->table->deadline(d->head.inner);
    uint64_t own = tb_list_empty(&d->active) ? TB_NEVER : d->next_timer;
    return own < inner ? own : inner;
}

int tb_decorator_endpoint(struct tb_transport *transport, struct tb_proc proc, struct tb_endpoint **endpoint)
{
    struct tb_decorator *d = (struct tb_decorator *)transport;
    struct tb_endpoint *inner;
    int error = d->head.inner->table->endpoint(d->head.inner, proc, &inner);
    if (error != TB_OK)
        return error;
    *endpoint = inner->user != NULL ? inner->user : d->wrap(d, inner);
    return *endpoint != NULL ? TB_OK : tb_error(TB_ERR_MEMORY, "no memory for the way to rank %u", proc.index);
}

void tb_decorator_sent(void *context, struct tb_endpoint *to, void *token, int error)
{
    (void)context, (void)to, (void)token, (void)error;
}
