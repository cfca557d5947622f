#include "link/multicast_family.h"
#include "link/multicast_operation.h"
#include "link/multicast_output.h"

#include <stdlib.h>

#define RETRY     (10 * TB_MULTICAST_MS)   /* when there was no memory */
#define ASK_WAIT  (1000 * TB_MULTICAST_MS) /* for what was asked for by a control message, doubled each time */
#define QUIET     (2000 * TB_MULTICAST_MS) /* without a word of the root, then it is asked; doubled each time */
#define SPREAD    20u                      /* of those questions, over so much more time than of those in datagrams */
#define LAG_LEAST (2 * TB_MULTICAST_MS)
#define LAG_MOST  (200 * TB_MULTICAST_MS)
#define LOSS_OVER 128u       /* fragments over which what is lost is smoothed */
#define EXCUSED   UINT32_MAX /* nobody waits for reports of one that hears nothing */

struct tb_multicast_below {
    uint32_t process;
    bool told;
    struct tb_multicast_poll polled; /* the last mark that it was polled for, */
    uint64_t since;                  /* and when that was reported here; 0: not known */
    struct tb_multicast_report report;
};

struct tb_multicast_family {
    uint32_t count;
    struct tb_multicast_poll poll; /* marks that those below should report soon, */
    uint64_t since;                /* as they were here at this time; 0: none */
    uint64_t poll_at;              /* then those who have not are polled */
    struct tb_multicast_below below[];
};

/* ---- who -----------------------------------------------------------------------------------------------------------
 */

uint32_t tb_multicast_family_parent(const struct tb_multicast *m, const struct tb_multicast_operation *o)
{
    uint32_t place = tb_multicast_tree_place(&o->members, o->root);
    return tb_multicast_tree_process(&o->members, o->root, tb_multicast_tree_parent(place, m->limits.fan));
}

/* Those below it are known, or there are none. Without memory it does not report; that is tried again. */
static bool is_ready(struct tb_multicast *m, struct tb_multicast_operation *o)
{
    uint32_t first, place = tb_multicast_tree_place(&o->members, o->root);
    uint32_t count = tb_multicast_tree_children(place, m->limits.fan, o->members.count, &first);
    if (count == 0 || o->receive.family != NULL)
        return true;
    struct tb_multicast_family *family = malloc(sizeof *family + count * sizeof family->below[0]);
    if (family == NULL) {
        tb_multicast_schedule(m, m->now + RETRY);
        return false;
    }
    *family = (struct tb_multicast_family){.count = count, .poll_at = TB_NEVER};
    for (uint32_t i = 0; i < count; i++) {
        family->below[i].process = tb_multicast_tree_process(&o->members, o->root, first + i);
        family->below[i].told = false;
        family->below[i].polled = (struct tb_multicast_poll){0};
        family->below[i].since = 0;
    }
    o->receive.family = family;
    return true;
}

void tb_multicast_family_end(struct tb_multicast_operation *o)
{
    free(o->receive.family);
    o->receive.family = NULL;
}

static bool has_all(const struct tb_multicast_receive *r)
{
    return r->fragments > 0 && r->holes.base == r->fragments;
}

/* ---- reports -------------------------------------------------------------------------------------------------------
 */

static void say_all_is_there(struct tb_multicast_report *report)
{
    report->complete = true;
    report->top = report->poll = report->worst = report->count = report->placed_count = 0;
}

static void own_report(const struct tb_multicast *m, const struct tb_multicast_receive *r,
                       struct tb_multicast_report *own)
{
    if (has_all(r)) {
        say_all_is_there(own);
        return;
    }
    if (r->promised == EXCUSED) {
        *own = (struct tb_multicast_report){.top = UINT32_MAX, .poll = UINT32_MAX};
        return;
    }
    tb_multicast_report_make(own, &r->holes, r->promised, r->settled, r->polled, m->config.self);
    tb_multicast_report_place(own, &m->own);
    own->worst = r->loss;
}

