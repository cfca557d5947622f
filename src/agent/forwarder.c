#include "agent/forwarder.h"

#include "agent/hop_choice.h"

#include "agent/codec.h"
#include "agent/frame_check.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define TICK_NS      50000000u
#define TURN_NS      1000000000u /* how long the other side may take to make its connections again */
#define GATHER_BYTES 2048u       /* frames up to this size leave together for a rank if they have come together */

static struct tb_neighbour *neighbour_of(struct tb_hop_peer *peer)
{
    return TB_CONTAINER(peer, struct tb_neighbour, peer);
}

static void set_tick(struct tb_forwarder *f, uint64_t after)
{
    tb_timer_set(f->member->loop, &f->tick, after);
}

static void care_for(struct tb_forwarder *f, struct tb_neighbour *n)
{
    if (tb_list_empty(&n->care))
        tb_list_append(&f->care, &n->care);
    if (!tb_timer_is_set(&f->tick))
        set_tick(f, TICK_NS);
}

/* ---- where to ---------------------------------------------------------------------------------------------------- */

static struct tb_neighbour *route(void *context, const struct tb_cargo *cargo, enum tb_stream stream, uint32_t from,
                                  const struct tb_far_host *far)
{
    struct tb_forwarder *f = context;
    return tb_hop_choose(f->member, &f->table, cargo, stream, from, far);
}

/* While routes change there may be none. Whoever has sent it keeps it and sends it again; if a link is cut for longer,
 * the launcher says so. */
static void lead_astray(struct tb_forwarder *f, struct tb_proc source, struct tb_proc destination)
{
    f->astray++;
    if (f->stray_logged)
        return;
    f->stray_logged = true;
    tb_log(TB_LOG_INFO, "agent", "a message from process %u to process %u cannot be passed on: there is no way",
           source.index, destination.index);
}

/* ---- frames ------------------------------------------------------------------------------------------------------ */

static void note_sent(struct tb_forwarder *f, struct tb_neighbour *n)
{
    if (n->sent)
        return;
    n->sent = true;
    f->events.used(f->events.context, tb_neighbour_host(n, f->member));
}

static void note_heard(struct tb_forwarder *f, struct tb_neighbour *n)
{
    if (n->heard)
        return;
    n->heard = true;
    f->events.heard(f->events.context, tb_neighbour_host(n, f->member));
}

/* Takes the frame buffer. */
static int enqueue(struct tb_forwarder *f, struct tb_neighbour *n, struct tb_frame_buffer *buffer)
{
    buffer->state = TB_FRAME_QUEUED;
    int rc = tb_queue_add(&n->peer.queue, buffer);
    if (tb_list_empty(&n->flush))
        tb_list_append(&f->flush, &n->flush);
    return rc;
}

/* At once, or as soon as it can be. Takes the cargo's buffer then. */
static int pass(void *context, struct tb_neighbour *n, enum tb_stream stream, uint32_t from, struct tb_cargo *cargo)
{
    struct tb_forwarder *f = context;
    note_sent(f, n);
    struct tb_frame_buffer *buffer = cargo->buffer;
    if (f->fault.active && tb_hop_peer_is_agent(&n->peer) && tb_hop_fault_strikes(&f->fault, n, stream, cargo))
        return TB_OK;
    bool gather = cargo->more && (tb_hop_peer_is_agent(&n->peer) || cargo->length <= GATHER_BYTES);
    if (!gather && tb_queue_empty(&n->peer.queue, stream) && tb_hop_peer_send(&n->peer, stream, cargo) == TB_OK) {
        if (buffer != NULL && cargo->buffer == NULL)
            buffer->state = TB_FRAME_QUEUED;
        return TB_OK;
    }
    cargo->buffer = NULL;
    if (buffer == NULL) {
        buffer = tb_frame_buffer_make(&f->pool, cargo->length);
        if (buffer == NULL) {
            f->pool.dropped++;
            return TB_ERR_MEMORY;
        }
        memcpy(buffer->bytes, cargo->bytes, cargo->length);
    }
    buffer->source = cargo->source;
    buffer->destination = cargo->destination;
    buffer->stream = (uint8_t)stream;
    buffer->from = from;
    return enqueue(f, n, buffer);
}

