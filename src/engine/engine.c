/* The engine as a whole: opening and closing, the transports below it and what they call up. */
#include "engine/engine_state.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CONNECT_HURRY 4096 /* looks at the control descriptor after a connection was asked for */

/* ---- calls up ---------------------------------------------------------------------------------------------------- */

static inline const struct tb_frame_kind *frame_kind(const struct tb_message *message)
{
    return TB_LIKELY(message->kind < TB_FRAME_KINDS) ? &tb_frame_kinds[message->kind] : NULL;
}

/* Not for frames of our own job. */
static bool is_heard(struct tb_peer *p, const struct tb_message *message)
{
    if (p->error == TB_ERR_PROTOCOL) /* it has sent what nobody may */
        return false;
    if (tb_stranger_may(p, message))
        return true;
    tb_peer_break(p, tb_error(TB_ERR_PROTOCOL,
                              "process %u, of another job, sent something in a communicator that it is not in",
                              p->proc.index));
    return false;
}

static void up_frame(void *context, struct tb_endpoint *from, const struct tb_routing *routing,
                     const struct tb_message *message, const void *payload, size_t length)
{
    struct tb_peer *p = from->user;
    if (TB_UNLIKELY(p == NULL || (p->stranger && !is_heard(p, message))))
        return;
    if (TB_LIKELY(tb_message_is_whole(message, length))) {
        tb_receive_eager(p, message, payload, length); /* as the table says, without looking */
        return;
    }
    int error = tb_message_check(message, length);
    if (error != TB_OK) {
        tb_peer_break(p, error);
        return;
    }
    const struct tb_frame_kind *kind = frame_kind(message);
    if (TB_UNLIKELY(kind == NULL || kind->handle == NULL)) {
        tb_peer_break(
            p, tb_error(TB_ERR_PROTOCOL, "process %u sent a frame of unknown kind %u", p->proc.index, message->kind));
        return;
    }
    kind->handle(p, message, payload, length);
}

static void *up_place(void *context, struct tb_endpoint *from, const struct tb_message *message, size_t length)
{
    struct tb_peer *p = from->user;
    const struct tb_frame_kind *kind = frame_kind(message);
    return p != NULL && kind != NULL && kind->place != NULL ? kind->place(p, message, length) : NULL;
}

static void up_sent(void *context, struct tb_endpoint *to, void *token, int error)
{
    tb_send_left(context, (uint64_t)(uintptr_t)token, error);
}

static void up_writable(void *context, struct tb_endpoint *to)
{
    struct tb_peer *p = to->user;
    if (p != NULL)
        p->held[TB_STREAM_SHORT] = p->held[TB_STREAM_BULK] = false;
}

static void context_screen(struct tb_engine *e, struct tb_context *c)
{
    struct tb_arrival *a;
    tb_strangers_forget(&e->contexts, c);
    TB_LIST_EACH (a, &c->arrivals, struct tb_arrival, in_context) {
        tb_arrival_known(a);
        if (tb_stranger_sent(c, a)) {
            tb_match_take(&e->matcher, a);
            tb_arrival_drop(a);
        }
    }
}

void tb_channel_screen(struct tb_channel *channel)
{
    struct tb_engine *e = channel->engine;
    tb_engine_lock(e);
    if (e->peers.strangers > 0) {
        context_screen(e, channel->point);
        context_screen(e, channel->collective);
        if (channel->control != NULL)
            context_screen(e, channel->control->point);
    }
    tb_engine_unlock(e);
}

static bool engine_knows(const struct tb_engine *e, struct tb_proc proc)
{
    return proc.job == e->config.transport.self.job &&
           (proc.index < e->config.processes ||
            (e->config.knows != NULL && e->config.knows(e->config.context, proc.index)));
}

static void up_opened(void *context, struct tb_endpoint *from)
{
    struct tb_engine *e = context;
    if (!engine_knows(e, from->proc) || tb_peers_grow(&e->peers, from->proc.index) != TB_OK)
        return;
    struct tb_peer *p = tb_peer_of(e, from->proc.index);
    from->user = p;
    if (p == NULL || p->endpoint != NULL)
        return;
    p->endpoint = from;
    tb_peer_settle(p);
}

