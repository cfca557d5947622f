/* The object: what comes in is handed to the part that it concerns, and what is due is done. */
#include "link/multicast_state.h"

#include "link/multicast_kept.h"
#include "link/multicast_ledger.h"
#include "link/multicast_long.h"
#include "link/multicast_operation.h"
#include "link/multicast_receive.h"
#include "link/multicast_rest.h"

#include <stdlib.h>

#define WRITER_BYTES 4096u /* of any control message, without data */

struct tb_multicast_limits tb_multicast_defaults(void)
{
    return (struct tb_multicast_limits){.short_bytes = 64u << 10,
                                        .keep = 1u << 20,
                                        .early = 1u << 20,
                                        .window_first = 32,
                                        .window_most = 128,
                                        .fan = 4,
                                        .asks = 4,
                                        .repairs = 3,
                                        .deaf = 3,
                                        .peers = 4096,
                                        .rests = 1024,
                                        .rest_bytes = 16u << 10,
                                        .ask_spread = 25 * TB_MULTICAST_US,
                                        .settle = 500 * TB_MULTICAST_US,
                                        .wait_first = 20 * TB_MULTICAST_MS,
                                        .wait_least = 2 * TB_MULTICAST_MS,
                                        .wait_most = 200 * TB_MULTICAST_MS,
                                        .hold = TB_MULTICAST_MS,
                                        .status_hold = 10 * TB_MULTICAST_MS,
                                        .delay_most = TB_MULTICAST_MS,
                                        .quiet = 1000 * TB_MULTICAST_MS};
}

/* ---- opening and closing -------------------------------------------------------------------------------------------
 */

/* So that no control message needs memory. */
static bool writer_reserve(struct tb_writer *w)
{
    static const char zeros[WRITER_BYTES];
    tb_writer_open(w);
    tb_put_bytes(w, zeros, sizeof zeros);
    return w->error == TB_OK;
}

/* For a batch of fragments, and for what one control message carries. */
#define LAG_FIRST     (4 * TB_MULTICAST_MS)
#define LAG_DATAGRAMS 64u /* on a port that does not send and receive at once, reports wait for so many */

static uint64_t first_lag(const struct tb_multicast_config *config)
{
    uint64_t time = LAG_DATAGRAMS * (config->piece + TB_DATAGRAM_BYTES) * config->byte_time / 1000;
    return time > LAG_FIRST ? time : LAG_FIRST;
}

static size_t scratch_bytes(const struct tb_multicast_limits *limits, uint16_t piece)
{
    size_t batch = (size_t)piece * TB_MULTICAST_BATCH, run = (size_t)limits->rest_bytes + piece;
    TB_ASSERT(run < TB_MULTICAST_CONTROL_BYTES - WRITER_BYTES);
    return batch > run ? batch : run;
}

int tb_multicast_open(const struct tb_multicast_config *config, struct tb_multicast **multicast)
{
    const struct tb_multicast_limits *limits = &config->limits;
    TB_ASSERT(config->piece > 0 && limits->fan > 0);
    struct tb_multicast *m = calloc(1, sizeof *m);
    if (m == NULL)
        return tb_error(TB_ERR_MEMORY, "no memory for multicast");
    m->scratch = malloc(scratch_bytes(limits, config->piece));
    m->scratch_piece = config->piece;
    if (!writer_reserve(&m->writer) || m->scratch == NULL) {
        tb_writer_close(&m->writer);
        free(m->scratch);
        free(m);
        return tb_error(TB_ERR_MEMORY, "no memory for multicast");
    }
    m->config = *config;
    m->limits = *limits;
    m->next = TB_NEVER;
    m->lag = first_lag(config);
    m->now = tb_clock_now(config->clock);
    tb_multicast_contexts_open(&m->contexts);
    tb_multicast_peers_open(&m->peers, limits->peers);
    tb_multicast_early_open(&m->early, limits->early, limits->window_most + TB_MULTICAST_BATCH, limits->short_bytes);
    tb_list_init(&m->over);
    tb_list_init(&m->kept);
    tb_list_init(&m->unsent);
    tb_list_init(&m->due);
    tb_list_init(&m->wanting);
    tb_list_init(&m->rests);
    tb_list_init(&m->refused);
    *multicast = m;
    return TB_OK;
}

