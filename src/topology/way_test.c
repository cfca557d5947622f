/* Ways between hosts of a group: their hops, their wires in order, and which of these are the same. */
#include "topology/grid_world_test.h"

#define MS    UINT64_C(1000000000)
#define AGENT UINT64_C(10000000)

static const struct tb_group_shape *all_hosts(const struct grid_world *w)
{
    uint32_t *hosts = malloc(w->grid.host_count * sizeof *hosts);
    for (uint32_t i = 0; i < w->grid.host_count; i++)
        hosts[i] = i;
    const struct tb_group_shape *shape = grid_shape(w, hosts, w->grid.host_count, 0);
    free(hosts);
    return shape;
}

/* "out up:a link down:b in", hop by hop, with the numbers of wires that are no host's own. */
static void way_print(struct tb_ways *ways, const struct grid_world *w, uint32_t from, uint32_t to, char *text)
{
    static const char *const roles[] = {"out", "in", "hub", "up", "down", "link", "wide", "agent"};
    const struct tb_way *way = tb_ways_between(ways, from, to);
    size_t at = 0;
    assert_non_null(way);
    for (uint32_t h = 0; h < way->hop_count; h++) {
        const struct tb_way_hop *hop = &ways->hops[way->first_hop + h];
        for (uint32_t i = 0; i < hop->wire_count; i++) {
            uint32_t number = tb_way_wire(ways, hop, i, from, to);
            const struct tb_wire_use *use = &ways->wires[number].use;
            at += (size_t)sprintf(text + at, "%s%s", at > 0 ? " " : "", roles[use->role]);
            if (number < 3 * ways->shape->host_count)
                at += (size_t)sprintf(text + at, ":%s", w->grid.hosts[number / 3].name);
            else if (use->role == TB_ROLE_UP || use->role == TB_ROLE_DOWN || use->role == TB_ROLE_HUB)
                at += (size_t)sprintf(text + at, ":%s", tb_places_name(&w->places, use->a));
        }
        at += (size_t)sprintf(text + at, "%s", h + 1 < way->hop_count ? " |" : "");
    }
}

static void assert_way(struct tb_ways *ways, const struct grid_world *w, const char *from, const char *to,
                       const char *expected)
{
    char text[1000] = "";
    way_print(ways, w, tb_grid_host_find(&w->grid, from), tb_grid_host_find(&w->grid, to), text);
    assert_string_equal(text, expected);
}

static void wires_stand_in_order(void **state)
{
    struct grid_world w;
    struct tb_ways ways;
    world_open(
        &w,
        "clusters: [{name: a, hosts: [ag, a1, a2], gateways: ag, uplink: {bandwidth: 20, latency: 5}},\n"
        " {name: b, hosts: [b1, b2], ethernet: {duplex: half}}, {name: c, hosts: [c1, c2], ethernet: {hub: true}},\n"
        " {name: d, hosts: d1}]\n"
        "links: [{from: b, to: c, bandwidth: 10, latency: 3, direct: yes}]\n");
    const struct tb_group_shape *shape = all_hosts(&w);
    assert_int_equal(tb_ways_open(&ways, &w.table, shape), TB_OK);
    assert_way(&ways, &w, "a1", "a2", "out:a1 in:a2");
    assert_way(&ways, &w, "a2", "a1", "out:a2 in:a1");
    /* The gateway's agent and port are its own, whoever uses them. */
    assert_way(&ways, &w, "a1", "ag", "out:a1 in:ag");
    assert_way(&ways, &w, "a1", "d1", "agent:a1 out:a1 in:ag | agent:ag up:a in:d1 agent:d1");
    assert_way(&ways, &w, "ag", "d1", "agent:ag up:a in:d1 agent:d1");
    assert_way(&ways, &w, "d1", "a2", "agent:d1 out:d1 down:a | agent:ag out:ag in:a2 agent:a2");
    /* Both directions of half duplex are one wire, and a hub has one for all. */
    assert_way(&ways, &w, "b1", "b2", "out:b1 out:b2");
    assert_way(&ways, &w, "c1", "c2", "hub:c");
    assert_way(&ways, &w, "c2", "b2", "hub:c link out:b2");
    assert_way(&ways, &w, "b1", "d1", "agent:b1 out:b1 wide in:d1 agent:d1");
    tb_ways_close(&ways);
    tb_group_shape_release(shape);
    world_close(&w);
}

