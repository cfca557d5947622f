/* Passing frames on. A frame names its source and its destination process; where it goes next follows from the address
 * book and the routes of this host: a rank of this host, a rank that we can connect to, or the agent of the next
 * gateway. Nothing is remembered of a frame that has left, since its source repeats what does not arrive. So whatever
 * cannot be kept may be dropped, and is counted.
 *
 * A neighbour is a process that frames are passed on to. Its connections are opened when there is something to send, by
 * whoever needs them first; that side opens them again when they break. */
#include "agent/state.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define TICK_NS          50000000u
#define PAUSE_NS         200000000u  /* before a lost connection is made again; doubled each time, */
#define PAUSE_MOST_NS    2000000000u /* up to this */
#define OTHERS_NS        1000000000u /* then frames for a hop that is down take another one, */
#define LOST_NS          5000000000u /* so long they take another one when a connection has been lost */
#define LOOK_NS          100000000u  /* how often it is looked whether what was sent arrives, where there are others */
#define NOTE_NS          5000000000u /* then the user is told */
#define TURN_NS          1000000000u /* how long the other side may take to make its connections again */
#define GATHER_BYTES     2048u       /* frames up to this size leave together if they have come together */
#define NEIGHBOURS_FIRST 16u
#define STORY_BYTES      320
#define WIDE_NS          1000000u /* a way of this latency deserves two streams, open in advance */
#define SEGMENT_BITS     (1448 * 8)
#define WINDOW_BITS      (2e6 * 8) /* what one stream surely has in flight, if it needs to */
#define BANDWIDTH_USUAL  100e6

/* A connection that we open. */
struct stripe {
    bool asked;
    bool called; /* asked by calling */
    uint64_t pause, not_before;
};

struct neighbour {
    struct tb_hop_peer peer;
    struct tb_list flush;         /* in the forwarder's list: something was queued */
    struct tb_list care;          /* in the forwarder's list: something is to be opened or to be waited for */
    bool opener[TB_STREAM_COUNT]; /* it is us who open */
    struct stripe stripes[TB_STREAM_COUNT][TB_HOP_PEER_STRIPES];
    uint64_t down_since[TB_STREAM_COUNT]; /* frames wait and there is no connection; 0: not so */
    uint64_t lost_at[TB_STREAM_COUNT];    /* the last connection broke, or none could be opened; 0: not so */
    uint64_t looked_at;                   /* when `stalled` was found out */
    bool stalled;                         /* nothing that was sent to it arrives, though its connections are open */
    bool left;                            /* it has said goodbye, or has ended */
    bool moved, noted;                    /* what was done about its being down */
    char why[STORY_BYTES];                /* the last error of a connection */
};

struct tb_forward {
    struct tb_agent *agent;
    struct tb_frame_pool pool;
    struct tb_hop_set hop_set;
    struct neighbour **table; /* open addressing by process */
    uint32_t count, room;
    struct tb_list flush, care;
    struct tb_timer tick;
    bool stray_logged;
    uint64_t frames, bytes, astray, late, reconnects;
};

static void tick(struct tb_timer *timer);

/* ---- neighbours ------------------------------------------------------------------------------------------------- */

static struct neighbour **slot_of(struct tb_forward *f, uint32_t index)
{
    uint32_t mask = f->room - 1, at = (index * 0x9e3779b1u >> 7) & mask;
    while (f->table[at] != NULL && f->table[at]->peer.proc.index != index)
        at = (at + 1) & mask;
    return &f->table[at];
}

static bool table_grow(struct tb_forward *f)
{
    struct neighbour **old = f->table;
    uint32_t old_room = f->room, room = old_room == 0 ? NEIGHBOURS_FIRST : 2 * old_room;
    struct neighbour **table = calloc(room, sizeof(struct neighbour *));
    if (table == NULL)
        return false;
    f->table = table;
    f->room = room;
    for (uint32_t i = 0; i < old_room; i++)
        if (old[i] != NULL)
            *slot_of(f, old[i]->peer.proc.index) = old[i];
    free(old);
    return true;
}