/* With what those below have told. False: not all of them have. */
static bool merged_report(const struct tb_multicast *m, const struct tb_multicast_operation *o,
                          struct tb_multicast_report *all)
{
    const struct tb_multicast_family *family = o->receive.family;
    own_report(m, &o->receive, all);
    for (uint32_t i = 0; family != NULL && i < family->count; i++) {
        if (!family->below[i].told)
            return false;
        tb_multicast_report_merge(all, &family->below[i].report);
    }
    return true;
}

static bool say(struct tb_multicast *m, uint32_t to, const struct tb_multicast_name *name,
                const struct tb_multicast_report *what)
{
    tb_multicast_put_report(tb_multicast_control_begin(m), name, what);
    if (!tb_multicast_control_end(m, to, TB_MULTICAST_REPORT, NULL, 0))
        return false;
    m->counters.reports_sent++;
    return true;
}

void tb_multicast_family_say_complete(struct tb_multicast *m, uint32_t to, const struct tb_multicast_name *name)
{
    struct tb_multicast_report complete;
    say_all_is_there(&complete);
    say(m, to, name, &complete);
}

/* ---- those who lag behind ------------------------------------------------------------------------------------------
 */

static bool is_behind(const struct tb_multicast_below *b, const struct tb_multicast_poll *marks)
{
    if (!b->told)
        return true;
    return !b->report.complete && (b->report.top < marks->top || b->report.poll < marks->poll);
}

/* `since`: when they were reported here, if that is known. */
static void poll_one(struct tb_multicast *m, const struct tb_multicast_operation *o, struct tb_multicast_below *b,
                     const struct tb_multicast_poll *poll, uint64_t since)
{
    const struct tb_multicast_name name = tb_multicast_operation_name(o);
    bool again = poll->top <= b->polled.top && poll->poll <= b->polled.poll && poll->rescue <= b->polled.rescue;
    if (again || name.piece == 0)
        return;
    tb_multicast_put_control_poll(tb_multicast_control_begin(m), &name, poll);
    if (tb_multicast_control_end(m, b->process, TB_MULTICAST_POLL, NULL, 0)) {
        b->polled = *poll;
        b->since = since;
    }
}

/* Polls whoever has not reported these marks; of a rescue all who miss something. */
static void poll_below(struct tb_multicast *m, const struct tb_multicast_operation *o,
                       const struct tb_multicast_poll *poll, uint64_t since)
{
    struct tb_multicast_family *family = o->receive.family;
    for (uint32_t i = 0; family != NULL && i < family->count; i++)
        if (is_behind(&family->below[i], poll) || (poll->rescue && !family->below[i].report.complete))
            poll_one(m, o, &family->below[i], poll, since);
}

/* Somebody below has not come to these marks, and was not polled for them. */
static bool some_behind(const struct tb_multicast_family *family, const struct tb_multicast_poll *marks)
{
    bool behind = false;
    for (uint32_t i = 0; i < family->count && !behind; i++)
        behind = is_behind(&family->below[i], marks) &&
                 (family->below[i].polled.top < marks->top || family->below[i].polled.poll < marks->poll);
    return behind;
}

/* Those below should report the same marks soon. */
static void watch(struct tb_multicast *m, const struct tb_multicast_operation *o)
{
    const struct tb_multicast_receive *r = &o->receive;
    struct tb_multicast_family *family = r->family;
    if (family == NULL)
        return;
    if (family->poll_at <= m->now) {
        poll_below(m, o, &family->poll, family->since);
        family->poll_at = TB_NEVER;
    } else if (family->poll_at != TB_NEVER && !some_behind(family, &family->poll)) {
        family->poll_at = TB_NEVER;
    }
    const struct tb_multicast_poll marks = {.top = r->settled, .poll = r->polled};
    if (family->poll_at == TB_NEVER && some_behind(family, &marks)) {
        uint64_t wait = m->lag + 4 * m->lag_deviation;
        wait = wait < LAG_LEAST ? LAG_LEAST : wait < LAG_MOST ? wait : LAG_MOST;
        family->poll = marks;
        family->since = m->now;
        family->poll_at = m->now + wait;
    }
    tb_multicast_schedule(m, family->poll_at);
}

