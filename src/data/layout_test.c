/* Random types against a model that writes every basic element down: bounds, packing and unpacking from and to any
 * byte, spans, elements. TB_TEST_SEED replays a run, TB_TEST_TYPES makes it longer. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "data/layout.h"

#include <stdio.h>
#include <stdlib.h>

#define ELEMENTS_LIMIT 2000 /* of a model */
#define MEMORY_LIMIT   (1 << 17)
#define LEVELS         5
#define NUMBERS        80

struct element {
    int64_t place;
    uint32_t size;
};

/* A type as the standard defines it: its type map and markers of its bounds. */
struct model {
    uint64_t count;
    struct element *elements;
    bool placed, bounded;
    int64_t lower, upper;
    uint32_t alignment;
};

struct subject {
    struct tb_type *type;
    const struct tb_type *predefined; /* NULL: `type` */
    struct model model;
};

static struct tb_random random_state;

static int64_t pick(int64_t low, int64_t high)
{
    return low + (int64_t)tb_random_below(&random_state, (uint64_t)(high - low + 1));
}

static const struct tb_type *type_of(const struct subject *s)
{
    return s->predefined != NULL ? s->predefined : s->type;
}

static int64_t extent_of(const struct model *m)
{
    return m->upper - m->lower;
}

static struct model empty_model(void)
{
    return (struct model){.alignment = 1};
}

/* One item of `part` at `place`. */
static void append(struct model *m, const struct model *part, int64_t place)
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

static void append_block(struct model *m, const struct model *part, int64_t place, int64_t length)
{
    for (int64_t i = 0; i < length; i++)
        append(m, part, place + i * extent_of(part));
}

static struct subject basic_subject(void)
{
    static const uintptr_t handles[] = {0x247, 0x208, 0x209, 0x214, 0x22c, 0x229, 0x216, 0x22d, 0x210, 0x2eb};
    const struct tb_type *type = tb_type_predefined(handles[pick(0, 9)]);
    struct model m = empty_model();
    m.elements = malloc(2 * sizeof *m.elements);
    if (type->basic == TB_BASIC_PAIR) {
        m.count = 2;
        m.elements[0] = (struct element){0, (uint32_t)type->pair[0]->size};
        m.elements[1] = (struct element){type->true_extent - 4, 4};
    } else {
        m.count = 1;
        m.elements[0] = (struct element){0, (uint32_t)type->size};
    }
    m.upper = type->extent;
    m.placed = true;
    m.alignment = type->alignment;
    return (struct subject){.predefined = type, .model = m};
}

static void drop_subject(struct subject *s)
{
    tb_type_release(s->type);
    free(s->model.elements);
}

/* Numbers for a constructor, by chance as int or as 64 bits. */
struct numbers {
    int32_t narrow[NUMBERS];
    int64_t wide[NUMBERS];
    bool is_wide;
};

static struct tb_numbers view(const struct numbers *n)
{
    return (struct tb_numbers){n->is_wide ? (const void *)n->wide : n->narrow, n->is_wide};
}

static void fill(struct numbers *n, int count, int64_t low, int64_t high)
{
    n->is_wide = pick(0, 1);
    for (int i = 0; i < count; i++)
        n->narrow[i] = (int32_t)(n->wide[i] = pick(low, high));
}

static struct subject make_contiguous(struct subject *child)
{
    struct subject s = {.model = empty_model()};
    int64_t count = pick(0, 5);
    assert_int_equal(tb_type_contiguous(count, type_of(child), false, &s.type), TB_OK);
    append_block(&s.model, &child->model, 0, count);
    return s;
}

static struct subject make_vector(struct subject *child)
{
    struct subject s = {.model = empty_model()};
    int64_t count = pick(0, 5), length = pick(0, 4), stride = pick(-6, 6);
    bool bytes = pick(0, 1);
    if (bytes)
        stride = pick(0, 1) ? stride * 8 + pick(0, 7) : length * extent_of(&child->model);
    assert_int_equal((bytes ? tb_type_hvector : tb_type_vector)(count, length, stride, type_of(child), false, &s.type),
                     TB_OK);
    for (int64_t i = 0; i < count; i++)
        append_block(&s.model, &child->model, i * stride * (bytes ? 1 : extent_of(&child->model)), length);
    return s;
}

