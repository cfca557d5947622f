/* What the windows of the stress test are filled with: a row for each kind of element that accumulates allow, the
 * operations that the standard has for it (MPI-5.0, 6.9.2 to 6.9.4, 12.3.4), and what these do. Nothing of this is the
 * library's: a value is one or two whole numbers of 64 bits, whatever the element is, and only how it lies in memory is
 * the element's own. So padding is no part of a value. */
#ifndef TB_TESTS_MPI_RMA_ELEMENT_H
#define TB_TESTS_MPI_RMA_ELEMENT_H

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* ---- numbers ----------------------------------------------------------------------------------------------------- */

#define NUMBER_INTEGERS(X)                                                                                             \
    X(I8, int8_t)                                                                                                      \
    X(U8, uint8_t)                                                                                                     \
    X(I16, int16_t) X(U16, uint16_t) X(I32, int32_t) X(U32, uint32_t) X(I64, int64_t) X(U64, uint64_t)
#define NUMBER_REALS(X) X(FLOAT, float) X(DOUBLE, double) X(LONG_DOUBLE, long double)

#define NUMBER_NAME(name, type) NUMBER_##name,
enum number { NUMBER_INTEGERS(NUMBER_NAME) NUMBER_REALS(NUMBER_NAME) };

#define NUMBER_NONE INT64_MIN /* of a real number that is not whole: no operation gives such */

static int64_t number_whole(long double real)
{
    bool fits = real > -0x1p62L && real < 0x1p62L; /* nor is a NaN */
    return fits && (long double)(int64_t)real == real ? (int64_t)real : NUMBER_NONE;
}

static int64_t number_load(enum number kind, const void *at)
{
#define LOAD(name, type)                                                                                               \
    case NUMBER_##name: {                                                                                              \
        type value;                                                                                                    \
        memcpy(&value, at, sizeof value);                                                                              \
        return (int64_t)value;                                                                                         \
    }
#define LOAD_REAL(name, type)                                                                                          \
    case NUMBER_##name: {                                                                                              \
        type value;                                                                                                    \
        memcpy(&value, at, sizeof value);                                                                              \
        return number_whole(value);                                                                                    \
    }
    switch (kind) {
        NUMBER_INTEGERS(LOAD)
        NUMBER_REALS(LOAD_REAL)
    }
    return NUMBER_NONE;
#undef LOAD
#undef LOAD_REAL
}

/* What does not fit into an integer is cut. */
static void number_store(enum number kind, void *at, int64_t number)
{
#define STORE(name, type)                                                                                              \
    case NUMBER_##name: {                                                                                              \
        type value = (type)number;                                                                                     \
        memcpy(at, &value, sizeof value);                                                                              \
        return;                                                                                                        \
    }
    switch (kind) {
        NUMBER_INTEGERS(STORE)
        NUMBER_REALS(STORE)
    }
#undef STORE
}

static size_t number_bytes(enum number kind)
{
#define BYTES(name, type) [NUMBER_##name] = sizeof(type),
    static const size_t ALL[] = {NUMBER_INTEGERS(BYTES) NUMBER_REALS(BYTES)};
#undef BYTES
    return ALL[kind];
}

/* ---- elements ---------------------------------------------------------------------------------------------------- */

/* The standard's groups of types. */
enum element_group {
    ELEMENT_INTEGER = 1,
    ELEMENT_MULTI_LANGUAGE = 2,
    ELEMENT_BYTE = 4,
    ELEMENT_TRUTH = 8,
    ELEMENT_REAL = 16,
    ELEMENT_COMPLEX = 32,
    ELEMENT_PAIR = 64
};

struct element {
    MPI_Datatype type;
    const char *name;
    enum element_group group;
    int bytes, numbers; /* from one to the next; one or two */
    enum number kinds[2];
    int second_at;
};

#define ELEMENT_PAIR_STRUCT(name, c)                                                                                   \
    struct name {                                                                                                      \
        c value;                                                                                                       \
        int index;                                                                                                     \
    };
ELEMENT_PAIR_STRUCT(element_2int, int)
ELEMENT_PAIR_STRUCT(element_short_int, short)
ELEMENT_PAIR_STRUCT(element_long_int, long)
ELEMENT_PAIR_STRUCT(element_float_int, float)
ELEMENT_PAIR_STRUCT(element_double_int, double)
ELEMENT_PAIR_STRUCT(element_long_double_int, long double)

