/* Whom MPI_Abort is to end. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "job/job.h"

static void ranges_are_joined(void **state)
{
    static const uint32_t processes[] = {3, 4, 5, 9, 0, 1, 8};
    struct tb_abort_group group = {0};
    for (size_t i = 0; i < sizeof processes / sizeof processes[0]; i++)
        assert_true(tb_abort_group_add(&group, processes[i]));
    assert_int_equal(group.count, 4);
    for (uint32_t i = 0; i < 12; i++) {
        bool is_in = false;
        for (size_t k = 0; k < sizeof processes / sizeof processes[0]; k++)
            is_in = is_in || processes[k] == i;
        assert_int_equal(tb_abort_group_has(&group, i), is_in);
    }
    assert_false(tb_abort_group_has(&group, UINT32_MAX));
}

static void too_many_are_none(void **state)
{
    struct tb_abort_group group = {0};
    for (uint32_t i = 0; i < TB_ABORT_RANGES; i++)
        assert_true(tb_abort_group_add(&group, 2 * i));
    assert_false(tb_abort_group_add(&group, 2 * TB_ABORT_RANGES));
    assert_int_equal(group.count, 0);
    assert_false(tb_abort_group_has(&group, 0));
}

/* Whatever is cut off, or says more than there can be, is an error. */
static void it_travels(void **state)
{
    struct tb_abort_group group = {0}, got;
    struct tb_writer w;
    for (uint32_t i = 0; i < TB_ABORT_RANGES; i++)
        tb_abort_group_add(&group, 2 * i);
    tb_writer_open(&w);
    tb_abort_group_put(&w, &group);
    for (size_t length = 0; length <= w.length; length++) {
        struct tb_reader r;
        tb_reader_open(&r, w.bytes, length);
        tb_abort_group_get(&r, &got);
        assert_int_equal(r.error == TB_OK, length == w.length);
    }
    assert_int_equal(got.count, group.count);
    assert_memory_equal(got.ranges, group.ranges, sizeof group.ranges);
    tb_writer_close(&w);
    tb_writer_open(&w);
    tb_put_u32(&w, TB_ABORT_RANGES + 1);
    for (uint32_t i = 0; i < 2 * (TB_ABORT_RANGES + 1); i++)
        tb_put_u32(&w, i);
    struct tb_reader r;
    tb_reader_open(&r, w.bytes, w.length);
    tb_abort_group_get(&r, &got);
    assert_int_not_equal(r.error, TB_OK);
    assert_int_equal(got.count, 0);
    tb_writer_close(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(ranges_are_joined), cmocka_unit_test(too_many_are_none),
                                       cmocka_unit_test(it_travels)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
