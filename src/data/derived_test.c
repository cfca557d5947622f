/* Derived types at their edges: arguments, bounds, envelopes, limits, life. Whether bytes go where they should is
 * tested with random types in layout_test.c. */
#include "data/derived_test.h"

#include <stdlib.h>

static void test_bounds(void **state)
{
    struct tb_type *type, *other;
    tb_type_contiguous(3, INT, false, &type);
    check_bounds(type, 12, 0, 12, 0, 12);
    assert_true(type->dense);
    tb_type_release(type);
    tb_type_vector(3, 2, -4, INT, false, &type);
    check_bounds(type, 24, -32, 40, -32, 40);
    tb_type_release(type);
    tb_type_hvector(2, 1, 5, INT, false, &type); /* overlaps nothing, aligned to nothing */
    check_bounds(type, 8, 0, 9, 0, 9);
    tb_type_release(type);
    tb_type_indexed(3, NARROW(1, 0, 2), NARROW(4, -100, -2), INT, false, &type);
    check_bounds(type, 12, -8, 28, -8, 28); /* an empty block has no place */
    tb_type_release(type);
    const struct tb_type *types[] = {DOUBLE, CHAR};
    tb_type_struct(2, NARROW(1, 1), WIDE(0, 8), types, false, &type);
    check_bounds(type, 9, 0, 16, 0, 9); /* padded as in C */
    assert_int_equal(type->alignment, 8);
    tb_type_resized(type, -3, 9, false, &other);
    check_bounds(other, 9, -3, 9, 0, 9);
    tb_type_release(type);
    const struct tb_type *given[] = {other, INT};
    tb_type_struct(2, NARROW(1, 1), WIDE(100, 0), given, false, &type);
    check_bounds(type, 13, 97, 9, 0, 109); /* bounds that were given win, and are not padded */
    tb_type_release(type);
    tb_type_contiguous(4, other, false, &type);
    check_bounds(type, 36, -3, 36, 0, 36);
    assert_null(type->layout);
    assert_false(type->dense); /* the lower bound is not 0 */
    tb_type_release(type);
    tb_type_release(other);
    tb_type_resized(INT, 4, -8, false, &type);
    check_bounds(type, 4, 4, -8, 0, 4);
    tb_type_contiguous(3, type, false, &other);
    check_bounds(other, 12, -12, 8, -16, 20); /* the lowest marker of a lower bound, the highest of an upper one */
    tb_type_release(type);
    tb_type_release(other);
}

/* Whatever holds long double is known by it. */
static void test_long_double(void **state)
{
    static const uint32_t codes[] = {0x220, 0x224, 0x225, 0x22d};
    struct tb_type *type, *other, *copy;
    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++)
        assert_true(tb_type_predefined(codes[i])->long_double);
    assert_false(DOUBLE->long_double || INT->long_double || tb_type_predefined(0x2e2)->long_double);
    const struct tb_type *mixed[] = {INT, tb_type_predefined(0x220)};
    tb_type_struct(2, NARROW(1, 1), WIDE(0, 16), mixed, false, &type);
    tb_type_resized(type, 0, 64, false, &other);
    tb_type_dup(other, &copy);
    assert_true(type->long_double && other->long_double && copy->long_double);
    tb_type_release(type);
    tb_type_release(other);
    tb_type_release(copy);
    tb_type_struct(2, NARROW(1, 0), WIDE(0, 16), mixed, false, &type);
    assert_false(type->long_double); /* there is none of it */
    tb_type_release(type);
}