#define SIGNED_OF(c) (sizeof(c) == 8 ? NUMBER_I64 : sizeof(c) == 4 ? NUMBER_I32 : NUMBER_I16)
#define ONE(type, group, c, kind)                                                                                      \
    {                                                                                                                  \
        type, #type, ELEMENT_##group, sizeof(c), 1, {kind}, 0                                                          \
    }
#define TWO(type, c, kind)                                                                                             \
    {                                                                                                                  \
        type, #type, ELEMENT_COMPLEX, 2 * sizeof(c), 2, {kind, kind}, sizeof(c)                                        \
    }
#define PAIR(type, c, kind)                                                                                            \
    {                                                                                                                  \
        type, #type, ELEMENT_PAIR, sizeof(struct c), 2, {kind, SIGNED_OF(int)}, offsetof(struct c, index)              \
    }

static const struct element ELEMENTS[] = {
    ONE(MPI_INT8_T, INTEGER, int8_t, NUMBER_I8),
    ONE(MPI_UINT8_T, INTEGER, uint8_t, NUMBER_U8),
    ONE(MPI_INT16_T, INTEGER, int16_t, NUMBER_I16),
    ONE(MPI_UINT16_T, INTEGER, uint16_t, NUMBER_U16),
    ONE(MPI_INT32_T, INTEGER, int32_t, NUMBER_I32),
    ONE(MPI_UINT32_T, INTEGER, uint32_t, NUMBER_U32),
    ONE(MPI_INT64_T, INTEGER, int64_t, NUMBER_I64),
    ONE(MPI_UINT64_T, INTEGER, uint64_t, NUMBER_U64),
    ONE(MPI_AINT, MULTI_LANGUAGE, MPI_Aint, SIGNED_OF(MPI_Aint)),
    ONE(MPI_OFFSET, MULTI_LANGUAGE, MPI_Offset, SIGNED_OF(MPI_Offset)),
    ONE(MPI_COUNT, MULTI_LANGUAGE, MPI_Count, SIGNED_OF(MPI_Count)),
    ONE(MPI_BYTE, BYTE, unsigned char, NUMBER_U8),
    ONE(MPI_C_BOOL, TRUTH, bool, NUMBER_U8),
    ONE(MPI_FLOAT, REAL, float, NUMBER_FLOAT),
    ONE(MPI_DOUBLE, REAL, double, NUMBER_DOUBLE),
    ONE(MPI_LONG_DOUBLE, REAL, long double, NUMBER_LONG_DOUBLE),
    TWO(MPI_C_FLOAT_COMPLEX, float, NUMBER_FLOAT),
    TWO(MPI_C_DOUBLE_COMPLEX, double, NUMBER_DOUBLE),
    TWO(MPI_C_LONG_DOUBLE_COMPLEX, long double, NUMBER_LONG_DOUBLE),
    PAIR(MPI_2INT, element_2int, SIGNED_OF(int)),
    PAIR(MPI_SHORT_INT, element_short_int, SIGNED_OF(short)),
    PAIR(MPI_LONG_INT, element_long_int, SIGNED_OF(long)),
    PAIR(MPI_FLOAT_INT, element_float_int, NUMBER_FLOAT),
    PAIR(MPI_DOUBLE_INT, element_double_int, NUMBER_DOUBLE),
    PAIR(MPI_LONG_DOUBLE_INT, element_long_double_int, NUMBER_LONG_DOUBLE),
};
#undef SIGNED_OF
#undef ONE
#undef TWO
#undef PAIR

#define ELEMENT_KINDS ((int)(sizeof ELEMENTS / sizeof ELEMENTS[0]))
#define ELEMENT_MOST  32 /* bytes of the longest */

static const struct element *element_of(MPI_Datatype type)
{
    const struct element *e = ELEMENTS;
    while (e->type != type)
        e++;
    return e;
}

/* The second is that of the imaginary part of a complex number and the index of a pair; else 0. */
struct element_value {
    int64_t first, second;
};

static bool element_equal(struct element_value a, struct element_value b)
{
    return a.first == b.first && a.second == b.second;
}

static struct element_value element_load(const struct element *e, const void *at)
{
    return (struct element_value){number_load(e->kinds[0], at),
                                  e->numbers == 2 ? number_load(e->kinds[1], (const char *)at + e->second_at) : 0};
}

