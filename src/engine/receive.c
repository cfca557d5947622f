#include "engine/receive.h"

#include "engine/engine_state.h"

#include <string.h>

#define READ_SPAN 1024 /* into shorter spans a message is not read from its sender's memory but sent */

/* ---- a message and its receive have met -------------------------------------------------------------------------- */

static inline void receive_bind(struct tb_request *r, struct tb_peer *p, const struct tb_message *m)
{
    if (r->phase == TB_PHASE_POSTED)
        tb_match_unpost(&r->engine->matcher, r);
    r->phase = TB_PHASE_COMING;
    r->peer = p;
    r->length = m->length;
    r->total = m->length < r->room ? m->length : r->room;
    r->status.source = m->source_rank;
    r->status.match = m->match;
    r->status.bytes = r->total;
}

/* A message that does not fill its buffer. One that ends within an element was sent as something else, of which only
 * the program's own messages are suspected: those of collectives are cut anywhere. */
static __attribute__((noinline)) int judge_length(const struct tb_request *r)
{
    uint64_t size = r->buffer.type->size;
    if (r->length > r->room)
        return TB_ERR_TRUNCATE;
    bool whole = (size & (size - 1)) == 0 && (r->length & (size - 1)) == 0; /* as a rule, and without a division */
    if (TB_LIKELY(whole) || !tb_context_is_point(r->context))
        return TB_OK;
    return tb_type_elements_in(r->buffer.type, r->length) < 0 ? TB_ERR_PARTIAL : TB_OK;
}

static inline void receive_end(struct tb_request *r)
{
    tb_request_finish(r, TB_LIKELY(r->length == r->room) ? TB_OK : judge_length(r));
}

/* Whether the message holds long double as another machine writes it: that is not given to the program. */
static __attribute__((cold)) bool holds_unlike(const struct tb_request *r, const struct tb_message *m)
{
    return r->buffer.type->long_double && r->total > 0 && !(m->representation & TB_REP_CANONICAL) &&
           ((m->representation ^ r->engine->representation) & TB_REP_LDOUBLE_MASK) != 0;
}

static inline bool is_unlike(const struct tb_request *r, const struct tb_message *m)
{
    return TB_UNLIKELY(m->representation != r->engine->representation) && holds_unlike(r, m);
}

/* The sender is told what it waits for. */
static inline void eager_accept(struct tb_peer *p, const struct tb_message *m)
{
    if (TB_LIKELY(!p->self)) {
        if (m->flags & TB_MESSAGE_SYNC)
            tb_peer_reply(p, TB_KIND_DONE, m->offset, 0, 0);
        tb_peer_owe(p, m->length);
    }
}

static __attribute__((cold)) void meet_unlike(struct tb_request *r, struct tb_peer *p, const struct tb_message *m)
{
    eager_accept(p, m);
    tb_request_finish(r, TB_ERR_UNSUPPORTED);
}

static inline __attribute__((always_inline)) void meet_eager(struct tb_request *r, struct tb_peer *p,
                                                             const struct tb_message *m, const void *payload)
{
    receive_bind(r, p, m);
    if (is_unlike(r, m)) {
        meet_unlike(r, p, m);
        return;
    }
    if (r->total > 0) {
        struct tb_spans spans;
        tb_buffer_spans(&r->buffer, r->from, r->total, &spans);
        tb_spans_scatter(&spans, payload, r->total);
    }
    eager_accept(p, m);
    receive_end(r);
}

/* Reads the data from the sender's memory. TB_AGAIN: it must be sent after all. */
static int receive_read(struct tb_request *r, uint64_t address)
{
    struct tb_peer *p = r->peer;
    struct tb_transport *t = p->endpoint != NULL ? p->endpoint->transport : NULL;
    if (t == NULL || (t->capabilities & TB_CAP_REMOTE_READ) == 0 || t->table->read == NULL ||
        tb_type_average_span(r->buffer.type) < READ_SPAN)
        return TB_AGAIN;
    struct tb_spans spans;
    tb_buffer_spans(&r->buffer, r->from, r->total, &spans);
    int rc = t->table->read(p->endpoint, address, &spans, r->total);
    if (rc == TB_ERR_FORBIDDEN)
        return TB_AGAIN;
    if (rc == TB_OK)
        p->engine->counters.remote_reads++;
    return rc;
}

