#include "engine/standby.h"

#include "engine/engine_state.h"

#include <errno.h>
#include <signal.h>
#include <string.h>

#define STACK_BYTES (256u << 10)
/* ms: how long it waits, once woken, while a thread of the program is inside. That one mostly takes what has come, and
 * soon leaves; so a process that exchanges messages all the time is not disturbed for each of them. */
#define HOLD_OFF 1

/* ---- in and out -------------------------------------------------------------------------------------------------- */

/* Whether a thread of a threaded process waits, in any lane. */
static bool is_polled(struct tb_engine *e)
{
    return e->waiting.poller != NULL || (e->lanes != NULL && atomic_load(&e->lanes->polled) > 0);
}

/* Whether a thread of the program seems to be inside. */
static bool standby_is_busy(struct tb_engine *e)
{
    if (!e->threaded)
        return tb_biased_lock_is_busy(&e->standby.lock);
    if (pthread_mutex_trylock(&e->waiting.lock) != 0)
        return true;
    bool polled = is_polled(e);
    pthread_mutex_unlock(&e->waiting.lock);
    return polled;
}

/* False: one is inside, and listens anew when it leaves. */
static bool standby_enter(struct tb_engine *e)
{
    if (!e->threaded) {
        tb_listening_outdate(&e->standby.listening);
        return tb_biased_lock_visit(&e->standby.lock);
    }
    tb_waiting_lock(&e->waiting);
    tb_listening_outdate(&e->standby.listening);
    __sync_synchronize(); /* who stops waiting sees that, or is seen here to have stopped */
    if (!is_polled(e))
        return true;
    tb_waiting_unlock(&e->waiting);
    return false;
}

static bool standby_is_wanted(const struct tb_engine *e)
{
    return e->threaded ? atomic_load_explicit(&e->waiting.wanting, memory_order_relaxed) > 0
                       : tb_biased_lock_is_wanted(&e->standby.lock);
}

static void standby_leave(struct tb_engine *e)
{
    if (e->threaded)
        tb_waiting_unlock(&e->waiting);
    else
        tb_biased_lock_depart(&e->standby.lock);
}

/* ---- the thread -------------------------------------------------------------------------------------------------- */

static int drivers_advance(struct tb_driving *driving)
{
    int n = 0;
    for (uint32_t i = 0; i < driving->count; i++)
        if (driving->tables[i]->standby && !tb_list_empty(&driving->active[i]))
            n += driving->tables[i]->advance(&driving->active[i], false);
    return n;
}

/* But for what is not listened to and what is put off. */
int tb_standby_round(struct tb_engine *e, bool host)
{
    int n = 0;
    e->inside = true;
    for (uint32_t i = 0; i < e->transports.open_count; i++) {
        const struct tb_open_transport *open = &e->transports.open[i];
        if (open->table->scope != TB_SCOPE_HOST || host)
            n += open->transport->table->poll(open->transport);
    }
    if (e->lanes != NULL)
        n += tb_lane_ways.drain(e);
    n += tb_control_poll(e);
    n += tb_peers_flush(&e->peers);
    if (!tb_list_empty(&e->accesses.waiting))
        n += tb_accesses_work.push(&e->accesses);
    n += tb_ports_pump(&e->ports);
    n += drivers_advance(&e->driving);
    if (tb_peers_mourn(&e->peers)) {
        tb_arrivals_clear(e);
        n += tb_peers_bury(&e->peers) + tb_accesses_work.bury(&e->windows);
    }
    e->inside = false;
    e->counters.standby_rounds += n > 0;
    return n;
}

static int standby_round(struct tb_engine *e)
{
    int n = tb_standby_round(e, e->standby.listening.host);
    return e->lanes != NULL ? n + tb_lanes_work.help(e, 1, true) : n;
}

/* Somebody has put something there who could not come in. */
static bool standby_is_called(const struct tb_engine *e)
{
    __sync_synchronize();
    return e->lanes != NULL && tb_lane_is_filled(&e->lanes->lanes[0]);
}

/* Until there is nothing more, or a thread of the program wants to come in, which then listens when it leaves. */
static void standby_work(struct tb_engine *e)
{
    struct tb_listening *l = &e->standby.listening;
    bool done, wanted;
    e->aside = true;
    do {
        done = standby_round(e) == 0;
        wanted = standby_is_wanted(e);
        if (wanted)
            tb_listening_outdate(l);
        else if (done && tb_listening_is_wished(l))
            tb_listening_renew(l);
    } while (!done && !wanted);
    e->aside = false;
}

