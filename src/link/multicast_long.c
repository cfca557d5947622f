#include "link/multicast_long.h"
#include "link/multicast_operation.h"
#include "link/multicast_output.h"
#include "link/multicast_pace.h"
#include "link/multicast_rest.h"

#include <stdlib.h>

#define MARKS         64u
#define RETRY         (10 * TB_MULTICAST_MS)   /* when there was no memory */
#define POLL_MOST     (1000 * TB_MULTICAST_MS) /* between two polls */
#define SEVERAL_TRIES 3u         /* of many members somebody will miss a repair, without anything being wrong */
#define BY_CONTROL    UINT64_MAX /* when a repair counts as sent that control messages bring */

/* Everything sent before it is judged by a report that has heard it. */
struct tb_multicast_mark {
    uint32_t top, poll;
    uint64_t sent; /* datagrams until then, itself among them */
    uint64_t at;   /* when it has left this host: what waits here tells nothing of the network */
};

/* What is known of a fragment between the first that somebody may miss and the last that was sent. */
struct tb_multicast_sent {
    uint64_t repaired; /* as which datagram it was sent for the last time, counted from 1; 0: only once */
    uint32_t who;
    uint8_t tries;
    bool due; /* to be sent again */
};

struct tb_multicast_long {
    struct tb_multicast_source source;
    struct tb_multicast_pace pace;
    uint32_t child;         /* process: its report is that of all */
    uint32_t base;          /* everyone has all before this fragment */
    uint64_t sent, covered; /* datagrams; how many of them reports have judged */
    uint32_t due;           /* fragments to be sent again */
    uint32_t unmarked;      /* datagrams to all since the last mark */
    uint32_t poll, vain;    /* polls so far; how many without an answer */
    uint64_t poll_at;
    uint64_t moved; /* when a report last told something new, or when what was sent after it has left */
    bool rescue;    /* the next poll has to say that datagrams do not help */
    struct tb_multicast_mark marks[MARKS];
    uint32_t marks_first, marks_count;
    struct tb_multicast_sent troubles[TB_MULTICAST_SPAN];
};

static struct tb_multicast_sent *trouble_of(struct tb_multicast_long *l, uint32_t fragment)
{
    return &l->troubles[fragment % TB_MULTICAST_SPAN];
}

/* ---- marks and polls -----------------------------------------------------------------------------------------------
 */

static void wait_for_report(struct tb_multicast *m, struct tb_multicast_long *l)
{
    uint64_t wait = tb_multicast_pace_patience(&l->pace) << (l->vain < 16 ? l->vain : 16);
    uint64_t from = m->busy_until > m->now ? m->busy_until : m->now;
    l->poll_at = from + (wait < POLL_MOST ? wait : POLL_MOST);
    tb_multicast_schedule(m, l->poll_at);
}

static void mark(struct tb_multicast *m, struct tb_multicast_long *l, uint64_t at)
{
    if (l->marks_count == MARKS) { /* the oldest says least */
        l->marks_first++;
        l->marks_count--;
    }
    l->marks[(l->marks_first + l->marks_count++) % MARKS] =
        (struct tb_multicast_mark){.top = l->source.sent, .poll = l->poll, .sent = l->sent, .at = at};
    l->unmarked = 0;
    wait_for_report(m, l);
}

/* A mark for all, where no fragment can be one. */
static void poll_datagram(struct tb_multicast *m, struct tb_multicast_long *l)
{
    const struct tb_multicast_source *s = &l->source;
    struct tb_multicast_poll poll = {.poll = l->poll + 1, .top = s->sent};
    uint8_t bytes[TB_MULTICAST_POLL_BYTES];
    struct tb_multicast_out out = {.head = {.context = s->in->id,
                                            .number = s->number,
                                            .length = s->length,
                                            .piece = s->piece,
                                            .type = TB_DATAGRAM_POLL,
                                            .representation = m->config.representation},
                                   .payload = bytes,
                                   .length = tb_multicast_put_poll(bytes, &poll)};
    if (tb_multicast_output(m, &out, 1) == 0) {
        wait_for_report(m, l);
        return;
    }
    m->counters.polls++;
    l->poll++;
    l->sent++;
    mark(m, l, m->busy_until);
}