static void forget(struct tb_multicast *m, struct tb_multicast_operation *o)
{
    tb_list_remove(&o->of);
    if (m->hot == o)
        m->hot = NULL;
    tb_multicast_kept_stop(m, o);
    tb_multicast_long_stop(o);
    free(o->receive.family);
    o->receive.family = NULL;
    o->in = NULL;
}

static void forget_all(struct tb_multicast *m, struct tb_list *list)
{
    struct tb_multicast_operation *o;
    TB_LIST_EACH (o, list, struct tb_multicast_operation, of)
        forget(m, o);
}

void tb_multicast_close(struct tb_multicast *m)
{
    struct tb_multicast_context *c;
    tb_multicast_rest_close(m);
    forget_all(m, &m->wanting);
    TB_LIST_EACH (c, &m->contexts.order, struct tb_multicast_context, in_order) {
        forget_all(m, &c->receives);
        forget_all(m, &c->sends);
        tb_multicast_kept_release(m, c, UINT64_MAX);
        tb_multicast_contexts_remove(c);
    }
    tb_multicast_early_close(&m->early);
    tb_multicast_peers_close(&m->peers);
    tb_writer_close(&m->writer);
    free(m->lost);
    free(m->scratch);
    free(m);
}

/* ---- contexts ------------------------------------------------------------------------------------------------------
 */

int tb_multicast_join(struct tb_multicast *m, uint64_t context, const struct tb_multicast_members *members)
{
    TB_ASSERT(members->self < members->count);
    m->now = tb_clock_now(m->config.clock);
    if (tb_multicast_contexts_find(&m->contexts, context) != NULL)
        return tb_error(TB_ERR_ARGUMENT, "multicast context %#llx is joined twice", (unsigned long long)context);
    struct tb_multicast_context *c = tb_multicast_contexts_add(&m->contexts, context, members);
    if (c == NULL)
        return tb_error(TB_ERR_MEMORY, "no memory for a multicast context of %u members", members->count);
    if (tb_multicast_ledger_join(m, c) == TB_OK)
        return TB_OK;
    tb_multicast_contexts_remove(c);
    return tb_error(TB_ERR_MEMORY, "no memory for a multicast context of %u members", members->count);
}

void tb_multicast_leave(struct tb_multicast *m, uint64_t context)
{
    struct tb_multicast_context *c = tb_multicast_contexts_find(&m->contexts, context);
    m->now = tb_clock_now(m->config.clock);
    if (c == NULL || c->left)
        return;
    TB_ASSERT(tb_list_empty(&c->receives) && tb_list_empty(&c->sends));
    tb_multicast_early_pass(&m->early, context, UINT64_MAX);
    tb_multicast_rest_pass(m, context, UINT64_MAX);
    tb_multicast_ledger_leave(m, c);
}

void tb_multicast_pass(struct tb_multicast *m, uint64_t context, uint64_t number)
{
    struct tb_multicast_context *c = tb_multicast_contexts_find(&m->contexts, context);
    if (c == NULL || number <= c->floor)
        return;
    m->now = tb_clock_now(m->config.clock);
    if (!tb_list_empty(&m->early.order))
        tb_multicast_early_pass(&m->early, context, number);
    if (tb_multicast_rest_waits(m))
        tb_multicast_rest_pass(m, context, number);
    tb_multicast_ledger_pass(m, c, number);
}

/* ---- operations ----------------------------------------------------------------------------------------------------
 */

int tb_multicast_start(struct tb_multicast *m, struct tb_multicast_operation *o)
{
    struct tb_multicast_context *c = tb_multicast_contexts_find(&m->contexts, o->context);
    m->now = tb_clock_now(m->config.clock);
    tb_list_init(&o->of);
    o->in = NULL;
    o->kept = NULL;
    o->sending = NULL;
    o->receive.family = NULL;
    o->representation = m->config.representation;
    if (c == NULL || c->left || o->root >= o->members.count || o->members.self >= o->members.count)
        return tb_error(TB_ERR_ARGUMENT, "no member of multicast context %#llx", (unsigned long long)o->context);
    if (o->members.count == 1)
        return TB_OK;
    o->is_long = o->length > m->limits.short_bytes;
    uint32_t lost = tb_multicast_operation_hopeless(m, o);
    o->blame = lost;
    if (lost != TB_MULTICAST_NOBODY)
        return tb_error(TB_ERR_PEER, "process %u, which a broadcast needs, is gone", lost);
    o->in = c;
    if (o->members.self != o->root)
        return tb_multicast_receive_start(m, o);
    int result = o->is_long ? tb_multicast_long_start(m, o) : tb_multicast_kept_start(m, o);
    if (tb_multicast_rest_waits(m))
        tb_multicast_rest_advance(m);
    return result;
}

