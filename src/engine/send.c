#include "engine/send.h"

#include "engine/engine_state.h"

#define TOKEN_MINIMUM 2048 /* shorter eager payload is copied by the transport instead of being waited for */

static inline uint64_t token_of(const struct tb_request *r)
{
    return r->slot != 0 ? r->message_id : 0;
}

static inline uint16_t mode_flags(enum tb_mode mode)
{
    return mode == TB_MODE_SYNCHRONOUS ? TB_MESSAGE_SYNC : mode == TB_MODE_READY ? TB_MESSAGE_READY : 0;
}

static inline void message_fill(struct tb_message *m, const struct tb_context *c, uint64_t match, uint64_t length)
{
    *m = (struct tb_message){.context = c->id,
                             .match = match,
                             .length = length,
                             .source_rank = c->channel->rank,
                             .kind = TB_KIND_EAGER,
                             .representation = c->channel->engine->representation};
}

/* ---- to this process itself -------------------------------------------------------------------------------------- */

/* Without a request only what needs no waiting is done: else TB_AGAIN. */
static int self_send(struct tb_context *c, const struct tb_part *part, uint64_t match, enum tb_mode mode,
                     struct tb_request *r)
{
    struct tb_engine *e = c->channel->engine;
    struct tb_peer *self = e->peers.by_index[e->config.transport.self.index];
    struct tb_message m;
    message_fill(&m, c, match, part->length);
    struct tb_request *posted = tb_match_posted(&e->matcher, c, c->channel->rank, match);
    if (posted != NULL) {
        e->counters.self++;
        tb_receive_local(posted, &m, part);
        return TB_OK;
    }
    bool keep = mode != TB_MODE_SYNCHRONOUS && part->length <= TB_GRANT_LOW &&
                e->arrivals.self_bytes + part->length <= e->peers.grant;
    if (!keep && r == NULL)
        return TB_AGAIN;
    struct tb_arrival *a = tb_arrival_make(self, &m, keep ? part->length : 0);
    if (a == NULL)
        return TB_ERR_MEMORY;
    e->counters.self++;
    if (r != NULL)
        a->message.offset = r->message_id = tb_slots_id(&e->slots);
    if (keep) {
        struct tb_spans spans;
        tb_buffer_spans(part->buffer, part->from, part->length, &spans);
        if (part->length > 0)
            tb_spans_gather(&spans, a->payload, part->length);
        e->arrivals.self_bytes += part->length;
    } else {
        a->message.kind = TB_KIND_REQUEST;
        a->local = r;
    }
    tb_arrival_file(c, a);
    return keep ? TB_OK : TB_PENDING;
}

/* ---- at once ----------------------------------------------------------------------------------------------------- */

int tb_send_try(struct tb_context *c, const struct tb_part *part, uint32_t to, uint64_t match, enum tb_mode mode)
{
    struct tb_peer *p = tb_channel_peer(c->channel, to);
    if (TB_UNLIKELY(p == NULL))
        return TB_ERR_MEMORY;
    if (TB_UNLIKELY(p->self))
        return self_send(c, part, match, mode, NULL);
    if (TB_UNLIKELY(p->endpoint == NULL || p->error != TB_OK || part->length > p->eager_limit ||
                    mode == TB_MODE_SYNCHRONOUS || !tb_list_empty(&p->envelopes) ||
                    !tb_peer_has_credit(p, part->length) || !tb_stranger_hears(p, c->id)))
        return TB_AGAIN;
    struct tb_envelope envelope;
    struct tb_spans spans;
    message_fill(&envelope.message, c, match, part->length);
    envelope.message.flags = mode_flags(mode);
    tb_buffer_spans(part->buffer, part->from, part->length, &spans);
    int rc = tb_peer_transmit(p, &envelope, &spans, TB_STREAM_SHORT, 0);
    if (TB_LIKELY(rc == TB_OK)) {
        p->credit -= part->length;
        p->engine->counters.eager++;
        return TB_OK;
    }
    if (rc < 0)
        tb_peer_break(p, rc);
    return TB_AGAIN; /* posting it tells of the error */
}

