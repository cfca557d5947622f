/* Two agents of different clusters on the simulated network: what a wide link does to them, in virtual time. */
#include "agent/network_world.h"

#include "agent/loop_sim_test.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <unistd.h>

#define MS     UINT64_C(1000000)
#define SECOND UINT64_C(1000000000)
#define DELAY  (75 * MS)   /* of the link, one way */
#define FAR    LOCAL_RANKS /* the rank on host 1 */

static struct loop_sim sim;
static struct world w[2];

static int open_worlds(void **state)
{
    const struct tb_setup setup = {.host_count = 2};
    loop_sim_open(&sim, 2);
    sim.sim.route[0].delay = DELAY;
    tb_param.forbid_direct = true;
    tb_param.link_patience = 60 * SECOND;
    for (uint32_t i = 0; i < 2; i++) {
        world_open_in(&w[i], i, &sim.loop);
        assert_int_equal(tb_host_network_listen(&w[i].network, &setup), TB_OK);
        w[i].member.addresses.count = 0;
        world_use_routes(&w[i]);
        w[i].routes[1 - i] = (struct tb_host_route){.means = TB_HOST_ROUTE_DIRECT, .latency = DELAY};
    }
    for (uint32_t i = 0; i < 2; i++)
        assert_int_equal(tb_sim_streams_listen(&sim.streams, 0, w[1 - i].network.listener.port,
                                               &w[i].book.hosts[1 - i].addresses[0].port),
                         TB_OK);
    return 0;
}

static int close_worlds(void **state)
{
    for (uint32_t i = 0; i < 2; i++)
        world_close(&w[i]);
    loop_sim_close(&sim);
    tb_param.forbid_direct = false;
    return 0;
}

/* Where ranks may connect to each other. */
static void connect_far(void)
{
    tb_param.forbid_direct = false;
    for (uint32_t i = 0; i < 2; i++)
        w[i].routes[1 - i].open = true;
    tb_host_network_connect(&w[0].network, 0, (struct tb_proc){JOB, FAR}, TB_STREAM_SHORT);
}

static void ranks_are_connected_across(void **state)
{
    connect_far();
    uint64_t began = sim.sim.now;
    for (int i = 0; i < 1000 && w[0].handed[0] < 0; i++)
        loop_sim_run(&sim, MS);
    uint64_t took = sim.sim.now - began;
    assert_in_range(took, 4 * DELAY, 5 * DELAY); /* hello, welcome, confirm, accepted */
    assert_true(w[1].handed[FAR] >= 0);
    assert_int_equal(w[0].handed_proc[0].index, FAR);
    assert_int_equal(w[1].handed_proc[FAR].index, 0);
    assert_int_equal(send(w[0].handed[0], "x", 1, 0), 1);
    loop_sim_run(&sim, DELAY / 2);
    char byte = 0;
    assert_int_equal(recv(w[1].handed[FAR], &byte, 1, MSG_DONTWAIT), -1);
    loop_sim_run(&sim, DELAY);
    assert_int_equal(recv(w[1].handed[FAR], &byte, 1, MSG_DONTWAIT), 1);
    assert_int_equal(byte, 'x');
}

/* The link is dead when a rank wants to cross it: the launcher hears so again and again, and of its end, and the rank
 * gets what it wanted. */
static void a_dead_link_comes_back(void **state)
{
    sim.sim.route[0].dead = true;
    connect_far();
    loop_sim_run(&sim, 4 * SECOND);
    assert_int_equal(w[0].link_reports, 0);
    loop_sim_run(&sim, 5 * SECOND);
    assert_in_range(w[0].link_reports, 1, 3);
    assert_true(w[0].link_silent && w[0].link_host == 1);
    loop_sim_run(&sim, 10 * SECOND);
    assert_int_equal(w[0].handed[0], -1);
    assert_in_range(w[0].link_reports, 9, 15);
    assert_in_range(w[0].link_time, 11 * SECOND, 18 * SECOND);
    assert_non_null(strstr(w[0].link_why, "no answer"));
    sim.sim.route[0].dead = false;
    loop_sim_run(&sim, 10 * SECOND);
    assert_true(w[0].handed[0] >= 0 && w[1].handed[FAR] >= 0);
    assert_false(w[0].link_silent);
    assert_int_equal(w[0].refused[0], TB_OK);
    uint32_t reports = w[0].link_reports;
    loop_sim_run(&sim, 10 * SECOND);
    assert_int_equal(w[0].link_reports, reports);
}

