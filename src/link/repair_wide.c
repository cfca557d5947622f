/* The policy of repair over wide areas, through gateways. Frames take several routes, so that being overtaken proves no
 * loss: only what is missing among later ones for longer than an answer takes is sent again, and what was sent before a
 * probe that has been answered. What may be under way shrinks after losses and grows again, as TCP does it: a gateway
 * drops what does not fit, and those who send too much to one process must slow down. Nobody is given up. */
#include "link/repair_state.h"

#define MS         TB_REPAIR_MS
#define ROOM_FIRST (512u << 10)
#define ROOM_LEAST (128u << 10)
#define ROOM_STEP  (16u << 10)
#define LATE       (200 * MS) /* see answer_time */
#define ABSENT     (100 * MS) /* see wide_present */

static void wide_limits(struct tb_repair *r)
{
    r->peer_bytes = tb_param.relay_window;
    r->ack_bytes = r->peer_bytes / 8;
    r->room_first = r->peer_bytes > ROOM_FIRST ? ROOM_FIRST : r->peer_bytes;
}

/* ---- how long an answer takes ------------------------------------------------------------------------------------ */

/* Remembers the slowest route, for a while. */
static void slowest_learn(struct tb_repair_peer *p, uint64_t sample)
{
    p->wide.slowest -= p->wide.slowest / 1024;
    p->wide.slowest = sample > p->wide.slowest ? sample : p->wide.slowest;
}

/* Whether the time from then until now was spent on the way. It was not if one of the two has computed meanwhile,
 * and the answer has waited for it. */
static bool is_clear(const struct tb_repair *r, const struct tb_repair_peer *p, uint64_t since)
{
    return since >= p->wide.listens && since >= r->returned;
}

/* A frame is known now to have arrived. Returns how long it took; 0: not clear. If it was sent again, it may have
 * been late only, which shows if its last sending cannot have been answered yet: then the slowest route is slower than
 * was thought. A frame that was lost tells nothing about that. */
static uint64_t sample_of(const struct tb_repair *r, struct tb_repair_peer *p, const struct tb_repair_copy *c,
                          uint64_t now)
{
    if (c->arrived || c->sends == 0 || !is_clear(r, p, c->first_at))
        return 0;
    if (c->sends == 1 || now - c->sent_at < p->round_trip / 2)
        slowest_learn(p, now - c->first_at);
    return c->sends == 1 ? now - c->first_at : 0;
}

/* The time in which a frame arrives, and its answer comes back: the usual one, and what it takes if a TCP stream
 * on the way has to wait for its own timer, which is a round trip and 200 ms at least. */
static uint64_t answer_time(const struct tb_repair *r, const struct tb_repair_peer *p)
{
    uint64_t usual = p->round_trip > 0 ? p->round_trip + 4 * p->variation : r->policy.timer_first;
    usual = usual > p->wide.slowest ? usual : p->wide.slowest;
    return (usual < r->policy.timer_most ? usual : r->policy.timer_most) + p->round_trip + LATE;
}

/* What was under way while the other side did not listen gets the same time again. */
static uint64_t overdue_at(const struct tb_repair *r, const struct tb_repair_peer *p, const struct tb_repair_copy *c)
{
    return (c->sent_at > p->wide.listens ? c->sent_at : p->wide.listens) + answer_time(r, p);
}

/* Who was asked long ago, and is heard only now, has not listened meanwhile. */
static void wide_probe_answered(const struct tb_repair *r, struct tb_repair_peer *p, uint64_t now)
{
    if (now - p->asked_at > answer_time(r, p))
        p->wide.listens = now;
}

/* Arrivals are looked at now. Who has not done so for long was computing, unless it slept until one came. */
static void wide_present(struct tb_repair *r, bool slept)
{
    uint64_t now = tb_clock_now(r->clock);
    if (!slept && now - r->here > ABSENT)
        r->returned = now;
    r->here = now;
}

/* ---- losses ------------------------------------------------------------------------------------------------------ */

/* Half as much, once for all that was under way when the first of them was lost. */
static void room_narrow(struct tb_repair_peer *p, uint32_t lost)
{
    if (tb_repair_distance(p->wide.narrowed, lost) <= 0)
        return;
    p->wide.narrowed = p->next - 1;
    p->room = p->room / 2 > ROOM_LEAST ? p->room / 2 : ROOM_LEAST;
}

