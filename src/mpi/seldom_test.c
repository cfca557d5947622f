/* Lines that others can cause. */
#include "mpi/seldom.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void lines_come_seldom(void **state)
{
    struct tb_seldom seldom = {0};
    uint32_t left_out = 9;
    const uint64_t start = 1000;
    assert_true(tb_seldom_may(&seldom, start, &left_out));
    assert_int_equal(left_out, 0);
    for (uint64_t i = 0; i < 5; i++)
        assert_false(tb_seldom_may(&seldom, start + i * TB_SELDOM_NS / 5, &left_out));
    assert_true(tb_seldom_may(&seldom, start + TB_SELDOM_NS, &left_out));
    assert_int_equal(left_out, 5);
    assert_false(tb_seldom_may(&seldom, start + TB_SELDOM_NS + 1, &left_out));
    assert_true(tb_seldom_may(&seldom, start + 3 * TB_SELDOM_NS, &left_out));
    assert_int_equal(left_out, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(lines_come_seldom)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
