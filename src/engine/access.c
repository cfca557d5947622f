#include "engine/access.h"

#include "engine/access_direct.h"
#include "engine/access_run.h"
#include "engine/engine_state.h"

#include <stdlib.h>

/* ---- all of an engine -------------------------------------------------------------------------------------------- */

int tb_accesses_open(struct tb_accesses *accesses)
{
    if (accesses->frame != NULL)
        return TB_OK;
    tb_pool_open(&accesses->pool, sizeof(struct tb_access), 64, TB_ACCESSES_LIMIT);
    accesses->frame = malloc(TB_ACCESS_FRAME);
    return accesses->frame != NULL ? TB_OK : tb_error(TB_ERR_MEMORY, "no memory for frames of one-sided access");
}

static void accesses_close(struct tb_accesses *accesses)
{
    if (accesses->frame == NULL)
        return;
    while (!tb_list_empty(&accesses->waiting)) {
        struct tb_peer *p = TB_CONTAINER(accesses->waiting.next, struct tb_peer, on_accessing);
        tb_list_remove(&p->on_accessing);
        tb_results_forget(p);
    }
    tb_pool_close(&accesses->pool);
    free(accesses->frame);
}

/* ---- frames ------------------------------------------------------------------------------------------------------ */

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static enum tb_stream stream_of(const struct tb_access_walk *k)
{
    return k->kind == TB_KIND_PUT && k->total > TB_ACCESS_SHORT ? TB_STREAM_BULK : TB_STREAM_SHORT;
}

static struct tb_envelope envelope_of(const struct tb_access_walk *k, enum tb_kind kind, uint64_t id, uint64_t length)
{
    const struct tb_window *w = k->rank->window;
    return (struct tb_envelope){.message = {.kind = (uint8_t)kind,
                                            .context = w->context,
                                            .match = id,
                                            .length = length,
                                            .source_rank = w->channel->rank,
                                            .representation = w->engine->representation}};
}

/* What nothing comes back for is asked about sooner or later, or something else follows on the short stream: it may
 * wait for that. */
static int send_out(const struct tb_access_walk *k, const struct tb_envelope *envelope, struct tb_spans *payload)
{
    struct tb_peer *p = k->rank->peer;
    struct tb_transport *t = p->endpoint->transport;
    t->more = !k->answered && stream_of(k) == TB_STREAM_SHORT;
    int rc = tb_peer_transmit(p, envelope, payload, stream_of(k), 0);
    t->more = false;
    return rc;
}

static int send_dense(struct tb_access_walk *k)
{
    struct tb_peer *p = k->rank->peer;
    uint64_t n = least(least(TB_ACCESS_PIECE, p->frame), k->total - k->sent);
    struct tb_envelope envelope = envelope_of(k, TB_KIND_PUT, 0, n);
    envelope.message.offset = (uintptr_t)k->target.base + k->sent;
    struct tb_spans spans;
    tb_buffer_spans(&k->origin, k->sent, n, &spans);
    int rc = send_out(k, &envelope, &spans);
    if (rc == TB_OK)
        k->sent += n;
    return rc;
}

/* How many bytes of data a frame has behind its runs for so many that it is about. */
static uint64_t operands(const struct tb_access_walk *k, uint64_t bytes)
{
    if (k->kind == TB_KIND_GET || (k->kind == TB_KIND_ACCUMULATE && k->op->code == TB_OP_NO_OP))
        return 0;
    return k->kind == TB_KIND_COMPARE ? 2 * bytes : bytes;
}

static struct tb_runs_room room_of(const struct tb_access_walk *k)
{
    const struct tb_peer *p = k->rank->peer;
    uint64_t payload = least(p->frame, TB_ACCESS_PIECE) - TB_ACCESS_HEAD_BYTES;
    return (struct tb_runs_room){.runs = (uint32_t)least(TB_ACCESS_RUNS, payload / TB_ACCESS_RUN_BYTES),
                                 .data = k->kind == TB_KIND_ACCUMULATE ? TB_ACCESS_COMBINED : TB_ACCESS_PIECE,
                                 .all = operands(k, 1) > 0 ? payload : UINT64_MAX};
}

