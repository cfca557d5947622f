#include "engine/window_state.h"

#include "engine/engine_state.h"

/* ---- all of an engine -------------------------------------------------------------------------------------------- */

struct tb_list *tb_windows_bucket(struct tb_windows *windows, uint64_t context)
{
    uint64_t hash = tb_hash_number(tb_hash_number(TB_HASH_BASIS, (uint32_t)context), (uint32_t)(context >> 32));
    return &windows->buckets[tb_hash_fold(hash) % TB_WINDOW_BUCKETS];
}

struct tb_window *tb_windows_find(struct tb_windows *windows, uint64_t context)
{
    struct tb_window *w;
    if (windows->count == 0)
        return NULL;
    TB_LIST_EACH (w, tb_windows_bucket(windows, context), struct tb_window, in_bucket)
        if (w->context == context)
            return w;
    return NULL;
}

void tb_window_miss(struct tb_window_rank *r)
{
    struct tb_window *w = r->window;
    r->exposed = false;
    w->exposed--;
    w->exposure_error = TB_ERR_PEER;
    w->exposure_gone = tb_window_number(r);
}

/* Its lock is for others now, and what it may still have done to this process's memory is not waited for. */
static void rank_bury(struct tb_window_rank *r)
{
    struct tb_window *w = r->window;
    r->lost = true;
    r->flushing = r->unlocking = false;
    tb_window_hold(r, TB_LOCK_NONE);
    r->locking = TB_LOCK_NONE;
    r->queued = r->near = r->passing = false;
    if (w->near != NULL && w->near->bury != NULL)
        w->near->bury(w->near_context, tb_window_number(r));
    tb_lock_queue_release(&w->lock, &r->seat);
    if (r->exposed)
        tb_window_miss(r);
    w->engine->waiting.events++;
}

/* Who is gone may have had locks in memory though no frame ever came from it. */
static int window_bury(struct tb_window *w)
{
    const struct tb_peers *peers = &w->engine->peers;
    int found = 0;
    for (uint32_t rank = 0; rank < w->channel->size; rank++) {
        struct tb_window_rank *r = &w->ranks[rank];
        uint32_t index = tb_channel_proc(w->channel, rank);
        if (r->peer == NULL && index < peers->count)
            r->peer = peers->by_index[index];
        if (r->peer == NULL || r->peer->error == TB_OK || r->lost)
            continue;
        rank_bury(r);
        found++;
    }
    if (found > 0)
        tb_window_refuse_blocked(w);
    return found;
}

int tb_windows_bury(struct tb_windows *windows)
{
    int found = 0;
    for (uint32_t i = 0; windows->count > 0 && i < TB_WINDOW_BUCKETS; i++) {
        struct tb_window *w;
        TB_LIST_EACH (w, &windows->buckets[i], struct tb_window, in_bucket)
            found += window_bury(w);
    }
    return found;
}

/* ---- one of its ranks -------------------------------------------------------------------------------------------- */

struct tb_peer *tb_window_peer(struct tb_window_rank *r)
{
    if (r->peer == NULL)
        r->peer = tb_channel_peer(r->window->channel, tb_window_number(r));
    return r->peer;
}

void tb_window_note(struct tb_window_rank *r)
{
    if (tb_list_empty(&r->busy))
        tb_list_append(&r->window->busy, &r->busy);
}

static void tell(struct tb_window_rank *r, enum tb_kind kind, uint64_t match, uint64_t length, uint64_t offset)
{
    struct tb_peer *p = tb_window_peer(r);
    const struct tb_message m = {.kind = (uint8_t)kind,
                                 .context = r->window->context,
                                 .match = match,
                                 .length = length,
                                 .offset = offset,
                                 .source_rank = r->window->channel->rank,
                                 .representation = r->window->engine->representation};
    if (p == NULL)
        return;
    if (p->self)
        tb_frame_kinds[kind].handle(p, &m, NULL, 0);
    else
        tb_peer_answer(p, &m);
}

void tb_window_tell(struct tb_window_rank *r, enum tb_kind kind, uint64_t match, uint64_t length)
{
    tell(r, kind, match, length, 0);
}

static void wake(struct tb_window *w, uint32_t rank)
{
    if (rank != TB_ANY_RANK)
        tb_window_tell(&w->ranks[rank], TB_KIND_LOCKED, 0, 1);
}

