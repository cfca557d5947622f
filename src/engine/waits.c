/* What threads wait for, told from what is there anyway: nothing is kept for it but what struct tb_waiting has. */
#include "engine/engine_state.h"

/* How much an item says about who holds the run up: one that expects something says most. */
static int item_weight(const struct tb_run *run, const struct tb_run_item *item)
{
    if (item->state != TB_ITEM_ACTIVE || !tb_list_empty(&item->working))
        return 0;
    const struct tb_step *s = &run->program->steps[item->step];
    return s->kind == TB_STEP_COMPOSITE ? 3 : s->kind == TB_STEP_RECEIVE ? 2 : 1;
}

static void run_describe(const struct tb_run *run, struct tb_wait *wait)
{
    const struct tb_run_item *found = NULL;
    int weight = 0;
    for (uint32_t step = run->low; step < run->program->step_count; step++) {
        const struct tb_run_progress *p = &run->progress[step];
        for (uint32_t i = 0; i < p->window; i++) {
            const struct tb_run_item *item = &run->items[p->first + i];
            if (item_weight(run, item) > weight) {
                weight = item_weight(run, item);
                found = item;
            }
        }
    }
    wait->collective = run->binding.call;
    wait->operation = run->binding.operation;
    wait->counted = !run->binding.numbered && run->binding.local == NULL;
    wait->number = run->binding.numbers[0];
    if (weight == 3) {
        const struct tb_drive *d = &found->room.drive;
        run->drivers[d->step->contract.driver].driver->describe(d, wait);
    }
    if (weight == 1 || weight == 2) {
        wait->rank = found->request.rank;
        wait->state = weight == 2 && tb_request_is_unanswered(&found->request) ? TB_WAIT_NOTHING : TB_WAIT_MOVING;
    }
}

/* What the run of a request waits for; nothing, if it has none. */
static void runs_describe(const struct tb_runs *runs, const struct tb_request *request, struct tb_wait *wait)
{
    const struct tb_run *run;
    TB_LIST_EACH (run, &runs->all, const struct tb_run, in_all)
        if (run->request == request) {
            run_describe(run, wait);
            return;
        }
}

void tb_request_describe(const struct tb_request *request, struct tb_wait *wait)
{
    wait->kind = request->kind == TB_REQUEST_SEND      ? TB_WAIT_SEND
                 : request->kind == TB_REQUEST_RECEIVE ? TB_WAIT_RECEIVE
                 : request->kind == TB_REQUEST_ACCESS  ? TB_WAIT_CONDITION
                                                       : TB_WAIT_COLLECTIVE;
    wait->rank = TB_ANY_RANK;
    wait->state = TB_WAIT_MOVING;
    if (request->channel == NULL || request->kind == TB_REQUEST_ACCESS) /* it is being recalled; or of a window */
        return;
    wait->owner = request->channel->owner;
    if (wait->kind == TB_WAIT_COLLECTIVE) {
        if (request->phase == TB_PHASE_ALONE)
            tb_alone_describe(request, wait);
        else
            runs_describe(&request->engine->runs, request, wait);
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
    } else if (tb_window_describe(w->ready, w->context, wait)) {
        wait->kind = TB_WAIT_WINDOW;
    } else if (!tb_probe_describe(w, wait)) {
        wait->kind = TB_WAIT_CONDITION;
        wait->ready = w->ready;
        wait->context = w->context;
        return w->call != NULL;
    }
    return true;
}

static void lane_waits(struct tb_engine *engine, void (*each)(void *context, const struct tb_wait *wait), void *context)
{
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
}

/* Whoever is in another lane just now does not wait. */
void tb_engine_waits(struct tb_engine *engine, void (*each)(void *context, const struct tb_wait *wait), void *context)
{
    tb_engine_lock(engine);
    for (uint32_t i = 0; i < tb_engine_lanes(engine); i++) {
        struct tb_engine *lane = tb_engine_lane(engine, i);
        if (lane != engine && !tb_lanes_work.enter(lane))
            continue;
        lane_waits(lane, each, context);
        if (lane != engine)
            tb_engine_unlock_only(lane);
    }
    tb_engine_unlock(engine);
}