static void take_asked(void *context, struct tb_hop_connection *connection, uint32_t about)
{
    struct tb_forwarder *f = context;
    note_heard(f, neighbour_of(connection->peer));
    if (about != 0)
        f->events.pass_on(f->events.context, TB_HOP_ABOUT_HOST(about), TB_HOP_ABOUT_PASSED(about));
}

static void take_small(void *context, struct tb_hop_peer *peer)
{
    struct tb_forwarder *f = context;
    if (peer->packet_size.small)
        return;
    tb_hop_peer_use_small(peer);
    f->events.small(f->events.context, tb_neighbour_host(neighbour_of(peer), f->member));
}

static int take_frame(void *context, struct tb_hop_connection *connection, struct tb_cargo *cargo)
{
    struct tb_forwarder *f = context;
    struct tb_hop_peer *peer = connection->peer;
    enum tb_stream stream = (enum tb_stream)connection->stream;
    f->frames++;
    f->bytes += cargo->length;
    note_heard(f, neighbour_of(peer));
    int rc = tb_frame_check(f->member, peer->proc, cargo);
    if (rc != TB_OK)
        return rc;
    if (!tb_hop_peer_is_agent(peer))
        return tb_crossing_keep(&f->crossing, neighbour_of(peer), stream, cargo);
    uint32_t host;
    if (tb_member_find_host(f->member, cargo->destination, &host) == TB_OK && host == f->member->host) {
        tb_crossing_arrive(&f->crossing, neighbour_of(peer), stream, cargo);
        return TB_OK;
    }
    struct tb_neighbour *n = route(f, cargo, stream, peer->proc.index, NULL);
    if (n == NULL)
        lead_astray(f, cargo->source, cargo->destination);
    else if (n->left)
        f->late++;
    else
        pass(f, n, stream, peer->proc.index, cargo);
    return TB_OK;
}

static void flush(struct tb_forwarder *f)
{
    while (!tb_list_empty(&f->flush)) {
        struct tb_neighbour *n = TB_CONTAINER(f->flush.next, struct tb_neighbour, flush);
        tb_list_remove(&n->flush);
        for (int i = 0; i < TB_STREAM_COUNT; i++) {
            tb_hop_peer_flush(&n->peer, (enum tb_stream)i);
            if (!tb_queue_empty(&n->peer.queue, (enum tb_stream)i) && tb_list_empty(&n->peer.connections[i]) &&
                tb_list_empty(&n->care)) {
                care_for(f, n);
                set_tick(f, 0); /* opened when nobody is inside of a call */
            }
        }
    }
}

/* Where there is room now, what was kept comes after. */
static void settle(void *context)
{
    struct tb_forwarder *f = context;
    flush(f);
    tb_crossing_settle(&f->crossing);
    flush(f);
}

/* A frame that was held for a while, or comes twice, on purpose. */
static void release_held(void *context, struct tb_neighbour *n, struct tb_frame_buffer *buffer)
{
    struct tb_forwarder *f = context;
    buffer->from = f->member->self.index;
    enqueue(f, n, buffer);
    settle(f);
}

/* Gives a new way to everything that waits for this neighbour. */
static void reroute(struct tb_forwarder *f, struct tb_neighbour *n)
{
    struct tb_list all;
    struct tb_frame_buffer *buffer;
    tb_list_init(&all);
    for (int i = 0; i < TB_STREAM_COUNT; i++)
        while ((buffer = tb_queue_pull(&n->peer.queue, (enum tb_stream)i)) != NULL)
            tb_list_append(&all, &buffer->node);
    TB_LIST_EACH (buffer, &all, struct tb_frame_buffer, node) {
        tb_list_remove(&buffer->node);
        const struct tb_cargo cargo = {.source = buffer->source, .destination = buffer->destination};
        struct tb_neighbour *to = route(f, &cargo, (enum tb_stream)buffer->stream, buffer->from, NULL);
        bool open = to != NULL && !to->left, kept = buffer->keeper != NULL;
        if (open && kept)
            tb_replay_move(&f->crossing.replay, buffer, tb_neighbour_host(to, f->member));
        if (open)
            enqueue(f, to, buffer);
        else if (kept)
            tb_replay_return(&f->crossing.replay, buffer);
        if (open || kept)
            continue;
        f->late += to != NULL;
        if (to == NULL)
            lead_astray(f, buffer->source, buffer->destination);
        tb_frame_buffer_free(&f->pool, buffer);
    }
}

