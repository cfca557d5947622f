/* What orders accesses to windows: flushing, locks, posting and completing. Everything here waits for what frames of
 * others tell (access_serve.c), or the end of those others. */
#include "engine/engine_state.h"
#include "engine/window.h"

#define LOOKS_PER_PROGRESS 64 /* synchronisations that need not wait, until one makes progress */

/* ---- what is waited for ------------------------------------------------------------------------------------------ */

static bool rank_is_gone(const struct tb_window_rank *r)
{
    return r->peer != NULL && r->peer->error != TB_OK;
}

/* Up to which number all accesses to it have ended here. Those with a process that is gone are ended in the next round
 * of progress. */
static uint64_t rank_ended(const struct tb_window_rank *r)
{
    if (tb_list_empty(&r->open))
        return r->window->begun;
    return TB_CONTAINER(r->open.next, const struct tb_access, open)->number - 1;
}

/* What has come back was applied: if nothing else was sent, nobody need be asked. */
static void rank_learn(struct tb_window_rank *r)
{
    if (tb_list_empty(&r->open) && r->silent <= r->confirmed)
        r->confirmed = r->sent;
}

/* Accesses up to a number have ended there; asks for that, if it has not been done yet. Other threads may go on with
 * accesses that are not waited for, so one question follows the other until it was asked after these had left. */
static bool rank_is_done(struct tb_window_rank *r, uint64_t number)
{
    uint64_t ended = rank_ended(r);
    if (ended < number)
        return false;
    rank_learn(r);
    if (rank_is_gone(r) || r->confirmed >= r->sent)
        return true;
    if (r->confirmed >= r->asked) {
        r->flushed = r->asked_for;
        if (r->flushed >= number)
            return true;
        r->asked = r->sent;
        r->asked_for = ended;
        tb_window_tell(r, TB_KIND_FLUSH, 0, r->sent);
    }
    return rank_is_gone(r);
}

static int gone(const struct tb_window_rank *r)
{
    return tb_error(TB_ERR_PEER, "rank %u (process %u) is gone: %s", tb_window_number(r), r->peer->proc.index,
                    r->peer->story != NULL ? r->peer->story : "");
}

/* What has become of the accesses to it, told once. */
static int rank_take_error(struct tb_window_rank *r)
{
    int error = r->error;
    if (rank_is_gone(r) && r->confirmed < r->sent) {
        r->confirmed = r->sent;
        error = TB_ERR_PEER;
    }
    r->error = TB_OK;
    if (r->confirmed >= r->sent && tb_list_empty(&r->open))
        tb_list_remove(&r->busy);
    return error;
}

static int rank_explain(const struct tb_window_rank *r, int error)
{
    if (error == TB_OK)
        return TB_OK;
    if (rank_is_gone(r))
        return gone(r);
    if (error == TB_ERR_ARGUMENT)
        return tb_error(error,
                        "rank %u has refused an access: not all of it is in the memory of its window (or the window is "
                        "gone); nothing of that part was changed",
                        tb_window_number(r));
    if (error == TB_ERR_EPOCH)
        return tb_error(error, "%s", r->window->story);
    uint32_t blocker = r->blocker != TB_ANY_RANK ? r->blocker : tb_window_blocker(r);
    if (error == TB_ERR_PEER && blocker != TB_ANY_RANK)
        return tb_error(error, "the lock of rank %u cannot be had: rank %u, which had it or waited for it, is gone",
                        tb_window_number(r), blocker);
    if (error == TB_ERR_PEER)
        return tb_error(error, "the lock or the memory of rank %u cannot be had: it is gone, or is going",
                        tb_window_number(r));
    return tb_error(error, "an access to rank %u has failed", tb_window_number(r));
}

/* Waits until it is ready. The engine is locked from then on. Whoever looks again and again at what others have done in
 * its window makes progress as well, now and then. */
static void wait_until(struct tb_window *w, bool (*ready)(void *context), void *context, const char *call)
{
    struct tb_engine *e = w->engine;
    tb_engine_lock(e);
    bool is_ready = ready(context);
    if (is_ready && ++w->looks % LOOKS_PER_PROGRESS != 0)
        return;
    tb_engine_unlock(e);
    if (is_ready)
        tb_engine_progress(e);
    else
        tb_engine_wait_in(e, ready, context, call);
    tb_engine_lock(e);
}

/* ---- flushing ---------------------------------------------------------------------------------------------------- */

struct flushing {
    struct tb_window *window;
    uint32_t rank;
    bool there, begun;
    uint64_t number; /* of the last access before it began */
};