static void test_empty(void **state)
{
    struct tb_type *empty, *marked, *type;
    const struct tb_type *none[1] = {NULL};
    tb_type_contiguous(0, DOUBLE, false, &empty);
    check_bounds(empty, 0, 0, 0, 0, 0);
    assert_int_equal(empty->alignment, 1);
    tb_type_struct(0, NARROW(0), WIDE(0), none, false, &type);
    check_bounds(type, 0, 0, 0, 0, 0);
    tb_type_release(type);
    tb_type_vector(5, 0, 7, DOUBLE, false, &type);
    check_bounds(type, 0, 0, 0, 0, 0);
    tb_type_release(type);
    tb_type_hvector(0, 5, 7, DOUBLE, false, &type);
    check_bounds(type, 0, 0, 0, 0, 0);
    tb_type_release(type);
    tb_type_indexed(2, NARROW(0, 0), NARROW(5, 6), DOUBLE, false, &type);
    check_bounds(type, 0, 0, 0, 0, 0);
    struct tb_buffer buffer = {NULL, 1000, type};
    struct tb_spans spans;
    tb_buffer_spans(&buffer, 0, 0, &spans);
    assert_int_equal(spans.left, 0);
    assert_int_equal(tb_type_elements_in(type, 0), 0);
    assert_int_equal(tb_type_elements_in(type, 4), -1);
    tb_type_release(type);
    /* An empty type with given bounds takes room; one without is not there at all. */
    tb_type_resized(empty, 0, 16, false, &marked);
    tb_type_contiguous(3, marked, false, &type);
    check_bounds(type, 0, 0, 48, 0, 0);
    tb_type_release(type);
    const struct tb_type *types[] = {INT, empty, INT};
    tb_type_struct(3, NARROW(1, 1, 1), WIDE(4, 1000, 8), types, false, &type);
    check_bounds(type, 8, 4, 8, 4, 8);
    assert_null(type->layout);
    tb_type_release(type);
    types[1] = marked;
    tb_type_struct(3, NARROW(1, 1, 1), WIDE(4, 1000, 8), types, false, &type);
    check_bounds(type, 8, 1000, 16, 4, 8);
    tb_type_release(type);
    tb_type_release(marked);
    tb_type_release(empty);
}

/* ---- envelopes --------------------------------------------------------------------------------------------------- */

static void check_envelope(struct tb_type *type, enum tb_combiner combiner, uint64_t integers, uint64_t addresses,
                           uint64_t large, uint64_t types)
{
    const struct tb_recipe *e = tb_type_envelope(type);
    assert_int_equal(e->combiner, combiner);
    assert_int_equal(e->integer_count, integers);
    assert_int_equal(e->address_count, addresses);
    assert_int_equal(e->large_count_count, large);
    assert_int_equal(e->type_count, types);
    assert_int_equal(e->large, large > 0);
}

/* Whatever was given, in the order given, is in one array if all have the same width. */
static void check_values(const int32_t *narrow, const int64_t *wide, uint64_t count, int64_t first)
{
    for (uint64_t i = 0; i < count; i++)
        assert_int_equal(narrow != NULL ? narrow[i] : wide[i], first + (int64_t)i);
}

