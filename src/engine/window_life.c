/* Windows from their opening to their closing, and memory that is attached to them meanwhile. */
#include "engine/engine_state.h"
#include "engine/window.h"

#include <stdlib.h>

/* ---- serving it while the program computes ----------------------------------------------------------------------- */

static int watch(const struct tb_window *w, enum tb_standby_scope scope)
{
    int error = tb_engine_stand_by(w->engine);
    return error == TB_OK ? tb_engine_watch(w->engine, scope) : error;
}

/* Without a standby everything works, but only while this process is in a call. */
static void unwatched(void)
{
    tb_log(TB_LOG_INFO, "engine", "a window is not served while the program computes: %s", tb_error_story());
}

/* Once for a window, whatever is detached later. */
static void watch_crowded(struct tb_window *w)
{
    int error = watch(w, TB_STANDBY_HOST);
    if (error != TB_OK) {
        unwatched();
        return;
    }
    tb_engine_lock(w->engine);
    bool again = w->crowded; /* another thread has come first */
    w->crowded = true;
    tb_engine_unlock(w->engine);
    if (again)
        tb_engine_unwatch(w->engine, TB_STANDBY_HOST);
}

/* ---- memory of dynamic windows ----------------------------------------------------------------------------------- */

/* No bytes are nowhere, but may be detached again. */
static int attach_nothing(struct tb_window *w, uint64_t at)
{
    tb_engine_lock(w->engine);
    uint64_t *empty = realloc(w->empty, (w->empty_count + 1) * sizeof *empty);
    if (empty != NULL) {
        w->empty = empty;
        empty[w->empty_count++] = at;
    }
    tb_engine_unlock(w->engine);
    return empty != NULL ? TB_OK : tb_error(TB_ERR_MEMORY, "no memory to remember what is attached");
}

static bool detach_nothing(struct tb_window *w, uint64_t at)
{
    uint32_t i = 0;
    while (i < w->empty_count && w->empty[i] != at)
        i++;
    if (i == w->empty_count)
        return false;
    w->empty[i] = w->empty[--w->empty_count];
    return true;
}

int tb_window_attach(struct tb_window *window, void *base, uint64_t size)
{
    struct tb_window *w = window;
    uint64_t from = (uintptr_t)base;
    int error = TB_OK;
    bool known = true;
    if (size == 0)
        return attach_nothing(w, from);
    tb_engine_lock(w->engine);
    uint32_t n = tb_window_regions_up_to(w, from);
    if (size > UINT64_MAX - from)
        error = tb_error(TB_ERR_ARGUMENT, "%llu bytes from there on are beyond the end of memory",
                         (unsigned long long)size);
    else if ((n > 0 && w->regions[n - 1].to > from) || (n < w->region_count && w->regions[n].from < from + size))
        error = tb_error(TB_ERR_ARGUMENT, "part of these %llu bytes is attached already; detach it first",
                         (unsigned long long)size);
    if (error == TB_OK && w->region_count == w->region_room) {
        uint32_t room = w->region_room == 0 ? 8 : 2 * w->region_room;
        struct tb_window_region *regions = realloc(w->regions, room * sizeof *regions);
        if (regions == NULL)
            error = tb_error(TB_ERR_MEMORY, "no memory to remember %u pieces of memory", room);
        else
            w->regions = regions, w->region_room = room;
    }
    if (error == TB_OK) {
        memmove(&w->regions[n + 1], &w->regions[n], (w->region_count - n) * sizeof *w->regions);
        w->regions[n] = (struct tb_window_region){from, from + size};
        w->region_count++;
        if (w->near != NULL && w->near->attach != NULL)
            known = w->near->attach(w->near_context, from, from + size);
    }
    bool crowded = !known && w->served && !w->crowded;
    tb_engine_unlock(w->engine);
    if (crowded)
        watch_crowded(w);
    return error;
}

/* Whoever is just writing there, though nobody may any more, is given up; not who does so by another window, to which
 * the same memory belongs. When that was so, the memory is the program's
 * alone after a round of progress. */
