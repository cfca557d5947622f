/* Kernels on pairs of a value and an index, which have the layout of the C struct. Members are read and written one by
 * one, so padding stays as it is. */
#include "data/op_kernel.h"

/* Whether the first of two pairs is the result: of equal values the lower index is. */
#define FIRST_WINS(compare)                                                                                            \
    (first[i].value compare second[i].value) |                                                                         \
        ((first[i].value == second[i].value) & (first[i].index < second[i].index))

#define PAIR_KERNEL(name, type, take_first)                                                                            \
    static void name(const void *restrict in, void *restrict inout, uint64_t count)                                    \
    {                                                                                                                  \
        const type *first = in;                                                                                        \
        type *second = inout;                                                                                          \
        for (uint64_t i = 0; i < count; i++) {                                                                         \
            const bool take = (take_first);                                                                            \
            second[i].value = take ? first[i].value : second[i].value;                                                 \
            second[i].index = take ? first[i].index : second[i].index;                                                 \
        }                                                                                                              \
    }                                                                                                                  \
    static void name##_3(const void *restrict one, const void *restrict two, void *restrict out, uint64_t count)       \
    {                                                                                                                  \
        const type *first = one, *second = two;                                                                        \
        type *result = out;                                                                                            \
        for (uint64_t i = 0; i < count; i++) {                                                                         \
            const bool take = (take_first);                                                                            \
            result[i].value = take ? first[i].value : second[i].value;                                                 \
            result[i].index = take ? first[i].index : second[i].index;                                                 \
        }                                                                                                              \
    }

#define PAIR_ROW(name, value_type, index_type)                                                                         \
    struct __attribute__((may_alias)) pair_##name {                                                                    \
        value_type value;                                                                                              \
        index_type index;                                                                                              \
    };                                                                                                                 \
    typedef struct pair_##name item_##name TB_UNALIGNED;                                                               \
    PAIR_KERNEL(minloc_##name, item_##name, FIRST_WINS(<))                                                             \
    PAIR_KERNEL(maxloc_##name, item_##name, FIRST_WINS(>))                                                             \
    PAIR_KERNEL(replace_##name, item_##name, true)                                                                     \
    PAIR_KERNEL(keep_##name, item_##name, false)                                                                       \
    const struct tb_op_row TB_OP_ROW(name) = {                                                                         \
        {TB_ENTRY(MINLOC, minloc_##name) TB_ENTRY(MAXLOC, maxloc_##name) TB_COPY_ENTRIES(name)}};

PAIR_ROW(FLOAT_INT, float, int)
PAIR_ROW(DOUBLE_INT, double, int)
PAIR_ROW(LONG_INT, long, int)
PAIR_ROW(2INT, int, int)
PAIR_ROW(SHORT_INT, short, int)
PAIR_ROW(LONG_DOUBLE_INT, long double, int)
PAIR_ROW(2FLOAT, float, float)
PAIR_ROW(2DOUBLE, double, double)