/* The beginning of a frame's payload, head and runs. Its length; *bytes of data that it is about. */
static size_t head_make(const struct tb_access_walk *k, uint8_t *frame, uint64_t *bytes)
{
    struct tb_access_run runs[TB_ACCESS_RUNS];
    const struct tb_runs_room room = room_of(k);
    struct tb_access_head head = {.position = k->sent};
    if (k->element != NULL)
        head.type = k->element->code;
    if (k->kind == TB_KIND_ACCUMULATE)
        head.op = (uint8_t)k->op->code;
    *bytes = tb_runs_make(&k->target, k->sent, k->element, &room, runs, &head.runs);
    uint8_t *at = frame;
    tb_wire_put_access_head(at, &head);
    at += TB_ACCESS_HEAD_BYTES;
    for (uint32_t i = 0; i < head.runs; i++, at += TB_ACCESS_RUN_BYTES)
        tb_wire_put_access_run(at, &runs[i]);
    return (size_t)(at - frame);
}

static void behind_head(struct tb_spans *s)
{
    s->base = (char *)(uintptr_t)s->cursor[0];
    s->length = s->left;
}

/* The payload of a frame: what head_make has put there, and the data behind it, which is left where it lies if it is
 * long and in one piece. */
static struct tb_spans frame_spans(const struct tb_access_walk *k, uint8_t *frame, size_t head, uint64_t bytes)
{
    if (k->kind == TB_KIND_COMPARE) {
        memcpy(frame + head, k->compare, k->total);
        memcpy(frame + head + k->total, k->origin.base, k->total);
    } else if (operands(k, bytes) > TB_ACCESS_SHORT && k->origin.type->dense) {
        return (struct tb_spans){.base = (char *)frame,
                                 .length = head,
                                 .left = head + bytes,
                                 .next = behind_head,
                                 .cursor = {(uintptr_t)k->origin.base + k->sent}};
    } else if (operands(k, bytes) > 0) {
        tb_part_gather(&(struct tb_part){&k->origin, 0, k->total}, k->sent, bytes, frame + head);
    }
    return tb_spans_of(frame, head + operands(k, bytes));
}

static int send_runs(struct tb_access_walk *k, struct tb_access *a)
{
    struct tb_peer *p = k->rank->peer;
    if (k->answered && p->wanted >= TB_ACCESS_WINDOW / tb_engine_lanes(p->engine)) /* the target may have none */
        return TB_AGAIN;
    uint8_t *frame = p->engine->accesses.frame;
    uint64_t n;
    size_t head = head_make(k, frame, &n);
    enum tb_kind kind = k->kind == TB_KIND_PUT ? TB_KIND_PUT_RUNS : (enum tb_kind)k->kind;
    // NOLINTNEXTLINE(clang-analyzer-core.NullDereference): what is answered has a record
    struct tb_envelope envelope = envelope_of(k, kind, k->answered ? a->core.message_id : 0, n);
    struct tb_spans spans = frame_spans(k, frame, head, n);
    int rc = send_out(k, &envelope, &spans);
    if (rc != TB_OK)
        return rc;
    k->sent += n;
    if (k->answered) {
        a->outstanding += n;
        a->frames++;
        p->wanted += n + TB_ACCESS_COST;
    }
    return TB_OK;
}

/* Sends what there is room for. TB_OK: all has left. */
static int walk_push(struct tb_access_walk *k, struct tb_access *a)
{
    struct tb_window_rank *r = k->rank;
    bool dense = k->kind == TB_KIND_PUT && k->target.type->dense;
    while (k->sent < k->total) {
        int rc = dense ? send_dense(k) : send_runs(k, a);
        if (rc != TB_OK)
            return rc;
        r->sent++;
        if (!k->answered)
            r->silent = r->sent;
        tb_window_note(r);
    }
    return TB_OK;
}

/* ---- one access -------------------------------------------------------------------------------------------------- */

