/* Races within a rank: steps that touch the same piece must be ordered, whoever is faster. */
#include "schedule/execution.h"

#include <stdlib.h>

/* How a step comes after another: when the piece at position x of it starts, positions [0, x + 1 - lag) of that one are
 * done; or all of it; or nothing is known. What is known of an item holds for each of its pieces. */
#define ORDER_NONE  INT64_MAX
#define ORDER_WHOLE INT64_MIN

static int64_t order_direct(const struct tb_program *p, const struct tb_step *s, const struct tb_after *after)
{
    const struct tb_step *before = &p->steps[after->step];
    /* What the first item needs, all do. */
    return tb_step_needs(s, after, before, 0) == before->items ? ORDER_WHOLE : after->lag;
}

/* How `late` comes after `early` if it comes `direct`ly after `middle`, which comes `before` after that one. */
static int64_t order_through(const struct tb_step *late, int64_t direct, const struct tb_step *middle, int64_t before,
                             const struct tb_step *early)
{
    int64_t count = tb_step_count(late), most = tb_step_count(middle);
    if (before == ORDER_NONE)
        return ORDER_NONE;
    if (before == ORDER_WHOLE) /* from the first piece on that waits for any of the middle one */
        return direct <= 0 ? ORDER_WHOLE : direct;
    bool all = most - before >= tb_step_count(early); /* who waits for all of the middle one does so for all of this */
    if (direct == ORDER_WHOLE)
        return all ? ORDER_WHOLE : count - most + before;
    /* The first `direct` pieces wait for nothing, whatever the middle one asks for beyond its own position. */
    int64_t lag = direct > 0 && before < 0 ? direct : direct + before;
    /* The last ones wait for all of a shorter middle one, and for no more. */
    if (count - direct > most && !all && lag < count - most + before)
        lag = count - most + before;
    return lag;
}

/* Step i comes directly after step j, and so after all that this one comes after. */
static void order_add(const struct tb_program *p, int64_t *order, size_t i, size_t j, int64_t direct)
{
    size_t n = p->step_count;
    if (direct < order[i * n + j])
        order[i * n + j] = direct;
    for (size_t k = 0; k < j; k++) {
        int64_t through = order_through(&p->steps[i], direct, &p->steps[j], order[j * n + k], &p->steps[k]);
        if (through < order[i * n + k])
            order[i * n + k] = through;
    }
}

/* order[i * n + k]: how step i comes after step k, directly or through others. */
static int64_t *order_make(const struct tb_program *p)
{
    size_t n = p->step_count;
    int64_t *order = calloc(n * n + 1, sizeof *order);
    if (order == NULL)
        return NULL;
    for (size_t i = 0; i < n * n; i++)
        order[i] = ORDER_NONE;
    for (size_t i = 0; i < n; i++) {
        const struct tb_step *s = &p->steps[i];
        for (uint32_t d = 0; d < s->after_count; d++) {
            const struct tb_after *after = &p->after[s->after + d];
            order_add(p, order, i, after->step, order_direct(p, s, after));
        }
    }
    return order;
}

/* ---- what steps touch -------------------------------------------------------------------------------------------- */

/* A slice that a step reads or writes. Of a list, `positions` says for pieces from `low` on the last position that each
 * has in it, plus one; made when it is first asked for. */
struct touched {
    const struct tb_slice *slice; /* NULL: nothing */
    uint32_t *positions;
    uint32_t low, room;
};

struct races {
    const struct tb_program *program;
    int64_t *order;
    struct touched *reads, *writes; /* of each step */
    int error;
};

/* A receive writes its slice, a copy and a reduction write the other one. */
static const struct tb_slice *step_writes(const struct tb_step *s)
{
    return s->kind == TB_STEP_RECEIVE ? &s->slice : tb_step_is_local(s) ? &s->other : NULL;
}

static const struct tb_slice *step_reads(const struct tb_step *s)
{
    return s->kind == TB_STEP_RECEIVE || s->kind == TB_STEP_MEASURE ? NULL : &s->slice;
}

