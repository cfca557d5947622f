/* Repair over wide areas: how long is waited for one who computes, is slow to answer, or has left. */
#include "link/wide_test.h"

/* The other side computes for a minute: the window fills, nothing is repeated, nobody is given up, and then all goes
 * on. */
static void a_peer_that_computes(void **state)
{
    for (uint64_t seed = 1; seed <= seeds(5); seed++) {
        begin((uint32_t)seed % 2 + 1, 10 * MS, seed);
        nodes_open("");
        nodes_talk(50, 50, 100 * SECOND);
        struct tb_link_counters before, after;
        counters_of(0, &before);
        nodes[1].computing = true;
        uint64_t until = net.now + 60 * SECOND, passed = net.passed;
        while (net.now < until) {
            node_send(&nodes[0], 2000);
            nodes_step(until);
        }
        REQUIRE(nodes[0].blocked && nodes[0].broken == 0);
        REQUIRE(net.passed - passed < TB_REPAIR_WIDE_WINDOW + 40); /* probes: one in five seconds */
        REQUIRE(tb_repair_kept(nodes[0].transport) <= tb_param.relay_window);
        nodes[1].computing = false;
        nodes_talk(2000, 100, 100 * SECOND);
        counters_of(0, &after);
        REQUIRE(after.repeated - before.repeated <= 20);
        nodes_close();
    }
}

/* Who closes waits for the other one's word over a long way, and no longer than that. */
static void goodbye(void **state)
{
    begin(2, 75 * MS, 3);
    nodes_open("");
    nodes_talk(20, 20, 100 * SECOND);
    uint64_t start = net.now;
    node_close(&nodes[0]);
    REQUIRE(net.now - start >= 150 * MS && net.now - start < 400 * MS);
    REQUIRE(nodes[1].broken == TB_ERR_CLOSED);
    start = net.now;
    node_close(&nodes[1]); /* nobody is left to wait for */
    REQUIRE(net.now - start < 10 * MS);
    nodes_close();
}

/* Nobody answers: two seconds, then it closes. */
static void goodbye_in_vain(void **state)
{
    begin(1, 75 * MS, 4);
    nodes_open("");
    nodes_talk(20, 20, 100 * SECOND);
    net.route[0].dead = true;
    uint64_t start = net.now;
    node_close(&nodes[0]);
    REQUIRE(net.now - start <= 2100 * MS);
    nodes_close();
}

/* The last word of one that has left was lost: whoever flushes is not kept for ever. */
static void one_that_left_unheard(void **state)
{
    begin(1, 10 * MS, 5);
    nodes_open("");
    nodes_talk(20, 20, 100 * SECOND);
    net.route[0].dead = true;
    node_send(&nodes[0], 30);
    nodes_run(60 * SECOND);
    REQUIRE(!nodes[0].transport->table->idle(nodes[0].transport));
    nodes_run(tb_param.link_patience);
    REQUIRE(nodes[0].transport->table->idle(nodes[0].transport) && nodes[0].broken == 0);
    nodes_close();
}

/* Who has sent may compute for hours: what was taken from it has left. */
static void what_does_not_leave_is_not_taken(void **state)
{
    begin(1, 10 * MS, 1);
    bulk_only = true;
    nodes_open("");
    nodes_talk(1000, 0, 100 * SECOND);
    uint64_t passed = net.passed;
    node_send(&nodes[0], 2000);
    REQUIRE(nodes[0].blocked && nodes[0].sent > 1000);
    REQUIRE(net.passed - passed == nodes[0].sent - 1000);
    nodes[0].computing = true;
    nodes_run(1 * SECOND);
    REQUIRE(nodes[1].received == nodes[0].sent);
    nodes[0].computing = false;
    nodes_talk(2000, 0, 100 * SECOND);
    nodes_close();
}

/* A lost frame is repaired as fast as the ones before it. */
static void losses_do_not_teach_patience(void **state)
{
    begin(1, 10 * MS, 7);
    bulk_only = true;
    size_limit = 1000;
    net.route[0].loss = 20000;
    nodes_open("");
    for (uint32_t i = 0; i < 1000; i++) {
        node_send(&nodes[0], nodes[0].sent + 1);
        frames_arrive(0, 2 * SECOND);
        nodes_run(5 * MS);
    }
    REQUIRE(net.lost > 10);
    nodes_close();
}

/* Answers that wait until their reader has computed say nothing about the way. */
static void computing_does_not_teach_patience(void **state)
{
    static const uint64_t spans[] = {150 * MS, 1 * SECOND, 20 * SECOND, 300 * SECOND};
    for (size_t i = 0; i < sizeof(spans) / sizeof(spans[0]); i++) {
        begin(1, 10 * MS, 1);
        bulk_only = true;
        size_limit = 1000;
        nodes_open("");
        nodes_talk(20, 20, 100 * SECOND);
        for (int phase = 0; phase < 6; phase++) {
            node_send(&nodes[0], nodes[0].sent + 1);
            nodes[0].computing = true;
            nodes_run(spans[i]);
            nodes[0].computing = false;
            nodes_talk(nodes[0].sent, 20, 100 * SECOND);
        }
        net.route[0].dead = true;
        node_send(&nodes[0], nodes[0].sent + 1);
        nodes_run(20 * MS);
        net.route[0].dead = false;
        frames_arrive(20, 2 * SECOND);
        nodes_close();
    }
}

/* New ways are tried at once by who has waited for the old ones until it was patient. */
static void new_ways_are_tried_at_once(void **state)
{
    for (int hurry = 0; hurry < 2; hurry++) {
        begin(1, 10 * MS, 1);
        nodes_open("");
        nodes_talk(20, 20, 100 * SECOND);
        net.route[0].dead = true;
        node_send(&nodes[0], nodes[0].sent + 1);
        nodes_run(30 * SECOND);
        net.route[0].dead = false;
        if (hurry == 1) {
            tb_link_hurry(nodes[0].transport);
            frames_arrive(20, 500 * MS);
        } else {
            nodes_run(500 * MS);
            REQUIRE(nodes[1].received < nodes[0].sent);
        }
        nodes_close();
    }
}

/* Who comes back after an hour does not believe that nobody is there, but listens first. */
static void an_hour_of_computing_is_no_silence(void **state)
{
    begin(1, 10 * MS, 1);
    nodes_open("");
    nodes_talk(20, 20, 100 * SECOND);
    net.route[0].dead = true;
    node_send(&nodes[0], nodes[0].sent + 1);
    net.route[0].dead = false;
    nodes[0].computing = true;
    nodes_run(3600 * SECOND);
    nodes[0].computing = false;
    node_step(&nodes[0]);
    REQUIRE(!nodes[0].transport->table->idle(nodes[0].transport));
    nodes_talk(nodes[0].sent, 20, 10 * SECOND);
    nodes_close();
}

int main(void)
{
    if (tb_param_load() != TB_OK)
        return 1;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_peer_that_computes),
        cmocka_unit_test(goodbye),
        cmocka_unit_test(goodbye_in_vain),
        cmocka_unit_test(one_that_left_unheard),
        cmocka_unit_test(what_does_not_leave_is_not_taken),
        cmocka_unit_test(losses_do_not_teach_patience),
        cmocka_unit_test(computing_does_not_teach_patience),
        cmocka_unit_test(new_ways_are_tried_at_once),
        cmocka_unit_test(an_hour_of_computing_is_no_silence),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
