#include "engine/access_direct.h"

#include "engine/access_run.h"
#include "engine/engine_state.h"

#define CHUNK 4096u /* bytes that are combined at a time */
#define WHOLE 64u   /* bytes that are copied from process to process as a whole */

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* The bytes from the first to the last one that a buffer touches, seen from its base. */
static void hull(const struct tb_buffer *b, int64_t *from, uint64_t *bytes)
{
    int64_t last = (int64_t)(b->count - 1) * b->type->extent;
    int64_t low = b->type->true_lower_bound + (last < 0 ? last : 0);
    int64_t high = b->type->true_lower_bound + b->type->true_extent + (last > 0 ? last : 0);
    *from = low;
    *bytes = (uint64_t)(high - low);
}

/* All pieces of a target in a dynamic window of this process. */
static bool pieces_are_attached(const struct tb_access_walk *k)
{
    struct tb_spans s;
    tb_buffer_spans(&k->target, 0, k->total, &s);
    while (s.left > 0) {
        if (tb_window_memory(k->rank->window, (uintptr_t)s.base, s.length) == NULL)
            return false;
        tb_spans_skip(&s, s.length);
    }
    return true;
}

/* The target where it lies in this process. TB_AGAIN: it does not. */
static int target_here(const struct tb_access_walk *k, struct tb_buffer *here)
{
    struct tb_window *w = k->rank->window;
    int64_t from;
    uint64_t bytes;
    void *at = NULL;
    *here = k->target;
    if (k->rank->peer->self && w->dynamic)
        return pieces_are_attached(k) ? TB_OK : TB_ERR_ARGUMENT;
    hull(&k->target, &from, &bytes);
    uint64_t first = (uintptr_t)k->target.base + (uint64_t)from;
    if (k->rank->peer->self)
        at = tb_window_memory(w, first, bytes);
    else if (w->near->map != NULL)
        at = w->near->map(w->near_context, tb_window_number(k->rank), first, bytes);
    if (at == NULL)
        return k->rank->peer->self ? TB_ERR_ARGUMENT : TB_AGAIN;
    here->base = (char *)at - from;
    return TB_OK;
}

static void move(const struct tb_buffer *from, const struct tb_buffer *to, uint64_t bytes)
{
    struct tb_spans a, b;
    tb_buffer_spans(from, 0, bytes, &a);
    tb_buffer_spans(to, 0, bytes, &b);
    tb_spans_move(&a, &b);
}

/* `n` bytes from byte `from` of the data on, in pieces that lie side by side. */
static void chunk_combine(const struct tb_access_walk *k, const struct tb_buffer *here, uint64_t from, uint64_t n,
                          const char *in, char *old)
{
    const struct tb_type *element = k->element;
    bool gaps = tb_element_has_gaps(element);
    uint64_t done = 0;
    while (done < n) {
        struct tb_spans s;
        tb_buffer_spans(here, from + done, gaps ? element->size : n - done, &s);
        uint64_t bytes = gaps ? element->size : s.length;
        tb_items_combine(element, k->op, in + done, old != NULL ? old + done : NULL, s.base, bytes / element->size);
        done += bytes;
    }
}

/* A buffer's data from byte `at` on, where all of it lies in one piece; else NULL. */
static char *piece_of(const struct tb_buffer *b, uint64_t at)
{
    return b->type != NULL && b->type->dense ? (char *)b->base + at : NULL;
}

static void combine(const struct tb_access_walk *k, const struct tb_buffer *here)
{
    char in[CHUNK], old[CHUNK];
    uint32_t rank = tb_window_number(k->rank);
    uint64_t most = CHUNK - CHUNK % k->element->size;
    for (uint64_t at = 0; at < k->total;) {
        uint64_t n = least(most, k->total - at);
        const char *from = piece_of(&k->origin, at);
        char *into = k->answered ? piece_of(&k->result, at) : NULL;
        bool scatters = k->answered && into == NULL;
        if (from == NULL && k->op->code != TB_OP_NO_OP)
            tb_part_gather(&(struct tb_part){&k->origin, 0, k->total}, at, n, in);
        tb_window_enter(k->rank->window, rank);
        chunk_combine(k, here, at, n, from != NULL ? from : in, scatters ? old : into);
        tb_window_leave(k->rank->window, rank);
        if (scatters)
            tb_part_scatter(&(struct tb_part){&k->result, 0, k->total}, at, n, old);
        at += n;
    }
}

