/* The simulated network itself: order, time, rates, faults that replay. */
#include "transport/sim/sim.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define NODES 3
#define JOB   5u
#define MS    UINT64_C(1000000)
#define MAX   1000

static struct tb_sim net;
static struct tb_transport *transports[NODES];

static struct {
    uint32_t count, writable, opened, sent;
    uint64_t match[MAX], at[MAX];
} got[NODES];

static void on_frame(void *context, struct tb_endpoint *from, const struct tb_routing *routing,
                     const struct tb_message *message, const void *payload, size_t length)
{
    uint32_t self = (uint32_t)(uintptr_t)context;
    assert_true(got[self].count < MAX && length == message->length && routing == NULL);
    for (size_t i = 0; i < length; i++)
        assert_int_equal(((const char *)payload)[i], (char)message->match);
    got[self].at[got[self].count] = net.now;
    got[self].match[got[self].count++] = message->match;
}

static void on_writable(void *context, struct tb_endpoint *to)
{
    got[(uintptr_t)context].writable++;
}

static void on_opened(void *context, struct tb_endpoint *from)
{
    got[(uintptr_t)context].opened++;
}

static void on_sent(void *context, struct tb_endpoint *to, void *token, int error)
{
    got[(uintptr_t)context].sent++;
}

static void net_open(void)
{
    memset(got, 0, sizeof(got));
    for (uint32_t i = 0; i < NODES; i++) {
        struct tb_transport_config config = {.self = {JOB, i},
                                             .clock = &net.clock,
                                             .sim = &net,
                                             .upcalls = {.context = (void *)(uintptr_t)i,
                                                         .frame = on_frame,
                                                         .sent = on_sent,
                                                         .writable = on_writable,
                                                         .opened = on_opened}};
        assert_int_equal(tb_transport_sim.open(&config, &transports[i]), TB_OK);
    }
}

static void net_close(void)
{
    for (uint32_t i = 0; i < NODES; i++)
        tb_transport_sim.close(transports[i]);
    tb_sim_destroy(&net);
}

static int give(uint32_t from, uint32_t to, uint64_t match, size_t length, enum tb_stream stream, void *token)
{
    static char bytes[4096];
    struct tb_envelope envelope = {.message = {.kind = TB_KIND_EAGER, .match = match, .length = length}};
    memset(bytes, (char)match, length);
    struct tb_spans payload = tb_spans_of(bytes, length);
    return tb_transport_sim.send(tb_sim_endpoint(&net, from, to), &envelope, &payload, stream, token);
}

static void settle(void)
{
    while (tb_sim_step(&net, transports, NODES, TB_NEVER))
        continue;
}

static void frames_arrive_when_they_are_due(void **state)
{
    tb_sim_init(&net, 1);
    net.route[0] = (struct tb_sim_route){.delay = 3 * MS, .byte_time = 1000};
    net_open();
    uint64_t start = net.now, each = (100 + sizeof(struct tb_hop) + sizeof(struct tb_envelope)) * 1000;
    for (uint64_t i = 0; i < 10; i++)
        assert_int_equal(give(0, 1, i, 100, TB_STREAM_SHORT, NULL), TB_OK);
    assert_int_equal(tb_transport_sim.deadline(transports[1]), start + 3 * MS + each);
    settle();
    assert_int_equal(got[1].count, 10);
    assert_int_equal(got[1].opened, 1);
    for (uint64_t i = 0; i < 10; i++) {
        assert_int_equal(got[1].match[i], i);
        assert_true(got[1].at[i] >= start + 3 * MS + (i + 1) * each);
        assert_true(got[1].at[i] < start + 3 * MS + (i + 1) * each + MS / 10);
    }
    assert_int_equal(got[2].count, 0);
    net_close();
}

/* Of two nodes to a third, by the time of arrival, not by who sent first; at the same time in the order of sending. */
static void order_is_that_of_arrival(void **state)
{
    tb_sim_init(&net, 1);
    net.routes = 2;
    net.short_route = 1;
    net.route[0].delay = 2 * MS;
    net.route[1].delay = 1 * MS;
    net_open();
    give(0, 2, 1, 0, TB_STREAM_BULK, NULL); /* route 0 */
    give(1, 2, 2, 0, TB_STREAM_SHORT, NULL);
    give(0, 2, 3, 0, TB_STREAM_SHORT, NULL);
    settle();
    assert_int_equal(got[2].count, 3);
    assert_int_equal(got[2].match[0], 2);
    assert_int_equal(got[2].match[1], 3);
    assert_int_equal(got[2].match[2], 1);
    net_close();
}

