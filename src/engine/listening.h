/* What a standby listens to while the program computes: the descriptors of transports, of drivers and of the agent's
 * stream, and the next timer of all. Each descriptor wakes it once, until somebody listens anew: so a process that is
 * in the library, and takes its frames itself, is not disturbed by a thread that wakes for each of them.
 *
 * `renew` listens anew: the standby does so before it sleeps, and whoever leaves the engine does (`settle`), if what is
 * listened to is stale: something has woken the standby while it could not come in, there is more to listen to, a
 * transport was told that nobody sleeps, or a timer is due earlier. Otherwise leaving takes no system call.
 *
 * Touched with the engine locked, except where a function or a member says otherwise. */
#ifndef TB_ENGINE_LISTENING_H
#define TB_ENGINE_LISTENING_H

#include "engine/driver.h"
#include "engine/likely.h"
#include "engine/transport_set.h"

#include <stdatomic.h>

/* Twice as many as there can be, since old ones are forgotten last. */
#define TB_LISTENING_LIMIT (2 * (TB_TRANSPORTS_LIMIT + TB_DRIVERS_LIMIT + 1u))

struct tb_listening {
    const struct tb_transport_set *transports;
    const struct tb_driving *driving;
    const int *control; /* -1: none */
    const struct tb_clock *clock;
    bool host;              /* to processes of this host, too */
    bool seldom;            /* to nothing: it only looks now and then */
    _Atomic bool wished;    /* somebody wants it; any thread reads it */
    _Atomic bool stale;     /* any thread */
    _Atomic bool ending;    /* any thread */
    _Atomic uint32_t woke;  /* a bit for each slot that has woken the standby since; any thread */
    _Atomic uint64_t until; /* when the timer goes off, or earlier; TB_NEVER: it has, or is not set; any thread */
    int descriptors[TB_LISTENING_LIMIT]; /* by slot; -1: unused */
    int epoll, bell, timer;
};

/* All zero before; other threads may ask meanwhile whether it is wished, or outdate it. */
int tb_listening_open(struct tb_listening *l, const struct tb_transport_set *transports,
                      const struct tb_driving *driving, const int *control, const struct tb_clock *clock);
void tb_listening_close(struct tb_listening *l);
/* From now on it is wanted, or not; `host`: also from ranks of this host, which then have to ring; `seldom`: nobody is
 * in a hurry, so that it need not wake for everything that comes. */
void tb_listening_wish(struct tb_listening *l, bool wished, bool host, bool seldom);
/* True: nothing is there at the moment. If it is false, the standby looks again in a millisecond. */
bool tb_listening_renew(struct tb_listening *l);
uint64_t tb_listening_deadline(const struct tb_listening *l);

/* The standby's side, without the engine: sleeps until something happens, at most so many ms, or, if that is negative,
 * until somebody wants to hear of it. False: it is to end, or nothing can be listened to any more. */
bool tb_listening_sleep(struct tb_listening *l, int ms);
void tb_listening_end(struct tb_listening *l);  /* any thread: the standby is to end */
void tb_listening_ring(struct tb_listening *l); /* any thread: it is to look, and listen anew */

static inline bool tb_listening_is_wished(const struct tb_listening *l)
{
    return TB_UNLIKELY(atomic_load_explicit(&l->wished, memory_order_relaxed));
}

/* What was listened to is not all any more. */
static inline void tb_listening_outdate(struct tb_listening *l)
{
    atomic_store_explicit(&l->stale, true, memory_order_release);
}

/* Any thread: whether somebody has to listen anew. */
static inline bool tb_listening_is_stale(const struct tb_listening *l)
{
    return tb_listening_is_wished(l) && atomic_load_explicit(&l->stale, memory_order_relaxed);
}

/* The engine is left. */
static inline void tb_listening_settle(struct tb_listening *l)
{
    if (tb_listening_is_wished(l) &&
        (tb_listening_is_stale(l) || tb_listening_deadline(l) < atomic_load_explicit(&l->until, memory_order_relaxed)))
        tb_listening_renew(l);
}

#endif
