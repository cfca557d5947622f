/* Predefined types: sizes, extents, alignments. Spans of types with gaps, from and to every byte. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "data/data.h"

#include <stdlib.h>

/* All of them, with the numbers of a 64-bit Linux machine, written down a second time. */
static const struct {
    uintptr_t handle;
    const char *name;
    uint64_t size;
    int64_t extent, true_extent;
    enum tb_basic basic;
} expected[] = {
    {0x201, "MPI_AINT", 8, 8, 8, TB_BASIC_INT},
    {0x202, "MPI_COUNT", 8, 8, 8, TB_BASIC_INT},
    {0x203, "MPI_OFFSET", 8, 8, 8, TB_BASIC_INT},
    {0x207, "MPI_PACKED", 1, 1, 1, TB_BASIC_PACKED},
    {0x208, "MPI_SHORT", 2, 2, 2, TB_BASIC_INT},
    {0x209, "MPI_INT", 4, 4, 4, TB_BASIC_INT},
    {0x20a, "MPI_LONG", 8, 8, 8, TB_BASIC_INT},
    {0x20b, "MPI_LONG_LONG_INT", 8, 8, 8, TB_BASIC_INT},
    {0x20c, "MPI_UNSIGNED_SHORT", 2, 2, 2, TB_BASIC_UINT},
    {0x20d, "MPI_UNSIGNED", 4, 4, 4, TB_BASIC_UINT},
    {0x20e, "MPI_UNSIGNED_LONG", 8, 8, 8, TB_BASIC_UINT},
    {0x20f, "MPI_UNSIGNED_LONG_LONG", 8, 8, 8, TB_BASIC_UINT},
    {0x210, "MPI_FLOAT", 4, 4, 4, TB_BASIC_FLOAT},
    {0x212, "MPI_C_COMPLEX", 8, 8, 8, TB_BASIC_COMPLEX},
    {0x213, "MPI_CXX_FLOAT_COMPLEX", 8, 8, 8, TB_BASIC_COMPLEX},
    {0x214, "MPI_DOUBLE", 8, 8, 8, TB_BASIC_FLOAT},
    {0x216, "MPI_C_DOUBLE_COMPLEX", 16, 16, 16, TB_BASIC_COMPLEX},
    {0x217, "MPI_CXX_DOUBLE_COMPLEX", 16, 16, 16, TB_BASIC_COMPLEX},
    {0x218, "MPI_LOGICAL", 4, 4, 4, TB_BASIC_LOGICAL},
    {0x219, "MPI_INTEGER", 4, 4, 4, TB_BASIC_INT},
    {0x21a, "MPI_REAL", 4, 4, 4, TB_BASIC_FLOAT},
    {0x21b, "MPI_COMPLEX", 8, 8, 8, TB_BASIC_COMPLEX},
    {0x21c, "MPI_DOUBLE_PRECISION", 8, 8, 8, TB_BASIC_FLOAT},
    {0x21d, "MPI_DOUBLE_COMPLEX", 16, 16, 16, TB_BASIC_COMPLEX},
    {0x21e, "MPI_CHARACTER", 1, 1, 1, TB_BASIC_CHAR},
    {0x220, "MPI_LONG_DOUBLE", 16, 16, 16, TB_BASIC_FLOAT},
    {0x224, "MPI_C_LONG_DOUBLE_COMPLEX", 32, 32, 32, TB_BASIC_COMPLEX},
    {0x225, "MPI_CXX_LONG_DOUBLE_COMPLEX", 32, 32, 32, TB_BASIC_COMPLEX},
    {0x228, "MPI_FLOAT_INT", 8, 8, 8, TB_BASIC_PAIR},
    {0x229, "MPI_DOUBLE_INT", 12, 16, 12, TB_BASIC_PAIR},
    {0x22a, "MPI_LONG_INT", 12, 16, 12, TB_BASIC_PAIR},
    {0x22b, "MPI_2INT", 8, 8, 8, TB_BASIC_PAIR},
    {0x22c, "MPI_SHORT_INT", 6, 8, 8, TB_BASIC_PAIR},
    {0x22d, "MPI_LONG_DOUBLE_INT", 20, 32, 20, TB_BASIC_PAIR},
    {0x230, "MPI_2REAL", 8, 8, 8, TB_BASIC_PAIR},
    {0x231, "MPI_2DOUBLE_PRECISION", 16, 16, 16, TB_BASIC_PAIR},
    {0x232, "MPI_2INTEGER", 8, 8, 8, TB_BASIC_PAIR},
    {0x238, "MPI_C_BOOL", 1, 1, 1, TB_BASIC_LOGICAL},
    {0x239, "MPI_CXX_BOOL", 1, 1, 1, TB_BASIC_LOGICAL},
    {0x23c, "MPI_WCHAR", 4, 4, 4, TB_BASIC_CHAR},
    {0x240, "MPI_INT8_T", 1, 1, 1, TB_BASIC_INT},
    {0x241, "MPI_UINT8_T", 1, 1, 1, TB_BASIC_UINT},
    {0x243, "MPI_CHAR", 1, 1, 1, TB_BASIC_CHAR},
    {0x244, "MPI_SIGNED_CHAR", 1, 1, 1, TB_BASIC_INT},
    {0x245, "MPI_UNSIGNED_CHAR", 1, 1, 1, TB_BASIC_UINT},
    {0x247, "MPI_BYTE", 1, 1, 1, TB_BASIC_BYTE},
    {0x248, "MPI_INT16_T", 2, 2, 2, TB_BASIC_INT},
    {0x249, "MPI_UINT16_T", 2, 2, 2, TB_BASIC_UINT},
    {0x250, "MPI_INT32_T", 4, 4, 4, TB_BASIC_INT},
    {0x251, "MPI_UINT32_T", 4, 4, 4, TB_BASIC_UINT},
    {0x258, "MPI_INT64_T", 8, 8, 8, TB_BASIC_INT},
    {0x259, "MPI_UINT64_T", 8, 8, 8, TB_BASIC_UINT},
    {0x2c0, "MPI_LOGICAL1", 1, 1, 1, TB_BASIC_LOGICAL},
    {0x2c1, "MPI_INTEGER1", 1, 1, 1, TB_BASIC_INT},
    {0x2c8, "MPI_LOGICAL2", 2, 2, 2, TB_BASIC_LOGICAL},
    {0x2c9, "MPI_INTEGER2", 2, 2, 2, TB_BASIC_INT},
    {0x2ca, "MPI_REAL2", 2, 2, 2, TB_BASIC_FLOAT},
    {0x2d0, "MPI_LOGICAL4", 4, 4, 4, TB_BASIC_LOGICAL},
    {0x2d1, "MPI_INTEGER4", 4, 4, 4, TB_BASIC_INT},
    {0x2d2, "MPI_REAL4", 4, 4, 4, TB_BASIC_FLOAT},
    {0x2d3, "MPI_COMPLEX4", 4, 4, 4, TB_BASIC_COMPLEX},
    {0x2d8, "MPI_LOGICAL8", 8, 8, 8, TB_BASIC_LOGICAL},
    {0x2d9, "MPI_INTEGER8", 8, 8, 8, TB_BASIC_INT},
    {0x2da, "MPI_REAL8", 8, 8, 8, TB_BASIC_FLOAT},
    {0x2db, "MPI_COMPLEX8", 8, 8, 8, TB_BASIC_COMPLEX},
    {0x2e0, "MPI_LOGICAL16", 16, 16, 16, TB_BASIC_LOGICAL},
    {0x2e1, "MPI_INTEGER16", 16, 16, 16, TB_BASIC_INT},
    {0x2e2, "MPI_REAL16", 16, 16, 16, TB_BASIC_FLOAT},
    {0x2e3, "MPI_COMPLEX16", 16, 16, 16, TB_BASIC_COMPLEX},
    {0x2eb, "MPI_COMPLEX32", 32, 32, 32, TB_BASIC_COMPLEX},
};
#define EXPECTED (sizeof(expected) / sizeof(expected[0]))

