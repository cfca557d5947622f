/* The predefined datatypes: one row for each handle of the MPI ABI that is a datatype. Fortran's types are those of a
 * compiler's default kinds; a C type of the same size and alignment stands for each. */
#include "data/layout.h"

#include <wchar.h>

struct two_halves { /* complex of two 16-bit numbers */
    uint16_t part[2];
};
struct two_quads { /* complex of two 128-bit numbers */
    __int128 part[2];
};

#define PREDEFINED_FIRST 0x200u
#define PREDEFINED_COUNT 0x100u

/* X(handle, name, C type, basic) */
#define PREDEFINED_ROWS(X)                                                                                             \
    X(0x201, AINT, intptr_t, INT)                                                                                      \
    X(0x202, COUNT, int64_t, INT)                                                                                      \
    X(0x203, OFFSET, int64_t, INT)                                                                                     \
    X(0x207, PACKED, uint8_t, PACKED)                                                                                  \
    X(0x208, SHORT, short, INT)                                                                                        \
    X(0x209, INT, int, INT)                                                                                            \
    X(0x20a, LONG, long, INT)                                                                                          \
    X(0x20b, LONG_LONG_INT, long long, INT)                                                                            \
    X(0x20c, UNSIGNED_SHORT, unsigned short, UINT)                                                                     \
    X(0x20d, UNSIGNED, unsigned, UINT)                                                                                 \
    X(0x20e, UNSIGNED_LONG, unsigned long, UINT)                                                                       \
    X(0x20f, UNSIGNED_LONG_LONG, unsigned long long, UINT)                                                             \
    X(0x210, FLOAT, float, FLOAT)                                                                                      \
    X(0x212, C_COMPLEX, float _Complex, COMPLEX)                                                                       \
    X(0x213, CXX_FLOAT_COMPLEX, float _Complex, COMPLEX)                                                               \
    X(0x214, DOUBLE, double, FLOAT)                                                                                    \
    X(0x216, C_DOUBLE_COMPLEX, double _Complex, COMPLEX)                                                               \
    X(0x217, CXX_DOUBLE_COMPLEX, double _Complex, COMPLEX)                                                             \
    X(0x218, LOGICAL, int32_t, LOGICAL)                                                                                \
    X(0x219, INTEGER, int32_t, INT)                                                                                    \
    X(0x21a, REAL, float, FLOAT)                                                                                       \
    X(0x21b, COMPLEX, float _Complex, COMPLEX)                                                                         \
    X(0x21c, DOUBLE_PRECISION, double, FLOAT)                                                                          \
    X(0x21d, DOUBLE_COMPLEX, double _Complex, COMPLEX)                                                                 \
    X(0x21e, CHARACTER, char, CHAR)                                                                                    \
    X(0x220, LONG_DOUBLE, long double, FLOAT)                                                                          \
    X(0x224, C_LONG_DOUBLE_COMPLEX, long double _Complex, COMPLEX)                                                     \
    X(0x225, CXX_LONG_DOUBLE_COMPLEX, long double _Complex, COMPLEX)                                                   \
    X(0x238, C_BOOL, bool, LOGICAL)                                                                                    \
    X(0x239, CXX_BOOL, bool, LOGICAL)                                                                                  \
    X(0x23c, WCHAR, wchar_t, CHAR)                                                                                     \
    X(0x240, INT8_T, int8_t, INT)                                                                                      \
    X(0x241, UINT8_T, uint8_t, UINT)                                                                                   \
    X(0x243, CHAR, char, CHAR)                                                                                         \
    X(0x244, SIGNED_CHAR, signed char, INT)                                                                            \
    X(0x245, UNSIGNED_CHAR, unsigned char, UINT)                                                                       \
    X(0x248, INT16_T, int16_t, INT)                                                                                    \
    X(0x249, UINT16_T, uint16_t, UINT)                                                                                 \
    X(0x250, INT32_T, int32_t, INT)                                                                                    \
    X(0x251, UINT32_T, uint32_t, UINT)                                                                                 \
    X(0x258, INT64_T, int64_t, INT)                                                                                    \
    X(0x259, UINT64_T, uint64_t, UINT)                                                                                 \
    X(0x2c0, LOGICAL1, int8_t, LOGICAL)                                                                                \
    X(0x2c1, INTEGER1, int8_t, INT)                                                                                    \
    X(0x2c8, LOGICAL2, int16_t, LOGICAL)                                                                               \
    X(0x2c9, INTEGER2, int16_t, INT)                                                                                   \
    X(0x2ca, REAL2, uint16_t, FLOAT)                                                                                   \
    X(0x2d0, LOGICAL4, int32_t, LOGICAL)                                                                               \
    X(0x2d1, INTEGER4, int32_t, INT)                                                                                   \
    X(0x2d2, REAL4, float, FLOAT)                                                                                      \
    X(0x2d3, COMPLEX4, struct two_halves, COMPLEX)                                                                     \
    X(0x2d8, LOGICAL8, int64_t, LOGICAL)                                                                               \
    X(0x2d9, INTEGER8, int64_t, INT)                                                                                   \
    X(0x2da, REAL8, double, FLOAT)                                                                                     \
    X(0x2db, COMPLEX8, float _Complex, COMPLEX)                                                                        \
    X(0x2e0, LOGICAL16, __int128, LOGICAL)                                                                             \
    X(0x2e1, INTEGER16, __int128, INT)                                                                                 \
    X(0x2e2, REAL16, __int128, FLOAT)                                                                                  \
    X(0x2e3, COMPLEX16, double _Complex, COMPLEX)                                                                      \
    X(0x2eb, COMPLEX32, struct two_quads, COMPLEX)

