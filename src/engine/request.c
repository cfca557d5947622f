#include "engine/request.h"

#include "engine/engine_state.h"

void tb_request_begin(struct tb_request *r, struct tb_context *c, enum tb_request_kind kind)
{
    struct tb_channel *channel = c->channel;
    __atomic_store_n((uint32_t *)&r->done, 0, __ATOMIC_RELAXED);
    r->kind = (uint8_t)kind;
    r->phase = TB_PHASE_IDLE;
    r->cancelling = false;
    r->status = (struct tb_status){.error = TB_OK};
    r->engine = channel->engine;
    r->channel = channel;
    r->peer = NULL;
    tb_list_init(&r->queue);
    tb_list_init(&r->on_peer);
    tb_list_init(&r->on_context);
    r->context = c->id;
    r->slot = 0;
    r->pending = 0;
    r->moved = 0;
    r->message_id = 0;
    r->waiter = NULL;
    channel->users++;
}

void tb_request_enlist(struct tb_request *r, struct tb_context *c)
{
    if (r->peer != NULL && tb_list_empty(&r->on_peer))
        tb_list_append(&r->peer->requests, &r->on_peer);
    if (c != NULL && tb_list_empty(&r->on_context))
        tb_list_append(&c->requests, &r->on_context);
}

/* ---- message ids ------------------------------------------------------------------------------------------------- */

int tb_request_number(struct tb_request *r)
{
    return tb_slots_take(&r->engine->slots, r);
}

struct tb_request *tb_request_find(struct tb_engine *e, uint64_t id, enum tb_request_kind kind)
{
    struct tb_request *r = tb_slots_find(&e->slots, id);
    return r != NULL && r->kind == kind ? r : NULL;
}

/* ---- the end ----------------------------------------------------------------------------------------------------- */

/* Why it has failed is with its peer, perhaps, and asked for at any time. Whoever asks still has the channel, and with
 * that the peer; but for one of a process that was started later than it was made, as an inbox may have. */
static __attribute__((cold, noinline)) void name_peer(const struct tb_request *r)
{
    const struct tb_channel *c = r->channel;
    uint32_t rank = r->kind == TB_REQUEST_RECEIVE ? r->status.source : r->rank;
    if (c == NULL || rank >= c->size || tb_channel_proc(c, rank) != r->peer->proc.index)
        r->peer->named = true;
}

void tb_request_finish(struct tb_request *r, int error)
{
    struct tb_engine *e = r->engine;
    struct tb_waiter *waiter = r->waiter;
    void (*complete)(struct tb_request *) = r->complete;
    struct tb_channel *channel = r->channel;
    if (r->phase == TB_PHASE_POSTED)
        tb_match_unpost(&e->matcher, r);
    else if (TB_UNLIKELY(r->phase == TB_PHASE_HEARING))
        tb_cast_receiver.forget(r);
    else if (!tb_list_empty(&r->queue))
        tb_list_remove(&r->queue);
    if (!tb_list_empty(&r->on_peer))
        tb_list_remove(&r->on_peer);
    if (!tb_list_empty(&r->on_context))
        tb_list_remove(&r->on_context);
    if (r->slot != 0)
        tb_slots_give(&e->slots, r);
    if (TB_UNLIKELY(error != TB_OK) && r->peer != NULL)
        name_peer(r);
    if (r->kind == TB_REQUEST_SEND)
        e->sends--;
    r->phase = TB_PHASE_IDLE;
    r->status.error = error;
    e->waiting.events++;
    __atomic_store_n((uint32_t *)&r->done, 1, __ATOMIC_RELEASE);
    /* From here on the request may be gone, unless its callback is still to come. */
    if (TB_UNLIKELY(waiter != NULL))
        tb_waiting_wake(&e->waiting, waiter);
    if (complete != NULL)
        complete(r);
    if (TB_UNLIKELY(e->lanes != NULL)) /* what is waited for may be what the callback has done */
        tb_lanes_finished(e->lanes, e->lane);
    if (TB_LIKELY(channel != NULL))
        tb_channel_drop(channel);
}

void tb_request_keep_story(const struct tb_request *r, int error)
{
    tb_stories_keep(&r->engine->stories, r, error);
}

/* Any thread may keep another story meanwhile. */
static int story_tell(const struct tb_request *r)
{
    tb_engine_lock(r->engine);
    int error = tb_stories_tell(&r->engine->stories, r, r->status.error);
    tb_engine_unlock(r->engine);
    return error;
}

