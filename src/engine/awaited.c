/* Whom the process waits for, for those who look after the ways there. */
#include "engine/engine_state.h"

static bool wild_pending(const struct tb_engine *e)
{
    for (const struct tb_context *c = tb_contexts_first(&e->contexts); c != NULL; c = tb_contexts_next(&e->contexts, c))
        if (!tb_list_empty(&c->wild))
            return true;
    return false;
}

void tb_engine_awaited(struct tb_engine *engine, void (*each)(void *context, struct tb_proc proc), void *context)
{
    tb_engine_lock(engine);
    const struct tb_peers *peers = &engine->peers;
    bool named = false;
    for (int round = 0; round < 2; round++) {
        if (round == 1 && named && !wild_pending(engine))
            break;
        for (uint32_t i = 0; i < peers->count; i++) {
            const struct tb_peer *p = peers->by_index[i];
            if (p == NULL || p->self || p->near || p->error != TB_OK)
                continue;
            bool pending = !tb_list_empty(&p->requests);
            named = named || pending;
            if (round == 0 ? pending : !pending && p->endpoint != NULL)
                each(context, p->proc);
        }
    }
    tb_engine_unlock(engine);
}

struct look {
    struct tb_engine *engine;
    void (*each)(void *context, struct tb_proc proc, uint64_t tried);
    void *context;
};

static void look_at(void *context, struct tb_proc proc)
{
    const struct look *look = context;
    const struct tb_peer *p = tb_peer_of(look->engine, proc.index);
    uint64_t tried = 0;
    struct tb_transport *t = p != NULL && p->endpoint != NULL ? p->endpoint->transport : NULL;
    if (t != NULL && t->table->is_stuck != NULL && t->table->is_stuck(t, proc, &tried))
        look->each(look->context, proc, tried);
}

void tb_engine_stuck(struct tb_engine *engine, void (*each)(void *context, struct tb_proc proc, uint64_t tried),
                     void *context)
{
    tb_engine_lock(engine);
    struct look look = {.engine = engine, .each = each, .context = context};
    tb_engine_awaited(engine, look_at, &look);
    tb_engine_unlock(engine);
}

void tb_engine_rest(struct tb_engine *engine)
{
    tb_engine_lock(engine);
    for (uint32_t i = 0; i < engine->transports.open_count; i++) {
        struct tb_transport *t = engine->transports.open[i].transport;
        if (t->table->rest != NULL)
            t->table->rest(t);
    }
    tb_engine_unlock(engine);
}
