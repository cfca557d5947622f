/* Hosts on the way, and whether ranks connect: what the cost table says is what the routes say. */
#include "topology/grid_world_test.h"

/* As the launcher decides it. */
static bool is_open(const struct grid_world *w, uint32_t from, uint32_t to)
{
    const struct tb_grid_host *a = &w->grid.hosts[from], *b = &w->grid.hosts[to];
    const struct tb_host_classes *classes = &w->connectivity.classes;
    for (uint32_t i = 0; i < a->cluster_count; i++)
        for (uint32_t k = 0; k < b->cluster_count; k++)
            if (tb_grid_outermost(&w->grid, a->clusters[i]) == tb_grid_outermost(&w->grid, b->clusters[k]))
                return true;
    return tb_connectivity_direct(&w->connectivity, classes->of[from], classes->of[to]);
}

/* Between all hosts; those of a kind take ways of the same kinds, so only first ones are held to the very hosts. */
static void compare_all(const struct grid_world *w, const char *text)
{
    const struct tb_host_classes *classes = &w->connectivity.classes;
    for (uint32_t i = 0; i < w->grid.host_count; i++)
        for (uint32_t k = 0; k < w->grid.host_count; k++) {
            uint32_t path[TB_HOPS_LIMIT + 2];
            struct tb_spot hops[TB_HOPS_LIMIT], a = spot_of(w, i), b = spot_of(w, k);
            uint32_t all = i != k ? tb_routes_path(&w->routes, i, k, TB_HOPS_LIMIT + 2, path) : 0;
            if (all == 0)
                continue;
            uint32_t count = tb_cost_hops(&w->table, &a, &b, 0, hops);
            bool same = count + 2 == all;
            for (uint32_t n = 0; n < count && same; n++)
                same = classes->of[path[n + 1]] == hops[n].kind;
            if (!same)
                fail_msg("%s to %s: %u hosts between, not %u, in\n%s", w->grid.hosts[i].name, w->grid.hosts[k].name,
                         count, all - 2, text);
            struct tb_way_brief brief = tb_cost_brief(&w->table, &a, &b);
            assert_int_equal(brief.hops, count + 1);
            if (brief.agents != (count == 0 && is_open(w, i, k) ? 0 : count + 2))
                fail_msg("%s to %s: %u agents in\n%s", w->grid.hosts[i].name, w->grid.hosts[k].name, brief.agents,
                         text);
        }
}

static const char *const regular[] = {
    /* a star, closed by gateways; two of them in one cluster */
    "clusters: [{name: a, hosts: [ag, a1, a2], gateways: ag, nat: true, uplink: {}},\n"
    " {name: b, hosts: [bg, bh, b1], gateways: [bg, bh]}, {name: c, hosts: [c1, c2]}]",
    /* five levels */
    "sites: [{name: S, clusters: [{name: a, hosts: a1, clusters: [{name: b, hosts: [b1, bg], gateways: bg,\n"
    " clusters: [{name: c, hosts: c1, clusters: [{name: d, hosts: [dg, d1], gateways: dg, clusters:\n"
    " [{name: e, hosts: [eg, e1, e2], gateways: eg}]}]}]}]}]}]\nclusters: [{name: o, hosts: [o1, og], gateways: og}]",
    "clusters: [{name: a, hosts: a1}, {name: b, hosts: b1}]\nlinks: [{from: a, to: b, direct: yes}]",
};

static void regular_grids_have_no_detours(void **state)
{
    for (size_t i = 0; i < sizeof regular / sizeof regular[0]; i++) {
        struct grid_world w;
        world_open(&w, regular[i]);
        if (w.table.head->detour_count > 0)
            fail_msg("%u detours in\n%s", w.table.head->detour_count, regular[i]);
        compare_all(&w, regular[i]);
        world_close(&w);
    }
}