void tb_multicast_stop(struct tb_multicast *m, struct tb_multicast_operation *o)
{
    if (o->in != NULL)
        tb_multicast_operation_note(m, o);
    forget(m, o);
}

uint64_t tb_multicast_moved(const struct tb_multicast_operation *o)
{
    return tb_multicast_long_moved(o);
}

/* ---- what comes in -------------------------------------------------------------------------------------------------
 */

static void feed_ask(struct tb_multicast *m, const struct tb_datagram *head, const void *payload, size_t length,
                     const struct tb_multicast_address *from)
{
    struct tb_multicast_question q;
    struct tb_multicast_context *c = tb_multicast_contexts_find(&m->contexts, head->context);
    struct tb_multicast_peer *peer = tb_multicast_peers_find(&m->peers, head->sender);
    bool right = c != NULL && tb_multicast_get_question(payload, length, &q) &&
                 (peer == NULL || q.serial > peer->question) && /* one that is not new may be repeated by anybody */
                 tb_multicast_tree_has(&c->members, head->sender);
    peer = right ? tb_multicast_peers_get(&m->peers, head->sender) : NULL;
    if (peer == NULL) {
        m->counters.rejected++;
        return;
    }
    peer->question = q.serial;
    tb_multicast_peer_learn(peer, from);
    tb_multicast_kept_answer(m, c, head, &q);
}

/* Something new of a root. */
static void note_root(struct tb_multicast *m, const struct tb_datagram *head, const struct tb_multicast_address *from)
{
    struct tb_multicast_peer *peer = tb_multicast_peers_get(&m->peers, head->sender);
    if (peer == NULL)
        return;
    tb_multicast_peer_learn(peer, from);
    if ((head->flags & TB_DATAGRAM_REPAIR) == 0)
        peer->unheard = 0;
    if (head->type == TB_DATAGRAM_DATA && (peer->context != head->context || head->number > peer->number)) {
        peer->context = head->context;
        peer->number = head->number;
    }
}

void tb_multicast_feed(struct tb_multicast *m, const struct tb_datagram *head, const void *payload, size_t length,
                       const struct tb_multicast_address *from)
{
    bool is_new = false;
    m->now = tb_clock_now(m->config.clock);
    switch (head->type) {
    case TB_DATAGRAM_DATA:
        is_new = tb_multicast_receive_data(m, head, payload, length);
        break;
    case TB_DATAGRAM_STATUS:
        is_new = tb_multicast_receive_status(m, head, payload, length);
        break;
    case TB_DATAGRAM_POLL:
        is_new = tb_multicast_receive_poll(m, head, payload, length);
        break;
    case TB_DATAGRAM_ASK:
        feed_ask(m, head, payload, length, from);
        break;
    case TB_DATAGRAM_PROBE: /* agents test the group again: that is for them */
        break;
    default:
        m->counters.rejected++;
        break;
    }
    if (is_new)
        note_root(m, head, from);
    if (head->flags & TB_DATAGRAM_CONFIRM) {
        struct tb_multicast_context *c = tb_multicast_contexts_find(&m->contexts, head->context);
        if (c != NULL)
            tb_multicast_ledger_flag(m, c, head->sender, head->number);
    }
    tb_multicast_operation_tell(m);
}

static void hear_report(struct tb_multicast *m, uint32_t from, const void *bytes, size_t length)
{
    struct tb_multicast_name name;
    struct tb_multicast_report report;
    struct tb_multicast_context *c = NULL;
    struct tb_multicast_operation *o;
    if (tb_multicast_get_report(bytes, length, &name, &report) && name.root == m->config.self)
        c = tb_multicast_contexts_find(&m->contexts, name.context);
    if (c == NULL) {
        tb_multicast_receive_control(m, from, TB_MULTICAST_REPORT, bytes, length);
        return;
    }
    TB_LIST_EACH (o, &c->sends, struct tb_multicast_operation, of)
        if (o->number == name.number) {
            m->counters.rejected += name.length != o->length || !tb_multicast_long_hear(m, o, from, &report);
            return;
        }
    m->counters.late++;
}

