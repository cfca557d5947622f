#include "link/multicast_kept.h"
#include "link/multicast_operation.h"
#include "link/multicast_output.h"

#include <stdlib.h>

#define RETRY       (10 * TB_MULTICAST_MS) /* when there was no memory */
#define CONFIRM_IN  (20 * TB_MULTICAST_MS) /* a confirmation that was asked for in a datagram should have come */
#define GATHER      (10 * TB_MULTICAST_MS) /* within which a second one that asks counts */
#define DELAY_SHARE 4u                     /* a root delays a message at most for this part of its time on the wire */

/* A fragment that somebody has asked for. */
struct tb_multicast_repeat {
    uint64_t at, until; /* when it was sent to `asker`, or to all; until when it should have arrived; 0: never */
    uint32_t asker;
    bool to_all;
    bool due; /* it is to be sent */
};

struct tb_multicast_kept {
    struct tb_multicast_source source;
    struct tb_list of_store, of_unsent, of_due;
    struct tb_multicast_operation *operation; /* not told yet that it was sent */
    uint64_t bytes;
    uint64_t not_before, delayed;        /* when it may be sent; how long after its beginning that is */
    uint64_t until;                      /* all of it should have arrived */
    struct tb_multicast_repeat *repeats; /* of each fragment; NULL: nobody has asked */
    uint32_t due;                        /* of them */
    char data[];
};

/* Of everything that is allocated for a message, were all of it asked for again. */
static uint64_t bytes_of(uint64_t length, uint16_t piece)
{
    return sizeof(struct tb_multicast_kept) + length +
           tb_datagram_fragments(length, piece) * sizeof(struct tb_multicast_repeat);
}

/* ---- copies --------------------------------------------------------------------------------------------------------
 */

/* Every half of the store a confirmation is asked for; contexts that share it, earlier. */
static bool wants_confirmation(const struct tb_multicast *m, const struct tb_multicast_context *c)
{
    uint64_t half = m->limits.keep / 2;
    return c->unasked >= half || (m->counters.kept >= half && c->unasked >= half / 4);
}

static void delay(struct tb_multicast *m, struct tb_multicast_kept *k)
{
    uint64_t wire = k->source.length * m->config.byte_time / 1000;
    uint64_t most = m->limits.delay_most < wire / DELAY_SHARE ? m->limits.delay_most : wire / DELAY_SHARE;
    if (m->limits.delay > 0) {
        k->not_before = m->now + m->limits.delay;
        return;
    }
    k->delayed = m->delay < most ? m->delay : most;
    k->not_before = m->now + k->delayed;
    m->delay -= m->delay > 0 ? m->delay / 32 + 1 : 0;
}

/* Others may wait for it before they let go of what is kept of later ones, as in turns. */
static bool is_overdue(const struct tb_multicast_operation *o)
{
    return o->number < o->in->newest;
}

/* Whether it need not wait for others to let go of what is kept: where nothing of its context is, those who wait for it
 * may be the very ones that others wait for. */
static bool is_urgent(const struct tb_multicast_operation *o)
{
    return o->in->kept == 0 || is_overdue(o);
}

/* Makes a copy. False: there is no room, or no memory. */
static bool copy(struct tb_multicast *m, struct tb_multicast_operation *o)
{
    uint64_t bytes = bytes_of(o->length, m->config.piece);
    if (m->counters.kept + bytes > m->limits.keep && !is_urgent(o))
        return false;
    struct tb_multicast_kept *k = malloc(sizeof *k + o->length);
    if (k == NULL)
        return false;
    struct tb_multicast_context *c = o->in;
    *k = (struct tb_multicast_kept){.operation = o, .bytes = bytes, .source.is_kept = true};
    tb_multicast_payload_copy(&o->payload, 0, k->data, o->length, true);
    k->source.payload.base = k->data;
    tb_multicast_source_enter(&k->source, c, o->number, o->length, m->config.piece);
    tb_list_append(&m->kept, &k->of_store);
    tb_list_append(&m->unsent, &k->of_unsent);
    tb_list_init(&k->of_due);
    m->counters.kept += bytes;
    m->last_kept = m->now;
    c->kept += bytes;
    c->unasked += bytes;
    c->newest = o->number >= c->newest ? o->number + 1 : c->newest;
    if (wants_confirmation(m, c)) {
        k->source.flags = TB_DATAGRAM_CONFIRM;
        c->unasked = 0;
        c->asked = c->newest;
        c->wanted = c->asked > c->wanted ? c->asked : c->wanted;
        c->ask_wait = CONFIRM_IN;
        c->ask_at = m->now + c->ask_wait;
        tb_multicast_schedule(m, c->ask_at);
    }
    delay(m, k);
    o->kept = k;
    return true;
}

static void forget(struct tb_multicast *m, struct tb_multicast_kept *k)
{
    m->counters.kept -= k->bytes;
    k->source.in->kept -= k->bytes;
    tb_list_remove(&k->source.of_context);
    tb_list_remove(&k->of_store);
    tb_list_remove(&k->of_unsent);
    tb_list_remove(&k->of_due);
    free(k->repeats);
    free(k);
}