/* ---- connections ------------------------------------------------------------------------------------------------- */

/* The process has ended or left: what waits for it waits in vain. */
static void forget(struct tb_forwarder *f, struct tb_neighbour *n)
{
    struct tb_frame_buffer *buffer;
    n->left = true;
    if (tb_hop_peer_is_agent(&n->peer))
        reroute(f, n);
    for (int i = 0; i < TB_STREAM_COUNT && !tb_hop_peer_is_agent(&n->peer); i++)
        while ((buffer = tb_queue_pull(&n->peer.queue, (enum tb_stream)i)) != NULL) {
            f->late++;
            tb_frame_buffer_free(&f->pool, buffer);
        }
}

/* Why the last connection with it was lost, or there is none; the story is in tb_error. */
static void note_why(struct tb_forwarder *f, struct tb_neighbour *n)
{
    snprintf(n->why, sizeof n->why, "%s", tb_error_story());
    if (tb_hop_peer_is_agent(&n->peer))
        f->events.lost(f->events.context, tb_neighbour_host(n, f->member), n->why);
}

static void stripe_open(struct tb_forwarder *f, struct tb_neighbour *n, enum tb_stream stream, uint32_t number,
                        uint64_t now)
{
    struct tb_neighbour_stripe *stripe = &n->stripes[stream][number];
    const struct tb_host_route *route = tb_member_route(f->member, tb_neighbour_host(n, f->member));
    stripe->asked = true;
    stripe->called = route->means == TB_HOST_ROUTE_CALLED;
    int rc = f->events.connect(f->events.context, n->peer.proc, stream, number);
    if (rc == TB_OK)
        return;
    tb_neighbour_postpone(stripe, now);
    note_why(f, n);
    if (rc == TB_ERR_CLOSED)
        forget(f, n);
}

/* Opens what is missing of a stream, if it is our turn. True: something is still missing. */
static bool stream_open(struct tb_forwarder *f, struct tb_neighbour *n, enum tb_stream stream, uint64_t now)
{
    bool asked = (n->asked && stream == TB_STREAM_SHORT) || tb_hop_peer_is_dead(&n->peer, stream);
    if (n->left || (tb_queue_empty(&n->peer.queue, stream) && !tb_neighbour_is_kept(n, f->member, stream) && !asked))
        return false;
    if (!n->opener[stream]) {
        if (!tb_list_empty(&n->peer.connections[stream]))
            return false;
        n->opener[stream] = true;
    }
    uint32_t count = tb_neighbour_stripes_wanted(n, f->member, stream);
    bool missing = false;
    for (uint32_t k = 0; k < count && !n->left; k++) {
        if (tb_neighbour_connection(n, stream, k) != NULL)
            continue;
        struct tb_neighbour_stripe *stripe = &n->stripes[stream][k];
        if (!stripe->asked && now >= stripe->not_before)
            stripe_open(f, n, stream, k, now);
        missing = missing || tb_neighbour_connection(n, stream, k) == NULL;
    }
    return missing && !n->left;
}

uint64_t tb_forwarder_kept(struct tb_forwarder *f, uint32_t rank)
{
    const struct tb_neighbour *n = f->ready ? tb_neighbour_find(&f->table, rank) : NULL;
    return n != NULL ? n->kept.all : 0;
}

void tb_forwarder_refused(struct tb_forwarder *f, struct tb_proc proc, enum tb_stream stream, uint32_t stripe,
                          int error)
{
    struct tb_neighbour *n = f->ready ? tb_neighbour_find(&f->table, proc.index) : NULL;
    if (n == NULL || !n->stripes[stream][stripe].asked)
        return;
    note_why(f, n);
    tb_neighbour_postpone(&n->stripes[stream][stripe], tb_loop_now(f->member->loop));
    if (tb_list_empty(&n->peer.connections[stream]))
        n->lost_at[stream] = tb_loop_now(f->member->loop);
    if (error == TB_ERR_CLOSED && !tb_hop_peer_is_agent(&n->peer)) {
        forget(f, n);
        set_tick(f, 0); /* there may be room for others now */
    } else {
        care_for(f, n);
    }
}

