/* Trays: what was put in comes out in order, whole, once; also while more is put in. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "base/base.h"
#include "engine/tray.h"

static void put(struct tb_tray *tray, uint32_t number, size_t bytes)
{
    struct tb_tray_item *item = tb_tray_add(tray, bytes, 100);
    assert_non_null(item);
    assert_int_equal((uintptr_t)item % 16, 0);
    item->kind = TB_TRAY_FRAME;
    item->token = number;
    item->length = bytes;
    memset(item + 1, (int)(number & 0xff), bytes);
}

static uint32_t check(const struct tb_tray *tray, uint32_t first)
{
    const struct tb_tray_item *item;
    size_t at = 0;
    while ((item = tb_tray_next(tray, &at)) != NULL) {
        const unsigned char *bytes = tb_tray_behind(item);
        assert_int_equal(item->token, first);
        for (uint64_t i = 0; i < item->length; i++)
            assert_int_equal(bytes[i], first & 0xff);
        first++;
    }
    return first;
}

static void in_order_and_once(void **state)
{
    struct tb_tray tray = {.used = 0}, taken = {.used = 0};
    struct tb_random random;
    uint32_t in = 0, out = 0;
    tb_random_seed(&random, 11);
    for (int round = 0; round < 300; round++) {
        for (uint64_t n = tb_random_below(&random, 40); n > 0; n--)
            put(&tray, in++, tb_random_below(&random, round % 50 == 0 ? 100000 : 300));
        tb_tray_take(&tray, &taken);
        assert_int_equal(tray.used, 0);
        put(&tray, in++, 8);
        out = check(&taken, out);
        assert_int_equal(out, in - 1);
        tb_tray_clear(&taken);
        assert_true(taken.room <= 1u << 20);
        size_t at = 0;
        assert_null(tb_tray_next(&taken, &at));
    }
    tb_tray_take(&tray, &taken);
    assert_int_equal(check(&taken, out), in);
    tb_tray_close(&tray);
    tb_tray_close(&taken);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(in_order_and_once)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