static void meet_request(struct tb_request *r, struct tb_peer *p, const struct tb_message *m, uint64_t address)
{
    receive_bind(r, p, m);
    r->remote_id = m->offset;
    if (p->error != TB_OK) {
        tb_request_finish(r, tb_peer_error(p));
        return;
    }
    if (is_unlike(r, m)) {
        tb_peer_reply(p, TB_KIND_CLEAR, m->offset, 0, 0);
        tb_request_finish(r, TB_ERR_UNSUPPORTED);
        return;
    }
    if (r->total > 0 && (m->flags & TB_MESSAGE_REMOTE)) {
        int rc = receive_read(r, address);
        if (rc != TB_AGAIN) {
            tb_peer_reply(p, TB_KIND_DONE, m->offset, 0, 0);
            if (rc == TB_OK)
                receive_end(r);
            else
                tb_request_finish(r, rc);
            return;
        }
    }
    int error = r->total > 0 ? tb_request_number(r) : TB_OK;
    if (r->total == 0 || error != TB_OK) {
        tb_peer_reply(p, TB_KIND_CLEAR, m->offset, 0, 0);
        if (error != TB_OK)
            tb_request_finish(r, error);
        else
            receive_end(r);
        return;
    }
    tb_request_enlist(r, tb_contexts_find(&r->engine->contexts, r->context));
    tb_peer_reply(p, TB_KIND_CLEAR, m->offset, r->message_id, r->total);
}

/* The receive gets what has come of a message that was not asked for, and what will come. Pieces come in any order, so
 * those that are missing are between the others. */
static void meet_ahead(struct tb_request *r, struct tb_peer *p, const struct tb_message *m, struct tb_ahead *a)
{
    receive_bind(r, p, m);
    bool whole = tb_ahead_is_whole(a);
    int error = is_unlike(r, m) ? TB_ERR_UNSUPPORTED : TB_OK;
    if (error == TB_OK && !whole)
        error = p->error != TB_OK ? tb_peer_error(p) : tb_request_number(r);
    if (error != TB_OK) {
        tb_peer_waste(p, a);
        tb_request_finish(r, error);
        return;
    }
    if (a->bytes != NULL && r->total > 0) {
        struct tb_spans spans;
        tb_buffer_spans(&r->buffer, r->from, r->total, &spans);
        tb_spans_scatter(&spans, a->bytes, r->total);
    }
    if (whole) {
        tb_peer_consumed(p, a);
        receive_end(r);
        return;
    }
    tb_ahead_forget_bytes(a);
    a->state = TB_AHEAD_BOUND;
    a->receive = r->message_id;
    tb_request_enlist(r, tb_contexts_find(&r->engine->contexts, r->context));
}

void tb_receive_local(struct tb_request *r, const struct tb_message *m, const struct tb_part *part)
{
    struct tb_engine *e = r->engine;
    receive_bind(r, e->peers.by_index[e->config.transport.self.index], m);
    struct tb_spans from, to;
    tb_buffer_spans(part->buffer, part->from, r->total, &from);
    tb_buffer_spans(&r->buffer, r->from, r->total, &to);
    tb_spans_move(&from, &to);
    receive_end(r);
}

/* Gives an arrival, already taken out of matching, to a receive. */
static void arrival_consume(struct tb_arrival *a, struct tb_request *r)
{
    if (a->local != NULL) {
        struct tb_request *send = a->local;
        struct tb_part part = {&send->buffer, send->from, send->total};
        tb_receive_local(r, &a->message, &part);
        tb_request_finish(send, TB_OK);
    } else if (a->message.kind == TB_KIND_EAGER) {
        meet_eager(r, a->peer, &a->message, a->payload);
    } else if (a->ahead != NULL) {
        meet_ahead(r, a->peer, &a->message, a->ahead);
    } else {
        meet_request(r, a->peer, &a->message, a->address);
    }
    tb_arrival_free(a);
}

/* ---- frames ------------------------------------------------------------------------------------------------------ */