static void test_table(void **state)
{
    for (size_t i = 0; i < EXPECTED; i++) {
        const struct tb_type *type = tb_type_predefined(expected[i].handle);
        assert_non_null(type);
        assert_string_equal(type->name, expected[i].name);
        assert_int_equal(type->size, expected[i].size);
        assert_int_equal(type->lower_bound, 0);
        assert_int_equal(type->extent, expected[i].extent);
        assert_int_equal(type->true_lower_bound, 0);
        assert_int_equal(type->true_extent, expected[i].true_extent);
        assert_int_equal(type->basic, expected[i].basic);
        assert_int_equal(type->elements, expected[i].basic == TB_BASIC_PAIR ? 2 : 1);
        assert_int_equal(type->dense, (int64_t)type->size == type->extent);
        assert_int_equal(type->extent % type->alignment, 0);
    }
    assert_ptr_equal(tb_type_predefined(0x247), &tb_type_byte);
}

/* Nothing else is a datatype. */
static void test_strangers(void **state)
{
    size_t found = 0;
    for (uintptr_t handle = 0; handle < 0x1000; handle++)
        found += tb_type_predefined(handle) != NULL;
    assert_int_equal(found, EXPECTED);
    assert_null(tb_type_predefined(0x200)); /* MPI_DATATYPE_NULL */
    assert_null(tb_type_predefined(0x1ff));
    assert_null(tb_type_predefined(0x300));
    assert_null(tb_type_predefined(UINTPTR_MAX));
}