static bool flush_ready_of(const struct flushing *f, struct tb_window_rank *r)
{
    return f->there ? rank_is_done(r, f->number) : rank_ended(r) >= f->number;
}

static bool flush_ready(void *context)
{
    struct flushing *f = context;
    bool ready = true;
    if (!f->begun)
        f->number = f->window->begun;
    f->begun = true;
    if (f->rank != TB_ANY_RANK)
        return flush_ready_of(f, &f->window->ranks[f->rank]);
    struct tb_window_rank *r;
    TB_LIST_EACH (r, &f->window->busy, struct tb_window_rank, busy) /* all are asked at the same time */
        ready &= flush_ready_of(f, r);
    return ready;
}

static int flush_result(struct flushing *f)
{
    if (f->rank != TB_ANY_RANK) {
        struct tb_window_rank *one = &f->window->ranks[f->rank];
        return rank_explain(one, rank_take_error(one));
    }
    struct tb_window_rank *r, *failed = NULL;
    int first = TB_OK;
    TB_LIST_EACH (r, &f->window->busy, struct tb_window_rank, busy) {
        int error = rank_take_error(r);
        if (first == TB_OK && error != TB_OK) {
            first = error;
            failed = r;
        }
    }
    return failed != NULL ? rank_explain(failed, first) : TB_OK;
}

static int flush(struct tb_window *w, uint32_t rank, bool there, const char *call)
{
    struct flushing f = {.window = w, .rank = rank, .there = there};
    wait_until(w, flush_ready, &f, call);
    int error = flush_result(&f);
    tb_engine_unlock(w->engine);
    return error;
}

int tb_window_flush_local(struct tb_window *window, uint32_t rank, const char *call)
{
    return flush(window, rank, false, call);
}

int tb_window_flush(struct tb_window *window, uint32_t rank, const char *call)
{
    __sync_synchronize(); /* what was stored in memory of others is there before anything else is looked at */
    return flush(window, rank, true, call);
}

/* ---- locks ------------------------------------------------------------------------------------------------------- */

/* Whether the lock in memory is there. */
static bool rank_take(struct tb_window_rank *r)
{
    if (tb_window_turn(r, r->ticket, r->locking == TB_LOCK_EXCLUSIVE, r->joins))
        return true;
    r->passing = r->joins && tb_window_join(r, r->ticket);
    return r->passing;
}

static bool lock_ready(void *context)
{
    struct tb_window_rank *r = context;
    if (r->queued && rank_take(r)) {
        r->queued = false;
        r->near = true;
        tb_window_hold(r, (enum tb_lock_mode)r->locking);
        r->locking = TB_LOCK_NONE;
    }
    return r->locking == TB_LOCK_NONE || rank_is_gone(r) || (r->queued && tb_window_blocker(r) != TB_ANY_RANK);
}

/* Takes a place in the queue for the lock, if that is in memory here. */
static bool rank_queue(struct tb_window_rank *r)
{
    const struct tb_window *w = r->window;
    r->queued = w->near != NULL && w->near->queue != NULL &&
                w->near->queue(w->near_context, tb_window_number(r), r->passing, &r->ticket) == TB_OK;
    r->passing = false;
    return r->queued;
}

/* Asks for it, and waits. Who has a lock already does not wait behind those who wait for that one (window_lock.h). */
static int rank_lock(struct tb_window_rank *r, enum tb_lock_mode mode, const char *call)
{
    struct tb_engine *e = r->window->engine;
    tb_engine_lock(e);
    int error = tb_window_peer(r) == NULL ? TB_ERR_MEMORY : rank_is_gone(r) ? gone(r) : TB_OK;
    if (error == TB_OK) {
        r->locking = (uint8_t)mode;
        r->joins = mode == TB_LOCK_SHARED && tb_windows_hold_any(e);
        if (!r->queued && !rank_queue(r))
            tb_window_tell(r, TB_KIND_LOCK, 0, r->joins ? TB_LOCK_JOIN : mode);
    } else if (r->queued) {
        tb_window_give_up(r);
    }
    tb_engine_unlock(e);
    if (error != TB_OK)
        return error;
    wait_until(r->window, lock_ready, r, call);
    r->locking = TB_LOCK_NONE;
    if (r->queued)
        tb_window_give_up(r);
    if (r->locked == TB_LOCK_NONE)
        error = rank_is_gone(r) ? gone(r) : rank_explain(r, rank_take_error(r));
    if (r->locked == TB_LOCK_NONE && error == TB_OK)
        error = rank_explain(r, TB_ERR_PEER);
    tb_engine_unlock(e);
    return error;
}

