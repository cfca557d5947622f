/* Every predefined datatype is transmitted as it is: sizes and extents, several elements, the gaps of pairs left alone,
 * counts and elements of whole and broken messages. */
#include "test.h"

#include <complex.h>
#include <stddef.h>
#include <wchar.h>

struct type {
    MPI_Datatype type;
    const char *name;
    size_t size;
};

#define TYPE(type, c)                                                                                                  \
    {                                                                                                                  \
        type, #type, sizeof(c)                                                                                         \
    }

static const struct type types[] = {
    TYPE(MPI_CHAR, char),
    TYPE(MPI_SIGNED_CHAR, signed char),
    TYPE(MPI_UNSIGNED_CHAR, unsigned char),
    TYPE(MPI_BYTE, char),
    TYPE(MPI_PACKED, char),
    TYPE(MPI_WCHAR, wchar_t),
    TYPE(MPI_SHORT, short),
    TYPE(MPI_UNSIGNED_SHORT, unsigned short),
    TYPE(MPI_INT, int),
    TYPE(MPI_UNSIGNED, unsigned),
    TYPE(MPI_LONG, long),
    TYPE(MPI_UNSIGNED_LONG, unsigned long),
    TYPE(MPI_LONG_LONG, long long),
    TYPE(MPI_LONG_LONG_INT, long long),
    TYPE(MPI_UNSIGNED_LONG_LONG, unsigned long long),
    TYPE(MPI_INT8_T, int8_t),
    TYPE(MPI_INT16_T, int16_t),
    TYPE(MPI_INT32_T, int32_t),
    TYPE(MPI_INT64_T, int64_t),
    TYPE(MPI_UINT8_T, uint8_t),
    TYPE(MPI_UINT16_T, uint16_t),
    TYPE(MPI_UINT32_T, uint32_t),
    TYPE(MPI_UINT64_T, uint64_t),
    TYPE(MPI_FLOAT, float),
    TYPE(MPI_DOUBLE, double),
    TYPE(MPI_LONG_DOUBLE, long double),
    TYPE(MPI_C_BOOL, _Bool),
    TYPE(MPI_C_COMPLEX, float complex),
    TYPE(MPI_C_FLOAT_COMPLEX, float complex),
    TYPE(MPI_C_DOUBLE_COMPLEX, double complex),
    TYPE(MPI_C_LONG_DOUBLE_COMPLEX, long double complex),
    TYPE(MPI_AINT, MPI_Aint),
    TYPE(MPI_COUNT, MPI_Count),
    TYPE(MPI_OFFSET, MPI_Offset),
};

/* Those of other languages: C cannot say how large they are, except where the name does. */
static const struct type foreign[] = {
    {MPI_CXX_BOOL, "MPI_CXX_BOOL", 1},
    {MPI_CXX_FLOAT_COMPLEX, "MPI_CXX_FLOAT_COMPLEX", 2 * sizeof(float)},
    {MPI_CXX_DOUBLE_COMPLEX, "MPI_CXX_DOUBLE_COMPLEX", 2 * sizeof(double)},
    {MPI_CXX_LONG_DOUBLE_COMPLEX, "MPI_CXX_LONG_DOUBLE_COMPLEX", 2 * sizeof(long double)},
    {MPI_CHARACTER, "MPI_CHARACTER", 1},
    {MPI_INTEGER, "MPI_INTEGER", 0},
    {MPI_LOGICAL, "MPI_LOGICAL", 0},
    {MPI_REAL, "MPI_REAL", 0},
    {MPI_DOUBLE_PRECISION, "MPI_DOUBLE_PRECISION", 0},
    {MPI_COMPLEX, "MPI_COMPLEX", 0},
    {MPI_DOUBLE_COMPLEX, "MPI_DOUBLE_COMPLEX", 0},
    {MPI_INTEGER1, "MPI_INTEGER1", 1},
    {MPI_INTEGER2, "MPI_INTEGER2", 2},
    {MPI_INTEGER4, "MPI_INTEGER4", 4},
    {MPI_INTEGER8, "MPI_INTEGER8", 8},
    {MPI_REAL4, "MPI_REAL4", 4},
    {MPI_REAL8, "MPI_REAL8", 8},
    {MPI_COMPLEX8, "MPI_COMPLEX8", 8},
    {MPI_COMPLEX16, "MPI_COMPLEX16", 16},
};

/* A pair: where its two parts are. */
struct pair {
    MPI_Datatype type;
    const char *name;
    size_t first, second, second_size, extent; /* size of the value; place and size of the index; size of the struct */
};

#define PAIR(type, c, index)                                                                                           \
    {                                                                                                                  \
        type, #type, sizeof(c),                                                                                        \
            offsetof(                                                                                                  \
                struct {                                                                                               \
                    c value;                                                                                           \
                    index at;                                                                                          \
                },                                                                                                     \
                at),                                                                                                   \
            sizeof(index), sizeof(struct {                                                                             \
                c value;                                                                                               \
                index at;                                                                                              \
            })                                                                                                         \
    }

static const struct pair pairs[] = {
    PAIR(MPI_FLOAT_INT, float, int), PAIR(MPI_DOUBLE_INT, double, int), PAIR(MPI_LONG_INT, long, int),
    PAIR(MPI_2INT, int, int),        PAIR(MPI_SHORT_INT, short, int),   PAIR(MPI_LONG_DOUBLE_INT, long double, int),
};