static void test_envelopes(void **state)
{
    struct tb_type *type;
    check_envelope((struct tb_type *)INT, TB_COMBINER_NAMED, 0, 0, 0, 0);
    for (int large = 0; large < 2; large++) {
        const struct tb_recipe *e;
        tb_type_contiguous(7, INT, large, &type);
        check_envelope(type, TB_COMBINER_CONTIGUOUS, !large, 0, large, 1);
        e = type->envelope;
        check_values(large ? NULL : e->integers, e->large_counts, 1, 7);
        assert_ptr_equal(e->types[0], INT);
        tb_type_release(type);
        tb_type_vector(7, 8, 9, INT, large, &type);
        check_envelope(type, TB_COMBINER_VECTOR, large ? 0 : 3, 0, large ? 3 : 0, 1);
        check_values(large ? NULL : type->envelope->integers, type->envelope->large_counts, 3, 7);
        tb_type_release(type);
        tb_type_hvector(7, 8, 9, INT, large, &type);
        check_envelope(type, TB_COMBINER_HVECTOR, large ? 0 : 2, !large, large ? 3 : 0, 1);
        check_values(large ? NULL : type->envelope->integers, type->envelope->large_counts, 2, 7);
        assert_int_equal((large ? type->envelope->large_counts + 2 : type->envelope->addresses)[0], 9);
        tb_type_release(type);
        tb_type_indexed(2, NARROW(3, 4), NARROW(5, 6), INT, large, &type);
        check_envelope(type, TB_COMBINER_INDEXED, large ? 0 : 5, 0, large ? 5 : 0, 1);
        check_values(large ? NULL : type->envelope->integers, type->envelope->large_counts, 5, 2);
        tb_type_release(type);
        tb_type_hindexed(2, NARROW(3, 4), WIDE(5, 600), INT, large, &type);
        check_envelope(type, TB_COMBINER_HINDEXED, large ? 0 : 3, large ? 0 : 2, large ? 5 : 0, 1);
        check_values(large ? NULL : type->envelope->integers, type->envelope->large_counts, 3, 2);
        assert_int_equal((large ? type->envelope->large_counts + 3 : type->envelope->addresses)[1], 600);
        tb_type_release(type);
        tb_type_indexed_block(2, 3, NARROW(4, 5), INT, large, &type);
        check_envelope(type, TB_COMBINER_INDEXED_BLOCK, large ? 0 : 4, 0, large ? 4 : 0, 1);
        check_values(large ? NULL : type->envelope->integers, type->envelope->large_counts, 4, 2);
        tb_type_release(type);
        tb_type_hindexed_block(2, 3, WIDE(4, 5), INT, large, &type);
        check_envelope(type, TB_COMBINER_HINDEXED_BLOCK, large ? 0 : 2, large ? 0 : 2, large ? 4 : 0, 1);
        check_values(large ? NULL : type->envelope->integers, type->envelope->large_counts, 2, 2);
        tb_type_release(type);
        const struct tb_type *types[] = {INT, DOUBLE};
        tb_type_struct(2, NARROW(3, 4), WIDE(5, 60), types, large, &type);
        check_envelope(type, TB_COMBINER_STRUCT, large ? 0 : 3, large ? 0 : 2, large ? 5 : 0, 2);
        check_values(large ? NULL : type->envelope->integers, type->envelope->large_counts, 3, 2);
        assert_ptr_equal(type->envelope->types[1], DOUBLE);
        tb_type_release(type);
        tb_type_subarray(2, NARROW(30, 40), NARROW(1, 2), NARROW(3, 4), TB_ORDER_C, INT, large, &type);
        check_envelope(type, TB_COMBINER_SUBARRAY, large ? 2 : 8, 0, large ? 6 : 0, 1);
        e = type->envelope;
        assert_int_equal(e->integers[0], 2);
        assert_int_equal(e->integers[e->integer_count - 1], TB_ORDER_C);
        check_values(large ? NULL : e->integers + 3, e->large_counts + 2, 4, 1);
        tb_type_release(type);
        tb_type_darray(2, 1, 2, NARROW(10, 11), NARROW(17, 18), NARROW(5, 4), NARROW(2, 1), TB_ORDER_FORTRAN, INT,
                       large, &type);
        check_envelope(type, TB_COMBINER_DARRAY, large ? 10 : 12, 0, large ? 2 : 0, 1);
        e = type->envelope;
        const int32_t *rest = e->integers + (large ? 3 : 5);
        check_values(large ? NULL : e->integers + 3, e->large_counts, 2, 10);
        check_values(rest, NULL, 2, 17);
        assert_int_equal(rest[2], 5);
        assert_int_equal(rest[5], 1);
        assert_int_equal(rest[6], TB_ORDER_FORTRAN);
        tb_type_release(type);
        tb_type_resized(INT, 7, 8, large, &type);
        check_envelope(type, TB_COMBINER_RESIZED, 0, large ? 0 : 2, large ? 2 : 0, 1);
        check_values(NULL, large ? type->envelope->large_counts : type->envelope->addresses, 2, 7);
        tb_type_release(type);
    }
}

/* ---- wrong arguments --------------------------------------------------------------------------------------------- */

#define REFUSED(expected, word, call)                                                                                  \
    do {                                                                                                               \
        struct tb_type *made = NULL;                                                                                   \
        struct tb_type **out = &made;                                                                                  \
        assert_int_equal(call, expected);                                                                              \
        assert_non_null(strstr(tb_error_story(), word));                                                               \
        assert_null(made);                                                                                             \
    } while (0)

