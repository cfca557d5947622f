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
    a->early = false;
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
    p->arrivals++;
    return a;
}

/* Payload that is kept for it. */
static uint64_t arrival_bytes(const struct tb_arrival *a)
{
    return a->message.kind == TB_KIND_EAGER || (a->message.flags & TB_MESSAGE_AHEAD) ? a->message.length : 0;
}

/* Those of strangers have a limit. */
static void count_early(struct tb_arrival *a, bool early)
{
    a->early = early;
    a->peer->early += early ? 1u : -1u;
    a->peer->engine->peers.early += !a->peer->stranger ? 0u : early ? 1u : -1u;
}

void tb_arrival_known(struct tb_arrival *a)
{
    if (TB_UNLIKELY(a->early))
        count_early(a, false);
}

void tb_arrival_file(struct tb_context *c, struct tb_arrival *a)
{
    struct tb_engine *e = a->peer->engine;
    if (TB_UNLIKELY(c->channel == NULL))
        count_early(a, true);
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

/* If it was the last one of a process that is gone, that may be forgotten, at the next progress. */
static void part(struct tb_peer *p)
{
    if (TB_LIKELY(--p->arrivals > 0 || !p->parted) || p->error == TB_OK)
        return;
    tb_list_remove(&p->on_parted);
    tb_list_append(&p->engine->peers.parted, &p->on_parted);
}

void tb_arrival_free(struct tb_arrival *a)
{
    struct tb_engine *e = a->peer->engine;
    tb_arrival_known(a);
    e->counters.unexpected_bytes -= arrival_bytes(a);
    if (a->message.kind == TB_KIND_EAGER) {
        if (a->peer->self)
            e->arrivals.self_bytes -= a->message.length;
        else
            a->peer->kept -= a->message.length;
    }
    if (a->payload != a->keep)
        tb_spare_free(&e->arrivals.spare, a->payload);
    part(a->peer);
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

/* Of a context that has no channel; whether anybody else has sent something there. */
static bool leave_others(struct tb_engine *e, struct tb_context *c)
{
    struct tb_arrival *a;
    bool others = false;
    TB_LIST_EACH (a, &c->arrivals, struct tb_arrival, in_context) {
        if (a->peer->stranger && a->peer->error != TB_OK) {
            tb_match_take(&e->matcher, a);
            tb_arrival_drop(a);
        } else {
            others = true;
        }
    }
    for (uint32_t i = 0; c->failures != NULL && i < c->failures->count; i++)
        others = others || c->failures->kept[i].stranger == 0;
    return others;
}

void tb_arrivals_clear(struct tb_engine *e)
{
    struct tb_context *next;
    if (TB_LIKELY(e->peers.unknown + e->peers.early == 0))
        return;
    for (struct tb_context *c = tb_contexts_first(&e->contexts); c != NULL; c = next) {
        next = tb_contexts_next(&e->contexts, c);
        if (c->channel != NULL)
            continue;
        bool others = leave_others(e, c);
        if (c->announcer == NULL || !c->announcer->stranger || c->announcer->error == TB_OK)
            continue;
        tb_peer_disclaim(c);
        if (!others)
            tb_contexts_remove(&e->contexts, c);
    }
}
