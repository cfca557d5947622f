#include "launch/link_states.h"

#include "remote/virtual_loop_test.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define MS      UINT64_C(1000000)
#define SECOND  (1000 * MS)
#define HOSTS   8u
#define SILENCE (3 * SECOND) /* after which agents complain */

/* Hosts 0 to 3 are in one cluster, 4 and 5 are gateways with a link each to it, 6 and 7 are behind them. */
enum { O1, O2, O3, O4, GATE1, GATE2, F1, F2 };

struct world {
    struct virtual_loop loop;
    struct tb_address_book book;
    struct tb_host hosts[HOSTS];
    struct tb_link_states states;
    bool awake[HOSTS];   /* their control streams speak */
    bool answers[HOSTS]; /* and they answer each other, */
    bool cut[2];         /* but for these links */
    bool apart;          /* F1 and F2 do not reach each other */
    bool complains[HOSTS][HOSTS];
    uint64_t answered[HOSTS][HOSTS];
    bool around[2];
    bool no_way; /* around anything */
    uint32_t reroutes, said_count, failed_count;
    char said[16][400], failed[400];
};

static uint64_t way(void *context, uint32_t a, uint32_t b, const char **link)
{
    uint32_t low = a < b ? a : b, high = a < b ? b : a;
    *link = low > O4 || (high != GATE1 && high != GATE2) ? NULL : high == GATE1 ? "gate1-office" : "gate2-office";
    return *link != NULL ? 1000 + high : low * HOSTS + high;
}

static int reroute(void *context, uint32_t a, uint32_t b, bool cut)
{
    struct world *w = context;
    uint32_t gate = a > b ? a : b;
    if (gate != GATE1 && gate != GATE2)
        return TB_ERR_UNSUPPORTED;
    if (cut && (w->no_way || w->around[GATE1 + GATE2 - gate - GATE1]))
        return TB_ERR_UNSUPPORTED; /* the other one is cut already */
    w->reroutes++;
    w->around[gate - GATE1] = cut;
    return TB_OK;
}

static void say(void *context, const char *text)
{
    struct world *w = context;
    assert_true(w->said_count < 16);
    snprintf(w->said[w->said_count++], sizeof w->said[0], "%s", text);
}

static void fail_job(void *context, const char *text)
{
    struct world *w = context;
    w->failed_count++;
    snprintf(w->failed, sizeof w->failed, "%s", text);
}

static char cluster_names[] = "\0office\0farm";
static struct tb_place_row rows[] = {
    {TB_PLACE_NONE, 3, 0, 0, TB_LEVEL_WORLD, 0}, {0, 2, 1, 1, TB_LEVEL_CLUSTER, 0}, {0, 3, 8, 1, TB_LEVEL_CLUSTER, 0}};

static void world_open(struct world *w)
{
    static const char *const names[HOSTS] = {"o1", "o2", "o3", "o4", "gate1", "gate2", "f1", "f2"};
    memset(w, 0, sizeof *w);
    assert_int_equal(virtual_loop_open(&w->loop), 0);
    w->loop.now = 100 * SECOND;
    for (uint32_t i = 0; i < HOSTS; i++) {
        snprintf(w->hosts[i].name, sizeof w->hosts[i].name, "%s", names[i]);
        w->hosts[i].place = i <= O4 ? 1 : 2;
        w->awake[i] = w->answers[i] = true;
        for (uint32_t k = 0; k < HOSTS; k++)
            w->answered[i][k] = w->loop.now;
    }
    w->book = (struct tb_address_book){.host_count = HOSTS, .hosts = w->hosts, .places = {3, 13, rows, cluster_names}};
    tb_param.link_patience = 120 * SECOND;
    assert_int_equal(
        tb_link_states_open(&w->states, &w->loop.loop, &w->book,
                            &(struct tb_link_states_events){
                                .context = w, .way = way, .reroute = reroute, .say = say, .fail = fail_job}),
        TB_OK);
}

static void world_close(struct world *w)
{
    tb_link_states_close(&w->states);
    virtual_loop_close(&w->loop);
}