static void test_wrong_arguments(void **state)
{
    const struct tb_type *types[] = {INT, INT};
    REFUSED(TB_ERR_ARGUMENT, "count is -1", tb_type_contiguous(-1, INT, false, out));
    REFUSED(TB_ERR_ARGUMENT, "count is -2", tb_type_vector(-2, 1, 1, INT, false, out));
    REFUSED(TB_ERR_ARGUMENT, "blocklength is -3", tb_type_hvector(2, -3, 1, INT, false, out));
    REFUSED(TB_ERR_ARGUMENT, "blocklengths[1] is -4", tb_type_indexed(2, NARROW(1, -4), NARROW(0, 0), INT, false, out));
    REFUSED(TB_ERR_ARGUMENT, "count is -5", tb_type_hindexed(-5, NARROW(1), NARROW(0), INT, false, out));
    REFUSED(TB_ERR_ARGUMENT, "blocklength is -1", tb_type_indexed_block(1, -1, NARROW(0), INT, false, out));
    REFUSED(TB_ERR_ARGUMENT, "count is", tb_type_hindexed_block(1ll << 50, 1, NARROW(0), INT, false, out));
    REFUSED(TB_ERR_ARGUMENT, "blocklengths[0] is -1", tb_type_struct(2, NARROW(-1, 1), WIDE(0, 0), types, false, out));
    REFUSED(TB_ERR_ARGUMENT, "ndims is 0",
            tb_type_subarray(0, NARROW(1), NARROW(1), NARROW(0), TB_ORDER_C, INT, false, out));
    REFUSED(TB_ERR_ARGUMENT, "sizes[0] is 0",
            tb_type_subarray(1, NARROW(0), NARROW(1), NARROW(0), TB_ORDER_C, INT, false, out));
    REFUSED(TB_ERR_ARGUMENT, "subsizes[1] is 6",
            tb_type_subarray(2, NARROW(5, 5), NARROW(1, 6), NARROW(0, 0), TB_ORDER_C, INT, false, out));
    REFUSED(TB_ERR_ARGUMENT, "starts[0] is 3",
            tb_type_subarray(1, NARROW(5), NARROW(3), NARROW(3), TB_ORDER_C, INT, false, out));
    REFUSED(TB_ERR_ARGUMENT, "order is 7", tb_type_subarray(1, NARROW(5), NARROW(3), NARROW(0), 7, INT, false, out));
}

static void test_wrong_darrays(void **state)
{
#define DARRAY(size, rank, sizes, kinds, arguments, grid, order)                                                       \
    tb_type_darray(size, rank, 2, sizes, kinds, arguments, grid, order, INT, false, out)
    struct tb_numbers sizes = NARROW(10, 10), kinds = NARROW(17, 18), defaults = NARROW(19, 19), grid = NARROW(2, 2);
    REFUSED(TB_ERR_ARGUMENT, "size is 0", DARRAY(0, 0, sizes, kinds, defaults, grid, TB_ORDER_C));
    REFUSED(TB_ERR_ARGUMENT, "rank is 4", DARRAY(4, 4, sizes, kinds, defaults, grid, TB_ORDER_C));
    REFUSED(TB_ERR_ARGUMENT, "psizes", DARRAY(5, 4, sizes, kinds, defaults, grid, TB_ORDER_C));
    REFUSED(TB_ERR_ARGUMENT, "psizes", DARRAY(3, 0, sizes, kinds, defaults, grid, TB_ORDER_C));
    REFUSED(TB_ERR_ARGUMENT, "psizes[1] is 0", DARRAY(4, 0, sizes, kinds, defaults, NARROW(4, 0), TB_ORDER_C));
    REFUSED(TB_ERR_ARGUMENT, "gsizes[0] is -1", DARRAY(4, 0, NARROW(-1, 1), kinds, defaults, grid, TB_ORDER_C));
    REFUSED(TB_ERR_ARGUMENT, "distribs[1] is 20", DARRAY(4, 0, sizes, NARROW(17, 20), defaults, grid, TB_ORDER_C));
    REFUSED(TB_ERR_ARGUMENT, "psizes[0] is 2", DARRAY(4, 0, sizes, NARROW(16, 17), defaults, grid, TB_ORDER_C));
    REFUSED(TB_ERR_ARGUMENT, "dargs[0] is 0", DARRAY(4, 0, sizes, kinds, NARROW(0, 19), grid, TB_ORDER_C));
    REFUSED(TB_ERR_ARGUMENT, "dargs[0] is 4", DARRAY(4, 0, sizes, kinds, NARROW(4, 19), grid, TB_ORDER_C));
    REFUSED(TB_ERR_ARGUMENT, "order is 0", DARRAY(4, 0, sizes, kinds, defaults, grid, 0));
    /* The argument of a dimension that is not distributed means nothing. */
    struct tb_type *type;
    for (int32_t argument = -1; argument < 2; argument++) {
        assert_int_equal(tb_type_darray(2, 1, 2, NARROW(4, 6), NARROW(18, 16), NARROW(1, argument), NARROW(2, 1),
                                        TB_ORDER_C, INT, false, &type),
                         TB_OK);
        check_bounds(type, 48, 0, 96, 24, 72);
        tb_type_release(type);
    }
    /* A process may have nothing, and arguments may be huge. */
    assert_int_equal(tb_type_darray(4, 3, 1, WIDE(5), NARROW(17), NARROW(19), NARROW(4), TB_ORDER_C, INT, true, &type),
                     TB_OK);
    check_bounds(type, 0, 0, 20, 0, 0);
    tb_type_release(type);
    assert_int_equal(tb_type_darray(1 << 30, (1 << 30) - 1, 1, WIDE(1ll << 60), NARROW(18), NARROW(INT32_MAX),
                                    NARROW(1 << 30), TB_ORDER_C, &tb_type_byte, true, &type),
                     TB_OK);
    assert_int_equal(type->extent, 1ll << 60);
    tb_type_release(type);
}