int tb_request_explain(const struct tb_request *r)
{
    int error = r->status.error;
    if (error == TB_ERR_TRUNCATE && r->kind == TB_REQUEST_RECEIVE)
        return tb_error(error, "a message of %llu byte%s from rank %u does not fit into the buffer of %llu byte%s",
                        (unsigned long long)r->length, tb_plural(r->length), r->status.source,
                        (unsigned long long)r->room, tb_plural(r->room));
    if (error == TB_ERR_PARTIAL)
        return tb_error(error, "a message of %llu byte%s from rank %u ends within an element",
                        (unsigned long long)r->length, tb_plural(r->length), r->status.source);
    if (error == TB_ERR_UNSUPPORTED && r->kind == TB_REQUEST_RECEIVE)
        return tb_error(error, "a message from rank %u holds long double as another machine writes it; use double",
                        r->status.source);
    if (error == TB_ERR_MISMATCH || (error < 0 && r->kind == TB_REQUEST_PROGRAM))
        return story_tell(r);
    if (error == TB_ERR_ARGUMENT && r->kind == TB_REQUEST_SEND)
        return tb_error(error,
                        "rank %u is a process of another job, and only communicators that both jobs know lead there",
                        r->rank);
    if (error < 0 && r->peer != NULL && r->peer->story != NULL)
        return tb_error(error, "%s with rank %u (process %u) failed: %s",
                        r->kind == TB_REQUEST_SEND     ? "sending"
                        : r->kind == TB_REQUEST_ACCESS ? "one-sided access"
                                                       : "receiving",
                        r->rank, r->peer->proc.index, r->peer->story);
    if (error == TB_ERR_ARGUMENT && r->kind == TB_REQUEST_ACCESS)
        return tb_error(error,
                        "rank %u has refused the access: not all of it is in the memory of its window (or the window "
                        "is gone)",
                        r->rank);
    return error;
}

bool tb_request_is_unanswered(const struct tb_request *r)
{
    switch ((enum tb_phase)r->phase) {
    case TB_PHASE_ASKED:
    case TB_PHASE_HELD:
    case TB_PHASE_POSTED:
        return true;
    case TB_PHASE_SENT: /* has left, and its receive must answer */
        return r->mode == TB_MODE_SYNCHRONOUS && r->pending == 0;
    default:
        return false;
    }
}

/* ---- cancelling -------------------------------------------------------------------------------------------------- */

static void request_cancelled(struct tb_request *r)
{
    r->status.cancelled = true;
    r->status.bytes = 0;
    tb_request_finish(r, TB_OK);
}

/* The message stands among the arrivals of this same process. */
static void cancel_local(struct tb_request *r)
{
    struct tb_engine *e = r->engine;
    struct tb_context *c = tb_contexts_find(&e->contexts, r->context);
    struct tb_arrival *a;
    if (c == NULL)
        return;
    for (struct tb_list *at = c->arrivals.prev; at != &c->arrivals; at = at->prev) {
        a = TB_CONTAINER(at, struct tb_arrival, in_context);
        if (a->peer != r->peer || a->message.offset != r->message_id)
            continue;
        tb_match_take(&e->matcher, a);
        tb_arrival_free(a);
        if (r->phase == TB_PHASE_HELD)
            request_cancelled(r);
        else
            r->status.cancelled = true;
        return;
    }
}

/* It is out and the other side has perhaps not matched it: ask. */
static void cancel_ask(struct tb_request *r)
{
    const struct tb_message m = {.kind = TB_KIND_CANCEL,
                                 .context = r->context,
                                 .match = r->message_id,
                                 .representation = r->engine->representation};
    r->cancelling = true;
    tb_peer_answer(r->peer, &m);
}

/* Whether its peer was forgotten since it was done: then nobody is there to be asked. */
static bool is_alone(const struct tb_request *r)
{
    const struct tb_context *c = tb_contexts_find(&r->engine->contexts, r->context);
    return c == NULL || c->channel == NULL ||
           r->engine->peers.by_index[tb_channel_proc(c->channel, r->rank)] != r->peer;
}

static void cancel_send(struct tb_request *r)
{
    struct tb_engine *e = r->engine;
    if (r->peer == NULL || r->message_id == 0 || (r->phase == TB_PHASE_IDLE && is_alone(r)))
        return;
    if (r->peer->self) {
        cancel_local(r);
    } else if (r->phase == TB_PHASE_ASKED || r->phase == TB_PHASE_SENT || r->phase == TB_PHASE_AHEAD ||
               r->phase == TB_PHASE_LEAVING) {
        cancel_ask(r);
    } else if (r->phase == TB_PHASE_IDLE && r->peer->error == TB_OK && r->status.error == TB_OK) {
        r->phase = TB_PHASE_RECALLED;
        r->channel = NULL;  /* its hold was given up when it was done... */
        r->complete = NULL; /* ...and its callback has run */
        e->sends++;
        __atomic_store_n((uint32_t *)&r->done, 0, __ATOMIC_RELEASE);
        tb_request_enlist(r, NULL);
        cancel_ask(r);
    }
}

void tb_request_cancel_locked(struct tb_request *r)
{
    if (r->cancelling || r->status.cancelled)
        return;
    if (r->kind == TB_REQUEST_RECEIVE && r->phase == TB_PHASE_POSTED)
        request_cancelled(r);
    else if (r->kind == TB_REQUEST_SEND && r->phase == TB_PHASE_QUEUED)
        request_cancelled(r);
    else if (r->kind == TB_REQUEST_SEND)
        cancel_send(r);
}

void tb_request_cancel(struct tb_request *request)
{
    struct tb_engine *e = request->engine;
    if (e == NULL)
        return;
    tb_engine_lock(e);
    tb_request_cancel_locked(request);
    tb_engine_unlock(e);
}
