/* The forwarder where there are several ways to a host: gateways share what is sent, and others take over. */
#include "agent/network_world.h"

#include <sys/socket.h>
#include <unistd.h>

static void several_gateways_share(void **state)
{
    struct world w;
    world_open(&w, 0);
    world_use_routes(&w);
    w.routes[1].means = w.routes[2].means = TB_HOST_ROUTE_DIRECT;
    w.routes[1].relays = w.routes[2].relays = 1;
    w.routes[3] = (struct tb_host_route){.means = TB_HOST_ROUTE_RELAYED, .hop_count = 2, .hops = {1, 2}};
    uint32_t to = LOCAL_RANKS + 2, out[2] = {0}, in[2][2] = {{0}}, count[2] = {0}, told[2] = {0};
    int a[2] = {world_join(&w, 0, TB_STREAM_SHORT, 0), world_join(&w, 0, TB_STREAM_BULK, 0)}, hops[2][2];
    for (uint32_t h = 0; h < 2; h++)
        for (int s = 0; s < 2; s++)
            hops[h][s] = world_join(&w, TB_PROC_AGENT | (1 + h), (enum tb_stream)s, 0);
    for (uint64_t i = 0; i < 40; i++) /* a pair's short ones keep together */
        assert_true(world_put_frame(&w, a[0], &out[0], 0, to, i, 8));
    world_spin(&w, 5);
    for (int h = 0; h < 2; h++)
        count[h] = world_drain(&w, hops[h][0], &in[h][0]);
    assert_true((count[0] == 40 && count[1] == 0) || (count[0] == 0 && count[1] == 40));
    int gone = count[0] > 0 ? 0 : 1;
    for (uint64_t i = 0; i < 200; i++) /* long ones are spread: neither socket takes them all */
        assert_true(world_put_frame(&w, a[1], &out[1], 0, to, i, TB_RELAY_PAYLOAD));
    count[0] = count[1] = 0;
    for (int rounds = 0; rounds < 500 && count[0] + count[1] < 200; rounds++) {
        world_spin(&w, 1);
        for (int h = 0; h < 2; h++)
            count[h] += world_drain(&w, hops[h][1], &in[h][1]);
        world_receipt(&w, hops[rounds % 2][0], &told[rounds % 2], 3, 0, to, 40 + count[0] + count[1]);
    }
    assert_int_equal(count[0] + count[1], 200);
    assert_in_range(count[0], 60, 140);
    /* One of them goes away; everything takes the other, and goes on doing so. */
    close(hops[gone][0]);
    close(hops[gone][1]);
    world_spin(&w, 10);
    for (int again = 0; again < 3; again++) {
        for (uint64_t i = 0; i < 20; i++)
            assert_true(world_put_frame(&w, a[0], &out[0], 0, to, i, 8));
        count[0] = 0;
        for (int rounds = 0; rounds < 500 && count[0] < 20; rounds++) {
            world_spin(&w, 1);
            count[0] += world_drain(&w, hops[1 - gone][0], &in[1 - gone][0]);
        }
        assert_int_equal(count[0], 20);
        world_spin(&w, 300); /* in which nothing waits, and connecting fails */
    }
    /* New routes without it. */
    assert_true(world_put_frame(&w, a[0], &out[0], 0, to, 7, 8));
    w.routes[3].hop_count = 1;
    w.routes[3].hops[0] = gone == 0 ? 2 : 1;
    tb_host_network_reroute(&w.network);
    world_spin(&w, 5);
    assert_int_equal(world_drain(&w, hops[1 - gone][0], &in[1 - gone][0]), 1);
    for (int s = 0; s < 2; s++) {
        close(a[s]);
        close(hops[1 - gone][s]);
    }
    world_close(&w);
}

/* What has waited for a gateway and goes another way is that one's load from then on. */
static void what_goes_another_way_leaves_nothing_behind(void **state)
{
    struct world w;
    world_open(&w, 0);
    world_use_routes(&w);
    w.routes[1].means = w.routes[2].means = TB_HOST_ROUTE_DIRECT;
    w.routes[1].relays = w.routes[2].relays = 1;
    w.routes[3] = (struct tb_host_route){.means = TB_HOST_ROUTE_RELAYED, .hop_count = 1, .hops = {1}};
    uint32_t to = LOCAL_RANKS + 2, out = 0, in = 0, told = 0, frames = 4 * ((512u << 10) / TB_RELAY_PAYLOAD);
    int a = world_join(&w, 0, TB_STREAM_BULK, 0), hops[2][2], small = 1;
    for (uint32_t h = 0; h < 2; h++)
        for (int s = 0; s < 2; s++)
            hops[h][s] = world_join(&w, TB_PROC_AGENT | (1 + h), (enum tb_stream)s, 0);
    setsockopt(hops[0][TB_STREAM_BULK], SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
    for (uint64_t i = 0; i < frames; i++)
        assert_true(world_put_frame(&w, a, &out, 0, to, i, TB_RELAY_PAYLOAD));
    world_spin(&w, 5);
    const struct tb_far_host *far = w.network.forwarder.crossing.replay.hosts[3];
    size_t before = tb_far_host_loaded(far, 1);
    assert_true(before > 0 && before == far->under_way && tb_far_host_loaded(far, 2) == 0);
    assert_false(tb_far_host_uses(far, 2));
    w.routes[3].hops[0] = 2;
    tb_forwarder_reroute(&w.network.forwarder);
    assert_true(tb_far_host_uses(far, 2));
    assert_true(tb_far_host_loaded(far, 2) > 0);
    assert_int_equal(tb_far_host_loaded(far, 1) + tb_far_host_loaded(far, 2), before);
    for (int rounds = 0; rounds < 500 && tb_forwarder_kept(&w.network.forwarder, 0) > 0; rounds++) {
        world_spin(&w, 1);
        world_drain(&w, hops[1][TB_STREAM_BULK], &in);
        world_receipt(&w, hops[1][TB_STREAM_SHORT], &told, 3, 0, to, frames);
    }
    assert_int_equal(tb_forwarder_kept(&w.network.forwarder, 0), 0);
    assert_int_equal(far->under_way + tb_far_host_loaded(far, 1) + tb_far_host_loaded(far, 2), 0);
    close(a);
    for (int i = 0; i < 4; i++)
        close(hops[i / 2][i % 2]);
    world_close(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(several_gateways_share),
        cmocka_unit_test(what_goes_another_way_leaves_nothing_behind),
    };
    tb_param_load();
    tb_log_threshold = TB_LOG_ERROR;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
