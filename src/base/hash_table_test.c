/* Hash tables: what is added is found, in its order where hashes are the same, however often the table grows. */
#include "base/base.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

static void an_empty_one_has_nothing(void **state)
{
    struct tb_hash_table table = {0};
    uint32_t at = 7;
    assert_int_equal(tb_hash_table_next(&table, 7, &at), TB_HASH_NONE);
    tb_hash_table_close(&table);
}

static void the_same_hash_keeps_its_order(void **state)
{
    struct tb_hash_table table = {0};
    /* Runs wrap around the end of the table, whatever its size. */
    for (uint32_t i = 0; i < 3000; i++)
        assert_int_equal(tb_hash_table_add(&table, i % 3 == 0 ? UINT32_MAX : UINT32_MAX - i, i), TB_OK);
    uint32_t at = UINT32_MAX;
    for (uint32_t i = 0; i < 3000; i += 3)
        assert_int_equal(tb_hash_table_next(&table, UINT32_MAX, &at), i);
    assert_int_equal(tb_hash_table_next(&table, UINT32_MAX, &at), TB_HASH_NONE);
    for (uint32_t i = 1; i < 3000; i += 3) {
        at = UINT32_MAX - i;
        assert_int_equal(tb_hash_table_next(&table, UINT32_MAX - i, &at), i);
        assert_int_equal(tb_hash_table_next(&table, UINT32_MAX - i, &at), TB_HASH_NONE);
    }
    tb_hash_table_close(&table);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_empty_one_has_nothing),
        cmocka_unit_test(the_same_hash_keeps_its_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
