#include "link/repair_state.h"

#include <poll.h>
#include <stdlib.h>

#define MS              TB_REPAIR_MS
#define RESEND_ATTEMPTS 8u /* at least so many before a process is taken for unreachable */
#define LINGER_POLLS    64
/* What is sent leaves some room for what comes early: if that had to be dropped, most of it would be sent twice. */
#define SEND_TOTAL (TB_REPAIR_TOTAL_BYTES / 4 * 3)
#define ROOM_FIRST (512u << 10)
#define ABSENT     (100 * MS) /* wide: see here_now */

/* What a frame of kind LINK says (it has no number; all others have one, which may wrap to 0), in its length field.
 * Which frames beyond the acknowledged one are here is told by `match`, in wide mode by the payload. There, `offset` is
 * the sender's time in a probe; answers bring it back. */
enum { LINK_ACKNOWLEDGE, LINK_GOODBYE, LINK_GOODBYE_ANSWER, LINK_PROBE };

static const struct tb_repair_profile near_profile = {
    .window = TB_REPAIR_WINDOW,
    .ack_every = 8,
    .ack_delay = MS / 2,
    .first = 20 * MS,
    .least = 2 * MS,
    .most = 200 * MS,
    .variation = 8 * MS, /* what a crowded machine adds to round trips is not waited for in full */
    .linger = 100 * MS,
    .linger_rounds = 100,
    .goodbye_interval = 2 * MS,
};

static const struct tb_repair_profile wide_profile = {
    .window = TB_REPAIR_WIDE_WINDOW,
    .ack_every = TB_REPAIR_WIDE_WINDOW / 8,
    .ack_delay = 1 * MS,
    .first = 1000 * MS,
    .least = 200 * MS,
    .most = 5000 * MS,
    .variation = TB_NEVER,
    .linger = 2000 * MS,
    .linger_rounds = 2000,
    .goodbye_interval = 250 * MS,
};

/* ---- copies ----------------------------------------------------------------------------------------------------- */

/* NULL: all copies together have reached `limit`, or there is no memory. */
static struct tb_repair_copy *copy_make(struct tb_repair *r, const struct tb_message *message, uint32_t length,
                                        size_t limit)
{
    if (r->kept + length > limit) {
        r->starved = true;
        return NULL;
    }
    struct tb_repair_copy *c = malloc(sizeof(*c) + length + sizeof(c->check));
    if (c == NULL)
        return NULL;
    *c = (struct tb_repair_copy){.envelope.message = *message, .length = length};
    r->kept += length;
    return c;
}

void tb_repair_copy_free(struct tb_repair *r, struct tb_repair_copy *c)
{
    r->kept -= c->length;
    free(c);
    if (r->starved) {
        r->starved = false;
        r->busy = true;
    }
}

void tb_repair_out_pop(struct tb_repair *r, struct tb_repair_peer *p)
{
    struct tb_repair_copy **place = tb_repair_slot(r, p->out, p->first), *c = *place;
    TB_ASSERT(c != NULL);
    p->waiting -= c->waiting;
    p->out_bytes -= c->length;
    p->arrived_bytes -= c->arrived ? c->length : 0;
    r->outstanding--;
    tb_repair_copy_free(r, c);
    *place = NULL;
    p->first++;
}

/* The newest frame has not left. */
static void out_take_back(struct tb_repair *r, struct tb_repair_peer *p)
{
    struct tb_repair_copy **place = tb_repair_slot(r, p->out, --p->next);
    p->waiting--;
    p->out_bytes -= (*place)->length;
    r->outstanding--;
    r->counters.sent--;
    tb_repair_copy_free(r, *place);
    *place = NULL;
}

static void peer_forget(struct tb_repair *r, struct tb_repair_peer *p)
{
    while (p->first != p->next)
        tb_repair_out_pop(r, p);
    for (uint32_t i = 0; p->early > 0 && i < r->profile.window; i++)
        if (p->in[i] != NULL) {
            tb_repair_copy_free(r, p->in[i]);
            p->in[i] = NULL;
            p->early--;
        }
    p->timer = TB_NEVER;
    p->unanswered = 0;
    p->answer_now = false;
    tb_list_remove(&p->active);
}

/* Nothing more will pass. The story has been told. */
static void peer_break(struct tb_repair *r, struct tb_repair_peer *p, int error)
{
    if (p->broken)
        return;
    p->broken = true;
    peer_forget(r, p);
    if (!r->closing)
        r->up.broken(r->up.context, &p->head, error);
}

