/* Long messages that leave without asking: what they save, and that whatever happens to them is paid for. */
#include "engine/message_test.h"

#include <malloc.h>

#define MS       UINT64_C(1000000)
#define TAG(n)   tb_match_collective((n), TB_OPERATION_BCAST, 0)
#define SLOW     1 /* the route of short messages where data is to come first */
#define MESSAGES 12

static struct loop_net net;

static void net_open(uint32_t count)
{
    loop_net_init(&net, count);
    tb_param.eager_memory = 16 << 20;
    tb_param.ahead_memory = 16 << 20;
    net.remote = true;
    loop_net_open(&net, false);
}

static struct tb_request *send_ahead(struct tb_request *r, uint32_t from, uint32_t to, uint64_t match, uint64_t length)
{
    struct tb_buffer b = bytes_of(out, length);
    struct tb_part part = {&b, 0, length};
    r->complete = NULL;
    tb_send_start(net.channels[from]->collective, r, &part, to, match, TB_MODE_STANDARD);
    return r;
}

static struct tb_request *receive(struct tb_request *r, uint32_t at, uint32_t from, uint64_t match, uint64_t room)
{
    struct tb_buffer b = bytes_of(in, room);
    struct tb_part part = {&b, 0, room};
    r->complete = NULL;
    tb_receive_start(net.channels[at]->collective, r, &part, from, match, EXACT);
    return r;
}

/* Everything arrives, however slowly. */
static void settle(void)
{
    for (int i = 0; i < 100; i++) {
        loop_net_settle(&net);
        net.sim.now += MS;
    }
}

/* Nothing is kept, nothing is owed but what is not worth a frame, and the sender may send as much as before. */
static void check_settled(uint32_t from, uint32_t at)
{
    const struct tb_peer *sender = tb_peer_of(net.engines[at], from), *receiver = tb_peer_of(net.engines[from], at);
    assert_int_equal(sender->kept, 0);
    assert_true(tb_list_empty(&sender->aheads.coming) && tb_list_empty(&sender->aheads.whole));
    assert_int_equal(receiver->credit + sender->owed, receiver->allowed);
    assert_int_equal(count_of(&net, at).unexpected_bytes, 0);
}

/* Posted before and after, data behind its envelope and before it, with a transport that takes and holds at random. */
static void every_order_of_arrival(void **state)
{
    static const uint64_t lengths[] = {TB_AHEAD_LEAST, TB_AHEAD_LEAST + 1, 8192, 65537, BIG};
    for (int variant = 0; variant < 16; variant++) {
        bool posted = variant % 2 == 0, race = variant % 4 >= 2;
        net_open(2);
        net.sim.short_route = race ? SLOW : 0;
        net.sim.route[SLOW].delay = 2 * MS;
        net.sim.again = variant % 8 >= 4 ? 30 * LOOP_PERCENT : 0;
        net.sim.pending = variant >= 8 ? 30 * LOOP_PERCENT : 0;
        for (uint32_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
            struct tb_request s, r;
            fill(out, lengths[i], i);
            memset(in, 0, sizeof in);
            if (posted)
                receive(&r, 1, 0, TAG(i), BIG);
            send_ahead(&s, 0, 1, TAG(i), lengths[i]);
            settle();
            assert_true(tb_request_done(&s)); /* though nobody has asked for it */
            if (!posted)
                receive(&r, 1, 0, TAG(i), BIG);
            check_received(&r, 0, TAG(i), lengths[i]);
        }
        assert_int_equal(count_of(&net, 0).ahead, sizeof lengths / sizeof *lengths);
        assert_int_equal(net.sim.kinds[TB_KIND_CLEAR], 0);
        check_settled(0, 1);
        loop_net_close(&net);
    }
}

