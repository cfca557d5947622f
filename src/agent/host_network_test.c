/* Connections that a forwarder needs: with ranks of its host, and between two agents that connect for real. */
#include "agent/loopback.h"
#include "agent/network_world.h"

#include <errno.h>
#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define UNSENT_FRAMES  100u
#define UNSENT_PAYLOAD 4096u

/* ---- with ranks of the host -------------------------------------------------------------------------------------- */

static void ranks_are_connected_when_needed_and_again(void **state)
{
    struct world w;
    world_open(&w, 0);
    int a = world_join(&w, 0, TB_STREAM_SHORT, 0);
    uint32_t out = 0, in = 0;
    static struct world_frame frame;
    assert_true(world_put_frame(&w, a, &out, 0, 3, 1, 8));
    int b = world_handed(&w, 3);
    assert_true(b >= 0);
    assert_int_equal(w.handed_stream[3], TB_STREAM_SHORT);
    assert_int_equal(w.handed_proc[3].index, TB_PROC_AGENT | 0);
    assert_true(world_get_frame(&w, b, &in, &frame));
    close(b);
    world_spin(&w, 20);
    for (uint64_t i = 0; i < 10; i++)
        assert_true(world_put_frame(&w, a, &out, 0, 3, 100 + i, 8));
    b = world_handed(&w, 3);
    assert_true(b >= 0);
    in = 0; /* a new connection counts anew */
    for (uint64_t i = 0; i < 10; i++)
        assert_true(world_get_frame(&w, b, &in, &frame));
    assert_int_equal(frame.envelope.message.match, 109);
    close(a);
    close(b);
    world_close(&w);
}

static void a_rank_asks_for_its_own_agent(void **state)
{
    struct world w;
    world_open(&w, 0);
    uint32_t out = 0, in = 0;
    static struct world_frame frame;
    int b = world_join(&w, 1, TB_STREAM_SHORT, 0);
    tb_host_network_connect(&w.network, 0, (struct tb_proc){JOB, TB_PROC_AGENT | 0}, TB_STREAM_SHORT);
    int a = world_handed(&w, 0);
    assert_true(a >= 0);
    assert_true(world_put_frame(&w, a, &out, 0, 1, 1, 8));
    assert_true(world_get_frame(&w, b, &in, &frame));
    close(a);
    close(b);
    world_close(&w);
}

static void goodbye_is_a_normal_end(void **state)
{
    struct world w;
    world_open(&w, 0);
    int a = world_join(&w, 0, TB_STREAM_SHORT, 0), b = world_join(&w, 1, TB_STREAM_SHORT, 0);
    uint32_t out = 0, in = 0;
    static struct world_frame frame;
    struct tb_hop bye = {.version = TB_WIRE_VERSION, .type = TB_HOP_BYE};
    char bytes[sizeof bye];
    tb_wire_put_hop(bytes, &bye);
    assert_true(world_put(&w, b, bytes, sizeof bytes));
    assert_true(world_is_closed(&w, b));
    close(b);
    assert_true(world_put_frame(&w, a, &out, 0, 1, 1, 8)); /* for whom has left: nobody is bothered with it */
    world_spin(&w, 20);
    assert_int_equal(w.handed[1], -1);
    b = world_join(&w, 1, TB_STREAM_SHORT, 0); /* or it comes back */
    assert_true(world_put_frame(&w, a, &out, 0, 1, 2, 8));
    assert_true(world_get_frame(&w, b, &in, &frame));
    assert_int_equal(frame.envelope.message.match, 2);
    /* A rank that has ended is not connected any more. */
    w.ended[2] = true;
    assert_true(world_put_frame(&w, a, &out, 0, 2, 1, 8));
    world_spin(&w, 100);
    assert_true(world_put_frame(&w, a, &out, 0, 1, 3, 8));
    assert_true(world_get_frame(&w, b, &in, &frame));
    close(a);
    close(b);
    world_close(&w);
}

/* ---- two agents -------------------------------------------------------------------------------------------------- */

static void two_worlds_open(struct world w[2])
{
    const struct tb_setup setup = {.host_count = 2};
    for (uint32_t i = 0; i < 2; i++) {
        world_open(&w[i], i);
        assert_int_equal(tb_host_network_listen(&w[i].network, &setup), TB_OK);
        w[i].member.addresses.count = 0;
        world_use_routes(&w[i]);
    }
    for (uint32_t i = 0; i < 2; i++) {
        w[i].book.hosts[1 - i].addresses[0].port = w[1 - i].network.listener.port;
        w[i].routes[1 - i] = (struct tb_host_route){
            .means = TB_HOST_ROUTE_DIRECT, .latency = 75000000, .bandwidth = 10000000, .loss = 5000};
    }
}

static void two_worlds_close(struct world w[2])
{
    for (uint32_t i = 0; i < 2; i++)
        world_close(&w[i]);
}

