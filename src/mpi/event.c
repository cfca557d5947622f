#include "mpi/event.h"

#include <stdlib.h>

struct tb_event_listener {
    enum tb_event_kind event;
    MPI_T_event_registration handle;
    uint64_t since; /* what has happened before is not for it */
    struct {
        MPI_T_event_cb_function *function;
        void *user_data;
    } callbacks[TB_EVENT_SAFETIES];
    MPI_T_event_dropped_cb_function *dropped;
    uint64_t dropped_count;
    uint32_t running; /* of its functions */
    bool left;
    MPI_T_event_free_cb_function *freed;
    void *freed_data;
};

struct tb_events {
    uint32_t count; /* listeners */
    uint32_t room;
    struct tb_event_listener **listeners; /* NULL: free */
    bool delivering;
    uint32_t first, kept;
    struct tb_event_record records[TB_EVENTS_KEPT];
};

_Static_assert(sizeof tb_self.events_heard / sizeof tb_self.events_heard[0] == TB_EVENT_COUNT,
               "each event has a number of listeners");

static _Thread_local const struct tb_event_record *current; /* that this thread is telling */

static void lock(void)
{
    pthread_mutex_lock(&tb_self.event_lock);
}

static void unlock(void)
{
    pthread_mutex_unlock(&tb_self.event_lock);
}

/* ---- listeners --------------------------------------------------------------------------------------------------- */

/* A free place; NULL: no memory. With the lock. */
static struct tb_event_listener **place(void)
{
    if (tb_self.events == NULL)
        tb_self.events = calloc(1, sizeof *tb_self.events);
    struct tb_events *e = tb_self.events;
    if (e == NULL)
        return NULL;
    if (e->count == e->room) {
        uint32_t room = e->room == 0 ? 8 : 2 * e->room;
        struct tb_event_listener **more = realloc(e->listeners, room * sizeof *more);
        if (more == NULL)
            return NULL;
        for (uint32_t i = e->room; i < room; i++)
            more[i] = NULL;
        e->listeners = more;
        e->room = room;
    }
    uint32_t at = 0;
    while (e->listeners[at] != NULL)
        at++;
    return &e->listeners[at];
}

struct tb_event_listener *tb_event_listen(enum tb_event_kind event)
{
    struct tb_event_listener *l = calloc(1, sizeof *l);
    lock();
    struct tb_event_listener **free_place = l != NULL ? place() : NULL;
    if (free_place != NULL) {
        l->event = event;
        l->since = tb_clock_now_real();
        *free_place = l;
        tb_self.events->count++;
        __atomic_add_fetch(&tb_self.events_heard[event], 1, __ATOMIC_RELAXED);
    }
    unlock();
    if (free_place != NULL)
        return l;
    free(l);
    return NULL;
}

void tb_event_set_handle(struct tb_event_listener *listener, MPI_T_event_registration handle)
{
    lock();
    listener->handle = handle;
    unlock();
}

void tb_event_set_function(struct tb_event_listener *listener, uint32_t safety, MPI_T_event_cb_function *function,
                           void *user_data)
{
    lock();
    listener->callbacks[safety].function = function;
    listener->callbacks[safety].user_data = user_data;
    unlock();
}

void tb_event_set_dropped(struct tb_event_listener *listener, MPI_T_event_dropped_cb_function *function)
{
    lock();
    listener->dropped = function;
    unlock();
}

/* Nobody refers to it any more. With the lock, which is let go meanwhile. */
static void listener_free(struct tb_event_listener *l)
{
    struct tb_events *e = tb_self.events;
    for (uint32_t i = 0; i < e->room; i++)
        if (e->listeners[i] == l)
            e->listeners[i] = NULL;
    e->count--;
    __atomic_sub_fetch(&tb_self.events_heard[l->event], 1, __ATOMIC_RELAXED);
    unlock();
    if (l->freed != NULL)
        l->freed(l->handle, MPI_T_CB_REQUIRE_NONE, l->freed_data);
    free(l);
    lock();
}

