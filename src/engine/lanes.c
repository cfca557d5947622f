#include "engine/laned.h"

#include "engine/engine_state.h"

#include <poll.h>
#include <stdlib.h>

#define HELP_ROUNDS   256  /* of progress, after which lanes get some in which nobody waits, whatever has come */
#define RENEW_TRIES   8    /* looks of who wakes, for others who sleep */
#define CONNECT_HURRY 4096 /* looks at the agent's stream after a connection was asked for */

/* ---- opening and closing ----------------------------------------------------------------------------------------- */

static int lanes_connect(void *context, struct tb_proc to, enum tb_stream stream)
{
    struct tb_lanes *lanes = context;
    struct tb_engine *first = lanes->lanes[0].engine;
    atomic_store_explicit(&lanes->connecting, CONNECT_HURRY, memory_order_relaxed);
    tb_listening_outdate(&first->standby.listening);
    if (first->connect == NULL)
        return tb_error(TB_ERR_PEER, "process %u cannot be reached: this process has no agent to connect it", to.index);
    return first->connect(first->connect_context, to, stream);
}

static void lanes_arrivals(void *context)
{
    struct tb_lanes *lanes = context;
    tb_control_poll(lanes->lanes[0].engine);
}

static int lanes_open(struct tb_engine *first, uint32_t count)
{
    struct tb_lanes *lanes = calloc(1, sizeof *lanes);
    if (lanes == NULL)
        return tb_error(TB_ERR_MEMORY, "no memory for the lanes of the engine");
    TB_ASSERT(count <= TB_LANES_LIMIT);
    pthread_mutex_init(&lanes->lock, NULL);
    tb_list_init(&lanes->ends);
    lanes->count = count;
    lanes->casts = first->config.multicast != NULL;
    lanes->lanes[0].engine = first;
    first->lanes = lanes;
    tb_slots_share(&first->slots, 0);
    return TB_OK;
}

static void lanes_configure(struct tb_lanes *lanes, const struct tb_transport_config *config)
{
    lanes->config = *config;
    lanes->config.connect = lanes_connect;
    lanes->config.connect_context = lanes;
    lanes->config.arrivals = lanes_arrivals;
    lanes->config.upcalls = *tb_lane_ways.upcalls;
    lanes->config.upcalls.context = lanes;
}

static int lanes_fill(struct tb_lanes *lanes)
{
    struct tb_engine_config config = lanes->lanes[0].engine->config;
    config.multicast = NULL;
    config.control = -1;
    config.control_ready = NULL;
    int error = TB_OK;
    for (uint32_t i = 1; i < lanes->count && error == TB_OK; i++)
        error = tb_engine_open_lane(&config, lanes, i, &lanes->lanes[i].engine);
    return error;
}

static void lanes_empty(struct tb_lanes *lanes)
{
    for (uint32_t i = 1; i < lanes->count; i++)
        if (lanes->lanes[i].engine != NULL) {
            tb_engine_close(lanes->lanes[i].engine);
            lanes->lanes[i].engine = NULL; /* what still comes for it is nobody's */
        }
}

static void lanes_close(struct tb_lanes *lanes)
{
    tb_lane_ways.forget(lanes);
    for (uint32_t i = 0; i < lanes->count; i++) {
        tb_tray_close(&lanes->lanes[i].tray);
        tb_tray_close(&lanes->lanes[i].taken);
    }
    pthread_mutex_destroy(&lanes->lock);
    free(lanes);
}

/* ---- in other lanes ---------------------------------------------------------------------------------------------- */

static bool lane_enter(struct tb_engine *e)
{
    if (e == NULL || pthread_mutex_trylock(&e->waiting.lock) != 0)
        return false;
    e->waiting.depth++;
    return true;
}

static int lane_round(struct tb_engine *e, bool aside)
{
    if (e->inside)
        return 0;
    if (!aside) {
        if (!tb_list_empty(&e->runs.put_off) && !e->aside)
            tb_runs_resume(&e->runs);
        return tb_engine_round(e);
    }
    if (e->waiting.poller != NULL)
        return 0;
    e->aside = true;
    int n = tb_standby_round(e, false);
    e->aside = false;
    return n;
}

/* Until nothing more has come meanwhile: whoever could not come in counts on this one. */
static int lane_visit(struct tb_lane *lane, bool aside)
{
    struct tb_engine *e = lane->engine;
    bool again = true;
    int n = 0;
    while (again && lane_enter(e)) {
        again = e->waiting.depth == 1;
        n += lane_round(e, aside);
        tb_engine_unlock_only(e);
        __sync_synchronize();
        again = again && tb_lane_is_filled(lane) && !atomic_load(&lane->polled);
    }
    return n;
}

/* False: its poller does not sleep, or was woken already. */
static bool lane_kick(struct tb_lane *lane)
{
    if (!atomic_load(&lane->asleep) || !atomic_exchange(&lane->asleep, false))
        return false;
    tb_waiting_kick(&lane->engine->waiting);
    return true;
}

