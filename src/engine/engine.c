/* The engine as a whole: opening and closing, the transports below it and what they call up. */
#include "engine/engine_state.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define REMOTE_INTERVAL 32   /* polls of shared memory for one of the sockets, which cost a system call */
#define CONNECT_HURRY   4096 /* looks at the control descriptor after a connection was asked for */

/* ---- calls up ---------------------------------------------------------------------------------------------------- */

static void failure_heard(struct tb_peer *p, const struct tb_message *message)
{
    struct tb_failure f;
    struct tb_channel *channel = tb_channel_hear(p, message, &f);
    if (channel == NULL)
        return;
    tb_driven_give_up(channel->drivers, &f);
    tb_runs_give_up(&p->engine->runs, channel->collective, &f);
}

static void up_frame(void *context, struct tb_endpoint *from, const struct tb_routing *routing,
                     const struct tb_message *message, const void *payload, size_t length)
{
    struct tb_peer *p = from->user;
    if (TB_UNLIKELY(p == NULL))
        return;
    int error = tb_message_check(message, length);
    if (TB_UNLIKELY(error != TB_OK)) {
        tb_peer_break(p, error);
        return;
    }
    switch (message->kind) {
    case TB_KIND_EAGER:
        tb_receive_eager(p, message, payload, length);
        break;
    case TB_KIND_REQUEST:
        tb_receive_asked(p, message, payload);
        break;
    case TB_KIND_CLEAR:
        tb_send_cleared(p, message);
        break;
    case TB_KIND_DATA:
        tb_receive_data(p, message, payload, length);
        break;
    case TB_KIND_DONE:
        tb_send_matched(p, message);
        break;
    case TB_KIND_CANCEL:
        tb_receive_forget(p, message);
        break;
    case TB_KIND_CANCELLED:
        tb_send_cancelled(p, message);
        break;
    case TB_KIND_FAILED:
        failure_heard(p, message);
        break;
    case TB_KIND_CREDIT:
        tb_peer_credit(p, message->length);
        break;
    default:
        tb_peer_break(
            p, tb_error(TB_ERR_PROTOCOL, "process %u sent a frame of unknown kind %u", p->proc.index, message->kind));
    }
}

