#include "link/multicast_ask.h"
#include "link/multicast_operation.h"
#include "link/multicast_output.h"

#define PATIENCE       (1000 * TB_MULTICAST_MS) /* without a word of the root, then a control message asks, */
#define PATIENCE_MORE  (10 * PATIENCE)          /* and again so long after the answer that it has not begun */
#define SETTLE_MOST    (20 * TB_MULTICAST_MS)
#define CONTROL_WAIT   (1000 * TB_MULTICAST_MS) /* for an answer to a control message, doubled each time */
#define CONTROL_SPREAD 20u                      /* control messages are spread over so much more time than datagrams */

static struct tb_multicast_peer *root_of(const struct tb_multicast *m, const struct tb_multicast_operation *o)
{
    return tb_multicast_peers_find(&m->peers, tb_multicast_operation_root(o));
}

static uint64_t spread(struct tb_multicast *m, const struct tb_multicast_operation *o, uint32_t times)
{
    return tb_random_below(m->config.random, o->members.count * m->limits.ask_spread * times + 1);
}

static void ask_at(struct tb_multicast *m, struct tb_multicast_operation *o, uint64_t at)
{
    o->receive.next = at;
    tb_multicast_schedule(m, at);
}

/* For how long something that is missing may only be late, after the last fragment that has come. */
static uint64_t settle_time(const struct tb_multicast *m, const struct tb_multicast_operation *o)
{
    const struct tb_multicast_peer *root = root_of(m, o);
    const struct tb_multicast_receive *r = &o->receive;
    uint64_t settle = root != NULL && 2 * root->overtaking > m->limits.settle ? 2 * root->overtaking : m->limits.settle;
    settle = settle < SETTLE_MOST ? settle : SETTLE_MOST;
    if (r->begun || (r->fragments > 0 && r->to == r->fragments))
        return settle;
    uint64_t more = settle + (root != NULL ? 4 * root->gap : 0);
    more = more < SETTLE_MOST ? more : SETTLE_MOST;
    return more > m->limits.wait_least ? more : m->limits.wait_least;
}

static uint64_t wait_time(const struct tb_multicast *m, const struct tb_multicast_peer *root)
{
    uint64_t wait = root != NULL && root->wait != 0 ? root->wait + 4 * root->wait_deviation : m->limits.wait_first;
    return wait < m->limits.wait_least ? m->limits.wait_least : wait < m->limits.wait_most ? wait : m->limits.wait_most;
}

void tb_multicast_ask_begin(struct tb_multicast *m, struct tb_multicast_operation *o)
{
    struct tb_multicast_receive *r = &o->receive;
    const struct tb_multicast_peer *root = root_of(m, o);
    r->patient_until = r->entered + PATIENCE;
    if (root != NULL && root->context == o->context && root->number > o->number)
        r->begun = true;
    if (m->deaf || (r->first == 0 && tb_multicast_operation_is_deaf(m, o))) {
        ask_at(m, o, m->now);
        tb_multicast_ask_advance(m, o);
    } else if (r->first != 0 || r->begun) {
        ask_at(m, o, m->now + settle_time(m, o) + spread(m, o, 1));
    } else if (root == NULL || root->address.length == 0) { /* nobody knows where to ask but by a control message */
        ask_at(m, o, m->now + m->limits.wait_first + spread(m, o, CONTROL_SPREAD));
    } else {
        ask_at(m, o, m->now + wait_time(m, root) + spread(m, o, 1));
    }
}

void tb_multicast_ask_progress(struct tb_multicast *m, struct tb_multicast_operation *o)
{
    struct tb_multicast_receive *r = &o->receive;
    r->asks = r->control_asks = 0;
    r->asked = 0;
    ask_at(m, o, m->now + settle_time(m, o) + spread(m, o, 1));
}

void tb_multicast_ask_begun(struct tb_multicast *m, struct tb_multicast_operation *o)
{
    struct tb_multicast_receive *r = &o->receive;
    if (r->begun)
        return;
    r->begun = true;
    uint64_t at = m->now + settle_time(m, o) + spread(m, o, 1);
    if (r->asked == 0 && at < r->next)
        ask_at(m, o, at);
}

void tb_multicast_ask_hold(struct tb_multicast *m, struct tb_multicast_operation *o, uint64_t hold)
{
    struct tb_multicast_receive *r = &o->receive;
    hold = hold < m->limits.wait_most ? hold : m->limits.wait_most;
    if (r->first != 0 || m->now >= r->patient_until)
        return; /* anybody with the key may have said so: that is not to go on for ever */
    r->asks = 0;
    r->asked = 0;
    ask_at(m, o, m->now + hold + spread(m, o, 1));
}

