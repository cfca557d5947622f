/* Point-to-point: protocols, credit, probes, cancelling. */
#include "engine/message_test.h"

/* Every length around the limits, posted before and after, in every mode. */
static void lengths_and_modes(void **state)
{
    static const uint64_t lengths[] = {0, 1, 127, 128, 129, 1023, 1024, 1025, 4095, 4096, 4097, 8192, 65537, BIG};
    for (int variant = 0; variant < 24; variant++) {
        struct loop_net net;
        loop_net_init(&net, 2);
        net.remote = variant >= 12;
        net.sim.again = variant % 2 * 30 * LOOP_PERCENT;
        net.sim.pending = variant % 2 * 30 * LOOP_PERCENT;
        bool remote_read = variant % 4 >= 2;
        net.sim.capabilities |= remote_read ? (unsigned)TB_CAP_REMOTE_READ : 0;
        net.sim.remote_minimum = 2000;
        net.sim.read_forbidden = variant % 12 >= 8;
        loop_net_open(&net, false);
        for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++)
            for (int mode = TB_MODE_STANDARD; mode <= TB_MODE_READY; mode++) {
                struct tb_request s, r;
                bool early = variant / 4 % 2 == 0;
                fill(out, lengths[i], (uint32_t)i);
                memset(in, 0, sizeof in);
                if (early)
                    post_receive(&net, &r, 1, 0, 5, EXACT, BIG);
                post_send(&net, &s, 0, 1, 5, lengths[i], (enum tb_mode)mode);
                loop_net_settle(&net);
                if (!early) {
                    if (mode == TB_MODE_SYNCHRONOUS)
                        assert_false(tb_request_done(&s));
                    post_receive(&net, &r, 1, 0, 5, EXACT, BIG);
                    loop_net_settle(&net);
                }
                assert_true(tb_request_done(&s));
                assert_int_equal(s.status.error, TB_OK);
                check_received(&r, 0, 5, lengths[i]);
            }
        struct tb_counters c = count_of(&net, 1);
        assert_int_equal(c.unexpected_bytes, 0);
        assert_int_equal(c.remote_reads > 0, remote_read && !net.sim.read_forbidden);
        loop_net_close(&net);
    }
}

static void a_longer_message_is_cut(void **state)
{
    static const uint64_t lengths[] = {2, 500, 5000, 50000};
    for (int variant = 0; variant < 4; variant++)
        for (size_t i = 0; i < 4; i++) {
            struct loop_net net;
            struct tb_request s, r;
            uint64_t room = i == 3 && variant >= 2 ? 0 : lengths[i] / 2;
            loop_net_init(&net, 2);
            net.sim.capabilities |= variant % 2 != 0 ? (unsigned)TB_CAP_REMOTE_READ : 0;
            net.sim.remote_minimum = 2000;
            loop_net_open(&net, false);
            fill(out, lengths[i], 3);
            memset(in, 99, sizeof in);
            if (variant >= 2)
                post_receive(&net, &r, 1, 0, 5, EXACT, room);
            post_send(&net, &s, 0, 1, 5, lengths[i], TB_MODE_STANDARD);
            loop_net_settle(&net);
            if (variant < 2)
                post_receive(&net, &r, 1, 0, 5, EXACT, room);
            loop_net_settle(&net);
            assert_true(tb_request_done(&s) && tb_request_done(&r));
            assert_int_equal(s.status.error, TB_OK);
            assert_int_equal(r.status.error, TB_ERR_TRUNCATE);
            assert_int_equal(r.status.bytes, room);
            assert_memory_equal(in, out, room);
            assert_int_equal(in[room], 99);
            tb_request_wait(&r);
            assert_non_null(strstr(tb_error_story(), "does not fit"));
            loop_net_close(&net);
        }
}