static void faults_replay(void **state)
{
    static uint64_t first[MAX];
    uint32_t count = 0;
    for (int run = 0; run < 2; run++) {
        tb_sim_init(&net, 42);
        net.route[0] =
            (struct tb_sim_route){.delay = MS, .loss = 100000, .repeat = 100000, .reorder = 100000, .spread = 5 * MS};
        net_open();
        for (uint64_t i = 0; i < 500; i++) {
            give(0, 1, i, i % 7, TB_STREAM_SHORT, NULL);
            net.now += MS / 10;
        }
        settle();
        uint32_t backwards = 0;
        for (uint32_t i = 1; i < got[1].count; i++)
            backwards += got[1].match[i] < got[1].match[i - 1];
        assert_true(net.lost > 20 && net.lost < 100 && backwards > 20);
        assert_true(got[1].count > 500 - net.lost); /* some came twice */
        if (run == 0) {
            count = got[1].count;
            memcpy(first, got[1].match, sizeof(first));
        }
        assert_int_equal(got[1].count, count);
        assert_memory_equal(first, got[1].match, count * sizeof(first[0]));
        net_close();
    }
}

static void full_routes_say_so(void **state)
{
    tb_sim_init(&net, 1);
    net.route[0] = (struct tb_sim_route){.delay = MS, .byte_time = 10};
    for (int by = 0; by < 2; by++) {
        net.frames_limit = by == 0 ? 8 : 0;
        net.bytes_limit = by == 0 ? 0 : 10000;
        net_open();
        uint32_t taken = 0;
        while (give(0, 1, taken, 1000, TB_STREAM_SHORT, NULL) == TB_OK)
            taken++;
        assert_true(by == 0 ? taken == 8 : taken >= 9 && taken <= 11);
        assert_int_equal(give(0, 2, 0, 0, TB_STREAM_SHORT, NULL), TB_OK); /* another's is not full */
        settle();
        assert_int_equal(got[0].writable, 1);
        assert_int_equal(got[1].count, taken);
        for (uint32_t i = 0; i < NODES; i++)
            tb_transport_sim.close(transports[i]);
    }
    tb_sim_destroy(&net);
}

static void what_is_cut_or_dead_brings_nothing(void **state)
{
    tb_sim_init(&net, 1);
    net.route[0].delay = MS;
    net_open();
    net.cut[0][1] = true;
    give(0, 1, 1, 5, TB_STREAM_SHORT, NULL);
    give(1, 0, 2, 5, TB_STREAM_SHORT, NULL);
    settle();
    assert_true(got[1].count == 0 && got[0].count == 1);
    net.route[0].dead = true;
    give(1, 0, 3, 5, TB_STREAM_SHORT, NULL);
    net.route[0].dead = false;
    give(1, 0, 4, 5, TB_STREAM_SHORT, NULL);
    tb_sim_route_clear(&net, 0);
    settle();
    assert_true(got[0].count == 1 && net.lost == 2 && net.passed == 4);
    net_close();
}

static void chance_refuses_and_holds_back(void **state)
{
    int token;
    tb_sim_init(&net, 1);
    net_open();
    net.again = TB_SIM_MILLION;
    assert_int_equal(give(0, 1, 1, 5, TB_STREAM_BULK, NULL), TB_AGAIN);
    assert_false(tb_transport_sim.idle(transports[0]));
    net.again = 0;
    net.pending = TB_SIM_MILLION;
    assert_int_equal(give(0, 1, 2, 5, TB_STREAM_BULK, NULL), TB_OK);
    assert_int_equal(give(0, 1, 3, 5, TB_STREAM_BULK, &token), TB_PENDING);
    settle();
    assert_true(got[0].writable == 1 && got[0].sent == 1 && got[1].count == 2);
    assert_int_equal(net.kinds[TB_KIND_EAGER], 2);
    net_close();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(frames_arrive_when_they_are_due),
        cmocka_unit_test(order_is_that_of_arrival),
        cmocka_unit_test(faults_replay),
        cmocka_unit_test(full_routes_say_so),
        cmocka_unit_test(what_is_cut_or_dead_brings_nothing),
        cmocka_unit_test(chance_refuses_and_holds_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