static void test_overflow(void **state)
{
    int64_t huge = 1ll << 62;
    const struct tb_type *types[] = {INT, DOUBLE};
    REFUSED(TB_ERR_LIMIT, "64 bits", tb_type_contiguous(huge, INT, true, out));
    REFUSED(TB_ERR_LIMIT, "64 bits", tb_type_vector(huge, huge, 1, &tb_type_byte, true, out));
    REFUSED(TB_ERR_LIMIT, "64 bits", tb_type_vector(3, 1, huge, INT, true, out));
    REFUSED(TB_ERR_LIMIT, "64 bits", tb_type_hvector(3, 1, huge, INT, true, out));
    REFUSED(TB_ERR_LIMIT, "64 bits", tb_type_hvector(3, 1, -huge, INT, true, out));
    REFUSED(TB_ERR_LIMIT, "64 bits", tb_type_indexed(1, WIDE(1), WIDE(huge), INT, true, out));
    REFUSED(TB_ERR_LIMIT, "64 bits", tb_type_hindexed(2, WIDE(1, 1), WIDE(huge, -huge - 1), INT, true, out));
    REFUSED(TB_ERR_LIMIT, "64 bits", tb_type_hindexed(1, WIDE(1), WIDE(INT64_MAX - 2), INT, true, out));
    REFUSED(TB_ERR_LIMIT, "64 bits", tb_type_hindexed(2, WIDE(huge, huge), WIDE(0, 0), &tb_type_byte, true, out));
    REFUSED(TB_ERR_LIMIT, "64 bits", tb_type_hindexed_block(2, 1, WIDE(INT64_MIN, 0), INT, true, out));
    REFUSED(TB_ERR_LIMIT, "64 bits", tb_type_struct(2, WIDE(1, 1), WIDE(INT64_MAX - 4, 0), types, true, out));
    REFUSED(TB_ERR_LIMIT, "64 bits", tb_type_struct(2, WIDE(huge / 8, huge), WIDE(0, 0), types, true, out));
    REFUSED(TB_ERR_LIMIT, "64 bits", tb_type_resized(INT, INT64_MAX, 1, true, out));
    REFUSED(TB_ERR_LIMIT, "64 bits",
            tb_type_subarray(2, WIDE(huge, 2), WIDE(1, 1), WIDE(0, 0), TB_ORDER_C, INT, true, out));
    /* The same numbers do no harm where there is nothing. */
    struct tb_type *type;
    assert_int_equal(tb_type_vector(0, 5, INT64_MAX, INT, true, &type), TB_OK);
    tb_type_release(type);
    assert_int_equal(tb_type_vector(1, 5, INT64_MAX, INT, true, &type), TB_OK);
    check_bounds(type, 20, 0, 20, 0, 20);
    tb_type_release(type);
    assert_int_equal(tb_type_indexed(2, WIDE(0, 1), WIDE(INT64_MIN, 3), INT, true, &type), TB_OK);
    check_bounds(type, 4, 12, 4, 12, 4);
    tb_type_release(type);
    assert_int_equal(tb_type_hindexed(2, WIDE(1, 1), WIDE(INT64_MIN, 1 + INT64_MIN), &tb_type_byte, true, &type),
                     TB_OK);
    check_bounds(type, 2, INT64_MIN, 2, INT64_MIN, 2);
    tb_type_release(type);
}

/* ---- life -------------------------------------------------------------------------------------------------------- */