/* The context of a message for which no receive is posted; NULL: it must not be kept. */
static struct tb_context *context_for(struct tb_peer *p, struct tb_context *c, const struct tb_message *m)
{
    bool refused = c != NULL ? TB_UNLIKELY(c->failures != NULL) && tb_failure_covers(c, m->match)
                             : tb_freed_contexts_contains(&p->engine->freed_contexts, m->context);
    if (refused) {
        tb_arrival_refuse(p, m);
        return NULL;
    }
    if (TB_UNLIKELY(p->stranger) && (c == NULL || c->channel == NULL) && !tb_peer_may_wait(p))
        return NULL;
    return c != NULL ? c : tb_peer_context(p, m->context);
}

static struct tb_arrival *message_keep(struct tb_peer *p, const struct tb_message *m, uint64_t payload)
{
    if (!tb_peer_has_room(p, payload))
        return NULL;
    struct tb_arrival *a = tb_arrival_make(p, m, payload);
    if (a == NULL)
        tb_peer_break(p, TB_ERR_MEMORY);
    else
        p->kept += payload;
    return a;
}

void tb_receive_eager(struct tb_peer *p, const struct tb_message *m, const void *payload, size_t length)
{
    struct tb_engine *e = p->engine;
    struct tb_context *c = tb_contexts_find(&e->contexts, m->context);
    struct tb_request *r = c != NULL ? tb_match_posted(&e->matcher, c, m->source_rank, m->match) : NULL;
    if (TB_LIKELY(r != NULL)) {
        meet_eager(r, p, m, payload);
        return;
    }
    c = context_for(p, c, m);
    struct tb_arrival *a = c != NULL ? message_keep(p, m, length) : NULL;
    if (a == NULL)
        return;
    if (length > 0)
        memcpy(a->payload, payload, length);
    tb_arrival_file(c, a);
}

/* The entry of a message that was not asked for, made if this is the first frame of it. NULL: the peer was given up. */
static struct tb_ahead *ahead_get(struct tb_peer *p, uint64_t id, uint64_t total)
{
    struct tb_ahead *a = tb_aheads_find(&p->aheads, id);
    if (a != NULL)
        return a;
    if (!tb_peer_has_room(p, total))
        return NULL;
    a = tb_aheads_add(&p->aheads, id, total);
    if (a == NULL)
        tb_peer_break(p, TB_ERR_MEMORY);
    else
        p->kept += total;
    return a;
}

/* Its envelope. */
static void receive_announced(struct tb_peer *p, const struct tb_message *m)
{
    struct tb_engine *e = p->engine;
    struct tb_ahead *ahead = ahead_get(p, m->offset, m->length);
    if (ahead == NULL)
        return;
    if (ahead->state != TB_AHEAD_EARLY || ahead->total != m->length) {
        tb_peer_break(p, tb_error(TB_ERR_PROTOCOL, "process %u has announced a message twice, or with two lengths",
                                  p->proc.index));
        return;
    }
    ahead->state = TB_AHEAD_KEPT;
    struct tb_context *c = tb_contexts_find(&e->contexts, m->context);
    struct tb_request *r = c != NULL ? tb_match_posted(&e->matcher, c, m->source_rank, m->match) : NULL;
    if (r != NULL) {
        meet_ahead(r, p, m, ahead);
        return;
    }
    c = context_for(p, c, m);
    struct tb_arrival *a = c != NULL ? message_keep(p, m, 0) : NULL;
    if (a == NULL) {
        tb_peer_waste(p, ahead);
        return;
    }
    a->ahead = ahead;
    tb_arrival_file(c, a);
}

void tb_receive_asked(struct tb_peer *p, const struct tb_message *m, const void *payload, size_t length)
{
    struct tb_engine *e = p->engine;
    uint64_t address = 0;
    tb_peer_raise(p, m->context, m->length);
    if (m->flags & TB_MESSAGE_AHEAD) {
        receive_announced(p, m);
        return;
    }
    if (m->flags & TB_MESSAGE_REMOTE)
        memcpy(&address, payload, sizeof address);
    struct tb_context *c = tb_contexts_find(&e->contexts, m->context);
    struct tb_request *r = c != NULL ? tb_match_posted(&e->matcher, c, m->source_rank, m->match) : NULL;
    if (r != NULL) {
        meet_request(r, p, m, address);
        return;
    }
    c = context_for(p, c, m);
    struct tb_arrival *a = c != NULL ? message_keep(p, m, 0) : NULL;
    if (a == NULL)
        return;
    a->address = address;
    tb_arrival_file(c, a);
}