static void payload_memory_is_bounded(void **state)
{
    enum { COUNT = 10000 };
    struct loop_net net;
    static struct tb_request sends[COUNT];
    loop_net_init(&net, 2);
    tb_param.eager_memory = 512 << 10; /* half of it for each */
    loop_net_open(&net, false);
    fill(out, 1024, 0);
    for (int i = 0; i < COUNT; i++)
        post_send(&net, &sends[i], 0, 1, (uint64_t)i, 1024, TB_MODE_STANDARD);
    loop_net_settle(&net);
    struct tb_counters c = count_of(&net, 1);
    assert_int_equal(c.unexpected, COUNT);
    assert_in_range(c.unexpected_peak, 200 << 10, 256 << 10);
    for (int i = COUNT - 1; i >= 0; i--) {
        struct tb_request r;
        post_receive(&net, &r, 1, 0, (uint64_t)i, EXACT, BIG);
        loop_net_settle(&net);
        check_received(&r, 0, (uint64_t)i, 1024);
    }
    for (int i = 0; i < COUNT; i++)
        assert_true(tb_request_done(&sends[i]));
    c = count_of(&net, 1);
    assert_int_equal(c.unexpected_bytes, 0);
    assert_true(c.credits > 0);
    /* Credit is back: messages go at once again. */
    struct tb_request r;
    post_receive(&net, &r, 1, 0, 1, EXACT, BIG);
    uint64_t asked = count_of(&net, 0).rendezvous;
    struct tb_buffer b = bytes_of(out, 1000);
    assert_int_equal(tb_send_now(net.channels[0], &b, 1, 1, TB_MODE_STANDARD), TB_OK);
    loop_net_settle(&net);
    assert_true(tb_request_done(&r));
    assert_int_equal(count_of(&net, 0).rendezvous, asked);
    loop_net_close(&net);
}

static void send_now_never_waits(void **state)
{
    struct loop_net net;
    struct tb_request s, r;
    loop_net_init(&net, 2);
    loop_net_open(&net, false);
    struct tb_buffer small = bytes_of(out, 8), large = bytes_of(out, 5000);
    /* The first message to a peer finds out how to reach it, so it is posted. */
    assert_int_equal(tb_send_now(net.channels[0], &small, 1, 1, TB_MODE_STANDARD), TB_AGAIN);
    post_send(&net, &s, 0, 1, 1, 8, TB_MODE_STANDARD);
    assert_int_equal(tb_send_now(net.channels[0], &small, 1, 1, TB_MODE_STANDARD), TB_OK);
    assert_int_equal(tb_send_now(net.channels[0], &large, 1, 1, TB_MODE_STANDARD), TB_AGAIN);
    assert_int_equal(tb_send_now(net.channels[0], &small, 1, 1, TB_MODE_SYNCHRONOUS), TB_AGAIN);
    net.sim.again = TB_SIM_MILLION;
    post_send(&net, &s, 0, 1, 2, 8, TB_MODE_STANDARD);
    net.sim.again = 0;
    assert_int_equal(tb_send_now(net.channels[0], &small, 1, 2, TB_MODE_STANDARD), TB_AGAIN); /* not past the other */
    for (int i = 0; i < 3; i++) {
        loop_net_settle(&net);
        post_receive(&net, &r, 1, 0, i < 2 ? 1 : 2, EXACT, 8);
        loop_net_settle(&net);
        assert_true(tb_request_done(&r));
    }
    loop_net_close(&net);
}

