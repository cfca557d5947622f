/* Which operation is allowed on which type (MPI-5.0, section 6.9.2), and carrying it out. */
#include "data/op_kernel.h"

#include <limits.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "data/data.h"

/* The standard's groups of predefined types. */
enum group {
    GROUP_C_INTEGER = 1,
    GROUP_FORTRAN_INTEGER = 2,
    GROUP_FLOAT = 4,
    GROUP_LOGICAL = 8,
    GROUP_COMPLEX = 16,
    GROUP_BYTE = 32,
    GROUP_MULTI_LANGUAGE = 64,
    GROUP_PAIR = 128,
    GROUP_OTHER = 256, /* can be copied, nothing else */
    GROUP_CHAR = 512   /* MPI_CHAR: text by the standard, and a number for many programs */
};

/* Truth values of MPI_AINT and its like are beyond the standard; they are integers, and other libraries allow them. So
 * is MPI_CHAR, which is taken for a C char unless the parameter `strict` is set. */
#define ORDERED   (GROUP_C_INTEGER | GROUP_FORTRAN_INTEGER | GROUP_FLOAT | GROUP_MULTI_LANGUAGE | GROUP_CHAR)
#define NUMERIC   (ORDERED | GROUP_COMPLEX)
#define BITWISE   (GROUP_C_INTEGER | GROUP_FORTRAN_INTEGER | GROUP_BYTE | GROUP_MULTI_LANGUAGE | GROUP_CHAR)
#define TRUTH     (GROUP_C_INTEGER | GROUP_LOGICAL | GROUP_MULTI_LANGUAGE | GROUP_CHAR)
#define ANY_GROUP (NUMERIC | BITWISE | TRUTH | GROUP_PAIR | GROUP_OTHER)

#define ORDERED_TEXT "integers and floating point numbers"
#define NUMERIC_TEXT "integers, floating point and complex numbers"
#define BITWISE_TEXT "integers and MPI_BYTE"
#define TRUTH_TEXT   "C integers and logicals"
#define PAIR_TEXT    "pairs such as MPI_DOUBLE_INT"
#define ANY_TEXT     "predefined types"

#define OP_FIRST 0x20u
#define OP_ROOM  0x20u

/* X(handle, name, groups, text, one-sided) */
#define OP_ROWS(X)                                                                                                     \
    X(0x21, SUM, NUMERIC, NUMERIC_TEXT, false)                                                                         \
    X(0x22, MIN, ORDERED, ORDERED_TEXT, false)                                                                         \
    X(0x23, MAX, ORDERED, ORDERED_TEXT, false)                                                                         \
    X(0x24, PROD, NUMERIC, NUMERIC_TEXT, false)                                                                        \
    X(0x28, BAND, BITWISE, BITWISE_TEXT, false)                                                                        \
    X(0x29, BOR, BITWISE, BITWISE_TEXT, false)                                                                         \
    X(0x2a, BXOR, BITWISE, BITWISE_TEXT, false)                                                                        \
    X(0x30, LAND, TRUTH, TRUTH_TEXT, false)                                                                            \
    X(0x31, LOR, TRUTH, TRUTH_TEXT, false)                                                                             \
    X(0x32, LXOR, TRUTH, TRUTH_TEXT, false)                                                                            \
    X(0x38, MINLOC, GROUP_PAIR, PAIR_TEXT, false)                                                                      \
    X(0x39, MAXLOC, GROUP_PAIR, PAIR_TEXT, false)                                                                      \
    X(0x3c, REPLACE, ANY_GROUP, ANY_TEXT, true)                                                                        \
    X(0x3d, NO_OP, ANY_GROUP, ANY_TEXT, true)

#define OP_ENTRY(handle, label, allowed, text, one)                                                                    \
    [(handle)-OP_FIRST] = {.code = TB_OP_##label,                                                                      \
                           .commutative = !(one),                                                                      \
                           .one_sided = (one),                                                                         \
                           .groups = (allowed),                                                                        \
                           .name = "MPI_" #label,                                                                      \
                           .operands = (text)},
static const struct tb_op predefined[OP_ROOM] = {OP_ROWS(OP_ENTRY)};