/* X(handle, name, C type of the value, of the index, their types) */
#define PREDEFINED_PAIRS(X)                                                                                            \
    X(0x228, FLOAT_INT, float, int, FLOAT, INT)                                                                        \
    X(0x229, DOUBLE_INT, double, int, DOUBLE, INT)                                                                     \
    X(0x22a, LONG_INT, long, int, LONG, INT)                                                                           \
    X(0x22b, 2INT, int, int, INT, INT)                                                                                 \
    X(0x22c, SHORT_INT, short, int, SHORT, INT)                                                                        \
    X(0x22d, LONG_DOUBLE_INT, long double, int, LONG_DOUBLE, INT)                                                      \
    X(0x230, 2REAL, float, float, REAL, REAL)                                                                          \
    X(0x231, 2DOUBLE_PRECISION, double, double, DOUBLE_PRECISION, DOUBLE_PRECISION)                                    \
    X(0x232, 2INTEGER, int32_t, int32_t, INTEGER, INTEGER)

#define DENSE_TYPE(number, label, c_type, basic_name)                                                                  \
    {                                                                                                                  \
        .size = sizeof(c_type), .extent = sizeof(c_type), .true_extent = sizeof(c_type),                               \
        .basic = TB_BASIC_##basic_name, .alignment = alignof(c_type), .dense = true, .committed = true, .elements = 1, \
        .long_double = (number) == 0x220 || (number) == 0x224 || (number) == 0x225, .name = label,                     \
        .code = (number)-PREDEFINED_FIRST, .handle = (number)                                                          \
    }

const struct tb_type tb_type_byte = DENSE_TYPE(0x247, "MPI_BYTE", uint8_t, BYTE);

#define DEFINE_TYPE(number, name, c_type, basic)                                                                       \
    static const struct tb_type type_##name = DENSE_TYPE(number, "MPI_" #name, c_type, basic);
PREDEFINED_ROWS(DEFINE_TYPE)

/* A pair has the layout of the struct. Value and index are one run if they touch, otherwise a list of two. */
#define DEFINE_PAIR(number, pair_name, first_type, second_type, first_name, second_name)                               \
    struct pair_##pair_name {                                                                                          \
        first_type first;                                                                                              \
        second_type second;                                                                                            \
    };                                                                                                                 \
    enum {                                                                                                             \
        pair_##pair_name##_bytes = sizeof(first_type) + sizeof(second_type),                                           \
        pair_##pair_name##_second = offsetof(struct pair_##pair_name, second),                                         \
        pair_##pair_name##_touch = pair_##pair_name##_second == sizeof(first_type),                                    \
        pair_##pair_name##_dense = pair_##pair_name##_bytes == sizeof(struct pair_##pair_name)                         \
    };                                                                                                                 \
    static const struct tb_layout layout_##pair_name = {                                                               \
        .form = TB_LAYOUT_LIST,                                                                                        \
        .depth = 1,                                                                                                    \
        .size = pair_##pair_name##_bytes,                                                                              \
        .runs = 2,                                                                                                     \
        .count = 2,                                                                                                    \
        .displacements = (const int64_t[]){0, pair_##pair_name##_second},                                              \
        .starts = (const uint64_t[]){0, sizeof(first_type), pair_##pair_name##_bytes},                                 \
    };                                                                                                                 \
    static const struct tb_type type_##pair_name = {                                                                   \
        .size = pair_##pair_name##_bytes,                                                                              \
        .extent = sizeof(struct pair_##pair_name),                                                                     \
        .true_extent = pair_##pair_name##_second + sizeof(second_type),                                                \
        .basic = TB_BASIC_PAIR,                                                                                        \
        .alignment = alignof(struct pair_##pair_name),                                                                 \
        .dense = pair_##pair_name##_dense,                                                                             \
        .committed = true,                                                                                             \
        .long_double = (number) == 0x22d,                                                                              \
        .elements = 2,                                                                                                 \
        .pair = {&type_##first_name, &type_##second_name},                                                             \
        .layout = pair_##pair_name##_touch ? NULL : &layout_##pair_name,                                               \
        .name = "MPI_" #pair_name,                                                                                     \
        .code = (number)-PREDEFINED_FIRST,                                                                             \
        .handle = (number),                                                                                            \
    };
PREDEFINED_PAIRS(DEFINE_PAIR)

#define POINT_TO(handle, name, ...) [(handle)-PREDEFINED_FIRST] = &type_##name,
static const struct tb_type *const predefined[PREDEFINED_COUNT] = {
    [0x247 - PREDEFINED_FIRST] = &tb_type_byte, PREDEFINED_ROWS(POINT_TO) PREDEFINED_PAIRS(POINT_TO)};

const struct tb_type *tb_type_predefined(uintptr_t handle)
{
    uintptr_t index = handle - PREDEFINED_FIRST;
    return index < PREDEFINED_COUNT ? predefined[index] : NULL;
}