/* `index` is of this job and exists, so that there is a bound for all of them. NULL: no memory. */
static struct neighbour *neighbour_find(struct tb_forward *f, uint32_t index)
{
    struct neighbour **slot = slot_of(f, index);
    if (*slot != NULL)
        return *slot;
    if (2 * (f->count + 1) > f->room) {
        if (!table_grow(f))
            return NULL;
        slot = slot_of(f, index);
    }
    struct neighbour *n = calloc(1, sizeof *n);
    if (n == NULL)
        return NULL;
    tb_hop_peer_open(&n->peer, &f->hop_set, (struct tb_proc){f->agent->setup.job, index});
    tb_list_init(&n->flush);
    tb_list_init(&n->care);
    *slot = n;
    f->count++;
    return n;
}

static struct neighbour *neighbour_of(struct tb_hop_peer *peer)
{
    return TB_CONTAINER(peer, struct neighbour, peer);
}

static uint32_t host_of(const struct tb_forward *f, const struct neighbour *n)
{
    uint32_t index = n->peer.proc.index;
    return tb_hop_peer_is_agent(&n->peer) ? index & ~TB_PROC_AGENT : tb_address_book_host_of(&f->agent->book, index);
}

static bool is_queued(const struct neighbour *n)
{
    return !tb_queue_empty(&n->peer.queue, TB_STREAM_SHORT) || !tb_queue_empty(&n->peer.queue, TB_STREAM_BULK);
}

static void care_for(struct tb_forward *f, struct neighbour *n)
{
    if (tb_list_empty(&n->care))
        tb_list_append(&f->care, &n->care);
    if (!tb_timer_is_set(&f->tick))
        tb_timer_set(&f->agent->loop, &f->tick, TICK_NS);
}

/* ---- where to --------------------------------------------------------------------------------------------------- */

/* Worth giving something to, as far as we know. A connection that is gone is believed in again after a while, as the
 * other side may not make it again by itself. */
static bool is_usable(struct neighbour *n, uint64_t now)
{
    for (int i = 0; i < TB_STREAM_COUNT; i++) {
        if (n->down_since[i] != 0 && now - n->down_since[i] > OTHERS_NS)
            return false;
        if (n->lost_at[i] != 0 && now - n->lost_at[i] < LOST_NS)
            return false;
    }
    if (now - n->looked_at > LOOK_NS) {
        n->looked_at = now;
        n->stalled = tb_hop_peer_stalled(&n->peer);
    }
    return !n->left && !n->stalled;
}

static uint32_t pair_hash(struct tb_proc source, struct tb_proc destination)
{
    uint32_t h = source.index * 0x9e3779b1u + destination.index;
    h ^= h >> 16;
    h *= 0x85ebca6bu;
    return h ^ h >> 13;
}

/* Seconds until a bulk frame that joins the queue now has left, as far as the wire is known. */
static double time_to_leave(const struct tb_forward *f, const struct neighbour *n, uint32_t host)
{
    const struct tb_host_route *route = tb_host_routes_to(&f->agent->routes, &f->agent->book, host);
    double wire = route->bandwidth > 0 ? (double)route->bandwidth : BANDWIDTH_USUAL;
    return 8 * (double)(n->peer.queue.bytes[TB_STREAM_BULK] + TB_FRAME_BUFFER_LIMIT) / wire;
}

/* Of several gateways: a pair's short frames take always the same one, bulk frames the one that they leave first; those
 * that are down only if there is no other. */
static struct neighbour *hop_choose(struct tb_forward *f, const struct tb_host_route *route, struct tb_proc source,
                                    struct tb_proc destination, enum tb_stream stream, uint32_t from)
{
    struct neighbour *best = NULL;
    double best_time = 0;
    bool best_usable = false;
    uint32_t first = pair_hash(source, destination);
    uint64_t now = route->hop_count > 1 ? tb_clock_now_real() : 0;
    for (uint32_t k = 0; k < route->hop_count; k++) {
        uint32_t host = route->hops[(first + k) % route->hop_count];
        if ((TB_PROC_AGENT | host) == from || host == f->agent->setup.host)
            continue; /* the routes of two hosts do not agree yet */
        struct neighbour *n = neighbour_find(f, TB_PROC_AGENT | host);
        if (n == NULL)
            continue;
        bool usable = route->hop_count == 1 || is_usable(n, now);
        double time = stream == TB_STREAM_BULK && route->hop_count > 1 ? time_to_leave(f, n, host) : 0;
        if (best == NULL || (usable && !best_usable) || (usable == best_usable && time < best_time)) {
            best = n;
            best_time = time;
            best_usable = usable;
        }
    }
    return best;
}

