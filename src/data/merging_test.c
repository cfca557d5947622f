/* What the layouts of derived types become: parts that lie side by side or repeat are merged, so that memory and depth
 * stay small. */
#include "data/derived_test.h"

#include <malloc.h>
#include <stdlib.h>

/* Builds with a constructor, then looks at the layout. */
#define LAYOUT_OF(call)                                                                                                \
    do {                                                                                                               \
        struct tb_type **out = &type;                                                                                  \
        assert_int_equal(call, TB_OK);                                                                                 \
        layout = type->layout;                                                                                         \
    } while (0)

static void test_merging(void **state)
{
    struct tb_type *type, *pair;
    const struct tb_layout *layout;
    LAYOUT_OF(tb_type_vector(10, 3, 3, INT, false, out));
    assert_null(layout);
    assert_true(type->dense);
    tb_type_release(type);
    LAYOUT_OF(tb_type_indexed(4, NARROW(2, 0, 3, 1), NARROW(0, 77, 2, 5), INT, false, out)); /* neighbours */
    assert_null(layout);
    tb_type_release(type);
    LAYOUT_OF(tb_type_indexed(4, NARROW(2, 2, 2, 2), NARROW(1, 5, 9, 13), INT, false, out)); /* equal steps */
    assert_int_equal(layout->form, TB_LAYOUT_LOOP);
    assert_int_equal(layout->count, 4);
    assert_int_equal(layout->piece, 8);
    assert_int_equal(layout->stride, 16);
    assert_int_equal(type->origin, 4);
    tb_type_release(type);
    LAYOUT_OF(tb_type_hvector(10, 1, 12, INT, false, out)); /* a loop that goes on in the same step */
    pair = type;
    struct tb_type *padded;
    tb_type_resized(pair, 0, 120, false, &padded);
    LAYOUT_OF(tb_type_contiguous(5, padded, false, out));
    assert_int_equal(layout->form, TB_LAYOUT_LOOP);
    assert_int_equal(layout->count, 50);
    assert_null(layout->child);
    tb_type_release(type);
    LAYOUT_OF(tb_type_dup(padded, out));
    assert_ptr_equal(layout, pair->layout);
    tb_type_release(type);
    tb_type_release(padded);
    tb_type_release(pair);
    const struct tb_type *types[] = {INT, SHORT, CHAR, DOUBLE};
    LAYOUT_OF(tb_type_struct(4, NARROW(1, 1, 2, 1), WIDE(0, 4, 6, 8), types, false, out)); /* no gaps */
    assert_null(layout);
    assert_true(type->dense);
    tb_type_release(type);
    LAYOUT_OF(tb_type_struct(4, NARROW(1, 1, 2, 1), WIDE(0, 4, 8, 16), types, false, out));
    assert_int_equal(layout->form, TB_LAYOUT_LIST);
    assert_int_equal(layout->count, 3);
    assert_int_equal(layout->unit, 0);
    tb_type_release(type);
    LAYOUT_OF(tb_type_subarray(3, NARROW(8, 8, 8), NARROW(2, 8, 8), NARROW(3, 0, 0), TB_ORDER_C, INT, false, out));
    assert_null(layout);
    assert_int_equal(tb_type_average_span(type), 512);
    tb_type_release(type);
    LAYOUT_OF(tb_type_subarray(3, NARROW(8, 8, 8), NARROW(8, 8, 1), NARROW(0, 0, 3), TB_ORDER_C, INT, false, out));
    assert_int_equal(layout->count, 64); /* one loop, not three */
    assert_null(layout->child);
    assert_int_equal(tb_type_average_span(type), 4);
    tb_type_release(type);
}

static void test_merging_members(void **state)
{
    struct tb_type *type, *loop, *twin, *large;
    const struct tb_layout *layout;
    tb_type_vector(100, 1, 2, INT, false, &loop);
    tb_type_dup(loop, &twin);
    /* Members with the same layout are a list, of different ones parts. */
    const struct tb_type *same[] = {loop, twin, loop}, *mixed[] = {loop, INT, DOUBLE};
    LAYOUT_OF(tb_type_struct(3, NARROW(1, 1, 1), WIDE(0, 1000, 5000), same, false, out));
    assert_int_equal(layout->form, TB_LAYOUT_LIST);
    assert_ptr_equal(layout->child, loop->layout);
    tb_type_release(type);
    LAYOUT_OF(tb_type_struct(3, NARROW(1, 1, 1), WIDE(0, 1000, 5000), mixed, false, out));
    assert_int_equal(layout->form, TB_LAYOUT_PARTS);
    assert_int_equal(layout->runs, 102);
    tb_type_release(type);
    tb_type_release(twin);
    tb_type_release(loop);
    /* A short tree becomes a list of runs, which needs nothing of the tree. */
    tb_type_vector(3, 1, 2, INT, false, &loop);
    mixed[0] = loop;
    LAYOUT_OF(tb_type_struct(3, NARROW(2, 1, 1), WIDE(0, 100, 200), mixed, false, out));
    tb_type_release(loop);
    assert_int_equal(layout->form, TB_LAYOUT_LIST);
    assert_int_equal(layout->count, 7);
    tb_type_contiguous(1000, type, false, &large);
    assert_int_equal(large->layout->form, TB_LAYOUT_LOOP);
    assert_ptr_equal(large->layout->child, layout);
    tb_type_release(type);
    tb_type_release(large);
}

