/* Memory for early messages when there is none: what it gives, and that nobody is lost for want of it. */
#include "engine/spare.h"

#include "base/failing_memory_test.h"
#include "engine/message_test.h"

#include <stdlib.h>

#define EARLY   100 /* more than arrivals that are allocated together */
#define AT_MOST 50  /* allocations of the receiver while they come */

static void what_it_has_is_given_once(void **state)
{
    struct tb_spare spare;
    assert_true(tb_spare_open(&spare));
    for (int round = 0; round < 3; round++) {
        char *a = tb_spare_take(&spare, 1), *b = tb_spare_take(&spare, TB_SPARE_BYTES - 64), *c = malloc(100);
        assert_true(a != NULL && b != NULL && (uintptr_t)b % alignof(max_align_t) == 0);
        memset(a, 1, 1);
        memset(b, 2, TB_SPARE_BYTES - 64);
        assert_int_equal(a[0], 1);
        assert_null(tb_spare_take(&spare, 64));
        assert_null(tb_spare_take(&spare, UINT64_MAX));
        tb_spare_free(&spare, c); /* it was not from here */
        tb_spare_free(&spare, NULL);
        tb_spare_free(&spare, a);
        assert_null(tb_spare_take(&spare, 64)); /* only when all is back */
        tb_spare_free(&spare, b);
    }
    char *all = tb_spare_take(&spare, TB_SPARE_BYTES);
    assert_non_null(all);
    assert_null(tb_spare_take(&spare, 1));
    tb_spare_free(&spare, all);
    tb_spare_close(&spare);
}

/* Short messages and long ones that were not asked for come early while the nth allocation fails, then are received.
 * False: there are not so many. */
static bool comes_without_memory(uint32_t nth)
{
    static struct loop_net net;
    struct tb_request sends[EARLY], r;
    loop_net_init(&net, 2);
    tb_param.eager_memory = tb_param.ahead_memory = 16 << 20;
    net.remote = true;
    loop_net_open(&net, false);
    fill(out, BIG, nth);
    post_receive(&net, &r, 1, 0, 0, EXACT, BIG);
    post_send(&net, &sends[0], 0, 1, 0, 1, TB_MODE_STANDARD); /* they know each other */
    loop_net_settle(&net);
    for (uint32_t i = 0; i < EARLY; i++)
        post_send(&net, &sends[i], 0, 1, i, i % 10 == 0 ? 20000 : 100 + i, TB_MODE_STANDARD);
    countdown = nth;
    loop_net_settle(&net);
    bool failed = countdown == 0;
    countdown = 0;
    loop_net_settle(&net);
    assert_true(count_of(&net, 1).unexpected == EARLY);
    for (uint32_t i = EARLY; i-- > 0;) {
        post_receive(&net, &r, 1, 0, i, EXACT, BIG);
        loop_net_settle(&net);
        check_received(&r, 0, i, i % 10 == 0 ? 20000 : 100 + i);
        assert_true(tb_request_done(&sends[i]));
    }
    assert_true(net.engines[1]->arrivals.spare.out == 0 && net.engines[1]->arrivals.spare.used == 0);
    loop_net_close(&net);
    return failed;
}

static void nobody_is_lost(void **state)
{
    uint32_t nth = 1;
    while (comes_without_memory(nth))
        assert_true(++nth < EARLY + AT_MOST);
    assert_true(nth > 50); /* messages of more than 128 bytes, at least */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_it_has_is_given_once),
        cmocka_unit_test(nobody_is_lost),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
