/* Repair over wide areas: routes of different delay, rate and loss, some of which die. */
#include "link/wide_test.h"

/* Without loss little is sent twice, though the routes differ as much as routes can. */
static void routes_of_different_delay(void **state)
{
    for (uint64_t seed = 1; seed <= seeds(10); seed++) {
        begin(2, 5 * MS, seed);
        net.route[1].delay = 20 * MS * seed;
        nodes_open("");
        nodes_talk(1500, 200, 100 * SECOND);
        struct tb_link_counters n;
        counters_of(0, &n);
        REQUIRE(n.repeated <= 200); /* of the first window only, until the slower route is known */
        counters_of(1, &n);
        REQUIRE(n.reordered > 0);
        nodes_close();
    }
}

static void losses_on_all_routes(void **state)
{
    for (uint64_t seed = 1; seed <= seeds(20); seed++) {
        begin(1 + (uint32_t)seed % ROUTES, 10 * MS, seed);
        for (int w = 0; w < ROUTES; w++)
            net.route[w].loss = 20000;
        nodes_open("");
        nodes_talk(1000, 1000, 300 * SECOND);
        struct tb_link_counters n;
        counters_of(0, &n);
        REQUIRE(net.lost > 0 && n.repeated > 0);
        nodes_close();
    }
}

/* Also where the fault decorator stands between, and frames must be checked. */
static void faults_of_every_kind(void **state)
{
    for (uint64_t seed = 1; seed <= seeds(10); seed++) {
        char fault[80];
        begin(2, 2 * MS, seed);
        snprintf(fault, sizeof(fault), "loss=1%%,repeat=1%%,delay=5ms,corrupt=1%%,seed=%u", (unsigned)seed);
        nodes_open(fault);
        size_limit = nodes[0].transport->max_payload;
        nodes_talk(500, 500, 300 * SECOND);
        nodes_close();
    }
}

/* One of two gateways dies with all that it holds. */
static void death_of_a_route(void **state)
{
    for (uint64_t seed = 1; seed <= seeds(10); seed++) {
        begin(2, 10 * MS, seed);
        nodes_open("");
        uint64_t until = net.now + 50 * MS + seed * 3 * MS;
        while (net.now < until) {
            node_send(&nodes[0], 3000);
            nodes_step(until);
        }
        tb_sim_route_clear(&net, seed % 2);
        net.route[seed % 2].dead = true;
        nodes_run(300 * MS); /* until the hop is known to be dead */
        net.routes = 1;
        if (seed % 2 == 0) /* the one that is left takes its place */
            net.route[0].dead = false;
        nodes_talk(3000, 10, 100 * SECOND);
        nodes_close();
    }
}

/* 100 Mbit/s with 10 ms one way is filled; and so is 1 Gbit/s with 50 ms, if the window allows it. */
static void the_pipe_is_filled(void **state)
{
    static const struct {
        uint64_t delay, nanoseconds;
        const char *window;
        uint32_t frames;
    } cases[] = {{10 * MS, 80, "4m", 3000}, {50 * MS, 8, "16m", 12000}, {75 * MS, 800, "4m", 600}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        begin(1, cases[i].delay, 1);
        bulk_only = true;
        net.route[0].byte_time = cases[i].nanoseconds;
        assert_int_equal(tb_param_set("relay_window", cases[i].window, TB_PARAM_LAUNCHER), TB_OK);
        nodes_open("");
        nodes_talk(cases[i].frames, 0, 1000 * SECOND); /* the room grows */
        uint64_t start = net.now;
        nodes_talk(2 * cases[i].frames, 0, 1000 * SECOND);
        uint64_t took = nodes[1].last - start - cases[i].delay;
        uint64_t least = (uint64_t)cases[i].frames * (PAYLOAD + 88) * cases[i].nanoseconds;
        struct tb_link_counters n;
        counters_of(0, &n);
        REQUIRE(took < least + least / 33);
        REQUIRE(n.repeated == 0);
        nodes_close();
    }
    tb_param_set("relay_window", "4m", TB_PARAM_LAUNCHER);
}

/* A frame is late, as where a TCP stream waits for its timer: those on other routes go on, as far as there is room for
 * copies, and the late one is not taken for lost. */
