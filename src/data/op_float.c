/* Kernels on floating point and complex numbers. */
#include "data/op_kernel.h"

#include <float.h>

TB_COPY_KERNELS(2)
TB_COPY_KERNELS(4)
TB_COPY_KERNELS(8)
TB_COPY_KERNELS(16)
TB_COPY_KERNELS(32)

#define FLOAT_KERNELS(name, type)                                                                                      \
    typedef type name##_item TB_ANYWHERE;                                                                              \
    TB_KERNELS(sum_##name, name##_item, x + y)                                                                         \
    TB_KERNELS(prod_##name, name##_item, x *y)                                                                         \
    TB_KERNELS(min_##name, name##_item, x < y ? x : y)                                                                 \
    TB_KERNELS(max_##name, name##_item, x > y ? x : y)

#define FLOAT_ROW(row, name, bytes)                                                                                    \
    const struct tb_op_row TB_OP_ROW(row) = {{TB_ENTRY(SUM, sum_##name) TB_ENTRY(PROD, prod_##name) TB_ENTRY(          \
        MIN, min_##name) TB_ENTRY(MAX, max_##name) TB_COPY_ENTRIES(bytes)}};

/* A sum of complex numbers is two sums. A product is C's own; `wide` is the type to compute it in. */
#define COMPLEX_KERNELS(name, type, wide)                                                                              \
    static void sum_##name##_COMPLEX(const void *in, void *inout, uint64_t count)                                      \
    {                                                                                                                  \
        sum_##name(in, inout, 2 * count);                                                                              \
    }                                                                                                                  \
    static void sum_##name##_COMPLEX_3(const void *one, const void *two, void *out, uint64_t count)                    \
    {                                                                                                                  \
        sum_##name##_3(one, two, out, 2 * count);                                                                      \
    }                                                                                                                  \
    struct __attribute__((may_alias)) complex_##name {                                                                 \
        type real, imaginary;                                                                                          \
    };                                                                                                                 \
    typedef struct complex_##name name##_complex TB_UNALIGNED;                                                         \
    static inline struct complex_##name multiply_##name(struct complex_##name x, struct complex_##name y)              \
    {                                                                                                                  \
        __auto_type z =                                                                                                \
            __builtin_complex((wide)x.real, (wide)x.imaginary) * __builtin_complex((wide)y.real, (wide)y.imaginary);   \
        return (struct complex_##name){(type) __real__ z, (type) __imag__ z};                                          \
    }                                                                                                                  \
    TB_KERNELS(prod_##name##_COMPLEX, name##_complex, multiply_##name(x, y))

#define COMPLEX_ROW(row, name, bytes)                                                                                  \
    const struct tb_op_row TB_OP_ROW(row) = {                                                                          \
        {TB_ENTRY(SUM, sum_##name##_COMPLEX) TB_ENTRY(PROD, prod_##name##_COMPLEX) TB_COPY_ENTRIES(bytes)}};

#define NUMBER_KERNELS(name, type, wide)                                                                               \
    FLOAT_KERNELS(name, type)                                                                                          \
    COMPLEX_KERNELS(name, type, wide)
#define NUMBER_ROWS(row, name, bytes, twice)                                                                           \
    FLOAT_ROW(row, name, bytes)                                                                                        \
    COMPLEX_ROW(row##_COMPLEX, name, twice)
/* Numbers that a compiler need not have can always be copied. */
#define COPY_ROWS(row, bytes, twice)                                                                                   \
    const struct tb_op_row TB_OP_ROW(row) = {{TB_COPY_ENTRIES(bytes)}};                                                \
    const struct tb_op_row TB_OP_ROW(row##_COMPLEX) = {{TB_COPY_ENTRIES(twice)}};

NUMBER_KERNELS(FLOAT, float, float)
NUMBER_ROWS(FLOAT, FLOAT, 4, 8)

NUMBER_KERNELS(DOUBLE, double, double)
NUMBER_ROWS(DOUBLE, DOUBLE, 8, 16)

NUMBER_KERNELS(LONG_DOUBLE, long double, long double)
NUMBER_ROWS(LONG_DOUBLE, LONG_DOUBLE, 16, 32)

#ifdef __FLT16_MAX__
NUMBER_KERNELS(HALF, _Float16, float)
NUMBER_ROWS(HALF, HALF, 2, 4)
#else
COPY_ROWS(HALF, 2, 4)
#endif

#if LDBL_MANT_DIG == 113
NUMBER_ROWS(QUAD, LONG_DOUBLE, 16, 32)
#elif defined __SIZEOF_FLOAT128__
NUMBER_KERNELS(QUAD, __float128, __float128)
NUMBER_ROWS(QUAD, QUAD, 16, 32)
#else
COPY_ROWS(QUAD, 16, 32)
#endif