/* Frames that are passed on: connections are made when the first one comes, and made again after they broke. */
static void frames_cross(void **state)
{
    int a = world_join(&w[0], 0, TB_STREAM_SHORT, 0), b = world_join(&w[1], FAR, TB_STREAM_SHORT, 0);
    static char bytes[TB_FRAME_BUFFER_LIMIT];
    static struct world_frame frame;
    for (uint32_t i = 0; i < 3; i++) {
        size_t length = frame_make(bytes, i, 0, FAR, i, 100);
        uint32_t sequence = i;
        assert_int_equal(send(a, bytes, length, 0), length);
        loop_sim_run(&sim, i == 0 ? 2 * SECOND : 6 * SECOND);
        assert_true(world_get_frame(&w[1], b, &sequence, &frame));
        assert_int_equal(frame.envelope.message.match, i);
        if (i == 1) {
            tb_sim_streams_reset(&sim.streams, 0);
            loop_sim_run(&sim, SECOND);
        }
    }
    close(a);
    close(b);
}

static void send_frame(int from, uint32_t sequence)
{
    static char bytes[TB_FRAME_BUFFER_LIMIT];
    size_t length = frame_make(bytes, sequence, 0, FAR, sequence, 100);
    assert_int_equal(send(from, bytes, length, 0), length);
    loop_sim_run(&sim, 1); /* it is a socket of the kernel, which knows nothing of our time: the agent reads it now */
}

/* Streams are open and pass nothing. Whoever uses them hears of it by questions of its own, and of their end; frames
 * that were sent meanwhile arrive then. */
static void open_streams_that_pass_nothing(void **state)
{
    static struct world_frame frame;
    uint32_t sequence = 0;
    int a = world_join(&w[0], 0, TB_STREAM_SHORT, 0), b = world_join(&w[1], FAR, TB_STREAM_SHORT, 0);
    send_frame(a, 0);
    loop_sim_run(&sim, 10 * SECOND);
    assert_true(world_get_frame(&w[1], b, &sequence, &frame));
    assert_int_equal(w[0].link_reports + w[1].link_reports, 0);
    assert_false(tb_timer_is_set(&w[0].network.link_watch.tick)); /* nobody needs it now */
    sim.sim.route[0].dead = true;
    loop_sim_run(&sim, 10 * SECOND);
    assert_int_equal(w[0].link_reports + w[1].link_reports, 0); /* still nobody */
    send_frame(a, 1);
    loop_sim_run(&sim, 3 * SECOND);
    assert_int_equal(w[0].link_reports, 0);
    /* The kernel's acknowledgements, which count as progress while something is before the question, come in its own
     * time: seen from here perhaps after two seconds. */
    loop_sim_run(&sim, 4 * SECOND);
    assert_in_range(w[0].link_reports, 1, 4);
    assert_true(w[0].link_silent && w[0].link_host == 1 && w[0].link_time < 7 * SECOND);
    assert_int_equal(w[1].link_reports, 0); /* it knows nothing of that, and waits for nobody */
    sim.sim.route[0].dead = false;
    loop_sim_run(&sim, SECOND);
    assert_false(w[0].link_silent);
    assert_true(world_get_frame(&w[1], b, &sequence, &frame));
    close(a);
    close(b);
}

/* A rank waits for one over there, and says so. No frame is under way. */
static void a_rank_that_waits_is_enough(void **state)
{
    const struct tb_job_waiting there = {.count = 1, .hosts = {1}};
    sim.sim.route[0].dead = true;
    tb_host_network_want(&w[0].network, 0, &there);
    loop_sim_run(&sim, 5 * SECOND);
    assert_in_range(w[0].link_reports, 1, 2);
    sim.sim.route[0].dead = false;
    loop_sim_run(&sim, 10 * SECOND);
    assert_false(w[0].link_silent);
    uint32_t reports = w[0].link_reports;
    tb_host_network_want(&w[0].network, 0, &there);
    loop_sim_run(&sim, 10 * SECOND);
    assert_int_equal(w[0].link_reports, reports);
    tb_host_network_forget(&w[0].network, 0);
    loop_sim_run(&sim, 5 * SECOND);
    assert_false(tb_timer_is_set(&w[0].network.link_watch.tick));
}

/* A connection that is silent for long is made anew. */
static void silent_connections_are_replaced(void **state)
{
    const struct tb_job_waiting there = {.count = 1, .hosts = {1}};
    uint32_t before = sim.streams.accepted;
    tb_host_network_want(&w[0].network, 0, &there);
    loop_sim_run(&sim, 5 * SECOND);
    assert_int_equal(sim.streams.accepted, before + 1);
    sim.sim.route[0].dead = true;
    for (int i = 0; i < 5; i++) {
        tb_host_network_want(&w[0].network, 0, &there);
        loop_sim_run(&sim, 5 * SECOND);
    }
    assert_in_range(sim.streams.accepted, before + 2, before + 8);
    sim.sim.route[0].dead = false;
    loop_sim_run(&sim, 8 * SECOND);
    assert_false(w[0].link_silent);
}

