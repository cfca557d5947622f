/* What acknowledgements tell: which frames have arrived, which are lost and have to be sent again, how long the way
 * takes, and how much may be under way. */
#include "link/repair_state.h"

#define MS             TB_REPAIR_MS
#define LATER_ARRIVALS 3 /* frames that overtake one before it is taken for lost */
#define ROOM_LEAST     (128u << 10)
#define ROOM_STEP      (16u << 10)
#define LATE           (200 * MS) /* wide: see answer_time */

/* The other side has a frame, though not all before it. */
static void out_arrived(struct tb_repair_peer *p, struct tb_repair_copy *c)
{
    p->waiting -= c->waiting;
    p->arrived_bytes += c->arrived ? 0 : c->length;
    c->waiting = false;
    c->arrived = true;
}

static void round_trip_learn(struct tb_repair_peer *p, uint64_t sample)
{
    if (p->round_trip == 0) {
        p->round_trip = sample;
        p->variation = sample / 2;
    } else {
        uint64_t off = sample > p->round_trip ? sample - p->round_trip : p->round_trip - sample;
        p->variation = (3 * p->variation + off) / 4;
        p->round_trip = (7 * p->round_trip + sample) / 8;
    }
}

static uint64_t patience_of(const struct tb_repair *r, const struct tb_repair_peer *p)
{
    const struct tb_repair_profile *f = &r->profile;
    if (p->round_trip == 0)
        return f->first;
    uint64_t patience = p->round_trip + (4 * p->variation < f->variation ? 4 * p->variation : f->variation);
    return patience < f->least ? f->least : patience > f->most ? f->most : patience;
}

/* Sends a frame again, unless its last sending may still be answered. `sure`: later ones have arrived, so the first
 * sending needs no patience. */
static void resend(struct tb_repair *r, struct tb_repair_peer *p, struct tb_repair_copy *c, bool sure, uint64_t now)
{
    bool fresh = now - c->sent_at < p->round_trip + p->variation;
    if (c->waiting || c->arrived || (fresh && !(sure && c->sends == 1)))
        return;
    c->waiting = true;
    p->waiting++;
    tb_repair_busy(r, p);
}

/* Wide: remembers the slowest way, for a while. */
static void slowest_learn(struct tb_repair_peer *p, uint64_t sample)
{
    p->slowest -= p->slowest / 1024;
    p->slowest = sample > p->slowest ? sample : p->slowest;
}

/* Wide: whether the time from then until now was spent on the way. It was not if one of the two has computed meanwhile,
 * and the answer has waited for it. */
static bool is_clear(const struct tb_repair *r, const struct tb_repair_peer *p, uint64_t since)
{
    return since >= p->listens && since >= r->returned;
}

/* Wide: a frame is known now to have arrived. Returns how long it took; 0: not clear. If it was sent again, it may have
 * been late only, which shows if its last sending cannot have been answered yet: then the slowest way is slower than
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

/* Tells the inner transport what became of a frame. Which sending of several has arrived is not known. */
static void outcome_tell(const struct tb_repair *r, struct tb_repair_peer *p, const struct tb_repair_copy *c,
                         bool arrived)
{
    if (r->inner->table->outcome != NULL && (!arrived || (c->sends == 1 && !c->arrived)))
        r->inner->table->outcome(p->inner, c->route, c->sent_at, arrived);
}

/* Wide: the time in which a frame arrives, and its answer comes back: the usual one, and what it takes if a TCP stream
 * on the way has to wait for its own timer, which is a round trip and 200 ms at least. */
static uint64_t answer_time(const struct tb_repair *r, const struct tb_repair_peer *p)
{
    uint64_t usual = p->round_trip > 0 ? p->round_trip + 4 * p->variation : r->profile.first;
    usual = usual > p->slowest ? usual : p->slowest;
    return (usual < r->profile.most ? usual : r->profile.most) + p->round_trip + LATE;
}

/* Wide: what was under way while the other side did not listen gets the same time again. */
static uint64_t overdue_at(const struct tb_repair *r, const struct tb_repair_peer *p, const struct tb_repair_copy *c)
{
    return (c->sent_at > p->listens ? c->sent_at : p->listens) + answer_time(r, p);
}

/* Wide: half as much, once for all that was under way when the first of them was lost. */
static void room_narrow(struct tb_repair_peer *p, uint32_t lost)
{
    if (tb_repair_distance(p->narrowed, lost) <= 0)
        return;
    p->narrowed = p->next - 1;
    p->room = p->room / 2 > ROOM_LEAST ? p->room / 2 : ROOM_LEAST;
}

/* Wide: twice as much each time that all of it has arrived, until something is lost; then a step more. */
static void room_widen(const struct tb_repair *r, struct tb_repair_peer *p, size_t arrived)
{
    p->room += p->narrowed == 0 ? arrived : arrived * ROOM_STEP / p->room;
    if (p->room > r->peer_bytes)
        p->room = r->peer_bytes;
}

/* Wide: sends again what is known to be missing and overdue, as much as there is room for. Later arrivals alone prove
 * nothing, since frames take several ways. Sets the timer for the rest. */