static void what_is_shared_has_one_number(void **state)
{
    struct grid_world w;
    struct tb_ways ways;
    world_open(&w, "clusters: [{name: a, hosts: [a1, a2], uplink: {bandwidth: 20}}, {name: b, hosts: b1,\n"
                   " uplink: {bandwidth: 20}}, {name: c, hosts: c1, uplink: {bandwidth: 20, duplex: half}}]\n");
    const struct tb_group_shape *shape = all_hosts(&w);
    assert_int_equal(tb_ways_open(&ways, &w.table, shape), TB_OK);
    uint32_t ups[2], half[2];
    const uint32_t pairs[][2] = {{0, 2}, {1, 3}, {0, 3}, {3, 1}};
    for (uint32_t i = 0; i < 4; i++) {
        const struct tb_way *way = tb_ways_between(&ways, pairs[i][0], pairs[i][1]);
        const struct tb_way_hop *hop = &ways.hops[way->first_hop];
        /* Agent, port, uplink of one, downlink of the other, port, agent. */
        assert_int_equal(hop->wire_count, 6);
        if (i < 2)
            ups[i] = tb_way_wire(&ways, hop, 2, pairs[i][0], pairs[i][1]);
        else
            half[i - 2] = tb_way_wire(&ways, hop, i == 2 ? 3 : 2, pairs[i][0], pairs[i][1]);
    }
    assert_int_equal(ups[0], ups[1]);
    assert_int_equal(half[0], half[1]);
    assert_int_not_equal(ups[0], half[0]);
    tb_ways_close(&ways);
    tb_group_shape_release(shape);
    world_close(&w);
}

/* Agents hold a frame back on each hop, which is as long as 2 ms of the slowest wire. */
static void agents_store_frames(void **state)
{
    struct grid_world w;
    struct tb_ways ways;
    world_open(&w, "clusters: [{name: a, hosts: [ag, a1], gateways: ag, ethernet: {bandwidth: 100, latency: 1},\n"
                   " uplink: {bandwidth: 20, latency: 5}}, {name: b, hosts: [b1, b2], ethernet: {bandwidth: 1000,\n"
                   " latency: 2}}]\n");
    const struct tb_group_shape *shape = all_hosts(&w);
    assert_int_equal(tb_ways_open(&ways, &w.table, shape), TB_OK);
    const struct tb_way *way = tb_ways_between(&ways, 1, 2);
    assert_int_equal(way->hop_count, 2);
    assert_int_equal(way->agents, 3);
    assert_int_equal(way->slowest, 20000000);
    assert_int_equal(way->frame, 4992); /* 5000 bytes, in whole 64s */
    assert_int_equal(way->latency, 8 * MS + 3 * AGENT);
    const struct tb_way_hop *hops = &ways.hops[way->first_hop];
    assert_true(hops[0].relay == 0 && hops[1].relay == TB_COST_NONE);
    assert_int_equal(hops[0].latency, MS);
    struct tb_wire lan = {.bandwidth = 100000000, .curve = TB_COST_NONE},
                   up = {.bandwidth = 20000000, .curve = TB_COST_NONE};
    assert_int_equal(hops[0].store, tb_wire_time(&w.table, &lan, way->frame));
    assert_int_equal(hops[1].store, tb_wire_time(&w.table, &up, way->frame));
    assert_true(tb_way_ends(&w.table, way) == &w.table.head->constants.ends[TB_ENDS_AGENTS]);
    way = tb_ways_between(&ways, 2, 3);
    assert_true(way->agents == 0 && ways.hops[way->first_hop].store == 0 && way->frame == TB_FRAME_BYTES_MOST);
    assert_true(tb_way_ends(&w.table, way) == &w.table.head->constants.ends[TB_ENDS_TCP]);
    tb_ways_close(&ways);
    tb_group_shape_release(shape);
    world_close(&w);
}

/* Hosts of a kind share their ways, so that a few stand for many pairs; each pair keeps one gateway of several. */
static void alike_hosts_share_ways(void **state)
{
    struct grid_world w;
    struct tb_ways ways;
    uint32_t used[2] = {0, 0};
    world_open(&w,
               "clusters: [{name: a, hosts: 'a[1-500]'}, {name: b, hosts: ['b[1-500]', g1, g2], gateways: [g1, g2]}]");
    const struct tb_group_shape *shape = all_hosts(&w);
    assert_int_equal(tb_ways_open(&ways, &w.table, shape), TB_OK);
    for (uint32_t i = 0; i < 500; i++) {
        uint32_t to = 500 + i * 7 % 500;
        const struct tb_way *way = tb_ways_between(&ways, i, to);
        assert_int_equal(way->hop_count, 2);
        uint32_t relay = ways.hops[way->first_hop].relay;
        assert_true(relay == 1000 || relay == 1001);
        used[relay - 1000]++;
        assert_int_equal(tb_ways_between(&ways, i, (i + 1) % 500)->hop_count, 1);
    }
    assert_int_equal(ways.way_count, 3); /* inside, and two variants to the other cluster */
    assert_true(used[0] > 150 && used[1] > 150);
    tb_ways_close(&ways);
    tb_group_shape_release(shape);
    world_close(&w);
}