static void connection_ended(void *context, struct tb_hop_peer *peer, const struct tb_hop_connection *connection,
                             int error)
{
    struct tb_forwarder *f = context;
    struct tb_neighbour *n = neighbour_of(peer);
    tb_log(TB_LOG_DEBUG, "agent", "a connection with process 0x%x has ended: %s", peer->proc.index, tb_error_story());
    if (error == TB_ERR_PROTOCOL || error == TB_ERR_MEMORY) /* a rank knows only that there is no connection */
        tb_stranger_log_nonsense(&f->nonsense, peer->proc);
    if (error == TB_ERR_CLOSED) {
        forget(f, n);
        return;
    }
    note_why(f, n);
    f->reconnects++;
    if (tb_hop_peer_is_agent(peer))
        tb_replay_hurry(&f->crossing.replay, tb_neighbour_host(n, f->member), true);
    uint64_t now = tb_loop_now(f->member->loop);
    if (tb_list_empty(&peer->connections[connection->stream]))
        n->lost_at[connection->stream] = now;
    if (connection->ours)
        tb_neighbour_postpone(&n->stripes[connection->stream][connection->stripe], now);
    else if (tb_list_empty(&peer->connections[connection->stream]))
        for (uint32_t k = 0; k < TB_STRIPES_LIMIT; k++) /* they will open it again; if not, we do */
            n->stripes[connection->stream][k].not_before = now + TURN_NS;
    care_for(f, n);
}

/* ---- links that are down ----------------------------------------------------------------------------------------- */

/* Frames wait and there is no connection. Frames that were given to one who is down lie here until they find another
 * way; whether there is one, the launcher knows. */
static void endure(struct tb_forwarder *f, struct tb_neighbour *n, uint64_t since, uint64_t now)
{
    if (now - since <= TB_NEIGHBOUR_OTHERS_NS || n->moved)
        return;
    n->moved = true;
    reroute(f, n);
    settle(f);
}

/* True: to be looked at again. */
static bool look_after(struct tb_forwarder *f, struct tb_neighbour *n, uint64_t now)
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
        if (n->down_since[i] != 0 && tb_hop_peer_is_agent(&n->peer))
            tb_hop_peer_miss(&n->peer, stream, n->down_since[i],
                             tb_member_route(f->member, tb_neighbour_host(n, f->member))->latency);
        if (n->down_since[i] != 0 && (since == 0 || n->down_since[i] < since))
            since = n->down_since[i];
    }
    if (since == 0) {
        n->moved = false;
        return busy;
    }
    endure(f, n, since, now);
    return true;
}

static void tick(struct tb_timer *timer)
{
    struct tb_forwarder *f = TB_CONTAINER(timer, struct tb_forwarder, tick);
    uint64_t now = tb_loop_now(f->member->loop);
    struct tb_neighbour *n;
    struct tb_list all;
    tb_list_init(&all);
    tb_hop_set_bury(&f->hop_set);
    TB_LIST_EACH (n, &f->care, struct tb_neighbour, care) {
        tb_list_remove(&n->care);
        tb_list_append(&all, &n->care);
    }
    while (!tb_list_empty(&all)) {
        n = TB_CONTAINER(all.next, struct tb_neighbour, care);
        tb_list_remove(&n->care);
        if (look_after(f, n, now))
            care_for(f, n);
    }
    settle(f);
    if (!tb_list_empty(&f->care) && !tb_timer_is_set(timer))
        set_tick(f, TICK_NS);
}

/* ---- the forwarder ----------------------------------------------------------------------------------------------- */