int tb_window_lock(struct tb_window *window, uint32_t rank, bool exclusive, const char *call)
{
    return rank_lock(&window->ranks[rank], exclusive ? TB_LOCK_EXCLUSIVE : TB_LOCK_SHARED, call);
}

/* The lock of a rank of another host is not needed until something is done with it. Memory of this host may be accessed
 * without a call. */
int tb_window_lock_all(struct tb_window *window, const char *call)
{
    struct tb_window *w = window;
    int error = TB_OK;
    for (uint32_t rank = 0; rank < w->channel->size && error == TB_OK; rank++) {
        struct tb_window_rank *r = &w->ranks[rank];
        tb_engine_lock(w->engine);
        bool here = rank == w->channel->rank || rank_queue(r);
        tb_engine_unlock(w->engine);
        if (here)
            error = rank_lock(r, TB_LOCK_SHARED, call);
    }
    tb_engine_lock(w->engine);
    w->locked_all = error == TB_OK;
    tb_engine_unlock(w->engine);
    if (error != TB_OK)
        tb_window_unlock_all(w, call); /* those that it has */
    return error;
}

/* Tells the target as soon as everything has left; the answer is waited for, if it has something to apply. */
static bool unlock_ready(void *context)
{
    struct tb_window_rank *r = context;
    uint64_t all = r->window->begun;
    if (!tb_list_empty(&r->open) || (r->locking != TB_LOCK_NONE && !rank_is_gone(r)))
        return false;
    if (r->locked != TB_LOCK_NONE && r->near) {
        if (!rank_is_done(r, all)) /* some accesses may have gone by frames */
            return false;
        tb_window_give_way(r, r->locked == TB_LOCK_EXCLUSIVE);
        r->near = false;
        tb_window_hold(r, TB_LOCK_NONE);
    }
    if (r->locked != TB_LOCK_NONE) {
        tb_window_hold(r, TB_LOCK_NONE);
        rank_learn(r);
        r->asked = r->sent;
        r->asked_for = all;
        tb_window_tell(r, TB_KIND_UNLOCK, 0, r->sent);
    }
    return rank_is_done(r, all); /* also of what an epoch of another kind has left unasked */
}

int tb_window_unlock(struct tb_window *window, uint32_t rank, const char *call)
{
    struct tb_window_rank *r = &window->ranks[rank];
    wait_until(window, unlock_ready, r, call);
    int error = rank_explain(r, rank_take_error(r));
    tb_engine_unlock(window->engine);
    return error;
}

static bool unlock_all_ready(void *context)
{
    struct tb_window *w = context;
    bool ready = true;
    for (uint32_t rank = 0; rank < w->channel->size; rank++)
        ready &= unlock_ready(&w->ranks[rank]);
    return ready;
}

int tb_window_unlock_all(struct tb_window *window, const char *call)
{
    struct flushing all = {.window = window, .rank = TB_ANY_RANK, .there = true};
    wait_until(window, unlock_all_ready, window, call);
    window->locked_all = false;
    int error = flush_result(&all);
    tb_engine_unlock(window->engine);
    return error;
}

/* ---- active target ----------------------------------------------------------------------------------------------- */

/* Whether one is known to be gone already depends on how it is reached. So that is no error here: the wait tells it, as
 * of one that goes later. */
int tb_window_post(struct tb_window *window, const uint32_t *ranks, uint32_t count)
{
    struct tb_window *w = window;
    int error = TB_OK;
    tb_engine_lock(w->engine);
    for (uint32_t i = 0; i < count && error == TB_OK; i++)
        error = tb_window_peer(&w->ranks[ranks[i]]) != NULL ? TB_OK : TB_ERR_MEMORY;
    w->exposure_error = TB_OK;
    for (uint32_t i = 0; i < count && error == TB_OK; i++) {
        struct tb_window_rank *r = &w->ranks[ranks[i]];
        r->exposed = true;
        r->ended = false;
        w->exposed++;
        if (rank_is_gone(r))
            tb_window_miss(r);
    }
    for (uint32_t i = 0; i < count && error == TB_OK; i++)
        if (w->ranks[ranks[i]].exposed)
            tb_window_tell(&w->ranks[ranks[i]], TB_KIND_POST, 0, 0);
    tb_engine_unlock(w->engine);
    return error;
}

/* Ranks of a call. */
struct access_group {
    struct tb_window *window;
    const uint32_t *ranks;
    uint32_t count;
};

static bool start_ready(void *context)
{
    const struct access_group *g = context;
    bool ready = true;
    for (uint32_t i = 0; i < g->count; i++) {
        const struct tb_window_rank *r = &g->window->ranks[g->ranks[i]];
        if (r->posts == 0 && r->absent)
            return true;
        ready &= r->posts > 0 || rank_is_gone(r);
    }
    return ready;
}