static void up_broken(void *context, struct tb_endpoint *with, int error)
{
    struct tb_peer *p = with->user;
    if (p == NULL)
        return;
    if (error == TB_ERR_CLOSED)
        tb_error(error, "process %u has left the job in good order", p->proc.index);
    tb_peer_break(p, error);
}

static int down_connect(void *context, struct tb_proc to, enum tb_stream stream)
{
    struct tb_engine *e = context;
    e->connecting = CONNECT_HURRY;
    e->control_countdown = 0;
    tb_engine_stir(e);
    if (e->connect == NULL)
        return tb_error(TB_ERR_PEER, "process %u cannot be reached: this process has no agent to connect it", to.index);
    return e->connect(e->connect_context, to, stream);
}

static void down_arrivals(void *context)
{
    tb_control_poll(context);
}

/* ---- transports -------------------------------------------------------------------------------------------------- */

int tb_engine_load_params(void)
{
    return tb_transports_load_params();
}

int tb_engine_transport(struct tb_engine *e, const struct tb_transport_table *table, struct tb_transport **transport)
{
    *transport = tb_transport_set_find(&e->transports, table);
    if (*transport != NULL)
        return TB_OK;
    int error = e->lanes != NULL ? tb_lane_views.open(e, table, transport)
                                 : tb_link_open(table, &e->config.transport, transport);
    if (error != TB_OK)
        return error;
    tb_transport_set_add(&e->transports, table, *transport);
    tb_engine_stir(e);
    return TB_OK;
}

int tb_control_poll(struct tb_engine *e)
{
    struct pollfd fd = {.fd = e->control, .events = POLLIN};
    if (e->control < 0 || e->config.control_ready == NULL || poll(&fd, 1, 0) <= 0)
        return 0;
    if (e->config.control_ready(e->config.context) < 0)
        __atomic_store_n(&e->control, -1,
                         __ATOMIC_RELAXED); /* the agent is gone, and with it this process; nothing more to hear */
    e->waiting.events++;
    return 1;
}

/* What the agent says changes what there is to poll. */
static void transports_hurry(struct tb_engine *e)
{
    tb_transport_set_skip(&e->transports, UINT32_MAX);
    tb_engine_stir(e);
}

int tb_engine_adopt(struct tb_engine *engine, struct tb_proc proc, enum tb_stream stream, int descriptor)
{
    tb_engine_lock(engine);
    struct tb_transport *t = NULL;
    const struct tb_transport_table *table = tb_transport_set_adopter(&engine->transports, proc, stream);
    int error = table != NULL ? tb_engine_transport(engine, table, &t)
                              : tb_error(TB_ERR_PEER, "no transport takes it: the parameter `transports` leaves that "
                                                      "one out");
    if (error == TB_OK)
        error = t->table->adopt(t, proc, stream, descriptor);
    else
        close(descriptor);
    transports_hurry(engine);
    tb_engine_unlock(engine);
    return error;
}

void tb_engine_refused(struct tb_engine *engine, struct tb_proc proc, enum tb_stream stream, int error)
{
    tb_engine_lock(engine);
    const struct tb_transport_table *table = tb_transport_set_adopter(&engine->transports, proc, stream);
    struct tb_transport *t = table != NULL ? tb_transport_set_find(&engine->transports, table) : NULL;
    if (t != NULL)
        t->table->refused(t, proc, stream, error);
    transports_hurry(engine);
    tb_engine_unlock(engine);
}

void tb_engine_routes(struct tb_engine *engine)
{
    tb_engine_lock(engine);
    for (uint32_t i = 0; i < engine->transports.open_count; i++) {
        const struct tb_open_transport *open = &engine->transports.open[i];
        if (open->table->routes != NULL)
            open->transport->table->routes(open->transport);
    }
    transports_hurry(engine);
    tb_engine_unlock(engine);
}