/* How long one of them took to report marks that were reported here. It is remembered for the messages that follow, so
 * one that was stopped for long counts as no more than is ever waited for. */
static void note_lag(struct tb_multicast *m, uint64_t since)
{
    uint64_t lag = m->now - since < LAG_MOST ? m->now - since : LAG_MOST;
    uint64_t apart = lag > m->lag ? lag - m->lag : m->lag - lag;
    m->lag_deviation = m->lag_deviation - m->lag_deviation / 4 + apart / 4;
    m->lag = m->lag - m->lag / 8 + lag / 8;
}

/* Of one that was polled meanwhile, that is only known if it loses nothing: it has heard of the marks by itself, and
 * was polled too early. */
static void take_report(struct tb_multicast *m, const struct tb_multicast_family *family, struct tb_multicast_below *b,
                        const struct tb_multicast_report *heard)
{
    bool polled = b->since > 0 && is_behind(b, &b->polled);
    bool watched = !polled && family->poll_at != TB_NEVER && is_behind(b, &family->poll);
    if (!b->told || !b->report.complete)
        b->report = *heard;
    b->told = true;
    if (b->report.complete)
        return;
    if (watched && !is_behind(b, &family->poll))
        note_lag(m, family->since);
    else if (polled && !is_behind(b, &b->polled) && b->report.worst == 0)
        note_lag(m, b->since);
}

/* ---- marks ---------------------------------------------------------------------------------------------------------
 */

/* Reports if there is something new to tell. May end the operation. */
static void report(struct tb_multicast *m, struct tb_multicast_operation *o)
{
    struct tb_multicast_receive *r = &o->receive;
    struct tb_multicast_report all;
    if (!is_ready(m, o) || !merged_report(m, o, &all))
        return;
    if (!all.complete && all.top <= r->told && all.poll <= r->answered)
        return;
    struct tb_multicast_name name = tb_multicast_operation_name(o);
    if (!say(m, tb_multicast_family_parent(m, o), &name, &all))
        return;
    r->told = all.top > r->told ? all.top : r->told;
    r->answered = all.poll > r->answered ? all.poll : r->answered;
    if (all.complete) {
        tb_multicast_family_end(o);
        tb_multicast_operation_complete(m, o);
    } else if (all.count == TB_MULTICAST_MISSING && r->settle_at == TB_NEVER) { /* more may be missing */
        r->settle_at = m->now + m->limits.settle;
        tb_multicast_schedule(m, r->settle_at);
    }
}

static uint64_t settle_time(const struct tb_multicast *m, const struct tb_multicast_operation *o)
{
    const struct tb_multicast_peer *root = tb_multicast_peers_find(&m->peers, tb_multicast_operation_root(o));
    return root != NULL && 2 * root->overtaking > m->limits.settle ? 2 * root->overtaking : m->limits.settle;
}

/* The marks that are reported here move. */
static void move_marks(struct tb_multicast_receive *r, uint32_t top, uint32_t poll)
{
    if (top > r->settled) {
        uint32_t count = top - r->settled, weight = count < LOSS_OVER ? count : LOSS_OVER;
        uint32_t share = tb_multicast_holes_count(&r->holes, r->settled, top) * 1024 / count;
        r->loss = (r->loss * (LOSS_OVER - weight) + share * weight) / LOSS_OVER;
        r->settled = top;
    }
    r->polled = poll > r->polled ? poll : r->polled;
}

/* What was heard of marks becomes what is judged: at once if nothing new is missing, or after the time in which
 * fragments may overtake each other. */
static void settle(struct tb_multicast *m, struct tb_multicast_operation *o)
{
    struct tb_multicast_receive *r = &o->receive;
    if (r->settle_at <= m->now) {
        move_marks(r, r->settling, r->polled);
        r->settle_at = TB_NEVER;
    }
    if (tb_multicast_holes_next(&r->holes, r->settled, r->top) == r->top)
        move_marks(r, r->top, r->polled);
    if (r->settled < r->top && r->settle_at == TB_NEVER) {
        r->settling = r->top;
        r->settle_at = m->now + settle_time(m, o);
    }
    tb_multicast_schedule(m, r->settle_at);
    watch(m, o);
    report(m, o);
}

