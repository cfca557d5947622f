/* The policy of repair inside a site: round trips are short, and the inner transport keeps frames mostly in order, so
 * that one which several later ones overtake is lost. Whoever does not answer for tb_param.link_timeout is unreachable.
 */
#include "link/repair_state.h"

#define MS              TB_REPAIR_MS
#define LATER_ARRIVALS  3  /* frames that overtake one before it is taken for lost */
#define RESEND_ATTEMPTS 8u /* at least so many before a process is taken for unreachable */

static void near_limits(struct tb_repair *r)
{
    r->peer_bytes = TB_REPAIR_PEER_BYTES;
    r->ack_bytes = SIZE_MAX;
    r->room_first = r->peer_bytes;
}

/* Sends a frame again, unless its last sending may still be answered. `sure`: later ones have arrived, so the first
 * sending needs no patience. */
static void resend(struct tb_repair *r, struct tb_repair_peer *p, struct tb_repair_copy *c, bool sure, uint64_t now)
{
    bool fresh = now - c->sent_at < p->round_trip + p->variation;
    if (c->waiting || c->arrived || (fresh && !(sure && c->sends == 1)))
        return;
    tb_repair_out_again(p, c);
    tb_repair_busy(r, p);
}

static void near_acknowledge(struct tb_repair *r, struct tb_repair_peer *p, uint32_t up_to, uint64_t now)
{
    uint64_t sample = 0;
    while (tb_repair_distance(p->first, up_to) >= 0) {
        const struct tb_repair_copy *c = *tb_repair_slot(r, p->out, p->first);
        tb_repair_outcome(r, p, c, true);
        if (c->sends == 1 && !c->arrived)
            sample = now - c->sent_at;
        tb_repair_out_pop(r, p);
    }
    /* After a timeout the sample may belong to either sending, and patience stays as it grew until there is a clear
     * one. */
    if (sample > 0 && p->timeouts == 0)
        tb_repair_learn(r, p, sample);
    tb_repair_progress(p, now);
    if (p->first != p->next && tb_repair_distance(p->first, p->recover) >= 0)
        resend(r, p, *tb_repair_slot(r, p->out, p->first), false, now);
}

/* In `match`, which has room for the whole window: bit i stands for the frame i + 2 beyond the acknowledged one, as the
 * next one is not here. */
static size_t near_gaps_put(const struct tb_repair *r, const struct tb_repair_peer *p, uint64_t what,
                            struct tb_message *message, char *bytes)
{
    (void)what, (void)bytes;
    for (uint32_t i = 0; i + 1 < TB_REPAIR_WINDOW; i++)
        if (*tb_repair_slot(r, p->in, p->expected + 1 + i) != NULL)
            message->match |= UINT64_C(1) << i;
    return 0;
}

/* The gaps between the frames that have arrived may be losses. */
static void near_gaps_get(struct tb_repair *r, struct tb_repair_peer *p, const struct tb_routing *routing,
                          const struct tb_message *message, const char *bytes, size_t length, uint64_t now)
{
    (void)bytes, (void)length;
    uint32_t up_to = routing->acknowledge;
    uint64_t arrived = message->match;
    int later = 0;
    if (arrived == 0 || p->first != up_to + 1)
        return;
    for (uint32_t i = TB_REPAIR_WINDOW; i-- > 0;) {
        uint32_t s = up_to + 1 + i;
        if (tb_repair_distance(s, p->next) <= 0)
            continue;
        struct tb_repair_copy *c = *tb_repair_slot(r, p->out, s);
        if (i > 0 && (arrived >> (i - 1) & 1)) {
            tb_repair_out_arrived(p, c);
            later++;
        } else if (later >= LATER_ARRIVALS) {
            resend(r, p, c, true, now);
        }
    }
}

static void near_timeout(struct tb_repair *r, struct tb_repair_peer *p, uint64_t now)
{
    if (p->timeouts >= RESEND_ATTEMPTS && now - p->heard > r->give_up) {
        tb_error(TB_ERR_PEER, "rank %u has not answered rank %u for %.1f s, though %u frames were sent again",
                 p->head.proc.index, r->self.index, (double)(now - p->heard) / 1e9, p->timeouts);
        tb_repair_peer_break(r, p, TB_ERR_PEER);
        return;
    }
    p->timeouts++;
    p->recover = p->next - 1;
    tb_repair_out_again(p, *tb_repair_slot(r, p->out, p->first));
    tb_repair_back_off(r, p, now);
}

static bool near_has_room(const struct tb_repair *r, const struct tb_repair_peer *p)
{
    return p->next - p->first < r->policy.window;
}

const struct tb_repair_policy tb_repair_near = {
    .window = TB_REPAIR_WINDOW,
    .ack_every = 8,
    .ack_delay = MS / 2,
    .timer_first = 20 * MS,
    .timer_least = 2 * MS,
    .timer_most = 200 * MS,
    .variation_most = 8 * MS, /* what a crowded machine adds to round trips is not waited for in full */
    .linger = 100 * MS,
    .linger_rounds = 100,
    .goodbye_interval = 2 * MS,
    .linger_connects = false,
    .gaps_at_once = true,
    .gaps_by_link = false,
    .answers_astray = false,
    .limits = near_limits,
    .acknowledge = near_acknowledge,
    .gaps_put = near_gaps_put,
    .gaps_get = near_gaps_get,
    .timeout = near_timeout,
    .has_room = near_has_room,
    .probe_answered = NULL,
    .present = NULL,
    .abandoned = NULL,
};