static void list_open(struct races *r, struct touched *t)
{
    const uint32_t *list = r->program->lists + t->slice->first;
    uint32_t low = UINT32_MAX, high = 0;
    for (uint32_t i = 0; i < t->slice->count; i++) {
        low = list[i] < low ? list[i] : low;
        high = list[i] > high ? list[i] : high;
    }
    t->positions = calloc((size_t)(high - low) + 1, sizeof *t->positions);
    if (t->positions == NULL) {
        r->error = tb_error(TB_ERR_MEMORY, "no memory to validate a program of %u steps", r->program->step_count);
        return;
    }
    t->low = low;
    t->room = high - low + 1;
    for (uint32_t i = 0; i < t->slice->count; i++)
        t->positions[list[i] - low] = i + 1;
}

/* The last position of a piece in a slice, if it is there. */
static bool slice_find(struct races *r, struct touched *t, uint32_t piece, uint32_t *position)
{
    const struct tb_slice *s = t->slice;
    if (s->count == 0)
        return false;
    if (s->stride == TB_SLICE_LIST) {
        if (t->positions == NULL)
            list_open(r, t);
        if (t->positions == NULL || piece < t->low || piece - t->low >= t->room)
            return false;
        *position = t->positions[piece - t->low] - 1;
        return t->positions[piece - t->low] > 0;
    }
    int64_t way = (int64_t)piece - s->first;
    if (s->stride == 0 ? way != 0 : way % s->stride != 0)
        return false;
    int64_t at = s->stride == 0 ? s->count - 1 : way / s->stride;
    *position = (uint32_t)at;
    return at >= 0 && at < s->count;
}

/* Whether an item of `late` and one of `early` touch a piece without being ordered. */
static bool slices_race(struct races *r, const struct touched *late, struct touched *early, int64_t order)
{
    if (late->slice == NULL || early->slice == NULL || late->slice->symbol != early->slice->symbol ||
        order == ORDER_WHOLE)
        return false;
    for (uint32_t i = 0; i < late->slice->count; i++) {
        uint32_t k;
        if (slice_find(r, early, tb_slice_piece(r->program, late->slice, i), &k) &&
            (order == ORDER_NONE || i < (int64_t)k + order))
            return true;
    }
    return false;
}

/* ---- all of it --------------------------------------------------------------------------------------------------- */

static bool races_open(struct races *r)
{
    const struct tb_program *p = r->program;
    r->order = order_make(p);
    r->reads = calloc((size_t)p->step_count + 1, sizeof *r->reads);
    r->writes = calloc((size_t)p->step_count + 1, sizeof *r->writes);
    if (r->order == NULL || r->reads == NULL || r->writes == NULL)
        return false;
    for (uint32_t i = 0; i < p->step_count; i++) {
        r->reads[i].slice = step_reads(&p->steps[i]);
        r->writes[i].slice = step_writes(&p->steps[i]);
    }
    return true;
}

static void races_close(struct races *r)
{
    for (uint32_t i = 0; i < r->program->step_count && r->reads != NULL && r->writes != NULL; i++) {
        free(r->reads[i].positions);
        free(r->writes[i].positions);
    }
    free(r->order);
    free(r->reads);
    free(r->writes);
}

static bool steps_race(struct races *r, uint32_t i, uint32_t k)
{
    int64_t order = r->order[(size_t)i * r->program->step_count + k];
    // NOLINTNEXTLINE(clang-analyzer-unix.Malloc): races_close frees them
    return slices_race(r, &r->writes[i], &r->reads[k], order) || slices_race(r, &r->writes[i], &r->writes[k], order) ||
           slices_race(r, &r->reads[i], &r->writes[k], order);
}

int tb_program_check_races(const struct tb_program *p, uint32_t rank)
{
    struct races r = {.program = p};
    if (!races_open(&r))
        r.error = tb_error(TB_ERR_MEMORY, "no memory to validate a program of %u steps", p->step_count);
    for (uint32_t i = 0; i < p->step_count && r.error == TB_OK; i++)
        for (uint32_t k = 0; k < i && r.error == TB_OK; k++)
            if (steps_race(&r, i, k) && r.error == TB_OK)
                r.error =
                    tb_error(TB_ERR_ARGUMENT, "rank %u: steps %u (%s) and %u (%s) touch the same piece in no order",
                             rank, k, tb_step_kind_name(p->steps[k].kind), i, tb_step_kind_name(p->steps[i].kind));
    races_close(&r);
    return r.error;
}