/* Who asks: what is too short for it, has no credit, or is of the program. */
static void others_ask(void **state)
{
    struct tb_request s, r;
    net_open(2);
    receive(&r, 1, 0, TAG(1), BIG);
    send_ahead(&s, 0, 1, TAG(1), TB_AHEAD_LEAST - 1);
    loop_net_settle(&net);
    check_received(&r, 0, TAG(1), TB_AHEAD_LEAST - 1);
    for (int mode = TB_MODE_STANDARD; mode <= TB_MODE_READY; mode++) {
        post_receive(&net, &r, 1, 0, 5, EXACT, BIG);
        post_send(&net, &s, 0, 1, 5, 50000, (enum tb_mode)mode);
        loop_net_settle(&net);
        check_received(&r, 0, 5, 50000);
    }
    assert_int_equal(count_of(&net, 0).rendezvous, 4);
    tb_peer_of(net.engines[0], 1)->credit = 49999;
    receive(&r, 1, 0, TAG(2), BIG);
    send_ahead(&s, 0, 1, TAG(2), 50000);
    loop_net_settle(&net);
    check_received(&r, 0, TAG(2), 50000);
    assert_int_equal(count_of(&net, 0).rendezvous, 5);
    assert_int_equal(count_of(&net, 0).ahead, 0);
    loop_net_close(&net);
}

/* 64 KiB over 10 ms and 20 Mbit/s: latency and wire time, and no round trip. */
static void takes_the_time_of_the_wire(void **state)
{
    for (int ahead = 0; ahead < 2; ahead++) {
        struct tb_request s, r;
        net_open(2);
        net.sim.route[0] = (struct tb_sim_route){.delay = 10 * MS, .byte_time = 400};
        uint64_t began = net.sim.now, time;
        if (ahead) {
            receive(&r, 1, 0, TAG(1), 65536);
            send_ahead(&s, 0, 1, TAG(1), 65536);
        } else {
            post_receive(&net, &r, 1, 0, 5, EXACT, 65536);
            post_send(&net, &s, 0, 1, 5, 65536, TB_MODE_STANDARD);
        }
        for (; !tb_request_done(&r) && net.sim.now < began + 100 * MS; net.sim.now += MS / 50)
            loop_net_settle(&net);
        time = net.sim.now - began;
        assert_in_range(time, (ahead ? 36 : 56) * MS, (ahead ? 37 : 57) * MS);
        loop_net_close(&net);
    }
}

/* The buffer is too short: the rest comes, is counted, and is written nowhere. */
static void a_longer_message_is_cut(void **state)
{
    for (int variant = 0; variant < 8; variant++) {
        struct tb_request s, r;
        uint64_t room = variant >= 4 ? 25001 : 0;
        net_open(2);
        net.sim.short_route = variant % 4 >= 2 ? SLOW : 0;
        net.sim.route[SLOW].delay = 2 * MS;
        fill(out, 50000, 3);
        memset(in, 99, sizeof in);
        if (variant % 2 == 0)
            receive(&r, 1, 0, TAG(1), room);
        send_ahead(&s, 0, 1, TAG(1), 50000);
        settle();
        if (variant % 2 != 0)
            receive(&r, 1, 0, TAG(1), room);
        assert_true(tb_request_done(&s) && tb_request_done(&r));
        assert_int_equal(s.status.error, TB_OK);
        assert_int_equal(r.status.error, TB_ERR_TRUNCATE);
        assert_int_equal(r.status.bytes, room);
        assert_memory_equal(in, out, room);
        assert_int_equal(in[room], 99);
        check_settled(0, 1);
        loop_net_close(&net);
    }
}

/* Messages of one edge are matched as they were sent, whether they are eager, leave without asking or ask. */
static void order_is_that_of_envelopes(void **state)
{
    static const uint64_t lengths[] = {50000, 100, 4000, 60000, 10, 90000};
    struct tb_request s[MESSAGES], r;
    net_open(2);
    net.sim.short_route = SLOW;
    net.sim.route[SLOW].delay = 2 * MS;
    fill(out, BIG, 0);
    for (int i = 0; i < MESSAGES; i++)
        send_ahead(&s[i], 0, 1, TAG(1), lengths[i % 6] + (uint64_t)i);
    settle();
    for (int i = 0; i < MESSAGES; i++) {
        receive(&r, 1, 0, TAG(1), BIG);
        settle();
        check_received(&r, 0, TAG(1), lengths[i % 6] + (uint64_t)i);
        assert_true(tb_request_done(&s[i]));
    }
    struct tb_counters c = count_of(&net, 0);
    assert_true(c.eager == 4 && c.ahead == 6 && c.rendezvous == 2);
    check_settled(0, 1);
    loop_net_close(&net);
}