static void test_life(void **state)
{
    struct tb_type *child, *type, *dup;
    assert_ptr_equal(tb_type_hold(INT), INT);
    tb_type_release(INT);
    tb_type_release(NULL);
    tb_type_dup(INT, &type);
    check_envelope(type, TB_COMBINER_DUP, 0, 0, 0, 1);
    assert_true(type->committed);
    assert_int_equal(type->basic, TB_BASIC_INT);
    tb_type_release(type);
    tb_type_vector(100, 1, 2, INT, false, &child);
    tb_type_vector(10, 1, 3, child, false, &type);
    assert_int_equal(child->users, 2);
    tb_type_release(child); /* the user's; `type` still needs it */
    assert_int_equal(type->envelope->types[0]->users, 1);
    assert_false(type->committed);
    tb_type_dup(type, &dup);
    assert_false(dup->committed);
    tb_type_commit(type);
    tb_type_release(dup);
    tb_type_dup(type, &dup);
    assert_true(dup->committed);
    tb_type_hold(type);
    tb_type_release(type);
    tb_type_release(type);
    assert_int_equal(dup->layout->child->count, 100);
    tb_type_release(dup);
}

/* ---- elements ---------------------------------------------------------------------------------------------------- */

static void test_elements(void **state)
{
    struct tb_type *type, *nested;
    const struct tb_type *types[] = {INT, tb_type_predefined(0x22c), CHAR}; /* 4; 2 and 4; 1 1 1 */
    tb_type_struct(3, NARROW(1, 1, 3), WIDE(0, 8, 16), types, false, &type);
    const int64_t expected[] = {0, -1, -1, -1, 1, -1, 2, -1, -1, -1, 3, 4, 5};
    for (uint64_t i = 0; i < 3 * 13; i++)
        assert_int_equal(tb_type_elements_in(type, i),
                         expected[i % 13] < 0 ? -1 : (int64_t)(i / 13 * 6) + expected[i % 13]);
    tb_type_vector(5, 3, 7, type, true, &nested);
    assert_int_equal(nested->elements, 90);
    for (uint64_t i = 0; i < 40 * 13; i++)
        assert_int_equal(tb_type_elements_in(nested, i),
                         expected[i % 13] < 0 ? -1 : (int64_t)(i / 13 * 6) + expected[i % 13]);
    uint64_t bytes;
    assert_ptr_equal(tb_type_basic_at(nested, 13 * 20 + 10, &bytes), CHAR);
    assert_int_equal(bytes, 3);
    assert_ptr_equal(tb_type_basic_at(nested, 13 * 20, &bytes), INT);
    assert_int_equal(bytes, 4);
    assert_ptr_equal(tb_type_basic_at(INT, 8, &bytes), INT);
    assert_int_equal(bytes, UINT64_MAX);
    assert_ptr_equal(tb_type_only_basic(INT), INT);
    assert_null(tb_type_only_basic(nested));
    tb_type_release(type);
    tb_type_release(nested);
}

/* A struct of what is alike has one basic type, whatever else it has nothing of. */
static void test_only_basic(void **state)
{
    struct tb_type *type, *nothing, *nested;
    tb_type_contiguous(0, CHAR, true, &nothing);
    const struct tb_type *types[] = {nothing, INT, CHAR, INT};
    tb_type_struct(4, NARROW(5, 1, 0, 3), WIDE(0, 8, 16, 24), types, false, &type);
    assert_ptr_equal(tb_type_only_basic(type), INT);
    tb_type_vector(5, 3, 7, type, true, &nested);
    assert_ptr_equal(tb_type_only_basic(nested), INT);
    tb_type_release(type);
    tb_type_release(nothing);
    tb_type_release(nested);
}

/* ---- kinds ------------------------------------------------------------------------------------------------------- */

/* `at` is where the call has put the type. */
static void check_kind(int code, const struct tb_type **at, uint64_t size, enum tb_basic basic)
{
    const struct tb_type *type = *at;
    assert_int_equal(code, TB_OK);
    assert_int_equal(type->size, size);
    assert_int_equal(type->basic, basic);
    assert_true(type->committed);
    tb_type_release(type); /* does nothing */
}