static bool give_up_writers(struct tb_window *w, uint64_t from, uint64_t to)
{
    bool found = false;
    for (uint32_t rank = 0; rank < w->channel->size; rank++) {
        struct tb_peer *p = w->ranks[rank].peer;
        uint64_t at = p != NULL ? (uintptr_t)p->placing : 0;
        if (at == 0 || p->placing_for != 0 || p->placing_in != w || at >= to || at + p->placing_bytes <= from)
            continue;
        tb_peer_break(p, tb_error(TB_ERR_PROTOCOL, "process %u writes to memory that is no longer that of a window",
                                  p->proc.index));
        found = true;
    }
    return found;
}

int tb_window_detach(struct tb_window *window, const void *base)
{
    struct tb_window *w = window;
    bool written = false;
    tb_engine_lock(w->engine);
    uint32_t n = tb_window_regions_up_to(w, (uintptr_t)base);
    bool found = n > 0 && w->regions[n - 1].from == (uintptr_t)base;
    if (found && w->near != NULL && w->near->detach != NULL)
        w->near->detach(w->near_context, (uintptr_t)base);
    if (found) {
        written = give_up_writers(w, w->regions[n - 1].from, w->regions[n - 1].to);
        memmove(&w->regions[n - 1], &w->regions[n], (w->region_count - n) * sizeof *w->regions);
        w->region_count--;
    } else {
        found = detach_nothing(w, (uintptr_t)base);
    }
    tb_engine_unlock(w->engine);
    if (written)
        tb_engine_progress(w->engine);
    return found ? TB_OK : tb_error(TB_ERR_ARGUMENT, "nothing that is attached begins there");
}

/* ---- opening and closing ----------------------------------------------------------------------------------------- */

static void lock_granted(void *context, struct tb_lock_seat *seat)
{
    tb_window_tell(TB_CONTAINER(seat, struct tb_window_rank, seat), TB_KIND_LOCKED, 0, 0);
}

static int gate_queue(void *context, uint32_t *ticket)
{
    const struct tb_window *w = context;
    return w->near->queue(w->near_context, w->channel->rank, false, ticket);
}

static bool gate_turn(void *context, uint32_t ticket, bool exclusive, bool joins)
{
    struct tb_window *w = context;
    return tb_window_turn(&w->ranks[w->channel->rank], ticket, exclusive, joins);
}

static bool gate_join(void *context)
{
    const struct tb_window *w = context;
    return w->near->join(w->near_context, w->channel->rank);
}

static void gate_unlock(void *context, bool exclusive)
{
    struct tb_window *w = context;
    tb_window_give_way(&w->ranks[w->channel->rank], exclusive);
}

/* Whoever makes way tells this process so, by a frame, and that must be heard while it computes. */
static void gate_wait(void *context, bool waits)
{
    const struct tb_window *w = context;
    if (!w->watched)
        return;
    if (!waits)
        tb_engine_unwatch(w->engine, TB_STANDBY_HOST);
    else if (tb_engine_watch(w->engine, TB_STANDBY_HOST) != TB_OK)
        tb_log(TB_LOG_INFO, "engine", "a lock may be late: %s", tb_error_story());
}

static const struct tb_lock_gate lock_gate = {gate_queue, gate_turn, gate_join, gate_unlock, gate_wait};

/* What serves accesses of a rank while this process computes; TB_STANDBY_SCOPES: nothing has to, since it needs no
 * frames, as this one needs none to it. */
static enum tb_standby_scope scope_for(const struct tb_window *w, uint32_t rank)
{
    const struct tb_engine *e = w->engine;
    const struct tb_engine_config *c = &e->config;
    struct tb_proc proc = {c->transport.self.job, tb_channel_proc(w->channel, rank)};
    if (proc.index == c->transport.self.index)
        return TB_STANDBY_SCOPES;
    if (e->local == NULL || c->is_local == NULL || !c->is_local(c->context, proc))
        return TB_STANDBY_NETWORK;
    bool reached = w->near != NULL && w->near->reaches != NULL && w->near->reaches(w->near_context, rank);
    return reached ? TB_STANDBY_SCOPES : TB_STANDBY_HOST;
}