/* Ten thousand that nobody expects take no more memory than was granted; the others ask, and all arrive. */
static void a_flood_is_bounded(void **state)
{
    enum { COUNT = 10000, LENGTH = 8192 };
    static struct tb_request sends[COUNT];
    net_open(2);
    uint64_t grant = net.engines[1]->peers.grant;
    fill(out, LENGTH, 0);
    size_t before = mallinfo2().uordblks + mallinfo2().hblkhd;
    for (int i = 0; i < COUNT; i++)
        send_ahead(&sends[i], 0, 1, TAG((uint32_t)i), LENGTH);
    loop_net_settle(&net);
    size_t after = mallinfo2().uordblks + mallinfo2().hblkhd;
    assert_in_range(count_of(&net, 1).unexpected_peak, grant - LENGTH, grant);
    assert_true(after < before + grant + COUNT * 1024);
    for (int i = COUNT - 1; i >= 0; i--) {
        struct tb_request r;
        receive(&r, 1, 0, TAG((uint32_t)i), BIG);
        loop_net_settle(&net);
        check_received(&r, 0, TAG((uint32_t)i), LENGTH);
    }
    for (int i = 0; i < COUNT; i++)
        assert_true(tb_request_done(&sends[i]));
    assert_int_equal(count_of(&net, 0).ahead, grant / LENGTH);
    check_settled(0, 1);
    loop_net_close(&net);
}

/* Called back while it leaves, when it has left, and too late: the rest of it comes, and is counted. */
static void cancelling(void **state)
{
    for (int variant = 0; variant < 8; variant++) {
        bool left = variant % 2 != 0, late = variant % 4 >= 2;
        struct tb_request s, r, other;
        net_open(2);
        net.sim.route[0] = (struct tb_sim_route){.delay = MS, .byte_time = 100};
        net.sim.short_route = SLOW;
        net.sim.bytes_limit = 20000;
        net.sim.pending = variant >= 4 ? 50 * LOOP_PERCENT : 0;
        fill(out, BIG, 4);
        send_ahead(&s, 0, 1, TAG(1), BIG);
        loop_net_settle(&net);
        assert_false(tb_request_done(&s));
        if (left)
            settle();
        assert_int_equal(tb_request_done(&s), left);
        if (late)
            receive(&r, 1, 0, TAG(1), BIG);
        tb_request_cancel(&s);
        settle();
        assert_true(tb_request_done(&s));
        assert_int_equal(s.status.cancelled, !late);
        if (!late) /* it is gone, and the next one is received */
            receive(&r, 1, 0, TAG(1), BIG);
        send_ahead(&other, 0, 1, TAG(late ? 2 : 1), late ? 77 : 70000);
        settle();
        check_received(&r, 0, TAG(1), late ? BIG : 70000);
        if (late)
            receive(&r, 1, 0, TAG(2), BIG);
        check_settled(0, 1);
        loop_net_close(&net);
    }
}

static void fail_collective(uint32_t number)
{
    const struct tb_upcalls *up = tb_sim_upcalls(&net.sim, 1);
    struct tb_message m = {
        .kind = TB_KIND_FAILED, .context = net.channels[1]->collective->id, .match = TAG(number), .source_rank = 0};
    up->frame(up->context, tb_sim_endpoint(&net.sim, 1, 0), NULL, &m, NULL, 0);
}

/* A collective that was given up, before its messages have come and after, and a communicator that is gone. */
static void nobody_wants_them(void **state)
{
    for (int variant = 0; variant < 6; variant++) {
        struct tb_request s[3], eager;
        net_open(2);
        net.sim.short_route = variant % 2 != 0 ? SLOW : 0;
        net.sim.route[SLOW].delay = 2 * MS;
        net.sim.route[0].byte_time = 100;
        send_ahead(&eager, 0, 1, TAG(9), 10);
        settle();
        for (uint32_t i = 0; i < 3; i++)
            send_ahead(&s[i], 0, 1, TAG(1), 20000);
        if (variant < 2)
            fail_collective(1);
        net.sim.now += 3 * MS; /* one and a half of them */
        loop_net_settle(&net);
        if (variant >= 2 && variant < 4)
            fail_collective(1);
        if (variant >= 4) {
            tb_channel_close(net.channels[1]);
            net.channels[1] = NULL;
        }
        settle();
        for (uint32_t i = 0; i < 3; i++)
            assert_true(tb_request_done(&s[i]));
        assert_in_range(count_of(&net, 1).dropped, 3, 4);
        const struct tb_peer *sender = tb_peer_of(net.engines[1], 0), *receiver = tb_peer_of(net.engines[0], 1);
        assert_int_equal(sender->kept, variant < 4 ? 10 : 0);
        assert_int_equal(receiver->credit + sender->owed + sender->kept, receiver->allowed);
        loop_net_close(&net);
    }
}