/* Twice as much each time that all of it has arrived, until something is lost; then a step more. */
static void room_widen(const struct tb_repair *r, struct tb_repair_peer *p, size_t arrived)
{
    p->room += p->wide.narrowed == 0 ? arrived : arrived * ROOM_STEP / p->room;
    if (p->room > r->peer_bytes)
        p->room = r->peer_bytes;
}

/* Sends again what is known to be missing and overdue, as much as there is room for. Later arrivals alone prove
 * nothing, since frames take several routes. Sets the timer for the rest. */
static bool resend_missing(struct tb_repair *r, struct tb_repair_peer *p, uint64_t now)
{
    uint64_t next = TB_NEVER;
    size_t bytes = 0;
    bool some = false;
    for (uint32_t s = p->first; s != p->next; s++) {
        struct tb_repair_copy *c = *tb_repair_slot(r, p->out, s);
        if (c->arrived || c->waiting || (tb_repair_distance(s, p->wide.latest) <= 0 && c->sent_at >= p->wide.proved))
            continue;
        uint64_t due = overdue_at(r, p, c);
        if (due > now) {
            next = due < next ? due : next;
            continue;
        }
        room_narrow(p, s);
        if (bytes > p->room) {
            next = now + p->round_trip + MS;
            break;
        }
        bytes += c->length;
        tb_repair_outcome(r, p, c, false);
        tb_repair_out_again(p, c);
        some = true;
    }
    if (some)
        tb_repair_busy(r, p);
    if (next < p->timer) {
        p->timer = next;
        tb_repair_wake(r, p, next);
    }
    return some;
}

/* ---- acknowledgements -------------------------------------------------------------------------------------------- */

static void wide_acknowledge(struct tb_repair *r, struct tb_repair_peer *p, uint32_t up_to, uint64_t now)
{
    uint64_t sample = 0;
    size_t before = p->out_bytes;
    bool repaired = false;
    while (tb_repair_distance(p->first, up_to) >= 0) {
        const struct tb_repair_copy *c = *tb_repair_slot(r, p->out, p->first);
        repaired = repaired || c->sends > 1;
        tb_repair_outcome(r, p, c, true);
        if (c->sends > 1)
            sample_of(r, p, c, now);
        if (c->sends == 1 && !c->arrived && is_clear(r, p, c->sent_at))
            sample = now - c->sent_at;
        tb_repair_out_pop(r, p);
    }
    room_widen(r, p, before - p->out_bytes);
    if (sample > 0 && !repaired) /* what has waited for a frame that was lost tells nothing */
        tb_repair_learn(r, p, sample);
    if (tb_repair_distance(p->wide.latest, up_to) > 0)
        p->wide.latest = up_to;
    tb_repair_progress(p, now);
    if (p->first != p->next && tb_repair_distance(p->first, p->wide.latest) > 0)
        resend_missing(r, p, now);
}

/* As a list of bits in the payload: bit i stands for the frame i + 2 beyond the acknowledged one, as the next one is
 * not here. */
static size_t wide_gaps_put(const struct tb_repair *r, const struct tb_repair_peer *p, uint64_t what,
                            struct tb_message *message, char *bytes)
{
    size_t length = 0;
    uint32_t seen = 0;
    message->offset = what == TB_REPAIR_LINK_PROBE ? tb_clock_now(r->clock) : p->echo;
    memset(bytes, 0, TB_REPAIR_LIST_BYTES);
    for (uint32_t i = 0; seen < p->early && i + 1 < r->policy.window; i++)
        if (*tb_repair_slot(r, p->in, p->expected + 1 + i) != NULL) {
            bytes[i / 8] = (char)((uint8_t)bytes[i / 8] | 1u << i % 8);
            length = i / 8 + 1;
            seen++;
        }
    return length;
}

