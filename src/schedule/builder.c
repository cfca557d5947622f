#include "schedule/schedule.h"

#include <stdlib.h>
#include <string.h>

void tb_builder_open(struct tb_builder *b, uint32_t pieces)
{
    *b = (struct tb_builder){.program = {.pieces = pieces}};
}

static void builder_fail(struct tb_builder *b, int error)
{
    if (b->error == TB_OK)
        b->error = error;
}

/* Makes room for one more in a growing array. */
static bool builder_grow(struct tb_builder *b, void **array, size_t size, uint32_t used, uint32_t *room)
{
    if (used < *room)
        return true;
    uint32_t more = *room == 0 ? 8 : *room * 2;
    if (more > TB_PROGRAM_STEPS_LIMIT * 2) {
        builder_fail(b, tb_error(TB_ERR_LIMIT, "a program has more than %u steps or dependencies", *room));
        return false;
    }
    void *grown = realloc(*array, (size_t)more * size);
    if (grown == NULL) {
        builder_fail(b, tb_error(TB_ERR_MEMORY, "no memory for a program of %u steps", more));
        return false;
    }
    *array = grown;
    *room = more;
    return true;
}

void tb_builder_order(struct tb_builder *b)
{
    b->ordered = true;
}

/* ---- what steps share -------------------------------------------------------------------------------------------- */

/* The lowest and the highest piece of a slice. */
static void slice_range(const struct tb_slice *s, uint32_t *low, uint32_t *high)
{
    uint32_t last = s->count > 0 ? tb_slice_piece(s, s->count - 1) : s->first;
    *low = s->first < last ? s->first : last;
    *high = s->first < last ? last : s->first;
}

/* Whether slices may share a piece. Those with gaps are taken for their whole range, which is right, if not sharp. */
static bool slices_meet(const struct tb_slice *a, const struct tb_slice *b)
{
    uint32_t a_low, a_high, b_low, b_high;
    if (a->symbol != b->symbol || a->count == 0 || b->count == 0)
        return false;
    slice_range(a, &a_low, &a_high);
    slice_range(b, &b_low, &b_high);
    return a_low <= b_high && b_low <= a_high;
}

/* Whether `late` writes what `early` touches, or reads what it writes. */
static bool steps_conflict(const struct tb_step *late, const struct tb_step *early)
{
    const struct tb_slice *writes[2], *reads[2][2];
    const struct tb_step *steps[2] = {late, early};
    static const struct tb_slice nothing;
    for (int i = 0; i < 2; i++) {
        const struct tb_step *s = steps[i];
        bool message = s->kind == TB_STEP_SEND || s->kind == TB_STEP_RECEIVE;
        writes[i] = !message ? &s->other : s->kind == TB_STEP_RECEIVE ? &s->slice : &nothing;
        reads[i][0] = s->kind == TB_STEP_RECEIVE || s->kind == TB_STEP_MEASURE ? &nothing : &s->slice;
        reads[i][1] = s->kind == TB_STEP_REDUCE ? &s->other : &nothing;
    }
    return slices_meet(writes[0], writes[1]) || slices_meet(writes[0], reads[1][0]) ||
           slices_meet(writes[0], reads[1][1]) || slices_meet(reads[0][0], writes[1]) ||
           slices_meet(reads[0][1], writes[1]);
}

/* Marks what a step comes after wholly. */
static void builder_reach(struct tb_builder *b, const struct tb_step *s)
{
    for (uint32_t i = 0; i < s->after_count && !s->piecewise; i++) {
        uint32_t after = b->program.after[s->after + i];
        if (TB_AFTER_STEP(after) == after)
            b->reached[after] = 1;
    }
}

/* The last step comes after all earlier ones that it conflicts with, unless it does so through others. */
static void builder_settle(struct tb_builder *b)
{
    const struct tb_program *p = &b->program;
    uint32_t last = p->step_count - 1;
    if (!builder_grow(b, (void **)&b->reached, 1, last, &b->reached_room))
        return;
    memset(b->reached, 0, p->step_count);
    for (uint32_t i = last; i-- > 0;) {
        bool found = !b->reached[i] && steps_conflict(&p->steps[last], &p->steps[i]);
        if (found)
            tb_builder_after(b, i);
        if (found || b->reached[i])
            builder_reach(b, &p->steps[i]);
    }
}

/* ---- steps ------------------------------------------------------------------------------------------------------- */