/* Also of those that are heard of for the first time: they may be in a communicator that is being made. */
void tb_engine_lose(struct tb_engine *e, uint32_t first, uint32_t count, int error)
{
    const uint32_t job = e->config.transport.self.job;
    if (engine_knows(e, (struct tb_proc){job, first}) && engine_knows(e, (struct tb_proc){job, first + count - 1}) &&
        tb_peers_grow(&e->peers, first + count - 1) == TB_OK)
        tb_peers_lose(e, first, count, error);
}

void tb_engine_lost_all(struct tb_engine *engine, struct tb_proc first, uint32_t count, int error)
{
    if (count == 0 || first.job != engine->config.transport.self.job)
        return;
    tb_engine_lock(engine);
    if (engine->lanes != NULL)
        tb_lane_ways.lose(engine, first.index, count, error);
    tb_engine_lose(engine, first.index, count, error);
    tb_engine_unlock(engine);
}

void tb_engine_lost(struct tb_engine *engine, struct tb_proc proc, int error)
{
    tb_engine_lost_all(engine, proc, 1, error);
}

int tb_engine_reach(struct tb_engine *engine, uint32_t processes)
{
    int error = TB_OK;
    for (uint32_t i = 0; i < tb_engine_lanes(engine) && error == TB_OK; i++) {
        struct tb_engine *e = tb_engine_lane(engine, i);
        if (__atomic_load_n(&e->peers.count, __ATOMIC_ACQUIRE) >= processes)
            continue;
        tb_engine_lock(e);
        error = tb_peers_grow(&e->peers, processes - 1);
        tb_engine_unlock(e);
    }
    return error;
}

static int transports_choose(struct tb_engine *e)
{
    struct tb_transport_set *set = &e->transports;
    if (e->config.transports == NULL)
        return tb_transports_choose(tb_transports, tb_param.transports, &e->config.transport, set->tables, &set->count);
    return tb_transports_choose(e->config.transports, TB_PARAM_ALL, &e->config.transport, set->tables, &set->count);
}

uint64_t tb_grant(const struct tb_engine_config *config, bool stranger)
{
    uint64_t share = tb_param.eager_memory / (stranger || config->processes == 0 ? 1 : config->processes);
    uint64_t most = stranger ? TB_GRANT_STRANGER : TB_GRANT_HIGH;
    return share < TB_GRANT_LOW ? TB_GRANT_LOW : share > most ? most : share;
}

/* The transports are given the engine's calls, and keep the configuration. */
static int transports_prepare(struct tb_engine *e)
{
    struct tb_transport_config *t = &e->config.transport;
    int error = transports_choose(e); /* by what the owner has given */
    if (t->clock == NULL)
        t->clock = &tb_clock_real;
    e->connect = t->connect;
    e->connect_context = t->connect_context;
    t->connect = down_connect;
    t->arrivals = down_arrivals;
    t->connect_context = e;
    t->upcalls = (struct tb_upcalls){.context = e,
                                     .frame = up_frame,
                                     .place = up_place,
                                     .sent = up_sent,
                                     .writable = up_writable,
                                     .opened = up_opened,
                                     .broken = up_broken};
    if (e->lanes != NULL && e->lane == 0)
        tb_lanes_work.configure(e->lanes, t);
    return error;
}

static int transports_open_local(struct tb_engine *e)
{
    const struct tb_transport_table *table = tb_transport_set_of_scope(&e->transports, TB_SCOPE_HOST);
    return table != NULL ? tb_engine_transport(e, table, &e->local) : TB_OK;
}

/* ---- opening and closing ----------------------------------------------------------------------------------------- */