static void element_store(const struct element *e, void *at, struct element_value value)
{
    number_store(e->kinds[0], at, value.first);
    if (e->numbers == 2)
        number_store(e->kinds[1], (char *)at + e->second_at, value.second);
}

/* What is left of it in memory. */
static struct element_value element_cut(const struct element *e, struct element_value value)
{
    char memory[ELEMENT_MOST];
    element_store(e, memory, value);
    return element_load(e, memory);
}

/* Copies the numbers alone: pairs have gaps, which nobody may touch. */
static void element_copy(const struct element *e, void *to, const void *from)
{
    memcpy(to, from, number_bytes(e->kinds[0]));
    if (e->numbers == 2)
        memcpy((char *)to + e->second_at, (const char *)from + e->second_at, number_bytes(e->kinds[1]));
}

/* ---- operations -------------------------------------------------------------------------------------------------- */

enum element_op {
    ELEMENT_SUM,
    ELEMENT_PROD,
    ELEMENT_MIN,
    ELEMENT_MAX,
    ELEMENT_LAND,
    ELEMENT_LOR,
    ELEMENT_LXOR,
    ELEMENT_BAND,
    ELEMENT_BOR,
    ELEMENT_BXOR,
    ELEMENT_MINLOC,
    ELEMENT_MAXLOC,
    ELEMENT_REPLACE,
    ELEMENT_SWAP, /* MPI_Compare_and_swap */
    ELEMENT_NO_OP,
    ELEMENT_OPS
};

#define ORDERED   (ELEMENT_INTEGER | ELEMENT_MULTI_LANGUAGE | ELEMENT_REAL)
#define BITWISE   (ELEMENT_INTEGER | ELEMENT_MULTI_LANGUAGE | ELEMENT_BYTE)
#define LOGICAL   (ELEMENT_INTEGER | ELEMENT_TRUTH)
#define SWAPPABLE (BITWISE | ELEMENT_TRUTH)

static const struct {
    const char *name;
    MPI_Op op;
    int groups; /* of elements that it is for */
} ELEMENT_OP[ELEMENT_OPS] = {
    [ELEMENT_SUM] = {"sum", MPI_SUM, ORDERED | ELEMENT_COMPLEX},
    [ELEMENT_PROD] = {"prod", MPI_PROD, ORDERED | ELEMENT_COMPLEX},
    [ELEMENT_MIN] = {"min", MPI_MIN, ORDERED},
    [ELEMENT_MAX] = {"max", MPI_MAX, ORDERED},
    [ELEMENT_LAND] = {"land", MPI_LAND, LOGICAL},
    [ELEMENT_LOR] = {"lor", MPI_LOR, LOGICAL},
    [ELEMENT_LXOR] = {"lxor", MPI_LXOR, LOGICAL},
    [ELEMENT_BAND] = {"band", MPI_BAND, BITWISE},
    [ELEMENT_BOR] = {"bor", MPI_BOR, BITWISE},
    [ELEMENT_BXOR] = {"bxor", MPI_BXOR, BITWISE},
    [ELEMENT_MINLOC] = {"minloc", MPI_MINLOC, ELEMENT_PAIR},
    [ELEMENT_MAXLOC] = {"maxloc", MPI_MAXLOC, ELEMENT_PAIR},
    [ELEMENT_REPLACE] = {"replace", MPI_REPLACE, ORDERED | SWAPPABLE | ELEMENT_COMPLEX | ELEMENT_PAIR},
    [ELEMENT_SWAP] = {"swap", MPI_NO_OP, SWAPPABLE},
    [ELEMENT_NO_OP] = {"none", MPI_NO_OP, ORDERED | SWAPPABLE | ELEMENT_COMPLEX | ELEMENT_PAIR},
};
#undef ORDERED
#undef BITWISE
#undef LOGICAL
#undef SWAPPABLE

static bool element_less(enum number kind, int64_t a, int64_t b)
{
    return kind == NUMBER_U64 ? (uint64_t)a < (uint64_t)b : a < b;
}

/* Of equal values the lower index stays. */
static struct element_value element_located(struct element_value a, struct element_value b, bool least)
{
    if (a.first == b.first)
        return a.second < b.second ? a : b;
    return (a.first < b.first) == least ? a : b;
}