#define COUNTS 5
static const int counts[COUNTS] = {0, 1, 3, 1000, 20000};
#define LARGEST (20000 * 32)

static unsigned char *out, *in;

static void check_type(const struct type *type)
{
    int size = -1, count = -1;
    MPI_Type_size(type->type, &size);
    if (type->size != 0)
        CHECK(size == (int)type->size, "%s has %d bytes, not %zu", type->name, size, type->size);
    test_need(size > 0 && size <= 32, type->name);
    for (int i = 0; i < COUNTS; i++) {
        MPI_Status status;
        size_t bytes = (size_t)counts[i] * (size_t)size;
        test_fill(out, bytes, (uint64_t)test_rank);
        test_clear(in, bytes);
        MPI_Sendrecv(out, counts[i], type->type, test_next(), 1, in, counts[i], type->type, test_previous(), 1,
                     MPI_COMM_WORLD, &status);
        CHECK_DATA(in, bytes, (uint64_t)test_previous());
        CHECK(test_untouched(in + bytes, TEST_GUARD), "%s: bytes behind the buffer were changed", type->name);
        MPI_Get_count(&status, type->type, &count);
        CHECK(count == counts[i], "%s: MPI_Get_count says %d, not %d", type->name, count, counts[i]);
        MPI_Get_elements(&status, type->type, &count);
        CHECK(count == counts[i], "%s: MPI_Get_elements says %d, not %d", type->name, count, counts[i]);
    }
}

/* Only value and index of each pair are there afterwards; what is between and behind them is as it was. */
static void check_pair(const struct pair *pair)
{
    int size = -1, count = -1;
    MPI_Aint lower = -1, extent = -1;
    MPI_Type_size(pair->type, &size);
    MPI_Type_get_extent(pair->type, &lower, &extent);
    CHECK(size == (int)(pair->first + pair->second_size), "%s has %d bytes", pair->name, size);
    CHECK(lower == 0 && extent == (MPI_Aint)pair->extent, "%s goes from %ld on for %ld", pair->name, (long)lower,
          (long)extent);
    for (int i = 0; i < COUNTS; i++) {
        MPI_Status status;
        size_t bytes = (size_t)counts[i] * pair->extent;
        test_fill(out, bytes, (uint64_t)test_rank);
        unsigned char *expected = test_memory(bytes);
        test_fill(expected, bytes, (uint64_t)test_previous());
        test_clear(in, bytes);
        MPI_Sendrecv(out, counts[i], pair->type, test_next(), 1, in, counts[i], pair->type, test_previous(), 1,
                     MPI_COMM_WORLD, &status);
        for (size_t j = 0; j < bytes; j++) {
            size_t at = j % pair->extent;
            bool gap = (at >= pair->first && at < pair->second) || at >= pair->second + pair->second_size;
            if (in[j] != (gap ? TEST_UNTOUCHED : expected[j])) {
                CHECK(false, "%s: byte %zu of pair %zu of %d is wrong%s", pair->name, at, j / pair->extent, counts[i],
                      gap ? " (a gap)" : "");
                break;
            }
        }
        free(expected);
        CHECK(test_untouched(in + bytes, TEST_GUARD), "%s: bytes behind the buffer were changed", pair->name);
        MPI_Get_count(&status, pair->type, &count);
        CHECK(count == counts[i], "%s: MPI_Get_count says %d, not %d", pair->name, count, counts[i]);
        MPI_Get_elements(&status, pair->type, &count);
        CHECK(count == 2 * counts[i], "%s: MPI_Get_elements says %d, not %d", pair->name, count, 2 * counts[i]);
    }
}

/* A message that ends within a pair, or within an element. */
static void broken(void)
{
    struct {
        double value;
        int index;
    } got[3];
    double values[3] = {1.5, 2.5, 3.5};
    int count = -1;
    MPI_Status status;
    MPI_Sendrecv(values, 1, MPI_DOUBLE, test_next(), 1, got, 3, MPI_DOUBLE_INT, test_previous(), 1, MPI_COMM_WORLD,
                 &status);
    CHECK(got[0].value == 1.5, "the value is %g", got[0].value);
    MPI_Get_count(&status, MPI_DOUBLE_INT, &count);
    CHECK_EQUAL(count, MPI_UNDEFINED);
    MPI_Get_elements(&status, MPI_DOUBLE_INT, &count);
    CHECK_EQUAL(count, 1);
    char bytes[7] = "123456";
    int whole[2];
    MPI_Sendrecv(bytes, 7, MPI_BYTE, test_next(), 1, whole, 8, MPI_BYTE, test_previous(), 1, MPI_COMM_WORLD, &status);
    MPI_Get_count(&status, MPI_INT, &count);
    CHECK_EQUAL(count, MPI_UNDEFINED);
    MPI_Get_count(&status, MPI_BYTE, &count);
    CHECK_EQUAL(count, 7);
}

int main(int argc, char **argv)
{
    test_begin(&argc, &argv);
    out = test_memory(LARGEST);
    in = test_memory(LARGEST);
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
        check_type(&types[i]);
    for (size_t i = 0; i < sizeof foreign / sizeof foreign[0]; i++)
        check_type(&foreign[i]);
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++)
        check_pair(&pairs[i]);
    broken();
    free(out);
    free(in);
    return test_end();
}