/* NULL: nowhere. */
static struct neighbour *route(struct tb_forward *f, struct tb_proc source, struct tb_proc destination,
                               enum tb_stream stream, uint32_t from)
{
    struct tb_agent *agent = f->agent;
    if (destination.job != agent->setup.job || destination.index >= agent->book.ranks)
        return NULL;
    uint32_t host = tb_address_book_host_of(&agent->book, destination.index);
    if (host == agent->setup.host)
        return destination.index != from ? neighbour_find(f, destination.index) : NULL;
    const struct tb_host_route *route = tb_host_routes_to(&agent->routes, &agent->book, host);
    uint32_t next = tb_param.forbid_direct ? TB_PROC_AGENT | host : destination.index;
    switch (route->means) {
    case TB_HOST_ROUTE_DIRECT:
    case TB_HOST_ROUTE_CALLED:
        return next != from ? neighbour_find(f, next) : NULL;
    case TB_HOST_ROUTE_RELAYED:
        return hop_choose(f, route, source, destination, stream, from);
    default:
        return NULL;
    }
}

static void lead_astray(struct tb_forward *f, struct tb_proc source, struct tb_proc destination)
{
    f->astray++;
    if (f->stray_logged)
        return;
    f->stray_logged = true;
    tb_log(TB_LOG_WARN, "agent", "a message from process %u to process %u cannot be passed on: there is no way",
           source.index, destination.index);
}

/* ---- frames ----------------------------------------------------------------------------------------------------- */

/* Takes the frame buffer. */
static void enqueue(struct tb_forward *f, struct neighbour *n, struct tb_frame_buffer *buffer)
{
    if (buffer->since == 0 && tb_list_empty(&n->peer.connections[buffer->stream]))
        buffer->since = tb_clock_now_real();
    tb_queue_add(&n->peer.queue, buffer);
    if (tb_list_empty(&n->flush))
        tb_list_append(&f->flush, &n->flush);
}

/* A rank that sends long messages where much waits already is not read for a while. Not so its short ones, with which
 * it answers others, and not so agents: two that wait for each other would do so for ever. */
static void hold_back(struct tb_forward *f, struct tb_hop_connection *connection, struct neighbour *n,
                      struct tb_proc destination)
{
    if (connection->stream != TB_STREAM_BULK || tb_hop_peer_is_agent(connection->peer) ||
        !tb_list_empty(&connection->held))
        return;
    if (!tb_queue_hold(&n->peer.queue, destination, &connection->held))
        return;
    tb_hop_connection_watch(connection);
    if (!tb_timer_is_set(&f->tick))
        tb_timer_set(&f->agent->loop, &f->tick, TICK_NS);
}

static void take_frame(void *context, struct tb_hop_connection *connection, struct tb_cargo *cargo)
{
    struct tb_forward *f = context;
    enum tb_stream stream = (enum tb_stream)connection->stream;
    uint32_t from = connection->peer->proc.index;
    f->frames++;
    f->bytes += cargo->length;
    struct neighbour *n = route(f, cargo->source, cargo->destination, stream, from);
    if (n == NULL) {
        lead_astray(f, cargo->source, cargo->destination);
        return;
    }
    if (n->left) {
        f->late++;
        return;
    }
    bool gather = cargo->more && cargo->length <= GATHER_BYTES;
    if (!gather && tb_queue_empty(&n->peer.queue, stream) && tb_hop_peer_send(&n->peer, stream, cargo) == TB_OK)
        return;
    struct tb_frame_buffer *buffer = cargo->buffer;
    cargo->buffer = NULL;
    if (buffer == NULL) {
        buffer = tb_frame_buffer_make(&f->pool, cargo->length);
        if (buffer == NULL) {
            f->pool.dropped++;
            return;
        }
        memcpy(buffer->bytes, cargo->bytes, cargo->length);
    }
    buffer->source = cargo->source;
    buffer->destination = cargo->destination;
    buffer->stream = (uint8_t)stream;
    buffer->from = from;
    enqueue(f, n, buffer);
    hold_back(f, connection, n, cargo->destination);
}

