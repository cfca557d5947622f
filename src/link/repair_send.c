/* Repair, outwards: the copies of frames that were sent, and what is sent. */
#include "link/repair_state.h"

#include <stdlib.h>

/* What is sent leaves some room for what comes early: if that had to be dropped, most of it would be sent twice. */
#define SEND_TOTAL (TB_REPAIR_TOTAL_BYTES / 4 * 3)

/* ---- copies ------------------------------------------------------------------------------------------------------ */

struct tb_repair_copy *tb_repair_copy_make(struct tb_repair *r, const struct tb_message *message, uint32_t length,
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
        r->around.busy = true;
    }
}

void tb_repair_out_pop(struct tb_repair *r, struct tb_repair_peer *p)
{
    struct tb_repair_copy **place = tb_repair_slot(p->out, p->first), *c = *place;
    TB_ASSERT(c != NULL);
    p->waiting -= c->waiting;
    p->out_bytes -= c->length;
    r->outstanding--;
    tb_repair_copy_free(r, c);
    *place = NULL;
    p->first++;
}

void tb_repair_out_arrived(struct tb_repair_peer *p, struct tb_repair_copy *c)
{
    p->waiting -= c->waiting;
    c->waiting = false;
    c->arrived = true;
}

void tb_repair_out_again(struct tb_repair_peer *p, struct tb_repair_copy *c)
{
    p->waiting += !c->waiting;
    c->waiting = true;
}

/* The newest frame has not left. */
static void out_take_back(struct tb_repair *r, struct tb_repair_peer *p)
{
    struct tb_repair_copy **place = tb_repair_slot(p->out, --p->next);
    p->waiting--;
    p->out_bytes -= (*place)->length;
    r->outstanding--;
    r->counters.sent--;
    tb_repair_copy_free(r, *place);
    *place = NULL;
}

/* ---- frames ------------------------------------------------------------------------------------------------------ */

uint32_t tb_repair_check(uint32_t payload_check, const struct tb_envelope *envelope)
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
        check_put(c->payload + bytes, tb_repair_check(c->check, &c->envelope));
        bytes += sizeof(c->check);
    }
    struct tb_spans payload = tb_spans_of(c->payload, bytes);
    int result = r->around.head.inner->table->send(p->inner, &c->envelope, &payload, c->stream, NULL);
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
    p->unanswered = 0;
    p->answer_now = false;
    if (p->timer == TB_NEVER)
        p->timer = now + p->patience;
    return TB_OK;
}

int tb_repair_transmit(struct tb_repair *r, struct tb_repair_peer *p, uint64_t now)
{
    int count = 0;
    for (uint32_t s = p->first; p->waiting > 0 && s != p->next; s++) {
        struct tb_repair_copy *c = *tb_repair_slot(p->out, s);
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

int tb_repair_link_send(struct tb_repair *r, struct tb_repair_peer *p, uint64_t what)
{
    struct tb_envelope envelope = {.message = {.kind = TB_KIND_LINK, .length = what, .match = tb_repair_gaps(p)}};
    char bytes[4];
    size_t length = 0;
    routing_fill(r, p, 0, &envelope);
    if (r->checked) {
        check_put(bytes, tb_repair_check(0, &envelope));
        length = sizeof bytes;
    }
    struct tb_spans payload = tb_spans_of(bytes, length);
    int result = r->around.head.inner->table->send(p->inner, &envelope, &payload, TB_STREAM_SHORT, NULL);
    if (result == TB_OK) {
        p->unanswered = 0;
        p->answer_now = false;
        r->counters.acknowledged++;
    }
    return result;
}

static int refuse(struct tb_repair *r, struct tb_repair_peer *p)
{
    p->wanted = true;
    tb_decorator_wake(&r->around, &p->active, TB_NEVER);
    return TB_AGAIN;
}

/* A frame is taken only if it leaves at once: who has sent a message may compute for hours, and nobody would carry on
 * with what lies here. */
int tb_repair_send(struct tb_endpoint *endpoint, const struct tb_envelope *envelope, struct tb_spans *payload,
                   enum tb_stream stream, void *token)
{
    (void)token;
    struct tb_repair_peer *p = (struct tb_repair_peer *)endpoint;
    struct tb_repair *r = (struct tb_repair *)endpoint->transport;
    if (p->broken)
        return tb_error(TB_ERR_PEER, "rank %u cannot be reached any more", p->head.proc.index);
    if (envelope->message.flags & TB_MESSAGE_ROUTED)
        return tb_error(TB_ERR_UNSUPPORTED, "a routed frame cannot pass a link that repairs");
    TB_ASSERT(payload->left <= r->around.head.max_payload);
    uint32_t length = (uint32_t)payload->left;
    struct tb_repair_copy *c = NULL;
    if (!p->stuck[stream] && p->next - p->first < TB_REPAIR_WINDOW && p->out_bytes + length <= TB_REPAIR_PEER_BYTES)
        c = tb_repair_copy_make(r, &envelope->message, length, p->out_bytes == 0 ? TB_REPAIR_TOTAL_BYTES : SEND_TOTAL);
    if (c == NULL)
        return refuse(r, p);
    struct tb_spans rest = *payload;
    tb_spans_gather(&rest, c->payload, length);
    c->stream = stream;
    if (r->checked)
        c->check = tb_crc32c(0, c->payload, length);
    c->waiting = true;
    uint64_t now = tb_clock_now(r->around.clock);
    if (p->first == p->next)
        p->heard = now;
    *tb_repair_slot(p->out, p->next++) = c;
    p->waiting++;
    p->out_bytes += length;
    r->outstanding++;
    r->counters.sent++;
    tb_repair_transmit(r, p, now);
    if (!p->broken && c->waiting) {
        out_take_back(r, p);
        return refuse(r, p);
    }
    p->talked = true;
    *payload = rest;
    tb_decorator_wake(&r->around, &p->active, p->timer);
    return TB_OK;
}