/* 100 kbit/s, and 128 KiB before the question: the other side acknowledges all the time, as repair does.
 */
static void a_slow_wire_is_not_silent(void **state)
{
    enum { FRAMES = 8, SIZE = 16 << 10 };
    static char bytes[TB_FRAME_BUFFER_LIMIT];
    static struct world_frame frame;
    uint32_t sequence = 0;
    int a[2], b[2];
    for (int i = 0; i < 2; i++) {
        a[i] = world_join(&w[0], 0, (enum tb_stream)i, 0);
        b[i] = world_join(&w[1], FAR, (enum tb_stream)i, 0);
    }
    sim.sim.route[0].byte_time = 80000;
    for (uint32_t i = 0; i < FRAMES; i++) {
        size_t length = frame_make(bytes, i, 0, FAR, i, SIZE);
        assert_int_equal(send(a[1], bytes, length, 0), length);
        loop_sim_run(&sim, MS);
    }
    for (uint32_t i = 0; i < 15; i++) {
        size_t length = frame_make(bytes, i, FAR, 0, i, 20);
        assert_int_equal(send(b[0], bytes, length, 0), length);
        loop_sim_run(&sim, SECOND);
    }
    assert_int_equal(w[0].link_reports + w[1].link_reports, 0);
    for (uint32_t i = 0; i < FRAMES; i++)
        assert_true(world_get_frame(&w[1], b[1], &sequence, &frame));
    for (int i = 0; i < 2; i++) {
        close(a[i]);
        close(b[i]);
    }
}

/* Questions are answered on one connection, and what waits for another one waits in vain: none can be made. */
static void a_stream_that_cannot_be_opened(void **state)
{
    const struct tb_job_waiting there = {.count = 1, .hosts = {1}};
    static struct world_frame frame;
    static char bytes[TB_FRAME_BUFFER_LIMIT];
    uint32_t sequence = 0;
    uint64_t before = sim.streams.accepted;
    int a = world_join(&w[0], 0, TB_STREAM_SHORT, 0), b = world_join(&w[1], FAR, TB_STREAM_SHORT, 0);
    int from = world_join(&w[0], 0, TB_STREAM_BULK, 0), to = world_join(&w[1], FAR, TB_STREAM_BULK, 0);
    send_frame(a, 0);
    for (int i = 0; i < 1000 && sim.streams.accepted == before; i++)
        loop_sim_run(&sim, 1);
    assert_int_equal(sim.streams.accepted, before + 1);
    sim.sim.route[1].delay = DELAY;
    sim.sim.route[1].dead = true;
    tb_sim_streams_divert(&sim.streams, 1);
    loop_sim_run(&sim, 2 * SECOND);
    assert_true(world_get_frame(&w[1], b, &sequence, &frame));
    size_t length = frame_make(bytes, 0, 0, FAR, 0, 16 << 10);
    assert_int_equal(send(from, bytes, length, 0), length);
    tb_host_network_want(&w[0].network, 0, &there);
    loop_sim_run(&sim, 5 * SECOND);
    assert_int_equal(w[0].link_reports, 0);
    loop_sim_run(&sim, 4 * SECOND);
    assert_in_range(w[0].link_reports, 1, 4);
    assert_true(w[0].link_silent && w[0].link_host == 1);
    assert_non_null(strstr(w[0].link_why, "passes nothing while others do"));
    sim.sim.route[1].dead = false;
    sequence = 0;
    for (int i = 0; i < 3; i++) {
        tb_host_network_want(&w[0].network, 0, &there);
        loop_sim_run(&sim, 5 * SECOND);
    }
    assert_true(world_get_frame(&w[1], to, &sequence, &frame));
    assert_false(w[0].link_silent);
    close(a);
    close(b);
    close(from);
    close(to);
}

/* As an agent that reads one stream only: answers the questions there. Returns the flags of the last one. */
static uint16_t answer(int link, uint32_t *sequence)
{
    static char bytes[TB_FRAME_BUFFER_LIMIT];
    struct tb_hop hop;
    uint16_t flags = 0;
    while (recv(link, bytes, sizeof hop, MSG_DONTWAIT) == (ssize_t)sizeof hop) {
        assert_int_equal(tb_wire_get_hop(bytes, &hop), TB_OK);
        assert_true(hop.length == 0 || recv(link, bytes, hop.length, MSG_DONTWAIT) == (ssize_t)hop.length);
        if (hop.type != TB_HOP_PING)
            continue;
        flags = hop.flags;
        struct tb_hop pong = {
            .version = TB_WIRE_VERSION, .type = TB_HOP_PONG, .sequence = (*sequence)++, .credit = hop.credit};
        tb_wire_put_hop(bytes, &pong);
        assert_int_equal(send(link, bytes, sizeof pong, 0), sizeof pong);
    }
    return flags;
}