static void compare(const struct tb_access_walk *k, void *here)
{
    uint32_t rank = tb_window_number(k->rank);
    tb_window_enter(k->rank->window, rank);
    bool equal = memcmp(here, k->compare, k->total) == 0;
    memcpy(k->result.base, here, k->total);
    if (equal)
        memcpy(here, k->origin.base, k->total);
    tb_window_leave(k->rank->window, rank);
}

/* From process to process. What is done when there turns out to be no way is done again by frames. */
static int copy_across(const struct tb_access_walk *k)
{
    const struct tb_window *w = k->rank->window;
    bool put = k->kind == TB_KIND_PUT;
    struct tb_spans there, here;
    if ((put ? w->near->write : w->near->read) == NULL)
        return TB_AGAIN;
    tb_buffer_spans(&k->target, 0, k->total, &there);
    tb_buffer_spans(put ? &k->origin : &k->result, 0, k->total, &here);
    uint32_t rank = tb_window_number(k->rank);
    /* The kernel's copies are in no order: whoever looks at a word or two that others replace sees all or nothing. */
    bool whole = k->total <= WHOLE && w->near->reaches != NULL && w->near->reaches(w->near_context, rank);
    if (whole)
        tb_window_enter(w, rank);
    int rc = (put ? w->near->write : w->near->read)(w->near_context, rank, &there, &here, k->total);
    if (whole)
        tb_window_leave(w, rank);
    return rc;
}

/* `bytes` of what is combined, from byte `from` of the data on, whose pieces lie in another process. */
static int chunk_across(const struct tb_access_walk *k, uint64_t from, uint64_t bytes, const char *in, char *old)
{
    const struct tb_window *w = k->rank->window;
    uint32_t rank = tb_window_number(k->rank);
    _Alignas(16) char chunk[CHUNK];
    struct tb_spans here = tb_spans_of(chunk, bytes), there;
    tb_buffer_spans(&k->target, from, bytes, &there);
    tb_window_enter(w, rank);
    int rc = w->near->read(w->near_context, rank, &there, &here, bytes);
    if (rc == TB_OK && k->kind == TB_KIND_COMPARE) {
        // NOLINTNEXTLINE(clang-analyzer-core.NonNullParamChecker): whoever compares is answered
        memcpy(old, chunk, bytes);
        memcpy(chunk, memcmp(chunk, k->compare, bytes) == 0 ? in : old, bytes);
    } else if (rc == TB_OK) {
        tb_packed_combine(k->element, k->op, in, old, chunk, bytes / k->element->size);
    }
    here = tb_spans_of(chunk, bytes);
    tb_buffer_spans(&k->target, from, bytes, &there);
    if (rc == TB_OK && (k->op == NULL || k->op->code != TB_OP_NO_OP))
        rc = w->near->write(w->near_context, rank, &there, &here, bytes);
    tb_window_leave(w, rank);
    return rc;
}

/* Whether there is a way to all of it: nothing is changed before that is known. */
static int combine_way(const struct tb_access_walk *k)
{
    const struct tb_window *w = k->rank->window;
    struct tb_spans there;
    if (w->near->way == NULL || w->near->read == NULL || w->near->write == NULL)
        return TB_AGAIN;
    tb_buffer_spans(&k->target, 0, k->total, &there);
    return w->near->way(w->near_context, tb_window_number(k->rank), &there);
}

/* What was combined cannot be again. If the way is lost in between (the target may just be attaching other memory), the
 * rest goes by frames. */
