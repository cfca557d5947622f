/* Sleeping: until frames come, drivers have something to do, the agent says something, or another thread kicks. */
#include "engine/engine_state.h"

#include <errno.h>
#include <poll.h>
#include <stdatomic.h>
#include <unistd.h>

/* ns: with several lanes a thread that sleeps looks so often by itself, since not everything that is left to do in
 * another lane wakes it */
#define LANES_LOOK UINT64_C(100000000)

static uint64_t engine_deadline(const struct tb_engine *e)
{
    uint64_t frames = tb_transport_set_deadline(&e->transports), steps = tb_driving_deadline(&e->driving, false);
    return frames < steps ? frames : steps;
}

/* What drivers wait for may come without a frame. */
static bool drivers_idle(struct tb_engine *e)
{
    e->inside = true;
    int n = tb_driving_advance(&e->driving, true) + tb_mismatch_overheard(e);
    e->inside = false;
    return n == 0;
}

static void engine_disarm(struct tb_engine *e)
{
    if (e->lanes != NULL) {
        tb_lanes_work.disarm(e);
        return;
    }
    for (uint32_t i = 0; i < e->transports.open_count; i++)
        e->transports.open[i].transport->table->disarm(e->transports.open[i].transport);
    tb_listening_outdate(&e->standby.listening);
}

static bool engine_arm(struct tb_engine *e)
{
    if (e->lanes != NULL && !tb_lanes_work.arm(e))
        return false;
    for (uint32_t i = 0; i < e->transports.open_count && e->lanes == NULL; i++) {
        struct tb_transport *t = e->transports.open[i].transport;
        if (!t->table->arm(t)) {
            engine_disarm(e);
            return false;
        }
    }
    if (drivers_idle(e))
        return true;
    engine_disarm(e);
    return false;
}

static void sleep_in_poll(struct tb_engine *e, struct pollfd *fds, nfds_t count, uint64_t deadline)
{
    struct timespec span, *timeout = NULL;
    if (deadline != TB_NEVER) {
        uint64_t now = tb_clock_now(e->config.transport.clock);
        uint64_t left = deadline > now ? deadline - now : 0;
        span = (struct timespec){.tv_sec = (time_t)(left / 1000000000), .tv_nsec = (long)(left % 1000000000)};
        timeout = &span;
    }
    /* Who has no lock may look whether somebody sleeps. */
    __atomic_store_n(&e->counters.sleeps, e->counters.sleeps + 1, __ATOMIC_RELAXED);
    if (e->threaded) {
        e->waiting.sleeping = true;
        e->waiting.sleep_until = deadline;
        e->waiting.stirred = false;
        e->waiting.depth--;
        pthread_mutex_unlock(&e->waiting.lock);
    }
    if (ppoll(fds, count, timeout, NULL) <= 0)
        for (nfds_t i = 0; i < count; i++)
            fds[i].revents = 0;
    if (e->threaded) {
        pthread_mutex_lock(&e->waiting.lock);
        e->waiting.depth++;
        e->waiting.sleeping = false;
        uint64_t kicks;
        while (read(e->waiting.kick, &kicks, sizeof kicks) < 0 && errno == EINTR) {
        }
    }
}

static void watch(struct pollfd *fds, nfds_t *count, int descriptor)
{
    if (descriptor >= 0)
        fds[(*count)++] = (struct pollfd){.fd = descriptor, .events = POLLIN};
}

static uint64_t watch_drivers(const struct tb_engine *e, struct pollfd *fds, nfds_t *count)
{
    for (uint32_t i = 0; i < e->driving.count; i++)
        watch(fds, count, tb_driving_descriptor(&e->driving, i));
    return tb_driving_deadline(&e->driving, false);
}

/* Somebody who is in the first lane just now looks after its drivers. */
static uint64_t watch_first(struct tb_engine *e, struct pollfd *fds, nfds_t *count)
{
    struct tb_engine *first = tb_engine_first(e);
    if (first == e || !tb_lanes_work.enter(first))
        return TB_NEVER;
    uint64_t deadline = watch_drivers(first, fds, count);
    tb_engine_unlock(first);
    return deadline;
}

static uint64_t watch_all(struct tb_engine *e, struct pollfd *fds, nfds_t *count)
{
    for (uint32_t i = 0; i < e->transports.open_count; i++) {
        struct tb_transport *t = e->transports.open[i].transport;
        watch(fds, count, t->table->descriptor(t));
    }
    return watch_first(e, fds, count);
}

static void engine_sleep(struct tb_engine *e, uint64_t deadline)
{
    if (!engine_arm(e))
        return;
    if (atomic_exchange(&e->waiting.kicked, false)) {
        e->waiting.events++;
        engine_disarm(e);
        return;
    }
    struct pollfd fds[TB_TRANSPORTS_LIMIT + 2 * TB_DRIVERS_LIMIT + 2];
    nfds_t count = 0;
    uint64_t others = watch_all(e, fds, &count);
    watch_drivers(e, fds, &count);
    watch(fds, &count, e->waiting.kick);
    int control = __atomic_load_n(&tb_engine_first(e)->control, __ATOMIC_RELAXED);
    watch(fds, &count, control);
    uint64_t next = engine_deadline(e);
    next = next < others ? next : others;
    next = next < deadline ? next : deadline;
    if (e->lanes != NULL) {
        uint64_t latest = tb_clock_now(e->config.transport.clock) + LANES_LOOK;
        next = next < latest ? next : latest;
        atomic_store(&e->lanes->lanes[e->lane].until, next);
    }
    sleep_in_poll(e, fds, count, next);
    engine_disarm(e);
    if (e->lanes != NULL)
        e->waiting.events++;
    tb_transport_set_skip(&e->transports, UINT32_MAX);
    if (control < 0 || fds[count - 1].revents != 0)
        e->control_countdown = 0;
}

const struct tb_sleeping tb_sleeping = {
    .sleep = engine_sleep, .deadline = engine_deadline, .drivers_idle = drivers_idle};