static struct subject make_indexed(struct subject *child)
{
    struct subject s = {.model = empty_model()};
    struct numbers lengths, places;
    int count = (int)(pick(0, 2) > 0 ? pick(0, 12) : pick(30, NUMBERS)); /* a short list or a long one */
    bool bytes = pick(0, 1), blocks = pick(0, 1);
    int64_t far = bytes ? 300 : 20;
    if (pick(0, 2) == 0)
        far *= 50;
    fill(&lengths, count, 0, pick(0, 1) ? pick(0, 3) : pick(0, 12));
    fill(&places, count, -far, far);
    if (pick(0, 2) == 0) /* neighbours */
        for (int i = 1; i < count; i++)
            places.narrow[i] =
                (int32_t)(places.wide[i] = places.wide[i - 1] + (blocks ? lengths.wide[0] : lengths.wide[i - 1]) *
                                                                    (bytes ? extent_of(&child->model) : 1));
    if (blocks)
        for (int i = 1; i < count; i++)
            lengths.narrow[i] = (int32_t)(lengths.wide[i] = lengths.wide[0]);
    int64_t length = count > 0 ? lengths.wide[0] : 1;
    const struct tb_type *old = type_of(child);
    int code;
    if (blocks)
        code =
            (bytes ? tb_type_hindexed_block : tb_type_indexed_block)(count, length, view(&places), old, false, &s.type);
    else
        code = (bytes ? tb_type_hindexed : tb_type_indexed)(count, view(&lengths), view(&places), old, false, &s.type);
    assert_int_equal(code, TB_OK);
    for (int i = 0; i < count; i++)
        append_block(&s.model, &child->model, places.wide[i] * (bytes ? 1 : extent_of(&child->model)), lengths.wide[i]);
    return s;
}

static struct subject make_random(int level);

static struct subject make_struct(struct subject *first, int level)
{
    struct subject s = {.model = empty_model()}, children[12];
    const struct tb_type *types[12];
    struct numbers lengths, places;
    int count = (int)pick(0, 8);
    fill(&lengths, count, 0, 3);
    fill(&places, count, -200, 200);
    bool behind = pick(0, 1), borrowed[12];
    int64_t place = 0;
    for (int i = 0; i < count; i++) {
        borrowed[i] = pick(0, 2) == 0;
        children[i] = borrowed[i] ? *first : make_random(level - 1);
        types[i] = type_of(&children[i]);
        if (behind) {
            places.narrow[i] = (int32_t)(places.wide[i] = place);
            place += lengths.wide[i] * extent_of(&children[i].model);
        }
    }
    assert_int_equal(tb_type_struct(count, view(&lengths), view(&places), types, false, &s.type), TB_OK);
    for (int i = 0; i < count; i++)
        append_block(&s.model, &children[i].model, places.wide[i], lengths.wide[i]);
    if (s.model.placed && !s.model.bounded) {
        while (extent_of(&s.model) % s.model.alignment != 0)
            s.model.upper++;
    }
    for (int i = 0; i < count; i++)
        if (!borrowed[i])
            drop_subject(&children[i]);
    return s;
}

