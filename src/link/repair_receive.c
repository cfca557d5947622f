/* Repair, inwards: frames are checked, put in order and handed up; what acknowledgements tell goes to the policy. */
#include "link/repair_state.h"

/* ---- the round trip ---------------------------------------------------------------------------------------------- */

void tb_repair_learn(const struct tb_repair *r, struct tb_repair_peer *p, uint64_t sample)
{
    if (p->round_trip == 0) {
        p->round_trip = sample;
        p->variation = sample / 2;
    } else {
        uint64_t off = sample > p->round_trip ? sample - p->round_trip : p->round_trip - sample;
        p->variation = (3 * p->variation + off) / 4;
        p->round_trip = (7 * p->round_trip + sample) / 8;
    }
    const struct tb_repair_policy *policy = &r->policy;
    uint64_t margin = 4 * p->variation < policy->variation_most ? 4 * p->variation : policy->variation_most;
    uint64_t patience = p->round_trip + margin;
    patience = patience < policy->timer_least ? policy->timer_least : patience;
    p->patience = patience > policy->timer_most ? policy->timer_most : patience;
}

/* ---- frames in order --------------------------------------------------------------------------------------------- */

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
        p->answer_by = now + r->policy.ack_delay;
    p->unanswered_bytes += length;
    if (p->unanswered >= r->policy.ack_every || p->unanswered_bytes >= r->ack_bytes)
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
        p->answer_now = p->answer_now || r->policy.gaps_at_once;
        p->unanswered++;
        hand_up(r, p, &c->envelope.message, c->payload, c->length);
        tb_repair_copy_free(r, c);
        next = tb_repair_slot(r, p->in, p->expected);
    }
    p->answer_now = p->answer_now || p->unanswered >= r->policy.ack_every;
}

static void too_early(struct tb_repair *r, struct tb_repair_peer *p, uint32_t sequence,
                      const struct tb_message *message, const char *payload, size_t length, uint64_t now)
{
    struct tb_repair_copy **place = tb_repair_slot(r, p->in, sequence);
    if (r->policy.gaps_at_once)
        p->answer_now = true;
    else
        owe_answer(r, p, length, now);
    struct tb_repair_copy *c = *place == NULL && length <= TB_REPAIR_PAYLOAD
                                   ? tb_repair_copy_make(r, message, (uint32_t)length, TB_REPAIR_TOTAL_BYTES)
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

static uint32_t check_get(const char *from)
{
    uint32_t check = 0;
    for (int i = 0; i < 4; i++)
        check |= (uint32_t)(uint8_t)from[i] << 8 * i;
    return check;
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
        if (tb_repair_check(tb_crc32c(0, payload, *length), &envelope) != check_get(payload + *length))
            return false;
    }
    return tb_repair_is_proc(routing->source, p->head.proc) && tb_repair_is_proc(routing->destination, r->self);
}

/* The other side waits for an acknowledgement in vain: whatever its frames ask for, they have come before, or it asks
 * for nothing but this. */
static void answer_again(struct tb_repair *r, struct tb_repair_peer *p)
{
    p->answer_now = true;
    p->astray = r->policy.answers_astray;
    tb_repair_busy(r, p);
}

static void link_receive(struct tb_repair *r, struct tb_repair_peer *p, const struct tb_routing *routing,
                         const struct tb_message *message, const char *payload, size_t length, uint64_t now)
{
    if (!p->broken)
        r->policy.gaps_get(r, p, routing, message, payload, length, now);
    if (message->length == TB_REPAIR_LINK_PROBE && !p->broken && message->offset >= p->echo) {
        p->echo = message->offset;
        p->echo_owed = true;
        answer_again(r, p);
    }
    if (message->length == TB_REPAIR_LINK_ACKNOWLEDGE || message->length >= TB_REPAIR_LINK_PROBE)
        return;
    if (message->length == TB_REPAIR_LINK_GOODBYE)
        tb_repair_link_send(r, p, TB_REPAIR_LINK_GOODBYE_ANSWER);
    if (message->length == TB_REPAIR_LINK_GOODBYE_ANSWER && !r->closing)
        return;
    p->left = true;
    if (!p->broken)
        tb_error(TB_ERR_CLOSED, "rank %u has said goodbye", p->head.proc.index);
    tb_repair_peer_break(r, p, TB_ERR_CLOSED);
}

static void acknowledge(struct tb_repair *r, struct tb_repair_peer *p, uint32_t up_to, uint64_t now)
{
    if (tb_repair_distance(p->first, up_to) < 0 || tb_repair_distance(up_to, p->next) <= 0)
        return; /* an old one, or one that cannot be */
    r->policy.acknowledge(r, p, up_to, now);
    tb_repair_wake(r, p, p->timer);
    if (p->wanted)
        tb_repair_busy(r, p);
}

void tb_repair_receive(void *context, struct tb_endpoint *from, const struct tb_routing *routing,
                       const struct tb_message *message, const void *payload, size_t length)
{
    struct tb_repair *r = context;
    struct tb_repair_peer *p = from->user;
    if (p == NULL || !intact(r, p, routing, message, payload, &length)) {
        r->counters.corrupted++;
        return;
    }
    uint64_t now = tb_clock_now(r->clock);
    if (p->asked_at > 0) {
        r->policy.probe_answered(r, p, now);
        p->asked_at = 0;
    }
    if (!p->broken)
        acknowledge(r, p, routing->acknowledge, now);
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
    } else if (ahead > 0 && ahead < (int32_t)r->policy.window) {
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