static void settle(void *context)
{
    struct tb_forward *f = context;
    while (!tb_list_empty(&f->flush)) {
        struct neighbour *n = TB_CONTAINER(f->flush.next, struct neighbour, flush);
        tb_list_remove(&n->flush);
        for (int i = 0; i < TB_STREAM_COUNT; i++) {
            tb_hop_peer_flush(&n->peer, (enum tb_stream)i);
            if (!tb_queue_empty(&n->peer.queue, (enum tb_stream)i) && tb_list_empty(&n->peer.connections[i]) &&
                tb_list_empty(&n->care)) {
                care_for(f, n);
                tb_timer_set(&f->agent->loop, &f->tick, 0); /* opened when nobody is inside of a call */
            }
        }
    }
    while (!tb_list_empty(&f->pool.released)) {
        struct tb_hop_connection *connection = TB_CONTAINER(f->pool.released.next, struct tb_hop_connection, held);
        tb_list_remove(&connection->held);
        tb_hop_connection_watch(connection);
    }
}

/* Gives a new way to everything that waits for this neighbour. */
static void reroute(struct tb_forward *f, struct neighbour *n)
{
    struct tb_list all;
    struct tb_frame_buffer *buffer;
    tb_list_init(&all);
    for (int i = 0; i < TB_STREAM_COUNT; i++)
        while ((buffer = tb_queue_pull(&n->peer.queue, (enum tb_stream)i)) != NULL)
            tb_list_append(&all, &buffer->node);
    TB_LIST_EACH (buffer, &all, struct tb_frame_buffer, node) {
        tb_list_remove(&buffer->node);
        struct neighbour *to =
            route(f, buffer->source, buffer->destination, (enum tb_stream)buffer->stream, buffer->from);
        if (to != NULL && !to->left) {
            enqueue(f, to, buffer);
            continue;
        }
        if (to == NULL)
            lead_astray(f, buffer->source, buffer->destination);
        else
            f->late++;
        tb_frame_buffer_free(&f->pool, buffer);
    }
}

/* ---- connections ------------------------------------------------------------------------------------------------ */

/* How many bulk streams to another agent: a stream alone carries about a segment each round trip, divided by the root
 * of the loss, and no more than its window. */
static uint32_t stripes_wanted(const struct tb_forward *f, const struct neighbour *n, enum tb_stream stream)
{
    if (!tb_hop_peer_is_agent(&n->peer) || stream == TB_STREAM_SHORT)
        return 1;
    if (tb_param.gateway_streams > 0)
        return (uint32_t)tb_param.gateway_streams;
    const struct tb_host_route *route = tb_host_routes_to(&f->agent->routes, &f->agent->book, host_of(f, n));
    double round_trip = 2e-9 * (double)route->latency;
    double wire = route->bandwidth > 0 ? (double)route->bandwidth : BANDWIDTH_USUAL;
    double streams = route->latency > WIDE_NS ? 2 : 1;
    if (round_trip > 0 && route->loss > 0)
        streams = fmax(streams, ceil(wire * round_trip * sqrt(route->loss * 1e-6) / (1.22 * SEGMENT_BITS)));
    streams = fmax(streams, ceil(wire * round_trip / WINDOW_BITS));
    return (uint32_t)fmin(streams, TB_HOP_PEER_STRIPES);
}

/* Does anything go through this agent as things are now? */
static bool is_hop(const struct tb_forward *f, const struct neighbour *n)
{
    const struct tb_host_routes *routes = &f->agent->routes;
    uint32_t host = host_of(f, n);
    for (uint32_t i = 0; i < routes->kind_count; i++)
        for (uint32_t k = 0; k < routes->routes[i].hop_count; k++)
            if (routes->routes[i].hops[k] == host)
                return true;
    return false;
}

static struct tb_hop_connection *connection_find(struct neighbour *n, enum tb_stream stream, uint32_t stripe)
{
    struct tb_hop_connection *connection;
    TB_LIST_EACH (connection, &n->peer.connections[stream], struct tb_hop_connection, node)
        if (connection->ours && connection->stripe == stripe)
            return connection;
    return NULL;
}

static void postpone(struct stripe *stripe, uint64_t now)
{
    stripe->asked = stripe->called = false;
    stripe->pause = stripe->pause == 0 ? PAUSE_NS : stripe->pause * 2;
    if (stripe->pause > PAUSE_MOST_NS)
        stripe->pause = PAUSE_MOST_NS;
    stripe->not_before = now + stripe->pause;
}