void tb_multicast_family_mark(struct tb_multicast *m, struct tb_multicast_operation *o, uint32_t top, uint32_t poll)
{
    struct tb_multicast_receive *r = &o->receive;
    r->top = top > r->top ? top : r->top;
    if (poll > r->poll) { /* the root has waited */
        r->poll = poll;
        move_marks(r, r->top, poll);
        r->settle_at = TB_NEVER;
    }
    settle(m, o);
}

void tb_multicast_family_fragment(struct tb_multicast *m, struct tb_multicast_operation *o, uint32_t fragment,
                                  bool marked)
{
    struct tb_multicast_receive *r = &o->receive;
    if (fragment < r->top)
        return;
    if (marked) {
        r->spacing = fragment + 1 - r->marked;
        r->marked = fragment + 1;
    } else if (r->spacing == 0 || fragment - r->top < 2 * r->spacing + 1) { /* marks may come to stand so far apart */
        return;
    }
    tb_multicast_family_mark(m, o, fragment + 1, 0);
}

void tb_multicast_family_progress(struct tb_multicast *m, struct tb_multicast_operation *o)
{
    if (has_all(&o->receive) || o->receive.settle_at != TB_NEVER)
        settle(m, o);
}

bool tb_multicast_family_hear(struct tb_multicast *m, struct tb_multicast_operation *o, uint32_t from,
                              const struct tb_multicast_report *heard)
{
    if (!is_ready(m, o))
        return true; /* it is lost, and will be asked for */
    struct tb_multicast_family *family = o->receive.family;
    for (uint32_t i = 0; family != NULL && i < family->count; i++) {
        struct tb_multicast_below *below = &family->below[i];
        if (below->process != from)
            continue;
        take_report(m, family, below, heard);
        m->counters.reports_heard++;
        watch(m, o);
        report(m, o);
        return true;
    }
    return false;
}

/* ---- by control messages -------------------------------------------------------------------------------------------
 */

static void ask(struct tb_multicast *m, struct tb_multicast_operation *o, uint8_t flags, uint32_t end, bool whole)
{
    struct tb_multicast_receive *r = &o->receive;
    r->next = m->now + RETRY;
    if (tb_multicast_operation_ask(m, o, flags, end, whole)) {
        r->promised = whole ? EXCUSED : end;
        r->asked = m->now;
        r->next = m->now + (ASK_WAIT << (r->control_asks < 6 ? r->control_asks : 6));
        r->control_asks = r->control_asks < UINT8_MAX ? r->control_asks + 1 : UINT8_MAX;
    }
    tb_multicast_schedule(m, r->next);
}

static uint64_t quiet_time(struct tb_multicast *m, const struct tb_multicast_operation *o)
{
    uint8_t times = o->receive.wonders;
    uint64_t spread = tb_random_below(m->config.random, o->members.count * m->limits.ask_spread * SPREAD + 1);
    return (QUIET << (times < 5 ? times : 5)) + spread;
}

/* Nothing was heard of the root for long. It is asked how far it is; if it has said that it has begun, and something is
 * missing that it must have sent, for that. */
static void wonder(struct tb_multicast *m, struct tb_multicast_operation *o)
{
    struct tb_multicast_receive *r = &o->receive;
    bool missing =
        !has_all(r) && r->promised != EXCUSED && tb_multicast_holes_next(&r->holes, r->promised, r->top) < r->top;
    if (r->certain && r->alive == 0)
        ask(m, o, TB_MULTICAST_ASK_CERTAIN, 0, true);
    else if (r->certain && missing)
        ask(m, o, TB_MULTICAST_ASK_CERTAIN, r->top, false);
    else
        tb_multicast_operation_ask(m, o, 0, r->fragments, true);
    r->wonders = r->wonders < UINT8_MAX ? r->wonders + 1 : UINT8_MAX;
}

