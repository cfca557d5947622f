#include "engine/arrival.h"

#include "engine/engine_state.h"

#include <stdlib.h>

struct tb_arrival *tb_arrival_make(struct tb_peer *p, const struct tb_message *m, uint64_t payload)
{
    struct tb_engine *e = p->engine;
    struct tb_arrival *a = tb_pool_take(&e->arrivals.pool);
    if (a == NULL)
        return NULL;
    tb_list_init(&a->in_bucket);
    tb_list_init(&a->in_context);
    a->peer = p;
    a->local = NULL;
    a->message = *m;
    a->address = 0;
    a->ahead = NULL;
    a->payload = a->keep;
    if (payload > sizeof a->keep) {
        a->payload = malloc(payload);
        if (TB_UNLIKELY(a->payload == NULL))
            a->payload = tb_spare_take(&e->arrivals.spare, payload);
        if (a->payload == NULL) {
            tb_pool_give(&e->arrivals.pool, a);
            tb_error(TB_ERR_MEMORY, "no memory for a message of %llu bytes that arrived before its receive",
                     (unsigned long long)payload);
            return NULL;
        }
    }
    return a;
}

/* Payload that is kept for it. */
static uint64_t arrival_bytes(const struct tb_arrival *a)
{
    return a->message.kind == TB_KIND_EAGER || (a->message.flags & TB_MESSAGE_AHEAD) ? a->message.length : 0;
}

void tb_arrival_file(struct tb_context *c, struct tb_arrival *a)
{
    struct tb_engine *e = a->peer->engine;
    e->waiting.events++;
    e->counters.unexpected++;
    e->counters.unexpected_bytes += arrival_bytes(a);
    if (e->counters.unexpected_bytes > e->counters.unexpected_peak)
        e->counters.unexpected_peak = e->counters.unexpected_bytes;
    if (e->config.unexpected != NULL && a->message.context == tb_context_plane(a->message.context, TB_PLANE_POINT))
        e->config.unexpected(e->config.context, a->peer->proc, a->message.match, a->message.length);
    tb_match_arrive(&e->matcher, c, a);
    if (TB_UNLIKELY(e->arrivals.pool.free == NULL))
        tb_pool_reserve(&e->arrivals.pool); /* for the next one; should there be no memory, there may be by then */
    if (c->channel != NULL && c == c->channel->collective)
        tb_mismatch_arrived(c, &a->message);
}

void tb_arrival_free(struct tb_arrival *a)
{
    struct tb_engine *e = a->peer->engine;
    e->counters.unexpected_bytes -= arrival_bytes(a);
    if (a->message.kind == TB_KIND_EAGER) {
        if (a->peer->self)
            e->arrivals.self_bytes -= a->message.length;
        else
            a->peer->kept -= a->message.length;
    }
    if (a->payload != a->keep)
        tb_spare_free(&e->arrivals.spare, a->payload);
    tb_pool_give(&e->arrivals.pool, a);
}

void tb_arrival_refuse(struct tb_peer *p, const struct tb_message *m)
{
    p->engine->counters.dropped++;
    if (m->flags & TB_MESSAGE_AHEAD)
        return; /* its sender waits for nothing */
    if (m->kind == TB_KIND_REQUEST) {
        tb_peer_reply(p, TB_KIND_CLEAR, m->offset, 0, 0);
        return;
    }
    tb_peer_owe(p, m->length);
    if (m->flags & TB_MESSAGE_SYNC)
        tb_peer_reply(p, TB_KIND_DONE, m->offset, 0, 0);
}

void tb_arrival_drop(struct tb_arrival *a)
{
    if (a->ahead != NULL)
        tb_peer_waste(a->peer, a->ahead);
    if (a->local != NULL)
        tb_request_finish(a->local, TB_OK);
    else if (!a->peer->self)
        tb_arrival_refuse(a->peer, &a->message);
    tb_arrival_free(a);
}
