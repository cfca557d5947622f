#include "schedule/schedule.h"

#include <stdlib.h>
#include <string.h>

void tb_builder_open(struct tb_builder *b, uint32_t pieces)
{
    *b = (struct tb_builder){.program = {.pieces = pieces, .parts = 1}};
}

void tb_builder_fail(struct tb_builder *b, int error)
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
        tb_builder_fail(b, tb_error(TB_ERR_LIMIT, "a program has more than %u steps or dependencies", *room));
        return false;
    }
    void *grown = realloc(*array, (size_t)more * size);
    if (grown == NULL) {
        tb_builder_fail(b, tb_error(TB_ERR_MEMORY, "no memory for a program of %u steps", more));
        return false;
    }
    *array = grown;
    *room = more;
    return true;
}

void tb_builder_order(struct tb_builder *b)
{
    b->program.ordered = true;
}

/* ---- what steps share -------------------------------------------------------------------------------------------- */

/* The lowest and the highest piece of a slice that has any; a stride may lead below 0. */
static void slice_range(const struct tb_program *p, const struct tb_slice *s, int64_t *low, int64_t *high)
{
    bool listed = s->stride == TB_SLICE_LIST;
    *low = *high = listed ? p->lists[s->first] : s->first;
    int64_t last = listed ? *low : s->first + (int64_t)s->stride * (s->count - 1);
    *low = last < *low ? last : *low;
    *high = last > *high ? last : *high;
    for (uint32_t i = 1; listed && i < s->count; i++) {
        uint32_t piece = p->lists[s->first + i];
        *low = piece < *low ? piece : *low;
        *high = piece > *high ? piece : *high;
    }
}

/* Whether slices may share a piece. Those with gaps are taken for their whole range, which is right, if not sharp. */
static bool slices_meet(const struct tb_program *p, const struct tb_slice *a, const struct tb_slice *b)
{
    int64_t a_low, a_high, b_low, b_high;
    if (a->symbol != b->symbol || a->count == 0 || b->count == 0)
        return false;
    slice_range(p, a, &a_low, &a_high);
    slice_range(p, b, &b_low, &b_high);
    return a_low <= b_high && b_low <= a_high;
}

/* Whether `late` writes what `early` touches, or reads what it writes. */
static bool steps_conflict(const struct tb_program *p, const struct tb_step *late, const struct tb_step *early)
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
    return slices_meet(p, writes[0], writes[1]) || slices_meet(p, writes[0], reads[1][0]) ||
           slices_meet(p, writes[0], reads[1][1]) || slices_meet(p, reads[0][0], writes[1]) ||
           slices_meet(p, reads[0][1], writes[1]);
}

/* Marks what a step comes after wholly. */
static void builder_reach(struct tb_builder *b, const struct tb_step *s)
{
    for (uint32_t i = 0; i < s->after_count; i++) {
        const struct tb_after *after = &b->program.after[s->after + i];
        if (after->lag == TB_AFTER_WHOLE)
            b->reached[after->step] = 1;
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
        bool found = !b->reached[i] && steps_conflict(p, &p->steps[last], &p->steps[i]);
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
        tb_builder_fail(b, tb_error(TB_ERR_LIMIT, "a program has more than %u steps", TB_PROGRAM_STEPS_LIMIT));
        return 0;
    }
    if (!builder_grow(b, (void **)&p->steps, sizeof *p->steps, p->step_count, &b->step_room))
        return 0;
    uint32_t added = p->step_count++;
    p->steps[added] = *step;
    p->steps[added].after = b->after_total;
    if (step->join == 0)
        p->steps[added].join = 1;
    b->pipelined = false;
    if (b->program.ordered)
        builder_settle(b);
    return added;
}