static int64_t element_product(int64_t a, int64_t b)
{
    return (int64_t)((uint64_t)a * (uint64_t)b);
}

/* What an operation makes of what is there; `compare` is what a swap looks for. */
static struct element_value element_next(const struct element *e, enum element_op op, struct element_value operand,
                                         struct element_value compare, struct element_value there)
{
    int64_t a = operand.first, b = there.first, x = operand.second, y = there.second;
    bool less = element_less(e->kinds[0], a, b);
    struct element_value next = there;
    switch (op) {
    case ELEMENT_SUM:
        next = (struct element_value){(int64_t)((uint64_t)a + (uint64_t)b), x + y};
        break;
    case ELEMENT_PROD: /* of numbers that are not complex x and y are 0 */
        next = (struct element_value){element_product(a, b) - x * y, element_product(a, y) + element_product(b, x)};
        break;
    case ELEMENT_MIN:
        next.first = less ? a : b;
        break;
    case ELEMENT_MAX:
        next.first = less ? b : a;
        break;
    case ELEMENT_LAND:
        next.first = a != 0 && b != 0;
        break;
    case ELEMENT_LOR:
        next.first = a != 0 || b != 0;
        break;
    case ELEMENT_LXOR:
        next.first = (a != 0) != (b != 0);
        break;
    case ELEMENT_BAND:
        next.first = a & b;
        break;
    case ELEMENT_BOR:
        next.first = a | b;
        break;
    case ELEMENT_BXOR:
        next.first = a ^ b;
        break;
    case ELEMENT_MINLOC:
    case ELEMENT_MAXLOC:
        next = element_located(operand, there, op == ELEMENT_MINLOC);
        break;
    case ELEMENT_REPLACE:
        next = operand;
        break;
    case ELEMENT_SWAP:
        next = element_equal(there, compare) ? operand : there;
        break;
    default:
        break;
    }
    return element_cut(e, next);
}

/* ---- values ------------------------------------------------------------------------------------------------------ */

/* Real numbers are so small that no order of HISTORY_ORIGINS * HISTORY_EACH sums or products rounds, and no factor is
 * 0. */
static struct element_value element_draw_real(enum element_op op, uint64_t word)
{
    int64_t low = (int64_t)(word & UINT32_MAX), high = (int64_t)(word >> 32), half = 1 << 19;
    if (op == ELEMENT_PROD)
        return (struct element_value){(low & 1 ? 1 : -1) * (low & 2 ? 2 : 1), high % 3 - 1};
    return (struct element_value){low % (2 * half) - half, high % (2 * half) - half};
}

/* Of pairs many have equal values; those that differ are far apart, if they are integers. */
static struct element_value element_draw_pair(enum number kind, uint64_t word)
{
    int64_t apart = kind >= NUMBER_FLOAT ? 1 : INT64_C(1) << (8 * number_bytes(kind) - 3);
    return (struct element_value){((int64_t)(word % 4) - 1) * apart, (int64_t)(word >> 32)};
}

/* Sums and products of integers wrap around, and factors are odd, so that nothing is lost. Of bits that meet in "and"
 * and "or" most leave the others as they are; half of what logical operations get is false. */
static int64_t element_draw_integer(enum element_op op, uint64_t word)
{
    switch (op) {
    case ELEMENT_PROD:
        return (int64_t)(word | 1);
    case ELEMENT_BAND:
        return (int64_t)(word | word >> 21);
    case ELEMENT_BOR:
        return (int64_t)(word & word >> 21);
    case ELEMENT_LAND:
    case ELEMENT_LOR:
    case ELEMENT_LXOR:
        return word >> 63 ? (int64_t)word : 0;
    default:
        return (int64_t)word;
    }
}

/* A value for an operation, of random bits. */
static struct element_value element_draw(const struct element *e, enum element_op op, uint64_t word)
{
    struct element_value value = {0, 0};
    if (e->group == ELEMENT_TRUTH)
        value.first = (int64_t)(word >> 63);
    else if (e->group == ELEMENT_PAIR)
        value = element_draw_pair(e->kinds[0], word);
    else if (e->group == ELEMENT_REAL || e->group == ELEMENT_COMPLEX)
        value = element_draw_real(op, word);
    else
        value.first = element_draw_integer(op, word);
    return element_cut(e, value);
}

#endif