/* Those that are not open are all zeros. */
static void close_parts(struct tb_forwarder *f)
{
    tb_hop_fault_close(&f->fault);
    tb_neighbour_table_close(&f->table);
    if (f->crossing.member != NULL)
        tb_crossing_close(&f->crossing);
    if (f->hop_set.scratch != NULL)
        tb_hop_set_close(&f->hop_set);
    if (f->arrivals.flows != NULL)
        tb_frame_pool_close(&f->arrivals);
    if (f->pool.flows != NULL)
        tb_frame_pool_close(&f->pool);
}

/* The first frame is about to come: memory for it. */
static bool make_ready(struct tb_forwarder *f)
{
    struct tb_hop_set_events events = {.context = f,
                                       .frame = take_frame,
                                       .asked = take_asked,
                                       .small = take_small,
                                       .settle = settle,
                                       .ended = connection_ended};
    struct tb_crossing_events crossing = {.context = f, .route = route, .pass = pass, .settle = settle};
    if (f->ready)
        return true;
    int rc = tb_frame_pool_open(&f->pool, tb_param.gateway_memory);
    if (rc == TB_OK)
        rc = tb_frame_pool_open(&f->arrivals, UINT64_MAX);
    f->arrivals.limit_each = TB_CROSSING_ARRIVALS;
    if (rc == TB_OK)
        rc = tb_hop_set_open(&f->hop_set, f->member->loop, &f->pool, &f->arrivals, &events);
    if (rc == TB_OK)
        rc = tb_neighbour_table_open(&f->table, f->member, &f->hop_set);
    tb_hop_fault_open(&f->fault, f->member, &f->pool, &(struct tb_hop_fault_events){f, release_held});
    if (rc == TB_OK)
        rc = tb_crossing_open(&f->crossing, f->member, &f->table, &f->pool, &crossing);
    f->ready = rc == TB_OK;
    if (!f->ready)
        close_parts(f);
    return f->ready;
}

/* The agent of another host, or a rank of this one. */
static bool is_known(const struct tb_member *member, struct tb_proc proc)
{
    uint32_t host;
    return tb_member_find_host(member, proc, &host) == TB_OK && (host == member->host) != tb_proc_is_agent(proc);
}

void tb_forwarder_adopt(struct tb_forwarder *f, const struct tb_connected *connected)
{
    bool known = is_known(f->member, connected->proc) && make_ready(f);
    struct tb_neighbour *n = known ? tb_neighbour_find(&f->table, connected->proc.index) : NULL;
    if (n == NULL || connected->stripe >= TB_STRIPES_LIMIT) {
        close(connected->socket);
        return;
    }
    struct tb_neighbour_stripe *stripe = &n->stripes[connected->stream][connected->stripe];
    bool ours = stripe->asked && (connected->dialed || stripe->called);
    struct tb_codec *codec;
    int rc = tb_codec_open(f->member, &f->squeezes, connected, &codec);
    if (rc == TB_OK)
        rc = tb_hop_peer_adopt(&n->peer, connected->stream, connected->stripe, ours, connected->socket, codec);
    else
        close(connected->socket);
    if (rc != TB_OK) {
        tb_stranger_log_nonsense(&f->nonsense, connected->proc);
        if (ours) {
            note_why(f, n);
            tb_neighbour_postpone(stripe, tb_loop_now(f->member->loop));
            care_for(f, n);
        }
        return;
    }
    tb_neighbour_tune(n, f->member, connected->stream, connected->socket);
    n->left = false;
    n->lost_at[connected->stream] = 0;
    note_heard(f, n);
    if (tb_hop_peer_is_agent(&n->peer))
        tb_replay_hurry(&f->crossing.replay, tb_neighbour_host(n, f->member), false);
    if (ours) {
        *stripe = (struct tb_neighbour_stripe){0};
    } else if (tb_hop_peer_is_agent(&n->peer) && connected->proc.index < f->member->self.index) {
        n->opener[connected->stream] = false; /* if both sides begin, the first host of the address book goes on */
    }
    if (!tb_queue_empty(&n->peer.queue, connected->stream) && tb_list_empty(&n->flush))
        tb_list_append(&f->flush, &n->flush);
    care_for(f, n);
    set_tick(f, 0);
}