/* X(code of the type, kind of operand, group). C's long and the Fortran kinds have the sizes of 64-bit Linux. */
#define OPERAND_ROWS(X)                                                                                                \
    X(0x01, I64, MULTI_LANGUAGE)          /* AINT */                                                                   \
    X(0x02, I64, MULTI_LANGUAGE)          /* COUNT */                                                                  \
    X(0x03, I64, MULTI_LANGUAGE)          /* OFFSET */                                                                 \
    X(0x07, U8, OTHER)                    /* PACKED */                                                                 \
    X(0x08, I16, C_INTEGER)               /* SHORT */                                                                  \
    X(0x09, I32, C_INTEGER)               /* INT */                                                                    \
    X(0x0a, I64, C_INTEGER)               /* LONG */                                                                   \
    X(0x0b, I64, C_INTEGER)               /* LONG_LONG */                                                              \
    X(0x0c, U16, C_INTEGER)               /* UNSIGNED_SHORT */                                                         \
    X(0x0d, U32, C_INTEGER)               /* UNSIGNED */                                                               \
    X(0x0e, U64, C_INTEGER)               /* UNSIGNED_LONG */                                                          \
    X(0x0f, U64, C_INTEGER)               /* UNSIGNED_LONG_LONG */                                                     \
    X(0x10, FLOAT, FLOAT)                 /* FLOAT */                                                                  \
    X(0x12, FLOAT_COMPLEX, COMPLEX)       /* C_FLOAT_COMPLEX */                                                        \
    X(0x13, FLOAT_COMPLEX, COMPLEX)       /* CXX_FLOAT_COMPLEX */                                                      \
    X(0x14, DOUBLE, FLOAT)                /* DOUBLE */                                                                 \
    X(0x16, DOUBLE_COMPLEX, COMPLEX)      /* C_DOUBLE_COMPLEX */                                                       \
    X(0x17, DOUBLE_COMPLEX, COMPLEX)      /* CXX_DOUBLE_COMPLEX */                                                     \
    X(0x18, I32, LOGICAL)                 /* LOGICAL */                                                                \
    X(0x19, I32, FORTRAN_INTEGER)         /* INTEGER */                                                                \
    X(0x1a, FLOAT, FLOAT)                 /* REAL */                                                                   \
    X(0x1b, FLOAT_COMPLEX, COMPLEX)       /* COMPLEX */                                                                \
    X(0x1c, DOUBLE, FLOAT)                /* DOUBLE_PRECISION */                                                       \
    X(0x1d, DOUBLE_COMPLEX, COMPLEX)      /* DOUBLE_COMPLEX */                                                         \
    X(0x1e, U8, OTHER)                    /* CHARACTER */                                                              \
    X(0x20, LONG_DOUBLE, FLOAT)           /* LONG_DOUBLE */                                                            \
    X(0x24, LONG_DOUBLE_COMPLEX, COMPLEX) /* C_LONG_DOUBLE_COMPLEX */                                                  \
    X(0x25, LONG_DOUBLE_COMPLEX, COMPLEX) /* CXX_LONG_DOUBLE_COMPLEX */                                                \
    X(0x28, FLOAT_INT, PAIR)              /* FLOAT_INT */                                                              \
    X(0x29, DOUBLE_INT, PAIR)             /* DOUBLE_INT */                                                             \
    X(0x2a, LONG_INT, PAIR)               /* LONG_INT */                                                               \
    X(0x2b, 2INT, PAIR)                   /* 2INT */                                                                   \
    X(0x2c, SHORT_INT, PAIR)              /* SHORT_INT */                                                              \
    X(0x2d, LONG_DOUBLE_INT, PAIR)        /* LONG_DOUBLE_INT */                                                        \
    X(0x30, 2FLOAT, PAIR)                 /* 2REAL */                                                                  \
    X(0x31, 2DOUBLE, PAIR)                /* 2DOUBLE_PRECISION */                                                      \
    X(0x32, 2INT, PAIR)                   /* 2INTEGER */                                                               \
    X(0x38, U8, LOGICAL)                  /* C_BOOL */                                                                 \
    X(0x39, U8, LOGICAL)                  /* CXX_BOOL */                                                               \
    X(0x3c, I32, OTHER)                   /* WCHAR */                                                                  \
    X(0x40, I8, C_INTEGER)                /* INT8_T */                                                                 \
    X(0x41, U8, C_INTEGER)                /* UINT8_T */                                                                \
    X(0x43, CHAR, CHAR)                   /* CHAR */                                                                   \
    X(0x44, I8, C_INTEGER)                /* SIGNED_CHAR */                                                            \
    X(0x45, U8, C_INTEGER)                /* UNSIGNED_CHAR */                                                          \
    X(0x47, U8, BYTE)                     /* BYTE */                                                                   \
    X(0x48, I16, C_INTEGER)               /* INT16_T */                                                                \
    X(0x49, U16, C_INTEGER)               /* UINT16_T */                                                               \
    X(0x50, I32, C_INTEGER)               /* INT32_T */                                                                \
    X(0x51, U32, C_INTEGER)               /* UINT32_T */                                                               \
    X(0x58, I64, C_INTEGER)               /* INT64_T */                                                                \
    X(0x59, U64, C_INTEGER)               /* UINT64_T */                                                               \
    X(0xc0, I8, LOGICAL)                  /* LOGICAL1 */                                                               \
    X(0xc1, I8, FORTRAN_INTEGER)          /* INTEGER1 */                                                               \
    X(0xc8, I16, LOGICAL)                 /* LOGICAL2 */                                                               \
    X(0xc9, I16, FORTRAN_INTEGER)         /* INTEGER2 */                                                               \
    X(0xca, HALF, FLOAT)                  /* REAL2 */                                                                  \
    X(0xd0, I32, LOGICAL)                 /* LOGICAL4 */                                                               \
    X(0xd1, I32, FORTRAN_INTEGER)         /* INTEGER4 */                                                               \
    X(0xd2, FLOAT, FLOAT)                 /* REAL4 */                                                                  \
    X(0xd3, HALF_COMPLEX, COMPLEX)        /* COMPLEX4 */                                                               \
    X(0xd8, I64, LOGICAL)                 /* LOGICAL8 */                                                               \
    X(0xd9, I64, FORTRAN_INTEGER)         /* INTEGER8 */                                                               \
    X(0xda, DOUBLE, FLOAT)                /* REAL8 */                                                                  \
    X(0xdb, FLOAT_COMPLEX, COMPLEX)       /* COMPLEX8 */                                                               \
    X(0xe0, I128, LOGICAL)                /* LOGICAL16 */                                                              \
    X(0xe1, I128, FORTRAN_INTEGER)        /* INTEGER16 */                                                              \
    X(0xe2, QUAD, FLOAT)                  /* REAL16 */                                                                 \
    X(0xe3, DOUBLE_COMPLEX, COMPLEX)      /* COMPLEX16 */                                                              \
    X(0xeb, QUAD_COMPLEX, COMPLEX)        /* COMPLEX32 */