static void watch_root(struct tb_multicast *m, struct tb_multicast_operation *o)
{
    struct tb_multicast_receive *r = &o->receive;
    if (r->quiet_at <= m->now) {
        bool heard = r->alive != 0 && r->alive + QUIET > m->now;
        if (heard)
            r->wonders = 0;
        else if (r->next == TB_NEVER) /* otherwise it is asked anyway */
            wonder(m, o);
        r->quiet_at = (heard ? r->alive : m->now) + quiet_time(m, o);
    }
    tb_multicast_schedule(m, r->quiet_at);
}

void tb_multicast_family_begin(struct tb_multicast *m, struct tb_multicast_operation *o)
{
    struct tb_multicast_receive *r = &o->receive;
    r->settle_at = r->next = TB_NEVER;
    r->quiet_at = m->now + quiet_time(m, o);
    tb_multicast_schedule(m, r->quiet_at);
    if (r->first == 0 && tb_multicast_operation_is_deaf(m, o))
        ask(m, o, TB_MULTICAST_ASK_DEAF, 0, true);
    settle(m, o);
}

void tb_multicast_family_poll(struct tb_multicast *m, struct tb_multicast_operation *o,
                              const struct tb_multicast_poll *poll)
{
    struct tb_multicast_receive *r = &o->receive;
    r->alive = m->now;
    if (poll->poll > 0 &&
        r->answered >= poll->poll) /* it is asked for again, whatever somebody has polled for before */
        r->answered = poll->poll - 1;
    if (is_ready(m, o))
        poll_below(m, o, poll, 0);
    bool deaf = !r->heard && r->control_polls++ > 0; /* the first may only have been faster than what it is about */
    uint32_t missing = r->promised == EXCUSED ? poll->top : tb_multicast_holes_next(&r->holes, r->promised, poll->top);
    if (missing < poll->top && (poll->rescue || deaf))
        ask(m, o, TB_MULTICAST_ASK_CERTAIN, poll->top, deaf);
    tb_multicast_family_mark(m, o, poll->top, poll->poll);
}

void tb_multicast_family_told(struct tb_multicast *m, struct tb_multicast_operation *o, bool begun)
{
    struct tb_multicast_receive *r = &o->receive;
    uint64_t soon = m->now + m->limits.wait_least; /* what it has asked for may be on its way */
    r->certain = begun;
    if (begun && r->next != TB_NEVER && r->next > soon) { /* there was no place for that, and is one now */
        r->control_asks = 0;
        r->next = soon;
    }
    tb_multicast_schedule(m, r->next);
    tb_multicast_schedule(m, r->quiet_at);
}

void tb_multicast_family_leave(struct tb_multicast *m, struct tb_multicast_operation *o)
{
    struct tb_multicast_name name = tb_multicast_operation_name(o);
    tb_multicast_family_say_complete(m, tb_multicast_family_parent(m, o), &name);
    tb_multicast_family_end(o);
}

void tb_multicast_family_rest(struct tb_multicast *m, struct tb_multicast_operation *o)
{
    struct tb_multicast_receive *r = &o->receive;
    r->alive = m->now;
    r->control_asks = 0;
    if (r->next != TB_NEVER)
        r->next = m->now + ASK_WAIT;
}

bool tb_multicast_family_is_excused(const struct tb_multicast_operation *o)
{
    return o->receive.promised == EXCUSED;
}

void tb_multicast_family_advance(struct tb_multicast *m, struct tb_multicast_operation *o)
{
    struct tb_multicast_receive *r = &o->receive;
    bool whole = r->promised == EXCUSED || r->promised == 0;
    if (has_all(r) || (!whole && tb_multicast_holes_next(&r->holes, 0, r->promised) == r->promised))
        r->next = TB_NEVER;
    if (m->deaf && r->promised != EXCUSED && !has_all(r))
        ask(m, o, TB_MULTICAST_ASK_DEAF, 0, true);
    else if (r->next <= m->now) /* what was promised does not come */
        ask(m, o, TB_MULTICAST_ASK_CERTAIN | (whole ? TB_MULTICAST_ASK_DEAF : 0), r->promised, whole);
    tb_multicast_schedule(m, r->next);
    watch_root(m, o);
    settle(m, o);
}