static uint32_t builder_add(struct tb_builder *b, const struct tb_step *step)
{
    struct tb_program *p = &b->program;
    if (b->error != TB_OK)
        return 0;
    if (p->step_count == TB_PROGRAM_STEPS_LIMIT) {
        builder_fail(b, tb_error(TB_ERR_LIMIT, "a program has more than %u steps", TB_PROGRAM_STEPS_LIMIT));
        return 0;
    }
    if (!builder_grow(b, (void **)&p->steps, sizeof *p->steps, p->step_count, &b->step_room))
        return 0;
    uint32_t added = p->step_count++;
    p->steps[added] = *step;
    p->steps[added].after = b->after_total;
    if (b->ordered)
        builder_settle(b);
    return added;
}

/* WORK is as large as the furthest piece that a step touches; so is SIZES. */
static void builder_measure(struct tb_builder *b, struct tb_slice slice)
{
    uint32_t *size = slice.symbol == TB_SYMBOL_WORK ? &b->program.work_pieces : &b->program.size_pieces;
    if ((slice.symbol != TB_SYMBOL_WORK && slice.symbol != TB_SYMBOL_SIZES) || slice.count == 0)
        return;
    int64_t last = slice.first + (int64_t)slice.stride * (slice.count - 1);
    int64_t end = (last > slice.first ? last : slice.first) + 1;
    if (last < 0 || end > UINT32_MAX)
        builder_fail(b, tb_error(TB_ERR_LIMIT, "a program needs piece %lld of its work space", (long long)last));
    else if (end > *size)
        *size = (uint32_t)end;
}

uint32_t tb_builder_send(struct tb_builder *b, uint32_t peer, uint16_t edge, struct tb_slice slice)
{
    builder_measure(b, slice);
    return builder_add(b, &(struct tb_step){.kind = TB_STEP_SEND, .peer = peer, .edge = edge, .slice = slice});
}

uint32_t tb_builder_receive(struct tb_builder *b, uint32_t peer, uint16_t edge, struct tb_slice slice)
{
    builder_measure(b, slice);
    return builder_add(b, &(struct tb_step){.kind = TB_STEP_RECEIVE, .peer = peer, .edge = edge, .slice = slice});
}

static uint32_t builder_move(struct tb_builder *b, enum tb_step_kind kind, struct tb_slice from, struct tb_slice to)
{
    builder_measure(b, from);
    builder_measure(b, to);
    if (from.count != to.count)
        builder_fail(b, tb_error(TB_ERR_ARGUMENT, "a copy of %u pieces to %u pieces", from.count, to.count));
    return builder_add(b, &(struct tb_step){.kind = kind, .slice = from, .other = to});
}

uint32_t tb_builder_copy(struct tb_builder *b, struct tb_slice from, struct tb_slice to)
{
    return builder_move(b, TB_STEP_COPY, from, to);
}

uint32_t tb_builder_reduce(struct tb_builder *b, struct tb_slice first, struct tb_slice into)
{
    return builder_move(b, TB_STEP_REDUCE, first, into);
}

static void builder_depend(struct tb_builder *b, uint32_t step, uint32_t flag)
{
    struct tb_program *p = &b->program;
    if (b->error != TB_OK)
        return;
    if (p->step_count == 0 || step >= p->step_count - 1) {
        builder_fail(b, tb_error(TB_ERR_ARGUMENT, "step %u cannot come after step %u", p->step_count - 1, step));
        return;
    }
    if (!builder_grow(b, (void **)&p->after, sizeof *p->after, b->after_total, &b->after_room))
        return;
    p->after[b->after_total++] = step | flag;
    p->steps[p->step_count - 1].after_count++;
}

void tb_builder_after(struct tb_builder *b, uint32_t step)
{
    builder_depend(b, step, 0);
}

void tb_builder_after_pieces(struct tb_builder *b, uint32_t step)
{
    builder_depend(b, step, TB_AFTER_PIECEWISE);
}

void tb_builder_after_shifted(struct tb_builder *b, uint32_t step)
{
    builder_depend(b, step, TB_AFTER_SHIFTED);
}

void tb_builder_after_lag(struct tb_builder *b, uint32_t step, uint32_t lag)
{
    builder_depend(b, step, TB_AFTER_SHIFTED);
    if (b->error == TB_OK)
        b->program.steps[b->program.step_count - 1].lag = lag;
}

