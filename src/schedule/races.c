/* Races within a rank: steps that touch the same piece must be ordered, whoever is faster. */
#include "schedule/execution.h"

#include <stdlib.h>

/* How a step comes after another: its k-th item after the (k - lag)-th of that one, or after all of it, or not at all.
 */
#define ORDER_NONE  UINT32_MAX
#define ORDER_WHOLE (UINT32_MAX - 1)

static uint32_t order_direct(const struct tb_step *s, uint32_t after)
{
    if (s->joined || !(s->piecewise || TB_AFTER_STEP(after) != after))
        return ORDER_WHOLE;
    return (after & TB_AFTER_SHIFTED) == 0 ? 0 : s->lag > 1 ? s->lag : 1;
}

/* Which of two claims says more. */
static bool order_stronger(uint32_t a, uint32_t b)
{
    return a != b && a != ORDER_NONE && (b == ORDER_NONE || a == ORDER_WHOLE || (b != ORDER_WHOLE && a < b));
}

/* How a step comes after `early` if it comes `direct`ly after `middle`, which comes `before` after that one: after all
 * of it if it waits for all of the middle one, whose last item waits for its last. */
static uint32_t order_through(uint32_t direct, const struct tb_step *middle, uint32_t before,
                              const struct tb_step *early)
{
    if (before == ORDER_NONE)
        return ORDER_NONE;
    if (direct == ORDER_WHOLE) {
        bool all = before == ORDER_WHOLE || (uint64_t)tb_step_items(early) + before <= tb_step_items(middle);
        return all ? ORDER_WHOLE : ORDER_NONE;
    }
    if (before == ORDER_WHOLE)
        return direct == 0 ? ORDER_WHOLE : direct;
    return direct + before;
}

/* Step i comes directly after step j, and so after all that this one comes after. */
static void order_add(const struct tb_program *p, uint32_t *order, size_t i, size_t j, uint32_t direct)
{
    size_t n = p->step_count;
    if (order_stronger(direct, order[i * n + j]))
        order[i * n + j] = direct;
    for (size_t k = 0; k < j; k++) {
        uint32_t through = order_through(direct, &p->steps[j], order[j * n + k], &p->steps[k]);
        if (order_stronger(through, order[i * n + k]))
            order[i * n + k] = through;
    }
}

/* order[i * n + k]: how step i comes after step k, directly or through others. */
static uint32_t *order_make(const struct tb_program *p)
{
    size_t n = p->step_count;
    uint32_t *order = malloc((n * n + 1) * sizeof *order);
    if (order == NULL)
        return NULL;
    memset(order, 0xff, (n * n + 1) * sizeof *order);
    for (size_t i = 0; i < n; i++) {
        const struct tb_step *s = &p->steps[i];
        for (uint32_t d = 0; d < s->after_count; d++) {
            uint32_t after = p->after[s->after + d], direct = order_direct(s, after), j = TB_AFTER_STEP(after);
            order_add(p, order, i, j, direct);
            /* The first piece of one is all of it, too. */
            if (direct == 0 && tb_step_items(&p->steps[j]) == 1)
                order_add(p, order, i, j, ORDER_WHOLE);
        }
    }
    return order;
}

/* What a step reads and writes. A receive writes its slice, a copy and a reduction write the other one. */
static const struct tb_slice *step_writes(const struct tb_step *s)
{
    return s->kind == TB_STEP_RECEIVE ? &s->slice : tb_step_is_local(s) ? &s->other : NULL;
}

static const struct tb_slice *step_reads(const struct tb_step *s)
{
    return s->kind == TB_STEP_RECEIVE || s->kind == TB_STEP_MEASURE ? NULL : &s->slice;
}

/* Which item of a slice a piece is, if it is one. */
static bool slice_find(const struct tb_slice *s, uint32_t piece, uint32_t *item)
{
    int64_t way = (int64_t)piece - s->first;
    if (s->count == 0 || (s->stride == 0 ? way != 0 : way % s->stride != 0))
        return false;
    int64_t at = s->stride == 0 ? s->count - 1 : way / s->stride;
    *item = (uint32_t)at;
    return at >= 0 && at < s->count;
}

/* Whether an item of `late` and one of `early` touch a piece without being ordered. */
static bool slices_race(const struct tb_slice *late, const struct tb_slice *early, uint32_t order)
{
    if (late == NULL || early == NULL || late->symbol != early->symbol || order == ORDER_WHOLE)
        return false;
    for (uint32_t i = 0; i < late->count; i++) {
        uint32_t k;
        if (slice_find(early, tb_slice_piece(late, i), &k) && (order == ORDER_NONE || i < (uint64_t)k + order))
            return true;
    }
    return false;
}

int tb_program_check_races(const struct tb_program *p, uint32_t rank)
{
    uint32_t *order = order_make(p);
    if (order == NULL)
        return tb_error(TB_ERR_MEMORY, "no memory to validate a program of %u steps", p->step_count);
    int error = TB_OK;
    for (uint32_t i = 0; i < p->step_count && error == TB_OK; i++)
        for (uint32_t k = 0; k < i && error == TB_OK; k++) {
            const struct tb_step *late = &p->steps[i], *early = &p->steps[k];
            uint32_t o = order[(size_t)i * p->step_count + k];
            if (slices_race(step_writes(late), step_reads(early), o) ||
                slices_race(step_writes(late), step_writes(early), o) ||
                slices_race(step_reads(late), step_writes(early), o))
                error = tb_error(TB_ERR_ARGUMENT, "rank %u: steps %u (%s) and %u (%s) touch the same piece in no order",
                                 rank, k, tb_step_kind_name(early->kind), i, tb_step_kind_name(late->kind));
        }
    free(order);
    return error;
}