static void ordinary_probes(void **state)
{
    struct loop_net net;
    struct tb_request s, s2, r;
    struct tb_status status;
    struct tb_arrival *first = NULL;
    loop_net_init(&net, 3);
    loop_net_open(&net, false);
    assert_int_equal(tb_probe(net.channels[1], TB_ANY_RANK, 0, 0, &status, NULL), TB_AGAIN);
    fill(out, BIG, 1);
    post_send(&net, &s, 0, 1, 5, 100, TB_MODE_STANDARD);
    post_send(&net, &s2, 2, 1, 6, 20000, TB_MODE_STANDARD);
    assert_int_equal(tb_probe(net.channels[1], 2, 0, 0, &status, NULL), TB_OK);
    assert_int_equal(status.bytes, 20000);
    assert_int_equal(status.match, 6);
    assert_int_equal(tb_probe(net.channels[1], 0, 6, EXACT, &status, NULL), TB_AGAIN);
    assert_int_equal(tb_probe(net.channels[1], TB_ANY_RANK, 0, 0, &status, NULL), TB_OK);
    assert_int_equal(status.source, 0);
    /* A matched probe takes it out of matching. */
    assert_int_equal(tb_probe(net.channels[1], TB_ANY_RANK, 0, 0, &status, &first), TB_OK);
    post_receive(&net, &r, 1, TB_ANY_RANK, 0, 0, BIG);
    loop_net_settle(&net);
    check_received(&r, 2, 6, 20000);
    struct tb_buffer b = bytes_of(in, BIG);
    tb_receive_arrival(net.channels[1], &r, &b, first);
    loop_net_settle(&net);
    check_received(&r, 0, 5, 100);
    assert_true(tb_request_done(&s) && tb_request_done(&s2));
    /* The same with one that is only announced. */
    post_send(&net, &s, 0, 1, 5, 30000, TB_MODE_SYNCHRONOUS);
    loop_net_settle(&net);
    assert_int_equal(tb_probe_wait(net.channels[1], 0, 5, EXACT, &status, &first, NULL), TB_OK);
    assert_int_equal(tb_probe(net.channels[1], TB_ANY_RANK, 0, 0, &status, NULL), TB_AGAIN);
    tb_receive_arrival(net.channels[1], &r, &b, first);
    loop_net_settle(&net);
    check_received(&r, 0, 5, 30000);
    assert_true(tb_request_done(&s));
    loop_net_close(&net);
}

static void cancelling_receives(void **state)
{
    struct loop_net net;
    struct tb_request r, wild, s;
    loop_net_init(&net, 2);
    loop_net_open(&net, false);
    post_receive(&net, &r, 1, 0, 5, EXACT, 10);
    post_receive(&net, &wild, 1, TB_ANY_RANK, 0, 0, 10);
    tb_request_cancel(&r);
    tb_request_cancel(&wild);
    assert_true(tb_request_done(&r) && r.status.cancelled);
    assert_true(tb_request_done(&wild) && wild.status.cancelled);
    /* It gets nothing any more; a matched one cannot be cancelled. */
    post_receive(&net, &r, 1, 0, 5, EXACT, BIG);
    post_send(&net, &s, 0, 1, 5, 9000, TB_MODE_STANDARD);
    fill(out, 9000, 2);
    tb_engine_progress(net.engines[1]);
    tb_request_cancel(&r);
    loop_net_settle(&net);
    check_received(&r, 0, 5, 9000);
    assert_false(r.status.cancelled);
    loop_net_close(&net);
}

static void cancelling_sends(void **state)
{
    for (int variant = 0; variant < 16; variant++) {
        uint64_t length = variant % 2 != 0 ? 9000 : 50;
        bool late = variant % 4 >= 2, self = variant % 8 >= 4;
        enum tb_mode mode = variant >= 8 ? TB_MODE_SYNCHRONOUS : TB_MODE_STANDARD;
        struct loop_net net;
        struct tb_request s, r, other;
        uint32_t to = self ? 0 : 1;
        loop_net_init(&net, 2);
        loop_net_open(&net, false);
        fill(out, BIG, 4);
        post_send(&net, &s, 0, to, 5, length, mode);
        loop_net_settle(&net);
        if (late)
            post_receive(&net, &r, to, 0, 5, EXACT, BIG);
        if (late)
            loop_net_settle(&net);
        tb_request_cancel(&s);
        loop_net_settle(&net);
        assert_true(tb_request_done(&s));
        assert_int_equal(s.status.cancelled, !late);
        if (late)
            check_received(&r, 0, 5, length);
        /* What was cancelled is gone, and the next one is received. */
        if (!late)
            post_receive(&net, &r, to, 0, 5, EXACT, BIG);
        loop_net_settle(&net);
        post_send(&net, &other, 0, to, late ? 6 : 5, 77, TB_MODE_STANDARD);
        if (late)
            post_receive(&net, &r, to, 0, 6, EXACT, BIG);
        loop_net_settle(&net);
        check_received(&r, 0, late ? 6 : 5, 77);
        assert_int_equal(count_of(&net, to).unexpected_bytes, 0);
        loop_net_close(&net);
    }
}