static int segment_of(struct world *at, uint32_t host, enum tb_stream stream)
{
    int segment = 0;
    socklen_t length = sizeof segment;
    struct tb_neighbour *n = tb_neighbour_find(&at->network.forwarder.table, TB_PROC_AGENT | host);
    const struct tb_hop_connection *connection = tb_neighbour_connection(n, stream, 0);
    assert_non_null(connection);
    assert_int_equal(getsockopt(connection->watch.descriptor, IPPROTO_TCP, TCP_MAXSEG, &segment, &length), 0);
    return segment;
}

/* One stream stands still while the other one answers, as where large packets are lost: it is made anew with small
 * ones, the other agent and the user hear of it, and what was sent on it arrives. */
static void large_packets_that_are_lost(void **state)
{
    static char bytes[TB_FRAME_BUFFER_LIMIT];
    static struct world_frame frame;
    uint32_t pongs = 0, sequence = 0;
    const struct tb_job_waiting there = {.count = 1, .hosts = {1}};
    int a = world_join(&w[0], 0, TB_STREAM_BULK, 0), b = world_join(&w[1], FAR, TB_STREAM_BULK, 0);
    int link[2] = {world_join(&w[0], TB_PROC_AGENT | 1, TB_STREAM_SHORT, 0),
                   world_join(&w[0], TB_PROC_AGENT | 1, TB_STREAM_BULK, 0)};
    size_t length = frame_make(bytes, 0, 0, FAR, 0, 5000);
    assert_int_equal(send(a, bytes, length, 0), length);
    tb_host_network_want(&w[0].network, 0, &there);
    uint16_t flags = 0;
    for (int i = 0; i < 80 && w[0].note[0] == 0; i++) {
        flags |= answer(link[0], &pongs);
        loop_sim_run(&sim, 100 * MS);
    }
    assert_int_equal(flags, 0); /* not before it was found out */
    assert_non_null(strstr(w[0].note, "large packets are lost between host "));
    for (int i = 0; i < 60; i++) {
        loop_sim_run(&sim, 100 * MS);
        flags |= answer(link[0], &pongs);
    }
    assert_int_equal(flags, TB_HOP_SMALL);
    assert_true(recv(link[1], bytes, sizeof bytes, 0) > 0); /* what was lost */
    assert_true(world_is_closed(&w[0], link[1]));
    assert_in_range(segment_of(&w[0], 1, TB_STREAM_BULK), 88, 536);
    assert_true(world_get_frame(&w[1], b, &sequence, &frame));
    assert_int_equal(w[0].link_reports, 0);
    close(a);
    close(b);
    close(link[0]);
    close(link[1]);
}

/* The other agent has found it out: connections that we open are made so, too. */
static void lost_packets_are_told_of(void **state)
{
    char bytes[sizeof(struct tb_hop)];
    int a = world_join(&w[0], 0, TB_STREAM_BULK, 0), link = world_join(&w[0], TB_PROC_AGENT | 1, TB_STREAM_SHORT, 0);
    struct tb_hop ping = {.version = TB_WIRE_VERSION, .type = TB_HOP_PING, .flags = TB_HOP_SMALL, .credit = 1};
    tb_wire_put_hop(bytes, &ping);
    assert_int_equal(send(link, bytes, sizeof bytes, 0), sizeof bytes);
    loop_sim_run(&sim, MS);
    assert_int_equal(recv(link, bytes, sizeof bytes, MSG_DONTWAIT), sizeof bytes);
    assert_int_equal(tb_wire_get_hop(bytes, &ping), TB_OK);
    assert_true(ping.type == TB_HOP_PONG && ping.flags == TB_HOP_SMALL);
    send_frame(a, 0);
    loop_sim_run(&sim, 2 * SECOND);
    assert_in_range(segment_of(&w[0], 1, TB_STREAM_BULK), 88, 536);
    close(a);
    close(link);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_worlds, close_worlds)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(ranks_are_connected_across),     TEST(a_dead_link_comes_back),      TEST(frames_cross),
        TEST(open_streams_that_pass_nothing), TEST(a_rank_that_waits_is_enough), TEST(silent_connections_are_replaced),
        TEST(a_stream_that_cannot_be_opened), TEST(a_slow_wire_is_not_silent),   TEST(large_packets_that_are_lost),
        TEST(lost_packets_are_told_of),
    };
    tb_param_load();
    tb_log_threshold = TB_LOG_ERROR;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
