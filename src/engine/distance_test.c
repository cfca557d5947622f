/* What an engine makes of how far away others are: which messages of the program leave without asking, how long frames
 * are that agents pass on, and which stream they take. */
#include "engine/message_test.h"

#define MS    UINT64_C(1000000)
#define US_PS UINT64_C(1000000)
#define MS_PS UINT64_C(1000000000)
#define MEGA  UINT64_C(1000000)
#define SLOW  1 /* the route of short messages */
#define LONG  (1u << 20)

static const struct tb_distance far = {10 * MS_PS, 20 * MEGA, 20 * MEGA};
static struct loop_net net;

static void net_open(uint32_t count, const struct tb_distance *distance, bool relayed)
{
    loop_net_init(&net, count);
    tb_param.eager_memory = 16 << 20;
    tb_param.ahead_memory = 16 << 20;
    net.remote = true;
    net.relayed = relayed;
    net.far = *distance;
    if (relayed)
        net.sim.max_payload = net.sim.eager_limit = TB_RELAY_PAYLOAD;
    loop_net_open(&net, false);
}

static void exchange(uint64_t length, enum tb_mode mode)
{
    struct tb_request s, r;
    post_receive(&net, &r, 1, 0, 5, EXACT, BIG);
    post_send(&net, &s, 0, 1, 5, length, mode);
    loop_net_settle(&net);
    check_received(&r, 0, 5, length);
    assert_true(tb_request_done(&s));
}