int tb_send_now(struct tb_channel *channel, const struct tb_buffer *buffer, uint32_t to, uint64_t match,
                enum tb_mode mode)
{
    struct tb_part part = {buffer, 0, tb_buffer_bytes(buffer)};
    tb_engine_lock(channel->engine);
    int rc = tb_send_try(channel->point, &part, to, match, mode);
    tb_engine_unlock(channel->engine);
    return rc < 0 ? TB_AGAIN : rc;
}

/* ---- with a request ---------------------------------------------------------------------------------------------- */

static void envelope_fill(const struct tb_request *r, struct tb_message *m)
{
    *m = (struct tb_message){.context = r->context,
                             .match = r->match,
                             .length = r->total,
                             .source_rank = r->channel->rank,
                             .representation = r->engine->representation,
                             .flags = mode_flags((enum tb_mode)r->mode)};
}

static int envelope_eager(struct tb_request *r)
{
    struct tb_peer *p = r->peer;
    bool sync = r->mode == TB_MODE_SYNCHRONOUS;
    if (sync || r->total >= TOKEN_MINIMUM) {
        int error = tb_request_number(r);
        if (error != TB_OK)
            return error;
    } else if (r->message_id == 0) {
        r->message_id = tb_slots_id(&p->engine->slots);
    }
    struct tb_envelope envelope;
    struct tb_spans spans;
    envelope_fill(r, &envelope.message);
    envelope.message.kind = TB_KIND_EAGER;
    envelope.message.offset = r->message_id;
    tb_buffer_spans(&r->buffer, r->from, r->total, &spans);
    int rc = tb_peer_transmit(p, &envelope, &spans, TB_STREAM_SHORT, token_of(r));
    if (rc != TB_OK && rc != TB_PENDING)
        return rc;
    p->credit -= r->total;
    p->engine->counters.eager++;
    r->pending = rc == TB_PENDING ? 1 : 0;
    tb_list_remove(&r->queue);
    if (sync || rc == TB_PENDING) {
        r->phase = TB_PHASE_SENT;
        tb_request_enlist(r, tb_contexts_find(&r->engine->contexts, r->context));
    } else {
        tb_request_finish(r, TB_OK);
    }
    return TB_OK;
}

/* Whether the receiver may read the bytes itself, and where. */
static bool remote_address(const struct tb_request *r, uint64_t *address)
{
    const struct tb_transport *t = r->peer->endpoint->transport;
    if ((t->capabilities & TB_CAP_REMOTE_READ) == 0 || r->total < t->remote_minimum || !r->buffer.type->dense)
        return false;
    *address = (uint64_t)(uintptr_t)r->buffer.base + r->from;
    return true;
}

static int envelope_ask(struct tb_request *r)
{
    int error = tb_request_number(r);
    if (error != TB_OK)
        return error;
    struct tb_envelope envelope;
    uint64_t address = 0;
    envelope_fill(r, &envelope.message);
    envelope.message.kind = TB_KIND_REQUEST;
    envelope.message.offset = r->message_id;
    struct tb_spans payload = tb_spans_of(NULL, 0);
    if (remote_address(r, &address)) {
        envelope.message.flags |= TB_MESSAGE_REMOTE;
        payload = tb_spans_of(&address, sizeof address);
    }
    int rc = tb_peer_transmit(r->peer, &envelope, &payload, TB_STREAM_SHORT, 0);
    if (rc != TB_OK)
        return rc;
    r->engine->counters.rendezvous++;
    tb_list_remove(&r->queue);
    r->phase = TB_PHASE_ASKED;
    tb_request_enlist(r, tb_contexts_find(&r->engine->contexts, r->context));
    return TB_OK;
}

