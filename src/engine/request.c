#include "engine/engine_state.h"

#include <stdlib.h>
#include <string.h>

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

static bool slots_grow(struct tb_engine *e)
{
    uint32_t room = e->slot_room == 0 ? 64 : e->slot_room * 2;
    struct tb_slot *grown = room > 1u << TB_SLOT_BITS ? NULL : realloc(e->slots, sizeof *grown * room);
    if (grown == NULL)
        return false;
    for (uint32_t i = e->slot_room; i < room; i++)
        grown[i] = (struct tb_slot){.next = i + 1 < room ? i + 1 : 0};
    e->slot_free = e->slot_room == 0 ? 1 : e->slot_room;
    e->slots = grown;
    e->slot_room = room;
    return true;
}

int tb_request_number(struct tb_request *r)
{
    struct tb_engine *e = r->engine;
    if (r->slot != 0)
        return TB_OK;
    if (e->slot_free == 0 && !slots_grow(e))
        return tb_error(TB_ERR_MEMORY, "no memory for another message in transfer, there are %u", e->slot_room);
    r->slot = e->slot_free;
    e->slot_free = e->slots[r->slot].next;
    r->message_id = ++e->ids << TB_SLOT_BITS | r->slot;
    e->slots[r->slot] = (struct tb_slot){.request = r, .id = r->message_id};
    return TB_OK;
}

static void request_unnumber(struct tb_request *r)
{
    struct tb_engine *e = r->engine;
    e->slots[r->slot] = (struct tb_slot){.next = e->slot_free};
    e->slot_free = r->slot;
    r->slot = 0;
}

struct tb_request *tb_request_find(struct tb_engine *e, uint64_t id, enum tb_request_kind kind)
{
    uint32_t slot = (uint32_t)(id & ((1u << TB_SLOT_BITS) - 1));
    if (slot == 0 || slot >= e->slot_room || e->slots[slot].request == NULL || e->slots[slot].id != id)
        return NULL;
    return e->slots[slot].request->kind == kind ? e->slots[slot].request : NULL;
}

/* ---- the end ----------------------------------------------------------------------------------------------------- */

void tb_request_finish(struct tb_request *r, int error)
{
    struct tb_engine *e = r->engine;
    struct tb_waiter *waiter = r->waiter;
    void (*complete)(struct tb_request *) = r->complete;
    struct tb_channel *channel = r->channel;
    if (r->phase == TB_PHASE_POSTED)
        tb_match_unpost(e, r);
    else if (!tb_list_empty(&r->queue))
        tb_list_remove(&r->queue);
    if (!tb_list_empty(&r->on_peer))
        tb_list_remove(&r->on_peer);
    if (!tb_list_empty(&r->on_context))
        tb_list_remove(&r->on_context);
    if (r->slot != 0)
        request_unnumber(r);
    if (r->kind == TB_REQUEST_SEND)
        e->sends--;
    r->phase = TB_PHASE_IDLE;
    r->status.error = error;
    e->events++;
    __atomic_store_n((uint32_t *)&r->done, 1, __ATOMIC_RELEASE);
    /* From here on the request may be gone, unless its callback is still to come. */
    if (TB_UNLIKELY(waiter != NULL))
        tb_waiter_wake(e, waiter);
    if (complete != NULL)
        complete(r);
    if (TB_LIKELY(channel != NULL))
        tb_channel_drop(channel);
}

static struct tb_story *story_find(struct tb_engine *e, const struct tb_request *r)
{
    for (uint32_t i = 0; i < TB_STORIES; i++)
        if (e->stories[i].of == r)
            return &e->stories[i];
    return NULL;
}

void tb_story_keep(const struct tb_request *r, int error)
{
    struct tb_engine *e = r->engine;
    struct tb_story *story = story_find(e, r);
    if (story == NULL)
        story = &e->stories[e->story_next++ % TB_STORIES];
    free(story->text);
    *story = (struct tb_story){r, error, strdup(tb_error_story())};
}

/* Tells it again, if it is kept: any thread may keep another one meanwhile. */
static int story_tell(const struct tb_request *r)
{
    int error = r->status.error;
    tb_engine_lock(r->engine);
    const struct tb_story *story = story_find(r->engine, r);
    if (story != NULL && story->error == error && story->text != NULL)
        tb_error(error, "%s", story->text);
    else
        tb_error(error, "a collective has failed (%s), and many others since", tb_error_name(error));
    tb_engine_unlock(r->engine);
    return error;
}

int tb_request_explain(const struct tb_request *r)
{
    int error = r->status.error;
    if (error == TB_ERR_TRUNCATE && r->kind == TB_REQUEST_RECEIVE)
        return tb_error(error, "a message of %llu bytes from rank %u does not fit into the buffer of %llu bytes",
                        (unsigned long long)r->length, r->status.source, (unsigned long long)r->room);
    if (error == TB_ERR_MISMATCH || (error < 0 && r->kind == TB_REQUEST_PROGRAM))
        return story_tell(r);
    if (error < 0 && r->peer != NULL && r->peer->story != NULL)
        return tb_error(error, "%s with rank %u (process %u) failed: %s",
                        r->kind == TB_REQUEST_SEND ? "sending" : "receiving", r->rank, r->peer->proc.index,
                        r->peer->story);
    return error;
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
    struct tb_context *c = tb_context_find(e, r->context);
    struct tb_arrival *a;
    if (c == NULL)
        return;
    for (struct tb_list *at = c->arrivals.prev; at != &c->arrivals; at = at->prev) {
        a = TB_CONTAINER(at, struct tb_arrival, in_context);
        if (a->peer != r->peer || a->message.offset != r->message_id)
            continue;
        tb_match_take(e, a);
        tb_arrival_free(e, a);
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

static void cancel_send(struct tb_request *r)
{
    struct tb_engine *e = r->engine;
    if (r->peer == NULL || r->message_id == 0)
        return;
    if (r->peer->self) {
        cancel_local(r);
    } else if (r->phase == TB_PHASE_ASKED || r->phase == TB_PHASE_SENT) {
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