/* A mark that is not lost, for those who have not reported. */
static void poll_control(struct tb_multicast *m, struct tb_multicast_long *l)
{
    struct tb_multicast_poll poll = {.poll = l->poll + 1, .top = l->source.sent, .rescue = l->rescue};
    struct tb_multicast_name name = tb_multicast_source_name(m, &l->source);
    tb_multicast_put_control_poll(tb_multicast_control_begin(m), &name, &poll);
    if (!tb_multicast_control_end(m, l->child, TB_MULTICAST_POLL, NULL, 0)) {
        wait_for_report(m, l);
        return;
    }
    l->rescue = false;
    l->poll++;
    l->sent++; /* so that it is a mark of its own */
    mark(m, l, m->now);
}

/* ---- sending -------------------------------------------------------------------------------------------------------
 */

/* A repair: to one, if it is known where that is. */
static void fill_repair(struct tb_multicast *m, struct tb_multicast_long *l, uint32_t fragment, uint32_t slot,
                        struct tb_multicast_out *out)
{
    const struct tb_multicast_sent *t = trouble_of(l, fragment);
    const struct tb_multicast_peer *peer =
        t->who == TB_MULTICAST_SEVERAL ? NULL : tb_multicast_peers_find(&m->peers, t->who);
    bool one = peer != NULL && peer->address.length > 0;
    tb_multicast_source_datagram(m, &l->source, fragment, TB_DATAGRAM_REPAIR, one ? &peer->address : NULL, slot, out);
}

static uint32_t fill(struct tb_multicast *m, struct tb_multicast_long *l, struct tb_multicast_out *out, uint32_t most)
{
    const struct tb_multicast_source *s = &l->source;
    uint32_t n = 0, due = l->due, unmarked = l->unmarked, every = tb_multicast_pace_mark(&l->pace);
    for (uint32_t f = l->base; due > 0 && n < most && f < s->sent; f++)
        if (trouble_of(l, f)->due) {
            fill_repair(m, l, f, n, &out[n]);
            unmarked += out[n].to == NULL;
            n++;
            due--;
        }
    for (uint32_t f = s->sent; n < most && f < s->fragments && f - l->base < TB_MULTICAST_SPAN; f++, n++) {
        bool marked = ++unmarked >= every || f + 1 == s->fragments;
        tb_multicast_source_datagram(m, s, f, marked ? TB_DATAGRAM_WINDOW : 0, NULL, n, &out[n]);
        unmarked = marked ? 0 : unmarked;
    }
    return n;
}

static void note_sent(struct tb_multicast *m, struct tb_multicast_long *l, const struct tb_multicast_out *out,
                      uint64_t at)
{
    struct tb_multicast_sent *t = trouble_of(l, out->head.fragment);
    l->sent++;
    l->unmarked += out->to == NULL;
    if (out->head.flags & TB_DATAGRAM_REPAIR) {
        t->due = false;
        t->tries = t->tries < UINT8_MAX ? t->tries + 1 : t->tries;
        t->repaired = l->sent;
        l->due--;
        m->counters.repaired_all += out->to == NULL;
        m->counters.repaired_one += out->to != NULL;
        return;
    }
    *t = (struct tb_multicast_sent){0};
    l->source.sent++;
    l->moved = at;
    if (out->head.flags & TB_DATAGRAM_WINDOW)
        mark(m, l, at);
}