/* ---- the check -------------------------------------------------------------------------------------------------- */

/* Of the payload first, so that a frame that is sent again with another acknowledgement needs only the rest. */
static uint32_t envelope_check(uint32_t payload_check, const struct tb_envelope *envelope)
{
    char bytes[sizeof(*envelope)];
    tb_wire_put_envelope(bytes, envelope);
    return tb_crc32c(payload_check, bytes, sizeof(bytes));
}

static void check_put(char *to, uint32_t check)
{
    for (int i = 0; i < 4; i++)
        to[i] = (char)(check >> 8 * i);
}

static uint32_t check_get(const char *from)
{
    uint32_t check = 0;
    for (int i = 0; i < 4; i++)
        check |= (uint32_t)(uint8_t)from[i] << 8 * i;
    return check;
}

/* ---- sending ---------------------------------------------------------------------------------------------------- */

static void routing_fill(struct tb_repair *r, struct tb_repair_peer *p, uint32_t sequence, struct tb_envelope *envelope)
{
    envelope->message.flags |= TB_MESSAGE_ROUTED;
    envelope->routing = (struct tb_routing){
        .source = r->self, .destination = p->head.proc, .sequence = sequence, .acknowledge = p->expected - 1};
}

static int copy_send(struct tb_repair *r, struct tb_repair_peer *p, struct tb_repair_copy *c, uint32_t sequence,
                     uint64_t now)
{
    size_t bytes = c->length;
    routing_fill(r, p, sequence, &c->envelope);
    if (r->checked) {
        check_put(c->payload + bytes, envelope_check(c->check, &c->envelope));
        bytes += sizeof(c->check);
    }
    struct tb_spans payload = tb_spans_of(c->payload, bytes);
    int result = r->inner->table->send(p->inner, &c->envelope, &payload, c->stream, NULL);
    if (result == TB_AGAIN)
        return result;
    c->waiting = false;
    p->waiting--;
    if (result < 0)
        return result; /* `broken` follows */
    if (c->sends++ > 0)
        r->counters.repeated++;
    c->sent_at = now;
    if (c->sends == 1)
        c->first_at = now;
    if (r->inner->table->route != NULL)
        c->route = r->inner->table->route(p->inner);
    if (!r->wide || (p->early == 0 && !p->echo_owed)) { /* else the other side is to be told what is missing */
        p->unanswered = 0;
        p->unanswered_bytes = 0;
        p->answer_now = false;
    }
    if (p->timer == TB_NEVER)
        p->timer = now + p->patience;
    return TB_OK;
}

/* Sends what is to be sent, oldest first. */
static int peer_transmit(struct tb_repair *r, struct tb_repair_peer *p, uint64_t now)
{
    int count = 0;
    for (uint32_t s = p->first; p->waiting > 0 && s != p->next; s++) {
        struct tb_repair_copy *c = *tb_repair_slot(r, p->out, s);
        if (!c->waiting || p->stuck[c->stream])
            continue;
        int result = copy_send(r, p, c, s, now);
        if (result == TB_AGAIN)
            p->stuck[c->stream] = true;
        if (result < 0 || p->broken)
            break;
        count++;
    }
    return count;
}

/* Which frames beyond the acknowledged one are here: bit i stands for the frame i + 2 beyond, as the next one is not.
 */
static uint64_t arrivals(const struct tb_repair_peer *p)
{
    uint64_t bits = 0;
    for (uint32_t i = 0; i + 1 < TB_REPAIR_WINDOW; i++)
        if (p->in[(p->expected + 1 + i) % TB_REPAIR_WINDOW] != NULL)
            bits |= UINT64_C(1) << i;
    return bits;
}

/* The same in wide mode, as bytes. Returns how many are needed. */
static size_t arrivals_list(const struct tb_repair *r, const struct tb_repair_peer *p,
                            char bytes[TB_REPAIR_WIDE_WINDOW / 8])
{
    size_t length = 0;
    uint32_t seen = 0;
    memset(bytes, 0, TB_REPAIR_WIDE_WINDOW / 8);
    for (uint32_t i = 0; seen < p->early && i + 1 < r->profile.window; i++)
        if (*tb_repair_slot(r, p->in, p->expected + 1 + i) != NULL) {
            bytes[i / 8] = (char)((uint8_t)bytes[i / 8] | 1u << i % 8);
            length = i / 8 + 1;
            seen++;
        }
    return length;
}