void tb_event_leave(struct tb_event_listener *listener, MPI_T_event_free_cb_function *function, void *user_data)
{
    lock();
    listener->left = true;
    listener->freed = function;
    listener->freed_data = user_data;
    if (listener->running == 0)
        listener_free(listener);
    unlock();
}

/* ---- what happens ------------------------------------------------------------------------------------------------ */

static void count_dropped(struct tb_events *e, enum tb_event_kind event)
{
    for (uint32_t i = 0; i < e->room; i++)
        if (e->listeners[i] != NULL && e->listeners[i]->event == event)
            e->listeners[i]->dropped_count++;
}

void tb_event_raise(enum tb_event_kind event, int64_t first, int64_t second, int64_t third)
{
    if (__atomic_load_n(&tb_self.events_heard[event], __ATOMIC_RELAXED) == 0)
        return;
    lock();
    struct tb_events *e = tb_self.events;
    if (e->kept == TB_EVENTS_KEPT)
        count_dropped(e, event);
    else
        e->records[(e->first + e->kept++) % TB_EVENTS_KEPT] =
            (struct tb_event_record){event, tb_clock_now_real(), {first, second, third}};
    __atomic_store_n(&tb_self.events_waiting, true, __ATOMIC_RELAXED);
    unlock();
}

/* ---- telling ----------------------------------------------------------------------------------------------------- */

const struct tb_event_record *tb_event_record(MPI_T_event_instance instance)
{
    return current != NULL && (const void *)instance == (const void *)current ? current : NULL;
}

/* The function with the least that was promised for it: any will do here. TB_EVENT_SAFETIES: there is none. */
static uint32_t choose(const struct tb_event_listener *l)
{
    uint32_t safety = 0;
    while (safety < TB_EVENT_SAFETIES && l->callbacks[safety].function == NULL)
        safety++;
    return safety;
}

static void done_running(struct tb_event_listener *l)
{
    l->running--;
    if (l->left && l->running == 0)
        listener_free(l);
}

/* With the lock, which is let go while the function runs. */
static void tell(struct tb_event_listener *l, const struct tb_event_record *record)
{
    uint32_t safety = choose(l);
    if (l->event != record->event || l->since > record->time || l->left || safety == TB_EVENT_SAFETIES)
        return;
    MPI_T_event_cb_function *function = l->callbacks[safety].function;
    void *user_data = l->callbacks[safety].user_data;
    MPI_T_event_registration handle = l->handle;
    l->running++;
    unlock();
    current = record;
    function((MPI_T_event_instance)(uintptr_t)record, handle, MPI_T_CB_REQUIRE_NONE, user_data);
    current = NULL;
    lock();
    done_running(l);
}

static void tell_dropped(struct tb_event_listener *l)
{
    uint32_t safety = choose(l);
    uint64_t count = l->dropped_count;
    if (count == 0 || l->left || l->dropped == NULL)
        return;
    MPI_T_event_dropped_cb_function *function = l->dropped;
    void *user_data = safety < TB_EVENT_SAFETIES ? l->callbacks[safety].user_data : NULL;
    l->dropped_count = 0;
    l->running++;
    unlock();
    function((MPI_Count)count, l->handle, 0, MPI_T_CB_REQUIRE_NONE, user_data);
    lock();
    done_running(l);
}

/* Functions may listen, leave, and cause events. */
static void tell_all(struct tb_events *e)
{
    while (e->kept > 0) {
        struct tb_event_record record = e->records[e->first];
        e->first = (e->first + 1) % TB_EVENTS_KEPT;
        e->kept--;
        for (uint32_t i = 0; i < e->room; i++)
            if (e->listeners[i] != NULL)
                tell(e->listeners[i], &record);
    }
    for (uint32_t i = 0; i < e->room; i++)
        if (e->listeners[i] != NULL)
            tell_dropped(e->listeners[i]);
}

void tb_events_deliver(void)
{
    lock();
    struct tb_events *e = tb_self.events;
    if (e != NULL && !e->delivering) {
        e->delivering = true;
        tell_all(e);
        e->delivering = false;
        __atomic_store_n(&tb_self.events_waiting, e->kept > 0, __ATOMIC_RELAXED);
    }
    unlock();
}