int tb_window_start(struct tb_window *window, const uint32_t *ranks, uint32_t count, const char *call)
{
    struct access_group g = {.window = window, .ranks = ranks, .count = count};
    int error = TB_OK;
    tb_engine_lock(window->engine);
    for (uint32_t i = 0; i < count && error == TB_OK; i++)
        error = tb_window_peer(&window->ranks[ranks[i]]) != NULL ? TB_OK : TB_ERR_MEMORY;
    tb_engine_unlock(window->engine);
    if (error != TB_OK)
        return error;
    wait_until(window, start_ready, &g, call);
    for (uint32_t i = 0; i < count; i++) {
        struct tb_window_rank *r = &window->ranks[ranks[i]];
        if (r->posts == 0 && rank_is_gone(r))
            error = gone(r);
        else if (r->posts == 0 && r->absent)
            error = tb_error(TB_ERR_EPOCH, "%s", window->story);
        r->absent = false;
    }
    for (uint32_t i = 0; i < count && error == TB_OK;
         i++) { /* else those that have posted are not waited for in vain */
        window->ranks[ranks[i]].posts--;
        window->ranks[ranks[i]].started = true;
    }
    tb_engine_unlock(window->engine);
    return error;
}

static bool complete_ready(void *context)
{
    const struct access_group *g = context;
    for (uint32_t i = 0; i < g->count; i++)
        if (!tb_list_empty(&g->window->ranks[g->ranks[i]].open))
            return false;
    return true;
}

int tb_window_complete(struct tb_window *window, const uint32_t *ranks, uint32_t count, const char *call)
{
    struct access_group g = {.window = window, .ranks = ranks, .count = count};
    struct tb_window_rank *failed = NULL;
    int first = TB_OK;
    wait_until(window, complete_ready, &g, call);
    for (uint32_t i = 0; i < count; i++) {
        struct tb_window_rank *r = &window->ranks[ranks[i]];
        tb_window_tell(r, TB_KIND_COMPLETE, 0, r->sent);
        r->started = false;
        int error = rank_take_error(r);
        if (first == TB_OK && error != TB_OK) {
            first = error;
            failed = r;
        }
    }
    if (failed != NULL)
        rank_explain(failed, first);
    tb_engine_unlock(window->engine);
    return first;
}

static bool wait_ready(void *context)
{
    const struct tb_window *w = context;
    return w->exposed == 0;
}

static int exposure_result(struct tb_window *w)
{
    int error = w->exposure_error;
    w->exposure_error = TB_OK;
    if (error == TB_ERR_EPOCH)
        return tb_error(error, "%s", w->story);
    return error == TB_OK ? TB_OK : gone(&w->ranks[w->exposure_gone]);
}

int tb_window_wait(struct tb_window *window, const char *call)
{
    wait_until(window, wait_ready, window, call);
    int error = exposure_result(window);
    tb_engine_unlock(window->engine);
    return error;
}

int tb_window_test(struct tb_window *window, bool *done)
{
    tb_engine_progress(window->engine);
    tb_engine_lock(window->engine);
    *done = wait_ready(window);
    int error = *done ? exposure_result(window) : TB_OK;
    tb_engine_unlock(window->engine);
    return error;
}

/* ---- who is waited for ------------------------------------------------------------------------------------------- */

/* Locks that a thread waits for: one, or, whatever it does besides, all that were asked for and have not come. */
static bool lock_awaited(struct tb_window *w, uint32_t target, uint32_t *nth, struct tb_demand *d)
{
    const struct tb_window_rank *r = &w->ranks[target];
    uint32_t own = w->channel->rank;
    if (r->locking == TB_LOCK_NONE)
        return false;
    *d = (struct tb_demand){.what = TB_DEMANDED_UNLOCK,
                            .exclusive = r->locking == TB_LOCK_EXCLUSIVE,
                            .context = w->context,
                            .number = target,
                            .rank = target};
    for (uint32_t rank = 0; r->queued && rank < w->channel->size; rank++) {
        bool granted = target == own && w->ranks[rank].seat.holds != TB_LOCK_NONE; /* by frames */
        if (rank == own || (!granted && !tb_window_uses(w, target, rank)))
            continue;
        d->rank = rank;
        if ((*nth)-- == 0)
            return true;
    }
    return !r->queued && (*nth)-- == 0;
}