/* So much of it has come, or will not be waited for. Nothing says to which frame it belongs, so that those count until
 * all that they asked for is there. */
static void access_take(struct tb_access *a, uint64_t bytes)
{
    struct tb_peer *p = a->core.peer;
    a->outstanding -= bytes;
    p->wanted -= bytes;
    if (a->outstanding > 0)
        return;
    p->wanted -= a->frames * TB_ACCESS_COST;
    a->frames = 0;
}

/* It has ended here. Whoever has no request of it hears of an error when it synchronises. */
static void rank_fail(struct tb_window_rank *r, struct tb_request *request, int error)
{
    if (error != TB_OK && request == NULL) {
        r->error = error;
        tb_window_note(r);
    }
    if (request != NULL)
        tb_request_finish(request, error);
}

static void access_ended(struct tb_request *core)
{
    struct tb_access *a = TB_CONTAINER(core, struct tb_access, core);
    struct tb_window_rank *r = a->walk.rank;
    struct tb_request *request = a->request;
    int error = core->status.error;
    tb_list_remove(&a->open);
    access_take(a, a->outstanding);
    tb_type_release(a->walk.origin.type);
    tb_type_release(a->walk.result.type);
    tb_type_release(a->walk.target.type);
    tb_pool_give(&core->engine->accesses.pool, a);
    rank_fail(r, request, error);
}

/* All of it has left: if nothing comes back, that was it. */
static void access_left(struct tb_access *a)
{
    tb_list_remove(&a->core.queue);
    if (!a->walk.answered)
        tb_request_finish(&a->core, TB_OK);
}

static const struct tb_type *hold(const struct tb_type *type)
{
    return type != NULL ? tb_type_hold(type) : NULL;
}

/* One that stays. NULL: no memory. */
static struct tb_access *access_make(const struct tb_access_walk *k, struct tb_request *request)
{
    struct tb_window_rank *r = k->rank;
    struct tb_window *w = r->window;
    struct tb_access *a = tb_pool_take(&w->engine->accesses.pool);
    if (a == NULL)
        return NULL;
    *a = (struct tb_access){.walk = *k, .request = request, .core = {.complete = access_ended}};
    tb_request_begin(&a->core, w->channel->point, TB_REQUEST_ACCESS);
    a->core.peer = r->peer;
    a->core.rank = tb_window_number(r);
    if (k->answered && tb_request_number(&a->core) != TB_OK) {
        tb_channel_drop(w->channel);
        tb_pool_give(&w->engine->accesses.pool, a);
        return NULL;
    }
    tb_request_enlist(&a->core, NULL);
    hold(k->origin.type);
    hold(k->result.type);
    hold(k->target.type);
    a->number = w->begun;
    tb_list_append(&r->open, &a->open);
    tb_window_note(r);
    return a;
}

/* Into the queue before its stream, or at once to where it goes. */
static void access_leave(struct tb_access *a)
{
    struct tb_peer *p = a->core.peer;
    struct tb_list *queue = &p->accesses[stream_of(&a->walk)];
    int rc = tb_list_empty(queue) ? walk_push(&a->walk, a) : TB_AGAIN;
    if (rc == TB_OK) {
        access_left(a);
    } else if (rc == TB_AGAIN) {
        tb_list_append(queue, &a->core.queue);
        tb_accesses_queue(p);
    } else {
        tb_request_finish(&a->core, rc);
    }
}

/* Whether the lock that it needs is there; asks for it, if that has not been done. */
static bool may_access(struct tb_window_rank *r)
{
    if (!r->window->locked_all || r->locked != TB_LOCK_NONE)
        return true;
    if (r->locking == TB_LOCK_NONE) {
        r->locking = TB_LOCK_SHARED;
        tb_window_tell(r, TB_KIND_LOCK, 0, TB_LOCK_JOIN);
    }
    return r->locked != TB_LOCK_NONE;
}