/* 2^30 single bytes with stride 2: a kilobyte, and bytes from everywhere. */
static void test_huge_vector(void **state)
{
    struct tb_type *type, *nested;
    size_t before = mallinfo2().uordblks;
    assert_int_equal(tb_type_vector(1 << 30, 1, 2, &tb_type_byte, false, &type), TB_OK);
    tb_type_commit(type);
    size_t used = mallinfo2().uordblks - before; /* 0 where a sanitizer has its own */
    assert_true(used <= 1024);
    check_bounds(type, 1 << 30, 0, (1ll << 31) - 1, 0, (1ll << 31) - 1);
    struct tb_buffer buffer = {NULL, 1ull << 20, type};
    struct tb_spans spans;
    uint64_t at = (777ull << 30) + 123456789; /* nothing is read there */
    tb_buffer_spans(&buffer, at, 5, &spans);
    assert_int_equal((uintptr_t)spans.base, 777ull * ((1ull << 31) - 1) + 2 * 123456789);
    assert_int_equal(spans.length, 1);
    tb_spans_skip(&spans, 1);
    assert_int_equal((uintptr_t)spans.base, 777ull * ((1ull << 31) - 1) + 2 * 123456790);
    assert_int_equal(tb_type_elements_in(type, at), at);
    before = mallinfo2().uordblks;
    assert_int_equal(tb_type_vector(1 << 30, 2, 3, type, true, &nested), TB_OK);
    assert_true(mallinfo2().uordblks - before <= 1024);
    assert_int_equal(nested->elements, 1ull << 61);
    tb_type_release(type);
    tb_type_release(nested);
}

/* Memory is really walked, in the middle of a large buffer. */
static void test_middle(void **state)
{
    size_t length = 3 << 20;
    uint8_t *memory = malloc(length), out[1000];
    struct tb_type *type;
    for (size_t i = 0; i < length; i++)
        memory[i] = (uint8_t)(i * 31 >> 3);
    tb_type_vector((int64_t)length / 3, 1, 3, &tb_type_byte, false, &type);
    struct tb_buffer buffer = {memory, 1, type};
    struct tb_spans spans;
    tb_buffer_spans(&buffer, 500001, 1000, &spans);
    tb_spans_gather(&spans, out, 1000);
    for (size_t i = 0; i < 1000; i++)
        assert_int_equal(out[i], memory[3 * (500001 + i)]);
    tb_type_release(type);
    free(memory);
}

/* Displacements may be absolute addresses (MPI_BOTTOM). */
static void test_bottom(void **state)
{
    int one = 1, two = 2, many[40], out[42];
    struct tb_type *type;
    for (int i = 0; i < 40; i++)
        many[i] = i;
    tb_type_hindexed(3, NARROW(1, 1, 40), WIDE((int64_t)&two, (int64_t)&one, (int64_t)many), INT, false, &type);
    struct tb_buffer buffer = {NULL, 1, type};
    struct tb_spans spans;
    tb_buffer_spans(&buffer, 0, type->size, &spans);
    tb_spans_gather(&spans, out, sizeof out);
    assert_int_equal(out[0], 2);
    assert_int_equal(out[1], 1);
    assert_int_equal(out[41], 39);
    tb_type_release(type);
}

/* Levels that cannot be merged; overlapping, so that they take no room. */
static void test_depth(void **state)
{
    const struct tb_type *inner = tb_type_hold(&tb_type_byte);
    int levels = 0, code;
    for (;; levels++) {
        struct tb_type *outer, *stretched;
        assert_int_equal(tb_type_resized(inner, 0, 0, true, &stretched), TB_OK);
        tb_type_release(inner);
        inner = stretched;
        code = tb_type_hvector(2, 1, 1000 + levels, inner, true, &outer);
        if (code != TB_OK)
            break;
        tb_type_release(inner);
        inner = outer;
    }
    assert_int_equal(code, TB_ERR_LIMIT);
    assert_non_null(strstr(tb_error_story(), "nested too deeply"));
    assert_int_equal(levels, TB_LAYOUT_DEPTH_LIMIT);
    tb_type_release(inner);
}

/* What merges may be nested as often as one likes; freeing does not use up the stack. */
static void test_nesting(void **state)
{
    const struct tb_type *inner = tb_type_hold(DOUBLE);
    for (int i = 0; i < 200000; i++) {
        struct tb_type *outer;
        assert_int_equal(tb_type_contiguous(1, inner, false, &outer), TB_OK);
        tb_type_release(inner);
        inner = outer;
    }
    assert_true(inner->dense);
    assert_int_equal(tb_type_elements_in(inner, 24), 3);
    assert_int_equal(tb_type_elements_in(inner, 25), -1);
    tb_type_release(inner);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_merging), cmocka_unit_test(test_merging_members), cmocka_unit_test(test_huge_vector),
        cmocka_unit_test(test_middle),  cmocka_unit_test(test_bottom),          cmocka_unit_test(test_depth),
        cmocka_unit_test(test_nesting),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
