#include "engine/stranger.h"

#include "engine/engine_state.h"

/* As what it says that it is. */
static bool is_rank(const struct tb_channel *channel, uint32_t rank, uint32_t proc)
{
    return rank < channel->size && tb_channel_proc(channel, rank) == proc;
}

static bool is_member(const struct tb_channel *channel, uint32_t proc)
{
    for (uint32_t rank = 0; rank < channel->size; rank++)
        if (tb_channel_proc(channel, rank) == proc)
            return true;
    return false;
}

/* Collectives of an inter-communicator are given up by ranks of both groups. */
static bool may_give_up(struct tb_engine *e, const struct tb_context *c, uint32_t proc)
{
    const struct tb_context *local = tb_contexts_find(&e->contexts, tb_context_plane(c->id, TB_PLANE_LOCAL_COLLECTIVE));
    return is_member(c->channel, proc) || (local != NULL && local->channel != NULL && is_member(local->channel, proc));
}

bool tb_stranger_may(struct tb_peer *p, const struct tb_message *m)
{
    if (m->kind != TB_KIND_EAGER && m->kind != TB_KIND_REQUEST && m->kind != TB_KIND_FAILED)
        return true; /* these name a window or a message, and who may is looked at there */
    const struct tb_context *c = tb_contexts_find(&p->engine->contexts, m->context);
    bool known = c != NULL && c->channel != NULL;
    if (tb_context_is_tagged(m->context) &&
        (!known || (m->kind == TB_KIND_FAILED ? may_give_up(p->engine, c, p->proc.index)
                                              : is_rank(c->channel, m->source_rank, p->proc.index))))
        return true;
    tb_peer_break(p, tb_error(TB_ERR_PROTOCOL,
                              "process %u, of another job, sent something in a communicator that it is not in",
                              p->proc.index));
    return false;
}

void tb_strangers_leave(struct tb_context *c)
{
    struct tb_engine *e = c->channel->engine;
    struct tb_arrival *a;
    TB_LIST_EACH (a, &c->arrivals, struct tb_arrival, in_context)
        if (a->peer->stranger && !is_rank(c->channel, a->message.source_rank, a->peer->proc.index)) {
            tb_match_take(&e->matcher, a);
            tb_arrival_drop(a);
        }
    for (uint32_t i = 0; c->failures != NULL && i < c->failures->count;) {
        const struct tb_failure *f = &c->failures->kept[i];
        if (f->stranger != 0 && !may_give_up(e, c, f->stranger))
            c->failures->kept[i] = c->failures->kept[--c->failures->count];
        else
            i++;
    }
}
