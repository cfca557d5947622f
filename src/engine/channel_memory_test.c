/* Channels that cannot be opened for want of memory: of every allocation on the way, the test lets one fail. */
#define RANKS            2
#define MORE_THAN_BOARDS 100u

#include "base/failing_memory_test.h"
#include "engine/host_test.h"

#include <stdlib.h>

/* ---- opening ----------------------------------------------------------------------------------------------------- */

static uint64_t context_of(uint32_t counter)
{
    return tb_context_make(1, counter, TB_PLANE_POINT);
}

/* Process 0 opens a channel whose ranks are in the other order, so that there is more to allocate. */
static int open_at(struct host *h, uint32_t process, uint64_t context, struct tb_channel **channel)
{
    static const uint32_t procs[RANKS] = {1, 0};
    struct tb_channel_config c = {
        .context = context, .size = RANKS, .rank = 1 - process, .procs = procs, .common = true};
    return tb_channel_open(h->engines[process], &c, channel);
}

/* A message that waits for an answer: to process 0, before or after it failed to open the channel. */
static void send_to(struct tb_channel *channel, struct tb_request *r)
{
    static char byte;
    struct tb_buffer b = {&byte, 1, &tb_type_byte};
    r->complete = NULL;
    tb_send_post(channel, r, &b, 1, 7, TB_MODE_SYNCHRONOUS);
}

/* Process 0 fails at its nth allocation while process 1 has the channel. False: there are not so many. */
static bool fails_at(struct host *h, uint32_t nth, uint64_t context, bool early)
{
    struct tb_channel *zero = NULL, *one = NULL;
    struct tb_request r;
    tb_engine_claim(h->engines[1], context, false);
    assert_int_equal(open_at(h, 1, context, &one), TB_OK);
    assert_true(tb_channel_meets(one)); /* no board was lost before */
    if (early) {
        send_to(one, &r);
        host_settle(h);
        assert_false(tb_request_done(&r));
    }
    countdown = nth;
    int error = open_at(h, 0, context, &zero);
    bool failed = countdown == 0;
    countdown = 0;
    assert_int_equal(error, failed ? TB_ERR_MEMORY : TB_OK);
    if (failed) {
        assert_non_null(strstr(tb_error_story(), "no memory"));
        if (!early)
            send_to(one, &r);
        host_settle(h);
        assert_true(tb_request_done(&r)); /* it was told that nobody will take it */
        assert_null(tb_contexts_find(&h->engines[0]->contexts, context));
    } else if (early) {
        char byte;
        struct tb_buffer b = {&byte, 1, &tb_type_byte};
        struct tb_request taken = {.complete = NULL};
        tb_receive_post(zero, &taken, &b, 0, 7, UINT64_MAX);
        host_settle(h);
        assert_true(tb_request_done(&taken) && tb_request_done(&r));
    }
    if (zero != NULL)
        tb_channel_close(zero);
    tb_channel_close(one);
    return failed;
}

static void memory_that_fails_leaves_nothing_behind(void **state)
{
    struct host h;
    uint32_t counter = TB_CONTEXT_FIRST;
    host_open(&h, RANKS);
    for (int early = 0; early < 2; early++) {
        uint32_t nth = 1;
        while (fails_at(&h, nth, context_of(counter++), early))
            assert_true(++nth < 100);
        assert_true(nth > 3); /* the channel, its processes, its board, and contexts unless messages made them */
        for (uint32_t again = 0; again < MORE_THAN_BOARDS; again++)
            // NOLINTNEXTLINE(clang-analyzer-core.DivideZero): it is more than 3
            fails_at(&h, 1 + again % (nth - 1), context_of(counter++), early);
    }
    host_close(&h);
}

