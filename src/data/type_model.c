#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "data/type_model.h"

#include <stdlib.h>

#define ELEMENTS_LIMIT 2000 /* of a model */
#define MEMORY_LIMIT   (1 << 17)

struct tb_random random_state;

int64_t random_pick(int64_t low, int64_t high)
{
    return low + (int64_t)tb_random_below(&random_state, (uint64_t)(high - low + 1));
}

const struct tb_type *random_type_of(const struct random_type *s)
{
    return s->predefined != NULL ? s->predefined : s->type;
}

int64_t model_extent(const struct type_model *m)
{
    return m->upper - m->lower;
}

struct type_model model_empty(void)
{
    return (struct type_model){.alignment = 1};
}

/* One item of `part` at `place`. */
void model_append(struct type_model *m, const struct type_model *part, int64_t place)
{
    if (part->count == 0 && !part->placed)
        return;
    m->elements = realloc(m->elements, (m->count + part->count + 1) * sizeof *m->elements);
    for (uint64_t i = 0; i < part->count; i++) {
        m->elements[m->count] = part->elements[i];
        m->elements[m->count++].place += place;
    }
    int64_t lower = part->lower + place, upper = part->upper + place;
    if (!m->placed || (part->bounded && !m->bounded)) {
        m->lower = lower;
        m->upper = upper;
    } else if (part->bounded == m->bounded) {
        m->lower = lower < m->lower ? lower : m->lower;
        m->upper = upper > m->upper ? upper : m->upper;
    }
    m->placed = true;
    m->bounded = m->bounded || part->bounded;
    if (part->count > 0 && part->alignment > m->alignment)
        m->alignment = part->alignment;
}

void model_append_block(struct type_model *m, const struct type_model *part, int64_t place, int64_t length)
{
    for (int64_t i = 0; i < length; i++)
        model_append(m, part, place + i * model_extent(part));
}

static struct random_type basic_subject(void)
{
    static const uintptr_t handles[] = {0x247, 0x208, 0x209, 0x214, 0x22c, 0x229, 0x216, 0x22d, 0x210, 0x2eb};
    const struct tb_type *type = tb_type_predefined(handles[random_pick(0, 9)]);
    struct type_model m = model_empty();
    m.elements = malloc(2 * sizeof *m.elements);
    if (type->basic == TB_BASIC_PAIR) {
        m.count = 2;
        m.elements[0] = (struct model_element){0, (uint32_t)type->pair[0]->size};
        m.elements[1] = (struct model_element){type->true_extent - 4, 4};
    } else {
        m.count = 1;
        m.elements[0] = (struct model_element){0, (uint32_t)type->size};
    }
    m.upper = type->extent;
    m.placed = true;
    m.alignment = type->alignment;
    return (struct random_type){.predefined = type, .model = m};
}

void random_type_drop(struct random_type *s)
{
    tb_type_release(s->type);
    free(s->model.elements);
}

struct tb_numbers numbers_view(const struct random_numbers *n)
{
    return (struct tb_numbers){n->is_wide ? (const void *)n->wide : n->narrow, n->is_wide};
}

static void fill(struct random_numbers *n, int count, int64_t low, int64_t high)
{
    n->is_wide = random_pick(0, 1);
    for (int i = 0; i < count; i++)
        n->narrow[i] = (int32_t)(n->wide[i] = random_pick(low, high));
}

static struct random_type make_contiguous(struct random_type *child)
{
    struct random_type s = {.model = model_empty()};
    int64_t count = random_pick(0, 5);
    assert_int_equal(tb_type_contiguous(count, random_type_of(child), false, &s.type), TB_OK);
    model_append_block(&s.model, &child->model, 0, count);
    return s;
}

static struct random_type make_vector(struct random_type *child)
{
    struct random_type s = {.model = model_empty()};
    int64_t count = random_pick(0, 5), length = random_pick(0, 4), stride = random_pick(-6, 6);
    bool bytes = random_pick(0, 1);
    if (bytes)
        stride = random_pick(0, 1) ? stride * 8 + random_pick(0, 7) : length * model_extent(&child->model);
    assert_int_equal(
        (bytes ? tb_type_hvector : tb_type_vector)(count, length, stride, random_type_of(child), false, &s.type),
        TB_OK);
    for (int64_t i = 0; i < count; i++)
        model_append_block(&s.model, &child->model, i * stride * (bytes ? 1 : model_extent(&child->model)), length);
    return s;
}