/* Both work until there is a frame at an end of the second. */
static void one_arrives(struct world w[2], int socket, uint32_t *sequence)
{
    for (int i = 0; i < 3000 && *sequence == 0; i++) {
        world_spin(&w[0], 1);
        world_spin(&w[1], 1);
        world_drain(&w[1], socket, sequence);
    }
    assert_int_equal(*sequence, 1);
}

static void two_agents(void **state)
{
    struct world w[2];
    tb_param.forbid_direct = true;
    two_worlds_open(w);
    int a[2] = {world_join(&w[0], 0, TB_STREAM_SHORT, 0), world_join(&w[0], 0, TB_STREAM_BULK, 0)};
    int b[2] = {world_join(&w[1], LOCAL_RANKS, TB_STREAM_SHORT, 0), world_join(&w[1], LOCAL_RANKS, TB_STREAM_BULK, 0)};
    uint32_t out[2] = {0}, count = 0, in[2] = {0};
    assert_true(world_put_frame(&w[0], a[0], &out[0], 0, LOCAL_RANKS, 1, 8));
    for (uint64_t i = 0; i < 300; i++) {
        assert_true(world_put_frame(&w[0], a[1], &out[1], 0, LOCAL_RANKS, i, TB_RELAY_PAYLOAD));
        world_spin(&w[1], 0);
        count += world_drain(&w[1], b[1], &in[1]);
    }
    for (int i = 0; i < 2000 && (count < 300 || in[0] == 0); i++) {
        world_spin(&w[0], 1);
        world_spin(&w[1], 1);
        count += world_drain(&w[1], b[1], &in[1]);
        world_drain(&w[1], b[0], &in[0]);
    }
    assert_int_equal(count, 300);
    assert_int_equal(in[0], 1);
    for (int i = 0; i < 2; i++) {
        close(a[i]);
        close(b[i]);
    }
    two_worlds_close(w);
    tb_param.forbid_direct = false;
}

/* Where a way is long, all streams to a hop are opened when the first one is: when the other side takes no connections
 * any more, a large message passes nevertheless. */
static void a_long_route_has_all_streams_at_once(void **state)
{
    struct world w[2];
    tb_param.forbid_direct = true;
    two_worlds_open(w);
    w[0].routes[2] = (struct tb_host_route){.means = TB_HOST_ROUTE_RELAYED, .hop_count = 1, .hops = {1}};
    int a[2] = {world_join(&w[0], 0, TB_STREAM_SHORT, 0), world_join(&w[0], 0, TB_STREAM_BULK, 0)};
    int b[2] = {world_join(&w[1], LOCAL_RANKS, TB_STREAM_SHORT, 0), world_join(&w[1], LOCAL_RANKS, TB_STREAM_BULK, 0)};
    uint32_t out[2] = {0}, in[2] = {0};
    assert_true(world_put_frame(&w[0], a[0], &out[0], 0, LOCAL_RANKS, 1, 8));
    for (int i = 0; i < 100; i++) {
        world_spin(&w[0], 1);
        world_spin(&w[1], 1);
        world_drain(&w[1], b[0], &in[0]);
    }
    assert_int_equal(in[0], 1);
    tb_listener_close(&w[1].network.listener);
    assert_true(world_put_frame(&w[0], a[1], &out[1], 0, LOCAL_RANKS, 2, TB_RELAY_PAYLOAD));
    one_arrives(w, b[1], &in[1]);
    for (int i = 0; i < 2; i++) {
        close(a[i]);
        close(b[i]);
    }
    two_worlds_close(w);
    tb_param.forbid_direct = false;
}

/* The connections that the other agent had made are gone, and it does not make them again: then we do. */
static void broken_links_are_made_again(void **state)
{
    struct world w[2];
    tb_param.forbid_direct = true;
    two_worlds_open(w);
    int a = world_join(&w[0], 0, TB_STREAM_SHORT, 0), b = world_join(&w[1], LOCAL_RANKS, TB_STREAM_SHORT, 0);
    int link = world_join(&w[0], TB_PROC_AGENT | 1, TB_STREAM_SHORT, 0);
    uint32_t out = 0, in = 0, there = 0;
    static struct world_frame frame;
    assert_true(world_put_frame(&w[0], a, &out, 0, LOCAL_RANKS, 1, 8));
    assert_true(world_get_frame(&w[0], link, &there, &frame));
    close(link);
    world_spin(&w[0], 5);
    assert_true(world_put_frame(&w[0], a, &out, 0, LOCAL_RANKS, 2, 8));
    one_arrives(w, b, &in);
    close(a);
    close(b);
    two_worlds_close(w);
    tb_param.forbid_direct = false;
}