/* The receive that a DATA frame is for, if the frame makes sense. */
static struct tb_request *data_find(struct tb_peer *p, const struct tb_message *m, size_t length)
{
    struct tb_request *r = tb_request_find(p->engine, m->match, TB_REQUEST_RECEIVE);
    if (r == NULL || r->peer != p || r->phase != TB_PHASE_COMING)
        return NULL;
    return m->offset <= r->total && length <= r->total - m->offset ? r : NULL;
}

/* The receive that a message goes to which was not asked for, if there is one and has not ended meanwhile. */
static struct tb_request *ahead_receive(struct tb_peer *p, const struct tb_ahead *a)
{
    return a->state == TB_AHEAD_BOUND ? tb_request_find(p->engine, a->receive, TB_REQUEST_RECEIVE) : NULL;
}

/* That of a whole piece of it. */
static struct tb_request *ahead_find(struct tb_peer *p, const struct tb_message *m, size_t length)
{
    const struct tb_ahead *a = tb_aheads_find(&p->aheads, m->match);
    struct tb_request *r = a != NULL && tb_ahead_fits(a, m, length) ? ahead_receive(p, a) : NULL;
    return r != NULL && m->offset <= r->total && length <= r->total - m->offset ? r : NULL;
}

/* All of it is here. If they have sent parts of it twice, another one may be on its way into the buffer, which is the
 * program's as soon as the receive has ended: then they are given up, and it ends when that frame is forgotten. */
static void receive_whole(struct tb_request *r)
{
    struct tb_peer *p = r->peer;
    if (TB_UNLIKELY(p->placing != NULL && p->placing_for == r->message_id))
        tb_peer_break(p, tb_error(TB_ERR_PROTOCOL, "process %u has sent a part of a message twice", p->proc.index));
    else
        receive_end(r);
}

/* What is beyond the buffer is only counted. */
static void piece_deliver(struct tb_request *r, const struct tb_message *m, const void *payload, size_t length)
{
    if (m->offset >= r->total)
        return;
    uint64_t n = length < r->total - m->offset ? length : r->total - m->offset;
    struct tb_spans spans;
    tb_buffer_spans(&r->buffer, r->from + m->offset, n, &spans);
    if (spans.base != payload)
        tb_spans_scatter(&spans, payload, n);
}

static void receive_piece(struct tb_peer *p, const struct tb_message *m, const void *payload, size_t length)
{
    struct tb_ahead *a = ahead_get(p, m->match, m->length);
    if (a == NULL)
        return;
    if (!tb_ahead_fits(a, m, length)) {
        tb_peer_break(p, tb_error(TB_ERR_PROTOCOL, "process %u has sent a piece of a message that does not fit it",
                                  p->proc.index));
        return;
    }
    struct tb_request *r = ahead_receive(p, a);
    if (r != NULL)
        piece_deliver(r, m, payload, length);
    if (!tb_ahead_take(&p->aheads, a, m, payload, length)) {
        tb_peer_break(p, TB_ERR_MEMORY);
        return;
    }
    if (!tb_ahead_is_whole(a) || a->state == TB_AHEAD_EARLY || a->state == TB_AHEAD_KEPT)
        return;
    tb_peer_consumed(p, a);
    if (r != NULL)
        receive_whole(r);
}

/* One frame of a peer at a time: who keeps to the protocol sends data on one stream, frame by frame. */
void *tb_receive_place(struct tb_peer *p, const struct tb_message *m, size_t length)
{
    struct tb_request *r = m->flags & TB_MESSAGE_AHEAD ? ahead_find(p, m, length) : data_find(p, m, length);
    if (r == NULL || !r->buffer.type->dense || p->placing != NULL)
        return NULL;
    void *place = (char *)r->buffer.base + r->from + m->offset;
    p->placing = place;
    p->placing_for = r->message_id;
    return place;
}