void tb_multicast_hear(struct tb_multicast *m, uint32_t from, enum tb_multicast_control kind, const void *bytes,
                       size_t length)
{
    struct tb_multicast_confirm confirm;
    struct tb_multicast_name name;
    struct tb_multicast_wish wish;
    struct tb_multicast_rest_head rest;
    uint8_t flags;
    m->now = tb_clock_now(m->config.clock);
    if (kind == TB_MULTICAST_REPORT) {
        hear_report(m, from, bytes, length);
    } else if (kind == TB_MULTICAST_POLL) {
        tb_multicast_receive_control(m, from, kind, bytes, length);
    } else if (kind == TB_MULTICAST_CONFIRM && tb_multicast_get_confirm(bytes, length, &confirm)) {
        tb_multicast_ledger_hear(m, from, &confirm);
    } else if (kind == TB_MULTICAST_ASK && tb_multicast_get_control_ask(bytes, length, &name, &flags, &wish)) {
        tb_multicast_rest_ask(m, from, &name, flags, &wish);
    } else if (kind == TB_MULTICAST_REST && tb_multicast_get_rest(bytes, length, &rest, &bytes, &length)) {
        tb_multicast_receive_rest(m, from, &rest, bytes, length);
    } else {
        m->counters.rejected++;
    }
    tb_multicast_operation_tell(m);
}

/* ---- room for what comes -------------------------------------------------------------------------------------------
 */

bool tb_multicast_expect(const struct tb_multicast *m, struct tb_multicast_row *row)
{
    const struct tb_multicast_operation *o = m->hot;
    uint32_t n = 0;
    if (o == NULL || o->payload.base == NULL)
        return false;
    const struct tb_multicast_receive *r = &o->receive;
    /* There is no place for what is more than expected. */
    for (uint32_t f = r->to; n < TB_MULTICAST_BATCH && f < r->fragments && f - r->holes.base < TB_MULTICAST_SPAN &&
                             tb_multicast_receive_place(o, f, r->piece) != NULL;
         f++)
        n++;
    *row = (struct tb_multicast_row){.context = o->context,
                                     .number = o->number,
                                     .length = r->length,
                                     .sender = tb_multicast_operation_root(o),
                                     .fragment = r->to,
                                     .count = n,
                                     .piece = r->piece,
                                     .at = n > 0 ? tb_multicast_receive_place(o, r->to, r->piece) : NULL};
    return n > 0;
}

/* ---- time ----------------------------------------------------------------------------------------------------------
 */

static void work_in(struct tb_multicast *m, struct tb_multicast_context *c)
{
    struct tb_multicast_operation *o;
    TB_LIST_EACH (o, &c->receives, struct tb_multicast_operation, of)
        tb_multicast_receive_advance(m, o);
    TB_LIST_EACH (o, &c->sends, struct tb_multicast_operation, of)
        if (o->is_long)
            tb_multicast_long_advance(m, o);
}

static void work(struct tb_multicast *m)
{
    struct tb_multicast_context *c;
    m->next = TB_NEVER;
    if (m->stuck && m->stuck_until <= m->now)
        m->stuck = false;
    tb_multicast_kept_advance(m);
    TB_LIST_EACH (c, &m->contexts.order, struct tb_multicast_context, in_order)
        work_in(m, c);
    tb_multicast_rest_advance(m);
    tb_multicast_ledger_advance(m);
}

void tb_multicast_writable(struct tb_multicast *m)
{
    m->now = tb_clock_now(m->config.clock);
    m->full = false;
    work(m);
}

void tb_multicast_control_writable(struct tb_multicast *m)
{
    if (!m->stuck) /* whatever else is due has a time */
        return;
    m->now = tb_clock_now(m->config.clock);
    m->stuck = false;
    work(m);
}

void tb_multicast_advance(struct tb_multicast *m)
{
    m->now = tb_clock_now(m->config.clock);
    if (m->now >= m->next)
        work(m);
    tb_multicast_operation_tell(m);
}

uint64_t tb_multicast_deadline(const struct tb_multicast *m)
{
    return tb_list_empty(&m->over) ? m->next : 0;
}

/* ---- what the owner knows ------------------------------------------------------------------------------------------
 */

static void lose_operations(struct tb_multicast *m, struct tb_list *list)
{
    struct tb_multicast_operation *o;
    TB_LIST_EACH (o, list, struct tb_multicast_operation, of) {
        uint32_t blame = tb_multicast_operation_hopeless(m, o);
        if (blame == TB_MULTICAST_NOBODY)
            continue;
        forget(m, o);
        tb_multicast_operation_finish(m, o, TB_ERR_PEER, blame);
    }
}