static void transmit(struct tb_multicast *m, struct tb_multicast_long *l)
{
    struct tb_multicast_out out[TB_MULTICAST_BATCH];
    while (!m->full) {
        uint64_t window = tb_multicast_pace_window(&l->pace), under_way = l->sent - l->covered;
        uint64_t room = under_way < window ? window - under_way : 0;
        uint32_t count = fill(m, l, out, (uint32_t)(room < TB_MULTICAST_BATCH ? room : TB_MULTICAST_BATCH));
        uint64_t leaves = m->busy_until > m->now ? m->busy_until : m->now;
        uint32_t taken = tb_multicast_output(m, out, count);
        for (uint32_t i = 0; i < taken; i++) {
            leaves += (out[i].length + TB_DATAGRAM_BYTES) * m->config.byte_time / 1000;
            note_sent(m, l, &out[i], leaves);
        }
        if (count == 0)
            break;
    }
    /* Nothing more can be sent, and nobody will report what was: that would only be noticed after a while. */
    bool waits = l->unmarked > 0 || l->due > 0 || l->source.sent < l->source.fragments;
    if (!m->full && l->marks_count == 0 && waits)
        poll_datagram(m, l);
}

/* ---- reports -------------------------------------------------------------------------------------------------------
 */

/* The latest mark that the report has heard; those before it are not needed any more. */
static bool cover(struct tb_multicast_long *l, const struct tb_multicast_report *report, struct tb_multicast_mark *last)
{
    bool found = false;
    while (l->marks_count > 0) {
        const struct tb_multicast_mark *at = &l->marks[l->marks_first % MARKS];
        if (at->top > report->top || at->poll > report->poll)
            break;
        *last = *at;
        found = true;
        l->marks_first++;
        l->marks_count--;
    }
    return found;
}

/* A fragment that is missing though it was sent before the last mark that is covered. True: it was lost. */
static bool judge(struct tb_multicast *m, struct tb_multicast_long *l, const struct tb_multicast_missing *missing)
{
    struct tb_multicast_sent *t = trouble_of(l, missing->fragment);
    if (missing->fragment < l->base || missing->fragment >= l->source.sent || t->due || t->repaired > l->covered)
        return false; /* it is on its way */
    t->who = missing->who;
    bool several = t->who == TB_MULTICAST_SEVERAL;
    if (t->tries < m->limits.repairs * (several ? SEVERAL_TRIES : 1)) {
        t->due = true;
        l->due++;
    } else if (several) {
        t->tries = 0;
        t->due = true;
        l->due++;
        l->rescue = true; /* each of them is to ask */
    } else if (tb_multicast_rest_add(m, t->who, &l->source, missing->fragment)) {
        t->repaired = BY_CONTROL;
    }
    return true;
}

/* What is due and not missing any more. */
static void forget_mended(struct tb_multicast_long *l, const struct tb_multicast_report *report)
{
    uint32_t k = 0;
    for (uint32_t f = l->base; l->due > 0 && f < report->top && f < l->source.sent; f++) {
        struct tb_multicast_sent *t = trouble_of(l, f);
        while (k < report->count && report->missing[k].fragment < f)
            k++;
        bool missing = k < report->count && report->missing[k].fragment == f;
        if (t->due && !missing) {
            t->due = false;
            l->due--;
        }
    }
}

/* Where those are who miss something alone. */
static void learn_places(struct tb_multicast *m, const struct tb_multicast_operation *o,
                         const struct tb_multicast_report *report)
{
    for (uint32_t i = 0; i < report->placed_count; i++) {
        const struct tb_multicast_placed *placed = &report->placed[i];
        struct tb_multicast_peer *peer = tb_multicast_tree_has(&o->members, placed->process)
                                             ? tb_multicast_peers_get(&m->peers, placed->process)
                                             : NULL;
        if (peer != NULL)
            tb_multicast_peer_learn(peer, &placed->address);
    }
}