/* The sender is lost while one or the other is coming: what is whole can be received, what is not ends with an error,
 * and that of which only data has come is forgotten. */
static void the_sender_is_lost(void **state)
{
    static const uint64_t times[] = {5 * MS, 8 * MS, 11 * MS}; /* of data; 10 KB in each millisecond */
    for (int variant = 0; variant < 3; variant++) {
        struct tb_request s[4], r[3], bound;
        net_open(2);
        net.sim.route[0].byte_time = 100;
        net.sim.short_route = SLOW;
        fill(out, BIG, 6);
        receive(&bound, 1, 0, TAG(3), 40000);
        for (uint32_t i = 1; i <= 3; i++)
            send_ahead(&s[i], 0, 1, TAG(i), i == 1 ? 20000 : 40000);
        net.sim.route[SLOW].delay = 1000 * MS;
        send_ahead(&s[0], 0, 1, TAG(4), 20000);
        for (uint64_t end = net.sim.now + times[variant]; net.sim.now < end; net.sim.now += MS / 10)
            loop_net_settle(&net);
        const struct tb_peer *p = tb_peer_of(net.engines[1], 0);
        assert_false(tb_list_empty(&p->aheads.coming) || tb_list_empty(&p->aheads.whole));
        tb_engine_lost(net.engines[1], (struct tb_proc){7, 0}, tb_error(TB_ERR_PEER, "lost in this test"));
        loop_net_settle(&net);
        assert_true(tb_request_done(&bound));
        assert_int_equal(bound.status.error, variant < 2 ? TB_ERR_PEER : TB_OK);
        receive(&r[1], 1, 0, TAG(1), 20000);
        check_received(&r[1], 0, TAG(1), 20000);
        receive(&r[2], 1, 0, TAG(2), 40000);
        assert_true(tb_request_done(&r[2]));
        assert_int_equal(r[2].status.error, variant == 0 ? TB_ERR_PEER : TB_OK);
        assert_int_equal(p->kept, 0);
        loop_net_close(&net);
    }
}

/* Who sends long messages is granted more, as long as there is memory for it. */
static void grants_grow(void **state)
{
    struct tb_request s, r;
    loop_net_init(&net, 3);
    tb_param.eager_memory = 3 * TB_GRANT_LOW;
    tb_param.ahead_memory = 300000;
    net.remote = true;
    loop_net_open(&net, false);
    fill(out, BIG, 1);
    for (uint32_t from = 1; from < 3; from++)
        for (int i = 0; i < 4; i++) {
            receive(&r, 0, from, TAG((uint32_t)i), BIG);
            send_ahead(&s, from, 0, TAG((uint32_t)i), 60000);
            loop_net_settle(&net);
            check_received(&r, from, TAG((uint32_t)i), 60000);
        }
    assert_int_equal(tb_peer_of(net.engines[1], 0)->allowed, 240000);
    assert_int_equal(tb_peer_of(net.engines[2], 0)->allowed, TB_GRANT_LOW);
    assert_true(count_of(&net, 1).rendezvous == 1 && count_of(&net, 1).ahead == 3);
    assert_true(count_of(&net, 2).rendezvous == 4 && count_of(&net, 2).ahead == 0);
    check_settled(1, 0);
    loop_net_close(&net);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_order_of_arrival),
        cmocka_unit_test(others_ask),
        cmocka_unit_test(takes_the_time_of_the_wire),
        cmocka_unit_test(a_longer_message_is_cut),
        cmocka_unit_test(order_is_that_of_envelopes),
        cmocka_unit_test(a_flood_is_bounded),
        cmocka_unit_test(cancelling),
        cmocka_unit_test(nobody_wants_them),
        cmocka_unit_test(the_sender_is_lost),
        cmocka_unit_test(grants_grow),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
