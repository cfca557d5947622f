/* Reduction operations: the predefined ones of the MPI ABI and users' own. An operation is immutable; predefined ones
 * live forever, users' are counted. Any thread may use one.
 *
 * Of two operands the first is the one of the lower rank. Results, where the standard leaves them open:
 *   MIN, MAX        keep the first operand if it compares less (greater), otherwise the second; a comparison with a NaN
 *                   is false, so a NaN that comes second stays and one that comes first is dropped
 *   MINLOC, MAXLOC  compare values the same way; of equal values the lower index stays. Padding is not touched
 *   LAND, LOR, LXOR whatever is not 0 is true; give 0 or 1
 *   SUM, PROD       of integers wrap around, of complex numbers are C's (an infinity times a number stays infinite) and
 *                   never fused, so that machines of different kind agree
 *   REPLACE, NO_OP  give the first and the second operand; for one-sided access only, on every predefined type */
#ifndef TB_DATA_OP_H
#define TB_DATA_OP_H

#include "base/base.h"

struct tb_type;

enum tb_op_code {
    TB_OP_SUM,
    TB_OP_MIN,
    TB_OP_MAX,
    TB_OP_PROD,
    TB_OP_BAND,
    TB_OP_BOR,
    TB_OP_BXOR,
    TB_OP_LAND,
    TB_OP_LOR,
    TB_OP_LXOR,
    TB_OP_MINLOC,
    TB_OP_MAXLOC,
    TB_OP_REPLACE,
    TB_OP_NO_OP,
    TB_OP_COUNT,
    TB_OP_USER = TB_OP_COUNT
};

/* inout = in op inout, item by item. The memory may have any alignment; `in` and `inout` do not overlap. */
typedef void tb_op_loop(const void *in, void *inout, uint64_t count);
/* out = first op second; `out` overlaps neither. */
typedef void tb_op_loop3(const void *first, const void *second, void *out, uint64_t count);

/* A user's function behind a callback of the layer that knows its C type; `type` is the type's `handle`. The plain form
 * is called several times if there is more than an int can count. */
typedef void tb_op_function(void *context, void *in, void *inout, int count, uintptr_t type);
typedef void tb_op_function_large(void *context, void *in, void *inout, int64_t count, uintptr_t type);

struct tb_op {
    enum tb_op_code code;
    bool commutative;
    bool one_sided;          /* not for collectives: REPLACE, NO_OP */
    uint16_t groups;         /* of predefined types that it is for */
    const char *name;        /* "MPI_SUM"; "a user's operation" */
    const char *operands;    /* what it is for, for stories */
    _Atomic uint32_t *users; /* holders of a user's operation; NULL if predefined */
    tb_op_function *function;
    tb_op_function_large *large; /* one of the two, of a user's operation */
    void *context;
};

/* The predefined operation of an ABI handle value (0x21...0x3d), or NULL. */
const struct tb_op *tb_op_predefined(uintptr_t handle);
/* That of an enum tb_op_code, as frames name it, or NULL. */
const struct tb_op *tb_op_of_code(unsigned code);

/* A user's operation with one holder; give one function and NULL for the other. `context` belongs to the caller and
 * must outlive the operation. */
int tb_op_create(tb_op_function *function, tb_op_function_large *large, void *context, bool commutative,
                 const struct tb_op **op);
void tb_op_hold(const struct tb_op *op); /* one holder more; nothing if predefined */
void tb_op_drop(const struct tb_op *op); /* one less; the last one frees it */

/* 0 if `op` may be used on items of `type`, as users' operations always may. Otherwise TB_ERR_ARGUMENT if the standard
 * does not allow it, TB_ERR_UNSUPPORTED if this machine has no such numbers; the story names operation and type. */
int tb_op_check(const struct tb_op *op, const struct tb_type *type);
/* Whether the order of operands and of what is combined first changes no bit of the result: predefined operations on
 * integers and truth values. */
bool tb_op_is_exact(const struct tb_op *op, const struct tb_type *type);
/* Whether the result depends on char having a sign, which not all machines give it. */
bool tb_op_orders_chars(const struct tb_op *op, const struct tb_type *type);
/* What carries out a predefined operation; NULL with the same stories. */
tb_op_loop *tb_op_kernel(const struct tb_op *op, const struct tb_type *type);
tb_op_loop3 *tb_op_kernel3(const struct tb_op *op, const struct tb_type *type);
/* inout = in op inout for `count` items, whatever the operation. Errors as tb_op_check, before anything is touched. */
int tb_op_apply(const struct tb_op *op, const void *in, void *inout, uint64_t count, const struct tb_type *type);

#endif
