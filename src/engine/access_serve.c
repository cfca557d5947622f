#include "engine/access_serve.h"

#include "engine/access_run.h"
#include "engine/engine_state.h"

static void refuse(struct tb_peer *p, const struct tb_message *m, enum tb_refusal why)
{
    const struct tb_message answer = {.kind = TB_KIND_REFUSED,
                                      .context = m->context,
                                      .match = m->match,
                                      .length = why,
                                      .source_rank = m->source_rank,
                                      .offset = 1, /* source_rank is that of the origin: the window is not known here */
                                      .representation = p->engine->representation};
    tb_peer_answer(p, &answer);
}

static void senseless(struct tb_peer *p, const struct tb_message *m)
{
    tb_peer_break(p, tb_error(TB_ERR_PROTOCOL, "process %u has sent a senseless access (kind %u) to a window",
                              p->proc.index, m->kind));
}

/* The rank of the window that has sent this; NULL: there is no such window, or it lies. */
static struct tb_window_rank *rank_of(struct tb_peer *p, const struct tb_message *m)
{
    struct tb_window *w = tb_windows_find(&p->engine->windows, m->context);
    if (w == NULL)
        return NULL;
    if (m->source_rank >= w->channel->size || tb_channel_proc(w->channel, m->source_rank) != p->proc.index) {
        senseless(p, m);
        return NULL;
    }
    struct tb_window_rank *r = &w->ranks[m->source_rank];
    r->peer = p;
    return r;
}

/* One more was applied, or refused. */
static void count(struct tb_window_rank *r)
{
    r->applied++;
    if (TB_UNLIKELY(r->flushing || r->unlocking || r->ended))
        tb_window_settle(r);
}

static void refuse_range(struct tb_window_rank *r, const struct tb_message *m)
{
    tb_window_tell(r, TB_KIND_REFUSED, m->match, TB_REFUSAL_RANGE);
    count(r);
}

/* One frame of a peer at a time, as of receives; whoever closes the window or detaches its memory gives it up. */
void *tb_serve_place(struct tb_peer *p, const struct tb_message *m, size_t length)
{
    struct tb_window *w = tb_windows_find(&p->engine->windows, m->context);
    if (w == NULL || p->placing != NULL || m->length != length || m->source_rank >= w->channel->size ||
        tb_channel_proc(w->channel, m->source_rank) != p->proc.index)
        return NULL;
    void *place = tb_window_memory(w, m->offset, length);
    p->placing = place;
    p->placing_for = 0; /* no receive */
    p->placing_in = w;
    p->placing_bytes = length;
    if (place != NULL)
        w->ranks[m->source_rank].peer = p;
    return place;
}

void tb_serve_put(struct tb_peer *p, const struct tb_message *m, const void *payload, size_t length)
{
    if (payload == p->placing)
        p->placing = NULL;
    struct tb_window_rank *r = rank_of(p, m);
    if (r == NULL) {
        if (p->error == TB_OK)
            refuse(p, m, TB_REFUSAL_WINDOW);
        return;
    }
    void *at = tb_window_memory(r->window, m->offset, length);
    if (TB_UNLIKELY(at == NULL)) {
        refuse_range(r, m);
        return;
    }
    if (at != payload)
        memcpy(at, payload, length);
    count(r);
}

/* ---- what has runs ----------------------------------------------------------------------------------------------- */

struct work {
    struct tb_access_head head;
    struct tb_run_work runs;
    const struct tb_op *op;
    const uint8_t *data;
};

/* What the payload says, if it makes sense. */
static bool work_read(const struct tb_message *m, const uint8_t *payload, size_t length, struct work *work)
{
    tb_wire_get_access_head(payload, &work->head);
    const struct tb_access_head *h = &work->head;
    uint64_t left = length - TB_ACCESS_HEAD_BYTES;
    if (h->zero != 0 || h->runs == 0 || h->runs > left / TB_ACCESS_RUN_BYTES)
        return false;
    left -= (uint64_t)h->runs * TB_ACCESS_RUN_BYTES;
    work->runs.runs = payload + TB_ACCESS_HEAD_BYTES;
    work->runs.count = h->runs;
    work->data = work->runs.runs + (size_t)h->runs * TB_ACCESS_RUN_BYTES;
    uint64_t data = m->length;
    if (m->kind == TB_KIND_ACCUMULATE || m->kind == TB_KIND_COMPARE) {
        work->runs.element = tb_type_predefined(UINT32_C(0x200) | h->type);
        work->op = tb_op_of_code(h->op);
        if (work->runs.element == NULL || work->runs.element->size == 0 || work->op == NULL)
            return false;
    } else if (h->op != 0 || h->type != 0) {
        return false;
    }
    switch (m->kind) {
    case TB_KIND_GET:
        data = 0;
        break;
    case TB_KIND_ACCUMULATE:
        if (tb_op_check(work->op, work->runs.element) != TB_OK)
            return false;
        data = work->op->code == TB_OP_NO_OP ? 0 : m->length;
        break;
    case TB_KIND_COMPARE:
        if (h->op != 0 || m->length != work->runs.element->size || tb_element_has_gaps(work->runs.element))
            return false;
        data = 2 * m->length;
        break;
    default:
        break;
    }
    return left == data && tb_runs_check(&work->runs, m->length);
}