static void *up_place(void *context, struct tb_endpoint *from, const struct tb_message *message, size_t length)
{
    struct tb_peer *p = from->user;
    return p != NULL && message->kind == TB_KIND_DATA ? tb_receive_place(p, message, length) : NULL;
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

static void up_opened(void *context, struct tb_endpoint *from)
{
    struct tb_engine *e = context;
    if (from->proc.job != e->config.transport.self.job || from->proc.index >= e->config.processes)
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
    e->waiting.stirred = true;
    if (e->connect == NULL)
        return tb_error(TB_ERR_PEER, "process %u cannot be reached: this process has no agent to connect it", to.index);
    return e->connect(e->connect_context, to, stream);
}

static void down_arrivals(void *context)
{
    tb_control_poll(context);
}

/* ---- transports -------------------------------------------------------------------------------------------------- */

static int network_open(struct tb_engine *e, const struct tb_transport_table *table, struct tb_transport **transport)
{
    int error = tb_link_open(table, &e->config.transport, transport);
    if (error != TB_OK)
        return error;
    e->remote_interval = e->local != NULL ? REMOTE_INTERVAL : 1;
    e->networked = true;
    e->waiting.stirred = true;
    return TB_OK;
}

int tb_engine_open_remote(struct tb_engine *e)
{
    if (e->remote != NULL)
        return TB_OK;
    if (!e->config.use_tcp)
        return tb_error(TB_ERR_PEER, "no transport leads there: the parameter `transports` leaves tcp out");
    return network_open(e, e->config.remote_table != NULL ? e->config.remote_table : &tb_transport_tcp, &e->remote);
}

int tb_engine_open_relay(struct tb_engine *e)
{
    if (e->relay != NULL)
        return TB_OK;
    if (!e->config.use_relay)
        return tb_error(TB_ERR_PEER,
                        "only gateways lead there, and the parameter `transports` leaves relay, which uses them, out");
    return network_open(e, &tb_transport_relay, &e->relay);
}

int tb_control_poll(struct tb_engine *e)
{
    struct pollfd fd = {.fd = e->control, .events = POLLIN};
    if (e->control < 0 || e->config.control_ready == NULL || poll(&fd, 1, 0) <= 0)
        return 0;
    if (e->config.control_ready(e->config.context) < 0)
        e->control = -1; /* the agent is gone, and with it this process; nothing more to hear */
    e->waiting.events++;
    return 1;
}

int tb_engine_adopt(struct tb_engine *engine, struct tb_proc proc, enum tb_stream stream, int descriptor)
{
    tb_engine_lock(engine);
    bool relay = (proc.index & TB_PROC_AGENT) != 0;
    int error = relay ? tb_engine_open_relay(engine) : tb_engine_open_remote(engine);
    if (error != TB_OK)
        close(descriptor);
    else if (relay)
        error = tb_relay_adopt(tb_link_innermost(engine->relay), proc, stream, descriptor);
    else
        error = tb_tcp_adopt(tb_link_innermost(engine->remote), proc, stream, descriptor);
    engine->remote_countdown = 0;
    engine->waiting.stirred = true;
    tb_engine_unlock(engine);
    return error;
}

void tb_engine_refused(struct tb_engine *engine, struct tb_proc proc, enum tb_stream stream, int error)
{
    tb_engine_lock(engine);
    bool relay = (proc.index & TB_PROC_AGENT) != 0;
    if (relay && engine->relay != NULL)
        tb_relay_refused(tb_link_innermost(engine->relay), proc, stream, error);
    if (!relay && engine->remote != NULL)
        tb_tcp_refused(tb_link_innermost(engine->remote), proc, stream, error);
    engine->remote_countdown = 0;
    engine->waiting.stirred = true;
    tb_engine_unlock(engine);
}

void tb_engine_routes(struct tb_engine *engine)
{
    tb_engine_lock(engine);
    if (engine->relay != NULL)
        tb_relay_changed(tb_link_innermost(engine->relay));
    engine->remote_countdown = 0;
    engine->waiting.stirred = true;
    tb_engine_unlock(engine);
}

void tb_engine_lost(struct tb_engine *engine, struct tb_proc proc, int error)
{
    tb_engine_lock(engine);
    bool known = proc.job == engine->config.transport.self.job && proc.index < engine->config.processes &&
                 proc.index != engine->config.transport.self.index;
    struct tb_peer *p = known ? tb_peer_of(engine, proc.index) : NULL;
    if (p != NULL)
        tb_peer_break(p, error);
    tb_engine_unlock(engine);
}

/* The transports are given the engine's calls, and keep the configuration. */
static void transports_prepare(struct tb_engine *e)
{
    struct tb_transport_config *t = &e->config.transport;
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
}

/* ---- opening and closing ----------------------------------------------------------------------------------------- */

static uint64_t grant_of(const struct tb_engine_config *config)
{
    uint64_t share = tb_param.eager_memory / (config->processes > 0 ? config->processes : 1);
    return share < TB_GRANT_LOW ? TB_GRANT_LOW : share > TB_GRANT_HIGH ? TB_GRANT_HIGH : share;
}

static int engine_prepare(struct tb_engine *e)
{
    e->threaded = e->config.threaded;
    e->representation = tb_wire_representation();
    e->control = e->config.control;
    transports_prepare(e);
    tb_list_init(&e->ports.busy);
    tb_port_open(&e->ports.network);
    tb_list_init(&e->runs.all);
    tb_list_init(&e->runs.working);
    tb_driving_open(&e->driving, e->config.drivers != NULL ? e->config.drivers : tb_drivers);
    tb_pool_open(&e->arrivals.pool, sizeof(struct tb_arrival), 64, TB_ARRIVALS_LIMIT);
    int error = tb_waiting_open(&e->waiting, e->threaded);
    if (error == TB_OK)
        error = tb_peers_open(&e->peers, e->config.processes, grant_of(&e->config));
    if (error == TB_OK)
        error = tb_match_open(&e->matcher);
    return error;
}

int tb_engine_open(const struct tb_engine_config *config, struct tb_engine **engine)
{
    TB_ASSERT(config->transport.self.index < config->processes);
    struct tb_engine *e = calloc(1, sizeof *e);
    if (e == NULL)
        return tb_error(TB_ERR_MEMORY, "no memory for the engine");
    e->config = *config;
    int error = engine_prepare(e);
    bool neighbours = config->transport.segment != NULL || config->local_table != NULL;
    if (error == TB_OK && config->use_shm && neighbours && config->transport.local_count > 1)
        error = tb_link_open(config->local_table != NULL ? config->local_table : &tb_transport_shm,
                             &e->config.transport, &e->local);
    if (error == TB_OK && tb_peer_of(e, config->transport.self.index) == NULL)
        error = TB_ERR_MEMORY;
    if (error != TB_OK) {
        tb_engine_close(e);
        return error;
    }
    *engine = e;
    return TB_OK;
}

/* Whether everything that was sent has left. */
static bool engine_flushed(void *context)
{
    struct tb_engine *e = context;
    e->waiting.events++; /* transports become idle without telling: look again each time something waits */
    return e->sends == 0 && tb_list_empty(&e->peers.waiting) && tb_list_empty(&e->ports.busy) &&
           tb_list_empty(&e->peers.dying) && (e->local == NULL || e->local->table->idle(e->local)) &&
           (e->remote == NULL || e->remote->table->idle(e->remote)) &&
           (e->relay == NULL || e->relay->table->idle(e->relay));
}

int tb_engine_flush(struct tb_engine *engine)
{
    tb_engine_wait_in(engine, engine_flushed, engine, "MPI_Finalize");
    return TB_OK;
}

void tb_engine_close(struct tb_engine *engine)
{
    struct tb_engine *e = engine;
    if (e->relay != NULL) /* first: it takes round trips, in which the others may still be called by the agent */
        e->relay->table->close(e->relay);
    if (e->remote != NULL)
        e->remote->table->close(e->remote);
    if (e->local != NULL)
        e->local->table->close(e->local);
    tb_channels_close(e);
    tb_peers_close(&e->peers);
    tb_match_close(&e->matcher);
    tb_pool_close(&e->arrivals.pool);
    tb_slots_close(&e->slots);
    tb_stories_close(&e->stories);
    free(e->runs.cache.memory);
    tb_waiting_close(&e->waiting);
    free(e);
}

void tb_engine_count(struct tb_engine *engine, struct tb_counters *counters)
{
    tb_engine_lock(engine);
    *counters = engine->counters;
    if (engine->relay != NULL) {
        struct tb_link_counters link;
        tb_link_count(engine->relay, &link);
        counters->relayed = link.sent;
        counters->repeated = link.repeated;
        counters->reordered = link.reordered;
    }
    tb_engine_unlock(engine);
}