/* The last added step; NULL after an error. */
static struct tb_step *builder_last(struct tb_builder *b)
{
    if (b->error == TB_OK && b->program.step_count == 0)
        builder_fail(b, tb_error(TB_ERR_ARGUMENT, "there is no step to change"));
    return b->error == TB_OK ? &b->program.steps[b->program.step_count - 1] : NULL;
}

void tb_builder_pipeline(struct tb_builder *b, uint32_t window)
{
    struct tb_step *s = builder_last(b);
    if (s == NULL)
        return;
    s->piecewise = true;
    s->window = window;
}

void tb_builder_join(struct tb_builder *b)
{
    struct tb_step *s = builder_last(b);
    if (s == NULL)
        return;
    if (s->slice.count > 1 && (s->slice.stride != 1 || (s->other.count > 1 && s->other.stride != 1)))
        builder_fail(b, tb_error(TB_ERR_ARGUMENT, "pieces that do not follow each other cannot be one"));
    s->joined = true;
}

void tb_builder_local(struct tb_builder *b)
{
    struct tb_step *s = builder_last(b);
    if (s != NULL)
        s->group = 1;
}

void tb_builder_like(struct tb_builder *b, struct tb_slice shape)
{
    struct tb_step *s = builder_last(b);
    if (s == NULL)
        return;
    if ((s->kind != TB_STEP_SEND && s->kind != TB_STEP_RECEIVE) || s->slice.symbol != TB_SYMBOL_WORK ||
        shape.count != s->slice.count)
        builder_fail(b, tb_error(TB_ERR_ARGUMENT, "only a message from or to WORK can be as long as other pieces"));
    s->other = shape;
}

void tb_builder_upto(struct tb_builder *b)
{
    struct tb_step *s = builder_last(b);
    if (s == NULL)
        return;
    if (s->kind != TB_STEP_SEND && s->kind != TB_STEP_RECEIVE)
        builder_fail(b, tb_error(TB_ERR_ARGUMENT, "only a message can have any length up to that of its pieces"));
    s->upto = true;
}

uint32_t tb_builder_composite(struct tb_builder *b, const struct tb_contract *contract, uint32_t root,
                              struct tb_slice give, struct tb_slice get)
{
    builder_measure(b, give);
    builder_measure(b, get);
    return builder_add(b, &(struct tb_step){.kind = TB_STEP_COMPOSITE,
                                            .joined = true,
                                            .peer = root,
                                            .slice = give,
                                            .other = get,
                                            .contract = *contract});
}

uint32_t tb_builder_measure(struct tb_builder *b, struct tb_slice pieces, uint32_t first_size)
{
    struct tb_slice sizes = {TB_SYMBOL_SIZES, first_size, 1, pieces.count};
    return builder_move(b, TB_STEP_MEASURE, pieces, sizes);
}

uint32_t tb_builder_bind(struct tb_builder *b, uint32_t sizes)
{
    if (b->program.binds)
        builder_fail(b, tb_error(TB_ERR_ARGUMENT, "the work space of a program is bound twice"));
    b->program.binds = true;
    uint32_t step = builder_move(b, TB_STEP_BIND, (struct tb_slice){TB_SYMBOL_SIZES, 0, 1, sizes},
                                 (struct tb_slice){TB_SYMBOL_WORK, 0, 1, sizes});
    tb_builder_join(b);
    return step;
}

void tb_builder_whole(struct tb_builder *b)
{
    b->program.work_whole = true;
}

int tb_builder_finish(struct tb_builder *b, struct tb_program **program)
{
    struct tb_program *made = NULL;
    int error = b->error;
    size_t steps = sizeof(struct tb_step) * b->program.step_count;
    size_t after = sizeof(uint32_t) * b->after_total;
    if (error == TB_OK) {
        made = malloc(sizeof *made + steps + after);
        if (made == NULL)
            error = tb_error(TB_ERR_MEMORY, "no memory for a program of %u steps", b->program.step_count);
    }
    if (made != NULL) {
        *made = b->program;
        made->steps = (struct tb_step *)(made + 1);
        made->after = (uint32_t *)((char *)made->steps + steps);
        if (steps > 0)
            memcpy(made->steps, b->program.steps, steps);
        if (after > 0)
            memcpy(made->after, b->program.after, after);
    }
    free(b->program.steps);
    free(b->program.after);
    free(b->reached);
    *b = (struct tb_builder){.error = TB_ERR_ARGUMENT};
    *program = made;
    return error;
}

void tb_program_free(struct tb_program *program)
{
    free(program);
}