/* The process has ended or left: what waits for it waits in vain. */
static void forget(struct tb_forward *f, struct neighbour *n)
{
    n->left = true;
    struct tb_frame_buffer *buffer;
    if (tb_hop_peer_is_agent(&n->peer)) {
        reroute(f, n);
        return;
    }
    for (int i = 0; i < TB_STREAM_COUNT; i++)
        while ((buffer = tb_queue_pull(&n->peer.queue, (enum tb_stream)i)) != NULL) {
            f->late++;
            tb_frame_buffer_free(&f->pool, buffer);
        }
}

static void stripe_open(struct tb_forward *f, struct neighbour *n, enum tb_stream stream, uint32_t number, uint64_t now)
{
    struct stripe *stripe = &n->stripes[stream][number];
    const struct tb_host_route *route = tb_host_routes_to(&f->agent->routes, &f->agent->book, host_of(f, n));
    stripe->asked = true;
    stripe->called = route->means == TB_HOST_ROUTE_CALLED;
    int rc = tb_connect_open(f->agent, NULL, n->peer.proc, stream, number);
    if (rc == TB_OK)
        return;
    postpone(stripe, now);
    snprintf(n->why, sizeof n->why, "%s", tb_error_story());
    if (rc == TB_ERR_CLOSED)
        forget(f, n);
}

/* Is it worth having, used or not? Where a way is long, the first host of the address book opens the other streams as
 * soon as there is a short one, whoever made it: the first large message would wait some round trips for them. */
static bool is_kept(const struct tb_forward *f, const struct neighbour *n, enum tb_stream stream)
{
    if (!tb_hop_peer_is_agent(&n->peer) || !is_hop(f, n))
        return false;
    bool in_advance = tb_agent_proc(f->agent).index < n->peer.proc.index &&
                      !tb_list_empty(&n->peer.connections[TB_STREAM_SHORT]) &&
                      tb_host_routes_to(&f->agent->routes, &f->agent->book, host_of(f, n))->latency > WIDE_NS;
    return n->opener[stream] || in_advance;
}

/* Opens what is missing of a stream, if it is our turn. True: something is still missing. */
static bool stream_open(struct tb_forward *f, struct neighbour *n, enum tb_stream stream, uint64_t now)
{
    if (n->left || (tb_queue_empty(&n->peer.queue, stream) && !is_kept(f, n, stream)))
        return false;
    if (!n->opener[stream]) {
        if (!tb_list_empty(&n->peer.connections[stream]))
            return false;
        n->opener[stream] = true;
    }
    uint32_t count = stripes_wanted(f, n, stream);
    bool missing = false;
    for (uint32_t k = 0; k < count && !n->left; k++) {
        if (connection_find(n, stream, k) != NULL)
            continue;
        struct stripe *stripe = &n->stripes[stream][k];
        if (!stripe->asked && now >= stripe->not_before)
            stripe_open(f, n, stream, k, now);
        missing = missing || connection_find(n, stream, k) == NULL;
    }
    return missing && !n->left;
}

void tb_forward_refused(struct tb_agent *agent, struct tb_proc proc, enum tb_stream stream, uint32_t stripe, int error)
{
    struct tb_forward *f = agent->forward;
    struct neighbour *n = f != NULL ? neighbour_find(f, proc.index) : NULL;
    if (n == NULL || !n->stripes[stream][stripe].asked)
        return;
    snprintf(n->why, sizeof n->why, "%s", tb_error_story());
    postpone(&n->stripes[stream][stripe], tb_clock_now_real());
    if (tb_list_empty(&n->peer.connections[stream]))
        n->lost_at[stream] = tb_clock_now_real();
    if (error == TB_ERR_CLOSED && !tb_hop_peer_is_agent(&n->peer)) {
        forget(f, n);
        tb_timer_set(&agent->loop, &f->tick, 0); /* there may be room for others now */
    } else {
        care_for(f, n);
    }
}