/* Where asking takes long, compared with the wire and with a copy; never of the one that waits to be matched. */
static void the_program_asks_those_who_are_near(void **state)
{
    static const struct {
        struct tb_distance distance;
        uint64_t length;
        bool ahead;
    } cases[] = {
        {{10 * MS_PS, 20 * MEGA, 20 * MEGA}, 65536, true},
        {{10 * MS_PS, 20 * MEGA, 0}, BIG, true},
        {{20 * US_PS, 1000 * MEGA, 1000 * MEGA}, 65536, false}, /* in one network */
        {{0, 0, 0}, 65536, false},
        {{10 * MS_PS, 0, 20 * MEGA}, 65536, false}, /* nothing is known of the way there */
        {{1 * MS_PS, 16 * MEGA, 16 * MEGA}, 64000, true},
        {{1 * MS_PS, 16 * MEGA, 16 * MEGA}, 64001, false}, /* asking takes less than a sixteenth */
        {{100 * US_PS, 1000000 * MEGA, 0}, BIG, true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        net_open(2, &cases[i].distance, false);
        exchange(cases[i].length, TB_MODE_STANDARD);
        exchange(cases[i].length, TB_MODE_READY);
        exchange(cases[i].length, TB_MODE_SYNCHRONOUS);
        assert_int_equal(count_of(&net, 0).ahead, cases[i].ahead ? 2 : 0);
        assert_int_equal(count_of(&net, 0).rendezvous, cases[i].ahead ? 1 : 3);
        loop_net_close(&net);
    }
    assert_int_equal(tb_ahead_bytes(100 * US_PS, 100000 * MEGA), 800000); /* as much as is copied in 200 us */
}

/* 64 KiB over 10 ms and 20 Mbit/s, the receive posted: latency and wire time, and no round trip. */
static void takes_the_time_of_the_wire(void **state)
{
    for (int known = 0; known < 2; known++) {
        struct tb_request s, r;
        net_open(2, known ? &far : &(struct tb_distance){0}, false);
        net.sim.route[0] = (struct tb_sim_route){.delay = 10 * MS, .byte_time = 400};
        uint64_t began = net.sim.now, time;
        post_receive(&net, &r, 1, 0, 5, EXACT, 65536);
        post_send(&net, &s, 0, 1, 5, 65536, TB_MODE_STANDARD);
        for (; !tb_request_done(&r) && net.sim.now < began + 100 * MS; net.sim.now += MS / 50)
            loop_net_settle(&net);
        time = net.sim.now - began;
        assert_in_range(time, (known ? 36 : 56) * MS, (known ? 37 : 57) * MS);
        loop_net_close(&net);
    }
}

/* One that nobody expects yet is found by probing as soon as its envelope is here, taken, and received when its data
 * has come; it cannot be called back then. */
static void probing(void **state)
{
    for (int variant = 0; variant < 4; variant++) {
        bool taken = variant % 2 != 0, cut = variant >= 2;
        struct tb_request s, r;
        struct tb_status status;
        struct tb_arrival *arrival = NULL;
        uint64_t room = cut ? 30001 : BIG;
        net_open(2, &far, false);
        net.sim.route[0] = (struct tb_sim_route){.delay = MS, .byte_time = 100};
        net.sim.short_route = SLOW;
        fill(out, 60000, 8);
        memset(in, 99, sizeof in);
        assert_int_equal(tb_probe(net.channels[1], TB_ANY_RANK, 0, 0, &status, NULL), TB_AGAIN);
        post_send(&net, &s, 0, 1, 6, 60000, TB_MODE_STANDARD);
        loop_net_settle(&net);
        assert_int_equal(tb_probe(net.channels[1], TB_ANY_RANK, 0, 0, &status, taken ? &arrival : NULL), TB_OK);
        assert_true(status.source == 0 && status.match == 6 && status.bytes == 60000);
        if (taken)
            tb_request_cancel(&s);
        net.sim.now += 3 * MS; /* a third of it */
        loop_net_settle(&net);
        struct tb_buffer b = bytes_of(in, room);
        r.complete = NULL;
        if (taken)
            tb_receive_arrival(net.channels[1], &r, &b, arrival);
        else
            tb_receive_post(net.channels[1], &r, &b, TB_ANY_RANK, 0, 0);
        assert_false(tb_request_done(&r));
        net.sim.now += 10 * MS;
        loop_net_settle(&net);
        assert_true(tb_request_done(&r) && tb_request_done(&s));
        assert_false(s.status.cancelled);
        assert_int_equal(r.status.error, cut ? TB_ERR_TRUNCATE : TB_OK);
        assert_memory_equal(in, out, cut ? room : 60000);
        assert_int_equal(in[cut ? room : 60000], 99);
        const struct tb_peer *sender = tb_peer_of(net.engines[1], 0), *receiver = tb_peer_of(net.engines[0], 1);
        assert_true(sender->kept == 0 && receiver->credit + sender->owed == receiver->allowed);
        loop_net_close(&net);
    }
}

/* Who sends long messages from afar is granted more; who is near asks anyway. */
static void grants_grow_for_those_who_are_far(void **state)
{
    for (int is_far = 0; is_far < 2; is_far++) {
        loop_net_init(&net, 2);
        tb_param.eager_memory = 2 * TB_GRANT_LOW;
        tb_param.ahead_memory = 1 << 20;
        net.remote = true;
        net.far = is_far ? far : (struct tb_distance){20 * US_PS, 1000 * MEGA, 1000 * MEGA};
        loop_net_open(&net, false);
        for (int i = 0; i < 4; i++)
            exchange(60000, TB_MODE_STANDARD);
        assert_int_equal(tb_peer_of(net.engines[0], 1)->allowed, is_far ? 240000 : TB_GRANT_LOW);
        assert_int_equal(count_of(&net, 0).ahead, is_far ? 3 : 0);
        loop_net_close(&net);
    }
}

/* Ten thousand from afar that nobody expects take no more memory than was granted, and arrive in their order. */
static void a_flood_is_bounded(void **state)
{
    enum { COUNT = 10000, LENGTH = 5000 };
    static struct tb_request sends[COUNT];
    net_open(2, &far, false);
    uint64_t grant = net.engines[1]->peers.grant;
    fill(out, BIG, 0);
    for (int i = 0; i < COUNT; i++)
        post_send(&net, &sends[i], 0, 1, 5, LENGTH + (uint64_t)i % 7, TB_MODE_STANDARD);
    loop_net_settle(&net);
    assert_in_range(count_of(&net, 1).unexpected_peak, grant - LENGTH - 7, grant);
    for (int i = 0; i < COUNT; i++) {
        struct tb_request r;
        post_receive(&net, &r, 1, TB_ANY_RANK, 5, EXACT, BIG);
        loop_net_settle(&net);
        check_received(&r, 0, 5, LENGTH + (uint64_t)i % 7);
        assert_true(tb_request_done(&sends[i]));
    }
    assert_true(count_of(&net, 0).ahead >= grant / (LENGTH + 7));
    loop_net_close(&net);
}

static uint64_t frames_of(uint64_t length, enum tb_mode mode)
{
    uint64_t before = net.sim.kinds[TB_KIND_DATA];
    fill(out, length, (uint32_t)length);
    exchange(length, mode);
    return net.sim.kinds[TB_KIND_DATA] - before;
}

/* Frames that agents pass on take 2 ms of the slowest wire; short messages are cut too, and need not ask. */
static void frames_are_cut_by_the_rate(void **state)
{
    net_open(2, &far, true);
    net.sim.routes = 1;
    net.sim.short_route = SLOW;
    assert_int_equal(frames_of(65536, TB_MODE_STANDARD), 14); /* of 4992 bytes */
    assert_int_equal(frames_of(4992, TB_MODE_STANDARD), 0);
    assert_int_equal(count_of(&net, 0).eager, 1);
    net.sim.route[0].dead = true; /* the stream of long messages */
    assert_int_equal(frames_of(4993, TB_MODE_STANDARD), 2);
    assert_int_equal(frames_of(16384, TB_MODE_READY), 4);
    assert_int_equal(frames_of(10000, TB_MODE_SYNCHRONOUS), 0);
    assert_true(count_of(&net, 0).eager == 2 && count_of(&net, 0).ahead == 3 && count_of(&net, 0).rendezvous == 0);
    tb_peer_of(net.engines[0], 1)->credit = 0; /* what has to ask is cut likewise */
    assert_int_equal(frames_of(10000, TB_MODE_STANDARD), 3);
    assert_int_equal(count_of(&net, 0).rendezvous, 1);
    loop_net_close(&net);
}

/* A near way that is slow: short messages are cut and do not ask, though long ones do. */
static void cut_messages_never_ask(void **state)
{
    net_open(2, &(struct tb_distance){20 * US_PS, 10 * MEGA, 10 * MEGA}, true);
    assert_int_equal(frames_of(16384, TB_MODE_STANDARD), 4);
    assert_int_equal(count_of(&net, 0).rendezvous, 0);
    assert_int_equal(frames_of(16385, TB_MODE_STANDARD), 5);
    assert_int_equal(count_of(&net, 0).rendezvous, 1);
    loop_net_close(&net);
}

/* The frames of very long messages are longer: of those, headers are what counts. */
static void long_messages_have_long_frames(void **state)
{
    static char from[LONG], to[LONG];
    struct tb_request s, r;
    struct tb_buffer b = bytes_of(from, LONG), c = bytes_of(to, LONG);
    net_open(2, &far, true);
    fill(from, LONG, 3);
    s.complete = r.complete = NULL;
    tb_receive_post(net.channels[1], &r, &c, 0, 5, EXACT);
    tb_send_post(net.channels[0], &s, &b, 1, 5, TB_MODE_STANDARD);
    loop_net_settle(&net);
    assert_true(tb_request_done(&s) && tb_request_done(&r));
    assert_memory_equal(from, to, LONG);
    assert_int_equal(net.sim.kinds[TB_KIND_DATA], LONG / TB_RELAY_PAYLOAD);
    loop_net_close(&net);
    assert_int_equal(tb_frame_bytes_for(4992, 16384, 200000), 6250);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_program_asks_those_who_are_near),
        cmocka_unit_test(takes_the_time_of_the_wire),
        cmocka_unit_test(probing),
        cmocka_unit_test(grants_grow_for_those_who_are_far),
        cmocka_unit_test(a_flood_is_bounded),
        cmocka_unit_test(frames_are_cut_by_the_rate),
        cmocka_unit_test(cut_messages_never_ask),
        cmocka_unit_test(long_messages_have_long_frames),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