/* The data follows its envelope at once. */
static int envelope_ahead(struct tb_request *r)
{
    struct tb_peer *p = r->peer;
    int error = tb_request_number(r);
    if (error != TB_OK)
        return error;
    struct tb_envelope envelope;
    envelope_fill(r, &envelope.message);
    envelope.message.kind = TB_KIND_REQUEST;
    envelope.message.flags |= TB_MESSAGE_AHEAD;
    envelope.message.offset = r->remote_id = r->message_id;
    struct tb_spans nothing = tb_spans_of(NULL, 0);
    int rc = tb_peer_transmit(p, &envelope, &nothing, TB_STREAM_SHORT, 0);
    if (rc != TB_OK)
        return rc;
    p->credit -= r->total;
    p->engine->counters.ahead++;
    tb_list_remove(&r->queue);
    r->phase = TB_PHASE_AHEAD;
    tb_request_enlist(r, tb_contexts_find(&r->engine->contexts, r->context));
    p->engine->waiting.stirred = true;
    tb_port_start(&p->engine->ports, p->port, r);
    return TB_OK;
}

static bool is_ahead(const struct tb_request *r)
{
    uint64_t address;
    return r->mode != TB_MODE_SYNCHRONOUS && tb_peer_takes_ahead(r->peer, r->context, r->total, r->peer->ahead_out) &&
           !remote_address(r, &address) && tb_peer_has_credit(r->peer, r->total);
}

int tb_send_envelope(struct tb_request *r)
{
    struct tb_peer *p = r->peer;
    if (p->error != TB_OK)
        return tb_peer_error(p);
    /* What waits to be matched does not leave in pieces, so that it is one frame even where that is cut. */
    bool whole = r->mode == TB_MODE_SYNCHRONOUS && r->total <= p->short_limit;
    bool eager = (r->total <= p->eager_limit || whole) && tb_peer_has_credit(p, r->total);
    int rc = r->phase == TB_PHASE_INVITED  ? tb_cast_sender.invite(r)
             : r->mode == TB_MODE_TOGETHER ? envelope_ask(r)
             : eager                       ? envelope_eager(r)
             : is_ahead(r)                 ? envelope_ahead(r)
                                           : envelope_ask(r);
    if (rc < 0 && rc != TB_ERR_MEMORY) {
        tb_peer_break(p, rc);
        rc = tb_peer_error(p);
    }
    return rc;
}

void tb_send_start(struct tb_context *c, struct tb_request *r, const struct tb_part *part, uint32_t to, uint64_t match,
                   enum tb_mode mode)
{
    struct tb_engine *e = c->channel->engine;
    int rc = TB_OK;
    tb_request_begin(r, c, TB_REQUEST_SEND);
    e->sends++;
    r->mode = (uint8_t)mode;
    r->buffer = *part->buffer;
    r->from = part->from;
    r->room = r->length = r->total = part->length;
    r->match = match;
    r->rank = to;
    r->status.source = c->channel->rank;
    r->status.match = match;
    r->status.bytes = part->length;
    struct tb_peer *p = r->peer = tb_channel_peer(c->channel, to);
    if (p == NULL) {
        tb_request_finish(r, TB_ERR_MEMORY);
        return;
    }
    if (p->self) {
        rc = self_send(c, part, match, mode, r);
        if (rc != TB_PENDING) {
            tb_request_finish(r, rc);
            return;
        }
        r->phase = TB_PHASE_HELD;
        tb_request_enlist(r, c);
        return;
    }
    if (!tb_stranger_hears(p, c->id)) {
        tb_request_finish(r, TB_ERR_ARGUMENT);
        return;
    }
    if (p->endpoint == NULL && p->error == TB_OK) {
        rc = tb_peer_reach(p);
        if (rc == TB_ERR_MEMORY) { /* for the moment */
            tb_request_finish(r, rc);
            return;
        }
        if (rc != TB_OK)
            tb_peer_break(p, rc);
    }
    rc = tb_list_empty(&p->envelopes) ? tb_send_envelope(r) : TB_AGAIN;
    if (rc == TB_AGAIN) {
        r->phase = TB_PHASE_QUEUED;
        tb_request_enlist(r, c);
        tb_list_append(&p->envelopes, &r->queue);
        tb_peer_queue(p);
    } else if (rc < 0) {
        tb_request_finish(r, rc);
    }
}

void tb_send_post(struct tb_channel *channel, struct tb_request *request, const struct tb_buffer *buffer, uint32_t to,
                  uint64_t match, enum tb_mode mode)
{
    struct tb_part part = {buffer, 0, tb_buffer_bytes(buffer)};
    struct tb_engine *e = channel->engine;
    tb_engine_lock(e);
    tb_send_start(channel->point, request, &part, to, match, mode);
    tb_engine_unlock(e);
}