static void cancelling_before_it_left(void **state)
{
    struct loop_net net;
    struct tb_request s;
    loop_net_init(&net, 2);
    net.sim.again = TB_SIM_MILLION;
    loop_net_open(&net, false);
    post_send(&net, &s, 0, 1, 5, 10, TB_MODE_STANDARD);
    assert_false(tb_request_done(&s));
    tb_request_cancel(&s);
    assert_true(tb_request_done(&s) && s.status.cancelled);
    net.sim.again = 0;
    loop_net_settle(&net);
    assert_int_equal(net.sim.kinds[TB_KIND_EAGER], 0);
    loop_net_close(&net);
}

static void to_oneself(void **state)
{
    struct loop_net net;
    struct tb_request s, r;
    static const uint64_t lengths[] = {0, 1, 128, 129, 16384, 16385, BIG};
    loop_net_init(&net, 1);
    tb_param.eager_memory = 256 << 10;
    loop_net_open(&net, false);
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++)
        for (int variant = 0; variant < 4; variant++) {
            enum tb_mode mode = variant >= 2 ? TB_MODE_SYNCHRONOUS : TB_MODE_STANDARD;
            fill(out, lengths[i], (uint32_t)i);
            memset(in, 0, sizeof in);
            if (variant % 2 == 0)
                post_receive(&net, &r, 0, 0, 9, EXACT, BIG);
            post_send(&net, &s, 0, 0, 9, lengths[i], mode);
            if (variant % 2 != 0) {
                assert_int_equal(tb_request_done(&s), variant == 1 && lengths[i] <= 16384);
                post_receive(&net, &r, 0, TB_ANY_RANK, 0, 0, BIG);
            }
            assert_true(tb_request_done(&s));
            check_received(&r, 0, 9, lengths[i]);
        }
    post_send(&net, &s, 0, 0, 9, 40000, TB_MODE_STANDARD);
    post_receive(&net, &r, 0, 0, 9, EXACT, 100);
    assert_true(tb_request_done(&s) && tb_request_done(&r));
    assert_int_equal(r.status.error, TB_ERR_TRUNCATE);
    /* The first byte of an int, in the plane of the program's own messages, is no int. */
    struct tb_buffer ints = {.base = in, .count = 3, .type = tb_type_predefined(0x209)};
    for (uint64_t length = 0; length <= 12; length++) {
        post_send(&net, &s, 0, 0, 9, length, TB_MODE_STANDARD);
        r.complete = NULL;
        tb_receive_post(net.channels[0], &r, &ints, 0, 9, EXACT);
        assert_true(tb_request_done(&s) && tb_request_done(&r));
        assert_int_equal(r.status.error, length % 4 == 0 ? TB_OK : TB_ERR_PARTIAL);
        assert_int_equal(r.status.bytes, length);
    }
    /* Kept payload is bounded here too. */
    struct tb_buffer b = bytes_of(out, 16384);
    int kept = 0;
    while (kept < 1000 && tb_send_now(net.channels[0], &b, 0, 1, TB_MODE_STANDARD) == TB_OK)
        kept++;
    assert_int_equal(kept, 16);
    tb_engine_flush(net.engines[0]);
    loop_net_close(&net);
}

