/* Kernels on integers, logicals and bytes. Whatever gives the same bits for signed and unsigned numbers is done on
 * unsigned ones, which wrap around. */
#include "data/op_kernel.h"

typedef uint8_t uint8 TB_ANYWHERE;
typedef uint16_t uint16 TB_ANYWHERE;
typedef uint32_t uint32 TB_ANYWHERE;
typedef uint64_t uint64 TB_ANYWHERE;
typedef unsigned __int128 uint128 TB_ANYWHERE;
typedef int8_t int8 TB_ANYWHERE;
typedef int16_t int16 TB_ANYWHERE;
typedef int32_t int32 TB_ANYWHERE;
typedef int64_t int64 TB_ANYWHERE;
typedef __int128 int128 TB_ANYWHERE;

/* 1u: two 16-bit factors would otherwise be multiplied as signed numbers, and overflow. */
#define UNSIGNED_KERNELS(bits)                                                                                         \
    TB_KERNELS(sum_##bits, uint##bits, x + y)                                                                          \
    TB_KERNELS(prod_##bits, uint##bits, 1u * x * y)                                                                    \
    TB_KERNELS(band_##bits, uint##bits, x &y)                                                                          \
    TB_KERNELS(bor_##bits, uint##bits, x | y)                                                                          \
    TB_KERNELS(bxor_##bits, uint##bits, x ^ y)                                                                         \
    TB_KERNELS(land_##bits, uint##bits, (x != 0) & (y != 0))                                                           \
    TB_KERNELS(lor_##bits, uint##bits, (x | y) != 0)                                                                   \
    TB_KERNELS(lxor_##bits, uint##bits, (x != 0) ^ (y != 0))

#define ORDER_KERNELS(sign, item)                                                                                      \
    TB_KERNELS(min_##sign, item, x < y ? x : y)                                                                        \
    TB_KERNELS(max_##sign, item, x > y ? x : y)

#define INTEGER_ROW(sign, bits, bytes)                                                                                 \
    const struct tb_op_row TB_OP_ROW(sign) = {                                                                         \
        {TB_ENTRY(SUM, sum_##bits) TB_ENTRY(PROD, prod_##bits) TB_ENTRY(MIN, min_##sign) TB_ENTRY(MAX, max_##sign)     \
             TB_ENTRY(BAND, band_##bits) TB_ENTRY(BOR, bor_##bits) TB_ENTRY(BXOR, bxor_##bits) TB_ENTRY(               \
                 LAND, land_##bits) TB_ENTRY(LOR, lor_##bits) TB_ENTRY(LXOR, lxor_##bits) TB_COPY_ENTRIES(bytes)}};

#define INTEGER_KERNELS(bits, bytes)                                                                                   \
    UNSIGNED_KERNELS(bits)                                                                                             \
    TB_COPY_KERNELS(bytes)

INTEGER_KERNELS(8, 1)
INTEGER_KERNELS(16, 2)
INTEGER_KERNELS(32, 4)
INTEGER_KERNELS(64, 8)
INTEGER_KERNELS(128, 16)

ORDER_KERNELS(I8, int8)
ORDER_KERNELS(U8, uint8)
ORDER_KERNELS(I16, int16)
ORDER_KERNELS(U16, uint16)
ORDER_KERNELS(I32, int32)
ORDER_KERNELS(U32, uint32)
ORDER_KERNELS(I64, int64)
ORDER_KERNELS(U64, uint64)
ORDER_KERNELS(I128, int128)

INTEGER_ROW(I8, 8, 1)
INTEGER_ROW(U8, 8, 1)
INTEGER_ROW(I16, 16, 2)
INTEGER_ROW(U16, 16, 2)
INTEGER_ROW(I32, 32, 4)
INTEGER_ROW(U32, 32, 4)
INTEGER_ROW(I64, 64, 8)
INTEGER_ROW(U64, 64, 8)
INTEGER_ROW(I128, 128, 16)
