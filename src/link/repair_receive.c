/* Repair, inwards: frames are checked, put in order and handed up; acknowledgements tell what has arrived, and what is
 * lost. Round trips are short, and the inner transport keeps frames mostly in order, so that one which several later
 * ones overtake is lost. Whoever does not answer for tb_param.link_timeout is unreachable. */
#include "link/repair_state.h"

/* Of the round trip, as far as it is waited for: not in full for what a crowded machine adds to it. */
#define VARIATION_MOST  (8 * TB_REPAIR_MS)
#define LATER_ARRIVALS  3  /* frames that overtake one before it is taken for lost */
#define RESEND_ATTEMPTS 8u /* at least so many before a process is taken for unreachable */

/* ---- the round trip ---------------------------------------------------------------------------------------------- */

/* A round trip has taken `sample` ns: how long to wait follows. */
static void learn(struct tb_repair_peer *p, uint64_t sample)
{
    if (p->round_trip == 0) {
        p->round_trip = sample;
        p->variation = sample / 2;
    } else {
        uint64_t off = sample > p->round_trip ? sample - p->round_trip : p->round_trip - sample;
        p->variation = (3 * p->variation + off) / 4;
        p->round_trip = (7 * p->round_trip + sample) / 8;
    }
    uint64_t margin = 4 * p->variation < VARIATION_MOST ? 4 * p->variation : VARIATION_MOST;
    uint64_t patience = p->round_trip + margin;
    patience = patience < TB_REPAIR_TIMER_LEAST ? TB_REPAIR_TIMER_LEAST : patience;
    p->patience = patience > TB_REPAIR_TIMER_MOST ? TB_REPAIR_TIMER_MOST : patience;
}

/* ---- losses ------------------------------------------------------------------------------------------------------ */

/* Sends a frame again, unless its last sending may still be answered. `sure`: later ones have arrived, so the first
 * sending needs no patience. */
static void resend(struct tb_repair *r, struct tb_repair_peer *p, struct tb_repair_copy *c, bool sure, uint64_t now)
{
    bool fresh = now - c->sent_at < p->round_trip + p->variation;
    if (c->waiting || c->arrived || (fresh && !(sure && c->sends == 1)))
        return;
    tb_repair_out_again(p, c);
    tb_decorator_hurry(&r->around, &p->active);
}

/* All frames up to `up_to`, at least one of which is outstanding and none of which is new to us, have arrived. */
static void forget_arrived(struct tb_repair *r, struct tb_repair_peer *p, uint32_t up_to, uint64_t now)
{
    uint64_t sample = 0;
    while (tb_repair_distance(p->first, up_to) >= 0) {
        const struct tb_repair_copy *c = *tb_repair_slot(p->out, p->first);
        if (c->sends == 1 && !c->arrived)
            sample = now - c->sent_at;
        tb_repair_out_pop(r, p);
    }
    /* After a timeout the sample may belong to either sending, and patience stays as it grew until there is a clear
     * one. */
    if (sample > 0 && p->timeouts == 0)
        learn(p, sample);
    tb_repair_progress(p, now);
    if (p->first != p->next && tb_repair_distance(p->first, p->recover) >= 0)
        resend(r, p, *tb_repair_slot(p->out, p->first), false, now);
}

uint64_t tb_repair_gaps(const struct tb_repair_peer *p)
{
    uint64_t here = 0;
    for (uint32_t i = 0; i + 1 < TB_REPAIR_WINDOW; i++)
        if (*tb_repair_slot(p->in, p->expected + 1 + i) != NULL)
            here |= UINT64_C(1) << i;
    return here;
}

/* The gaps between the frames that have arrived may be losses. */
static void take_gaps(struct tb_repair *r, struct tb_repair_peer *p, uint32_t up_to, uint64_t arrived, uint64_t now)
{
    int later = 0;
    if (arrived == 0 || p->first != up_to + 1)
        return;
    for (uint32_t i = TB_REPAIR_WINDOW; i-- > 0;) {
        uint32_t s = up_to + 1 + i;
        if (tb_repair_distance(s, p->next) <= 0)
            continue;
        struct tb_repair_copy *c = *tb_repair_slot(p->out, s);
        if (i > 0 && (arrived >> (i - 1) & 1)) {
            tb_repair_out_arrived(p, c);
            later++;
        } else if (later >= LATER_ARRIVALS) {
            resend(r, p, c, true, now);
        }
    }
}