void tb_multicast_ask_told(struct tb_multicast *m, struct tb_multicast_operation *o, bool begun)
{
    struct tb_multicast_receive *r = &o->receive;
    r->asked = 0;
    r->certain = r->begun = begun;
    if (begun) { /* it may still be on its way */
        ask_at(m, o, m->now + m->limits.wait_least + settle_time(m, o));
        return;
    }
    uint32_t times = r->control_asks > 0 ? r->control_asks - 1u : 0;
    r->asks = 0;
    r->patient_until = m->now + PATIENCE_MORE;
    ask_at(m, o, m->now + (m->limits.wait_most << (times < 5 ? times : 5)) + spread(m, o, CONTROL_SPREAD));
}

void tb_multicast_ask_served(struct tb_multicast *m, struct tb_multicast_operation *o)
{
    ask_at(m, o, m->now + CONTROL_WAIT);
}

/* ---- asking --------------------------------------------------------------------------------------------------------
 */

static bool ask_datagram(struct tb_multicast *m, struct tb_multicast_operation *o, const struct tb_multicast_peer *root)
{
    struct tb_multicast_receive *r = &o->receive;
    struct tb_multicast_question q = {.serial = m->questions + 1, .overflow = r->missed_early};
    uint64_t late = r->first != 0 && r->first < r->entered ? (r->entered - r->first) / TB_MULTICAST_US : 0;
    uint8_t bytes[TB_MULTICAST_QUESTION_BYTES];
    q.late_by = late < UINT32_MAX ? (uint32_t)late : UINT32_MAX;
    if (r->fragments == 0)
        q.wish.all = true;
    else
        tb_multicast_wish_make(&q.wish, &r->holes, r->fragments, true);
    struct tb_multicast_out out = {.head = {.context = o->context,
                                            .number = o->number,
                                            .length = r->length,
                                            .piece = r->piece != 0 ? r->piece : m->config.piece,
                                            .extra = (uint16_t)(r->asks + 1),
                                            .type = TB_DATAGRAM_ASK,
                                            .representation = m->config.representation},
                                   .payload = bytes,
                                   .length = tb_multicast_put_question(bytes, &q),
                                   .to = &root->address};
    if (tb_multicast_output(m, &out, 1) == 0)
        return false;
    m->questions++;
    m->counters.asks_sent++;
    return true;
}

/* How long the answer may take: there and back, and what is missing on the wire. */
static uint64_t answer_time(const struct tb_multicast *m, const struct tb_multicast_operation *o,
                            const struct tb_multicast_peer *root)
{
    const struct tb_multicast_receive *r = &o->receive;
    uint64_t bytes = r->fragments == 0 ? r->length
                                       : (uint64_t)tb_multicast_holes_count(&r->holes, 0, r->fragments) *
                                             (r->piece + TB_DATAGRAM_BYTES);
    uint64_t wait = 2 * root->answer > m->limits.wait_least ? 2 * root->answer : m->limits.wait_least;
    wait = wait << (r->asks < 6 ? r->asks : 6);
    wait = wait < m->limits.wait_most ? wait : m->limits.wait_most;
    return wait + bytes * m->config.byte_time / 1000;
}

static void ask_control(struct tb_multicast *m, struct tb_multicast_operation *o)
{
    struct tb_multicast_receive *r = &o->receive;
    uint8_t flags = r->certain ? TB_MULTICAST_ASK_CERTAIN : 0;
    if (m->deaf || (r->first == 0 && tb_multicast_operation_is_deaf(m, o)))
        flags |= TB_MULTICAST_ASK_DEAF;
    if (!tb_multicast_operation_ask(m, o, flags, r->fragments, true)) {
        ask_at(m, o, m->stuck_until);
        return;
    }
    r->asked = m->now;
    ask_at(m, o, m->now + (CONTROL_WAIT << (r->control_asks < 6 ? r->control_asks : 6)));
    r->control_asks = r->control_asks < UINT8_MAX ? r->control_asks + 1 : UINT8_MAX;
}

/* A root that has not been heard of may only be late; while datagrams usually come, it is not bothered further. */
void tb_multicast_ask_advance(struct tb_multicast *m, struct tb_multicast_operation *o)
{
    struct tb_multicast_receive *r = &o->receive;
    if (r->next > m->now) {
        tb_multicast_schedule(m, r->next);
        return;
    }
    const struct tb_multicast_peer *root = root_of(m, o);
    bool known = root != NULL && root->address.length > 0;
    bool patient = r->first == 0 && !r->begun && m->now < r->patient_until;
    bool deaf = m->deaf || (r->first == 0 && tb_multicast_operation_is_deaf(m, o));
    if (!known || deaf || r->certain || (r->asks >= m->limits.asks && !patient)) {
        ask_control(m, o);
        return;
    }
    if (!ask_datagram(m, o, root)) {
        ask_at(m, o, m->now + m->limits.wait_least);
        return;
    }
    uint64_t wait = answer_time(m, o, root);
    r->asked = r->asked == 0 ? m->now : r->asked;
    r->asks = r->asks < UINT8_MAX ? r->asks + 1 : UINT8_MAX;
    ask_at(m, o, m->now + wait + spread(m, o, 1));
}
