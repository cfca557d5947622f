/* The kernels of the predefined operations, inside src/data. A row holds the kernels of one kind of operand; a machine
 * that may have wider vectors than its baseline gets a second set of rows, the same files compiled for it, with
 * TB_OP_VARIANT behind the names. */
#ifndef TB_DATA_OP_KERNEL_H
#define TB_DATA_OP_KERNEL_H

#include "data/op.h"

/* Kinds of operands, by arithmetic and layout: several predefined types share one. */
#define TB_OPERANDS(X)         TB_OPERANDS_INTEGER(X) TB_OPERANDS_FLOAT(X) TB_OPERANDS_COMPLEX(X) TB_OPERANDS_PAIR(X)
#define TB_OPERANDS_INTEGER(X) X(I8) X(U8) X(I16) X(U16) X(I32) X(U32) X(I64) X(U64) X(I128)
#define TB_OPERANDS_FLOAT(X)   X(HALF) X(FLOAT) X(DOUBLE) X(LONG_DOUBLE) X(QUAD)
#define TB_OPERANDS_COMPLEX(X) X(HALF_COMPLEX) X(FLOAT_COMPLEX) X(DOUBLE_COMPLEX) X(LONG_DOUBLE_COMPLEX) X(QUAD_COMPLEX)
#define TB_OPERANDS_PAIR(X)                                                                                            \
    X(FLOAT_INT) X(DOUBLE_INT) X(LONG_INT) X(2INT) X(SHORT_INT) X(LONG_DOUBLE_INT) X(2FLOAT) X(2DOUBLE)

#define TB_OPERAND_ENUM(name) TB_OPERAND_##name,
enum tb_operand { TB_OPERANDS(TB_OPERAND_ENUM) TB_OPERAND_COUNT };

struct tb_op_row {
    struct {
        tb_op_loop *two;
        tb_op_loop3 *three;
    } of[TB_OP_COUNT]; /* NULL where the operation has no meaning, or the machine no such numbers */
};

#ifndef TB_OP_VARIANT
#define TB_OP_VARIANT
#endif
#define TB_OP_JOIN(a, b)            a##b
#define TB_OP_ROW_NAME(name, which) TB_OP_JOIN(tb_op_row_##name, which)
#define TB_OP_ROW(name)             TB_OP_ROW_NAME(name, TB_OP_VARIANT)

#define TB_OPERAND_ROW(name) extern const struct tb_op_row tb_op_row_##name;
TB_OPERANDS(TB_OPERAND_ROW)
#ifdef __x86_64__
#define TB_OPERAND_ROW_AVX2(name) extern const struct tb_op_row tb_op_row_##name##_avx2;
TB_OPERANDS(TB_OPERAND_ROW_AVX2)
#endif

/* Of a type of items: at any address, whatever their owner calls them. A struct says may_alias where it is defined. */
#define TB_UNALIGNED __attribute__((aligned(1)))
#define TB_ANYWHERE  __attribute__((aligned(1), may_alias))

/* Both kernels of an operation: the value of `expression` in x (first) and y (second). */
#define TB_KERNELS(name, item, expression)                                                                             \
    static void name(const void *restrict in, void *restrict inout, uint64_t count)                                    \
    {                                                                                                                  \
        const item *first = in;                                                                                        \
        item *second = inout;                                                                                          \
        for (uint64_t i = 0; i < count; i++) {                                                                         \
            const item x = first[i], y = second[i];                                                                    \
            second[i] = (expression);                                                                                  \
        }                                                                                                              \
    }                                                                                                                  \
    static void name##_3(const void *restrict one, const void *restrict two, void *restrict out, uint64_t count)       \
    {                                                                                                                  \
        const item *first = one, *second = two;                                                                        \
        item *result = out;                                                                                            \
        for (uint64_t i = 0; i < count; i++) {                                                                         \
            const item x = first[i], y = second[i];                                                                    \
            result[i] = (expression);                                                                                  \
        }                                                                                                              \
    }

/* Entries of a row. */
#define TB_ENTRY(code, name) [TB_OP_##code] = {name, name##_3},

/* REPLACE and NO_OP of items without gaps. They move bits, not values, so a size is all they know of a type. */
#define TB_COPY_KERNELS(size)                                                                                          \
    static void replace_##size(const void *restrict in, void *restrict inout, uint64_t count)                          \
    {                                                                                                                  \
        memcpy(inout, in, count *(size));                                                                              \
    }                                                                                                                  \
    static void replace_##size##_3(const void *restrict one, const void *restrict two, void *restrict out,             \
                                   uint64_t count)                                                                     \
    {                                                                                                                  \
        memcpy(out, one, count *(size));                                                                               \
    }                                                                                                                  \
    static void keep_##size(const void *restrict in, void *restrict inout, uint64_t count) {}                          \
    static void keep_##size##_3(const void *restrict one, const void *restrict two, void *restrict out,                \
                                uint64_t count)                                                                        \
    {                                                                                                                  \
        memcpy(out, two, count *(size));                                                                               \
    }
#define TB_COPY_ENTRIES(size) TB_ENTRY(REPLACE, replace_##size) TB_ENTRY(NO_OP, keep_##size)

#endif