static int engine_prepare(struct tb_engine *e)
{
    e->threaded = e->shared = e->config.threaded;
    e->representation = tb_wire_representation();
    e->control = e->config.control;
    tb_list_init(&e->ports.busy);
    tb_list_init(&e->accesses.waiting);
    tb_list_init(&e->deadlock.questions);
    tb_port_open(&e->ports.network);
    tb_list_init(&e->runs.all);
    tb_list_init(&e->runs.working);
    tb_list_init(&e->runs.put_off);
    tb_driving_open(&e->driving, e->config.drivers != NULL ? e->config.drivers : tb_drivers);
    tb_pool_open(&e->arrivals.pool, sizeof(struct tb_arrival), 64, TB_ARRIVALS_LIMIT);
    int error = tb_waiting_open(&e->waiting, e->threaded);
    if (error == TB_OK)
        error = transports_prepare(e);
    if (error == TB_OK)
        error = tb_peers_open(&e->peers, e->config.processes, tb_grant(&e->config, false));
    for (uint32_t lanes = tb_engine_lanes(e); lanes > 1; lanes = (lanes + 1) / 2)
        e->peers.owing++; /* all of them together keep less than half of it */
    if (error == TB_OK)
        error = tb_peers_grow(&e->peers, e->config.transport.self.index);
    if (error == TB_OK)
        error = tb_match_open(&e->matcher);
    return error;
}

/* What comes from others should not find this process without memory for it. */
static bool engine_reserve(struct tb_engine *e)
{
    return tb_contexts_reserve(&e->contexts, TB_CONTEXTS_RESERVE) && tb_pool_reserve(&e->arrivals.pool) &&
           tb_spare_open(&e->arrivals.spare) && tb_pool_reserve(&e->peers.notes);
}

/* NULL: it has no lanes, or is to be the first of them. */
static int engine_make(const struct tb_engine_config *config, struct tb_lanes *lanes, uint32_t lane,
                       struct tb_engine **engine)
{
    int error = TB_OK;
    struct tb_engine *e = calloc(1, sizeof *e);
    if (e == NULL)
        return tb_error(TB_ERR_MEMORY, "no memory for the engine");
    e->config = *config;
    e->lanes = lanes;
    e->lane = lane;
    if (lanes != NULL)
        tb_slots_share(&e->slots, lane);
    else if (config->threaded && config->lanes > 1)
        error = tb_lanes_work.open(e, config->lanes);
    if (error != TB_OK) {
        free(e);
        return error;
    }
    error = engine_prepare(e);
    if (error == TB_OK)
        error = transports_open_local(e);
    if (error == TB_OK && (tb_peer_of(e, config->transport.self.index) == NULL || !engine_reserve(e)))
        error = TB_ERR_MEMORY;
    if (error == TB_OK && lanes == NULL && e->lanes != NULL)
        error = tb_lanes_work.fill(e->lanes);
    if (error != TB_OK) {
        tb_engine_close(e);
        return error;
    }
    *engine = e;
    return TB_OK;
}

int tb_engine_open(const struct tb_engine_config *config, struct tb_engine **engine)
{
    return engine_make(config, NULL, 0, engine);
}

int tb_engine_open_lane(const struct tb_engine_config *config, struct tb_lanes *lanes, uint32_t lane,
                        struct tb_engine **engine)
{
    return engine_make(config, lanes, lane, engine);
}

/* Whether everything that was sent has left. */
static bool engine_flushed(void *context)
{
    struct tb_engine *e = context;
    e->waiting.events++; /* transports become idle without telling: look again each time something waits */
    return e->sends == 0 && tb_list_empty(&e->peers.waiting) && tb_list_empty(&e->ports.busy) &&
           tb_list_empty(&e->accesses.waiting) && tb_list_empty(&e->peers.dying) && tb_driving_flushed(&e->driving) &&
           tb_transport_set_idle(&e->transports);
}

/* Whether everybody has answered, but for those that are gone, or that no channel has. */
static bool engine_answered(void *context)
{
    const struct tb_peers *peers = &((struct tb_engine *)context)->peers;
    for (uint32_t i = 0; i < peers->count; i++) {
        const struct tb_peer *p = peers->by_index[i];
        bool used = i < peers->begun || peers->uses[i - peers->begun] > 0;
        if (p != NULL && p->unanswered > 0 && p->error == TB_OK && used)
            return false;
    }
    return true;
}

