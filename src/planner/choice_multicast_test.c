/* Whether multicast is chosen: by what is predicted of it, by what it is worth to the job, and by how much it may be
 * used for. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "planner/choice.h"
#include "planner/plain_table_test.h"

#define SIZE 16u

static struct tb_choice choose(enum tb_operation operation, uint64_t bytes, bool multicast)
{
    const struct tb_group_shape *shape;
    struct tb_choice choice;
    assert_int_equal(tb_group_shape_even(&shape, SIZE, SIZE, multicast, plain_table()), TB_OK);
    struct tb_collective c = {.operation = operation,
                              .size = SIZE,
                              .rank = 3,
                              .elements = bytes,
                              .element_bytes = 1,
                              .commutative = true,
                              .shape = shape,
                              .costs = shape->table};
    assert_int_equal(tb_choice_make(&(struct tb_choice_facts){.shape = shape}, &c, &choice), TB_OK);
    assert_non_null(choice.best.algorithm);
    tb_group_shape_release(shape);
    return choice;
}

static struct tb_choice choose_with(const char *name, uint64_t value, enum tb_operation operation, uint64_t bytes)
{
    char text[32];
    snprintf(text, sizeof text, "%llu", (unsigned long long)value);
    assert_int_equal(tb_param_set(name, text, TB_PARAM_LAUNCHER), TB_OK);
    struct tb_choice choice = choose(operation, bytes, true);
    assert_int_equal(tb_param_load(), TB_OK);
    return choice;
}

static bool casts(struct tb_choice choice)
{
    return tb_algorithm_casts(choice.best.algorithm);
}

static const struct {
    enum tb_operation operation;
    uint64_t blocks; /* that travel together */
} calls[] = {{TB_OPERATION_BCAST, 1}, {TB_OPERATION_SCATTER, SIZE}, {TB_OPERATION_ALLGATHERV, SIZE}};

#define CALLS (sizeof calls / sizeof calls[0])
#define BYTES 64u

/* Its times are what they are, however much it counts. */
static void priority_decides(void **state)
{
    for (size_t i = 0; i < CALLS; i++) {
        enum tb_operation o = calls[i].operation;
        struct tb_choice plain = choose(o, BYTES, true), less = choose_with("mcast_priority", 1, o, BYTES);
        struct tb_choice more = choose_with("mcast_priority", 10000, o, BYTES), without = choose(o, BYTES, false);
        assert_true(casts(plain) && casts(more) && !casts(less) && !casts(without));
        assert_int_equal(more.best.time, plain.best.time);
        assert_int_equal(less.best.time, without.best.time);
        assert_true(less.best.algorithm == without.best.algorithm && less.best.time > plain.best.time);
        assert_true(plain.next.time > plain.best.time && more.next.time > more.best.time);
        /* It changes where both are worth the same. */
        uint64_t even = plain.best.time * 100 / less.best.time;
        assert_false(casts(choose_with("mcast_priority", even * 9 / 10, o, BYTES)));
        assert_true(casts(choose_with("mcast_priority", even * 11 / 10 + 1, o, BYTES)));
    }
    assert_false(casts(choose(TB_OPERATION_BARRIER, 0, true)));
    assert_true(casts(choose_with("mcast_priority", 1000, TB_OPERATION_BARRIER, 0)));
}

static void long_messages_are_left_to_others(void **state)
{
    for (size_t i = 0; i < CALLS; i++) {
        uint64_t all = BYTES * calls[i].blocks;
        assert_true(casts(choose_with("mcast_largest", all, calls[i].operation, BYTES)));
        assert_false(casts(choose_with("mcast_largest", all - 1, calls[i].operation, BYTES)));
        assert_false(casts(choose_with("mcast_largest", 1, calls[i].operation, BYTES)));
    }
}

static int setup(void **state)
{
    assert_int_equal(tb_param_load(), TB_OK);
    plain_table_make();
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(priority_decides),
                                       cmocka_unit_test(long_messages_are_left_to_others)};
    return cmocka_run_group_tests(tests, setup, NULL);
}