/* Whether a thread that waits so may do that for locks, and for those of which ranks. */
static struct tb_window *lock_waited(bool (*ready)(void *context), void *context, uint32_t *first, uint32_t *end)
{
    const struct flushing *f = context;
    const struct tb_window_rank *r = context;
    struct tb_window *w = NULL;
    if (ready == flush_ready)
        w = f->window;
    else if (ready == unlock_all_ready)
        w = context;
    else if (ready == lock_ready || ready == unlock_ready)
        w = r->window;
    if (w == NULL)
        return NULL;
    bool all = ready == unlock_all_ready || (ready == flush_ready && f->rank == TB_ANY_RANK);
    *first = all ? 0 : ready == flush_ready ? f->rank : tb_window_number(r);
    *end = all ? w->channel->size : *first + 1;
    return w;
}

bool tb_window_awaits(bool (*ready)(void *context), void *context, uint32_t nth, struct tb_demand *demand,
                      struct tb_window **window)
{
    const struct access_group *g = ready == start_ready ? context : NULL;
    uint32_t first = 0, end = 0;
    struct tb_window *w = g != NULL ? g->window : ready == wait_ready ? context : NULL;
    *demand = (struct tb_demand){.what = g != NULL ? TB_DEMANDED_POST : TB_DEMANDED_COMPLETE};
    if (w == NULL) {
        *window = w = lock_waited(ready, context, &first, &end);
        for (uint32_t target = first; w != NULL && target < end; target++)
            if (lock_awaited(w, target, &nth, demand)) {
                demand->proc = tb_channel_proc(w->channel, demand->rank);
                return true;
            }
        return false;
    }
    *window = w;
    demand->context = w->context;
    demand->number = w->channel->rank;
    for (uint32_t i = 0; i < (g != NULL ? g->count : w->channel->size); i++) {
        demand->rank = g != NULL ? g->ranks[i] : i;
        demand->proc = tb_channel_proc(w->channel, demand->rank);
        const struct tb_window_rank *r = &w->ranks[demand->rank];
        bool missing = g != NULL ? r->posts == 0 && !r->absent && !rank_is_gone(r) : r->exposed && !r->ended;
        if (missing && nth-- == 0)
            return true;
    }
    return false;
}

static bool apply_awaited(const struct tb_window_rank *r)
{
    return !rank_is_gone(r) && (r->confirmed < r->sent || !tb_list_empty(&r->open));
}

bool tb_window_describe(bool (*ready)(void *context), void *context, struct tb_wait *wait)
{
    static const uint8_t states[] = {[TB_DEMANDED_POST] = TB_WAIT_POST,
                                     [TB_DEMANDED_COMPLETE] = TB_WAIT_COMPLETE,
                                     [TB_DEMANDED_UNLOCK] = TB_WAIT_LOCK};
    struct tb_demand d, next;
    struct tb_window *w;
    uint32_t first, end, n = 1;
    if (tb_window_awaits(ready, context, 0, &d, &w)) {
        for (; tb_window_awaits(ready, context, n, &next, &w); n++)
            if (d.what == TB_DEMANDED_UNLOCK && d.rank == d.number)
                d = next; /* whoever has it says more than whose it is */
        wait->owner = w->channel->owner;
        wait->state = states[d.what];
        wait->rank = d.rank;
        wait->other = d.number;
        wait->more = n - 1;
        return true;
    }
    w = lock_waited(ready, context, &first, &end);
    for (uint32_t rank = first; w != NULL && rank < end; rank++)
        if (apply_awaited(&w->ranks[rank])) {
            wait->owner = w->channel->owner;
            wait->state = TB_WAIT_APPLY;
            wait->rank = rank;
            return true;
        }
    return false;
}

/* A place in the queue for a lock is given up; whoever keeps that queue, and hears of it later, grants it in vain. */
static void lock_despair(struct tb_window_rank *r)
{
    r->error = TB_ERR_EPOCH;
    tb_window_note(r);
    r->locking = TB_LOCK_NONE;
    if (r->queued)
        tb_window_give_up(r);
    else
        tb_window_tell(r, TB_KIND_UNLOCK, 0, r->sent);
    while (!tb_list_empty(&r->held))
        tb_request_finish(TB_CONTAINER(r->held.next, struct tb_request, queue), TB_ERR_EPOCH);
}

void tb_window_despair(struct tb_window_rank *r, const struct tb_demand *demand)
{
    struct tb_window *w = r->window;
    if (demand->what == TB_DEMANDED_POST) {
        r->absent = true;
    } else if (demand->what == TB_DEMANDED_COMPLETE) {
        r->exposed = false;
        w->exposed--;
        w->exposure_error = TB_ERR_EPOCH;
    } else {
        lock_despair(&w->ranks[demand->number]);
    }
}