void tb_receive_data(struct tb_peer *p, const struct tb_message *m, const void *payload, size_t length)
{
    if (payload == p->placing)
        p->placing = NULL;
    if (m->flags & TB_MESSAGE_AHEAD) {
        receive_piece(p, m, payload, length);
        return;
    }
    if (TB_UNLIKELY(p->casts))
        tb_cast_receiver.quit(p, m->match);
    struct tb_request *r = data_find(p, m, length);
    if (r == NULL)
        return;
    struct tb_spans spans;
    tb_buffer_spans(&r->buffer, r->from + m->offset, length, &spans);
    if (spans.base != payload)
        tb_spans_scatter(&spans, payload, length);
    r->moved += length;
    if (r->moved >= r->total)
        receive_whole(r);
}

void tb_receive_forget(struct tb_peer *p, const struct tb_message *m, const void *payload, size_t length)
{
    struct tb_engine *e = p->engine;
    struct tb_context *c = tb_contexts_find(&e->contexts, m->context);
    for (struct tb_list *at = c != NULL ? c->arrivals.prev : NULL; c != NULL && at != &c->arrivals; at = at->prev) {
        struct tb_arrival *a = TB_CONTAINER(at, struct tb_arrival, in_context);
        if (a->peer != p || a->message.offset != m->match)
            continue;
        tb_match_take(&e->matcher, a);
        if (a->message.kind == TB_KIND_EAGER)
            tb_peer_owe(p, a->message.length);
        if (a->ahead != NULL)
            tb_peer_waste(p, a->ahead);
        tb_arrival_free(a);
        tb_peer_reply(p, TB_KIND_CANCELLED, m->match, 0, 1);
        return;
    }
    tb_peer_reply(p, TB_KIND_CANCELLED, m->match, 0, 0);
}

/* ---- posting ----------------------------------------------------------------------------------------------------- */

static inline void receive_fill(struct tb_context *c, struct tb_request *r, const struct tb_part *part)
{
    tb_request_begin(r, c, TB_REQUEST_RECEIVE);
    r->buffer = *part->buffer;
    r->from = part->from;
    r->room = part->length;
    r->length = r->total = 0;
}

void tb_receive_start(struct tb_context *c, struct tb_request *r, const struct tb_part *part, uint32_t from,
                      uint64_t match, uint64_t mask)
{
    struct tb_engine *e = c->channel->engine;
    receive_fill(c, r, part);
    r->rank = from;
    r->match = match;
    r->mask = mask;
    struct tb_arrival *a = tb_match_arrived(&e->matcher, c, from, match, mask);
    if (a != NULL) {
        tb_match_take(&e->matcher, a);
        arrival_consume(a, r);
        return;
    }
    r->status.source = from;
    if (from != TB_ANY_RANK) {
        r->peer = tb_channel_peer(c->channel, from);
        int error = r->peer == NULL ? TB_ERR_MEMORY : r->peer->error != TB_OK ? tb_peer_error(r->peer) : TB_OK;
        if (TB_UNLIKELY(error != TB_OK)) {
            tb_request_finish(r, error);
            return;
        }
    }
    if (TB_UNLIKELY(c == c->channel->collective) && tb_mismatch_posted(c, r))
        return;
    r->phase = TB_PHASE_POSTED;
    tb_match_post(&e->matcher, c, r);
    tb_request_enlist(r, c);
}

void tb_receive_post(struct tb_channel *channel, struct tb_request *request, const struct tb_buffer *buffer,
                     uint32_t from, uint64_t match, uint64_t mask)
{
    struct tb_part part = {buffer, 0, tb_buffer_bytes(buffer)};
    struct tb_engine *e = channel->engine;
    tb_engine_lock(e);
    tb_receive_start(channel->point, request, &part, from, match, mask);
    tb_engine_unlock(e);
}