void tb_multicast_kept_release(struct tb_multicast *m, struct tb_multicast_context *c, uint64_t number)
{
    struct tb_multicast_source *s;
    if (number > c->granted)
        c->granted = number;
    TB_LIST_EACH (s, &c->sources, struct tb_multicast_source, of_context) {
        if (!s->is_kept || s->number >= number)
            continue;
        struct tb_multicast_kept *k = TB_CONTAINER(s, struct tb_multicast_kept, source);
        if (k->operation == NULL) /* otherwise nobody can have finished it yet */
            forget(m, k);
    }
    if (c->kept == 0) {
        c->unasked = 0;
        c->ask_at = TB_NEVER;
    }
    if (!tb_list_empty(&m->wanting))
        tb_multicast_schedule(m, m->now);
}

/* Confirmation of everything that is kept is asked for now. */
static void ask_all(struct tb_multicast *m)
{
    struct tb_multicast_context *c;
    TB_LIST_EACH (c, &m->contexts.order, struct tb_multicast_context, in_order)
        if (c->kept > 0 && c->asked < c->newest) {
            c->asked = c->newest;
            c->unasked = 0;
            c->ask_wait = CONFIRM_IN;
            c->ask_at = m->now;
            tb_multicast_schedule(m, c->ask_at);
        }
}

/* ---- sending -------------------------------------------------------------------------------------------------------
 */

static void sent(struct tb_multicast *m, struct tb_multicast_kept *k)
{
    struct tb_multicast_operation *o = k->operation;
    tb_list_remove(&k->of_unsent);
    k->operation = NULL;
    o->kept = NULL;
    tb_multicast_operation_finish(m, o, TB_OK, TB_MULTICAST_NOBODY);
}

/* Sends a batch of what is due again. False: no more is, or no more was taken. */
static bool repeat(struct tb_multicast *m, struct tb_multicast_kept *k)
{
    struct tb_multicast_out out[TB_MULTICAST_BATCH];
    uint32_t n = 0;
    for (uint32_t f = 0; n < k->due && n < TB_MULTICAST_BATCH; f++) {
        const struct tb_multicast_repeat *r = &k->repeats[f];
        const struct tb_multicast_peer *peer =
            r->due && !r->to_all ? tb_multicast_peers_find(&m->peers, r->asker) : NULL;
        bool one = peer != NULL && peer->address.length > 0;
        if (r->due)
            tb_multicast_source_datagram(m, &k->source, f, TB_DATAGRAM_REPAIR, one ? &peer->address : NULL, n, &out[n]);
        n += r->due;
    }
    uint32_t taken = tb_multicast_output(m, out, n);
    for (uint32_t i = 0; i < taken; i++) {
        struct tb_multicast_repeat *r = &k->repeats[out[i].head.fragment];
        r->due = false;
        r->to_all = out[i].to == NULL;
        r->at = m->now;
        r->until = m->busy_until + m->limits.hold; /* what was sent before stands before it in the same queue */
        m->counters.repaired_all += r->to_all;
        m->counters.repaired_one += !r->to_all;
    }
    k->due -= taken;
    return taken == n && k->due > 0;
}

/* What is missing somewhere goes before what nobody waits for yet. */
static void repeat_due(struct tb_multicast *m)
{
    struct tb_multicast_kept *k;
    TB_LIST_EACH (k, &m->due, struct tb_multicast_kept, of_due) {
        while (!m->full && repeat(m, k))
            continue;
        if (k->due == 0)
            tb_list_remove(&k->of_due);
    }
}

static void transmit(struct tb_multicast *m)
{
    struct tb_multicast_kept *k;
    repeat_due(m);
    TB_LIST_EACH (k, &m->unsent, struct tb_multicast_kept, of_unsent) {
        if (k->not_before > m->now) {
            tb_multicast_schedule(m, k->not_before);
            continue;
        }
        while (!m->full && k->source.sent < k->source.fragments) {
            struct tb_multicast_out out[TB_MULTICAST_BATCH];
            uint32_t n = 0;
            for (uint32_t f = k->source.sent; n < TB_MULTICAST_BATCH && f < k->source.fragments; f++, n++)
                tb_multicast_source_datagram(m, &k->source, f, 0, NULL, n, &out[n]);
            k->source.sent += tb_multicast_output(m, out, n);
            k->until = m->busy_until + m->limits.hold;
        }
        if (k->source.sent == k->source.fragments)
            sent(m, k);
    }
}

void tb_multicast_kept_advance(struct tb_multicast *m)
{
    struct tb_multicast_operation *o;
    bool full = false;
    TB_LIST_EACH (o, &m->wanting, struct tb_multicast_operation, of) {
        if ((full && !is_urgent(o)) || !copy(m, o)) {
            full = true;
            continue;
        }
        tb_list_remove(&o->of);
        tb_list_append(&o->in->sends, &o->of);
    }
    if (full) {
        ask_all(m);
        tb_multicast_schedule(m, m->now + RETRY);
    }
    transmit(m);
    if (tb_list_empty(&m->kept))
        return;
    if (m->now - m->last_kept >= m->limits.quiet)
        ask_all(m);
    else
        tb_multicast_schedule(m, m->last_kept + m->limits.quiet);
}