/* ---- what the receiver says -------------------------------------------------------------------------------------- */

/* A send of ours to this peer, or NULL: the answer came too late, or makes no sense. */
static struct tb_request *send_find(struct tb_peer *p, uint64_t id)
{
    struct tb_request *r = tb_request_find(p->engine, id, TB_REQUEST_SEND);
    return r != NULL && r->peer == p ? r : NULL;
}

void tb_send_cleared(struct tb_peer *p, const struct tb_message *m, const void *payload, size_t length)
{
    struct tb_request *r = send_find(p, m->match);
    if (r != NULL && r->phase == TB_PHASE_TOGETHER)
        tb_cast_sender.refused(r);
    if (r == NULL || r->phase != TB_PHASE_ASKED || m->length > r->total)
        return;
    if (r->mode == TB_MODE_TOGETHER && m->length == r->total && m->length > 0) {
        r->remote_id = m->offset;
        tb_cast_sender.cleared(r);
        return;
    }
    r->total = m->length;
    r->remote_id = m->offset;
    if (r->total == 0) {
        tb_request_finish(r, TB_OK);
        return;
    }
    r->phase = TB_PHASE_BULK;
    p->engine->waiting.stirred = true;
    tb_port_start(&p->engine->ports, p->port, r);
}

void tb_send_matched(struct tb_peer *p, const struct tb_message *m, const void *payload, size_t length)
{
    struct tb_request *r = send_find(p, m->match);
    if (r == NULL || (r->phase != TB_PHASE_ASKED && r->phase != TB_PHASE_SENT))
        return;
    if (r->pending == 0)
        tb_request_finish(r, TB_OK);
    else
        r->phase = TB_PHASE_TAIL;
}

void tb_send_cancelled(struct tb_peer *p, const struct tb_message *m, const void *payload, size_t length)
{
    /* A message that was sent without a slot is found among all of the peer's; cancelling is rare. */
    struct tb_request *r = send_find(p, m->match), *other;
    if (r == NULL)
        TB_LIST_EACH (other, &p->requests, struct tb_request, on_peer)
            if (other->kind == TB_REQUEST_SEND && other->cancelling && other->message_id == m->match) {
                r = other;
                break;
            }
    if (r == NULL || !r->cancelling)
        return;
    r->cancelling = false;
    if (m->length != 0) {
        r->status.cancelled = true;
        r->status.bytes = 0;
    }
    /* What was not asked for is sent to its end: the receiver counts on it. */
    if (r->phase == TB_PHASE_AHEAD || r->phase == TB_PHASE_LEAVING)
        return;
    if (m->length != 0 || r->phase == TB_PHASE_RECALLED)
        tb_request_finish(r, TB_OK);
}

/* Everything is out. The receiver, who was perhaps asked to forget it, decides. */
static void send_gone(struct tb_request *r)
{
    bool asked = r->cancelling && r->phase != TB_PHASE_BULK && r->phase != TB_PHASE_TAIL;
    if (asked)
        r->phase = TB_PHASE_RECALLED;
    else
        tb_request_finish(r, TB_OK);
}

void tb_send_accepted(struct tb_request *r)
{
    tb_list_remove(&r->queue);
    if (r->pending == 0)
        send_gone(r);
    else
        r->phase = r->phase == TB_PHASE_AHEAD ? TB_PHASE_LEAVING : TB_PHASE_TAIL;
}

void tb_send_left(struct tb_engine *e, uint64_t token, int error)
{
    struct tb_request *r = tb_request_find(e, token, TB_REQUEST_SEND);
    if (r == NULL || error != TB_OK)
        return; /* an error: `broken` follows */
    TB_ASSERT(r->pending > 0);
    r->pending--;
    bool out = r->phase == TB_PHASE_TAIL || r->phase == TB_PHASE_LEAVING ||
               (r->phase == TB_PHASE_SENT && r->mode != TB_MODE_SYNCHRONOUS);
    if (out && r->pending == 0)
        send_gone(r);
}
