/* Reduction operations of users: how their functions are called. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "data/data.h"

#include <limits.h>

struct call {
    unsigned calls;
    void *in[4], *inout[4];
    int64_t count[4];
    uintptr_t type;
};

static void note(struct call *call, void *in, void *inout, int64_t count, uintptr_t type)
{
    assert_true(call->calls < 4);
    call->in[call->calls] = in;
    call->inout[call->calls] = inout;
    call->count[call->calls++] = count;
    call->type = type;
}

static void note_small(void *context, void *in, void *inout, int count, uintptr_t type)
{
    note(context, in, inout, count, type);
}

static void note_large(void *context, void *in, void *inout, int64_t count, uintptr_t type)
{
    note(context, in, inout, count, type);
}

/* Joins digits: 12 then 3 is 123. Not commutative. */
static void join(void *context, void *in, void *inout, int count, uintptr_t type)
{
    const int *first = in;
    int *second = inout;
    for (int i = 0; i < count; i++)
        second[i] += first[i] * 10;
    *(uintptr_t *)context = type;
}

static void test_user(void **state)
{
    uintptr_t type = 0;
    const struct tb_op *op;
    int in[] = {1, 2, 3}, inout[] = {4, 5, 6};
    assert_int_equal(tb_op_create(join, NULL, &type, false, &op), 0);
    assert_false(op->commutative);
    assert_false(op->one_sided);
    tb_op_hold(op);
    tb_op_drop(op);
    assert_int_equal(tb_op_check(op, tb_type_predefined(0x243)), 0); /* any type will do */
    assert_int_equal(tb_op_apply(op, in, inout, 2, tb_type_predefined(0x209)), 0);
    assert_true(inout[0] == 14 && inout[1] == 25 && inout[2] == 6);
    assert_int_equal(type, 0x209);
    type = 0;
    assert_int_equal(tb_op_apply(op, in, inout, 0, tb_type_predefined(0x209)), 0);
    assert_int_equal(type, 0); /* nothing to do, not called */
    tb_op_drop(op);
}

/* More items than an int counts: several calls of the plain form, one of the large form. Nothing is read there. */
static void test_user_large(void **state)
{
    struct tb_type type = {.size = 4, .extent = -24, .handle = 0x700001};
    uint64_t count = 2 * (uint64_t)INT_MAX + 5;
    char *in = (char *)((uintptr_t)1 << 46), *inout = in + ((uintptr_t)1 << 45);
    struct call call = {0};
    const struct tb_op *op;
    assert_int_equal(tb_op_create(note_small, NULL, &call, true, &op), 0);
    assert_true(op->commutative);
    assert_int_equal(tb_op_apply(op, in, inout, count, &type), 0);
    tb_op_drop(op);
    assert_int_equal(call.calls, 3);
    assert_int_equal(call.type, 0x700001);
    uint64_t done = 0;
    for (unsigned i = 0; i < 3; i++) {
        assert_ptr_equal(call.in[i], in - done * 24);
        assert_ptr_equal(call.inout[i], inout - done * 24);
        done += (uint64_t)call.count[i];
    }
    assert_int_equal(done, count);

    call = (struct call){0};
    assert_int_equal(tb_op_create(NULL, note_large, &call, true, &op), 0);
    assert_int_equal(tb_op_apply(op, in, inout, count, &type), 0);
    tb_op_drop(op);
    assert_int_equal(call.calls, 1);
    assert_int_equal(call.count[0], count);
    assert_int_equal(call.type, 0x700001);
}

/* Integers may be combined in any order, floating point numbers and what users do may not. */
static void test_exact(void **state)
{
    const struct tb_op *sum = tb_op_predefined(0x21), user = {.code = TB_OP_USER, .commutative = true};
    static const uintptr_t exact[] = {0x209, 0x20f, 0x219, 0x202, 0x240},
                           others[] = {0x210, 0x214, 0x220, 0x216, 0x22b};
    for (int i = 0; i < 5; i++) {
        assert_true(tb_op_is_exact(sum, tb_type_predefined(exact[i])));
        assert_false(tb_op_is_exact(sum, tb_type_predefined(others[i])));
        assert_false(tb_op_is_exact(&user, tb_type_predefined(exact[i])));
    }
    assert_true(tb_op_is_exact(tb_op_predefined(0x28), tb_type_predefined(0x247)));  /* BAND of bytes */
    assert_true(tb_op_is_exact(tb_op_predefined(0x30), tb_type_predefined(0x218)));  /* LAND of logicals */
    assert_false(tb_op_is_exact(tb_op_predefined(0x22), tb_type_predefined(0x214))); /* MIN of doubles: there are NaN */
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_user), cmocka_unit_test(test_user_large),
                                       cmocka_unit_test(test_exact)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