static void a_late_frame_holds_up_nobody(void **state)
{
    begin(2, 10 * MS, 1);
    bulk_only = true;
    nodes_open("");
    nodes_talk(11, 0, 10 * SECOND);
    net.route[1].delay = 260 * MS;
    node_send(&nodes[0], 12); /* on route 1 */
    REQUIRE(nodes[0].sent == 12);
    net.routes = 1;
    uint64_t until = net.now + 240 * MS;
    while (net.now < until) {
        node_send(&nodes[0], 200);
        nodes_step(until);
    }
    REQUIRE(nodes[1].received == 11 && nodes[0].sent == 200);
    nodes_talk(200, 0, 10 * SECOND);
    struct tb_link_counters n;
    counters_of(0, &n);
    REQUIRE(n.repeated == 0);
    nodes_close();
}

/* The window is full, everything in it is lost at once. */
static void loss_of_a_whole_window(void **state)
{
    for (uint64_t seed = 1; seed <= seeds(5); seed++) {
        begin((uint32_t)seed % 2 + 1, 20 * MS, seed);
        nodes_open("");
        nodes_talk(50, 50, 100 * SECOND);
        net.route[0].dead = net.route[1].dead = true;
        uint64_t until = net.now + 30 * SECOND; /* as long as a link is cut */
        while (net.now < until) {
            node_send(&nodes[0], 1500);
            nodes_step(until);
        }
        REQUIRE(nodes[0].blocked && nodes[0].broken == 0);
        net.route[0].dead = net.route[1].dead = false;
        uint64_t start = net.now;
        nodes_talk(1500, 100, 100 * SECOND);
        REQUIRE(net.now - start < 12 * SECOND);
        nodes_close();
    }
}

/* Random delays, losses, rates, pauses. */
static void random_weather(void **state)
{
    for (uint64_t seed = 1; seed <= seeds(40); seed++) {
        begin(1 + (uint32_t)seed % ROUTES, 1 * MS, seed);
        struct tb_random random;
        tb_random_seed(&random, seed);
        size_limit = seed % 3 == 0 ? 200 : PAYLOAD;
        for (int w = 0; w < ROUTES; w++) {
            net.route[w].delay = tb_random_below(&random, 100) * MS;
            net.route[w].byte_time = 8 + tb_random_below(&random, 200);
            net.route[w].loss = (uint32_t)tb_random_below(&random, 10000);
        }
        nodes_open("");
        uint32_t there = 0, back = 0;
        for (int i = 0; i < 8; i++) {
            there += (uint32_t)tb_random_below(&random, 200);
            back += (uint32_t)tb_random_below(&random, 200);
            nodes[tb_random_below(&random, 2)].computing = tb_random_below(&random, 2) != 0;
            node_send(&nodes[0], there);
            node_send(&nodes[1], back);
            nodes_run(tb_random_below(&random, 3000) * MS);
            net.route[tb_random_below(&random, ROUTES)].dead = tb_random_below(&random, 4) == 0;
            nodes[0].computing = nodes[1].computing = false;
        }
        net.route[0].dead = net.route[1].dead = net.route[2].dead = false;
        nodes_talk(there, back, 1000 * SECOND);
        nodes_close();
    }
}

/* The last frame of one side is lost while the other one sends as much as the line takes. */
static void a_stream_does_not_swallow_the_echo(void **state)
{
    for (int apart = 0; apart < 2; apart++) {
        begin(1, 10 * MS, 1);
        bulk_only = true;
        net.short_route = apart ? ROUTES - 1 : 0; /* short frames have one for themselves */
        nodes_open("");
        nodes_talk(20, 20, 100 * SECOND);
        uint64_t until = net.now + 1 * SECOND;
        while (net.now < until) {
            node_send(&nodes[1], UINT32_MAX);
            nodes_step(until);
        }
        net.route[0].dead = true;
        node_send(&nodes[0], nodes[0].sent + 1);
        net.route[0].dead = false;
        frames_arrive(UINT32_MAX, 3 * SECOND);
        nodes_close();
    }
}

int main(void)
{
    if (tb_param_load() != TB_OK)
        return 1;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(routes_of_different_delay),
        cmocka_unit_test(losses_on_all_routes),
        cmocka_unit_test(faults_of_every_kind),
        cmocka_unit_test(death_of_a_route),
        cmocka_unit_test(the_pipe_is_filled),
        cmocka_unit_test(a_late_frame_holds_up_nobody),
        cmocka_unit_test(loss_of_a_whole_window),
        cmocka_unit_test(a_stream_does_not_swallow_the_echo),
        cmocka_unit_test(random_weather),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