/* TB_OK: it is over. TB_PENDING: its own request tells the end. */
static int access_begin(struct tb_access_walk *k, struct tb_request *request)
{
    struct tb_window_rank *r = k->rank;
    struct tb_peer *p = tb_window_peer(r);
    if (p == NULL)
        return TB_ERR_MEMORY;
    if (p->error != TB_OK)
        return tb_peer_error(p);
    /* What combines must not overtake what went by frames. */
    bool ordered = k->kind == TB_KIND_ACCUMULATE || k->kind == TB_KIND_COMPARE;
    bool free_to_go = may_access(r), overtakes = ordered && (!tb_list_empty(&r->open) || r->confirmed < r->sent);
    int rc = free_to_go && !overtakes ? tb_access_direct(k) : TB_AGAIN;
    if (rc != TB_AGAIN)
        return rc;
    if (p->endpoint == NULL && (rc = tb_peer_reach(p)) != TB_OK) {
        tb_peer_break(p, rc);
        return tb_peer_error(p);
    }
    if (free_to_go && !k->answered && tb_list_empty(&p->accesses[stream_of(k)])) {
        rc = walk_push(k, NULL);
        if (rc != TB_AGAIN)
            return rc;
    }
    struct tb_access *a = access_make(k, request);
    if (a == NULL)
        return TB_ERR_MEMORY;
    if (free_to_go)
        access_leave(a);
    else
        tb_list_append(&r->held, &a->core.queue);
    return TB_PENDING;
}

static void access_start(struct tb_access_walk *k, struct tb_request *request)
{
    struct tb_window *w = k->rank->window;
    tb_engine_lock(w->engine);
    w->begun++;
    if (request != NULL) {
        tb_request_begin(request, w->channel->point, TB_REQUEST_ACCESS);
        request->rank = tb_window_number(k->rank);
        request->peer = tb_window_peer(k->rank);
    }
    int rc = k->total > 0 ? access_begin(k, request) : TB_OK;
    if (rc != TB_PENDING)
        rank_fail(k->rank, request, rc);
    tb_engine_unlock(w->engine);
}

/* ---- what waits for room ----------------------------------------------------------------------------------------- */

static int queue_push(struct tb_peer *p, enum tb_stream stream)
{
    struct tb_list *queue = &p->accesses[stream];
    int gone = 0;
    while (!tb_list_empty(queue)) {
        struct tb_access *a = TB_CONTAINER(queue->next, struct tb_access, core.queue);
        uint64_t before = a->walk.sent;
        int rc = walk_push(&a->walk, a);
        gone += a->walk.sent != before;
        if (rc == TB_AGAIN)
            break;
        if (rc == TB_OK)
            access_left(a);
        else
            tb_request_finish(&a->core, rc);
    }
    return gone;
}

static int accesses_push(struct tb_accesses *accesses)
{
    int gone = 0;
    struct tb_peer *p;
    TB_LIST_EACH (p, &accesses->waiting, struct tb_peer, on_accessing) {
        if (p->error != TB_OK)
            tb_results_forget(p);
        else
            gone += tb_results_push(p);
        for (unsigned stream = 0; stream < TB_STREAM_COUNT && p->error == TB_OK; stream++)
            if (p->local || !p->held[stream]) /* a socket says when it is worth it */
                gone += queue_push(p, (enum tb_stream)stream);
        if (tb_list_empty(&p->results) && tb_list_empty(&p->accesses[TB_STREAM_SHORT]) &&
            tb_list_empty(&p->accesses[TB_STREAM_BULK]))
            tb_list_remove(&p->on_accessing);
    }
    return gone;
}

const struct tb_accesses_work tb_accesses_work = {
    .push = accesses_push, .bury = tb_windows_bury, .close = accesses_close};

void tb_accesses_release(struct tb_window_rank *r)
{
    while (!tb_list_empty(&r->held)) {
        struct tb_access *a = TB_CONTAINER(r->held.next, struct tb_access, core.queue);
        tb_list_remove(&a->core.queue);
        access_leave(a);
    }
}

/* ---- answers ----------------------------------------------------------------------------------------------------- */

static struct tb_access *access_find(struct tb_peer *p, uint64_t id)
{
    struct tb_request *core = id != 0 ? tb_request_find(p->engine, id, TB_REQUEST_ACCESS) : NULL;
    return core != NULL && core->peer == p ? TB_CONTAINER(core, struct tb_access, core) : NULL;
}