/* A way of many levels keeps the slow wires, and the latency of all. */
static void long_ways_keep_their_slow_wires(void **state)
{
    struct grid_maker m = {.seed = 1};
    struct grid_world w;
    struct tb_ways ways;
    put(&m, "clusters: [");
    for (uint32_t side = 0; side < 2; side++) {
        for (uint32_t i = 0; i < 16; i++)
            put(&m,
                "{name: c%u-%u, gateways: g%u-%u, ethernet: {latency: 1, bandwidth: %u}, hosts: [g%u-%u%s], "
                "uplink: {bandwidth: 7, latency: 1}%s",
                side, i, side, i, 1000 - i, side, i, i == 15 ? side == 0 ? ", x" : ", y" : "",
                i < 15 ? ", clusters: [" : "");
        for (uint32_t i = 0; i < 16; i++)
            put(&m, "%s", i < 15 ? "}]" : "}");
        put(&m, "%s", side == 0 ? ", " : "]\n");
    }
    world_open(&w, m.text);
    const struct tb_group_shape *shape = all_hosts(&w);
    assert_int_equal(tb_ways_open(&ways, &w.table, shape), TB_OK);
    uint32_t from = tb_grid_host_find(&w.grid, "x"), to = tb_grid_host_find(&w.grid, "y"), wires = 0, slow = 0;
    const struct tb_way *way = tb_ways_between(&ways, from, to);
    assert_non_null(way);
    assert_int_equal(way->hop_count, 33);
    for (uint32_t i = 0; i < way->hop_count; i++) {
        const struct tb_way_hop *hop = &ways.hops[way->first_hop + i];
        wires += hop->wire_count;
        for (uint32_t k = 0; k < hop->wire_count; k++)
            slow += ways.wires[tb_way_wire(&ways, hop, k, from, to)].wire->bandwidth == 7000000;
    }
    assert_int_equal(wires, TB_WAY_WIRES);
    assert_int_equal(slow, 32);
    struct tb_spot a = spot_of(&w, from), b = spot_of(&w, to);
    assert_int_equal(way->latency, tb_cost_brief(&w.table, &a, &b).latency);
    tb_ways_close(&ways);
    tb_group_shape_release(shape);
    world_close(&w);
}

/* What a way says in all is what is said without a workspace, and hops as the table lists them. */
static void random_ways_add_up(void **state)
{
    struct grid_maker m = {.seed = 17};
    uint32_t relayed = 0;
    for (uint32_t round = 0; round < 400; round++) {
        struct grid_world w;
        struct tb_ways ways;
        grid_draw(&m);
        world_open(&w, m.text);
        const struct tb_group_shape *shape = all_hosts(&w);
        assert_int_equal(tb_ways_open(&ways, &w.table, shape), TB_OK);
        for (uint32_t i = 0; i < shape->host_count; i++)
            for (uint32_t k = 0; k < shape->host_count; k++) {
                if (i == k)
                    continue;
                struct tb_spot a = tb_group_shape_spot(shape, i), b = tb_group_shape_spot(shape, k),
                               hops[TB_HOPS_LIMIT];
                struct tb_way_brief brief = tb_cost_brief(&w.table, &a, &b);
                const struct tb_way *way = tb_ways_between(&ways, i, k);
                assert_non_null(way);
                assert_true(way->hop_count == brief.hops && way->agents == brief.agents);
                assert_true(way->latency == brief.latency && way->slowest == brief.bandwidth);
                uint32_t count = tb_cost_hops(&w.table, &a, &b, 0, hops);
                for (uint32_t n = 0; n < count; n++)
                    assert_int_equal(ways.hops[way->first_hop + n].relay, hops[n].who);
                relayed += count > 0;
            }
        tb_ways_close(&ways);
        tb_group_shape_release(shape);
        world_close(&w);
    }
    assert_true(relayed > 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wires_stand_in_order),
        cmocka_unit_test(what_is_shared_has_one_number),
        cmocka_unit_test(agents_store_frames),
        cmocka_unit_test(alike_hosts_share_ways),
        cmocka_unit_test(long_ways_keep_their_slow_wires),
        cmocka_unit_test(random_ways_add_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