static void requests_keep_their_channel(void **state)
{
    struct loop_net net;
    struct tb_request s, r;
    loop_net_init(&net, 2);
    loop_net_open(&net, false);
    post_receive(&net, &r, 1, 0, 3, EXACT, BIG);
    tb_channel_close(net.channels[1]);
    net.channels[1] = NULL;
    fill(out, 9000, 1);
    post_send(&net, &s, 0, 1, 3, 9000, TB_MODE_STANDARD);
    loop_net_settle(&net);
    check_received(&r, 0, 3, 9000);
    loop_net_close(&net);
}

/* A rank that a channel did not have when it was opened can send to it, and be sent to when there is room for it. */
static void a_channel_reaches_later_ones(void **state)
{
    struct loop_net net;
    struct tb_request s, r;
    struct tb_channel *few, *all;
    loop_net_init(&net, 3);
    loop_net_open(&net, false);
    struct tb_channel_config config = {.context = tb_context_make(0, 2, TB_PLANE_POINT), .size = 2, .rank = 0};
    assert_int_equal(tb_channel_open(net.engines[0], &config, &few), TB_OK);
    config.size = 3;
    config.rank = 2;
    assert_int_equal(tb_channel_open(net.engines[2], &config, &all), TB_OK);
    struct tb_buffer b = bytes_of(out, 9000), room = bytes_of(in, BIG);
    s.complete = r.complete = NULL;
    fill(out, 9000, 3);
    tb_send_post(all, &s, &b, 0, 4, TB_MODE_STANDARD);
    tb_receive_post(few, &r, &room, TB_ANY_RANK, 4, EXACT);
    loop_net_settle(&net);
    check_received(&r, 2, 4, 9000);
    assert_int_equal(tb_engine_reach(net.engines[0], 3), TB_OK);
    tb_receive_post(all, &r, &room, 0, 5, EXACT);
    tb_send_post(few, &s, &b, 2, 5, TB_MODE_STANDARD);
    loop_net_settle(&net);
    check_received(&r, 0, 5, 9000);
    assert_int_equal(tb_engine_reach(net.engines[0], 5000), TB_OK);
    assert_int_equal(tb_engine_reach(net.engines[0], 4), TB_OK);
    tb_receive_post(few, &r, &room, 4999, 6, EXACT);
    loop_net_settle(&net);
    assert_false(tb_request_done(&r));
    tb_request_cancel(&r);
    assert_true(tb_request_done(&r) && r.status.cancelled);
    tb_channel_close(few);
    tb_channel_close(all);
    loop_net_close(&net);
}

static void flush_waits_for_everything(void **state)
{
    struct loop_net net;
    struct tb_request s[50];
    loop_net_init(&net, 2);
    net.sim.again = 90 * LOOP_PERCENT;
    loop_net_open(&net, false);
    for (int i = 0; i < 50; i++)
        post_send(&net, &s[i], 0, 1, 3, 100, TB_MODE_STANDARD);
    tb_engine_flush(net.engines[0]);
    for (int i = 0; i < 50; i++)
        assert_true(tb_request_done(&s[i]));
    assert_int_equal(net.sim.kinds[TB_KIND_EAGER], 50);
    loop_net_close(&net);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lengths_and_modes),
        cmocka_unit_test(a_longer_message_is_cut),
        cmocka_unit_test(payload_memory_is_bounded),
        cmocka_unit_test(send_now_never_waits),
        cmocka_unit_test(ordinary_probes),
        cmocka_unit_test(cancelling_receives),
        cmocka_unit_test(cancelling_sends),
        cmocka_unit_test(cancelling_before_it_left),
        cmocka_unit_test(to_oneself),
        cmocka_unit_test(requests_keep_their_channel),
        cmocka_unit_test(a_channel_reaches_later_ones),
        cmocka_unit_test(flush_waits_for_everything),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
