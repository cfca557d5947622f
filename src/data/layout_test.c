/* Random types against a model that writes every basic element down: bounds, packing and unpacking from and to any
 * byte, spans, elements. TB_TEST_SEED replays a run, TB_TEST_TYPES makes it longer. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "data/type_model.h"

#include <stdio.h>
#include <stdlib.h>

#define LEVELS 5

/* ---- comparing --------------------------------------------------------------------------------------------------- */

static uint64_t bytes_of(const struct type_model *m)
{
    uint64_t bytes = 0;
    for (uint64_t i = 0; i < m->count; i++)
        bytes += m->elements[i].size;
    return bytes;
}

static void check_numbers(const struct tb_type *type, const struct type_model *m)
{
    assert_int_equal(type->size, bytes_of(m));
    assert_int_equal(type->elements, m->count);
    assert_int_equal(type->lower_bound, m->lower);
    assert_int_equal(type->extent, model_extent(m));
    assert_int_equal(type->true_lower_bound, model_true_lower(m));
    assert_int_equal(type->true_extent, model_true_upper(m) - model_true_lower(m));
    assert_int_equal(type->bounded, m->bounded);
    assert_int_equal(type->alignment, m->alignment);
    bool dense = m->lower == 0 && model_extent(m) == (int64_t)bytes_of(m);
    int64_t at = 0;
    for (uint64_t i = 0; i < m->count; i++) {
        dense = dense && m->elements[i].place == at;
        at += m->elements[i].size;
    }
    assert_int_equal(type->dense, dense);
}

/* Where every byte of the packed data lies, seen from the address of the buffer. */
static int64_t *places_of(const struct type_model *m, uint64_t items)
{
    int64_t *places = malloc(items * bytes_of(m) * sizeof *places + 1);
    uint64_t n = 0;
    for (uint64_t item = 0; item < items; item++)
        for (uint64_t i = 0; i < m->count; i++)
            for (uint32_t b = 0; b < m->elements[i].size; b++)
                places[n++] = (int64_t)item * model_extent(m) + m->elements[i].place + b;
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
    int way = (int)random_pick(0, 2);
    tb_buffer_spans(buffer, from, length, &spans);
    assert_int_equal(spans.left, length);
    while (done < length) {
        uint64_t n = way == 0 ? length - done : (uint64_t)random_pick(1, random_pick(1, (int64_t)(length - done)));
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
    bool pieces = random_pick(0, 1);
    for (uint64_t done = 0; done < length;) {
        uint64_t n = pieces ? (uint64_t)random_pick(1, (int64_t)(length - done)) : length;
        tb_spans_scatter(&spans, data + done, n);
        done += n;
    }
    assert_int_equal(spans.left, 0);
    assert_memory_equal(to.bytes, expect, source->length);
    free(to.bytes);
    free(expect);
    free(data);
}

static void check_elements(const struct tb_type *type, const struct type_model *m)
{
    uint64_t size = bytes_of(m);
    for (int round = 0; round < 40 && size > 0; round++) {
        uint64_t bytes = (uint64_t)random_pick(0, 3 * (int64_t)size), at = 0, end = 0, elements = 0, run;
        struct model_element last = {0};
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
static void check_subject(const struct random_type *s)
{
    const struct tb_type *type = random_type_of(s);
    check_numbers(type, &s->model);
    check_elements(type, &s->model);
    uint64_t items = (uint64_t)random_pick(1, 3), total = items * bytes_of(&s->model);
    int64_t *places = places_of(&s->model, items);
    struct memory memory = memory_for(places, total);
    struct tb_buffer buffer = buffer_in(&memory, type, items);
    assert_int_equal(tb_buffer_bytes(&buffer), total);
    check_gather(&buffer, &memory, places, 0, total);
    check_scatter(type, items, &memory, places, 0, total);
    for (int round = 0; round < 8; round++) {
        uint64_t from = (uint64_t)random_pick(0, (int64_t)total),
                 length = (uint64_t)random_pick(0, (int64_t)(total - from));
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
        struct random_type s = random_type_make((int)random_pick(1, LEVELS));
        check_subject(&s);
        random_type_drop(&s);
    }
}

/* Loops, grids, lists and records of every small block, in both directions: every kernel. */
static void test_every_block(void **state)
{
    for (int64_t block = 1; block <= 80; block++) {
        for (int form = 0; form < 5; form++) {
            tb_random_seed(&random_state, (uint64_t)(block * 5 + form));
            struct random_type bytes = {.predefined = &tb_type_byte, .model = model_empty()},
                               run = {.model = model_empty()}, s = {.model = model_empty()},
                               outer = {.model = model_empty()};
            bytes.model = (struct type_model){1, (struct model_element[]){{0, 1}}, true, false, 0, 1, 1};
            tb_type_contiguous(block, &tb_type_byte, false, &run.type);
            model_append_block(&run.model, &bytes.model, 0, block);
            struct random_numbers places = {.is_wide = true}, lengths = {.is_wide = true};
            for (int i = 0; i < 7; i++) {
                places.wide[i] = form < 2 ? i * (block + 3) : i * (2 * block + 3) + random_pick(0, block);
                lengths.wide[i] = form >= 3 ? block - (block > i) * i : block;
            }
            tb_type_hindexed(7, numbers_view(&lengths), numbers_view(&places), &tb_type_byte, false, &s.type);
            for (int i = 0; i < 7; i++)
                model_append_block(&s.model, &bytes.model, places.wide[i], lengths.wide[i]);
            if (form == 1 || form == 4) {
                tb_type_hvector(9, 1, 20 * block + 60, s.type, false, &outer.type);
                for (int i = 0; i < 9; i++)
                    model_append(&outer.model, &s.model, i * (20 * block + 60));
                check_subject(&outer);
                random_type_drop(&outer);
            }
            check_subject(&s);
            random_type_drop(&s);
            random_type_drop(&run);
        }
    }
}

/* Columns of a matrix of small elements, one after the other: neighbours in memory are far apart in the packed data. */
static void test_columns(void **state)
{
    for (int64_t block = 1; block <= 17; block++) {
        for (int64_t columns = 7; columns <= 25; columns += 3) {
            tb_random_seed(&random_state, (uint64_t)(block * 100 + columns));
            struct type_model byte = {1, (struct model_element[]){{0, 1}}, true, false, 0, 1, 1};
            struct random_type s = {.model = model_empty()};
            struct tb_type *cell, *column, *narrow;
            int64_t rows = random_pick(1, 40), stride = random_pick(0, 1) ? 512 : -(block * 25 + 1);
            tb_type_contiguous(block, &tb_type_byte, false, &cell);
            tb_type_hvector(rows, 1, stride, cell, false, &column);
            tb_type_resized(column, 0, block, false, &narrow);
            tb_type_contiguous(columns, narrow, false, &s.type);
            for (int64_t c = 0; c < columns; c++)
                for (int64_t r = 0; r < rows; r++)
                    model_append_block(&s.model, &byte, c * block + r * stride, block);
            s.model.bounded = true;
            s.model.lower = 0;
            s.model.upper = columns * block;
            check_subject(&s);
            random_type_drop(&s);
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
