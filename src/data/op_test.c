/* Reduction operations: every one on every type against a plain loop, and what is forbidden. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "data/data.h"

#include <float.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The standard's rules a second time, and logical operations on multi-language types, which it does not have: a letter
 * for each group of types, and for each operation the groups it is for.
 * C integer, Fortran integer, real, logical, complex (X), byte, multi-language, pair, text (T, a number unless
 * `strict`), other. */
static const struct {
    uintptr_t handle;
    const char *name, *groups;
    bool commutative, one_sided;
} rules[] = {
    {0x21, "MPI_SUM", "CFRXMT", true, false},         {0x22, "MPI_MIN", "CFRMT", true, false},
    {0x23, "MPI_MAX", "CFRMT", true, false},          {0x24, "MPI_PROD", "CFRXMT", true, false},
    {0x28, "MPI_BAND", "CFBMT", true, false},         {0x29, "MPI_BOR", "CFBMT", true, false},
    {0x2a, "MPI_BXOR", "CFBMT", true, false},         {0x30, "MPI_LAND", "CLMT", true, false},
    {0x31, "MPI_LOR", "CLMT", true, false},           {0x32, "MPI_LXOR", "CLMT", true, false},
    {0x38, "MPI_MINLOC", "P", true, false},           {0x39, "MPI_MAXLOC", "P", true, false},
    {0x3c, "MPI_REPLACE", "CFRLXBMPOT", false, true}, {0x3d, "MPI_NO_OP", "CFRLXBMPOT", false, true},
};
#define RULES (sizeof rules / sizeof rules[0])

#ifdef __FLT16_MAX__
#define HAVE_HALF true
typedef _Float16 half;
#else
#define HAVE_HALF false
typedef float half; /* never reached */
#endif

#if LDBL_MANT_DIG == 113
#define HAVE_QUAD true
typedef long double quad;
#elif defined __SIZEOF_FLOAT128__
#define HAVE_QUAD true
typedef __float128 quad;
#else
#define HAVE_QUAD false
typedef long double quad;
#endif

/* What an item is made of. */
enum kind { SIGNED, UNSIGNED, HALF, FLOAT, DOUBLE, LONG, QUAD };

static const struct subject {
    uintptr_t handle;
    char group;
    enum kind kind;  /* of a pair: of its value */
    enum kind index; /* of a pair */
} subjects[] = {
    {0x201, 'M', SIGNED, 0},
    {0x202, 'M', SIGNED, 0},
    {0x203, 'M', SIGNED, 0},
    {0x207, 'O', UNSIGNED, 0},
    {0x208, 'C', SIGNED, 0},
    {0x209, 'C', SIGNED, 0},
    {0x20a, 'C', SIGNED, 0},
    {0x20b, 'C', SIGNED, 0},
    {0x20c, 'C', UNSIGNED, 0},
    {0x20d, 'C', UNSIGNED, 0},
    {0x20e, 'C', UNSIGNED, 0},
    {0x20f, 'C', UNSIGNED, 0},
    {0x210, 'R', FLOAT, 0},
    {0x212, 'X', FLOAT, 0},
    {0x213, 'X', FLOAT, 0},
    {0x214, 'R', DOUBLE, 0},
    {0x216, 'X', DOUBLE, 0},
    {0x217, 'X', DOUBLE, 0},
    {0x218, 'L', SIGNED, 0},
    {0x219, 'F', SIGNED, 0},
    {0x21a, 'R', FLOAT, 0},
    {0x21b, 'X', FLOAT, 0},
    {0x21c, 'R', DOUBLE, 0},
    {0x21d, 'X', DOUBLE, 0},
    {0x21e, 'O', UNSIGNED, 0},
    {0x220, 'R', LONG, 0},
    {0x224, 'X', LONG, 0},
    {0x225, 'X', LONG, 0},
    {0x228, 'P', FLOAT, SIGNED},
    {0x229, 'P', DOUBLE, SIGNED},
    {0x22a, 'P', SIGNED, SIGNED},
    {0x22b, 'P', SIGNED, SIGNED},
    {0x22c, 'P', SIGNED, SIGNED},
    {0x22d, 'P', LONG, SIGNED},
    {0x230, 'P', FLOAT, FLOAT},
    {0x231, 'P', DOUBLE, DOUBLE},
    {0x232, 'P', SIGNED, SIGNED},
    {0x238, 'L', UNSIGNED, 0},
    {0x239, 'L', UNSIGNED, 0},
    {0x23c, 'O', SIGNED, 0},
    {0x240, 'C', SIGNED, 0},
    {0x241, 'C', UNSIGNED, 0},
    {0x243, 'T', CHAR_MIN < 0 ? SIGNED : UNSIGNED, 0},
    {0x244, 'C', SIGNED, 0},
    {0x245, 'C', UNSIGNED, 0},
    {0x247, 'B', UNSIGNED, 0},
    {0x248, 'C', SIGNED, 0},
    {0x249, 'C', UNSIGNED, 0},
    {0x250, 'C', SIGNED, 0},
    {0x251, 'C', UNSIGNED, 0},
    {0x258, 'C', SIGNED, 0},
    {0x259, 'C', UNSIGNED, 0},
    {0x2c0, 'L', SIGNED, 0},
    {0x2c1, 'F', SIGNED, 0},
    {0x2c8, 'L', SIGNED, 0},
    {0x2c9, 'F', SIGNED, 0},
    {0x2ca, 'R', HALF, 0},
    {0x2d0, 'L', SIGNED, 0},
    {0x2d1, 'F', SIGNED, 0},
    {0x2d2, 'R', FLOAT, 0},
    {0x2d3, 'X', HALF, 0},
    {0x2d8, 'L', SIGNED, 0},
    {0x2d9, 'F', SIGNED, 0},
    {0x2da, 'R', DOUBLE, 0},
    {0x2db, 'X', FLOAT, 0},
    {0x2e0, 'L', SIGNED, 0},
    {0x2e1, 'F', SIGNED, 0},
    {0x2e2, 'R', QUAD, 0},
    {0x2e3, 'X', DOUBLE, 0},
    {0x2eb, 'X', QUAD, 0},
};
#define SUBJECTS (sizeof subjects / sizeof subjects[0])