static bool is_open(const struct world *w, uint32_t a, uint32_t b)
{
    uint32_t low = a < b ? a : b, high = a < b ? b : a;
    bool border = low <= O4 && (high == GATE1 || high == GATE2);
    return w->answers[a] && w->answers[b] && !(border && w->cut[high - GATE1]) &&
           !(low == F1 && high == F2 && w->apart);
}

/* Who has something to do with whom: all of the office with the gateways, and the farm among themselves. */
static bool are_neighbours(uint32_t a, uint32_t b)
{
    uint32_t low = a < b ? a : b, high = a < b ? b : a;
    return a != b && ((low <= O4 && (high == GATE1 || high == GATE2)) || low >= GATE1);
}

/* What the agents would tell. */
static void agents_speak(struct world *w, bool second)
{
    for (uint32_t i = 0; i < HOSTS; i++) {
        if (!w->awake[i])
            continue;
        tb_link_states_heard(&w->states, i);
        for (uint32_t k = 0; k < HOSTS; k++) {
            if (!are_neighbours(i, k))
                continue;
            uint64_t silence = w->loop.now - w->answered[i][k];
            if (is_open(w, i, k)) {
                w->answered[i][k] = w->loop.now;
                if (w->complains[i][k])
                    tb_link_states_report(&w->states, i, k, false, silence, "");
                w->complains[i][k] = false;
            } else if (w->answers[i] && silence >= SILENCE && (second || !w->complains[i][k])) {
                w->complains[i][k] = true;
                tb_link_states_report(&w->states, i, k, true, silence, "no answer");
            }
        }
    }
}

static void pass(struct world *w, double seconds)
{
    for (int i = 0; i < (int)(seconds * 4); i++) {
        agents_speak(w, w->loop.now / (250 * MS) % 4 == 0);
        virtual_loop_pass(&w->loop, 250 * MS);
    }
}

static void expect_said(const struct world *w, uint32_t count, const char *last)
{
    if (w->said_count != count)
        fail_msg("%u messages, the last: %s", w->said_count, w->said_count > 0 ? w->said[w->said_count - 1] : "");
    if (count > 0)
        assert_string_equal(w->said[count - 1], last);
}

/* Four hosts lose one link: one message, and one when it is back. */
static void a_cut_link_is_named_once(void **state)
{
    struct world w;
    world_open(&w);
    pass(&w, 5);
    w.cut[0] = true;
    pass(&w, 2.5);
    assert_int_equal(w.reroutes, 0);
    pass(&w, 2);
    assert_true(w.around[0]);
    assert_int_equal(w.reroutes, 1);
    expect_said(&w, 1, "link gate1-office is cut (host o1 gets no answer from host gate1); messages go around it");
    pass(&w, 200); /* which nobody minds */
    w.cut[0] = false;
    pass(&w, 1);
    assert_true(w.around[0]); /* it has to prove itself */
    pass(&w, 3);
    assert_false(w.around[0]);
    expect_said(&w, 2, "link gate1-office is up again after 205 s");
    pass(&w, 70);
    assert_int_equal(w.states.way_count, 0);
    assert_int_equal(w.reroutes, 2);
    assert_int_equal(w.failed_count, 0);
    world_close(&w);
}

/* Only one end has something to say: the other one must be heard meanwhile. */
static void one_end_is_enough_if_the_other_lives(void **state)
{
    struct world w;
    world_open(&w);
    pass(&w, 5);
    for (int i = 0; i < 16; i++) {
        tb_link_states_heard(&w.states, O1);
        if (i < 8)
            tb_link_states_heard(&w.states, GATE1); /* as long as it takes to find out */
        if (i % 4 == 0)
            tb_link_states_report(&w.states, O1, GATE1, true, SILENCE + (uint64_t)i * 250 * MS, "no answer");
        virtual_loop_pass(&w.loop, 250 * MS);
        if (i == 0)
            expect_said(&w, 1,
                        "link gate1-office is cut (host o1 gets no answer from host gate1); messages go around it");
    }
    world_close(&w);
}

