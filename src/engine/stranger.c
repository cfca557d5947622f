#include "engine/stranger.h"

#include "engine/engine_state.h"

/* As what it says that it is. */
static bool is_rank(const struct tb_channel *channel, uint32_t rank, uint32_t proc)
{
    return rank < channel->size && (channel->procs != NULL ? channel->procs[rank] : rank) == proc;
}

static bool is_member(const struct tb_channel *channel, uint32_t proc)
{
    for (uint32_t rank = 0; rank < channel->size; rank++)
        if (is_rank(channel, rank, proc))
            return true;
    return false;
}

/* Collectives of an inter-communicator are given up by ranks of both groups. */
static bool may_give_up(struct tb_contexts *all, const struct tb_context *c, uint32_t proc)
{
    const struct tb_context *local = tb_contexts_find(all, tb_context_plane(c->id, TB_PLANE_LOCAL_COLLECTIVE));
    return is_member(c->channel, proc) || (local != NULL && local->channel != NULL && is_member(local->channel, proc));
}

bool tb_stranger_may(const struct tb_peer *p, const struct tb_message *m)
{
    if (m->kind != TB_KIND_EAGER && m->kind != TB_KIND_REQUEST && m->kind != TB_KIND_FAILED)
        return true; /* these name a window or a message, and who may is looked at there */
    if (!tb_context_is_tagged(m->context))
        return false;
    struct tb_contexts *all = &p->engine->contexts;
    const struct tb_context *c = tb_contexts_find(all, m->context);
    if (c == NULL || c->channel == NULL)
        return true; /* as far as is known */
    return m->kind == TB_KIND_FAILED ? may_give_up(all, c, p->proc.index)
                                     : is_rank(c->channel, m->source_rank, p->proc.index);
}

bool tb_stranger_sent(const struct tb_context *c, const struct tb_arrival *a)
{
    return a->peer->stranger && !is_rank(c->channel, a->message.source_rank, a->peer->proc.index);
}

void tb_strangers_forget(struct tb_contexts *all, struct tb_context *c)
{
    for (uint32_t i = 0; c->failures != NULL && i < c->failures->count;) {
        const struct tb_failure *f = &c->failures->kept[i];
        if (f->stranger != 0 && !may_give_up(all, c, f->stranger))
            c->failures->kept[i] = c->failures->kept[--c->failures->count];
        else
            i++;
    }
}