/* What its poller waits for, asleep, may have come without a frame: that one looks itself, as it may take long. */
static void lane_rouse(struct tb_lane *lane)
{
    struct tb_engine *e = lane->engine;
    bool drives = false;
    if (!atomic_load(&lane->asleep) || !lane_enter(e))
        return;
    for (uint32_t i = 0; i < e->driving.count; i++)
        drives = drives || !tb_list_empty(&e->driving.active[i]);
    tb_engine_unlock_only(e);
    if (drives)
        lane_kick(lane);
}

/* What this thread has found may be for any lane. */
static void lane_left(struct tb_engine *e)
{
    struct tb_lanes *lanes = e->lanes;
    __sync_synchronize();
    for (uint32_t i = 0; i < lanes->count; i++)
        if (TB_UNLIKELY(tb_lane_is_filled(&lanes->lanes[i])) && !atomic_load(&lanes->lanes[i].polled))
            lane_visit(&lanes->lanes[i], false);
}

static int lanes_help(struct tb_engine *e, uint32_t rounds, bool aside)
{
    struct tb_lanes *lanes = e->lanes;
    struct tb_lane *own = &lanes->lanes[e->lane];
    bool slept = own->slept, all;
    int n = 0;
    own->slept = false;
    own->rounds += rounds;
    all = slept || own->rounds >= HELP_ROUNDS;
    own->rounds = all ? 0 : own->rounds;
    for (uint32_t i = 0; i < lanes->count; i++) {
        struct tb_lane *lane = &lanes->lanes[i];
        if (lane == own || (!tb_lane_is_filled(lane) && !all))
            continue;
        if (!atomic_load(&lane->polled))
            n += lane_visit(lane, aside);
    }
    return n;
}

static int lanes_control(struct tb_engine *e)
{
    struct tb_engine *first = e->lanes->lanes[0].engine;
    if (e == first)
        return tb_control_poll(e);
    if (!lane_enter(first))
        return 0;
    int n = 0;
    if (!first->inside) {
        first->inside = true;
        n = tb_control_poll(first);
        first->inside = false;
    }
    tb_engine_unlock(first);
    return n;
}

static bool lanes_tell(struct tb_engine *e, bool waits)
{
    struct tb_engine *first = e->lanes->lanes[0].engine;
    if (!lane_enter(first))
        return false;
    first->config.waiting(first->config.context, waits);
    tb_engine_unlock(first);
    return true;
}

static void lanes_stir(struct tb_lanes *lanes)
{
    struct tb_lane *first = &lanes->lanes[0];
    atomic_store(&first->engine->waiting.kicked, true);
    lane_kick(first);
}

/* ---- waiting ----------------------------------------------------------------------------------------------------- */

static void lanes_settle(struct tb_engine *e)
{
    struct tb_engine *first = e->lanes->lanes[0].engine;
    struct tb_listening *l = &first->standby.listening;
    if (!tb_listening_is_wished(l) || atomic_load(&e->lanes->polled) > 0)
        return;
    if (e == first) {
        tb_listening_settle(l);
        return;
    }
    if (!tb_listening_is_stale(l) && tb_transport_set_deadline(&e->transports) >= atomic_load(&l->until))
        return;
    if (lane_enter(first))
        tb_engine_unlock(first); /* which listens anew */
    else
        tb_listening_ring(l);
}

static void lane_poll_begin(struct tb_engine *e)
{
    atomic_store(&e->lanes->lanes[e->lane].polled, true);
    atomic_fetch_add(&e->lanes->polled, 1);
}

static void lane_poll_end(struct tb_engine *e)
{
    atomic_store(&e->lanes->lanes[e->lane].polled, false);
    if (atomic_fetch_sub(&e->lanes->polled, 1) == 1)
        lanes_settle(e);
}

/* The next five with the transports locked. */
static void hubs_disarm(struct tb_lanes *lanes)
{
    for (uint32_t i = 0; i < atomic_load(&lanes->hub_count); i++)
        lanes->hubs[i].real->table->disarm(lanes->hubs[i].real);
    lanes->armed = false;
}

static bool hubs_arm(struct tb_lanes *lanes)
{
    for (uint32_t i = 0; i < atomic_load(&lanes->hub_count); i++)
        if (!lanes->hubs[i].real->table->arm(lanes->hubs[i].real)) {
            hubs_disarm(lanes);
            return false;
        }
    lanes->armed = true;
    return true;
}

/* The same of those that are armed, but for that of this host, whose bell is others' already. */
static bool hubs_quiet(const struct tb_lanes *lanes)
{
    for (uint32_t i = 0; i < atomic_load(&lanes->hub_count); i++)
        if (lanes->hubs[i].table->scope != TB_SCOPE_HOST && !lanes->hubs[i].real->table->arm(lanes->hubs[i].real))
            return false;
    return true;
}

/* Whether what wakes sleepers has woken them; if it has not, it is left as it is. */
static bool hubs_rang(const struct tb_lanes *lanes)
{
    struct pollfd fds[TB_TRANSPORTS_LIMIT];
    nfds_t count = atomic_load(&lanes->hub_count);
    for (nfds_t i = 0; i < count; i++)
        fds[i] = (struct pollfd){.fd = lanes->hubs[i].real->table->descriptor(lanes->hubs[i].real), .events = POLLIN};
    return poll(fds, count, 0) > 0;
}