static bool exists(enum kind kind)
{
    return (kind != HALF || HAVE_HALF) && (kind != QUAD || HAVE_QUAD);
}

static bool has(const char *groups, char group)
{
    return strchr(groups, group) != NULL;
}

/* ---- plain arithmetic on one number ------------------------------------------------------------------------------ */

static __int128 load_integer(const void *from, enum kind kind, size_t size)
{
    __int128 value = 0;
    memcpy(&value, from, size);
    unsigned unused = 128 - 8 * (unsigned)size;
    if (kind == SIGNED)
        return (__int128)((unsigned __int128)value << unused) >> unused;
    return value;
}

static void integer(uintptr_t op, enum kind kind, size_t size, const void *first, const void *second, void *out)
{
    __int128 x = load_integer(first, kind, size), y = load_integer(second, kind, size), z = 0;
    unsigned __int128 a = (unsigned __int128)x, b = (unsigned __int128)y;
    switch (op) {
    case 0x21:
        z = (__int128)(a + b);
        break;
    case 0x22:
        z = x < y ? x : y;
        break;
    case 0x23:
        z = x < y ? y : x;
        break;
    case 0x24:
        z = (__int128)(a * b);
        break;
    case 0x28:
        z = x & y;
        break;
    case 0x29:
        z = x | y;
        break;
    case 0x2a:
        z = x ^ y;
        break;
    case 0x30:
        z = x && y;
        break;
    case 0x31:
        z = x || y;
        break;
    case 0x32:
        z = !x != !y;
        break;
    default:
        fail();
    }
    memcpy(out, &z, size);
}

/* volatile: two operations must not become one. */
#define FLOATING(type)                                                                                                 \
    static void type##_number(uintptr_t op, const void *first, const void *second, void *out)                          \
    {                                                                                                                  \
        volatile type x, y, z;                                                                                         \
        memcpy((void *)&x, first, sizeof x);                                                                           \
        memcpy((void *)&y, second, sizeof y);                                                                          \
        z = op == 0x21 ? x + y : op == 0x24 ? x * y : op == 0x22 ? (x < y ? x : y) : (x > y ? x : y);                  \
        memcpy(out, (void *)&z, sizeof z);                                                                             \
    }                                                                                                                  \
    static int type##_compare(const void *first, const void *second)                                                   \
    {                                                                                                                  \
        type x, y;                                                                                                     \
        memcpy(&x, first, sizeof x);                                                                                   \
        memcpy(&y, second, sizeof y);                                                                                  \
        return x < y ? -1 : x > y ? 1 : x == y ? 0 : 2;                                                                \
    }                                                                                                                  \
    static void type##_set(void *to, double value)                                                                     \
    {                                                                                                                  \
        memset(to, 0, sizeof(type));                                                                                   \
        memcpy(to, &(type){(type)value}, sizeof(type));                                                                \
    }                                                                                                                  \
    static double type##_get(const void *from)                                                                         \
    {                                                                                                                  \
        type x;                                                                                                        \
        memcpy(&x, from, sizeof x);                                                                                    \
        return (double)x;                                                                                              \
    }