void tb_window_watch(struct tb_window *window)
{
    struct tb_window *w = window;
    unsigned wanted = 0;
    w->served = true;
    for (uint32_t rank = 0; rank < w->channel->size; rank++)
        wanted |= 1u << scope_for(w, rank);
    wanted &= 1u << TB_STANDBY_NETWORK | 1u << TB_STANDBY_HOST;
    int error = TB_OK;
    for (int scope = 0; scope < TB_STANDBY_SCOPES && error == TB_OK; scope++) {
        if ((wanted >> scope & 1) == 0)
            continue;
        error = watch(w, (enum tb_standby_scope)scope);
        if (error == TB_OK)
            w->watched |= (uint8_t)(1u << scope);
    }
    if (error != TB_OK)
        unwatched();
}

static void window_unwatch(const struct tb_window *w)
{
    for (int scope = 0; scope < TB_STANDBY_SCOPES; scope++)
        if (w->watched >> scope & 1)
            tb_engine_unwatch(w->engine, (enum tb_standby_scope)scope);
    if (w->crowded)
        tb_engine_unwatch(w->engine, TB_STANDBY_HOST);
}

int tb_window_open(struct tb_engine *engine, const struct tb_window_config *config, struct tb_window **window)
{
    engine = config->channel->engine; /* the lane of its communicator */
    uint32_t size = config->channel->size;
    struct tb_window *w = calloc(1, sizeof *w + size * sizeof w->ranks[0]);
    if (w == NULL)
        return tb_error(TB_ERR_MEMORY, "no memory for a window of %u ranks", size);
    *w = (struct tb_window){.engine = engine,
                            .channel = config->channel,
                            .context = tb_context_plane(config->channel->point->id, TB_PLANE_ONE_SIDED),
                            .base = config->base,
                            .size = config->size,
                            .dynamic = config->dynamic,
                            .near = config->near,
                            .near_context = config->near_context};
    tb_list_init(&w->busy);
    tb_lock_queue_open(&w->lock, lock_granted, w);
    if (w->near != NULL && w->near->queue != NULL)
        w->lock.gate = &lock_gate;
    for (uint32_t rank = 0; rank < size; rank++) {
        struct tb_window_rank *r = &w->ranks[rank];
        r->window = w;
        r->blocker = TB_ANY_RANK;
        tb_list_init(&r->busy);
        tb_list_init(&r->held);
        tb_list_init(&r->open);
        tb_lock_seat_open(&r->seat);
    }
    tb_engine_lock(engine);
    int error = tb_accesses_open(&engine->accesses);
    for (uint32_t i = 0; engine->windows.count == 0 && i < TB_WINDOW_BUCKETS; i++)
        tb_list_init(&engine->windows.buckets[i]);
    if (error == TB_OK) {
        w->channel->window = w;
        tb_list_append(tb_windows_bucket(&engine->windows, w->context), &w->in_bucket);
        engine->windows.count++;
    }
    tb_engine_unlock(engine);
    if (error != TB_OK) {
        free(w);
        return error;
    }
    *window = w;
    return TB_OK;
}

void tb_window_leave_for_good(struct tb_window *window)
{
    tb_engine_lock(window->engine);
    window->channel->left = true;
    tb_engine_unlock(window->engine);
}

const char *tb_window_why(struct tb_window *window, int error)
{
    tb_engine_lock(window->engine);
    if (error == TB_ERR_EPOCH && window->story[0] != 0)
        tb_error(error, "%s", window->story);
    window->story[0] = 0;
    tb_engine_unlock(window->engine);
    return tb_error_story();
}

void tb_window_close(struct tb_window *window)
{
    struct tb_window *w = window;
    struct tb_engine *e = w->engine;
    tb_window_flush_local(w, TB_ANY_RANK, "MPI_Win_free"); /* nothing refers to it any more */
    window_unwatch(w);
    tb_engine_lock(e);
    bool written = give_up_writers(w, (uintptr_t)w->base, (uintptr_t)w->base + w->size);
    for (uint32_t i = 0; i < w->region_count; i++)
        written |= give_up_writers(w, w->regions[i].from, w->regions[i].to);
    for (uint32_t rank = 0; rank < w->channel->size; rank++) {
        tb_window_hold(&w->ranks[rank], TB_LOCK_NONE);
        tb_deadlock_forget(&w->ranks[rank]);
    }
    w->channel->window = NULL;
    tb_list_remove(&w->in_bucket);
    e->windows.count--;
    tb_engine_unlock(e);
    if (written)
        tb_engine_progress(e);
    free(w->regions);
    free(w->empty);
    free(w);
}