/* An agent is stopped, again and again, for 8 s: it is gone around, and nobody is told. */
static void a_stopped_agent_is_no_cut_link(void **state)
{
    struct world w;
    world_open(&w);
    pass(&w, 5);
    for (int round = 0; round < 3; round++) {
        w.answers[GATE1] = w.awake[GATE1] = false;
        pass(&w, 8);
        assert_true(w.around[0]);
        w.answers[GATE1] = w.awake[GATE1] = true;
        for (uint32_t k = 0; k < HOSTS; k++)
            w.answered[GATE1][k] = w.loop.now; /* it begins anew */
        pass(&w, 20);
        assert_false(w.around[0]);
    }
    expect_said(&w, 0, "");
    assert_int_equal(w.failed_count, 0);
    world_close(&w);
}

static void relapses_take_longer_to_forgive(void **state)
{
    struct world w;
    uint32_t holds[7];
    world_open(&w);
    for (int round = 0; round < 7; round++) {
        w.cut[0] = true;
        pass(&w, 5);
        assert_true(w.around[0]);
        w.cut[0] = false;
        for (holds[round] = 0; w.around[0]; holds[round]++)
            pass(&w, 1);
    }
    assert_in_range(holds[0], 2, 3);
    assert_in_range(holds[1], 4, 5);
    assert_in_range(holds[2], 8, 9);
    assert_in_range(holds[4], 32, 33);
    assert_in_range(holds[6], 32, 33);
    assert_int_equal(w.said_count, 14);
    pass(&w, 61);
    w.cut[0] = true;
    pass(&w, 5);
    w.cut[0] = false;
    pass(&w, 4);
    assert_false(w.around[0]);
    world_close(&w);
}

static void without_a_way_patience_ends(void **state)
{
    struct world w;
    world_open(&w);
    tb_param.link_patience = 12 * SECOND;
    pass(&w, 5);
    w.no_way = w.cut[0] = true;
    pass(&w, 5);
    expect_said(
        &w, 1,
        "link gate1-office is cut (host o1 gets no answer from host gate1) and there is no way around it; waiting for "
        "up to 12 s (--set link_patience=TIME)");
    w.cut[0] = false;
    pass(&w, 5);
    expect_said(&w, 2, "link gate1-office is up again after 6 s");
    w.cut[0] = true;
    pass(&w, 11.5);
    assert_int_equal(w.failed_count, 0);
    pass(&w, 20);
    assert_int_equal(w.failed_count, 1);
    assert_string_equal(w.failed,
                        "link gate1-office between host o1 (cluster office) and host gate1 (cluster farm) has been "
                        "cut for 12 s, and there is no way around it: no answer (--set link_patience=TIME waits "
                        "longer)");
    assert_int_equal(w.said_count, 3);
    world_close(&w);
}

/* When both links are cut there is no way around the second; when the first one heals, there is. */
static void another_way_is_found_later(void **state)
{
    struct world w;
    world_open(&w);
    pass(&w, 5);
    w.cut[0] = true;
    pass(&w, 5);
    w.cut[1] = true;
    pass(&w, 5);
    assert_true(w.around[0] && !w.around[1]);
    assert_int_equal(w.said_count, 2);
    assert_non_null(
        strstr(w.said[1], "gate2-office is cut (host o1 gets no answer from host gate2) and there is no way"));
    w.cut[0] = false;
    pass(&w, 4);
    assert_true(!w.around[0] && w.around[1]);
    pass(&w, 200);
    assert_int_equal(w.failed_count, 0);
    world_close(&w);
}

static void hosts_of_one_cluster_are_named(void **state)
{
    struct world w;
    world_open(&w);
    tb_param.link_patience = 20 * SECOND;
    pass(&w, 5);
    w.apart = true;
    pass(&w, 9);
    expect_said(
        &w, 1,
        "hosts f1 and f2 of cluster farm cannot reach each other, though the launcher reaches both (no answer); "
        "waiting for up to 20 s (--set link_patience=TIME)");
    w.apart = false;
    pass(&w, 4);
    expect_said(&w, 2, "hosts f1 and f2 of cluster farm reach each other again after 10 s");
    w.apart = true;
    pass(&w, 25);
    assert_int_equal(w.failed_count, 1);
    assert_string_equal(w.failed,
                        "hosts f1 and f2 of cluster farm have not reached each other for 20 s: no answer (--set "
                        "link_patience=TIME waits longer)");
    world_close(&w);
}