/* WORK is as large as the furthest piece that a step touches; so is SIZES. */
static void builder_measure(struct tb_builder *b, struct tb_slice slice)
{
    uint32_t *size = slice.symbol == TB_SYMBOL_WORK ? &b->program.work_pieces : &b->program.size_pieces;
    if ((slice.symbol != TB_SYMBOL_WORK && slice.symbol != TB_SYMBOL_SIZES) || slice.count == 0)
        return;
    int64_t low, high;
    slice_range(&b->program, &slice, &low, &high);
    if (low < 0 || high >= UINT32_MAX)
        tb_builder_fail(b, tb_error(TB_ERR_LIMIT, "a program needs piece %lld of its work space",
                                    (long long)(low < 0 ? low : high)));
    else if (high >= *size)
        *size = (uint32_t)high + 1;
}

/* Keeps a list of pieces or ranks and returns where it begins. */
static uint32_t builder_list(struct tb_builder *b, const uint32_t *numbers, uint32_t count)
{
    struct tb_program *p = &b->program;
    uint32_t first = p->list_count;
    if (b->error == TB_OK && count > TB_PROGRAM_STEPS_LIMIT - p->list_count)
        tb_builder_fail(
            b, tb_error(TB_ERR_LIMIT, "a program lists more than %u pieces and ranks", TB_PROGRAM_STEPS_LIMIT));
    for (uint32_t i = 0; i < count && b->error == TB_OK; i++)
        if (builder_grow(b, (void **)&p->lists, sizeof *p->lists, p->list_count, &b->list_room))
            p->lists[p->list_count++] = numbers[i];
    return first;
}