/* The ABI writes the size of types of fixed size into their handle: bit 6 says so, bits 3 to 5 hold its logarithm. */
static void test_size_in_handle(void **state)
{
    size_t fixed = 0;
    for (uintptr_t handle = 0x200; handle < 0x300; handle++) {
        const struct tb_type *type = tb_type_predefined(handle);
        if (type == NULL || (handle & 0x40) == 0)
            continue;
        assert_int_equal(type->size, 1u << (handle >> 3 & 7));
        fixed++;
    }
    assert_int_equal(fixed, 30);
}

static void test_alignment(void **state)
{
    assert_int_equal(tb_type_predefined(0x214)->alignment, alignof(double));
    assert_int_equal(tb_type_predefined(0x229)->alignment, alignof(double));
    assert_int_equal(tb_type_predefined(0x22c)->alignment, alignof(int));
    assert_int_equal(tb_type_predefined(0x22d)->alignment, alignof(long double));
    assert_int_equal(tb_type_predefined(0x2d3)->alignment, 2);
    assert_int_equal(tb_type_predefined(0x247)->alignment, 1);
}

/* Where the byte `i` of the packed data lies in memory, by the definition of the pair's struct. */
static size_t place_of(const struct tb_type *type, uint64_t i)
{
    uint64_t within = i % type->size;
    uint64_t first = type->size - 4; /* the value; the index behind it is an int */
    uint64_t gap = (uint64_t)type->true_extent - type->size;
    return (size_t)(i / type->size * (uint64_t)type->extent + within + (within >= first ? gap : 0));
}

#define ITEMS 4

/* Gathers [from, from+length) in steps of `step` bytes and compares with the definition. */
static void check_gather(const struct tb_type *type, uint64_t from, uint64_t length, size_t step)
{
    uint8_t memory[ITEMS * 32], out[ITEMS * 32];
    for (size_t i = 0; i < sizeof(memory); i++)
        memory[i] = (uint8_t)(i + 1);
    struct tb_buffer buffer = {memory, ITEMS, type};
    struct tb_spans spans;
    tb_buffer_spans(&buffer, from, length, &spans);
    memset(&buffer, 0xff, sizeof(buffer)); /* the walk must not need it any more */
    assert_int_equal(spans.left, length);
    for (uint64_t done = 0; done < length;) {
        size_t n = length - done < step ? (size_t)(length - done) : step;
        assert_true(spans.length > 0);
        tb_spans_gather(&spans, out + done, n);
        done += n;
    }
    assert_int_equal(spans.left, 0);
    for (uint64_t i = 0; i < length; i++)
        assert_int_equal(out[i], memory[place_of(type, from + i)]);
}

static const uintptr_t gappy[] = {0x229, 0x22a, 0x22c, 0x22d};