void tb_forwarder_reroute(struct tb_forwarder *f)
{
    if (!f->ready)
        return;
    uint32_t room;
    do { /* again if new neighbours have moved the others in the table */
        room = f->table.room;
        for (uint32_t i = 0; i < f->table.room; i++)
            if (f->table.slots[i] != NULL && tb_neighbour_is_queued(f->table.slots[i]))
                reroute(f, f->table.slots[i]);
    } while (room != f->table.room);
    tb_replay_hurry(&f->crossing.replay, TB_REPLAY_ALL, false);
    set_tick(f, 0);
}

/* ---- whether agents answer --------------------------------------------------------------------------------------- */

/* NULL: nothing was ever passed on, or there is no memory. */
static struct tb_neighbour *agent_of(struct tb_forwarder *f, uint32_t host)
{
    return f->ready ? tb_neighbour_find(&f->table, TB_PROC_AGENT | host) : NULL;
}

int tb_forwarder_ask(struct tb_forwarder *f, uint32_t host, uint32_t about)
{
    struct tb_neighbour *n = make_ready(f) ? agent_of(f, host) : NULL;
    if (n == NULL)
        return TB_OK;
    if (n->left)
        return TB_ERR_CLOSED;
    n->asked = true;
    tb_hop_peer_ask(&n->peer, about);
    if (tb_list_empty(&n->peer.connections[TB_STREAM_SHORT]))
        care_for(f, n);
    return TB_OK;
}

void tb_forwarder_ask_no_more(struct tb_forwarder *f, uint32_t host)
{
    struct tb_neighbour *n = agent_of(f, host);
    if (n != NULL)
        n->asked = n->sent = n->heard = false; /* the next frame is news again */
}

uint64_t tb_forwarder_progress(struct tb_forwarder *f, uint32_t host, bool again)
{
    struct tb_neighbour *n = agent_of(f, host);
    return n != NULL ? tb_hop_peer_progress(&n->peer, again) : 0;
}

uint64_t tb_forwarder_stuck_since(struct tb_forwarder *f, uint32_t host, const char **why)
{
    struct tb_neighbour *n = agent_of(f, host);
    return n != NULL ? tb_hop_peer_stuck_since(&n->peer, why) : 0;
}

void tb_forwarder_listen(struct tb_forwarder *f)
{
    for (uint32_t i = 0; f->ready && i < f->table.room; i++)
        if (f->table.slots[i] != NULL)
            f->table.slots[i]->sent = f->table.slots[i]->heard = false;
}

void tb_forwarder_suspect(struct tb_forwarder *f, uint32_t host, bool suspect)
{
    struct tb_neighbour *n = agent_of(f, host);
    if (n == NULL)
        return;
    n->suspect = suspect;
    if (suspect && tb_neighbour_is_queued(n))
        reroute(f, n);
    tb_replay_hurry(&f->crossing.replay, host, suspect);
    set_tick(f, 0);
}

/* ---- opening and closing ----------------------------------------------------------------------------------------- */

void tb_forwarder_open(struct tb_forwarder *f, const struct tb_member *member, const struct tb_forwarder_events *events)
{
    *f = (struct tb_forwarder){.member = member, .events = *events};
    tb_list_init(&f->flush);
    tb_list_init(&f->care);
    tb_timer_init(&f->tick, tick);
    tb_stranger_log_open(&f->nonsense, member, TB_STRANGER_NONSENSE);
}

void tb_forwarder_close(struct tb_forwarder *f)
{
    tb_stranger_log_close(&f->nonsense);
    if (!f->ready)
        return;
    tb_log(
        TB_LOG_DEBUG, "agent",
        "passed on: %llu frames, %llu bytes; %llu dropped for want of room, %llu astray, %llu too late; at most %llu "
        "bytes waited; %llu connections broke",
        (unsigned long long)f->hop_set.frames_out, (unsigned long long)f->hop_set.bytes_out,
        (unsigned long long)f->pool.dropped, (unsigned long long)f->astray, (unsigned long long)f->late,
        (unsigned long long)f->pool.bytes_most, (unsigned long long)f->reconnects);
    tb_timer_clear(&f->tick);
    close_parts(f);
    tb_list_init(&f->flush);
    tb_list_init(&f->care);
    f->ready = false;
}