bool tb_multicast_long_hear(struct tb_multicast *m, struct tb_multicast_operation *o, uint32_t from,
                            const struct tb_multicast_report *report)
{
    struct tb_multicast_long *l = o->sending;
    struct tb_multicast_mark last;
    if (l == NULL || from != l->child)
        return false;
    m->counters.reports_heard++;
    if (report->complete) {
        tb_multicast_long_stop(o);
        tb_multicast_operation_finish(m, o, TB_OK, TB_MULTICAST_NOBODY);
        return true;
    }
    uint64_t covered_before = l->covered;
    bool covered = cover(l, report, &last);
    if (covered) {
        l->covered = last.sent;
        l->moved = m->now > l->moved ? m->now : l->moved;
    }
    forget_mended(l, report);
    learn_places(m, o, report);
    uint32_t top = report->top < l->source.sent ? report->top : l->source.sent;
    uint32_t first = report->count > 0 ? report->missing[0].fragment : top;
    l->base = first > l->base && first <= top ? first : l->base;
    uint32_t lost = 0, several = 0;
    for (uint32_t i = 0; i < report->count; i++)
        if (judge(m, l, &report->missing[i])) {
            lost++;
            several += report->missing[i].who == TB_MULTICAST_SEVERAL;
        }
    bool timed = covered && l->vain == 0; /* otherwise it tells nothing of the time that reports take */
    l->vain = 0;
    if (covered)
        tb_multicast_pace_report(&l->pace,
                                 &(struct tb_multicast_pace_report){.took = !timed             ? 0
                                                                            : m->now > last.at ? m->now - last.at
                                                                                               : 1,
                                                                    .covered = (uint32_t)(last.sent - covered_before),
                                                                    .lost = lost,
                                                                    .several = several,
                                                                    .worst = report->worst,
                                                                    .mark = last.sent,
                                                                    .sent = l->sent});
    wait_for_report(m, l);
    tb_multicast_long_advance(m, o);
    return true;
}

/* ---- from the beginning --------------------------------------------------------------------------------------------
 */

static bool open_long(struct tb_multicast *m, struct tb_multicast_operation *o)
{
    struct tb_multicast_long *l = calloc(1, sizeof *l);
    uint32_t most = m->limits.window_most, holds = m->config.holds;
    if (l == NULL)
        return false;
    l->child = tb_multicast_tree_process(&o->members, o->root, 1);
    l->source.payload = o->payload;
    l->poll_at = TB_NEVER;
    l->moved = m->now;
    tb_multicast_pace_open(&l->pace, m->limits.window_first, holds > 0 && holds < most ? holds : most,
                           (m->config.piece + TB_DATAGRAM_BYTES) * m->config.byte_time / 1000);
    tb_multicast_source_enter(&l->source, o->in, o->number, o->length, m->config.piece);
    o->sending = l;
    tb_multicast_rest_advance(m); /* somebody may wait for it */
    return true;
}

int tb_multicast_long_start(struct tb_multicast *m, struct tb_multicast_operation *o)
{
    tb_list_append(&o->in->sends, &o->of);
    tb_multicast_long_advance(m, o);
    return TB_PENDING;
}

void tb_multicast_long_stop(struct tb_multicast_operation *o)
{
    if (o->sending == NULL)
        return;
    tb_list_remove(&o->sending->source.of_context);
    free(o->sending);
    o->sending = NULL;
}

uint64_t tb_multicast_long_moved(const struct tb_multicast_operation *o)
{
    return o->sending != NULL ? o->sending->moved : 0;
}

void tb_multicast_long_advance(struct tb_multicast *m, struct tb_multicast_operation *o)
{
    if (o->sending == NULL && !open_long(m, o)) {
        tb_multicast_schedule(m, m->now + RETRY);
        return;
    }
    struct tb_multicast_long *l = o->sending;
    transmit(m, l);
    if (l->rescue || l->poll_at <= m->now) {
        l->vain++;
        poll_control(m, l);
    }
    tb_multicast_schedule(m, l->poll_at);
}