static void connection_ended(void *context, struct tb_hop_peer *peer, const struct tb_hop_connection *connection,
                             int error)
{
    struct tb_forward *f = context;
    struct neighbour *n = neighbour_of(peer);
    tb_log(error == TB_ERR_PROTOCOL ? TB_LOG_WARN : TB_LOG_DEBUG, "agent",
           "a connection with process 0x%x has ended: %s", peer->proc.index, tb_error_story());
    if (error == TB_ERR_CLOSED) {
        forget(f, n);
        return;
    }
    snprintf(n->why, sizeof n->why, "%s", tb_error_story());
    f->reconnects++;
    uint64_t now = tb_clock_now_real();
    if (tb_list_empty(&peer->connections[connection->stream]))
        n->lost_at[connection->stream] = now;
    if (connection->ours)
        postpone(&n->stripes[connection->stream][connection->stripe], now);
    else if (tb_list_empty(&peer->connections[connection->stream]))
        for (uint32_t k = 0; k < TB_HOP_PEER_STRIPES; k++) /* they will open it again; if not, we do */
            n->stripes[connection->stream][k].not_before = now + TURN_NS;
    care_for(f, n);
}

/* ---- links that are down ---------------------------------------------------------------------------------------- */

static void complain(struct tb_forward *f, struct neighbour *n, uint64_t since, bool at_last)
{
    tb_agent_link_down(f->agent, host_of(f, n), since, n->why[0] != 0 ? n->why : "no answer", at_last);
}

/* Frames wait and there is no connection. */
static void endure(struct tb_forward *f, struct neighbour *n, uint64_t since, uint64_t now)
{
    uint64_t down = now - since;
    if (down > OTHERS_NS && !n->moved) {
        n->moved = true;
        reroute(f, n);
        settle(f);
    }
    if (f->agent->phase != TB_AGENT_RUNNING || !is_queued(n))
        return;
    if (down > NOTE_NS && !n->noted) {
        n->noted = true;
        complain(f, n, down, false);
    }
    /* Frames of one who has found another way lie here still, and prove nothing. */
    if (down > tb_param.link_patience && tb_queue_waited(&n->peer.queue, now) > tb_param.link_patience)
        complain(f, n, down, true);
}

/* True: to be looked at again. */
static bool look_after(struct tb_forward *f, struct neighbour *n, uint64_t now)
{
    bool busy = false;
    uint64_t since = 0;
    for (int i = 0; i < TB_STREAM_COUNT; i++) {
        enum tb_stream stream = (enum tb_stream)i;
        busy = stream_open(f, n, stream, now) || busy;
        bool stuck = !tb_queue_empty(&n->peer.queue, stream) && tb_list_empty(&n->peer.connections[i]);
        if (!stuck)
            n->down_since[i] = 0;
        else if (n->down_since[i] == 0)
            n->down_since[i] = now;
        if (n->down_since[i] != 0 && (since == 0 || n->down_since[i] < since))
            since = n->down_since[i];
    }
    if (since == 0) {
        if (n->noted)
            tb_agent_note(f->agent, "the link to host %s is up again", f->agent->book.hosts[host_of(f, n)].name);
        n->moved = n->noted = false;
        return busy;
    }
    endure(f, n, since, now);
    return true;
}

static void tick(struct tb_timer *timer)
{
    struct tb_forward *f = TB_CONTAINER(timer, struct tb_forward, tick);
    uint64_t now = tb_clock_now_real();
    struct neighbour *n;
    struct tb_list all;
    tb_list_init(&all);
    tb_hop_set_bury(&f->hop_set);
    tb_frame_pool_look(&f->pool, now);
    TB_LIST_EACH (n, &f->care, struct neighbour, care) {
        tb_list_remove(&n->care);
        tb_list_append(&all, &n->care);
    }
    while (!tb_list_empty(&all)) {
        n = TB_CONTAINER(all.next, struct neighbour, care);
        tb_list_remove(&n->care);
        if (look_after(f, n, now))
            care_for(f, n);
    }
    settle(f);
    if ((!tb_list_empty(&f->care) || !tb_list_empty(&f->pool.crowded)) && !tb_timer_is_set(timer))
        tb_timer_set(&f->agent->loop, timer, TICK_NS);
}

/* ---- the forwarder ---------------------------------------------------------------------------------------------- */

static struct tb_forward *forward_get(struct tb_agent *agent)
{
    if (agent->forward != NULL)
        return agent->forward;
    struct tb_forward *f = calloc(1, sizeof *f);
    if (f == NULL)
        return NULL;
    f->agent = agent;
    tb_list_init(&f->flush);
    tb_list_init(&f->care);
    tb_timer_init(&f->tick, tick);
    struct tb_hop_set_calls calls = {.context = f, .frame = take_frame, .settle = settle, .ended = connection_ended};
    if (!table_grow(f) || tb_frame_pool_open(&f->pool, tb_param.gateway_memory) != TB_OK) {
        free(f->table);
        free(f);
        return NULL;
    }
    if (tb_hop_set_open(&f->hop_set, &agent->loop, &f->pool, &calls) != TB_OK) {
        tb_frame_pool_close(&f->pool);
        free(f->table);
        free(f);
        return NULL;
    }
    agent->forward = f;
    return f;
}