typedef long double extended;
FLOATING(half)
FLOATING(float)
FLOATING(double)
FLOATING(extended)
FLOATING(quad)

static const struct {
    void (*number)(uintptr_t op, const void *first, const void *second, void *out);
    int (*compare)(const void *first, const void *second); /* -1, 0, 1; 2 if one is a NaN */
    void (*set)(void *to, double value);
    double (*get)(const void *from);
    size_t bytes; /* that carry the value */
} floating[] = {
    [HALF] = {half_number, half_compare, half_set, half_get, 2},
    [FLOAT] = {float_number, float_compare, float_set, float_get, 4},
    [DOUBLE] = {double_number, double_compare, double_set, double_get, 8},
    [LONG] = {extended_number, extended_compare, extended_set, extended_get, LDBL_MANT_DIG == 64 ? 10 : 16},
    [QUAD] = {quad_number, quad_compare, quad_set, quad_get, 16},
};

static int compare(enum kind kind, size_t size, const void *first, const void *second)
{
    if (kind >= HALF)
        return floating[kind].compare(first, second);
    __int128 x = load_integer(first, kind, size), y = load_integer(second, kind, size);
    return x < y ? -1 : x > y;
}

/* ---- plain arithmetic on one item -------------------------------------------------------------------------------- */

static size_t index_size(const struct subject *s)
{
    return s->index == DOUBLE ? 8 : 4;
}

static size_t index_offset(const struct subject *s, const struct tb_type *type)
{
    return (size_t)type->true_extent - index_size(s);
}

static size_t value_size(const struct subject *s, const struct tb_type *type)
{
    return s->group == 'P' ? type->size - index_size(s) : s->group == 'X' ? type->size / 2 : type->size;
}

static void copy_item(const struct subject *s, const struct tb_type *type, const uint8_t *from, uint8_t *out)
{
    if (s->group == 'P') {
        memcpy(out, from, value_size(s, type));
        memcpy(out + index_offset(s, type), from + index_offset(s, type), index_size(s));
    } else {
        memcpy(out, from, type->size);
    }
}

/* The textbook's, for finite numbers. */
static void complex_product(enum kind kind, const uint8_t *first, const uint8_t *second, uint8_t *out)
{
    enum kind wide = kind == HALF ? FLOAT : kind;
    uint8_t x[2][16], y[2][16], product[4][16], result[16], minus[16];
    size_t size = kind == LONG ? sizeof(long double) : floating[kind].bytes;
    for (int i = 0; i < 2; i++) {
        memcpy(x[i], first + i * size, size);
        memcpy(y[i], second + i * size, size);
        if (kind == HALF) {
            float_set(x[i], half_get(first + i * size));
            float_set(y[i], half_get(second + i * size));
        }
    }
    floating[wide].set(minus, -1);
    floating[wide].number(0x24, x[0], y[0], product[0]);
    floating[wide].number(0x24, x[1], y[1], product[1]);
    floating[wide].number(0x24, product[1], minus, product[1]);
    floating[wide].number(0x24, x[0], y[1], product[2]);
    floating[wide].number(0x24, x[1], y[0], product[3]);
    for (int i = 0; i < 2; i++) {
        floating[wide].number(0x21, product[2 * i], product[2 * i + 1], result);
        if (kind == HALF)
            half_set(out + i * size, float_get(result));
        else
            memcpy(out + i * size, result, size);
    }
}

static void plain(uintptr_t op, const struct subject *s, const struct tb_type *type, const uint8_t *first,
                  const uint8_t *second, uint8_t *out)
{
    size_t size = value_size(s, type);
    if (op >= 0x3c) {
        copy_item(s, type, op == 0x3c ? first : second, out);
    } else if (s->group == 'P') {
        size_t at = index_offset(s, type);
        int order = compare(s->kind, size, first, second);
        bool lower = compare(s->index, index_size(s), first + at, second + at) < 0;
        bool wins = order == (op == 0x38 ? -1 : 1) || (order == 0 && lower);
        copy_item(s, type, wins ? first : second, out);
    } else if (s->kind < HALF) {
        integer(op, s->kind, size, first, second, out);
    } else if (s->group == 'X' && op == 0x24) {
        complex_product(s->kind, first, second, out);
    } else {
        for (size_t part = 0; part < type->size; part += size)
            floating[s->kind].number(op, first + part, second + part, out + part);
    }
}