void tb_receive_post_part(struct tb_channel *channel, struct tb_request *request, const struct tb_buffer *buffer,
                          uint64_t first, uint64_t bytes, uint32_t from, uint64_t match)
{
    TB_ASSERT(first <= tb_buffer_bytes(buffer) && bytes <= tb_buffer_bytes(buffer) - first);
    struct tb_part part = {buffer, first, bytes};
    struct tb_engine *e = channel->engine;
    tb_engine_lock(e);
    tb_receive_start(channel->point, request, &part, from, match, UINT64_MAX);
    tb_engine_unlock(e);
}

void tb_receive_arrival(struct tb_channel *channel, struct tb_request *request, const struct tb_buffer *buffer,
                        struct tb_arrival *arrival)
{
    struct tb_part part = {buffer, 0, tb_buffer_bytes(buffer)};
    struct tb_engine *e = channel->engine;
    tb_engine_lock(e);
    receive_fill(channel->point, request, &part);
    request->rank = arrival->message.source_rank;
    request->match = arrival->message.match;
    request->mask = UINT64_MAX;
    arrival_consume(arrival, request);
    tb_engine_unlock(e);
}

/* ---- probing ----------------------------------------------------------------------------------------------------- */

static int probe_look(struct tb_channel *channel, uint32_t from, uint64_t match, uint64_t mask,
                      struct tb_status *status, struct tb_arrival **arrival)
{
    struct tb_engine *e = channel->engine;
    struct tb_arrival *a = tb_match_arrived(&e->matcher, channel->point, from, match, mask);
    if (a == NULL) {
        struct tb_peer *p = from != TB_ANY_RANK ? tb_channel_peer(channel, from) : NULL;
        if (p == NULL || p->error == TB_OK)
            return TB_AGAIN;
        return tb_error(tb_peer_error(p), "probing for messages of rank %u (process %u): %s", from, p->proc.index,
                        p->story != NULL ? p->story : tb_error_name(p->error));
    }
    if (status != NULL)
        *status = (struct tb_status){
            .source = a->message.source_rank, .match = a->message.match, .bytes = a->message.length, .error = TB_OK};
    if (arrival != NULL) {
        tb_match_take(&e->matcher, a);
        *arrival = a;
    }
    return TB_OK;
}

int tb_probe(struct tb_channel *channel, uint32_t from, uint64_t match, uint64_t mask, struct tb_status *status,
             struct tb_arrival **arrival)
{
    struct tb_engine *e = channel->engine;
    int rc = TB_AGAIN;
    for (int pass = 0; pass < 2 && rc == TB_AGAIN; pass++) {
        if (pass > 0) /* without the lock, which it may release to let others run */
            tb_engine_progress(e);
        tb_engine_lock(e);
        rc = probe_look(channel, from, match, mask, status, arrival);
        tb_engine_unlock(e);
    }
    return rc;
}

struct probe {
    struct tb_channel *channel;
    uint32_t from;
    uint64_t match, mask;
    struct tb_status *status;
    struct tb_arrival **arrival;
    int rc;
};

static bool probe_ready(void *context)
{
    struct probe *p = context;
    p->rc = probe_look(p->channel, p->from, p->match, p->mask, p->status, p->arrival);
    return p->rc != TB_AGAIN;
}

bool tb_probe_describe(const struct tb_waiter *waiter, struct tb_wait *wait)
{
    if (waiter->ready != probe_ready)
        return false;
    const struct probe *p = waiter->context;
    wait->kind = TB_WAIT_PROBE;
    wait->library = p->channel->collective == NULL;
    wait->owner = p->channel->owner;
    wait->rank = p->from;
    wait->match = p->match;
    wait->mask = p->mask;
    return true;
}

int tb_probe_wait(struct tb_channel *channel, uint32_t from, uint64_t match, uint64_t mask, struct tb_status *status,
                  struct tb_arrival **arrival, const char *call)
{
    struct probe p = {channel, from, match, mask, status, arrival, TB_AGAIN};
    tb_engine_wait_in(channel->engine, probe_ready, &p, call);
    if (p.rc < 0) {
        /* The story was told on the thread that polled, which may be another. The peer's error stays. */
        tb_engine_lock(channel->engine);
        bool ready = probe_ready(&p);
        tb_engine_unlock(channel->engine);
        TB_ASSERT(ready);
    }
    return p.rc;
}