int tb_repair_timeout(struct tb_repair *r, struct tb_repair_peer *p, uint64_t now)
{
    if (p->timeouts >= RESEND_ATTEMPTS && now - p->heard > r->give_up)
        return tb_error(TB_ERR_PEER, "rank %u has not answered rank %u for %.1f s, though %u frames were sent again",
                        p->head.proc.index, r->self.index, (double)(now - p->heard) / 1e9, p->timeouts);
    p->timeouts++;
    p->recover = p->next - 1;
    tb_repair_out_again(p, *tb_repair_slot(p->out, p->first));
    tb_repair_back_off(p, now);
    return TB_OK;
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
static void owe_answer(struct tb_repair_peer *p, uint64_t now)
{
    if (p->unanswered++ == 0)
        p->answer_by = now + TB_REPAIR_ACK_DELAY;
    if (p->unanswered >= TB_REPAIR_ACK_EVERY)
        p->answer_now = true;
}

/* Hands up the frame that was expected, and those that had waited for it. */
static void in_order(struct tb_repair *r, struct tb_repair_peer *p, const struct tb_message *message,
                     const char *payload, size_t length, uint64_t now)
{
    p->expected++;
    owe_answer(p, now);
    hand_up(r, p, message, payload, length);
    struct tb_repair_copy **next = tb_repair_slot(p->in, p->expected);
    while (!p->broken && *next != NULL) {
        struct tb_repair_copy *c = *next;
        *next = NULL;
        p->early--;
        p->expected++;
        p->answer_now = true; /* a gap has closed */
        p->unanswered++;
        hand_up(r, p, &c->envelope.message, c->payload, c->length);
        tb_repair_copy_free(r, c);
        next = tb_repair_slot(p->in, p->expected);
    }
    p->answer_now = p->answer_now || p->unanswered >= TB_REPAIR_ACK_EVERY;
}

static void too_early(struct tb_repair *r, struct tb_repair_peer *p, uint32_t sequence,
                      const struct tb_message *message, const char *payload, size_t length)
{
    struct tb_repair_copy **place = tb_repair_slot(p->in, sequence);
    p->answer_now = true;
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
    tb_decorator_hurry(&r->around, &p->active);
}

static void link_receive(struct tb_repair *r, struct tb_repair_peer *p, const struct tb_routing *routing,
                         const struct tb_message *message, uint64_t now)
{
    if (!p->broken)
        take_gaps(r, p, routing->acknowledge, message->match, now);
    if (message->length == TB_REPAIR_LINK_ACKNOWLEDGE || message->length > TB_REPAIR_LINK_GOODBYE_ANSWER)
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
    forget_arrived(r, p, up_to, now);
    tb_decorator_wake(&r->around, &p->active, p->timer);
    if (p->wanted)
        tb_decorator_hurry(&r->around, &p->active);
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
    uint64_t now = tb_clock_now(r->around.clock);
    if (!p->broken)
        acknowledge(r, p, routing->acknowledge, now);
    if (message->kind == TB_KIND_LINK) {
        link_receive(r, p, routing, message, now);
        return;
    }
    if (p->broken)
        return;
    p->talked = true;
    int32_t ahead = tb_repair_distance(p->expected, routing->sequence);
    if (ahead == 0) {
        in_order(r, p, message, payload, length, now);
    } else if (ahead > 0 && ahead < (int32_t)TB_REPAIR_WINDOW) {
        too_early(r, p, routing->sequence, message, payload, length);
    } else {
        r->counters.dropped++;
        answer_again(r, p);
    }
    if (p->broken)
        return;
    if (p->answer_now)
        tb_decorator_hurry(&r->around, &p->active);
    else if (p->unanswered > 0)
        tb_decorator_wake(&r->around, &p->active, p->answer_by);
}