/* ---- random items ------------------------------------------------------------------------------------------------ */

/* Few values, so that equal ones and every special one come up. A complex number is finite: see test_infinite. */
static void random_value(struct tb_random *random, const struct subject *s, enum kind kind, size_t size, uint8_t *to)
{
    static const double special[] = {0.0, -0.0, NAN, INFINITY, -INFINITY, 1.5, -1.5, 1000};
    if (kind < HALF) {
        __int128 value = (__int128)tb_random_below(random, 5) - 2;
        if (tb_random_below(random, 2) == 0)
            value = (__int128)(((unsigned __int128)tb_random_next(random) << 64) | tb_random_next(random));
        memcpy(to, &value, size);
    } else if (s->group != 'X' && tb_random_below(random, 4) == 0) {
        floating[kind].set(to, special[tb_random_below(random, sizeof special / sizeof special[0])]);
    } else if (s->group == 'P') {
        floating[kind].set(to, (double)tb_random_below(random, 5));
    } else {
        floating[kind].set(to, (tb_random_unit(random) - 0.5) * 64);
    }
}

static void random_items(struct tb_random *random, const struct subject *s, const struct tb_type *type, uint8_t *to,
                         uint64_t count)
{
    size_t size = value_size(s, type);
    for (uint64_t i = 0; i < count; i++, to += type->extent) {
        random_value(random, s, s->kind, size, to);
        if (s->group == 'X')
            random_value(random, s, s->kind, size, to + size);
        if (s->group == 'P')
            random_value(random, s, s->index, index_size(s), to + index_offset(s, type));
    }
}

static bool same_value(enum kind kind, size_t size, const uint8_t *x, const uint8_t *y)
{
    if (kind >= HALF && isnan(floating[kind].get(x)))
        return isnan(floating[kind].get(y));
    return memcmp(x, y, kind >= HALF ? floating[kind].bytes : size) == 0;
}

static bool same_item(const struct subject *s, const struct tb_type *type, const uint8_t *x, const uint8_t *y)
{
    size_t size = value_size(s, type);
    if (s->group == 'X')
        return same_value(s->kind, size, x, y) && same_value(s->kind, size, x + size, y + size);
    if (!same_value(s->kind, size, x, y))
        return false;
    if (s->group != 'P')
        return true;
    /* Also what lies between the members and behind them. */
    size_t at = index_offset(s, type), end = at + index_size(s);
    return same_value(s->index, index_size(s), x + at, y + at) && memcmp(x + size, y + size, at - size) == 0 &&
           memcmp(x + end, y + end, (size_t)type->extent - end) == 0;
}

/* ---- every operation on every type ------------------------------------------------------------------------------- */

#define LONGEST 1000
#define ROOM    ((LONGEST + 4) * 32 + 64)

struct bench {
    struct tb_random random;
    uint8_t memory[4][ROOM]; /* in, inout, out, untouched */
    uint8_t before[2][ROOM];
    uint8_t expected[ROOM];
};

