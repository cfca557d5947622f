/* Which arguments of algorithms are tried. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "collectives/algorithms.h"

#define ARGUMENTS 64

static void candidates_are_a_series(void **state)
{
    struct tb_collective c = {.operation = TB_OPERATION_BCAST, .size = 9, .elements = 1000000, .element_bytes = 8};
    uint64_t values[ARGUMENTS], few[4];
    uint32_t count = tb_candidates_piece(&c, values, ARGUMENTS);
    assert_in_range(count, 12, 40);
    assert_int_equal(values[0], 8000000);
    for (uint32_t i = 1; i < count; i++)
        assert_true(values[i] < values[i - 1] && values[i] * 2 + 1 >= values[i - 1]);
    assert_int_equal(tb_candidates_piece(&c, few, 4), 4);
    assert_int_equal(few[0], 8000000);
    for (c.elements = 1; c.elements < 2000; c.elements += 13) { /* none is less than a packet, but for the whole */
        count = tb_candidates_piece(&c, values, ARGUMENTS);
        assert_int_equal(values[0], c.elements * 8);
        assert_int_equal(count > 1, c.elements * 8 >= 2 * 1448);
        assert_true(count == 1 || values[count - 1] >= 1448);
    }
    c.elements = 0;
    assert_int_equal(tb_candidates_piece(&c, values, ARGUMENTS), 1);
    assert_int_equal(values[0], 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(candidates_are_a_series)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
