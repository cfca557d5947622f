/* Progress and waiting: spin, then yield, then sleep. */
#include "engine/wait.h"

#include "engine/engine_state.h"
#include "engine/mismatch.h"

#include <errno.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define POLLS_PER_LOOK   64     /* idle polls between two looks at the clock, where nobody else wants the core */
#define CONTROL_INTERVAL 4096   /* rounds of progress between two looks at the control descriptor... */
#define CONTROL_HURRY    32     /* ...and while a connection is awaited */
#define TEST_ROUNDS      64     /* rounds that a single call of tb_engine_progress counts for */
#define TESTS_PER_YIELD  128    /* idle calls of tb_engine_progress until the core is offered to others... */
#define TESTS_CROWDED    4      /* ...and where they want it and give it back soon: */
#define GIVEN_BACK       20000  /* ns */
#define YIELDS_LIMIT     8      /* before a thread sleeps... */
#define YIELD_TIME       100000 /* ns: ...and so long, since waking it takes the others tens of microseconds */
#define YIELD_ROUNDS     8      /* rounds that a yield counts for which nobody accepted */
#define SLEEPS_PER_YIELD 64     /* who sleeps instead of yielding yields now and then, to learn whether it still must */
#define PREEMPTED        200000 /* ns: so long between two looks at the clock means that the core was taken away */
#define GIVE_WAY_LIMIT   1000   /* yields for other threads that want the lock */
/* ns: when a thread that sleeps says so, and how often again */
#define WAITING_FIRST UINT64_C(1500000000)
#define WAITING_AGAIN UINT64_C(2000000000)

static inline void cpu_relax(void);
#if defined(__x86_64__)
static inline void cpu_relax(void)
{
    __builtin_ia32_pause();
}
#elif defined(__aarch64__)
static inline void cpu_relax(void)
{
    __asm__ volatile("yield");
}
#else
static inline void cpu_relax(void) {}
#endif

/* ---- opening and closing ----------------------------------------------------------------------------------------- */