static void test_gather(void **state)
{
    for (size_t t = 0; t < 4; t++) {
        const struct tb_type *type = tb_type_predefined(gappy[t]);
        assert_false(type->dense);
        uint64_t total = ITEMS * type->size;
        for (uint64_t from = 0; from <= total; from++) {
            for (uint64_t length = 0; length <= total - from; length++) {
                check_gather(type, from, length, 1);
                check_gather(type, from, length, 5);
                check_gather(type, from, length, 1000);
            }
        }
    }
}

/* What is scattered reaches every byte of data and no byte of a gap. */
static void test_scatter(void **state)
{
    for (size_t t = 0; t < 4; t++) {
        const struct tb_type *type = tb_type_predefined(gappy[t]);
        uint64_t total = ITEMS * type->size;
        for (uint64_t cut = 0; cut <= total; cut++) {
            uint8_t memory[ITEMS * 32 + 1], expect[ITEMS * 32 + 1], data[ITEMS * 32];
            memset(memory, 0, sizeof(memory));
            memset(expect, 0, sizeof(expect));
            for (uint64_t i = 0; i < total; i++)
                expect[place_of(type, i)] = data[i] = (uint8_t)(i + 1);
            struct tb_buffer buffer = {memory, ITEMS, type};
            struct tb_spans first, second;
            tb_buffer_spans(&buffer, cut, total - cut, &second); /* the end first: frames may arrive in any order */
            tb_spans_scatter(&second, data + cut, (size_t)(total - cut));
            tb_buffer_spans(&buffer, 0, cut, &first);
            tb_spans_scatter(&first, data, (size_t)cut);
            assert_memory_equal(memory, expect, sizeof(expect));
        }
    }
}

/* A copy of a walk goes on by itself. */
static void test_copy(void **state)
{
    uint8_t memory[ITEMS * 32], one[ITEMS * 32] = {0}, two[ITEMS * 32] = {0};
    for (size_t i = 0; i < sizeof(memory); i++)
        memory[i] = (uint8_t)(i + 1);
    const struct tb_type *type = tb_type_predefined(0x22c);
    struct tb_buffer buffer = {memory, ITEMS, type};
    struct tb_spans spans, copy;
    tb_buffer_spans(&buffer, 1, 20, &spans);
    tb_spans_gather(&spans, one, 6);
    copy = spans;
    tb_spans_gather(&spans, one + 6, 14);
    tb_spans_gather(&copy, two + 6, 14);
    assert_memory_equal(one + 6, two + 6, 14);
}

static void test_dense(void **state)
{
    double numbers[8];
    struct tb_buffer buffer = {numbers, 8, tb_type_predefined(0x214)};
    struct tb_spans spans;
    assert_int_equal(tb_buffer_bytes(&buffer), 64);
    tb_buffer_spans(&buffer, 8, 40, &spans);
    assert_ptr_equal(spans.base, numbers + 1);
    assert_int_equal(spans.length, 40);
    assert_null(spans.next);
    tb_buffer_spans_slow(&buffer, 8, 40, &spans);
    assert_ptr_equal(spans.base, numbers + 1);
    assert_int_equal(spans.left, 40);

    struct tb_buffer nothing = {NULL, 0, tb_type_predefined(0x229)};
    tb_buffer_spans(&nothing, 0, 0, &spans);
    assert_int_equal(spans.left, 0);
    assert_int_equal(spans.length, 0);
}

/* Positions beyond 4 GiB are computed in 64 bits. Nothing is read there. */
static void test_far(void **state)
{
    uint8_t here;
    struct tb_buffer buffer = {&here, 1ull << 33, tb_type_predefined(0x229)};
    struct tb_spans spans;
    uint64_t item = (1ull << 32) + 5;
    tb_buffer_spans(&buffer, item * 12 + 7, 3, &spans);
    assert_int_equal((uintptr_t)spans.base - (uintptr_t)&here, item * 16 + 7);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_table),     cmocka_unit_test(test_strangers), cmocka_unit_test(test_size_in_handle),
        cmocka_unit_test(test_alignment), cmocka_unit_test(test_gather),    cmocka_unit_test(test_scatter),
        cmocka_unit_test(test_copy),      cmocka_unit_test(test_dense),     cmocka_unit_test(test_far),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