/* A probe goes where bulk frames go, behind them: its answer means that they have arrived or never will. */
static int link_send(struct tb_repair *r, struct tb_repair_peer *p, uint64_t what)
{
    struct tb_envelope envelope = {.message = {.kind = TB_KIND_LINK, .length = what}};
    enum tb_stream stream = what == LINK_PROBE || p->astray ? TB_STREAM_BULK : TB_STREAM_SHORT;
    char bytes[TB_REPAIR_WIDE_WINDOW / 8 + 4];
    size_t length = 0;
    if (r->wide) {
        length = arrivals_list(r, p, bytes);
        envelope.message.offset = what == LINK_PROBE ? tb_clock_now(r->clock) : p->echo;
    } else {
        envelope.message.match = arrivals(p);
    }
    routing_fill(r, p, 0, &envelope);
    if (r->checked) {
        check_put(bytes + length, envelope_check(tb_crc32c(0, bytes, length), &envelope));
        length += 4;
    }
    struct tb_spans payload = tb_spans_of(bytes, length);
    int result = r->inner->table->send(p->inner, &envelope, &payload, stream, NULL);
    if (result == TB_OK) {
        p->unanswered = 0;
        p->unanswered_bytes = 0;
        p->astray = false;
        p->echo_owed = p->echo_owed && what == LINK_PROBE;
        p->answer_now = p->echo_owed;
        r->counters.acknowledged++;
    }
    return result;
}

static int refuse(struct tb_repair *r, struct tb_repair_peer *p)
{
    p->wanted = true;
    tb_repair_wake(r, p, TB_NEVER);
    return TB_AGAIN;
}

/* A frame is taken only if it leaves at once: who has sent a message may compute for hours, and nobody would carry on
 * with what lies here. */
static int repair_send(struct tb_endpoint *endpoint, const struct tb_envelope *envelope, struct tb_spans *payload,
                       enum tb_stream stream, void *token)
{
    (void)token;
    struct tb_repair_peer *p = (struct tb_repair_peer *)endpoint;
    struct tb_repair *r = (struct tb_repair *)endpoint->transport;
    if (p->broken)
        return tb_error(TB_ERR_PEER, "rank %u cannot be reached any more", p->head.proc.index);
    if (envelope->message.flags & TB_MESSAGE_ROUTED)
        return tb_error(TB_ERR_UNSUPPORTED, "a routed frame cannot pass a link that repairs");
    TB_ASSERT(payload->left <= r->head.max_payload);
    uint32_t length = (uint32_t)payload->left;
    struct tb_repair_copy *c = NULL;
    if (!p->stuck[stream] && p->next - p->first < r->profile.window && p->out_bytes + length <= r->peer_bytes &&
        p->out_bytes - p->arrived_bytes + length <= p->room)
        c = copy_make(r, &envelope->message, length, p->out_bytes == 0 ? TB_REPAIR_TOTAL_BYTES : SEND_TOTAL);
    if (c == NULL)
        return refuse(r, p);
    struct tb_spans rest = *payload;
    tb_spans_gather(&rest, c->payload, length);
    c->stream = stream;
    if (r->checked)
        c->check = tb_crc32c(0, c->payload, length);
    c->waiting = true;
    uint64_t now = tb_clock_now(r->clock);
    if (p->first == p->next)
        p->heard = now;
    *tb_repair_slot(r, p->out, p->next++) = c;
    p->waiting++;
    p->out_bytes += length;
    r->outstanding++;
    r->counters.sent++;
    peer_transmit(r, p, now);
    if (!p->broken && c->waiting) {
        out_take_back(r, p);
        return refuse(r, p);
    }
    p->talked = true;
    *payload = rest;
    tb_repair_wake(r, p, p->timer);
    return TB_OK;
}

/* ---- receiving -------------------------------------------------------------------------------------------------- */

static void hand_up(struct tb_repair *r, struct tb_repair_peer *p, const struct tb_message *message,
                    const char *payload, size_t length)
{
    struct tb_message clean = *message;
    clean.flags &= (uint16_t)~TB_MESSAGE_ROUTED;
    r->counters.received++;
    if (!r->closing)
        r->up.frame(r->up.context, &p->head, NULL, &clean, payload, length);
}