static void *standby_run(void *context)
{
    struct tb_engine *e = context;
    struct tb_standby *s = &e->standby;
    tb_slice_shorten(); /* whoever waits for it had better not wait for what the program computes on this core */
    tb_biased_lock_introduce(&s->lock);
    while (tb_listening_sleep(&s->listening, -1)) {
        if (standby_is_busy(e) && !tb_listening_sleep(&s->listening, HOLD_OFF))
            break;
        bool again = true;
        while (again && standby_enter(e)) {
            again = tb_listening_is_wished(&s->listening); /* still */
            if (again)
                standby_work(e);
            standby_leave(e);
            again = again && standby_is_called(e);
        }
    }
    return NULL;
}

/* Signals are for the program's own threads. */
static int standby_start(struct tb_engine *e)
{
    struct tb_standby *s = &e->standby;
    pthread_attr_t small;
    sigset_t all, before;
    char limit[64];
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, STACK_BYTES);
    int error = pthread_create(&s->thread, &small, standby_run, e);
    if (error == EINVAL) /* thread-local variables of the program stand on the stack, too, and may be large */
        error = pthread_create(&s->thread, NULL, standby_run, e);
    pthread_attr_destroy(&small);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (error != 0)
        return tb_error(TB_ERR_SYSTEM, "no thread could be made for progress while the program computes: %s%s",
                        strerror(error), tb_error_limit(error, limit, sizeof limit));
    pthread_setname_np(s->thread, "tombolo-standby");
    s->running = true;
    return TB_OK;
}

/* ---- who watches ------------------------------------------------------------------------------------------------- */

static int standby_open(struct tb_engine *e)
{
    struct tb_standby *s = &e->standby;
    if (s->open)
        return TB_OK;
    int error = tb_listening_open(&s->listening, &e->transports, &e->driving, &e->control, e->config.transport.clock);
    if (error != TB_OK)
        return error;
    tb_biased_lock_open(&s->lock);
    s->open = true;
    if (!e->threaded) /* otherwise it is, and other threads read it */
        e->shared = true;
    s->opened++;
    return TB_OK;
}

int tb_engine_stand_by(struct tb_engine *engine)
{
    engine = tb_engine_first(engine);
    if (!engine->threaded)
        return standby_open(engine);
    tb_engine_lock(engine); /* other threads may be inside */
    int error = standby_open(engine);
    tb_engine_unlock(engine);
    return error;
}

void tb_engine_stand_down(struct tb_engine *engine)
{
    struct tb_standby *s = &engine->standby;
    if (!s->open)
        return;
    if (s->running) {
        tb_listening_end(&s->listening);
        pthread_join(s->thread, NULL);
    }
    tb_engine_lock(engine); /* and goes on with what was put off */
    tb_listening_wish(&s->listening, false, false, false);
    tb_engine_unlock(engine);
    tb_listening_close(&s->listening);
    tb_biased_lock_close(&s->lock);
    *s = (struct tb_standby){.opened = s->opened};
    if (!engine->threaded)
        engine->shared = false;
}

/* One watcher more has come, or gone. */
static void watchers_change(struct tb_standby *s)
{
    struct tb_listening *l = &s->listening;
    bool host = s->watchers[TB_STANDBY_HOST] > 0, listens = host || s->watchers[TB_STANDBY_NETWORK] > 0;
    bool wished = listens || s->watchers[TB_STANDBY_SELDOM] > 0;
    if (wished != tb_listening_is_wished(l) || host != l->host || l->seldom != (wished && !listens))
        tb_listening_wish(l, wished, host, wished && !listens);
}

int tb_engine_watch(struct tb_engine *engine, enum tb_standby_scope scope)
{
    engine = tb_engine_first(engine);
    struct tb_standby *s = &engine->standby;
    TB_ASSERT(s->open);
    tb_engine_lock(engine);
    int error = s->running ? TB_OK : standby_start(engine);
    if (error == TB_OK) {
        s->watchers[scope]++;
        watchers_change(s);
    }
    tb_engine_unlock(engine);
    return error;
}

void tb_engine_unwatch(struct tb_engine *engine, enum tb_standby_scope scope)
{
    engine = tb_engine_first(engine);
    struct tb_standby *s = &engine->standby;
    if (!s->open) /* it has ended with all who watched */
        return;
    tb_engine_lock(engine);
    TB_ASSERT(s->watchers[scope] > 0);
    s->watchers[scope]--;
    watchers_change(s);
    tb_engine_unlock(engine);
}