static struct subject make_subarray(struct subject *child)
{
    struct subject s = {.model = empty_model()};
    struct numbers sizes, parts, starts;
    int dimensions = (int)pick(1, 4);
    int order = pick(0, 1) ? TB_ORDER_C : TB_ORDER_FORTRAN;
    fill(&sizes, dimensions, 1, 5);
    parts = starts = sizes;
    int64_t whole = 1, chosen = 1;
    for (int i = 0; i < dimensions; i++) {
        parts.narrow[i] = (int32_t)(parts.wide[i] = pick(1, sizes.wide[i]));
        starts.narrow[i] = (int32_t)(starts.wide[i] = pick(0, sizes.wide[i] - parts.wide[i]));
        whole *= sizes.wide[i];
        chosen *= parts.wide[i];
    }
    assert_int_equal(
        tb_type_subarray(dimensions, view(&sizes), view(&parts), view(&starts), order, type_of(child), false, &s.type),
        TB_OK);
    for (int64_t k = 0; k < chosen; k++) {
        int64_t index = 0, rest = k, factor = 1;
        for (int d = 0; d < dimensions; d++) { /* the closest neighbours first */
            int i = order == TB_ORDER_C ? dimensions - 1 - d : d;
            index += (starts.wide[i] + rest % parts.wide[i]) * factor;
            rest /= parts.wide[i];
            factor *= sizes.wide[i];
        }
        append(&s.model, &child->model, index * extent_of(&child->model));
    }
    s.model.placed = s.model.bounded = true;
    s.model.lower = 0;
    s.model.upper = whole * extent_of(&child->model);
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

static struct subject make_darray(struct subject *child)
{
    struct subject s = {.model = empty_model()};
    struct numbers sizes, kinds, arguments, grid;
    int dimensions = (int)pick(1, 3);
    int order = pick(0, 1) ? TB_ORDER_C : TB_ORDER_FORTRAN;
    fill(&sizes, dimensions, 1, 9);
    fill(&kinds, dimensions, TB_DISTRIBUTE_NONE, TB_DISTRIBUTE_CYCLIC);
    fill(&arguments, dimensions, 1, 4);
    fill(&grid, dimensions, 1, 3);
    int64_t processes = 1, whole = 1;
    for (int i = 0; i < dimensions; i++) {
        if (kinds.wide[i] == TB_DISTRIBUTE_NONE)
            grid.narrow[i] = (int32_t)(grid.wide[i] = 1);
        if (pick(0, 1) || (kinds.wide[i] == TB_DISTRIBUTE_BLOCK && arguments.wide[i] * grid.wide[i] < sizes.wide[i]))
            arguments.narrow[i] = (int32_t)(arguments.wide[i] = TB_DISTRIBUTE_DEFAULT);
        processes *= grid.wide[i];
        whole *= sizes.wide[i];
    }
    int64_t rank = pick(0, processes - 1);
    assert_int_equal(tb_type_darray((int)processes, (int)rank, dimensions, view(&sizes), view(&kinds), view(&arguments),
                                    view(&grid), order, type_of(child), false, &s.type),
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
            append(&s.model, &child->model, k * extent_of(&child->model));
    }
    s.model.placed = s.model.bounded = true;
    s.model.lower = 0;
    s.model.upper = whole * extent_of(&child->model);
    return s;
}

static struct subject make_resized(struct subject *child)
{
    struct subject s = {.model = empty_model()};
    const struct tb_type *old = type_of(child);
    bool same = pick(0, 3) == 0;
    int64_t lower = same ? old->lower_bound : pick(-20, 20), extent = same ? old->extent : pick(-30, 60);
    assert_int_equal(tb_type_resized(old, lower, extent, false, &s.type), TB_OK);
    append(&s.model, &child->model, 0);
    s.model.placed = s.model.bounded = true;
    s.model.lower = lower;
    s.model.upper = lower + extent;
    return s;
}

static struct subject make_dup(struct subject *child)
{
    struct subject s = {.model = empty_model()};
    assert_int_equal(tb_type_dup(type_of(child), &s.type), TB_OK);
    append(&s.model, &child->model, 0);
    return s;
}

static int64_t true_lower(const struct model *m)
{
    int64_t lower = 0;
    for (uint64_t i = 0; i < m->count; i++)
        lower = i == 0 || m->elements[i].place < lower ? m->elements[i].place : lower;
    return lower;
}

static int64_t true_upper(const struct model *m)
{
    int64_t upper = 0;
    for (uint64_t i = 0; i < m->count; i++) {
        int64_t end = m->elements[i].place + m->elements[i].size;
        upper = i == 0 || end > upper ? end : upper;
    }
    return upper;
}

static bool fits(const struct model *m)
{
    return m->count <= ELEMENTS_LIMIT && true_upper(m) - true_lower(m) + 3 * llabs(extent_of(m)) < MEMORY_LIMIT &&
           llabs(true_lower(m)) < MEMORY_LIMIT && llabs(m->lower) < MEMORY_LIMIT;
}

static struct subject make_random(int level)
{
    if (level <= 0)
        return basic_subject();
    struct subject child = make_random(level - 1), made;
    switch (pick(0, 8)) {
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
        drop_subject(&made);
        return child;
    }
    drop_subject(&child); /* what is made of it holds it */
    return made;
}

/* ---- comparing --------------------------------------------------------------------------------------------------- */

static uint64_t bytes_of(const struct model *m)
{
    uint64_t bytes = 0;
    for (uint64_t i = 0; i < m->count; i++)
        bytes += m->elements[i].size;
    return bytes;
}

static void check_numbers(const struct tb_type *type, const struct model *m)
{
    assert_int_equal(type->size, bytes_of(m));
    assert_int_equal(type->elements, m->count);
    assert_int_equal(type->lower_bound, m->lower);
    assert_int_equal(type->extent, extent_of(m));
    assert_int_equal(type->true_lower_bound, true_lower(m));
    assert_int_equal(type->true_extent, true_upper(m) - true_lower(m));
    assert_int_equal(type->bounded, m->bounded);
    assert_int_equal(type->alignment, m->alignment);
    bool dense = m->lower == 0 && extent_of(m) == (int64_t)bytes_of(m);
    int64_t at = 0;
    for (uint64_t i = 0; i < m->count; i++) {
        dense = dense && m->elements[i].place == at;
        at += m->elements[i].size;
    }
    assert_int_equal(type->dense, dense);
}

/* Where every byte of the packed data lies, seen from the address of the buffer. */
static int64_t *places_of(const struct model *m, uint64_t items)
{
    int64_t *places = malloc(items * bytes_of(m) * sizeof *places + 1);
    uint64_t n = 0;
    for (uint64_t item = 0; item < items; item++)
        for (uint64_t i = 0; i < m->count; i++)
            for (uint32_t b = 0; b < m->elements[i].size; b++)
                places[n++] = (int64_t)item * extent_of(m) + m->elements[i].place + b;
    return places;
}

/* Memory of exactly the bytes that the data touches, and where the buffer's address is in it. */
struct memory {
    uint8_t *bytes;
    size_t length;
    int64_t low;
};

static struct memory memory_for(const int64_t *places, uint64_t count)
{
    int64_t low = 0, high = -1;
    for (uint64_t i = 0; i < count; i++) {
        low = i == 0 || places[i] < low ? places[i] : low;
        high = i == 0 || places[i] > high ? places[i] : high;
    }
    struct memory m = {.length = (size_t)(high - low + 1), .low = low};
    m.bytes = malloc(m.length + (m.length == 0));
    for (size_t i = 0; i < m.length; i++)
        m.bytes[i] = (uint8_t)tb_random_next(&random_state);
    return m;
}

static struct tb_buffer buffer_in(const struct memory *m, const struct tb_type *type, uint64_t items)
{
    return (struct tb_buffer){(void *)((uintptr_t)m->bytes - (uintptr_t)m->low), items, type};
}

/* Gathers [from, from + length) by chance in one go, in pieces or span by span, and compares. */
static void check_gather(const struct tb_buffer *buffer, const struct memory *m, const int64_t *places, uint64_t from,
                         uint64_t length)
{
    struct tb_spans spans;
    uint8_t *out = malloc(length + 1);
    uint64_t done = 0;
    int way = (int)pick(0, 2);
    tb_buffer_spans(buffer, from, length, &spans);
    assert_int_equal(spans.left, length);
    while (done < length) {
        uint64_t n = way == 0 ? length - done : (uint64_t)pick(1, pick(1, (int64_t)(length - done)));
        assert_true(spans.length > 0);
        if (way == 2) {
            n = n < spans.length ? n : spans.length;
            memcpy(out + done, spans.base, n);
            tb_spans_skip(&spans, n);
        } else {
            tb_spans_gather(&spans, out + done, n);
        }
        done += n;
    }
    assert_int_equal(spans.left, 0);
    assert_int_equal(spans.length, 0);
    for (uint64_t i = 0; i < length; i++)
        assert_int_equal(out[i], m->bytes[places[from + i] - m->low]);
    free(out);
}

/* Scatters what a gather would give, so that overlapping places agree, and finds nothing else changed. */
static void check_scatter(const struct tb_type *type, uint64_t items, const struct memory *source,
                          const int64_t *places, uint64_t from, uint64_t length)
{
    struct memory to = *source;
    uint8_t *expect = malloc(source->length + 1), *data = malloc(length + 1);
    to.bytes = malloc(source->length + 1);
    for (size_t i = 0; i < source->length; i++)
        to.bytes[i] = expect[i] = (uint8_t)~source->bytes[i];
    for (uint64_t i = 0; i < length; i++) {
        int64_t place = places[from + i] - source->low;
        expect[place] = data[i] = source->bytes[place];
    }
    struct tb_buffer buffer = buffer_in(&to, type, items);
    struct tb_spans spans;
    tb_buffer_spans(&buffer, from, length, &spans);
    bool pieces = pick(0, 1);
    for (uint64_t done = 0; done < length;) {
        uint64_t n = pieces ? (uint64_t)pick(1, (int64_t)(length - done)) : length;
        tb_spans_scatter(&spans, data + done, n);
        done += n;
    }
    assert_int_equal(spans.left, 0);
    assert_memory_equal(to.bytes, expect, source->length);
    free(to.bytes);
    free(expect);
    free(data);
}

static void check_elements(const struct tb_type *type, const struct model *m)
{
    uint64_t size = bytes_of(m);
    for (int round = 0; round < 40 && size > 0; round++) {
        uint64_t bytes = (uint64_t)pick(0, 3 * (int64_t)size), at = 0, end = 0, elements = 0, run;
        struct element last = {0};
        while (end <= bytes) { /* last is the element that holds the byte */
            at = end;
            last = m->elements[elements++ % m->count];
            end = at + last.size;
        }
        assert_int_equal(tb_type_elements_in(type, bytes), at == bytes ? (int64_t)elements - 1 : -1);
        const struct tb_type *basic = tb_type_basic_at(type, at, &run);
        assert_true(basic->basic == TB_BASIC_PAIR || basic->size == last.size);
        assert_true(run >= last.size);
    }
    assert_int_equal(tb_type_elements_in(type, 0), 0);
}

/* Putting items together does not change the sequence of elements. */
static void check_signature(const struct tb_type *type)
{
    struct tb_type *three, *two;
    int32_t lengths[] = {1, 2};
    int64_t places[] = {17, -1000};
    const struct tb_type *types[2] = {type};
    assert_int_equal(tb_type_contiguous(2, type, true, &two), TB_OK);
    types[1] = two;
    lengths[1] = 1;
    assert_int_equal(
        tb_type_struct(2, (struct tb_numbers){lengths, false}, (struct tb_numbers){places, true}, types, false, &three),
        TB_OK);
    assert_true(tb_signature_equal(tb_signature_of(three, 7), tb_signature_of(type, 21)));
    assert_true(tb_signature_equal(tb_signature_of(two, 1), tb_signature_of(type, 2)));
    if (type->size > 0)
        assert_false(tb_signature_equal(tb_signature_of(three, 1), tb_signature_of(type, 2)));
    tb_type_release(two);
    tb_type_release(three);
}

static void check_subject(const struct subject *s)
{
    const struct tb_type *type = type_of(s);
    check_numbers(type, &s->model);
    check_elements(type, &s->model);
    check_signature(type);
    uint64_t items = (uint64_t)pick(1, 3), total = items * bytes_of(&s->model);
    int64_t *places = places_of(&s->model, items);
    struct memory memory = memory_for(places, total);
    struct tb_buffer buffer = buffer_in(&memory, type, items);
    assert_int_equal(tb_buffer_bytes(&buffer), total);
    check_gather(&buffer, &memory, places, 0, total);
    check_scatter(type, items, &memory, places, 0, total);
    for (int round = 0; round < 8; round++) {
        uint64_t from = (uint64_t)pick(0, (int64_t)total), length = (uint64_t)pick(0, (int64_t)(total - from));
        check_gather(&buffer, &memory, places, from, length);
        check_scatter(type, items, &memory, places, from, length);
    }
    if (total > 0 && !type->dense)
        assert_true(tb_type_average_span(type) >= 1 && tb_type_average_span(type) <= type->size);
    free(places);
    free(memory.bytes);
}

static uint64_t from_environment(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);
    return text != NULL ? strtoull(text, NULL, 0) : otherwise;
}