/* One more frame is to be acknowledged. */
static void owe_answer(struct tb_repair *r, struct tb_repair_peer *p, size_t length, uint64_t now)
{
    if (p->unanswered++ == 0)
        p->answer_by = now + r->profile.ack_delay;
    p->unanswered_bytes += length;
    if (p->unanswered >= r->profile.ack_every || (r->wide && p->unanswered_bytes >= r->peer_bytes / 8))
        p->answer_now = true;
}

/* Hands up the frame that was expected, and those that had waited for it. */
static void in_order(struct tb_repair *r, struct tb_repair_peer *p, const struct tb_message *message,
                     const char *payload, size_t length, uint64_t now)
{
    p->expected++;
    owe_answer(r, p, length, now);
    hand_up(r, p, message, payload, length);
    struct tb_repair_copy **next = tb_repair_slot(r, p->in, p->expected);
    while (!p->broken && *next != NULL) {
        struct tb_repair_copy *c = *next;
        *next = NULL;
        p->early--;
        p->expected++;
        p->answer_now = p->answer_now || !r->wide;
        p->unanswered++;
        hand_up(r, p, &c->envelope.message, c->payload, c->length);
        tb_repair_copy_free(r, c);
        next = tb_repair_slot(r, p->in, p->expected);
    }
    p->answer_now = p->answer_now || p->unanswered >= r->profile.ack_every;
}

static void too_early(struct tb_repair *r, struct tb_repair_peer *p, uint32_t sequence,
                      const struct tb_message *message, const char *payload, size_t length, uint64_t now)
{
    struct tb_repair_copy **place = tb_repair_slot(r, p->in, sequence);
    if (r->wide)
        owe_answer(r, p, length, now);
    else
        p->answer_now = true;
    struct tb_repair_copy *c = *place == NULL && length <= TB_REPAIR_PAYLOAD
                                   ? copy_make(r, message, (uint32_t)length, TB_REPAIR_TOTAL_BYTES)
                                   : NULL;
    if (c == NULL) {
        r->counters.dropped++;
        return;
    }
    memcpy(c->payload, payload, length);
    *place = c;
    p->early++;
    r->counters.reordered++;
}

static bool is_proc(struct tb_proc a, struct tb_proc b)
{
    return a.job == b.job && a.index == b.index;
}

/* Is this frame what it was when it was sent? Takes the check from its length. */
static bool intact(struct tb_repair *r, struct tb_repair_peer *p, const struct tb_routing *routing,
                   const struct tb_message *message, const char *payload, size_t *length)
{
    if (routing == NULL)
        return false;
    if (r->checked) {
        if (*length < sizeof(uint32_t))
            return false;
        *length -= sizeof(uint32_t);
        struct tb_envelope envelope = {*routing, *message};
        if (envelope_check(tb_crc32c(0, payload, *length), &envelope) != check_get(payload + *length))
            return false;
    }
    return is_proc(routing->source, p->head.proc) && is_proc(routing->destination, r->self);
}

/* The other side waits for an acknowledgement in vain: whatever its frames ask for, they have come before, or it asks
 * for nothing but this. */
static void answer_again(struct tb_repair *r, struct tb_repair_peer *p)
{
    p->answer_now = true;
    p->astray = r->wide;
    tb_repair_busy(r, p);
}

static void link_receive(struct tb_repair *r, struct tb_repair_peer *p, const struct tb_routing *routing,
                         const struct tb_message *message, const char *payload, size_t length, uint64_t now)
{
    if (!r->wide)
        tb_repair_gaps(r, p, routing->acknowledge, message->match, now);
    else if (!p->broken)
        tb_repair_arrivals(r, p, routing, message->length == LINK_PROBE ? 0 : message->offset, payload, length, now);
    if (message->length == LINK_PROBE && !p->broken && message->offset >= p->echo) {
        p->echo = message->offset;
        p->echo_owed = true;
        answer_again(r, p);
    }
    if (message->length == LINK_ACKNOWLEDGE || message->length >= LINK_PROBE)
        return;
    if (message->length == LINK_GOODBYE)
        link_send(r, p, LINK_GOODBYE_ANSWER);
    if (message->length == LINK_GOODBYE_ANSWER && !r->closing)
        return;
    p->left = true;
    if (!p->broken)
        tb_error(TB_ERR_CLOSED, "rank %u has said goodbye", p->head.proc.index);
    peer_break(r, p, TB_ERR_CLOSED);
}