static void test_kinds(void **state)
{
    const struct tb_type *type = NULL, *again = NULL;
    check_kind(tb_type_f90_real(6, 37, &type), &type, 4, TB_BASIC_FLOAT);
    assert_int_equal(tb_type_envelope(type)->combiner, TB_COMBINER_F90_REAL);
    assert_int_equal(tb_type_envelope(type)->integer_count, 2);
    assert_int_equal(tb_type_envelope(type)->integers[1], 37);
    check_kind(tb_type_f90_real(6, 37, &again), &again, 4, TB_BASIC_FLOAT);
    assert_ptr_equal(type, again);
    check_kind(tb_type_f90_real(5, 37, &again), &again, 4, TB_BASIC_FLOAT);
    assert_ptr_not_equal(type, again);
    check_kind(tb_type_f90_real(7, TB_PRECISION_UNDEFINED, &type), &type, 8, TB_BASIC_FLOAT);
    check_kind(tb_type_f90_real(TB_PRECISION_UNDEFINED, 38, &type), &type, 8, TB_BASIC_FLOAT);
    check_kind(tb_type_f90_real(15, 308, &type), &type, 16, TB_BASIC_FLOAT);
    check_kind(tb_type_f90_real(33, 4931, &type), &type, 16, TB_BASIC_FLOAT);
    check_kind(tb_type_f90_complex(15, 307, &type), &type, 16, TB_BASIC_COMPLEX);
    check_kind(tb_type_f90_complex(6, 37, &type), &type, 8, TB_BASIC_COMPLEX);
    check_kind(tb_type_f90_complex(30, 37, &type), &type, 32, TB_BASIC_COMPLEX);
    static const struct {
        int range;
        uint64_t size;
    } integers[] = {{1, 1}, {2, 1}, {3, 2}, {4, 2}, {5, 4}, {9, 4}, {10, 8}, {18, 8}, {19, 16}, {38, 16}};
    for (size_t i = 0; i < sizeof integers / sizeof integers[0]; i++)
        check_kind(tb_type_f90_integer(integers[i].range, &type), &type, integers[i].size, TB_BASIC_INT);
    assert_int_equal(tb_type_envelope(type)->combiner, TB_COMBINER_F90_INTEGER);
    assert_int_equal(tb_type_envelope(type)->integer_count, 1);
    assert_int_equal(tb_type_envelope(type)->integers[0], 38);
    assert_int_equal(tb_type_f90_integer(39, &type), TB_ERR_ARGUMENT);
    assert_int_equal(tb_type_f90_integer(-1, &type), TB_ERR_ARGUMENT);
    assert_int_equal(tb_type_f90_real(34, 10, &type), TB_ERR_ARGUMENT);
    assert_int_equal(tb_type_f90_complex(3, 5000, &type), TB_ERR_ARGUMENT);
    assert_int_equal(tb_type_f90_real(TB_PRECISION_UNDEFINED, TB_PRECISION_UNDEFINED, &type), TB_ERR_ARGUMENT);
    assert_int_equal(tb_type_f90_real(-3, 5, &type), TB_ERR_ARGUMENT);
    assert_non_null(strstr(tb_error_story(), "p is -3"));
}

static void test_matches(void **state)
{
    static const struct {
        enum tb_type_class class;
        int size;
        const char *name;
    } rows[] = {{TB_CLASS_INTEGER, 1, "MPI_INTEGER1"},   {TB_CLASS_INTEGER, 8, "MPI_INTEGER8"},
                {TB_CLASS_INTEGER, 16, "MPI_INTEGER16"}, {TB_CLASS_REAL, 2, "MPI_REAL2"},
                {TB_CLASS_REAL, 4, "MPI_REAL4"},         {TB_CLASS_REAL, 8, "MPI_REAL8"},
                {TB_CLASS_COMPLEX, 8, "MPI_COMPLEX8"},   {TB_CLASS_COMPLEX, 32, "MPI_COMPLEX32"}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        assert_string_equal(tb_type_match_size(rows[i].class, rows[i].size)->name, rows[i].name);
    assert_null(tb_type_match_size(TB_CLASS_REAL, 3));
    assert_null(tb_type_match_size(TB_CLASS_COMPLEX, -8));
    assert_null(tb_type_match_size((enum tb_type_class)0, 4));
    assert_string_equal(tb_type_value_index(DOUBLE, INT)->name, "MPI_DOUBLE_INT");
    assert_null(tb_type_value_index(INT, DOUBLE));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bounds),          cmocka_unit_test(test_long_double),
        cmocka_unit_test(test_empty),           cmocka_unit_test(test_envelopes),
        cmocka_unit_test(test_wrong_arguments), cmocka_unit_test(test_wrong_darrays),
        cmocka_unit_test(test_overflow),        cmocka_unit_test(test_life),
        cmocka_unit_test(test_elements),        cmocka_unit_test(test_only_basic),
        cmocka_unit_test(test_kinds),           cmocka_unit_test(test_matches),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
