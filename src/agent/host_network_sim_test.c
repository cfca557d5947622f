/* Two agents of different clusters on the simulated network: what a wide link does to them, in virtual time. */
#include "agent/network_world.h"

#include "agent/loop_sim_test.h"

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
    loop_sim_open(&sim, 1);
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

static void connect_far(void)
{
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

/* The link is dead when a rank wants to cross it: the user hears so, and of its end, and the rank gets what it wanted.
 */
static void a_dead_link_comes_back(void **state)
{
    sim.sim.route[0].dead = true;
    connect_far();
    loop_sim_run(&sim, 4 * SECOND);
    assert_string_equal(w[0].note, "");
    loop_sim_run(&sim, 6 * SECOND);
    assert_non_null(strstr(w[0].note, "the link between host host0 (cluster cluster0) and host host1 (cluster "
                                      "cluster1) is down, waiting for up to 60 s"));
    loop_sim_run(&sim, 20 * SECOND);
    assert_int_equal(w[0].handed[0], -1);
    sim.sim.route[0].dead = false;
    loop_sim_run(&sim, 10 * SECOND);
    assert_true(w[0].handed[0] >= 0 && w[1].handed[FAR] >= 0);
    assert_string_equal(w[0].note, "the link to host host1 is up again");
    assert_string_equal(w[0].trouble, "");
    assert_int_equal(w[0].refused[0], TB_OK);
}

static void a_link_that_stays_dead_ends_the_job(void **state)
{
    sim.sim.route[0].dead = true;
    connect_far();
    loop_sim_run(&sim, 59 * SECOND);
    assert_string_equal(w[0].trouble, "");
    loop_sim_run(&sim, 3 * SECOND);
    assert_non_null(strstr(w[0].trouble, "and there is no way around it"));
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

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_worlds, close_worlds)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(ranks_are_connected_across),
        TEST(a_dead_link_comes_back),
        TEST(a_link_that_stays_dead_ends_the_job),
        TEST(frames_cross),
    };
    tb_param_load();
    tb_log_threshold = TB_LOG_ERROR;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