void tb_window_hold(struct tb_window_rank *r, enum tb_lock_mode mode)
{
    struct tb_engine *e = r->window->engine;
    uint32_t more = (mode != TB_LOCK_NONE) - (r->locked != TB_LOCK_NONE);
    if (e->lanes != NULL)
        atomic_fetch_add_explicit(&e->lanes->held, more, memory_order_relaxed);
    else
        e->windows.held += more;
    r->locked = (uint8_t)mode;
}

bool tb_windows_hold_any(const struct tb_engine *e)
{
    return (e->lanes != NULL ? atomic_load_explicit(&e->lanes->held, memory_order_relaxed) : e->windows.held) > 0;
}

bool tb_window_turn(struct tb_window_rank *r, uint32_t ticket, bool exclusive, bool joins)
{
    struct tb_window *w = r->window;
    uint32_t next, joiner, from = ticket + 1;
    if (!w->near->turn(w->near_context, tb_window_number(r), ticket, exclusive, joins, &next))
        return false;
    wake(w, next);
    while (!exclusive && (joiner = w->near->joiner(w->near_context, tb_window_number(r), &from)) != TB_ANY_RANK)
        wake(w, joiner);
    return true;
}

bool tb_window_join(struct tb_window_rank *r, uint32_t ticket)
{
    struct tb_window *w = r->window;
    if (!w->near->join(w->near_context, tb_window_number(r)))
        return false;
    wake(w, w->near->pass(w->near_context, tb_window_number(r), ticket));
    return true;
}

void tb_window_give_up(struct tb_window_rank *r)
{
    struct tb_window *w = r->window;
    r->queued = false;
    r->passing = true;
    wake(w, w->near->pass(w->near_context, tb_window_number(r), r->ticket));
}

uint32_t tb_window_blocker(const struct tb_window_rank *r)
{
    const struct tb_window *w = r->window;
    bool known = w->near != NULL && w->near->blocker != NULL;
    return known ? w->near->blocker(w->near_context, tb_window_number(r)) : TB_ANY_RANK;
}

bool tb_window_uses(const struct tb_window *w, uint32_t rank, uint32_t by)
{
    return w->near != NULL && w->near->uses != NULL && w->near->uses(w->near_context, rank, by);
}

void tb_window_refuse_blocked(struct tb_window *w)
{
    uint32_t blocker;
    while (w->lock.waits && !tb_list_empty(&w->lock.queue) &&
           (blocker = tb_window_blocker(&w->ranks[w->channel->rank])) != TB_ANY_RANK) {
        struct tb_lock_seat *seat = TB_CONTAINER(w->lock.queue.next, struct tb_lock_seat, queue);
        tell(TB_CONTAINER(seat, struct tb_window_rank, seat), TB_KIND_REFUSED, 0, TB_REFUSAL_LOCK, blocker);
        tb_lock_queue_release(&w->lock, seat);
    }
}

void tb_window_give_way(struct tb_window_rank *r, bool exclusive)
{
    struct tb_window *w = r->window;
    wake(w, w->near->unlock(w->near_context, tb_window_number(r), exclusive));
}

void tb_window_settle(struct tb_window_rank *r)
{
    struct tb_window *w = r->window;
    if (r->flushing && r->applied >= r->flush_at) {
        r->flushing = false;
        tb_window_tell(r, TB_KIND_APPLIED, 0, r->flush_at);
    }
    if (r->unlocking && r->applied >= r->unlock_at) {
        r->unlocking = false;
        tb_window_tell(r, TB_KIND_APPLIED, 0, r->unlock_at);
        tb_lock_queue_release(&w->lock, &r->seat);
    }
    if (r->ended && r->applied >= r->ended_at) {
        r->ended = r->exposed = false;
        w->exposed--;
    }
    w->engine->waiting.events++;
}

/* ---- memory ------------------------------------------------------------------------------------------------------ */

uint32_t tb_window_regions_up_to(const struct tb_window *w, uint64_t address)
{
    uint32_t low = 0, high = w->region_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (w->regions[middle].from <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

void *tb_window_memory(void *window, uint64_t at, uint64_t bytes)
{
    const struct tb_window *w = window;
    if (!w->dynamic)
        return at <= w->size && bytes <= w->size - at ? w->base + at : NULL;
    uint32_t n = tb_window_regions_up_to(w, at);
    if (n == 0)
        return NULL;
    const struct tb_window_region *region = &w->regions[n - 1], *end = w->regions + w->region_count;
    if (at > region->to)
        return NULL;
    while (bytes > region->to - at && region + 1 < end && region[1].from == region->to)
        region++; /* what was attached in pieces may be accessed as a whole */
    return bytes <= region->to - at ? (void *)(uintptr_t)at : NULL;
}
