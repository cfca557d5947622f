/* Whom the process waits for, for those who look after the ways there. */
#include "engine/engine_state.h"

static bool wild_pending(const struct tb_engine *e)
{
    for (const struct tb_context *c = tb_contexts_first(&e->contexts); c != NULL; c = tb_contexts_next(&e->contexts, c))
        if (!tb_list_empty(&c->wild))
            return true;
    return false;
}

/* Goes through the processes of other hosts that a lane knows: those that an unfinished request needs, or the others
 * that something was exchanged with. Whether there was one of the first kind. */
static bool lane_awaited(struct tb_engine *e, bool pending, void (*each)(void *context, struct tb_proc proc),
                         void *context)
{
    bool named = false;
    for (uint32_t i = 0; i < e->peers.count; i++) {
        const struct tb_peer *p = e->peers.by_index[i];
        if (p == NULL || p->self || p->local || p->near || p->error != TB_OK)
            continue;
        bool needed = !tb_list_empty(&p->requests);
        named = named || needed;
        if (pending ? needed : !needed && p->endpoint != NULL)
            each(context, p->proc);
    }
    return named;
}

/* Lanes in which somebody is just now are passed over: it is said again soon. */
void tb_engine_awaited(struct tb_engine *engine, void (*each)(void *context, struct tb_proc proc), void *context)
{
    bool entered[TB_LANES_LIMIT] = {false}, named = false, wild = false;
    tb_engine_lock(engine);
    for (uint32_t i = 0; i < tb_engine_lanes(engine); i++) {
        struct tb_engine *lane = tb_engine_lane(engine, i);
        entered[i] = lane == engine || tb_lanes_work.enter(lane);
        wild = wild || (entered[i] && wild_pending(lane));
        if (entered[i])
            named = lane_awaited(lane, true, each, context) || named;
    }
    for (uint32_t i = 0; i < tb_engine_lanes(engine); i++) {
        struct tb_engine *lane = tb_engine_lane(engine, i);
        if (entered[i] && (!named || wild))
            lane_awaited(lane, false, each, context);
        if (entered[i] && lane != engine)
            tb_engine_unlock_only(lane);
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
    struct tb_transport *t = NULL;
    uint64_t tried = 0;
    for (uint32_t i = 0; i < tb_engine_lanes(look->engine) && t == NULL; i++) {
        struct tb_engine *lane = tb_engine_lane(look->engine, i);
        if (lane != look->engine && !tb_lanes_work.enter(lane))
            continue;
        const struct tb_peer *p = proc.index < lane->peers.count ? lane->peers.by_index[proc.index] : NULL;
        t = p != NULL && p->endpoint != NULL ? p->endpoint->transport : NULL;
        if (lane != look->engine)
            tb_engine_unlock_only(lane);
    }
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