static void up_frame(void *context, struct tb_endpoint *from, const struct tb_routing *routing,
                     const struct tb_message *message, const void *payload, size_t length)
{
    struct tb_repair *r = context;
    struct tb_repair_peer *p = from->user;
    if (p == NULL || !intact(r, p, routing, message, payload, &length)) {
        r->counters.corrupted++;
        return;
    }
    uint64_t now = tb_clock_now(r->clock);
    tb_repair_hear(r, p, now);
    if (!p->broken)
        tb_repair_acknowledge(r, p, routing->acknowledge, now);
    if (message->kind == TB_KIND_LINK) {
        link_receive(r, p, routing, message, payload, length, now);
        return;
    }
    if (p->broken)
        return;
    p->talked = true;
    int32_t ahead = tb_repair_distance(p->expected, routing->sequence);
    if (ahead == 0) {
        in_order(r, p, message, payload, length, now);
    } else if (ahead > 0 && ahead < (int32_t)r->profile.window) {
        too_early(r, p, routing->sequence, message, payload, length, now);
    } else {
        r->counters.dropped++;
        answer_again(r, p);
    }
    if (p->broken)
        return;
    if (p->answer_now)
        tb_repair_busy(r, p);
    else if (p->unanswered > 0)
        tb_repair_wake(r, p, p->answer_by);
}

/* ---- timers ----------------------------------------------------------------------------------------------------- */

/* Wide: what is known to be lost goes again. If nothing is known, a probe asks: the other side may be computing, and
 * its silence is no failure, however long; agents judge who is gone. */
static void timer_probe(struct tb_repair *r, struct tb_repair_peer *p, uint64_t now)
{
    p->timer = now + p->patience;
    if (tb_repair_missing(r, p, now) || p->timer < now + p->patience)
        return;
    if (link_send(r, p, LINK_PROBE) == TB_OK) {
        p->timeouts++;
        p->recover = p->next - 1;
        p->asked_at = p->asked_at > 0 ? p->asked_at : now;
    }
    p->patience = 2 * p->patience < r->profile.most ? 2 * p->patience : r->profile.most;
    p->timer = now + p->patience;
}

/* The oldest frame has waited too long for its acknowledgement. */
static void timer_expired(struct tb_repair *r, struct tb_repair_peer *p, uint64_t now)
{
    if (r->wide) {
        timer_probe(r, p, now);
        return;
    }
    if (p->timeouts >= RESEND_ATTEMPTS && now - p->heard > r->give_up) {
        tb_error(TB_ERR_PEER, "rank %u has not answered rank %u for %.1f s, though %u frames were sent again",
                 p->head.proc.index, r->self.index, (double)(now - p->heard) / 1e9, p->timeouts);
        peer_break(r, p, TB_ERR_PEER);
        return;
    }
    struct tb_repair_copy *c = *tb_repair_slot(r, p->out, p->first);
    p->timeouts++;
    p->recover = p->next - 1;
    p->waiting += !c->waiting;
    c->waiting = true;
    p->patience = 2 * p->patience < r->profile.most ? 2 * p->patience : r->profile.most;
    p->timer = now + p->patience;
}

/* Worth telling the owner. In wide mode the window is long, and refilling it frame by frame costs more than a break. */
static bool peer_has_room(const struct tb_repair *r, const struct tb_repair_peer *p)
{
    uint32_t frames = p->next - p->first;
    if (!r->wide)
        return frames < r->profile.window;
    return frames <= r->profile.window - r->profile.window / 16 && p->out_bytes <= r->peer_bytes - r->peer_bytes / 16 &&
           p->out_bytes - p->arrived_bytes <= p->room - p->room / 16;
}