/* For those who go on sleeping. If it does not become quiet one of them has to look, too. */
static void hubs_renew(struct tb_lanes *lanes)
{
    bool quiet = false;
    hubs_disarm(lanes);
    for (int tries = 0; tries < RENEW_TRIES && !quiet; tries++) {
        for (uint32_t i = 0; i < atomic_load(&lanes->hub_count); i++)
            lanes->hubs[i].real->table->poll(lanes->hubs[i].real);
        quiet = hubs_arm(lanes);
    }
    for (uint32_t i = 0; i < lanes->count && !quiet; i++)
        quiet = lane_kick(&lanes->lanes[i]);
}

/* Of one in which nobody waits. */
static bool lane_is_idle(struct tb_engine *e)
{
    if (!lane_enter(e))
        return true;
    bool idle = e->inside ||
                (tb_list_empty(&e->runs.put_off) && tb_list_empty(&e->runs.working) && tb_sleeping.drivers_idle(e));
    tb_engine_unlock(e);
    return idle;
}

static void lane_disarm(struct tb_engine *e)
{
    struct tb_lanes *lanes = e->lanes;
    struct tb_lane *lane = &lanes->lanes[e->lane];
    atomic_store(&lane->asleep, false);
    pthread_mutex_lock(&lanes->lock);
    bool rang = --lanes->sleepers > 0 && hubs_rang(lanes);
    if (lanes->sleepers == 0)
        hubs_disarm(lanes);
    else if (rang || !lanes->armed)
        hubs_renew(lanes);
    pthread_mutex_unlock(&lanes->lock);
    lane->slept = true;
    for (uint32_t i = 0; i < lanes->count && rang; i++)
        if (i != e->lane)
            lane_rouse(&lanes->lanes[i]);
    tb_listening_outdate(&lanes->lanes[0].engine->standby.listening);
}

static bool lane_arm(struct tb_engine *e)
{
    struct tb_lanes *lanes = e->lanes;
    struct tb_lane *lane = &lanes->lanes[e->lane];
    atomic_store(&lane->until, 0);
    atomic_store(&lane->asleep, true);
    pthread_mutex_lock(&lanes->lock);
    bool complete = e->transports.open_count >= atomic_load(&lanes->hub_count); /* it watches all of them */
    bool quiet = complete && !tb_lane_is_filled(lane) &&
                 (lanes->armed && lanes->sleepers > 0 ? hubs_quiet(lanes) : hubs_arm(lanes));
    if (quiet)
        lanes->sleepers++;
    else
        atomic_store(&lane->asleep, false);
    pthread_mutex_unlock(&lanes->lock);
    if (!quiet)
        return false;
    /* What comes in the memory of this host comes without a frame, and rings for whoever sleeps. */
    for (uint32_t i = 0; i < lanes->count && quiet; i++)
        if (i != e->lane && lanes->lanes[i].engine != NULL && !atomic_load(&lanes->lanes[i].polled))
            quiet = !tb_lane_is_filled(&lanes->lanes[i]) && lane_is_idle(lanes->lanes[i].engine);
    if (!quiet)
        lane_disarm(e);
    return quiet;
}

static void lanes_wake(struct tb_lanes *lanes)
{
    for (uint32_t i = 0; i < lanes->count; i++)
        lane_kick(&lanes->lanes[i]);
}

/* Shared memory has no timers. */
static void lanes_timers(struct tb_engine *e)
{
    uint64_t next = TB_NEVER;
    for (uint32_t i = 0; i < e->transports.open_count; i++) {
        struct tb_transport *t = e->transports.open[i].transport;
        uint64_t due = (t->capabilities & TB_CAP_BOARDS) != 0 ? TB_NEVER : t->table->deadline(t);
        next = due < next ? due : next;
    }
    for (uint32_t i = 0; i < e->lanes->count && next != TB_NEVER; i++) {
        const struct tb_lane *lane = &e->lanes->lanes[i];
        if (atomic_load(&lane->asleep) && atomic_load(&lane->until) <= next)
            next = TB_NEVER;
    }
    for (uint32_t i = 0; i < e->lanes->count && next != TB_NEVER; i++)
        if (lane_kick(&e->lanes->lanes[i]))
            next = TB_NEVER;
}

const struct tb_lanes_work tb_lanes_work = {
    .open = lanes_open,
    .configure = lanes_configure,
    .fill = lanes_fill,
    .empty = lanes_empty,
    .close = lanes_close,
    .enter = lane_enter,
    .left = lane_left,
    .help = lanes_help,
    .control = lanes_control,
    .tell = lanes_tell,
    .settle = lanes_settle,
    .stir = lanes_stir,
    .poll_begin = lane_poll_begin,
    .poll_end = lane_poll_end,
    .arm = lane_arm,
    .disarm = lane_disarm,
    .wake = lanes_wake,
    .timers = lanes_timers,
};