static void try_one(struct bench *b, uintptr_t op, const struct subject *s, uint64_t count, size_t offset)
{
    const struct tb_op *operation = tb_op_predefined(op);
    const struct tb_type *type = tb_type_predefined(s->handle);
    uint8_t *in = b->memory[0] + offset, *inout = b->memory[1] + offset, *out = b->memory[2] + offset;
    size_t bytes = count * (size_t)type->extent;
    memset(b->memory, 0xa5, sizeof b->memory);
    random_items(&b->random, s, type, in, count + 1);
    random_items(&b->random, s, type, inout, count + 1);
    memcpy(b->before[0], b->memory[0], ROOM);
    memcpy(b->before[1], b->memory[1], ROOM);
    memset(b->expected, 0xa5, ROOM);
    for (size_t i = 0; i < bytes; i += (size_t)type->extent)
        plain(op, s, type, in + i, inout + i, b->expected + i);

    tb_op_loop3 *kernel3 = tb_op_kernel3(operation, type);
    assert_non_null(kernel3);
    kernel3(in, inout, out, count);
    assert_memory_equal(b->memory[0], b->before[0], ROOM);
    assert_memory_equal(b->memory[1], b->before[1], ROOM);
    assert_non_null(tb_op_kernel(operation, type));
    assert_int_equal(tb_op_check(operation, type), 0);
    assert_int_equal(tb_op_apply(operation, in, inout, count, type), 0);
    assert_memory_equal(b->memory[0], b->before[0], ROOM);
    for (size_t i = 0; i < bytes; i += (size_t)type->extent) {
        if (!same_item(s, type, out + i, b->expected + i) || !same_item(s, type, inout + i, b->expected + i))
            fail_msg("%s on %s: item %zu of %zu, offset %zu", operation->name, type->name, i / (size_t)type->extent,
                     (size_t)count, offset);
    }
    /* Nothing is written beside the items. */
    assert_memory_equal(inout + bytes, b->before[1] + offset + bytes, ROOM - offset - bytes);
    assert_memory_equal(b->memory[1], b->before[1], offset);
    assert_memory_equal(out + bytes, b->memory[3], ROOM - offset - bytes);
    assert_memory_equal(b->memory[2], b->memory[3], offset);
}

static void test_all(void **state)
{
    static const uint64_t counts[] = {0, 1, 2, 3, 7, 8, 33, LONGEST};
    struct bench *b = malloc(sizeof *b);
    assert_non_null(b);
    tb_random_seed(&b->random, 3);
    size_t tried = 0;
    for (size_t r = 0; r < RULES; r++) {
        for (size_t i = 0; i < SUBJECTS; i++) {
            const struct subject *s = &subjects[i];
            if (!has(rules[r].groups, s->group) || (!exists(s->kind) && !rules[r].one_sided))
                continue;
            for (size_t c = 0; c < sizeof counts / sizeof counts[0]; c++) {
                size_t alignment = tb_type_predefined(s->handle)->alignment;
                try_one(b, rules[r].handle, s, counts[c], 0);
                try_one(b, rules[r].handle, s, counts[c], alignment);
                try_one(b, rules[r].handle, s, counts[c], 1);
            }
            tried++;
        }
    }
    assert_true(tried > 400);
    free(b);
}

/* Whatever is not allowed is refused, with both names; whatever is allowed but has no numbers here, too. */
static void test_forbidden(void **state)
{
    size_t forbidden = 0, seen = 0;
    for (uintptr_t handle = 0x200; handle < 0x300; handle++)
        seen += tb_type_predefined(handle) != NULL;
    assert_int_equal(seen, SUBJECTS);
    for (size_t r = 0; r < RULES; r++) {
        const struct tb_op *op = tb_op_predefined(rules[r].handle);
        for (size_t i = 0; i < SUBJECTS; i++) {
            const struct subject *s = &subjects[i];
            const struct tb_type *type = tb_type_predefined(s->handle);
            bool allowed = has(rules[r].groups, s->group), possible = exists(s->kind) || rules[r].one_sided;
            if (allowed && possible)
                continue;
            int code = allowed ? TB_ERR_UNSUPPORTED : TB_ERR_ARGUMENT;
            uint8_t in[32] = {1}, inout[32] = {2}, same[32] = {2};
            assert_int_equal(tb_op_check(op, type), code);
            assert_null(tb_op_kernel(op, type));
            assert_null(tb_op_kernel3(op, type));
            assert_int_equal(tb_op_apply(op, in, inout, 1, type), code);
            assert_memory_equal(inout, same, sizeof same);
            assert_non_null(strstr(tb_error_story(), op->name));
            assert_non_null(strstr(tb_error_story(), type->name));
            forbidden++;
        }
    }
    assert_true(forbidden > 400);
}

/* With the parameter, text is for nothing but one-sided operations. */
static void test_strict(void **state)
{
    const struct tb_type *type = tb_type_predefined(0x243);
    tb_param.strict = true;
    for (size_t r = 0; r < RULES; r++) {
        const struct tb_op *op = tb_op_predefined(rules[r].handle);
        assert_int_equal(tb_op_check(op, type), rules[r].one_sided ? TB_OK : TB_ERR_ARGUMENT);
        assert_int_equal(tb_op_orders_chars(op, type), op->code == TB_OP_MIN || op->code == TB_OP_MAX);
        assert_false(tb_op_orders_chars(op, tb_type_predefined(0x244)));
        if (!rules[r].one_sided && has(rules[r].groups, 'T'))
            assert_non_null(strstr(tb_error_story(), "MPI_SIGNED_CHAR"));
        assert_int_equal(tb_op_check(op, tb_type_predefined(0x240)),
                         has(rules[r].groups, 'C') ? TB_OK : TB_ERR_ARGUMENT);
    }
    tb_param.strict = false;
}

