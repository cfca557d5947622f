/* Events, for tools: something has happened in the library that a tool has asked to be told of. What notices it, with
 * the engine locked and in any thread, only keeps it (tb_event_raise); the tool's functions are called at the end of a
 * call of the program, one event after the other, by one thread at a time, with no lock held, so that they may call
 * whatever they like. More than TB_EVENTS_KEPT that were not told yet are counted and dropped.
 *
 * Everything here has a lock of its own, under which nobody takes another. */
#ifndef TB_MPI_EVENT_H
#define TB_MPI_EVENT_H

#include "mpi/self.h"

#define TB_EVENT_VALUES 3u
#define TB_EVENTS_KEPT  1024u

enum tb_event_kind { TB_EVENT_UNEXPECTED, TB_EVENT_LOST, TB_EVENT_CONNECTION, TB_EVENT_ROUTES, TB_EVENT_COUNT };

/* One that has happened. A tool's function is given its address as the event's instance. */
struct tb_event_record {
    enum tb_event_kind event;
    uint64_t time; /* of the real clock, ns */
    int64_t values[TB_EVENT_VALUES];
};

#define TB_EVENT_SAFETIES 4u /* levels of MPI_T_cb_safety, from none to the strictest */

struct tb_event_listener; /* what MPI_T_event_registration names */

/* NULL: no memory. `handle` is what the tool's functions are given. */
struct tb_event_listener *tb_event_listen(enum tb_event_kind event);
void tb_event_set_handle(struct tb_event_listener *listener, MPI_T_event_registration handle);
/* `safety` counts the levels from 0; a NULL function takes it back. */
void tb_event_set_function(struct tb_event_listener *listener, uint32_t safety, MPI_T_event_cb_function *function,
                           void *user_data);
void tb_event_set_dropped(struct tb_event_listener *listener, MPI_T_event_dropped_cb_function *function);
/* Frees it, and calls the function (may be NULL), as soon as none of its functions runs. */
void tb_event_leave(struct tb_event_listener *listener, MPI_T_event_free_cb_function *function, void *user_data);
/* The record of an instance, in a function that was called with it; NULL: it is none. */
const struct tb_event_record *tb_event_record(MPI_T_event_instance instance);

void tb_event_raise(enum tb_event_kind event, int64_t first, int64_t second, int64_t third);
void tb_events_deliver(void);

/* At the end of a call of the program, which returns this code. */
static inline int tb_events_tell(int code)
{
    if (__builtin_expect(__atomic_load_n(&tb_self.events_waiting, __ATOMIC_RELAXED), 0))
        tb_events_deliver();
    return code;
}

#endif