/* Does what is due for a process. Returns what was sent. */
static int peer_serve(struct tb_repair *r, struct tb_repair_peer *p, uint64_t now)
{
    int count = 0;
    if (p->timer <= now)
        timer_expired(r, p, now);
    if (!p->broken && p->waiting > 0)
        count += peer_transmit(r, p, now);
    if (!p->broken && (p->answer_now || (p->unanswered > 0 && p->answer_by <= now))) {
        int result = link_send(r, p, LINK_ACKNOWLEDGE);
        count += result == TB_OK;
        if (result == TB_AGAIN) { /* no hurry: the other side repeats, and asks again */
            p->answer_now = false;
            p->unanswered = p->unanswered > 0 ? p->unanswered : 1;
            p->answer_by = now + r->profile.ack_delay;
            p->astray = r->wide && !p->astray; /* perhaps the other stream has room */
        }
    }
    if (!p->broken && p->wanted && peer_has_room(r, p) && !(p->stuck[TB_STREAM_SHORT] && p->stuck[TB_STREAM_BULK])) {
        p->wanted = false;
        r->up.writable(r->up.context, &p->head);
        count++;
    }
    if (p->broken)
        return count + 1;
    if (p->timer < r->next_timer)
        r->next_timer = p->timer;
    if (p->unanswered > 0 && p->answer_by < r->next_timer)
        r->next_timer = p->answer_by;
    if (p->first == p->next && p->unanswered == 0 && !p->answer_now && !p->wanted)
        tb_list_remove(&p->active);
    return count;
}

static int repair_serve(struct tb_repair *r)
{
    if (tb_list_empty(&r->active))
        return 0;
    uint64_t now = tb_clock_now(r->clock);
    if (!r->busy && now < r->next_timer)
        return 0;
    r->busy = false;
    r->next_timer = TB_NEVER;
    int count = 0;
    uint32_t todo = 0;
    for (struct tb_list *at = r->active.next; at != &r->active; at = at->next)
        todo++;
    /* Serving may call up, and the owner may send: anyone may enter or leave the list meanwhile. */
    while (todo-- > 0 && !tb_list_empty(&r->active)) {
        struct tb_repair_peer *p = TB_CONTAINER(r->active.next, struct tb_repair_peer, active);
        tb_list_remove(&p->active);
        tb_list_append(&r->active, &p->active);
        count += peer_serve(r, p, now);
    }
    return count;
}

/* ---- the transport ---------------------------------------------------------------------------------------------- */

/* Wide: arrivals are looked at now. Who has not done so for long was computing, unless it slept until one came. */
static void here_now(struct tb_repair *r, bool slept)
{
    if (!r->wide)
        return;
    uint64_t now = tb_clock_now(r->clock);
    if (!slept && now - r->here > ABSENT)
        r->returned = now;
    r->here = now;
}

static int repair_poll(struct tb_transport *transport)
{
    struct tb_repair *r = (struct tb_repair *)transport;
    here_now(r, false);
    int count = r->inner->table->poll(r->inner);
    return count + repair_serve(r);
}

static bool repair_arm(struct tb_transport *transport)
{
    struct tb_repair *r = (struct tb_repair *)transport;
    here_now(r, false);
    return !r->busy && r->inner->table->arm(r->inner);
}

static void repair_disarm(struct tb_transport *transport)
{
    struct tb_repair *r = (struct tb_repair *)transport;
    here_now(r, true);
    r->inner->table->disarm(r->inner);
}

static int repair_descriptor(struct tb_transport *transport)
{
    struct tb_repair *r = (struct tb_repair *)transport;
    return r->inner->table->descriptor(r->inner);
}

static uint64_t repair_deadline(struct tb_transport *transport)
{
    struct tb_repair *r = (struct tb_repair *)transport;
    uint64_t inner = r->inner->table->deadline(r->inner);
    uint64_t own = tb_list_empty(&r->active) ? TB_NEVER : r->next_timer;
    return own < inner ? own : inner;
}

/* Wide: a process that has left, and whose goodbye was lost, never answers. When a link could not have been down for
 * so long, there is nobody left to wait for. Who has computed meanwhile has not heard anybody, though. */
static bool peers_silent(const struct tb_repair *r)
{
    uint64_t now = tb_clock_now(r->clock);
    struct tb_repair_peer *p;
    TB_LIST_EACH (p, &r->peers, struct tb_repair_peer, of_repair)
        if (p->first != p->next &&
            (now - p->heard < tb_param.link_patience || now - r->returned < tb_param.link_patience))
            return false;
    return true;
}

static bool repair_idle(struct tb_transport *transport)
{
    struct tb_repair *r = (struct tb_repair *)transport;
    return (r->outstanding == 0 || (r->wide && peers_silent(r))) && r->inner->table->idle(r->inner);
}

static void repair_drop(struct tb_endpoint *endpoint)
{
    struct tb_repair_peer *p = (struct tb_repair_peer *)endpoint;
    struct tb_repair *r = (struct tb_repair *)endpoint->transport;
    p->broken = p->left = true; /* nobody is told, and no goodbye is waited for */
    peer_forget(r, p);
    if (r->inner->table->drop != NULL)
        r->inner->table->drop(p->inner);
}