/* An agent that is gone for good: nothing is said of its links, and the others are judged as before. */
static void the_dead_are_forgotten(void **state)
{
    struct world w;
    world_open(&w);
    pass(&w, 5);
    w.answers[GATE1] = w.awake[GATE1] = false;
    pass(&w, 6);
    assert_true(w.around[0]);
    tb_link_states_forget(&w.states, GATE1);
    assert_false(w.around[0]);
    assert_int_equal(w.states.way_count, 0);
    for (uint32_t i = 0; i < HOSTS; i++) {
        w.answers[GATE1] = true; /* nobody asks it any more */
        w.complains[i][GATE1] = false;
    }
    pass(&w, 20);
    w.cut[1] = true;
    pass(&w, 5);
    assert_int_equal(w.said_count, 1);
    assert_non_null(strstr(w.said[0], "link gate2-office is cut"));
    world_close(&w);
}

/* Whoever says other things, but not that, has stopped complaining without a word. */
static void complaints_become_stale(void **state)
{
    struct world w;
    world_open(&w);
    pass(&w, 5);
    tb_link_states_report(&w.states, O1, GATE1, true, SILENCE, "no answer");
    pass(&w, 1);
    assert_true(w.around[0]);
    pass(&w, 10);
    assert_false(w.around[0]);
    tb_link_states_report(&w.states, O1, HOSTS, true, SILENCE, "nonsense");
    tb_link_states_report(&w.states, O1, O1, true, SILENCE, "nonsense");
    pass(&w, 61);
    assert_int_equal(w.states.way_count, 0);
    world_close(&w);
}

/* A connection between ranks passes nothing, though their hosts do: the ranks are named, and there is no way around. */
static void forgotten_connections_are_named(void **state)
{
    struct world w;
    world_open(&w);
    w.states.events.connections = true;
    w.no_way = true;
    tb_param.link_patience = 20 * SECOND;
    for (int attempt = 0; attempt < 2; attempt++) {
        for (int i = 0; i < 8; i++) { /* both ends see it */
            tb_link_states_report(&w.states, F1, F2, true, (uint64_t)(3 + i) * SECOND, "rank 3 on f1 and rank 4 on f2");
            tb_link_states_report(&w.states, F2, F1, true, (uint64_t)(2 + i) * SECOND, "rank 4 on f2 and rank 3 on f1");
            pass(&w, 1);
        }
        expect_said(&w, 1 + 2 * (uint32_t)attempt,
                    "nothing passes between rank 3 on f1 and rank 4 on f2, though their hosts reach each other: a "
                    "firewall or a NAT may have forgotten their connection, or the MTU on the way loses large packets; "
                    "waiting for "
                    "up to 20 s (--set link_patience=TIME)");
        if (attempt == 1)
            break;
        tb_link_states_report(&w.states, F1, F2, false, 0, "");
        tb_link_states_report(&w.states, F2, F1, false, 0, "");
        pass(&w, 70);
        expect_said(&w, 2, "messages pass between rank 3 on f1 and rank 4 on f2 again after 11 s");
    }
    for (int i = 0; i < 12; i++) {
        tb_link_states_report(&w.states, F1, F2, true, (uint64_t)(11 + i) * SECOND, "rank 3 on f1 and rank 4 on f2");
        pass(&w, 1);
    }
    assert_int_equal(w.failed_count, 1);
    assert_string_equal(w.failed,
                        "nothing has passed between rank 3 on f1 and rank 4 on f2 for 20 s, though their hosts reach "
                        "each other: a firewall or a NAT may have forgotten their connection, or the MTU on the way "
                        "loses large packets (--set link_patience=TIME waits longer)");
    world_close(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_cut_link_is_named_once),       cmocka_unit_test(one_end_is_enough_if_the_other_lives),
        cmocka_unit_test(a_stopped_agent_is_no_cut_link), cmocka_unit_test(relapses_take_longer_to_forgive),
        cmocka_unit_test(without_a_way_patience_ends),    cmocka_unit_test(another_way_is_found_later),
        cmocka_unit_test(hosts_of_one_cluster_are_named), cmocka_unit_test(the_dead_are_forgotten),
        cmocka_unit_test(complaints_become_stale),        cmocka_unit_test(forgotten_connections_are_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