/* What is prepared needs nothing more: every allocation fails from then on. */
static void a_prepared_channel_needs_no_memory(void **state)
{
    static const uint32_t procs[RANKS] = {1, 0};
    struct host h;
    struct tb_channel *channels[RANKS] = {NULL};
    uint64_t context = context_of(TB_CONTEXT_FIRST + 5);
    host_open(&h, RANKS);
    tb_engine_claim(h.engines[1], context, false);
    for (uint32_t process = 0; process < RANKS; process++) {
        struct tb_channel_config c = {.size = RANKS, .rank = 1 - process, .procs = procs, .common = true};
        assert_int_equal(tb_channel_prepare(h.engines[process], &c, &channels[process]), TB_OK);
        c.context = context;
        countdown = 1;
        tb_channel_enter(channels[process], &c);
        assert_non_null(tb_channel_control(channels[process]));
        assert_true(countdown == 1 && tb_channel_meets(channels[process]));
        countdown = 0;
    }
    for (uint32_t process = 0; process < RANKS; process++)
        tb_channel_close(channels[process]);
    host_close(&h);
}

/* The ranks may turn out to be fewer, and one that is prepared may never be needed. */
static void a_prepared_channel_can_be_narrowed_or_left(void **state)
{
    static const uint32_t both[RANKS] = {0, 1}, one[1] = {1};
    const struct tb_channel_config room = {.size = RANKS, .rank = 1, .procs = both, .common = true};
    struct tb_channel_config narrow = {.size = 1, .procs = one, .common = true};
    struct host h;
    host_open(&h, RANKS);
    for (uint32_t i = 0; i < MORE_THAN_BOARDS; i++) {
        struct tb_channel *used = NULL, *left = NULL;
        narrow.context = context_of(TB_CONTEXT_FIRST + i);
        tb_engine_claim(h.engines[1], narrow.context, false);
        assert_int_equal(tb_channel_prepare(h.engines[1], &room, &used), TB_OK);
        assert_int_equal(tb_channel_prepare(h.engines[1], &room, &left), TB_OK);
        tb_channel_enter(used, &narrow);
        assert_int_equal(tb_channel_size(used), 1);
        assert_int_equal(tb_channel_rank(used), 0);
        assert_false(tb_channel_meets(used));
        tb_channel_close(used);
        tb_channel_close(left);
    }
    bool failed = fails_at(&h, MORE_THAN_BOARDS, context_of(TB_CONTEXT_FIRST + MORE_THAN_BOARDS), false);
    assert_false(failed); /* it was opened, and there was a board for it */
    host_close(&h);
}

/* A message of a communicator that is not known here yet comes while there is no memory: it is kept. */
static void what_comes_early_is_kept_without_memory(void **state)
{
    struct host h;
    host_open(&h, RANKS);
    for (uint32_t i = 0; i < MORE_THAN_BOARDS; i++) {
        uint64_t context = context_of(TB_CONTEXT_FIRST + i);
        struct tb_channel *zero = NULL, *one = NULL;
        struct tb_request sent, taken = {.complete = NULL};
        char byte;
        struct tb_buffer b = {&byte, 1, &tb_type_byte};
        assert_int_equal(open_at(&h, 1, context, &one), TB_OK);
        send_to(one, &sent);
        countdown = i > 0; /* at first they get to know each other */
        host_settle(&h);
        assert_int_equal(countdown, 0);
        assert_non_null(tb_contexts_find(&h.engines[0]->contexts, context));
        assert_int_equal(open_at(&h, 0, context, &zero), TB_OK);
        tb_receive_post(zero, &taken, &b, 0, 7, UINT64_MAX);
        host_settle(&h);
        assert_true(tb_request_done(&taken) && tb_request_done(&sent));
        assert_int_equal(taken.status.error, TB_OK);
        tb_channel_close(zero);
        tb_channel_close(one);
        /* The reserve is filled again by the next that comes while there is memory. */
        assert_true(tb_contexts_reserve(&h.engines[0]->contexts, TB_CONTEXTS_RESERVE));
    }
    host_close(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(memory_that_fails_leaves_nothing_behind),
                                       cmocka_unit_test(a_prepared_channel_needs_no_memory),
                                       cmocka_unit_test(a_prepared_channel_can_be_narrowed_or_left),
                                       cmocka_unit_test(what_comes_early_is_kept_without_memory)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