static void test_random_types(void **state)
{
    uint64_t seed = from_environment("TB_TEST_SEED", 1), rounds = from_environment("TB_TEST_TYPES", 3000);
    for (uint64_t i = 0; i < rounds; i++) {
        tb_random_seed(&random_state, seed + i);
        struct subject s = make_random((int)pick(1, LEVELS));
        check_subject(&s);
        drop_subject(&s);
    }
}

/* Loops, grids, lists and records of every small block, in both directions: every kernel. */
static void test_every_block(void **state)
{
    for (int64_t block = 1; block <= 80; block++) {
        for (int form = 0; form < 5; form++) {
            tb_random_seed(&random_state, (uint64_t)(block * 5 + form));
            struct subject bytes = {.predefined = &tb_type_byte, .model = empty_model()},
                           run = {.model = empty_model()}, s = {.model = empty_model()},
                           outer = {.model = empty_model()};
            bytes.model = (struct model){1, (struct element[]){{0, 1}}, true, false, 0, 1, 1};
            tb_type_contiguous(block, &tb_type_byte, false, &run.type);
            append_block(&run.model, &bytes.model, 0, block);
            struct numbers places = {.is_wide = true}, lengths = {.is_wide = true};
            for (int i = 0; i < 7; i++) {
                places.wide[i] = form < 2 ? i * (block + 3) : i * (2 * block + 3) + pick(0, block);
                lengths.wide[i] = form >= 3 ? block - (block > i) * i : block;
            }
            tb_type_hindexed(7, view(&lengths), view(&places), &tb_type_byte, false, &s.type);
            for (int i = 0; i < 7; i++)
                append_block(&s.model, &bytes.model, places.wide[i], lengths.wide[i]);
            if (form == 1 || form == 4) {
                tb_type_hvector(9, 1, 20 * block + 60, s.type, false, &outer.type);
                for (int i = 0; i < 9; i++)
                    append(&outer.model, &s.model, i * (20 * block + 60));
                check_subject(&outer);
                drop_subject(&outer);
            }
            check_subject(&s);
            drop_subject(&s);
            drop_subject(&run);
        }
    }
}