static int combine_across(struct tb_access_walk *k)
{
    char in[CHUNK], old[CHUNK];
    int rc = combine_way(k);
    for (uint64_t done = 0; done < k->total && rc == TB_OK;) {
        uint64_t n = least(k->total - done, CHUNK - CHUNK % k->element->size);
        if (k->op == NULL || k->op->code != TB_OP_NO_OP)
            tb_part_gather(&(struct tb_part){&k->origin, 0, k->total}, done, n, in);
        rc = chunk_across(k, done, n, in, k->answered ? old : NULL);
        if (rc == TB_OK && k->answered)
            tb_part_scatter(&(struct tb_part){&k->result, 0, k->total}, done, n, old);
        if (rc == TB_OK)
            done += n;
        k->sent = done;
    }
    if (rc == TB_OK)
        k->sent = 0;
    return rc;
}

int tb_access_direct(struct tb_access_walk *k)
{
    const struct tb_window *w = k->rank->window;
    struct tb_buffer here;
    if (!k->rank->peer->self && (w->near == NULL || !k->rank->peer->local))
        return TB_AGAIN;
    int rc = target_here(k, &here);
    if (rc == TB_AGAIN)
        return k->kind == TB_KIND_PUT || k->kind == TB_KIND_GET ? copy_across(k) : combine_across(k);
    if (rc != TB_OK)
        return rc;
    switch (k->kind) {
    case TB_KIND_PUT:
        move(&k->origin, &here, k->total);
        break;
    case TB_KIND_GET:
        move(&here, &k->result, k->total);
        break;
    case TB_KIND_ACCUMULATE:
        combine(k, &here);
        break;
    default: /* COMPARE */
        compare(k, here.base);
        break;
    }
    return TB_OK;
}

/* What lies there, of as many bytes as `mine`, in memory of another rank of the host that is mapped here, in one piece;
 * NULL: it does not, or other things have to be done first. */
static char *piece_at_once(struct tb_window *w, const struct tb_access_target *t)
{
    const struct tb_window_rank *r = &w->ranks[t->rank];
    if (w->near == NULL || w->near->map == NULL || r->peer == NULL || !r->peer->local || r->peer->error != TB_OK ||
        (w->locked_all && r->locked == TB_LOCK_NONE) || !t->data.type->dense)
        return NULL;
    uint64_t bytes = tb_buffer_bytes(&t->data);
    return bytes > 0 ? w->near->map(w->near_context, t->rank, (uintptr_t)t->data.base, bytes) : NULL;
}

bool tb_access_move_at_once(struct tb_window *w, const struct tb_buffer *mine, const struct tb_access_target *target,
                            bool put)
{
    char *there = mine->type->dense ? piece_at_once(w, target) : NULL;
    if (there == NULL)
        return false;
    memmove(put ? there : mine->base, put ? mine->base : there, tb_buffer_bytes(mine)); /* it may be the same memory */
    return true;
}

bool tb_access_combine_at_once(struct tb_window *w, const struct tb_buffer *origin, const struct tb_buffer *result,
                               const struct tb_access_target *target, const struct tb_op *op,
                               const struct tb_type *element)
{
    const struct tb_window_rank *r = &w->ranks[target->rank];
    uint64_t bytes = tb_buffer_bytes(&target->data);
    bool dense = (op->code == TB_OP_NO_OP || origin->type->dense) && (result == NULL || result->type->dense);
    if (!dense || bytes > CHUNK || !tb_list_empty(&r->open) || r->confirmed < r->sent)
        return false;
    char *there = piece_at_once(w, target);
    if (there == NULL)
        return false;
    tb_window_enter(w, target->rank);
    tb_items_combine(element, op, op->code != TB_OP_NO_OP ? origin->base : NULL, result != NULL ? result->base : NULL,
                     there, bytes / element->size);
    tb_window_leave(w, target->rank);
    return true;
}