int tb_waiting_open(struct tb_waiting *w, bool threaded)
{
    pthread_mutexattr_t recursive;
    pthread_mutexattr_init(&recursive);
    pthread_mutexattr_settype(&recursive, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(&w->lock, &recursive);
    pthread_mutexattr_destroy(&recursive);
    tb_list_init(&w->waiters);
    w->spin = tb_param.spin;
    tb_crowd_init(&w->crowd);
    w->kick = -1;
    if (!threaded)
        return TB_OK;
    w->kick = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    return w->kick >= 0 ? TB_OK : tb_error_errno("no event descriptor to wake waiting threads");
}

void tb_waiting_close(struct tb_waiting *w)
{
    if (w->kick >= 0)
        close(w->kick);
    pthread_mutex_destroy(&w->lock);
}

/* ---- the lock ---------------------------------------------------------------------------------------------------- */

void tb_waiting_lock(struct tb_waiting *w)
{
    if (pthread_mutex_trylock(&w->lock) != 0) {
        atomic_fetch_add_explicit(&w->wanting, 1, memory_order_relaxed);
        pthread_mutex_lock(&w->lock);
        atomic_fetch_sub_explicit(&w->wanting, 1, memory_order_relaxed);
    }
    w->depth++;
}

void tb_waiting_unlock(struct tb_waiting *w)
{
    w->depth--;
    pthread_mutex_unlock(&w->lock);
}

static void waiting_relock(struct tb_waiting *w)
{
    pthread_mutex_lock(&w->lock);
    w->depth++;
}

/* Whoever comes in first after a standby goes on with what that had to leave. */
void tb_engine_lock_slow(struct tb_engine *e)
{
    if (e->threaded)
        tb_waiting_lock(&e->waiting);
    else if (!tb_biased_lock_enter(&e->standby.lock))
        return;
    if (TB_UNLIKELY(!tb_list_empty(&e->runs.put_off)) && !e->aside)
        tb_runs_resume(&e->runs);
}

void tb_waiting_kick(const struct tb_waiting *w)
{
    uint64_t one = 1;
    while (w->kick >= 0 && write(w->kick, &one, sizeof one) < 0 && errno == EINTR) {
    }
}

static void waiters_look(struct tb_waiting *w);

/* The standby may try in vain to come in while this thread is about to leave, and count on it. */
static void engine_leave(struct tb_standby *s)
{
    if (!tb_biased_lock_is_last(&s->lock))
        return;
    for (;;) {
        tb_listening_settle(&s->listening);
        tb_biased_lock_leave(&s->lock);
        if (TB_LIKELY(!tb_listening_is_stale(&s->listening)))
            return;
        tb_biased_lock_enter(&s->lock);
    }
}

void tb_engine_unlock_only(struct tb_engine *e)
{
    /* The poller sleeps, so what this thread has changed is looked at here: messages to oneself end without it. */
    if (e->waiting.sleeping)
        waiters_look(&e->waiting);
    if (e->waiting.sleeping && (e->waiting.stirred || tb_sleeping.deadline(e) < e->waiting.sleep_until)) {
        e->waiting.sleep_until = 0; /* one kick is enough */
        tb_waiting_kick(&e->waiting);
    }
    e->waiting.stirred = false;
    if (e->lanes != NULL && atomic_load_explicit(&e->lanes->sleepers, memory_order_relaxed) > 0)
        tb_lanes_work.timers(e);
    if (e->waiting.poller == NULL && !e->aside) {
        if (e->lanes != NULL)
            tb_lanes_work.settle(e);
        else
            tb_listening_settle(&e->standby.listening);
    }
    tb_waiting_unlock(&e->waiting);
}

void tb_engine_unlock_slow(struct tb_engine *e)
{
    if (!e->threaded) {
        engine_leave(&e->standby);
        return;
    }
    bool last = e->waiting.depth == 1;
    tb_engine_unlock_only(e);
    if (e->lanes != NULL && last)
        tb_lanes_work.left(e);
}

/* A polling thread holds the lock most of the time: lets those who wait for it in. */
static void engine_give_way(struct tb_engine *e)
{
    if (atomic_load_explicit(&e->waiting.wanting, memory_order_relaxed) == 0)
        return;
    tb_waiting_unlock(&e->waiting);
    for (int i = 0; i < GIVE_WAY_LIMIT && atomic_load_explicit(&e->waiting.wanting, memory_order_relaxed) > 0; i++)
        sched_yield();
    waiting_relock(&e->waiting);
}

/* ---- one round --------------------------------------------------------------------------------------------------- */

static int control_round(struct tb_engine *e, uint32_t rounds)
{
    bool hurried = TB_UNLIKELY(e->lanes != NULL) && e->control_countdown > CONTROL_HURRY &&
                   atomic_load_explicit(&e->lanes->connecting, memory_order_relaxed) > 0;
    if (TB_LIKELY(e->control_countdown > rounds && !hurried)) {
        e->control_countdown -= rounds;
        return 0;
    }
    if (e->lanes != NULL)
        e->connecting = atomic_exchange_explicit(&e->lanes->connecting, 0, memory_order_relaxed);
    e->control_countdown = e->connecting > 0 ? CONTROL_HURRY : CONTROL_INTERVAL;
    e->connecting -= e->connecting > 0 ? 1 : 0;
    if (TB_LIKELY(e->lanes == NULL))
        return tb_control_poll(e);
    atomic_store_explicit(&e->lanes->connecting, e->connecting, memory_order_relaxed);
    return tb_lanes_work.control(e);
}

static inline __attribute__((always_inline)) int engine_round(struct tb_engine *e, uint32_t rounds)
{
    int n = 0;
    if (TB_UNLIKELY(e->inside))
        return 0;
    e->inside = true;
    n += tb_transport_set_poll(&e->transports, rounds);
    if (TB_UNLIKELY(e->lanes != NULL))
        n += tb_lane_ways.drain(e);
    n += control_round(e, rounds);
    if (TB_UNLIKELY(!tb_list_empty(&e->peers.waiting)))
        n += tb_peers_flush(&e->peers);
    if (TB_UNLIKELY(!tb_list_empty(&e->accesses.waiting)))
        n += tb_accesses_work.push(&e->accesses);
    if (TB_UNLIKELY(!tb_list_empty(&e->ports.busy)))
        n += tb_ports_pump(&e->ports);
    if (TB_UNLIKELY(!tb_list_empty(&e->runs.working)))
        n += tb_runs_work(&e->runs);
    n += tb_driving_advance(&e->driving, false);
    if (TB_UNLIKELY(tb_peers_mourn(&e->peers))) {
        tb_arrivals_clear(e);
        n += tb_peers_bury(&e->peers) + tb_accesses_work.bury(&e->windows);
    }
    e->inside = false;
    return n;
}

int tb_engine_round(struct tb_engine *e)
{
    return engine_round(e, 1);
}

/* And of what others have, where nobody looks after them. */
static inline int lanes_round(struct tb_engine *e, uint32_t rounds)
{
    int n = engine_round(e, rounds);
    return e->lanes != NULL && !e->inside ? n + tb_lanes_work.help(e, rounds, false) : n;
}

bool tb_engine_spins(const struct tb_engine *e)
{
    return !e->waiting.crowd.here && e->waiting.spin > 0;
}

/* ---- patience ---------------------------------------------------------------------------------------------------- */

struct patience {
    uint32_t polls;       /* since the last look at the clock */
    uint32_t yields;      /* once begun, there is one after each look */
    uint64_t since, last; /* since 0: not looked at the clock yet; and then last is not set */
    uint64_t *began;      /* whoever asks is told that the thread has waited since then */
    uint64_t tell_at;     /* when the owner is told that this thread waits; 0: it has not slept yet */
    bool told;
};

/* Something happened. That the thread has waited until now is not forgotten: it may wait for something else. */
static inline void patience_renew(struct patience *p)
{
    p->polls = p->yields = 0;
    p->since = 0;
}

/* False: not now. */
static bool engine_tell(struct tb_engine *e, bool waits)
{
    if (e->lanes != NULL)
        return tb_lanes_work.tell(e, waits);
    e->config.waiting(e->config.context, waits);
    return true;
}

/* What was waited for is there. */
static inline void patience_end(struct tb_engine *e, const struct patience *p)
{
    if (TB_UNLIKELY(p->told))
        engine_tell(e, false);
}

/* Returns when to be here again. */
static uint64_t patience_tell(struct tb_engine *e, struct patience *p)
{
    if (e->config.waiting == NULL)
        return TB_NEVER;
    uint64_t now = tb_clock_now(e->config.transport.clock);
    if (p->tell_at == 0)
        p->tell_at = now + WAITING_FIRST;
    if (now >= p->tell_at) {
        bool told = engine_tell(e, true);
        p->told = p->told || told;
        p->tell_at = now + (told ? WAITING_AGAIN : WAITING_FIRST);
    }
    return p->tell_at;
}

/* No other rank of the job is on this host: waking this one costs nobody but the kernel, which has a packet in hand. */
static bool engine_alone(const struct tb_engine *e)
{
    return e->config.transport.local_count <= 1;
}

/* So long a yield took. Others wanted the core: spin less, if ever again. Nobody did: spin longer again, up to what the
 * parameter allows. */
static bool spin_learn(struct tb_waiting *w, uint64_t took)
{
    bool accepted = tb_crowd_learn(&w->crowd, took);
    if (accepted)
        w->spin /= 2;
    else if (!w->crowd.here)
        w->spin += w->spin / 4 + 500;
    if (w->spin > tb_param.spin)
        w->spin = tb_param.spin;
    return accepted;
}

/* Offers the core to others and learns from how long they take it. The lock is released meanwhile. The network may have
 * brought something while others ran, and looking costs little beside that. */
static uint64_t engine_yield(struct tb_engine *e, uint64_t now)
{
    e->counters.yields++;
    if (e->threaded)
        tb_waiting_unlock(&e->waiting);
    sched_yield();
    uint64_t after = tb_clock_now_real();
    if (e->threaded)
        waiting_relock(&e->waiting);
    bool accepted = spin_learn(&e->waiting, after - now);
    tb_transport_set_skip(&e->transports, accepted ? UINT32_MAX : YIELD_ROUNDS);
    return after;
}

/* Nothing happened in a round. The engine is locked; it is released while yielding and sleeping. In a crowd the one who
 * is waited for may want this core: it is offered at once, and after each further look. A rank that is alone on its
 * host sleeps instead, except now and then, to learn whether it still must. */
static void patience_slow(struct tb_engine *e, struct patience *p)
{
    uint64_t now = tb_clock_now_real();
    bool spins = tb_engine_spins(e);
    e->counters.looks += p->polls;
    p->polls = 0;
    if (p->since == 0)
        p->since = p->last = now;
    if (*p->began == 0)
        *p->began = now;
    if (now - p->last > PREEMPTED)
        spin_learn(&e->waiting, now - p->last);
    p->last = now;
    uint64_t spin = spins ? e->waiting.spin : 0;
    if (now - p->since < spin)
        return;
    bool yields = spins || !engine_alone(e) || e->counters.sleeps % SLEEPS_PER_YIELD == 0;
    if (yields && (p->yields++ < YIELDS_LIMIT || now - p->since < spin + YIELD_TIME)) {
        p->last = engine_yield(e, now);
        return;
    }
    uint64_t tell = patience_tell(e, p), look = tb_deadlock_work.look(e);
    tb_sleeping.sleep(e, tell < look ? tell : look);
    patience_renew(p);
}

static inline void patience_idle(struct tb_engine *e, struct patience *p)
{
    if (TB_LIKELY(++p->polls < POLLS_PER_LOOK && p->yields == 0 && tb_engine_spins(e)))
        cpu_relax();
    else
        patience_slow(e, p);
}

/* ---- waiting ----------------------------------------------------------------------------------------------------- */

void tb_waiting_wake(struct tb_waiting *w, struct tb_waiter *waiter)
{
    waiter->satisfied = true;
    if (waiter == w->poller) {
        w->stirred = true; /* it may be asleep in ppoll */
        return;
    }
    TB_CONTAINER(w, struct tb_engine, waiting)->counters.wakes++;
    waiter->wanting = true; /* a poller that has much to do would hardly ever let it in */
    atomic_fetch_add_explicit(&w->wanting, 1, memory_order_relaxed);
    pthread_cond_signal(&waiter->wake);
}

static void waiter_look(struct tb_waiting *w, struct tb_waiter *waiter)
{
    if (waiter->satisfied || waiter->asking || waiter->seen == w->events)
        return;
    waiter->seen = w->events;
    waiter->asking = true; /* it may probe, which looks at all waiters again: once true it must not be asked twice */
    bool ready = waiter->ready(waiter->context);
    waiter->asking = false;
    if (ready)
        tb_waiting_wake(w, waiter);
}

/* Asks those who wait for a condition, after something has happened. */
static void waiters_look(struct tb_waiting *w)
{
    struct tb_waiter *waiter;
    TB_LIST_EACH (waiter, &w->waiters, struct tb_waiter, on_engine)
        if (waiter->ready != NULL)
            waiter_look(w, waiter);
}

/* Polls until this waiter is satisfied; meanwhile everybody's work is done here. */
static void engine_poll_until(struct tb_engine *e, struct tb_waiter *w)
{
    struct patience p = {.began = &w->since};
    uint64_t seen = e->waiting.events;
    waiters_look(&e->waiting);
    while (!w->satisfied) {
        int n = lanes_round(e, 1);
        if (atomic_load_explicit(&e->waiting.kicked, memory_order_relaxed) &&
            atomic_exchange(&e->waiting.kicked, false))
            e->waiting.events++;
        if (seen != e->waiting.events) {
            seen = e->waiting.events;
            waiters_look(&e->waiting);
        }
        if (TB_UNLIKELY(e->lanes != NULL) && !tb_list_empty(&e->runs.put_off)) {
            tb_runs_resume(&e->runs);
            n++;
        }
        if (w->satisfied || (w->request != NULL && tb_request_done(w->request)))
            break;
        if (n > 0)
            patience_renew(&p);
        else
            patience_idle(e, &p);
        if (e->threaded)
            engine_give_way(e);
    }
    patience_end(e, &p);
}

static void engine_wait(struct tb_engine *e, struct tb_waiter *w)
{
    TB_ASSERT(!e->inside);
    w->seen = e->waiting.events - 1;
    tb_list_append(&e->waiting.waiters, &w->on_engine);
    if (e->threaded)
        pthread_cond_init(&w->wake, NULL);
    while (!w->satisfied) {
        if (e->waiting.poller == NULL) {
            e->waiting.poller = w;
            if (e->lanes != NULL)
                tb_lanes_work.poll_begin(e);
            /* A standby may have come in after the one who has polled before, and put off what this one waits for. */
            if (!tb_list_empty(&e->runs.put_off))
                tb_runs_resume(&e->runs);
            engine_poll_until(e, w);
            w->satisfied = true;
            e->waiting.poller = NULL;
            if (e->lanes != NULL)
                tb_lanes_work.poll_end(e);
        } else {
            if (w->ready != NULL)
                waiter_look(&e->waiting, w);
            if (!w->satisfied && w->since == 0)
                w->since = tb_clock_now_real();
            if (!w->satisfied) {
                e->waiting.depth--;
                pthread_cond_wait(&w->wake, &e->waiting.lock);
                e->waiting.depth++;
            }
        }
    }
    if (w->wanting)
        atomic_fetch_sub_explicit(&e->waiting.wanting, 1, memory_order_relaxed);
    tb_list_remove(&w->on_engine);
    if (e->threaded)
        pthread_cond_destroy(&w->wake);
    if (e->waiting.poller == NULL && !tb_list_empty(&e->waiting.waiters))
        pthread_cond_signal(&TB_CONTAINER(e->waiting.waiters.next, struct tb_waiter, on_engine)->wake);
}

static void wait_threaded(struct tb_request *r, const char *call, const void *set)
{
    struct tb_engine *e = r->engine;
    struct tb_waiter w = {.request = r, .call = call, .set = set};
    r->waiter = &w;
    engine_wait(e, &w);
    r->waiter = NULL;
}

static inline __attribute__((always_inline)) void wait_only(struct tb_engine *e, struct tb_request *request,
                                                            const char *call, const void *set)
{
    TB_ASSERT(e != NULL && !e->inside);
    struct tb_only_wait only = {request, call, set, 0};
    struct patience p = {.began = &only.since};
    e->waiting.only = &only;
    while (!tb_request_done(request)) {
        if (engine_round(e, 1) > 0)
            patience_renew(&p);
        else if (!tb_request_done(request))
            patience_idle(e, &p);
    }
    e->waiting.only = NULL;
    patience_end(e, &p);
}

/* With the lock also if it is done: whoever has ended it may not have called back yet. */
static __attribute__((noinline)) void wait_shared(struct tb_engine *e, struct tb_request *r, const char *call,
                                                  const void *set)
{
    tb_engine_lock(e);
    if (!tb_request_done(r) && e->threaded)
        wait_threaded(r, call, set);
    else if (!tb_request_done(r))
        wait_only(e, r, call, set);
    tb_engine_unlock(e);
}

void tb_request_wait_in(struct tb_request *request, const char *call, const void *set)
{
    struct tb_engine *e = request->engine;
    if (e != NULL && e->shared)
        wait_shared(e, request, call, set);
    else if (!tb_request_done(request))
        wait_only(e, request, call, set);
    if (TB_UNLIKELY(request->status.error != TB_OK))
        tb_request_explain(request);
}

void tb_engine_wait_in(struct tb_engine *engine, bool (*ready)(void *context), void *context, const char *call)
{
    struct tb_waiter w = {.ready = ready, .context = context, .call = call};
    bool spread = engine->lanes != NULL && engine->lane == 0 && call != NULL;
    if (spread)
        atomic_fetch_add(&engine->lanes->spread, 1);
    tb_engine_lock(engine);
    engine_wait(engine, &w);
    tb_engine_unlock(engine);
    if (spread)
        atomic_fetch_sub(&engine->lanes->spread, 1);
}

/* Whoever tests again and again waits too, if it has done so for long. */
static void tests_tell(struct tb_engine *e, uint64_t now)
{
    struct tb_waiting *w = &e->waiting;
    if (e->config.waiting == NULL || now - w->tests_told < WAITING_AGAIN)
        return;
    if (w->tests_told == 0 || engine_tell(e, true))
        w->tests_told = now;
}

/* Whoever computes between its tests must not lose the core to others who compute, too. */
static uint32_t tests_per_yield(const struct tb_crowd *c)
{
    return c->here && c->took < GIVEN_BACK ? TESTS_CROWDED : TESTS_PER_YIELD;
}

int tb_engine_progress(struct tb_engine *engine)
{
    tb_engine_lock(engine);
    int n = lanes_round(engine, TEST_ROUNDS);
    if (n > 0) {
        engine->waiting.stirred = true; /* somebody who sleeps may have waited for it */
        engine->waiting.idle_tests = 0;
    } else if (++engine->waiting.idle_tests >= tests_per_yield(&engine->waiting.crowd) && !engine->inside) {
        engine->waiting.idle_tests = 0;
        tests_tell(engine, engine_yield(engine, tb_clock_now_real()));
    }
    tb_engine_unlock(engine);
    return n;
}

void tb_engine_kick(struct tb_engine *engine)
{
    atomic_store(&engine->waiting.kicked, true);
    tb_waiting_kick(&engine->waiting);
}