/* The list of wide_gaps_put, and what the echo of a probe proves. */
static void wide_gaps_get(struct tb_repair *r, struct tb_repair_peer *p, const struct tb_routing *routing,
                          const struct tb_message *message, const char *bytes, size_t length, uint64_t now)
{
    uint64_t sample = 0, echo = message->length == TB_REPAIR_LINK_PROBE ? 0 : message->offset;
    if (echo > p->wide.proved && echo <= now)
        p->wide.proved = echo;
    for (size_t i = 0; i < 8 * length; i++) {
        uint32_t s = routing->acknowledge + 2 + (uint32_t)i;
        if (((uint8_t)bytes[i / 8] >> i % 8 & 1) == 0 || tb_repair_distance(p->first, s) < 0)
            continue;
        if (tb_repair_distance(s, p->next) <= 0)
            break;
        struct tb_repair_copy *c = *tb_repair_slot(r, p->out, s);
        uint64_t took = sample_of(r, p, c, now);
        sample = took > sample ? took : sample; /* the slowest route counts */
        tb_repair_outcome(r, p, c, true);
        tb_repair_out_arrived(p, c);
        if (tb_repair_distance(p->wide.latest, s) > 0)
            p->wide.latest = s;
    }
    if (sample > 0)
        tb_repair_learn(r, p, sample);
    if (p->first != p->next &&
        (tb_repair_distance(p->first, p->wide.latest) > 0 || tb_repair_distance(p->first, p->recover) >= 0))
        resend_missing(r, p, now);
    if (p->wanted)
        tb_repair_busy(r, p);
}

/* ---- timers ------------------------------------------------------------------------------------------------------ */

/* What is known to be lost goes again. If nothing is known, a probe asks: the other side may be computing, and
 * its silence is no failure, however long; agents judge who is gone. */
static void wide_timeout(struct tb_repair *r, struct tb_repair_peer *p, uint64_t now)
{
    p->timer = now + p->patience;
    if (resend_missing(r, p, now) || p->timer < now + p->patience)
        return;
    if (tb_repair_link_send(r, p, TB_REPAIR_LINK_PROBE) == TB_OK) {
        p->timeouts++;
        p->recover = p->next - 1;
        p->asked_at = p->asked_at > 0 ? p->asked_at : now;
    }
    tb_repair_back_off(r, p, now);
}

/* The window is long, and refilling it frame by frame costs more than a break. */
static bool wide_has_room(const struct tb_repair *r, const struct tb_repair_peer *p)
{
    uint32_t window = r->policy.window;
    return p->next - p->first <= window - window / 16 && p->out_bytes <= r->peer_bytes - r->peer_bytes / 16 &&
           p->out_bytes - p->arrived_bytes <= p->room - p->room / 16;
}

/* A process that has left, and whose goodbye was lost, never answers. When a link could not have been down for
 * so long, there is nobody left to wait for. Who has computed meanwhile has not heard anybody, though. */
static bool wide_abandoned(const struct tb_repair *r)
{
    uint64_t now = tb_clock_now(r->clock);
    struct tb_repair_peer *p;
    TB_LIST_EACH (p, &r->peers, struct tb_repair_peer, of_repair)
        if (p->first != p->next &&
            (now - p->heard < tb_param.link_patience || now - r->returned < tb_param.link_patience))
            return false;
    return true;
}

const struct tb_repair_policy tb_repair_wide = {
    .window = TB_REPAIR_WIDE_WINDOW,
    .ack_every = TB_REPAIR_WIDE_WINDOW / 8,
    .ack_delay = 1 * MS,
    .timer_first = 1000 * MS,
    .timer_least = 200 * MS,
    .timer_most = 5000 * MS,
    .variation_most = TB_NEVER,
    .linger = 2000 * MS,
    .linger_rounds = 2000,
    .goodbye_interval = 250 * MS,
    .linger_connects = true, /* a gateway may have to connect to us before it can pass on an answer */
    .gaps_at_once = false,
    .gaps_by_link = true,
    .answers_astray = true,
    .limits = wide_limits,
    .acknowledge = wide_acknowledge,
    .gaps_put = wide_gaps_put,
    .gaps_get = wide_gaps_get,
    .timeout = wide_timeout,
    .has_room = wide_has_room,
    .probe_answered = wide_probe_answered,
    .present = wide_present,
    .abandoned = wide_abandoned,
};