/* Columns of a matrix of small elements, one after the other: neighbours in memory are far apart in the packed data. */
static void test_columns(void **state)
{
    for (int64_t block = 1; block <= 17; block++) {
        for (int64_t columns = 7; columns <= 25; columns += 3) {
            tb_random_seed(&random_state, (uint64_t)(block * 100 + columns));
            struct model byte = {1, (struct element[]){{0, 1}}, true, false, 0, 1, 1};
            struct subject s = {.model = empty_model()};
            struct tb_type *cell, *column, *narrow;
            int64_t rows = pick(1, 40), stride = pick(0, 1) ? 512 : -(block * 25 + 1);
            tb_type_contiguous(block, &tb_type_byte, false, &cell);
            tb_type_hvector(rows, 1, stride, cell, false, &column);
            tb_type_resized(column, 0, block, false, &narrow);
            tb_type_contiguous(columns, narrow, false, &s.type);
            for (int64_t c = 0; c < columns; c++)
                for (int64_t r = 0; r < rows; r++)
                    append_block(&s.model, &byte, c * block + r * stride, block);
            s.model.bounded = true;
            s.model.lower = 0;
            s.model.upper = columns * block;
            check_subject(&s);
            drop_subject(&s);
            tb_type_release(cell);
            tb_type_release(column);
            tb_type_release(narrow);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_types),
        cmocka_unit_test(test_every_block),
        cmocka_unit_test(test_columns),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
