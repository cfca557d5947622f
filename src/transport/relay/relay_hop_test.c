/* The relay: which hop a frame takes, when gateways die, refuse, do not answer or lose. */
#include "transport/relay/relay_test.h"

static uint32_t gateway_of_short_frames(void)
{
    for (uint32_t i = 0; i < GATEWAYS; i++)
        if (gateways[i].passed[TB_STREAM_SHORT] > 0)
            return i;
    fail();
    return 0;
}

static void death_of_a_gateway_leaves_the_others(void **state)
{
    use_all_gateways();
    for (uint32_t i = 0; i < 10; i++) {
        send_until_taken(i, 8, TB_STREAM_SHORT);
        send_until_taken(i, 8, TB_STREAM_BULK);
    }
    uint32_t dead = gateway_of_short_frames();
    gateway_die(dead);
    world_run();
    assert_int_equal(ranks[0].broken, 0);
    uint32_t before = gateways[(dead + 1) % GATEWAYS].passed[TB_STREAM_SHORT] +
                      gateways[(dead + 2) % GATEWAYS].passed[TB_STREAM_SHORT];
    for (uint32_t i = 0; i < 20; i++) {
        send_until_taken(i, 8, TB_STREAM_SHORT);
        send_until_taken(i, 8, TB_STREAM_BULK);
    }
    assert_int_equal(gateways[(dead + 1) % GATEWAYS].passed[TB_STREAM_SHORT] +
                         gateways[(dead + 2) % GATEWAYS].passed[TB_STREAM_SHORT],
                     before + 20);
    /* It comes back: asked for again after a while, it carries its frames again. */
    gateway_open(dead);
    uint32_t passed = gateways[dead].passed[TB_STREAM_SHORT];
    assert_in_range(ranks[0].transport->table->deadline(ranks[0].transport), now + 1, now + 200 * MS);
    now += 200 * MS;
    world_run();
    for (uint32_t i = 0; i < 20; i++)
        send_until_taken(i, 8, TB_STREAM_SHORT);
    assert_in_range(gateways[dead].passed[TB_STREAM_SHORT], passed + 18, passed + 20);
}

static void a_refusing_gateway_is_asked_less_and_less(void **state)
{
    static const uint64_t pauses[] = {200, 400, 800, 1600, 2000, 2000};
    struct tb_transport *t = ranks[0].transport;
    gateways[0].refuses = true;
    assert_int_equal(send_one(1, 8, TB_STREAM_SHORT), TB_AGAIN);
    world_run();
    for (uint32_t i = 0; i < sizeof(pauses) / sizeof(pauses[0]); i++) {
        assert_int_equal(gateways[0].asked, i + 1);
        assert_int_equal(t->table->deadline(t), now + pauses[i] * MS);
        now += pauses[i] * MS - 1;
        assert_int_equal(send_one(1, 8, TB_STREAM_SHORT), TB_AGAIN);
        world_run();
        assert_int_equal(gateways[0].asked, i + 1);
        now += 1;
        uint32_t writable = ranks[0].writable;
        world_run();
        assert_true(ranks[0].writable > writable);
        assert_int_equal(send_one(1, 8, TB_STREAM_SHORT), TB_AGAIN);
        world_run();
    }
    assert_int_equal(ranks[0].broken, 0);
    /* Before the time is up the gateway connects by itself. */
    gateways[0].refuses = false;
    connect_pair(&(struct wish){0, 0, TB_STREAM_SHORT});
    send_until_taken(2, 8, TB_STREAM_SHORT);
    send_until_taken(3, 8, TB_STREAM_SHORT);
    assert_int_equal(ranks[1].received, 1);
    assert_int_equal(ranks[1].matches[0], 3);
}

/* A gateway that never answers does not hold up short frames while another one is connected. */
static void a_deaf_gateway_is_passed_by(void **state)
{
    use_all_gateways();
    for (uint32_t i = 0; i < 5; i++)
        send_until_taken(i, 8, TB_STREAM_SHORT);
    uint32_t own = gateway_of_short_frames(), other = (own + 1) % GATEWAYS;
    connect_pair(&(struct wish){0, other, TB_STREAM_SHORT});
    gateways[own].deaf = true;
    tb_relay_changed(ranks[0].transport);
    gateway_die(own);
    gateway_open(own);
    world_run();
    now += 200 * MS;
    world_run();
    for (uint32_t i = 0; i < 5; i++)
        (void)send_one(i, 8, TB_STREAM_SHORT), world_run();
    assert_int_equal(gateways[own].passed[TB_STREAM_SHORT], 5);
    assert_in_range(gateways[other].passed[TB_STREAM_SHORT], 4, 5);
    assert_int_equal(ranks[0].broken, 0);
}