static struct random_type make_indexed(struct random_type *child)
{
    struct random_type s = {.model = model_empty()};
    struct random_numbers lengths, places;
    int count = (int)(random_pick(0, 2) > 0 ? random_pick(0, 12)
                                            : random_pick(30, RANDOM_NUMBERS)); /* a short list or a long one */
    bool bytes = random_pick(0, 1), blocks = random_pick(0, 1);
    int64_t far = bytes ? 300 : 20;
    if (random_pick(0, 2) == 0)
        far *= 50;
    fill(&lengths, count, 0, random_pick(0, 1) ? random_pick(0, 3) : random_pick(0, 12));
    fill(&places, count, -far, far);
    if (random_pick(0, 2) == 0) /* neighbours */
        for (int i = 1; i < count; i++)
            places.narrow[i] =
                (int32_t)(places.wide[i] = places.wide[i - 1] + (blocks ? lengths.wide[0] : lengths.wide[i - 1]) *
                                                                    (bytes ? model_extent(&child->model) : 1));
    if (blocks)
        for (int i = 1; i < count; i++)
            lengths.narrow[i] = (int32_t)(lengths.wide[i] = lengths.wide[0]);
    int64_t length = count > 0 ? lengths.wide[0] : 1;
    const struct tb_type *old = random_type_of(child);
    int code;
    if (blocks)
        code = (bytes ? tb_type_hindexed_block : tb_type_indexed_block)(count, length, numbers_view(&places), old,
                                                                        false, &s.type);
    else
        code = (bytes ? tb_type_hindexed : tb_type_indexed)(count, numbers_view(&lengths), numbers_view(&places), old,
                                                            false, &s.type);
    assert_int_equal(code, TB_OK);
    for (int i = 0; i < count; i++)
        model_append_block(&s.model, &child->model, places.wide[i] * (bytes ? 1 : model_extent(&child->model)),
                           lengths.wide[i]);
    return s;
}

static struct random_type make_struct(struct random_type *first, int level)
{
    struct random_type s = {.model = model_empty()}, children[12];
    const struct tb_type *types[12];
    struct random_numbers lengths, places;
    int count = (int)random_pick(0, 8);
    fill(&lengths, count, 0, 3);
    fill(&places, count, -200, 200);
    bool behind = random_pick(0, 1), borrowed[12];
    int64_t place = 0;
    for (int i = 0; i < count; i++) {
        borrowed[i] = random_pick(0, 2) == 0;
        children[i] = borrowed[i] ? *first : random_type_make(level - 1);
        types[i] = random_type_of(&children[i]);
        if (behind) {
            places.narrow[i] = (int32_t)(places.wide[i] = place);
            place += lengths.wide[i] * model_extent(&children[i].model);
        }
    }
    assert_int_equal(tb_type_struct(count, numbers_view(&lengths), numbers_view(&places), types, false, &s.type),
                     TB_OK);
    for (int i = 0; i < count; i++)
        model_append_block(&s.model, &children[i].model, places.wide[i], lengths.wide[i]);
    if (s.model.placed && !s.model.bounded) {
        while (model_extent(&s.model) % s.model.alignment != 0)
            s.model.upper++;
    }
    for (int i = 0; i < count; i++)
        if (!borrowed[i])
            random_type_drop(&children[i]);
    return s;
}

static struct random_type make_subarray(struct random_type *child)
{
    struct random_type s = {.model = model_empty()};
    struct random_numbers sizes, parts, starts;
    int dimensions = (int)random_pick(1, 4);
    int order = random_pick(0, 1) ? TB_ORDER_C : TB_ORDER_FORTRAN;
    fill(&sizes, dimensions, 1, 5);
    parts = starts = sizes;
    int64_t whole = 1, chosen = 1;
    for (int i = 0; i < dimensions; i++) {
        parts.narrow[i] = (int32_t)(parts.wide[i] = random_pick(1, sizes.wide[i]));
        starts.narrow[i] = (int32_t)(starts.wide[i] = random_pick(0, sizes.wide[i] - parts.wide[i]));
        whole *= sizes.wide[i];
        chosen *= parts.wide[i];
    }
    assert_int_equal(tb_type_subarray(dimensions, numbers_view(&sizes), numbers_view(&parts), numbers_view(&starts),
                                      order, random_type_of(child), false, &s.type),
                     TB_OK);
    for (int64_t k = 0; k < chosen; k++) {
        int64_t index = 0, rest = k, factor = 1;
        for (int d = 0; d < dimensions; d++) { /* the closest neighbours first */
            int i = order == TB_ORDER_C ? dimensions - 1 - d : d;
            index += (starts.wide[i] + rest % parts.wide[i]) * factor;
            rest /= parts.wide[i];
            factor *= sizes.wide[i];
        }
        model_append(&s.model, &child->model, index * model_extent(&child->model));
    }
    s.model.placed = s.model.bounded = true;
    s.model.lower = 0;
    s.model.upper = whole * model_extent(&child->model);
    return s;
}

/* The owner of an index of one dimension. */
static int64_t owner_of(int64_t index, int64_t kind, int64_t argument, int64_t size, int64_t grid)
{
    if (kind == TB_DISTRIBUTE_NONE)
        return 0;
    if (argument == TB_DISTRIBUTE_DEFAULT)
        argument = kind == TB_DISTRIBUTE_BLOCK ? (size + grid - 1) / grid : 1;
    return index / argument % grid;
}