/* Whether it was asked for and has not come. */
static bool is_wanted(const struct tb_access *a, const struct tb_message *m, size_t length)
{
    const struct tb_access_walk *k = &a->walk;
    return length <= a->outstanding && m->offset <= k->sent && length <= k->sent - m->offset;
}

void *tb_access_place(struct tb_peer *p, const struct tb_message *m, size_t length)
{
    struct tb_access *a = access_find(p, m->match);
    if (a == NULL || p->placing != NULL || !a->walk.result.type->dense || !is_wanted(a, m, length))
        return NULL;
    void *place = (char *)a->walk.result.base + m->offset;
    p->placing = place;
    p->placing_for = m->match;
    return place;
}

/* Whether a part of its result is being read to where it belongs. */
static bool is_placing(const struct tb_access *a)
{
    return a->core.peer->placing != NULL && a->core.peer->placing_for == a->core.message_id;
}

/* It ends, unless they have sent something of it twice, and part of that is on its way into its memory: then they are
 * given up, and it ends when that is forgotten. */
static void access_finish(struct tb_access *a, int error)
{
    struct tb_peer *p = a->core.peer;
    if (TB_UNLIKELY(is_placing(a)))
        tb_peer_break(p, tb_error(TB_ERR_PROTOCOL, "process %u has sent data of a window twice", p->proc.index));
    else
        tb_request_finish(&a->core, error);
}

void tb_access_got(struct tb_peer *p, const struct tb_message *m, const void *payload, size_t length)
{
    if (payload == p->placing)
        p->placing = NULL;
    struct tb_access *a = access_find(p, m->match);
    if (a == NULL)
        return;
    struct tb_access_walk *k = &a->walk;
    if (!is_wanted(a, m, length)) {
        tb_peer_break(
            p, tb_error(TB_ERR_PROTOCOL, "process %u has sent data of a window that nobody asked for", p->proc.index));
        return;
    }
    if (!k->result.type->dense || payload != (char *)k->result.base + m->offset)
        tb_part_scatter(&(struct tb_part){&k->result, 0, k->total}, m->offset, length, payload);
    access_take(a, length);
    p->engine->waiting.events++;
    if (a->refused && !is_placing(a))
        access_finish(a, TB_ERR_ARGUMENT);
    else if (!a->refused && k->sent == k->total && a->outstanding == 0)
        access_finish(a, TB_OK);
}

/* The rank of a process that does not know its own, since the window is gone there. */
static struct tb_window_rank *rank_of_process(const struct tb_peer *p, struct tb_window *w)
{
    for (uint32_t rank = 0; rank < w->channel->size; rank++)
        if (tb_channel_proc(w->channel, rank) == p->proc.index)
            return &w->ranks[rank];
    return NULL;
}

void tb_access_refused(struct tb_peer *p, const struct tb_message *m, const void *payload, size_t length)
{
    struct tb_access *a = access_find(p, m->match);
    struct tb_window *w = tb_windows_find(&p->engine->windows, m->context);
    struct tb_window_rank *r = w != NULL ? rank_of_process(p, w) : NULL;
    int error = m->length == TB_REFUSAL_LOCK ? TB_ERR_PEER : TB_ERR_ARGUMENT;
    if (r == NULL)
        return;
    p->engine->waiting.events++;
    if (m->length == TB_REFUSAL_LOCK && m->offset < w->channel->size)
        r->blocker = (uint32_t)m->offset;
    if (a != NULL) {
        r->silent = r->sent; /* more frames of it may be on their way, and nothing will come back for them */
        a->refused = true;
        tb_list_remove(&a->core.queue); /* nothing more of it leaves */
        if (!is_placing(a))
            access_finish(a, TB_ERR_ARGUMENT);
    } else if (m->match == 0) { /* else it has ended, and its error was told */
        rank_fail(r, NULL, error);
    }
    if (m->length == TB_REFUSAL_RANGE)
        return;
    if (m->length == TB_REFUSAL_WINDOW)
        r->confirmed = r->sent; /* there is nobody who would say so */
    r->locking = TB_LOCK_NONE;
    while (!tb_list_empty(&r->held))
        tb_request_finish(TB_CONTAINER(r->held.next, struct tb_request, queue), error);
}