/* A connection was made, but the two do not agree about it: it is made again. */
static void an_unusable_connection_is_made_again(void **state)
{
    struct world w[2];
    tb_param.forbid_direct = true;
    bool encrypt = tb_param.gateway_tls;
    tb_param.gateway_tls = false;
    two_worlds_open(w);
    int a = world_join(&w[0], 0, TB_STREAM_SHORT, 0), b = world_join(&w[1], LOCAL_RANKS, TB_STREAM_SHORT, 0);
    uint32_t out = 0, in = 0;
    assert_true(world_put_frame(&w[0], a, &out, 0, LOCAL_RANKS, 1, 8));
    world_spin(&w[0], 50); /* hello has been said, without encryption */
    tb_param.gateway_tls = true;
    one_arrives(w, b, &in);
    close(a);
    close(b);
    two_worlds_close(w);
    tb_param.forbid_direct = false;
    tb_param.gateway_tls = encrypt;
}

/* Only host 1 can connect: it is called, and the stream is as good as another. */
static void a_called_connection(void **state)
{
    struct world w[2];
    tb_param.forbid_direct = true;
    two_worlds_open(w);
    w[0].routes[1].means = TB_HOST_ROUTE_CALLED;
    tb_param.gateway_streams = 2;
    int a = world_join(&w[0], 0, TB_STREAM_BULK, 0), b = world_join(&w[1], LOCAL_RANKS, TB_STREAM_BULK, 0);
    uint32_t out = 0, in = 0, events = 0;
    assert_true(world_put_frame(&w[0], a, &out, 0, LOCAL_RANKS, 1, 100));
    for (int i = 0; i < 1000 && in == 0; i++) {
        world_spin(&w[0], 1);
        world_spin(&w[1], 1);
        for (; events < w[0].call_count; events++) {
            const struct world_call *call = &w[0].events[events];
            assert_int_equal(call->host, 1);
            tb_dialer_called(&w[1].network.dialer, call->there, call->here, call->stream);
        }
        world_drain(&w[1], b, &in);
    }
    assert_int_equal(in, 1);
    assert_int_equal(events, 2);
    world_spin(&w[0], 20);
    assert_true(tb_list_empty(&w[0].network.dialer.dials)); /* those that waited for it have seen it come */
    close(a);
    close(b);
    two_worlds_close(w);
    tb_param.forbid_direct = false;
    tb_param.gateway_streams = 0;
}

/* On a slow wire the sockets hold little that has not left, so that all of them carry parts of the same message; what
 * waits goes on when there is room. */
static void little_lies_unsent_on_slow_wires(void **state)
{
    struct world w;
    struct tb_loopback loopback;
    int pair[2], unsent = 0;
    static struct world_frame frame;
    world_open(&w, 0);
    tb_loopback_open(&loopback);
    assert_int_equal(tb_loopback_pair(&loopback, "here", pair), TB_OK);
    world_use_routes(&w);
    w.routes[1] = (struct tb_host_route){.means = TB_HOST_ROUTE_DIRECT, .latency = 10000000, .bandwidth = 20000000};
    int a = world_join(&w, 0, TB_STREAM_BULK, 0), brief = world_join(&w, TB_PROC_AGENT | 1, TB_STREAM_SHORT, 0);
    struct tb_connected connected = {
        .self = w.member.self, .proc = {JOB, TB_PROC_AGENT | 1}, .stream = TB_STREAM_BULK, .socket = pair[0]};
    assert_in_range(pair[1], 0, DESCRIPTORS_MOST - 1);
    w.pongs[pair[1]] = 0;
    w.is_agent[pair[1]] = true;
    tb_forwarder_adopt(&w.network.forwarder, &connected);
    uint32_t out = 0, in = 0;
    for (uint64_t i = 0; i < UNSENT_FRAMES; i++)
        assert_true(world_put_frame(&w, a, &out, 0, LOCAL_RANKS, i, UNSENT_PAYLOAD));
    world_spin(&w, 20);
    if (ioctl(pair[0], SIOCOUTQNSD, &unsent) == 0)
        assert_in_range(unsent, 1, 40000); /* the limit, and a write of several frames */
    else
        assert_int_equal(errno, ENOSYS); /* as says what emulates processes of another kind of machine */
    for (uint64_t i = 0; i < UNSENT_FRAMES; i++) {
        assert_true(world_get_frame(&w, pair[1], &in, &frame));
        assert_int_equal(frame.envelope.message.match, i);
    }
    close(a);
    close(brief);
    close(pair[1]);
    tb_loopback_close(&loopback);
    world_close(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranks_are_connected_when_needed_and_again),
        cmocka_unit_test(a_rank_asks_for_its_own_agent),
        cmocka_unit_test(goodbye_is_a_normal_end),
        cmocka_unit_test(two_agents),
        cmocka_unit_test(a_long_route_has_all_streams_at_once),
        cmocka_unit_test(broken_links_are_made_again),
        cmocka_unit_test(an_unusable_connection_is_made_again),
        cmocka_unit_test(a_called_connection),
        cmocka_unit_test(little_lies_unsent_on_slow_wires),
    };
    tb_param_load();
    tb_log_threshold = TB_LOG_ERROR;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