int tb_multicast_kept_start(struct tb_multicast *m, struct tb_multicast_operation *o)
{
    tb_list_append(&m->wanting, &o->of);
    tb_multicast_kept_advance(m);
    if (o->in != NULL)
        return TB_PENDING;
    tb_list_remove(&o->of); /* it is over, and nobody has to be told */
    return TB_OK;
}

void tb_multicast_kept_stop(struct tb_multicast *m, struct tb_multicast_operation *o)
{
    if (o->kept != NULL)
        forget(m, o->kept);
    o->kept = NULL;
}

/* ---- answers -------------------------------------------------------------------------------------------------------
 */

static void say_not_begun(struct tb_multicast *m, struct tb_multicast_context *c, const struct tb_datagram *asked)
{
    if (m->now < c->status_until)
        return; /* all have been told, and who has not heard it asks again */
    bool again = c->status_until != 0 && m->now - c->status_until < c->status_hold;
    uint64_t hold = again ? 2 * c->status_hold : m->limits.status_hold;
    c->status_hold = hold < m->limits.wait_most ? hold : m->limits.wait_most;
    struct tb_multicast_status status = {
        .serial = ++m->statuses, .begun = c->begun, .hold = (uint32_t)(c->status_hold / TB_MULTICAST_US)};
    uint8_t bytes[TB_MULTICAST_STATUS_BYTES];
    struct tb_multicast_out out = {.head = {.context = c->id,
                                            .number = asked->number,
                                            .length = asked->length,
                                            .piece = m->config.piece,
                                            .type = TB_DATAGRAM_STATUS,
                                            .representation = m->config.representation},
                                   .payload = bytes,
                                   .length = tb_multicast_put_status(bytes, &status)};
    if (tb_multicast_output(m, &out, 1) == 0)
        return;
    c->status_until = m->now + c->status_hold / 2;
    m->counters.status++;
}

enum answer { TO_NOBODY, TO_ONE, TO_ALL };

static enum answer decide(const struct tb_multicast *m, const struct tb_multicast_repeat *r, uint32_t asker)
{
    if (r->due && (r->to_all || r->asker == asker))
        return TO_NOBODY; /* it will be sent */
    if (r->due)
        return TO_ALL;
    if (r->at == 0)
        return TO_ONE;
    if (m->now < r->until && (r->to_all || r->asker == asker))
        return TO_NOBODY; /* it is on its way */
    return !r->to_all && r->asker != asker && m->now - r->at < GATHER ? TO_ALL : TO_ONE;
}

static void answer(struct tb_multicast *m, struct tb_multicast_kept *k, uint32_t asker,
                   const struct tb_multicast_wish *wish)
{
    if (wish->all && wish->base == 0 && m->now < k->until)
        return; /* whoever has heard nothing has probably asked before it was sent */
    if (k->repeats == NULL)
        k->repeats = calloc(k->source.fragments, sizeof *k->repeats);
    for (uint32_t f = wish->base; f < k->source.sent && k->repeats != NULL; f++) {
        struct tb_multicast_repeat *r = &k->repeats[f];
        enum answer what = tb_multicast_wish_has(wish, f) ? decide(m, r, asker) : TO_NOBODY;
        if (what == TO_NOBODY)
            continue;
        k->due += !r->due;
        r->due = true;
        r->to_all = what == TO_ALL;
        r->asker = asker;
    }
    if (k->due > 0 && tb_list_empty(&k->of_due))
        tb_list_append(&m->due, &k->of_due);
    repeat_due(m);
}

/* A member was not there yet when something was sent, and lost it: what follows waits that much longer. What comes
 * early and is kept costs nothing, so that to wait for who has lost nothing would only cost time. */
static void note_skew(struct tb_multicast *m, const struct tb_multicast_kept *k, const struct tb_multicast_question *q)
{
    uint64_t wanted = k->delayed + (uint64_t)q->late_by * TB_MULTICAST_US;
    if (!q->overflow)
        return;
    wanted = wanted < m->limits.delay_most ? wanted : m->limits.delay_most;
    m->delay = wanted > m->delay ? m->delay + (wanted - m->delay) / 4 : m->delay;
}

void tb_multicast_kept_answer(struct tb_multicast *m, struct tb_multicast_context *c, const struct tb_datagram *head,
                              const struct tb_multicast_question *q)
{
    struct tb_multicast_source *s = tb_multicast_source_find(c, head->number);
    m->counters.asks_heard++;
    if (s != NULL && s->is_kept) {
        struct tb_multicast_kept *k = TB_CONTAINER(s, struct tb_multicast_kept, source);
        note_skew(m, k, q);
        answer(m, k, head->sender, &q->wish);
    } else if (s == NULL && head->number >= c->granted && !tb_multicast_operation_was(m, c, head->number)) {
        say_not_begun(m, c, head);
    }
}