/* A process of this job, not ourselves. */
static bool is_known(const struct tb_agent *agent, struct tb_proc proc)
{
    uint32_t number = proc.index & ~TB_PROC_AGENT;
    if (proc.job != agent->setup.job || proc.index == tb_agent_proc(agent).index)
        return false;
    return number < ((proc.index & TB_PROC_AGENT) ? agent->book.host_count : agent->book.ranks);
}

void tb_forward_adopt(struct tb_agent *agent, const struct tb_connected *connected)
{
    struct tb_forward *f = is_known(agent, connected->proc) ? forward_get(agent) : NULL;
    struct neighbour *n = f != NULL ? neighbour_find(f, connected->proc.index) : NULL;
    if (n == NULL || connected->stripe >= TB_HOP_PEER_STRIPES) {
        close(connected->socket);
        return;
    }
    struct stripe *stripe = &n->stripes[connected->stream][connected->stripe];
    bool ours = stripe->asked && (connected->dialed || stripe->called);
    struct tb_codec *codec;
    int rc = tb_codec_open(agent, connected, &codec);
    if (rc == TB_OK)
        rc = tb_hop_peer_adopt(&n->peer, connected->stream, connected->stripe, ours, connected->socket, codec);
    else
        close(connected->socket);
    if (rc != TB_OK) {
        tb_log(TB_LOG_WARN, "agent", "a connection with process 0x%x cannot be used: %s", connected->proc.index,
               tb_error_story());
        if (ours) {
            snprintf(n->why, sizeof n->why, "%s", tb_error_story());
            postpone(stripe, tb_clock_now_real());
            care_for(f, n);
        }
        return;
    }
    n->left = false;
    n->lost_at[connected->stream] = 0;
    if (ours) {
        *stripe = (struct stripe){0};
    } else if (tb_hop_peer_is_agent(&n->peer) && connected->proc.index < tb_agent_proc(agent).index) {
        n->opener[connected->stream] = false; /* if both sides begin, the first host of the address book goes on */
    }
    if (!tb_queue_empty(&n->peer.queue, connected->stream) && tb_list_empty(&n->flush))
        tb_list_append(&f->flush, &n->flush);
    care_for(f, n);
    tb_timer_set(&agent->loop, &f->tick, 0);
}

void tb_forward_routes(struct tb_agent *agent)
{
    struct tb_forward *f = agent->forward;
    if (f == NULL)
        return;
    uint32_t room;
    do { /* again if new neighbours have moved the others in the table */
        room = f->room;
        for (uint32_t i = 0; i < f->room; i++)
            if (f->table[i] != NULL && is_queued(f->table[i]))
                reroute(f, f->table[i]);
    } while (room != f->room);
    tb_timer_set(&agent->loop, &f->tick, 0);
}

void tb_forward_close(struct tb_agent *agent)
{
    struct tb_forward *f = agent->forward;
    if (f == NULL)
        return;
    tb_log(
        TB_LOG_DEBUG, "agent",
        "passed on: %llu frames, %llu bytes; %llu dropped for want of room, %llu astray, %llu too late; at most %llu "
        "bytes waited; %llu connections broke",
        (unsigned long long)f->hop_set.frames_out, (unsigned long long)f->hop_set.bytes_out,
        (unsigned long long)f->pool.dropped, (unsigned long long)f->astray, (unsigned long long)f->late,
        (unsigned long long)f->pool.bytes_most, (unsigned long long)f->reconnects);
    tb_timer_clear(&f->tick);
    tb_connect_stop(agent);
    for (uint32_t i = 0; i < f->room; i++)
        if (f->table[i] != NULL) {
            tb_hop_peer_close(&f->table[i]->peer);
            free(f->table[i]);
        }
    tb_hop_set_close(&f->hop_set);
    tb_frame_pool_close(&f->pool);
    free(f->table);
    free(f);
    agent->forward = NULL;
}