struct tb_slice tb_builder_list(struct tb_builder *b, enum tb_symbol symbol, const uint32_t *pieces, uint32_t count)
{
    uint32_t first = builder_list(b, pieces, count);
    return b->error == TB_OK ? (struct tb_slice){symbol, first, TB_SLICE_LIST, count}
                             : (struct tb_slice){.symbol = symbol};
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
        tb_builder_fail(b, tb_error(TB_ERR_ARGUMENT, "a copy of %u pieces to %u pieces", from.count, to.count));
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

static void builder_depend(struct tb_builder *b, uint32_t step, int32_t lag)
{
    struct tb_program *p = &b->program;
    if (b->error != TB_OK)
        return;
    if (p->step_count == 0 || step >= p->step_count - 1) {
        tb_builder_fail(b, tb_error(TB_ERR_ARGUMENT, "step %u cannot come after step %u", p->step_count - 1, step));
        return;
    }
    if (!builder_grow(b, (void **)&p->after, sizeof *p->after, b->after_total, &b->after_room))
        return;
    struct tb_step *s = &p->steps[p->step_count - 1];
    if (s->join == TB_JOIN_ALL)
        lag = TB_AFTER_WHOLE;
    else if (b->pipelined && lag == TB_AFTER_WHOLE)
        lag = 0;
    p->after[b->after_total++] = (struct tb_after){step, lag};
    s->after_count++;
}

void tb_builder_after(struct tb_builder *b, uint32_t step)
{
    builder_depend(b, step, TB_AFTER_WHOLE);
}

void tb_builder_after_pieces(struct tb_builder *b, uint32_t step)
{
    builder_depend(b, step, 0);
}

void tb_builder_after_shifted(struct tb_builder *b, uint32_t step)
{
    builder_depend(b, step, 1);
}

void tb_builder_after_lag(struct tb_builder *b, uint32_t step, int32_t lag)
{
    builder_depend(b, step, lag);
}

/* The last added step; NULL after an error. */
static struct tb_step *builder_last(struct tb_builder *b)
{
    if (b->error == TB_OK && b->program.step_count == 0)
        tb_builder_fail(b, tb_error(TB_ERR_ARGUMENT, "there is no step to change"));
    return b->error == TB_OK ? &b->program.steps[b->program.step_count - 1] : NULL;
}

void tb_builder_pipeline(struct tb_builder *b, uint32_t window)
{
    struct tb_step *s = builder_last(b);
    if (s == NULL)
        return;
    s->window = window;
    b->pipelined = true;
    for (uint32_t i = 0; i < s->after_count && s->join != TB_JOIN_ALL; i++)
        if (b->program.after[s->after + i].lag == TB_AFTER_WHOLE)
            b->program.after[s->after + i].lag = 0;
}

void tb_builder_join(struct tb_builder *b)
{
    struct tb_step *s = builder_last(b);
    if (s == NULL)
        return;
    s->join = TB_JOIN_ALL;
    for (uint32_t i = 0; i < s->after_count; i++)
        b->program.after[s->after + i].lag = TB_AFTER_WHOLE;
}

void tb_builder_cut(struct tb_builder *b, uint32_t join)
{
    struct tb_step *s = builder_last(b);
    if (s != NULL)
        s->join = join > 0 ? join : 1;
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
        tb_builder_fail(b, tb_error(TB_ERR_ARGUMENT, "only a message from or to WORK can be as long as other pieces"));
    s->other = shape;
}

void tb_builder_upto(struct tb_builder *b)
{
    struct tb_step *s = builder_last(b);
    if (s == NULL)
        return;
    if (s->kind != TB_STEP_SEND && s->kind != TB_STEP_RECEIVE)
        tb_builder_fail(b, tb_error(TB_ERR_ARGUMENT, "only a message can have any length up to that of its pieces"));
    s->upto = true;
}

uint32_t tb_builder_composite(struct tb_builder *b, const struct tb_contract *contract, uint32_t root,
                              struct tb_slice give, struct tb_slice get)
{
    builder_measure(b, give);
    builder_measure(b, get);
    uint16_t place = 0;
    for (uint32_t i = 0; i < b->program.step_count; i++)
        if (b->program.steps[i].kind == TB_STEP_COMPOSITE && b->program.steps[i].contract.driver == contract->driver &&
            b->program.steps[i].edge >= place)
            place = b->program.steps[i].edge + 1;
    return builder_add(b, &(struct tb_step){.kind = TB_STEP_COMPOSITE,
                                            .edge = place,
                                            .join = TB_JOIN_ALL,
                                            .peer = root,
                                            .slice = give,
                                            .other = get,
                                            .contract = *contract});
}

/* The last added step, which must be a composite one; NULL after an error. */
static struct tb_step *builder_last_composite(struct tb_builder *b)
{
    struct tb_step *s = builder_last(b);
    if (s != NULL && s->kind != TB_STEP_COMPOSITE)
        tb_builder_fail(b, tb_error(TB_ERR_ARGUMENT, "only a composite step has a place and members"));
    return b->error == TB_OK ? s : NULL;
}

void tb_builder_place(struct tb_builder *b, uint16_t place)
{
    struct tb_step *s = builder_last_composite(b);
    if (s != NULL)
        s->edge = place;
}

void tb_builder_members(struct tb_builder *b, const uint32_t *ranks, uint32_t count)
{
    struct tb_step *s = builder_last_composite(b);
    if (s == NULL)
        return;
    s->members = builder_list(b, ranks, count);
    s->member_count = count;
    for (uint32_t i = 1; i < count; i++)
        if (ranks[i] <= ranks[i - 1])
            tb_builder_fail(b, tb_error(TB_ERR_ARGUMENT, "members of a composite step are not in the order of ranks"));
}

void tb_builder_places(struct tb_builder *b, uint32_t places)
{
    b->program.places = places;
}

uint32_t tb_builder_measure(struct tb_builder *b, struct tb_slice pieces, uint32_t first_size)
{
    struct tb_slice sizes = {TB_SYMBOL_SIZES, first_size, 1, pieces.count};
    return builder_move(b, TB_STEP_MEASURE, pieces, sizes);
}

static uint32_t builder_bind(struct tb_builder *b, struct tb_slice sizes)
{
    if (b->program.binds)
        tb_builder_fail(b, tb_error(TB_ERR_ARGUMENT, "the work space of a program is bound twice"));
    b->program.binds = true;
    uint32_t step = builder_move(b, TB_STEP_BIND, sizes, (struct tb_slice){TB_SYMBOL_WORK, 0, 1, sizes.count});
    tb_builder_join(b);
    return step;
}

uint32_t tb_builder_bind(struct tb_builder *b, uint32_t sizes)
{
    return builder_bind(b, (struct tb_slice){TB_SYMBOL_SIZES, 0, 1, sizes});
}

uint32_t tb_builder_bind_list(struct tb_builder *b, const uint32_t *sizes, uint32_t count)
{
    return builder_bind(b, tb_builder_list(b, TB_SYMBOL_SIZES, sizes, count));
}

void tb_builder_whole(struct tb_builder *b)
{
    b->program.work_whole = true;
}

void tb_builder_parts(struct tb_builder *b, uint32_t parts)
{
    b->program.parts = parts > 0 ? parts : 1;
}

/* ---- the end ----------------------------------------------------------------------------------------------------- */

#define WINDOW_LIMIT 32u /* of a step that asks for all items at once: more makes nothing faster */

/* How many items a step has, and may have on their way. */
static void step_measure(struct tb_step *s)
{
    uint32_t window = s->window == 0 || s->window > WINDOW_LIMIT ? WINDOW_LIMIT : s->window;
    // NOLINTNEXTLINE(clang-analyzer-core.DivideZero): an item is at least one piece
    s->items = (tb_step_count(s) - 1) / tb_step_join(s) + 1;
    s->window = window < s->items ? window : s->items;
}

static bool composite_of_blocks(const struct tb_step *s)
{
    return s->kind == TB_STEP_COMPOSITE && s->contract.composite >= TB_COMPOSITE_GATHER;
}

/* Whether pieces that are one item lie side by side. Blocks of a composite step are taken one by one, but for
 * reductions. */
static bool slice_joins(const struct tb_step *s, const struct tb_slice *slice)
{
    bool apart = composite_of_blocks(s) && s->contract.composite != TB_COMPOSITE_REDUCE_SCATTER;
    return slice->count <= 1 || slice->stride == 1 || s->join == 1 || apart;
}

static int number_compare(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

/* A list of what is written has every piece once. */
static int list_check(const struct tb_program *p, uint32_t step, const struct tb_slice *slice)
{
    if (slice->stride != TB_SLICE_LIST || slice->count < 2)
        return TB_OK;
    uint32_t *sorted = malloc(slice->count * sizeof *sorted);
    if (sorted == NULL)
        return tb_error(TB_ERR_MEMORY, "no memory for a program of %u steps", p->step_count);
    memcpy(sorted, p->lists + slice->first, slice->count * sizeof *sorted);
    qsort(sorted, slice->count, sizeof *sorted, number_compare);
    int error = TB_OK;
    for (uint32_t i = 1; i < slice->count && error == TB_OK; i++)
        if (sorted[i] == sorted[i - 1])
            error = tb_error(TB_ERR_ARGUMENT, "step %u of a program writes piece %u twice", step, sorted[i]);
    free(sorted);
    return error;
}

static int step_check(const struct tb_program *p, uint32_t step)
{
    const struct tb_step *s = &p->steps[step];
    bool reads_apart = s->kind == TB_STEP_BIND; /* its sizes, which may stand anywhere */
    if ((!reads_apart && !slice_joins(s, &s->slice)) || !slice_joins(s, &s->other))
        return tb_error(TB_ERR_ARGUMENT, "step %u of a program joins pieces that do not follow each other", step);
    if ((s->kind == TB_STEP_MEASURE && tb_step_join(s) > 1) || (s->kind == TB_STEP_BIND && s->items > 1) ||
        (composite_of_blocks(s) && s->items > 1))
        return tb_error(TB_ERR_ARGUMENT, "step %u of a program cannot be cut into items of %u pieces", step, s->join);
    bool message = s->kind == TB_STEP_SEND || s->kind == TB_STEP_RECEIVE;
    return s->kind == TB_STEP_SEND ? TB_OK : list_check(p, step, message ? &s->slice : &s->other);
}

/* Composite steps have places of their own, and not too many items. */
static int places_check(struct tb_program *p)
{
    uint32_t used[TB_DRIVER_COUNT] = {0}, highest = 0, counted = 0;
    for (uint32_t i = 0; i < p->step_count; i++) {
        const struct tb_step *s = &p->steps[i];
        if (s->kind != TB_STEP_COMPOSITE)
            continue;
        if (s->contract.driver >= TB_DRIVER_COUNT)
            return tb_error(TB_ERR_ARGUMENT, "step %u of a program has no driver", i);
        bool cast = s->contract.driver == TB_DRIVER_MULTICAST;
        if (s->edge >= (cast ? TB_CAST_PLACES : TB_PROGRAM_PLACES_LIMIT) || s->items > TB_COMPOSITE_ITEMS)
            return tb_error(TB_ERR_LIMIT, "step %u of a program has place %u and %u items", i, s->edge, s->items);
        if ((used[s->contract.driver] >> s->edge & 1) != 0)
            return tb_error(TB_ERR_ARGUMENT, "step %u of a program has place %u, as another one", i, s->edge);
        used[s->contract.driver] |= 1u << s->edge;
        highest = s->edge + 1u > highest ? s->edge + 1u : highest;
        counted = cast ? counted : s->edge + 1u > counted ? s->edge + 1u : counted;
    }
    if (p->places == 0)
        p->places = highest < TB_PROGRAM_PLACES_LIMIT ? highest : TB_PROGRAM_PLACES_LIMIT;
    if (p->places < counted || p->places > TB_PROGRAM_PLACES_LIMIT)
        return tb_error(TB_ERR_ARGUMENT, "a program of %u places has a step at place %u", p->places, counted);
    return TB_OK;
}

/* All of it in one piece. */
static struct tb_program *program_copy(const struct tb_builder *b)
{
    size_t steps = sizeof(struct tb_step) * b->program.step_count, after = sizeof(struct tb_after) * b->after_total;
    size_t lists = sizeof(uint32_t) * b->program.list_count;
    struct tb_program *made = malloc(sizeof *made + steps + after + lists);
    if (made == NULL) {
        tb_error(TB_ERR_MEMORY, "no memory for a program of %u steps", b->program.step_count);
        return NULL;
    }
    *made = b->program;
    made->steps = (struct tb_step *)(made + 1);
    made->after = (struct tb_after *)((char *)made->steps + steps);
    made->lists = (uint32_t *)((char *)made->after + after);
    if (steps > 0)
        memcpy(made->steps, b->program.steps, steps);
    if (after > 0)
        memcpy(made->after, b->program.after, after);
    if (lists > 0)
        memcpy(made->lists, b->program.lists, lists);
    return made;
}

int tb_builder_finish(struct tb_builder *b, struct tb_program **program)
{
    int error = b->error;
    for (uint32_t i = 0; i < b->program.step_count && error == TB_OK; i++) {
        step_measure(&b->program.steps[i]);
        error = step_check(&b->program, i);
    }
    if (error == TB_OK)
        error = places_check(&b->program);
    *program = error == TB_OK ? program_copy(b) : NULL;
    if (error == TB_OK && *program == NULL)
        error = TB_ERR_MEMORY;
    free(b->program.steps);
    free(b->program.after);
    free(b->program.lists);
    free(b->reached);
    *b = (struct tb_builder){.error = TB_ERR_ARGUMENT};
    return error;
}

void tb_program_free(struct tb_program *program)
{
    free(program);
}