void tb_multicast_lose(struct tb_multicast *m, uint32_t process)
{
    struct tb_multicast_context *c;
    if (tb_multicast_is_lost(m, process))
        return;
    m->now = tb_clock_now(m->config.clock);
    if (m->lost_count == m->lost_room) {
        uint32_t room = m->lost_room > 0 ? 2 * m->lost_room : 16;
        uint32_t *lost = realloc(m->lost, room * sizeof *lost);
        if (lost == NULL && m->lost_count == 0)
            return;
        m->lost = lost != NULL ? lost : m->lost;
        m->lost_room = lost != NULL ? room : m->lost_room;
        m->lost_count -= lost == NULL; /* of so many one may be forgotten */
    }
    m->lost[m->lost_count++] = process;
    TB_LIST_EACH (c, &m->contexts.order, struct tb_multicast_context, in_order) {
        lose_operations(m, &c->receives);
        lose_operations(m, &c->sends);
    }
    tb_multicast_rest_lose(m, process);
    tb_multicast_peers_forget(&m->peers, process);
    tb_multicast_ledger_lose(m);
}

bool tb_multicast_overhear(const struct tb_multicast *m, uint64_t context, uint64_t first, uint64_t last,
                           uint64_t *number, uint32_t *root)
{
    struct tb_multicast_untaken found;
    if (!tb_multicast_early_among(&m->early, context, first, last, &found))
        return false;
    *number = found.number;
    *root = found.root;
    return true;
}

void tb_multicast_depart(struct tb_multicast *m, uint32_t process)
{
    if (m->meets)
        tb_multicast_ledger_close(m, process);
    tb_multicast_lose(m, process);
}

void tb_multicast_meet_last(struct tb_multicast *m)
{
    m->meets = true;
}

void tb_multicast_part(struct tb_multicast *m, bool all)
{
    m->meets = false;
    if (all)
        tb_multicast_ledger_close(m, m->config.self);
    m->next = 0; /* what was put off for the meeting is due */
}

void tb_multicast_move(struct tb_multicast *m, const struct tb_multicast_address *address)
{
    m->own = address != NULL ? *address : (struct tb_multicast_address){.length = 0};
}

static void deafen_all(struct tb_multicast *m, struct tb_list *receives)
{
    struct tb_multicast_operation *o;
    TB_LIST_EACH (o, receives, struct tb_multicast_operation, of)
        tb_multicast_receive_deafen(m, o);
}

void tb_multicast_deafen(struct tb_multicast *m, bool deaf)
{
    struct tb_multicast_context *c;
    bool begins = deaf && !m->deaf;
    m->deaf = deaf;
    m->now = tb_clock_now(m->config.clock);
    if (begins)
        TB_LIST_EACH (c, &m->contexts.order, struct tb_multicast_context, in_order)
            deafen_all(m, &c->receives);
}

void tb_multicast_cut(struct tb_multicast *m, uint16_t piece, uint32_t holds)
{
    TB_ASSERT(piece > 0);
    if (piece > m->scratch_piece) { /* nothing stands there between two calls */
        char *scratch = malloc(scratch_bytes(&m->limits, piece));
        if (scratch == NULL)
            return;
        free(m->scratch);
        m->scratch = scratch;
        m->scratch_piece = piece;
    }
    m->config.piece = piece;
    m->config.holds = holds;
}

void tb_multicast_flush(struct tb_multicast *m)
{
    m->now = tb_clock_now(m->config.clock);
    m->last_kept = 0; /* as after a long silence */
    work(m);
}

bool tb_multicast_is_needed(const struct tb_multicast *m)
{
    const struct tb_multicast_context *c;
    if (tb_multicast_keeps(m) || m->rests_count > 0)
        return true;
    TB_LIST_EACH (c, &m->contexts.order, struct tb_multicast_context, in_order)
        if (!tb_list_empty(&c->sends) || tb_multicast_ledger_is_needed(c))
            return true;
    return false;
}

bool tb_multicast_keeps(const struct tb_multicast *m)
{
    return !tb_list_empty(&m->kept);
}

void tb_multicast_count(const struct tb_multicast *m, struct tb_multicast_counters *counters)
{
    *counters = m->counters;
    counters->early_kept = m->early.bytes;
}
