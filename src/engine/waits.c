/* What threads wait for, told from what is there anyway: nothing is kept for it but what struct tb_waiting has. */
#include "engine/engine_state.h"

void tb_request_describe(const struct tb_request *request, struct tb_wait *wait)
{
    wait->kind = request->kind == TB_REQUEST_SEND      ? TB_WAIT_SEND
                 : request->kind == TB_REQUEST_RECEIVE ? TB_WAIT_RECEIVE
                                                       : TB_WAIT_COLLECTIVE;
    wait->rank = TB_ANY_RANK;
    wait->state = TB_WAIT_MOVING;
    if (request->channel == NULL) /* it is being recalled */
        return;
    wait->owner = request->channel->owner;
    if (wait->kind == TB_WAIT_COLLECTIVE) {
        if (request->phase == TB_PHASE_ALONE)
            tb_alone_describe(request, wait);
        else
            tb_runs_describe(&request->engine->runs, request, wait);
        return;
    }
    wait->library = request->channel->collective == NULL;
    wait->rank = request->rank;
    wait->match = request->match;
    wait->mask = request->kind == TB_REQUEST_RECEIVE ? request->mask : UINT64_MAX;
    wait->state = tb_request_is_unanswered(request) ? TB_WAIT_NOTHING : TB_WAIT_MOVING;
}

static uint64_t time_since(uint64_t since)
{
    uint64_t now = tb_clock_now_real();
    return since != 0 && now > since ? now - since : 0;
}

/* A thread that waits for a condition in no call does so on behalf of the library, and for good. */
static bool waiter_describe(const struct tb_waiter *w, struct tb_wait *wait)
{
    *wait = (struct tb_wait){.call = w->call, .set = w->set, .time = time_since(w->since), .rank = TB_ANY_RANK};
    if (w->satisfied)
        return false;
    if (w->request != NULL) {
        tb_request_describe(w->request, wait);
    } else if (!tb_probe_describe(w, wait)) {
        wait->kind = TB_WAIT_CONDITION;
        wait->ready = w->ready;
        wait->context = w->context;
        return w->call != NULL;
    }
    return true;
}

void tb_engine_waits(struct tb_engine *engine, void (*each)(void *context, const struct tb_wait *wait), void *context)
{
    tb_engine_lock(engine);
    const struct tb_only_wait *only = engine->waiting.only;
    const struct tb_waiter *w;
    if (only != NULL && !tb_request_done(only->request)) {
        struct tb_wait wait = {.call = only->call, .set = only->set, .time = time_since(only->since)};
        tb_request_describe(only->request, &wait);
        each(context, &wait);
    }
    TB_LIST_EACH (w, &engine->waiting.waiters, const struct tb_waiter, on_engine) {
        struct tb_wait wait;
        if (waiter_describe(w, &wait))
            each(context, &wait);
    }
    tb_engine_unlock(engine);
}