/* ---- endpoints and calls up -------------------------------------------------------------------------------------- */

static struct tb_repair_peer *peer_make(struct tb_repair *r, struct tb_endpoint *inner)
{
    struct tb_repair_peer *p = calloc(1, sizeof(*p) + 2 * r->profile.window * sizeof(struct tb_repair_copy *));
    if (p == NULL)
        return NULL;
    p->out = p->windows;
    p->in = p->windows + r->profile.window;
    p->head = (struct tb_endpoint){.transport = &r->head, .proc = inner->proc};
    p->inner = inner;
    p->first = p->next = p->expected = 1;
    p->patience = r->profile.first;
    p->room = r->wide && r->peer_bytes > ROOM_FIRST ? ROOM_FIRST : r->peer_bytes;
    p->timer = TB_NEVER;
    tb_list_init(&p->active);
    tb_list_append(&r->peers, &p->of_repair);
    inner->user = p;
    return p;
}

static int repair_endpoint(struct tb_transport *transport, struct tb_proc proc, struct tb_endpoint **endpoint)
{
    struct tb_repair *r = (struct tb_repair *)transport;
    struct tb_endpoint *inner;
    int error = r->inner->table->endpoint(r->inner, proc, &inner);
    if (error != TB_OK)
        return error;
    struct tb_repair_peer *p = inner->user != NULL ? inner->user : peer_make(r, inner);
    if (p == NULL)
        return tb_error(TB_ERR_MEMORY, "no memory for the way to rank %u", proc.index);
    *endpoint = &p->head;
    return TB_OK;
}

static void up_sent(void *context, struct tb_endpoint *to, void *token, int error)
{
    (void)context, (void)to, (void)token, (void)error; /* no frame of ours has a token */
}

static void up_writable(void *context, struct tb_endpoint *to)
{
    struct tb_repair *r = context;
    struct tb_repair_peer *p = to->user;
    if (p == NULL || p->broken)
        return;
    p->stuck[TB_STREAM_SHORT] = p->stuck[TB_STREAM_BULK] = false;
    if (p->waiting > 0 || p->wanted)
        tb_repair_busy(r, p);
}

static void up_opened(void *context, struct tb_endpoint *from)
{
    struct tb_repair *r = context;
    struct tb_repair_peer *p = peer_make(r, from);
    if (p != NULL && r->up.opened != NULL && !r->closing)
        r->up.opened(r->up.context, &p->head);
}

static void up_broken(void *context, struct tb_endpoint *with, int error)
{
    struct tb_repair *r = context;
    struct tb_repair_peer *p = with->user;
    if (p == NULL)
        return;
    p->left = true; /* whatever it was: there is nobody to wait for */
    peer_break(r, p, error);
}

/* ---- opening and closing ---------------------------------------------------------------------------------------- */

int tb_repair_open(const struct tb_transport_table *table, const struct tb_transport_config *config,
                   struct tb_transport **transport)
{
    struct tb_repair *r = calloc(1, sizeof(*r));
    if (r == NULL)
        return tb_error(TB_ERR_MEMORY, "no memory for repairing frames");
    r->up = config->upcalls;
    r->self = config->self;
    r->clock = config->clock;
    r->arrivals = config->arrivals;
    r->arrivals_context = config->connect_context;
    r->next_timer = TB_NEVER;
    r->here = tb_clock_now(r->clock);
    r->give_up = tb_param.link_timeout;
    tb_list_init(&r->peers);
    tb_list_init(&r->active);
    struct tb_transport_config inner = *config;
    inner.upcalls = (struct tb_upcalls){.context = r,
                                        .frame = up_frame,
                                        .sent = up_sent,
                                        .writable = up_writable,
                                        .opened = up_opened,
                                        .broken = up_broken};
    int error = table->open(&inner, &r->inner);
    if (error != TB_OK) {
        free(r);
        return error;
    }
    r->wide = r->inner->wide;
    r->profile = r->wide ? wide_profile : near_profile;
    r->peer_bytes = r->wide ? tb_param.relay_window : TB_REPAIR_PEER_BYTES;
    r->checked = (r->inner->capabilities & TB_CAP_INTEGRITY) == 0;
    uint32_t payload = r->inner->max_payload - (r->checked ? sizeof(uint32_t) : 0);
    r->head = (struct tb_transport){.table = &tb_transport_repair, .capabilities = TB_CAP_DEPENDABLE};
    r->head.max_payload = payload < TB_REPAIR_PAYLOAD ? payload : TB_REPAIR_PAYLOAD;
    r->head.eager_limit = r->inner->eager_limit < r->head.max_payload ? r->inner->eager_limit : r->head.max_payload;
    *transport = &r->head;
    return TB_OK;
}

