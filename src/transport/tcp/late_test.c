/* tcp: connections that come when there is no memory for them. Of every allocation on the way, the test lets one fail.
 */
#include "base/failing_memory_test.h"
#include "transport/tcp/tcp_test.h"

#include <unistd.h>

/* Our end comes while the nth allocation fails, after the other side has written to its own. False: there are not so
 * many. */
static bool comes_without(uint32_t nth)
{
    int ends[2];
    setup(NULL);
    socket_pair(ends, 0);
    assert_int_equal(tb_transport_tcp.adopt(a.transport, b.self, TB_STREAM_SHORT, ends[0]), TB_OK);
    assert_int_equal(send_plain(&a, TB_STREAM_SHORT, "early", 5, 1, NULL), TB_OK);
    countdown = nth;
    assert_int_equal(tb_transport_tcp.adopt(b.transport, a.self, TB_STREAM_SHORT, ends[1]), TB_OK);
    bool failed = countdown == 0;
    countdown = 0;
    uint64_t next = tb_transport_tcp.deadline(b.transport);
    assert_true(failed ? next < tb_clock_now_real() + UINT64_C(1000000000) : next == TB_NEVER);
    if (failed) { /* memory is still short: it goes on waiting */
        countdown = 1;
        side_poll(&b);
        countdown = 0;
        assert_int_equal(b.frames + b.broken, 0);
    }
    poll_until(&b.frames, 1);
    assert_true(tb_transport_tcp.deadline(b.transport) == TB_NEVER);
    assert_int_equal(send_plain(&b, TB_STREAM_SHORT, "answer", 6, 1, NULL), TB_OK);
    poll_until(&a.frames, 1);
    assert_int_equal(a.broken + b.broken, 0);
    teardown(NULL);
    return failed;
}

static void none_is_lost(void **state)
{
    uint32_t nth = 1;
    while (nth < 50 && comes_without(nth))
        nth++;
    assert_in_range(nth, 2, 49);
}

/* As many as may wait do, the next one is refused with its reason, and all of them are closed at the end. */
static void only_so_many_wait(void **state)
{
    int ends[20][2];
    char byte;
    setup(NULL);
    for (int i = 0; i < 20; i++) {
        socket_pair(ends[i], 0);
        countdown = 1;
        int error = tb_transport_tcp.adopt(b.transport, a.self, TB_STREAM_SHORT, ends[i][1]);
        countdown = 0;
        assert_int_equal(error, i < 16 ? TB_OK : TB_ERR_MEMORY);
        if (i >= 16)
            assert_int_equal(read(ends[i][0], &byte, 1), 0);
    }
    teardown(NULL);
    for (int i = 0; i < 20; i++) {
        assert_int_equal(read(ends[i][0], &byte, 1), 0);
        close(ends[i][0]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(none_is_lost),
        cmocka_unit_test(only_so_many_wait),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
