/* What is refused because no memory is there: what files of the kernel say is understood, whatever is missing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "engine/window_room.h"

static void available_memory_is_read(void **state)
{
    assert_int_equal(tb_window_room_available("MemTotal:  9000 kB\nMemFree:  10 kB\nMemAvailable:   2000 kB\n"
                                              "SwapTotal: 500 kB\nSwapFree:     3 kB\n"),
                     2003 * 1024);
    assert_int_equal(tb_window_room_available("MemAvailable: 7 kB\n"), 7 * 1024);
    assert_int_equal(tb_window_room_available("MemFree: 7 kB\nSwapFree: 3 kB\n"), UINT64_MAX);
    assert_int_equal(tb_window_room_available(""), UINT64_MAX);
    assert_int_equal(tb_window_room_available("MemAvailable: 18446744073709551615 kB\n"), UINT64_MAX);
    assert_int_equal(tb_window_room_available("MemAvailable: none\n"), UINT64_MAX);
}

static void limits_are_read(void **state)
{
    assert_int_equal(tb_window_room_limit("123456\n"), 123456);
    assert_int_equal(tb_window_room_limit("max\n"), UINT64_MAX);
    assert_int_equal(tb_window_room_limit(""), UINT64_MAX);
}

static void no_host_has_everything(void **state)
{
    assert_true(tb_window_room_has(0));
    assert_true(tb_window_room_has(UINT64_C(17) << 20)); /* whatever a machine that runs tests may have */
    assert_false(tb_window_room_has(UINT64_C(1) << 60));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(available_memory_is_read),
        cmocka_unit_test(limits_are_read),
        cmocka_unit_test(no_host_has_everything),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