static void test_table(void **state)
{
    for (size_t r = 0; r < RULES; r++) {
        const struct tb_op *op = tb_op_predefined(rules[r].handle);
        assert_non_null(op);
        assert_string_equal(op->name, rules[r].name);
        assert_int_equal(op->commutative, rules[r].commutative);
        assert_int_equal(op->one_sided, rules[r].one_sided);
        tb_op_drop(op); /* lives forever */
        tb_op_drop(op);
        tb_op_hold(op);
    }
    size_t found = 0;
    for (uintptr_t handle = 0; handle < 0x1000; handle++)
        found += tb_op_predefined(handle) != NULL;
    assert_int_equal(found, RULES);
    assert_null(tb_op_predefined(0x20)); /* MPI_OP_NULL */
    assert_null(tb_op_predefined(UINTPTR_MAX));
}

/* A derived type is refused, one that stands for a predefined type (Fortran's kinds) is not. */
static void test_derived(void **state)
{
    struct tb_type type = *tb_type_predefined(0x2da);
    double in = 2, inout = 3;
    type.handle = 0x123456;
    assert_int_equal(tb_op_apply(tb_op_predefined(0x21), &in, &inout, 1, &type), 0);
    assert_true(inout == 5);
    type.code = 0;
    assert_int_equal(tb_op_apply(tb_op_predefined(0x21), &in, &inout, 1, &type), TB_ERR_ARGUMENT);
    assert_non_null(strstr(tb_error_story(), "derived"));
    assert_int_equal(tb_op_check(tb_op_predefined(0x3c), &type), TB_ERR_ARGUMENT);
    assert_true(inout == 5);
}

/* C's rules for products with infinities: one does not turn into two NaN. */
static void test_infinite(void **state)
{
    static const uintptr_t handles[] = {0x212, 0x216, 0x224};
    static const enum kind kinds[] = {FLOAT, DOUBLE, LONG};
    for (int k = 0; k < 3; k++) {
        const struct tb_type *type = tb_type_predefined(handles[k]);
        uint8_t in[32], inout[32], out[32];
        size_t size = type->size / 2;
        floating[kinds[k]].set(in, INFINITY);
        floating[kinds[k]].set(in + size, INFINITY);
        floating[kinds[k]].set(inout, 1);
        floating[kinds[k]].set(inout + size, 0);
        tb_op_kernel3(tb_op_predefined(0x24), type)(in, inout, out, 1);
        assert_true(isinf(floating[kinds[k]].get(out)) || isinf(floating[kinds[k]].get(out + size)));
        tb_op_kernel(tb_op_predefined(0x24), type)(in, inout, 1);
        assert_true(isinf(floating[kinds[k]].get(inout)) || isinf(floating[kinds[k]].get(inout + size)));
    }
}

/* Which operand stays when there is nothing to choose by value. */
static void test_ties(void **state)
{
    double in[] = {NAN, 1, -0.0, 0.0}, inout[] = {1, NAN, 0.0, -0.0};
    assert_int_equal(tb_op_apply(tb_op_predefined(0x22), in, inout, 4, tb_type_predefined(0x214)), 0);
    assert_true(inout[0] == 1 && isnan(inout[1]));
    assert_true(!signbit(inout[2]) && signbit(inout[3]));
    struct {
        double value;
        int index;
    } first[] = {{5, 9}, {5, -1}, {NAN, 0}, {-0.0, 1}}, second[] = {{5, 3}, {5, 4}, {7, 8}, {0.0, 2}};
    assert_int_equal(tb_op_apply(tb_op_predefined(0x39), first, second, 4, tb_type_predefined(0x229)), 0);
    assert_true(second[0].index == 3 && second[1].index == -1 && second[2].index == 8 && second[3].index == 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_table),     cmocka_unit_test(test_strict), cmocka_unit_test(test_all),
        cmocka_unit_test(test_forbidden), cmocka_unit_test(test_ties),   cmocka_unit_test(test_infinite),
        cmocka_unit_test(test_derived),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