bool tb_repair_missing(struct tb_repair *r, struct tb_repair_peer *p, uint64_t now)
{
    uint64_t next = TB_NEVER;
    size_t bytes = 0;
    bool some = false;
    for (uint32_t s = p->first; s != p->next; s++) {
        struct tb_repair_copy *c = *tb_repair_slot(r, p->out, s);
        if (c->arrived || c->waiting || (tb_repair_distance(s, p->latest) <= 0 && c->sent_at >= p->proved))
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
        outcome_tell(r, p, c, false);
        c->waiting = some = true;
        p->waiting++;
    }
    if (some)
        tb_repair_busy(r, p);
    if (next < p->timer) {
        p->timer = next;
        tb_repair_wake(r, p, next);
    }
    return some;
}

/* Wide: the other side was heard. If it was asked long ago, it has not listened meanwhile. */
void tb_repair_hear(const struct tb_repair *r, struct tb_repair_peer *p, uint64_t now)
{
    if (p->asked_at > 0 && now - p->asked_at > answer_time(r, p))
        p->listens = now;
    p->asked_at = 0;
}

void tb_repair_acknowledge(struct tb_repair *r, struct tb_repair_peer *p, uint32_t up_to, uint64_t now)
{
    uint64_t sample = 0;
    size_t before = p->out_bytes;
    bool repaired = false;
    if (tb_repair_distance(p->first, up_to) < 0 || tb_repair_distance(up_to, p->next) <= 0)
        return; /* an old one, or one that cannot be */
    while (tb_repair_distance(p->first, up_to) >= 0) {
        const struct tb_repair_copy *c = *tb_repair_slot(r, p->out, p->first);
        repaired = repaired || c->sends > 1;
        outcome_tell(r, p, c, true);
        if (r->wide && c->sends > 1)
            sample_of(r, p, c, now);
        if (c->sends == 1 && !c->arrived && (!r->wide || is_clear(r, p, c->sent_at)))
            sample = now - c->sent_at;
        tb_repair_out_pop(r, p);
    }
    if (r->wide)
        room_widen(r, p, before - p->out_bytes);
    /* After a timeout the sample may belong to either sending, and patience stays as it grew until there is a clear
     * one. In wide mode, what has waited for a frame that was lost tells nothing. */
    if (sample > 0 && (r->wide ? !repaired : p->timeouts == 0)) {
        round_trip_learn(p, sample);
        p->patience = patience_of(r, p);
    }
    if (tb_repair_distance(p->latest, up_to) > 0)
        p->latest = up_to;
    p->heard = now;
    p->timeouts = 0;
    p->timer = p->first != p->next ? now + p->patience : TB_NEVER;
    if (!r->wide && p->first != p->next && tb_repair_distance(p->first, p->recover) >= 0)
        resend(r, p, *tb_repair_slot(r, p->out, p->first), false, now);
    if (r->wide && p->first != p->next && tb_repair_distance(p->first, p->latest) > 0)
        tb_repair_missing(r, p, now);
    tb_repair_wake(r, p, p->timer);
    if (p->wanted)
        tb_repair_busy(r, p);
}

/* Later frames than the acknowledged one have arrived: the gaps between them may be losses. */
void tb_repair_gaps(struct tb_repair *r, struct tb_repair_peer *p, uint32_t up_to, uint64_t arrived, uint64_t now)
{
    int later = 0;
    if (arrived == 0 || p->first != up_to + 1)
        return;
    for (uint32_t i = TB_REPAIR_WINDOW; i-- > 0;) {
        uint32_t s = up_to + 1 + i;
        if (tb_repair_distance(s, p->next) <= 0)
            continue;
        struct tb_repair_copy *c = *tb_repair_slot(r, p->out, s);
        if (i > 0 && (arrived >> (i - 1) & 1)) {
            out_arrived(p, c);
            later++;
        } else if (later >= LATER_ARRIVALS) {
            resend(r, p, c, true, now);
        }
    }
}

/* Wide: the same by the payload of an acknowledgement, and what its echo proves. */
void tb_repair_arrivals(struct tb_repair *r, struct tb_repair_peer *p, const struct tb_routing *routing, uint64_t echo,
                        const char *bytes, size_t length, uint64_t now)
{
    uint64_t sample = 0;
    if (echo > p->proved && echo <= now)
        p->proved = echo;
    for (size_t i = 0; i < 8 * length; i++) {
        uint32_t s = routing->acknowledge + 2 + (uint32_t)i;
        if (((uint8_t)bytes[i / 8] >> i % 8 & 1) == 0 || tb_repair_distance(p->first, s) < 0)
            continue;
        if (tb_repair_distance(s, p->next) <= 0)
            break;
        struct tb_repair_copy *c = *tb_repair_slot(r, p->out, s);
        uint64_t took = sample_of(r, p, c, now);
        sample = took > sample ? took : sample; /* the slowest way counts */
        outcome_tell(r, p, c, true);
        out_arrived(p, c);
        if (tb_repair_distance(p->latest, s) > 0)
            p->latest = s;
    }
    if (sample > 0) {
        round_trip_learn(p, sample);
        p->patience = patience_of(r, p);
    }
    if (p->first != p->next &&
        (tb_repair_distance(p->first, p->latest) > 0 || tb_repair_distance(p->first, p->recover) >= 0))
        tb_repair_missing(r, p, now);
    if (p->wanted)
        tb_repair_busy(r, p);
}