/* Of a host of two clusters the cheaper way crosses no link, the other one a direct one: ranks may take it. */
static void one_direct_way_is_enough(void **state)
{
    static const char text[] =
        "clusters: [{name: a, hosts: [a1, a2], ethernet: {latency: 2}}, {name: b, hosts: [b1, b2]},\n"
        " {name: c, hosts: [a1, c1], nat: true}]\nlinks: [{from: a, to: b, latency: 15, direct: yes}]";
    struct grid_world w;
    world_open(&w, text);
    compare_all(&w, text);
    struct tb_spot both = spot_of(&w, tb_grid_host_find(&w.grid, "a1")),
                   other = spot_of(&w, tb_grid_host_find(&w.grid, "b1"));
    assert_int_equal(tb_cost_brief(&w.table, &both, &other).agents, 0);
    world_close(&w);
}

/* What is dealt out goes by each gateway in turn. */
static void gateways_take_turns(void **state)
{
    struct grid_world w;
    struct tb_spot hops[TB_HOPS_LIMIT];
    world_open(&w, regular[0]);
    struct tb_spot b1 = spot_of(&w, tb_grid_host_find(&w.grid, "b1")),
                   a1 = spot_of(&w, tb_grid_host_find(&w.grid, "a1"));
    for (uint32_t deal = 0; deal < 4; deal++) {
        assert_int_equal(tb_cost_hops(&w.table, &b1, &a1, deal, hops), 2);
        assert_string_equal(w.grid.hosts[hops[0].who].name, deal % 2 == 0 ? "bg" : "bh");
        assert_string_equal(w.grid.hosts[hops[1].who].name, "ag");
    }
    assert_true(w.table.kinds[hops[0].kind].flags & TB_KIND_TOLD_APART);
    assert_false(w.table.kinds[b1.kind].flags & TB_KIND_TOLD_APART);
    world_close(&w);
}

static void briefs_add_up(void **state)
{
    struct grid_world w;
    world_open(&w, "clusters: [{name: a, hosts: [ag, a1, a2], gateways: ag, ethernet: {latency: 1, bandwidth: 500},\n"
                   " uplink: {latency: 5, bandwidth: 20}}, {name: b, hosts: b1, ethernet: {latency: 2}},\n"
                   " {name: c, hosts: c1, ethernet: {latency: 0, bandwidth: 100 Gbit/s}}]\n"
                   "links: [{from: b, to: c, latency: 0, bandwidth: 100 Gbit/s}]\n");
    struct tb_spot a1 = spot_of(&w, 1), a2 = spot_of(&w, 2), b1 = spot_of(&w, 3), c1 = spot_of(&w, 4);
    const uint64_t ms = 1000000000, agent = 10000000;
    struct tb_way_brief inside = tb_cost_brief(&w.table, &a1, &a2), far = tb_cost_brief(&w.table, &a1, &b1);
    struct tb_way_brief fast = tb_cost_brief(&w.table, &b1, &c1);
    assert_true(inside.hops == 1 && inside.agents == 0 && inside.latency == ms && inside.bandwidth == 500000000);
    assert_true(far.hops == 2 && far.agents == 3 && far.bandwidth == 20000000);
    assert_int_equal(far.latency, (1 + 5 + 2) * ms + 3 * agent); /* a gateway need not cross its own network again */
    assert_true(fast.hops == 1 && fast.agents == 2 && fast.bandwidth == 1000000000);
    world_close(&w);
}

static void random_grids_agree(void **state)
{
    struct grid_maker m = {.seed = 5};
    uint32_t detours = 0;
    for (uint32_t round = 0; round < 2000; round++) {
        struct grid_world w;
        grid_draw(&m);
        world_open(&w, m.text);
        detours += w.table.head->detour_count > 0;
        compare_all(&w, m.text);
        world_close(&w);
    }
    assert_true(detours > 0 && detours < 1500);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(regular_grids_have_no_detours),
        cmocka_unit_test(one_direct_way_is_enough),
        cmocka_unit_test(gateways_take_turns),
        cmocka_unit_test(briefs_add_up),
        cmocka_unit_test(random_grids_agree),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