static void new_routes_are_taken(void **state)
{
    struct tb_transport *t = ranks[0].transport;
    gateways[0].deaf = true;
    assert_int_equal(send_one(1, 8, TB_STREAM_SHORT), TB_AGAIN);
    world_run();
    uint32_t writable = ranks[0].writable;
    ranks[0].hops[0] = 2;
    tb_relay_changed(t);
    assert_false(t->table->arm(t));
    t->table->disarm(t);
    world_run();
    assert_int_equal(ranks[0].writable, writable + 1);
    send_until_taken(2, 8, TB_STREAM_SHORT);
    assert_int_equal(gateways[2].passed[TB_STREAM_SHORT], 1);
    ranks[0].no_route = TB_ERR_PEER;
    tb_relay_changed(t);
    assert_int_equal(ranks[0].broken, 0); /* told from poll */
    world_run();
    assert_int_equal(ranks[0].broken, TB_ERR_PEER);
    assert_int_equal(send_one(3, 8, TB_STREAM_SHORT), TB_ERR_PEER);
    assert_non_null(strstr(tb_error_story(), "no way leads to rank 1"));
}

/* The endpoint of the other rank, with two hops to choose from, after nine frames. */
static struct tb_endpoint *two_hops(void)
{
    struct tb_transport *t = ranks[0].transport;
    struct tb_endpoint *to;
    ranks[0].hop_count = 2;
    ranks[0].hops[1] = 1;
    for (uint64_t i = 0; i < 8; i++)
        send_until_taken(i, 8, i % 2 ? TB_STREAM_BULK : TB_STREAM_SHORT);
    assert_int_equal(t->table->endpoint(t, (struct tb_proc){JOB, 1}, &to), TB_OK);
    send_until_taken(8, 8, TB_STREAM_SHORT);
    return to;
}

/* Who repairs says which frames arrive: a hop behind which none does is avoided, short and bulk alike, for a while. */
static void a_hop_that_loses_everything_is_avoided(void **state)
{
    struct tb_transport *t = ranks[0].transport;
    struct tb_endpoint *to = two_hops();
    uint32_t own = t->table->route(to);
    t->table->outcome(to, own, now, true);
    t->table->outcome(to, own, now, false); /* as a full gateway does it, whose other frames arrive */
    send_until_taken(9, 8, TB_STREAM_SHORT);
    assert_int_equal(t->table->route(to), own);
    now += MS;
    t->table->outcome(to, own, now, false);
    for (uint64_t i = 10; i < 18; i++) {
        send_until_taken(i, 8, i % 2 ? TB_STREAM_BULK : TB_STREAM_SHORT);
        assert_int_not_equal(t->table->route(to), own);
    }
    t->table->outcome(to, TB_PROC_AGENT | 0, now, false); /* if nothing arrives anywhere, all are as good */
    t->table->outcome(to, TB_PROC_AGENT | 1, now, false);
    send_until_taken(18, 8, TB_STREAM_SHORT);
    assert_int_equal(t->table->route(to), own);
    now += 60000 * MS;
    send_until_taken(19, 8, TB_STREAM_SHORT);
    assert_int_equal(t->table->route(to), own);
}

/* A hop that has proved good again is avoided for no longer the next time than the first time. */
static void old_losses_are_forgiven(void **state)
{
    struct tb_transport *t = ranks[0].transport;
    struct tb_endpoint *to = two_hops();
    uint32_t own = t->table->route(to);
    uint64_t before = now;
    for (uint64_t round = 0; round < 20; round++) {
        bool forgiven = round % 5 == 0; /* else it is worse each time, though something that is older arrives */
        uint64_t span = 4000 * MS << round % 5;
        if (forgiven)
            t->table->outcome(to, own, now, true);
        else
            t->table->outcome(to, own, before, true);
        now += MS;
        before = now;
        t->table->outcome(to, own, now, false);
        now += span - MS;
        send_until_taken(20 + 2 * round, 8, TB_STREAM_SHORT);
        assert_int_not_equal(t->table->route(to), own);
        now += 2 * MS;
        send_until_taken(21 + 2 * round, 8, TB_STREAM_SHORT);
        assert_int_equal(t->table->route(to), own);
    }
}

int main(void)
{
    if (tb_param_load() != TB_OK)
        return 1;
    const struct CMUnitTest tests[] = {
        IN_A_WORLD(death_of_a_gateway_leaves_the_others),
        IN_A_WORLD(a_refusing_gateway_is_asked_less_and_less),
        IN_A_WORLD(a_deaf_gateway_is_passed_by),
        IN_A_WORLD(new_routes_are_taken),
        IN_A_WORLD(a_hop_that_loses_everything_is_avoided),
        IN_A_WORLD(old_losses_are_forgiven),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