/* A GET of what lies in one piece, `run`: what is told is read there. NULL: it is none. */
static const void *piece_wanted(const struct tb_window *w, const struct tb_message *m, const struct work *work,
                                struct tb_access_run *run)
{
    tb_wire_get_access_run(work->runs.runs, run);
    return m->kind == TB_KIND_GET && work->head.runs == 1 && run->count == 1
               ? tb_window_memory((void *)(uintptr_t)w, run->at, run->bytes)
               : NULL;
}

/* Carries it out; what is to be told is written to `result`. */
static void work_do(const struct tb_window *w, const struct tb_message *m, const struct work *work, uint8_t *result)
{
    uint32_t own = w->channel->rank;
    switch (m->kind) {
    case TB_KIND_PUT_RUNS:
        tb_runs_write(&work->runs, work->data);
        return;
    case TB_KIND_GET:
        tb_runs_read(&work->runs, result);
        return;
    case TB_KIND_ACCUMULATE:
        tb_window_enter(w, own);
        tb_runs_combine(&work->runs, work->op, work->data, result);
        tb_window_leave(w, own);
        return;
    default: /* COMPARE, of one element, which is one run */
        tb_window_enter(w, own);
        tb_runs_read(&work->runs, result);
        // NOLINTNEXTLINE(clang-analyzer-core.NonNullParamChecker): whoever compares is answered
        if (memcmp(result, work->data, m->length) == 0)
            tb_runs_write(&work->runs, work->data + m->length);
        tb_window_leave(w, own);
        return;
    }
}

void tb_serve_runs(struct tb_peer *p, const struct tb_message *m, const void *payload, size_t length)
{
    struct tb_window_rank *r = rank_of(p, m);
    struct work work = {.runs = {.find = tb_window_memory, .context = r != NULL ? r->window : NULL}};
    if (p->error != TB_OK)
        return;
    if (r == NULL) {
        refuse(p, m, TB_REFUSAL_WINDOW);
        return;
    }
    bool answers = m->kind != TB_KIND_PUT_RUNS && m->match != 0;
    if (!work_read(m, payload, length, &work) ||
        (answers ? m->length > TB_ACCESS_PIECE : m->kind == TB_KIND_GET || m->kind == TB_KIND_COMPARE)) {
        senseless(p, m);
        return;
    }
    if (!tb_runs_reach(&work.runs)) {
        refuse_range(r, m);
        return;
    }
    struct tb_access_run run;
    const void *piece = piece_wanted(r->window, m, &work, &run);
    uint8_t *result = answers ? p->engine->accesses.frame : NULL;
    if (piece == NULL)
        work_do(r->window, m, &work, result);
    if (answers) {
        const struct tb_message got = {.kind = TB_KIND_GOT,
                                       .context = m->context,
                                       .match = m->match,
                                       .offset = work.head.position,
                                       .length = m->length,
                                       .source_rank = r->window->channel->rank,
                                       .representation = p->engine->representation};
        tb_access_answer(p, &got, piece != NULL ? piece : result, piece != NULL ? &run.at : NULL);
    }
    count(r);
}

/* ---- words ------------------------------------------------------------------------------------------------------- */

/* Whoever asks about a window that is gone must not wait for it. */
static void answer_without(struct tb_peer *p, const struct tb_message *m)
{
    if (m->kind != TB_KIND_FLUSH && m->kind != TB_KIND_UNLOCK && m->kind != TB_KIND_LOCK)
        return;
    refuse(p, m, TB_REFUSAL_WINDOW);
}

static void to_target(struct tb_window_rank *r, const struct tb_message *m)
{
    switch (m->kind) {
    case TB_KIND_FLUSH:
        r->flushing = true;
        r->flush_at = m->length;
        tb_window_settle(r);
        return;
    case TB_KIND_LOCK:
        if (!tb_lock_queue_ask(&r->window->lock, &r->seat, (enum tb_lock_mode)m->length))
            senseless(r->peer, m);
        tb_window_refuse_blocked(r->window);
        return;
    case TB_KIND_UNLOCK:
        r->unlocking = true;
        r->unlock_at = m->length;
        tb_window_settle(r);
        return;
    default: /* COMPLETE */
        if (!r->exposed)
            return;
        r->ended = true;
        r->ended_at = m->length;
        tb_window_settle(r);
        return;
    }
}

static void to_origin(struct tb_window_rank *r, const struct tb_message *m)
{
    struct tb_engine *e = r->window->engine;
    e->waiting.events++;
    switch (m->kind) {
    case TB_KIND_APPLIED:
        if (m->length > r->confirmed && m->length <= r->sent)
            r->confirmed = m->length;
        return;
    case TB_KIND_LOCKED:
        if (m->length == 1) { /* a lock in memory: it is worth looking again */
            tb_lock_queue_look(&r->window->lock);
            return;
        }
        if (r->queued || r->locking == TB_LOCK_NONE)
            return;
        tb_window_hold(r, (enum tb_lock_mode)r->locking);
        r->locking = TB_LOCK_NONE;
        tb_accesses_release(r);
        return;
    default: /* POST */
        r->posts++;
        return;
    }
}

void tb_serve_word(struct tb_peer *p, const struct tb_message *m, const void *payload, size_t length)
{
    struct tb_window_rank *r = rank_of(p, m);
    if (r == NULL && p->error == TB_OK)
        answer_without(p, m);
    if (r == NULL)
        return;
    if (m->kind == TB_KIND_APPLIED || m->kind == TB_KIND_LOCKED || m->kind == TB_KIND_POST)
        to_origin(r, m);
    else
        to_target(r, m);
}