/* Says goodbye to everyone who has not done so. */
static void goodbyes_send(struct tb_repair *r)
{
    struct tb_repair_peer *p;
    TB_LIST_EACH (p, &r->peers, struct tb_repair_peer, of_repair)
        if (p->talked && !p->left)
            link_send(r, p, LINK_GOODBYE);
}

static uint32_t goodbyes_missing(const struct tb_repair *r)
{
    uint32_t count = 0;
    struct tb_repair_peer *p;
    TB_LIST_EACH (p, &r->peers, struct tb_repair_peer, of_repair)
        count += p->talked && !p->left;
    return count;
}

static void repair_linger(struct tb_repair *r)
{
    uint64_t until = tb_clock_now(r->clock) + r->profile.linger, say = 0;
    for (int round = 0; round < r->profile.linger_rounds; round++) {
        uint64_t now = tb_clock_now(r->clock);
        if (now >= until)
            break;
        if (now >= say) {
            goodbyes_send(r);
            say = now + r->profile.goodbye_interval;
        }
        for (int i = 0; i < LINGER_POLLS && r->inner->table->poll(r->inner) > 0; i++)
            continue;
        if (goodbyes_missing(r) == 0 && (!r->wide || r->inner->table->idle(r->inner)))
            break;
        if (r->wide && r->arrivals != NULL) /* a gateway may have to connect to us before it can pass on an answer */
            r->arrivals(r->arrivals_context);
        struct pollfd wait = {.fd = r->inner->table->descriptor(r->inner), .events = POLLIN};
        poll(&wait, wait.fd >= 0, 1);
    }
}

static void repair_close(struct tb_transport *transport)
{
    struct tb_repair *r = (struct tb_repair *)transport;
    r->closing = true;
    repair_linger(r);
    const struct tb_link_counters *n = &r->counters;
    tb_log(
        TB_LOG_DEBUG, "link",
        "%s: sent %llu, received %llu, repeated %llu, acknowledged %llu, dropped %llu, corrupted %llu, reordered %llu",
        tb_link_innermost(r->inner)->table->name, (unsigned long long)n->sent, (unsigned long long)n->received,
        (unsigned long long)n->repeated, (unsigned long long)n->acknowledged, (unsigned long long)n->dropped,
        (unsigned long long)n->corrupted, (unsigned long long)n->reordered);
    struct tb_repair_peer *p;
    TB_LIST_EACH (p, &r->peers, struct tb_repair_peer, of_repair)
        peer_forget(r, p);
    r->inner->table->close(r->inner);
    TB_LIST_EACH (p, &r->peers, struct tb_repair_peer, of_repair)
        free(p);
    free(r);
}

struct tb_transport *tb_repair_inner(const struct tb_transport *transport)
{
    TB_ASSERT(transport->table == &tb_transport_repair);
    return ((const struct tb_repair *)transport)->inner;
}

void tb_repair_count(const struct tb_transport *transport, struct tb_link_counters *counters)
{
    TB_ASSERT(transport->table == &tb_transport_repair);
    *counters = ((const struct tb_repair *)transport)->counters;
}

size_t tb_repair_kept(const struct tb_transport *transport)
{
    TB_ASSERT(transport->table == &tb_transport_repair);
    return ((const struct tb_repair *)transport)->kept;
}

static int repair_open(const struct tb_transport_config *config, struct tb_transport **transport)
{
    TB_ASSERT(config->inner != NULL);
    return tb_repair_open(config->inner, config, transport);
}

const struct tb_transport_table tb_transport_repair = {
    .name = "repair",
    .open = repair_open,
    .close = repair_close,
    .endpoint = repair_endpoint,
    .send = repair_send,
    .poll = repair_poll,
    .arm = repair_arm,
    .disarm = repair_disarm,
    .descriptor = repair_descriptor,
    .deadline = repair_deadline,
    .idle = repair_idle,
    .drop = repair_drop,
};
