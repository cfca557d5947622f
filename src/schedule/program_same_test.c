/* Programs that do the same, and those that differ in one thing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "schedule/schedule.h"

#define WAYS 15

/* A program of a few steps; in each way but the first something of it is different. */
static struct tb_program *make(int way)
{
    const struct tb_contract contract = {TB_COMPOSITE_REDUCE, TB_DRIVER_COMMON, way == 1 ? 2 : 1, 1};
    const uint32_t members[] = {0, 2, way == 2 ? 5 : 4}, pieces[] = {1, 0, way == 3 ? 2 : 3};
    struct tb_slice in = {.symbol = TB_SYMBOL_IN, .stride = 1, .count = 4};
    struct tb_slice work = {.symbol = TB_SYMBOL_WORK, .stride = 1, .count = 3};
    struct tb_slice out = {.symbol = TB_SYMBOL_OUT, .first = way == 4 ? 1 : 0, .stride = 1, .count = 3};
    struct tb_builder b;
    struct tb_program *program;
    tb_builder_open(&b, way == 5 ? 5 : 4);
    uint32_t come = tb_builder_receive(&b, way == 6 ? 2 : 1, way == 7 ? 1 : 0, work);
    uint32_t copied = tb_builder_copy(&b, tb_builder_list(&b, TB_SYMBOL_IN, pieces, 3), out);
    if (way != 8)
        tb_builder_after_lag(&b, come, way == 9 ? 2 : 1);
    tb_builder_send(&b, 3, 0, in);
    tb_builder_pipeline(&b, way == 10 ? 1 : 2);
    if (way != 11)
        tb_builder_cut(&b, 2);
    tb_builder_after(&b, way == 12 ? come : copied);
    tb_builder_composite(&b, &contract, way == 13 ? 2 : 0, in, work);
    tb_builder_members(&b, members, 3);
    if (way == 14)
        tb_builder_whole(&b);
    assert_int_equal(tb_builder_finish(&b, &program), TB_OK);
    return program;
}

static void whatever_differs_is_seen(void **state)
{
    struct tb_program *first = make(0);
    for (int way = 0; way < WAYS; way++) {
        struct tb_program *other = make(way);
        assert_int_equal(tb_program_same(first, other), way == 0);
        assert_int_equal(tb_program_same(other, first), way == 0);
        tb_program_free(other);
    }
    tb_program_free(first);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(whatever_differs_is_seen)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