#define TB_OPERAND_CHAR                     (CHAR_MIN < 0 ? TB_OPERAND_I8 : TB_OPERAND_U8)
#define OPERAND_ENTRY(code, kind, in_group) [code] = {.operand = TB_OPERAND_##kind, .group = GROUP_##in_group},
static const struct {
    uint8_t operand; /* enum tb_operand */
    uint16_t group;  /* 0: no such type */
} operands[256] = {OPERAND_ROWS(OPERAND_ENTRY)};

#define ROW_POINTER(name) [TB_OPERAND_##name] = &tb_op_row_##name,
static const struct tb_op_row *const rows[TB_OPERAND_COUNT] = {TB_OPERANDS(ROW_POINTER)};

#ifdef __x86_64__
#define ROW_POINTER_AVX2(name) [TB_OPERAND_##name] = &tb_op_row_##name##_avx2,
static const struct tb_op_row *const rows_avx2[TB_OPERAND_COUNT] = {TB_OPERANDS(ROW_POINTER_AVX2)};

static const struct tb_op_row *row_of(unsigned operand)
{
    return (__builtin_cpu_supports("avx2") ? rows_avx2 : rows)[operand];
}
#else
static const struct tb_op_row *row_of(unsigned operand)
{
    return rows[operand];
}
#endif

const struct tb_op *tb_op_predefined(uintptr_t handle)
{
    uintptr_t index = handle - OP_FIRST;
    return index < OP_ROOM && predefined[index].name != NULL ? &predefined[index] : NULL;
}

const struct tb_op *tb_op_of_code(unsigned code)
{
    for (uint32_t i = 0; code < TB_OP_COUNT && i < OP_ROOM; i++)
        if (predefined[i].name != NULL && (unsigned)predefined[i].code == code)
            return &predefined[i];
    return NULL;
}

/* A user's operation and its count. */
struct user_op {
    struct tb_op op;
    _Atomic uint32_t users;
};