int tb_engine_flush_told(struct tb_engine *engine)
{
    for (uint32_t i = 0; i < tb_engine_lanes(engine); i++)
        tb_engine_wait_in(tb_engine_lane(engine, i), engine_answered, tb_engine_lane(engine, i), "MPI_Finalize");
    return TB_OK;
}

int tb_engine_flush(struct tb_engine *engine)
{
    for (uint32_t i = 0; i < tb_engine_lanes(engine); i++)
        tb_engine_wait_in(tb_engine_lane(engine, i), engine_flushed, tb_engine_lane(engine, i), "MPI_Finalize");
    return TB_OK;
}

void tb_engine_close(struct tb_engine *engine)
{
    struct tb_engine *e = engine;
    bool first = e->lanes != NULL && e->lane == 0;
    TB_ASSERT(!e->standby.open);
    if (first)
        tb_lanes_work.empty(e->lanes);
    tb_driving_end(&e->driving);
    tb_channels_leave(e);
    tb_transport_set_close(&e->transports);
    tb_channels_close(e);
    tb_deadlock_work.close(&e->deadlock);
    tb_accesses_work.close(&e->accesses);
    tb_peers_close(&e->peers);
    tb_match_close(&e->matcher);
    tb_pool_close(&e->arrivals.pool);
    tb_spare_close(&e->arrivals.spare);
    tb_slots_close(&e->slots);
    tb_stories_close(&e->stories);
    free(e->runs.cache.memory);
    tb_waiting_close(&e->waiting);
    if (first)
        tb_lanes_work.close(e->lanes);
    free(e);
}

static uint64_t frames_sent(const struct tb_transport *t)
{
    while (t->inner != NULL) /* those that leave, not those that are given to a decorator */
        t = t->inner;
    return t->sent;
}

static void counters_read(struct tb_engine *e, struct tb_counters *counters)
{
    *counters = e->counters;
    tb_lane_ways.lock(e);
    for (uint32_t i = 0; i < e->transports.open_count && e->lane == 0; i++) {
        struct tb_transport *t = e->transports.open[i].transport;
        struct tb_link_counters link;
        tb_link_count(e->lanes != NULL ? tb_lane_views.real(t) : t, &link);
        if (e->transports.open[i].table->scope == TB_SCOPE_RELAYED)
            counters->relayed += link.sent;
        if (e->transports.open[i].table->scope == TB_SCOPE_NEAR)
            counters->paired += frames_sent(e->lanes != NULL ? tb_lane_views.real(t) : t);
        if (e->transports.open[i].table->scope == TB_SCOPE_DIRECT)
            counters->direct += frames_sent(e->lanes != NULL ? tb_lane_views.real(t) : t);
        counters->repeated += link.repeated;
        counters->reordered += link.reordered;
    }
    tb_lane_ways.unlock(e);
    tb_driving_count(&e->driving, counters);
}

static void counters_add(struct tb_engine *e, struct tb_counters *counters)
{
    union {
        struct tb_counters all;
        uint64_t each[sizeof(struct tb_counters) / sizeof(uint64_t)];
    } sum = {.all = *counters}, more;
    tb_engine_lock(e);
    counters_read(e, &more.all);
    tb_engine_unlock(e);
    for (size_t i = 0; i < sizeof sum.each / sizeof sum.each[0]; i++)
        sum.each[i] += more.each[i];
    *counters = sum.all;
}

/* Threads of tools come here at any level of threads, whoever else is in the engine: they must not pass for the one
 * that may be. */
void tb_engine_count(struct tb_engine *engine, struct tb_counters *counters)
{
    if (engine->threaded) {
        *counters = (struct tb_counters){0};
        for (uint32_t i = 0; i < tb_engine_lanes(engine); i++)
            counters_add(tb_engine_lane(engine, i), counters);
    } else if (engine->shared) {
        tb_biased_lock_keep_out(&engine->standby.lock);
        counters_read(engine, counters);
        tb_biased_lock_let_in(&engine->standby.lock);
    } else {
        counters_read(engine, counters);
    }
}