/* ---- calls ------------------------------------------------------------------------------------------------------- */

static bool moves_at_once(struct tb_window *w, const struct tb_buffer *mine, const struct tb_access_target *target,
                          bool put)
{
    tb_engine_lock(w->engine);
    bool done = tb_access_move_at_once(w, mine, target, put);
    tb_engine_unlock(w->engine);
    return done;
}

static bool combines_at_once(struct tb_window *w, const struct tb_buffer *origin, const struct tb_buffer *result,
                             const struct tb_access_target *target, const struct tb_op *op)
{
    tb_engine_lock(w->engine);
    bool done = tb_access_combine_at_once(w, origin, result, target, op, tb_access_element(target->data.type));
    tb_engine_unlock(w->engine);
    return done;
}

static struct tb_access_walk walk_of(struct tb_window *w, enum tb_kind kind, const struct tb_access_target *target)
{
    return (struct tb_access_walk){.rank = &w->ranks[target->rank],
                                   .kind = (uint8_t)kind,
                                   .target = target->data,
                                   .total = tb_buffer_bytes(&target->data)};
}

void tb_access_put(struct tb_window *window, const struct tb_buffer *origin, const struct tb_access_target *target,
                   struct tb_request *request)
{
    if (request == NULL && moves_at_once(window, origin, target, true))
        return;
    struct tb_access_walk k = walk_of(window, TB_KIND_PUT, target);
    k.origin = *origin;
    access_start(&k, request);
}

void tb_access_get(struct tb_window *window, const struct tb_buffer *result, const struct tb_access_target *target,
                   struct tb_request *request)
{
    if (request == NULL && moves_at_once(window, result, target, false))
        return;
    struct tb_access_walk k = walk_of(window, TB_KIND_GET, target);
    k.result = *result;
    k.answered = true;
    access_start(&k, request);
}

void tb_access_accumulate(struct tb_window *window, const struct tb_buffer *origin,
                          const struct tb_access_target *target, const struct tb_op *op, struct tb_request *request)
{
    if (request == NULL && combines_at_once(window, origin, NULL, target, op))
        return;
    struct tb_access_walk k = walk_of(window, TB_KIND_ACCUMULATE, target);
    k.origin = *origin;
    k.op = op;
    k.element = tb_access_element(target->data.type);
    access_start(&k, request);
}

void tb_access_fetch(struct tb_window *window, const struct tb_buffer *origin, const struct tb_buffer *result,
                     const struct tb_access_target *target, const struct tb_op *op, struct tb_request *request)
{
    if (request == NULL && combines_at_once(window, origin, result, target, op))
        return;
    struct tb_access_walk k = walk_of(window, TB_KIND_ACCUMULATE, target);
    if (op->code != TB_OP_NO_OP)
        k.origin = *origin;
    k.result = *result;
    k.answered = true;
    k.op = op;
    k.element = tb_access_element(target->data.type);
    access_start(&k, request);
}

void tb_access_compare(struct tb_window *window, const void *origin, const void *compare, void *result,
                       const struct tb_access_target *target)
{
    struct tb_access_walk k = walk_of(window, TB_KIND_COMPARE, target);
    k.origin = (struct tb_buffer){(void *)(uintptr_t)origin, 1, target->data.type};
    k.result = (struct tb_buffer){result, 1, target->data.type};
    k.compare = compare;
    k.answered = true;
    k.element = target->data.type;
    access_start(&k, NULL);
}

const struct tb_type *tb_access_element(const struct tb_type *type)
{
    if (type->code != 0)
        return tb_type_predefined(UINT32_C(0x200) | type->code);
    return type->size > 0 ? tb_type_only_basic(type) : &tb_type_byte; /* of no data at all any is right */
}