int tb_op_create(tb_op_function *function, tb_op_function_large *large, void *context, bool commutative,
                 const struct tb_op **op)
{
    TB_ASSERT((function != NULL) != (large != NULL));
    struct user_op *made = malloc(sizeof *made);
    if (made == NULL)
        return tb_error(TB_ERR_MEMORY, "no memory for a reduction operation");
    made->users = 1;
    made->op = (struct tb_op){
        .code = TB_OP_USER,
        .commutative = commutative,
        .name = "a user's operation",
        .operands = "any type",
        .users = &made->users,
        .function = function,
        .large = large,
        .context = context,
    };
    *op = &made->op;
    return TB_OK;
}

void tb_op_hold(const struct tb_op *op)
{
    if (op->users != NULL)
        TB_ASSERT(atomic_fetch_add_explicit(op->users, 1, memory_order_relaxed) > 0);
}

void tb_op_drop(const struct tb_op *op)
{
    if (op->users == NULL)
        return;
    uint32_t before = atomic_fetch_sub_explicit(op->users, 1, memory_order_acq_rel);
    TB_ASSERT(before > 0);
    if (before == 1)
        free(TB_CONTAINER(op, struct user_op, op));
}

/* The row of `type` if it has `op`, otherwise NULL and the story. */
static const struct tb_op_row *find(const struct tb_op *op, const struct tb_type *type, int *error)
{
    TB_ASSERT(op->code < TB_OP_COUNT);
    unsigned group = operands[type->code].group;
    if (__builtin_expect(group == GROUP_CHAR && tb_param.strict && (op->groups & group) != 0 && !op->one_sided, 0)) {
        *error = tb_error(TB_ERR_ARGUMENT,
                          "%s is not defined on %s, which is for text; MPI_SIGNED_CHAR and MPI_UNSIGNED_CHAR are for "
                          "numbers",
                          op->name, type->name);
        return NULL;
    }
    if (__builtin_expect((op->groups & group) == 0, 0)) {
        const char *name = type->code != 0 ? type->name : "a derived datatype";
        *error = tb_error(TB_ERR_ARGUMENT, "%s is not defined on %s: it is for %s", op->name, name, op->operands);
        return NULL;
    }
    const struct tb_op_row *row = row_of(operands[type->code].operand);
    if (__builtin_expect(row->of[op->code].two == NULL, 0)) {
        *error = tb_error(TB_ERR_UNSUPPORTED,
                          "%s on %s is not possible here: the compiler of this library has no such "
                          "numbers on this machine",
                          op->name, type->name);
        return NULL;
    }
    return row;
}

int tb_op_check(const struct tb_op *op, const struct tb_type *type)
{
    int error = TB_OK;
    if (op->code != TB_OP_USER)
        find(op, type, &error);
    return error;
}

bool tb_op_is_exact(const struct tb_op *op, const struct tb_type *type)
{
    unsigned group = operands[type->code].group;
    return op->code < TB_OP_COUNT && ((group & BITWISE) != 0 || (group & TRUTH) != 0);
}

bool tb_op_orders_chars(const struct tb_op *op, const struct tb_type *type)
{
    return (op->code == TB_OP_MIN || op->code == TB_OP_MAX) && operands[type->code].group == GROUP_CHAR;
}

tb_op_loop *tb_op_kernel(const struct tb_op *op, const struct tb_type *type)
{
    int error;
    const struct tb_op_row *row = find(op, type, &error);
    return row != NULL ? row->of[op->code].two : NULL;
}

tb_op_loop3 *tb_op_kernel3(const struct tb_op *op, const struct tb_type *type)
{
    int error;
    const struct tb_op_row *row = find(op, type, &error);
    return row != NULL ? row->of[op->code].three : NULL;
}

static void call_user(const struct tb_op *op, char *in, char *inout, uint64_t count, const struct tb_type *type)
{
    if (op->large != NULL) {
        op->large(op->context, in, inout, (int64_t)count, type->handle);
        return;
    }
    for (uint64_t n; count > 0; count -= n) {
        n = count < INT_MAX ? count : INT_MAX;
        op->function(op->context, in, inout, (int)n, type->handle);
        in += (int64_t)n * type->extent;
        inout += (int64_t)n * type->extent;
    }
}

int tb_op_apply(const struct tb_op *op, const void *in, void *inout, uint64_t count, const struct tb_type *type)
{
    if (op->code == TB_OP_USER) {
        if (count > 0)
            call_user(op, (char *)in, inout, count, type);
        return TB_OK;
    }
    int error = TB_OK;
    const struct tb_op_row *row = find(op, type, &error);
    if (__builtin_expect(row == NULL, 0))
        return error;
    row->of[op->code].two(in, inout, count);
    return TB_OK;
}