static struct random_type make_darray(struct random_type *child)
{
    struct random_type s = {.model = model_empty()};
    struct random_numbers sizes, kinds, arguments, grid;
    int dimensions = (int)random_pick(1, 3);
    int order = random_pick(0, 1) ? TB_ORDER_C : TB_ORDER_FORTRAN;
    fill(&sizes, dimensions, 1, 9);
    fill(&kinds, dimensions, TB_DISTRIBUTE_NONE, TB_DISTRIBUTE_CYCLIC);
    fill(&arguments, dimensions, 1, 4);
    fill(&grid, dimensions, 1, 3);
    int64_t processes = 1, whole = 1;
    for (int i = 0; i < dimensions; i++) {
        if (kinds.wide[i] == TB_DISTRIBUTE_NONE)
            grid.narrow[i] = (int32_t)(grid.wide[i] = 1);
        if (random_pick(0, 1) ||
            (kinds.wide[i] == TB_DISTRIBUTE_BLOCK && arguments.wide[i] * grid.wide[i] < sizes.wide[i]))
            arguments.narrow[i] = (int32_t)(arguments.wide[i] = TB_DISTRIBUTE_DEFAULT);
        processes *= grid.wide[i];
        whole *= sizes.wide[i];
    }
    int64_t rank = random_pick(0, processes - 1);
    assert_int_equal(tb_type_darray((int)processes, (int)rank, dimensions, numbers_view(&sizes), numbers_view(&kinds),
                                    numbers_view(&arguments), numbers_view(&grid), order, random_type_of(child), false,
                                    &s.type),
                     TB_OK);
    for (int64_t k = 0; k < whole; k++) {
        int64_t rest = k, index[3], owner = 0;
        for (int d = 0; d < dimensions; d++) {
            int i = order == TB_ORDER_C ? dimensions - 1 - d : d;
            index[i] = rest % sizes.wide[i];
            rest /= sizes.wide[i];
        }
        for (int i = 0; i < dimensions; i++)
            owner = owner * grid.wide[i] +
                    owner_of(index[i], kinds.wide[i], arguments.wide[i], sizes.wide[i], grid.wide[i]);
        if (owner == rank)
            model_append(&s.model, &child->model, k * model_extent(&child->model));
    }
    s.model.placed = s.model.bounded = true;
    s.model.lower = 0;
    s.model.upper = whole * model_extent(&child->model);
    return s;
}

static struct random_type make_resized(struct random_type *child)
{
    struct random_type s = {.model = model_empty()};
    const struct tb_type *old = random_type_of(child);
    bool same = random_pick(0, 3) == 0;
    int64_t lower = same ? old->lower_bound : random_pick(-20, 20), extent = same ? old->extent : random_pick(-30, 60);
    assert_int_equal(tb_type_resized(old, lower, extent, false, &s.type), TB_OK);
    model_append(&s.model, &child->model, 0);
    s.model.placed = s.model.bounded = true;
    s.model.lower = lower;
    s.model.upper = lower + extent;
    return s;
}

static struct random_type make_dup(struct random_type *child)
{
    struct random_type s = {.model = model_empty()};
    assert_int_equal(tb_type_dup(random_type_of(child), &s.type), TB_OK);
    model_append(&s.model, &child->model, 0);
    return s;
}

int64_t model_true_lower(const struct type_model *m)
{
    int64_t lower = 0;
    for (uint64_t i = 0; i < m->count; i++)
        lower = i == 0 || m->elements[i].place < lower ? m->elements[i].place : lower;
    return lower;
}

int64_t model_true_upper(const struct type_model *m)
{
    int64_t upper = 0;
    for (uint64_t i = 0; i < m->count; i++) {
        int64_t end = m->elements[i].place + m->elements[i].size;
        upper = i == 0 || end > upper ? end : upper;
    }
    return upper;
}

static bool fits(const struct type_model *m)
{
    return m->count <= ELEMENTS_LIMIT &&
           model_true_upper(m) - model_true_lower(m) + 3 * llabs(model_extent(m)) < MEMORY_LIMIT &&
           llabs(model_true_lower(m)) < MEMORY_LIMIT && llabs(m->lower) < MEMORY_LIMIT;
}

struct random_type random_type_make(int level)
{
    if (level <= 0)
        return basic_subject();
    struct random_type child = random_type_make(level - 1), made;
    switch (random_pick(0, 8)) {
    case 0:
        made = make_contiguous(&child);
        break;
    case 1:
    case 2:
        made = make_vector(&child);
        break;
    case 3:
        made = make_indexed(&child);
        break;
    case 4:
        made = make_struct(&child, level);
        break;
    case 5:
        made = make_subarray(&child);
        break;
    case 6:
        made = make_darray(&child);
        break;
    case 7:
        made = make_resized(&child);
        break;
    default:
        made = make_dup(&child);
        break;
    }
    if (!fits(&made.model)) {
        random_type_drop(&made);
        return child;
    }
    random_type_drop(&child); /* what is made of it holds it */
    return made;
}
