/* Shapes of groups: what they say of each rank against what is known of it, however ranks are ordered. */
#include "topology/grid_world_test.h"

#define RANKS 400u
#define NONE  TB_PLACE_NONE

/* ---- orders of ranks --------------------------------------------------------------------------------------------- */

/* Ranks on numbered hosts, without places. */
struct listing {
    uint32_t size;
    uint32_t hosts[RANKS];
    uint32_t run; /* so many are told at once at most */
};

static void listing_run(const void *context, uint32_t rank, struct tb_shape_run *run)
{
    const struct listing *l = context;
    *run = (struct tb_shape_run){.host = l->hosts[rank], .who = TB_COST_NONE, .count = 1};
    while (run->count < l->run && rank + run->count < l->size && l->hosts[rank + run->count] == run->host)
        run->count++;
}

static const struct tb_group_shape *listing_shape(const struct listing *l)
{
    const struct tb_group_shape *shape;
    const struct tb_shape_source source = {.size = l->size, .host_limit = 1u << 20, .run = listing_run, .context = l};
    assert_int_equal(tb_group_shape_make(&shape, &source), TB_OK);
    return shape;
}

/* Compares everything that a shape says of ranks and hosts with the list. */
static void listing_compare(const struct listing *l, const struct tb_group_shape *s)
{
    uint32_t numbers[RANKS], count = 0, most = 0;
    assert_int_equal(s->size, l->size);
    assert_true((s->dense != NULL) == (s->ranges == NULL));
    for (uint32_t rank = 0; rank < l->size; rank++) {
        uint32_t before = rank, next = rank + 1, all = 0;
        while (before > 0 && l->hosts[before - 1] != l->hosts[rank])
            before--;
        numbers[rank] = before > 0 ? numbers[before - 1] : count;
        while (next < l->size && l->hosts[next] != l->hosts[rank])
            next++;
        for (uint32_t i = 0; i < l->size; i++)
            all += l->hosts[i] == l->hosts[rank];
        if (before == 0) {
            const struct tb_shape_host *host = &s->hosts[count++];
            assert_int_equal(host->first_rank, rank);
            assert_int_equal(host->rank_count, all);
        }
        most = all > most ? all : most;
        assert_int_equal(tb_group_shape_host(s, rank), numbers[rank]);
        assert_int_equal(tb_group_shape_next(s, rank), next < l->size ? next : NONE);
    }
    assert_int_equal(s->host_count, count);
    assert_int_equal(s->most, most);
}

static void random_orders_are_told(void **state)
{
    struct grid_maker m = {.seed = 3};
    static struct listing l, other;
    uint32_t dense = 0, ranged = 0;
    for (uint32_t round = 0; round < 600; round++) {
        uint32_t hosts = 1 + draw(&m, 40), block = 1 + draw(&m, 8), sort = draw(&m, 6);
        l.size = 1 + draw(&m, RANKS);
        l.run = 1 + draw(&m, 10);
        for (uint32_t i = 0, at = 0; i < l.size; i++) {
            at += draw(&m, 4) == 0; /* blocks of any length */
            l.hosts[i] = sort == 0   ? i / block
                         : sort == 1 ? i % hosts
                         : sort == 2 ? i / block % hosts
                         : sort == 3 ? at
                         : sort == 4 ? draw(&m, hosts)
                                     : (i < l.size / 3 ? i / block : i % hosts);
        }
        const struct tb_group_shape *s = listing_shape(&l), *again;
        listing_compare(&l, s);
        ranged += s->ranges != NULL;
        dense += s->dense != NULL;
        /* Other numbers of the same hosts, told in other runs, are the same shape; another order is not. */
        other = l;
        other.run = 1 + draw(&m, 10);
        for (uint32_t i = 0; i < l.size; i++)
            other.hosts[i] = 77777 - 3 * l.hosts[i];
        again = listing_shape(&other);
        assert_true(tb_group_shape_same(s, again) && s->key[0] == again->key[0] && s->key[1] == again->key[1]);
        tb_group_shape_release(again);
        if (s->host_count > 1 && s->host_count < l.size) {
            other.hosts[l.size - 1] = 99999; /* a host of its own */
            again = listing_shape(&other);
            assert_false(tb_group_shape_same(s, again) && s->hosts[tb_group_shape_host(s, l.size - 1)].rank_count > 1);
            tb_group_shape_release(again);
        }
        tb_group_shape_release(s);
    }
    assert_true(dense > 20 && ranged > 200);
}

static void blocks_run(const void *context, uint32_t rank, struct tb_shape_run *run)
{
    *run = (struct tb_shape_run){.host = rank / 16, .who = TB_COST_NONE, .count = 16 - rank % 16};
    (void)context;
}

static void dealt_run(const void *context, uint32_t rank, struct tb_shape_run *run)
{
    *run = (struct tb_shape_run){.host = rank % 65536, .who = TB_COST_NONE, .count = 1};
    (void)context;
}

/* A million ranks in regular order are one range; each host takes 28 bytes. */
static void regular_orders_take_one_range(void **state)
{
    for (int dealt = 0; dealt < 2; dealt++) {
        const struct tb_group_shape *s;
        const struct tb_shape_source source = {
            .size = 1u << 20, .host_limit = 65536, .run = dealt ? dealt_run : blocks_run};
        assert_int_equal(tb_group_shape_make(&s, &source), TB_OK);
        assert_int_equal(s->range_count, 1);
        assert_int_equal(s->host_count, 65536);
        assert_true(s->bytes < 65536 * 28 + 1000);
        assert_int_equal(tb_group_shape_host(s, 1000000), dealt ? 1000000 % 65536 : 1000000 / 16);
        assert_int_equal(tb_group_shape_next(s, 1000000),
                         dealt ? 1000000 + 65536 >= 1 << 20 ? NONE : 1065536 : 1000001);
        assert_int_equal(s->hosts[65535].alike, 0);
        tb_group_shape_release(s);
    }
}

/* ---- places ------------------------------------------------------------------------------------------------------ */

/* The place of the job at some depth around a host. */
static uint32_t table_at(const struct grid_world *w, uint32_t host, uint32_t depth)
{
    uint32_t place = spot_of(w, host).place;
    if (w->table.places[place].depth < depth)
        return NONE;
    while (w->table.places[place].depth > depth)
        place = w->table.places[place].parent;
    return place;
}

static void paths_compare(const struct grid_world *w, const uint32_t *hosts, const struct tb_group_shape *s)
{
    uint32_t clusters = 0;
    for (uint32_t rank = 0; rank < s->size; rank++) {
        uint32_t other = (rank * 7 + 3) % s->size, depth = 0;
        for (; depth < TB_PLACES_DEPTH_LIMIT; depth++) {
            uint32_t place = tb_group_shape_at(s, rank, depth), there = table_at(w, hosts[rank], depth);
            assert_int_equal(place != NONE ? s->places[place].place : NONE, there);
        }
        struct tb_spot spot = tb_group_shape_spot(s, tb_group_shape_host(s, rank)), known = spot_of(w, hosts[rank]);
        assert_true(spot.place == known.place && spot.kind == known.kind);
        assert_true(spot.who == TB_COST_NONE || spot.who == hosts[rank]);
        uint32_t meet = tb_group_shape_meet(s, rank, other);
        assert_int_equal(meet == NONE, hosts[rank] == hosts[other]);
        if (meet != NONE)
            assert_int_equal(s->places[meet].place,
                             tb_places_meet(&w->places, known.place, spot_of(w, hosts[other]).place));
        /* Clusters are numbered as ranks meet them. */
        uint32_t cluster = s->places[tb_group_shape_place(s, rank)].cluster;
        assert_true(cluster <= clusters);
        clusters += cluster == clusters;
    }
    assert_int_equal(s->cluster_count, clusters);
}

static void tree_compare(const struct tb_group_shape *s)
{
    for (uint32_t i = 0; i < s->place_count; i++) {
        const struct tb_shape_place *p = &s->places[i];
        uint32_t ranks = 0, first = NONE, children = 0;
        for (uint32_t k = 0; k < p->hosts; k++) {
            const struct tb_shape_host *h = &s->hosts[s->order[p->host + k]];
            assert_true(h->place >= i && h->place < p->end);
            ranks += h->rank_count;
            first = h->first_rank < first ? h->first_rank : first;
        }
        for (uint32_t k = i + 1; k < p->end; k++)
            children += s->places[k].parent == i;
        assert_true(p->hosts > 0 && p->rank_count == ranks && p->first_rank == first && p->child_count == children);
        assert_true(i == 0 ? p->parent == NONE && p->place == 0 && p->end == s->place_count : p->parent < i);
        assert_true(p->alike <= i && (i == 0 || s->places[p->alike].parent == p->parent));
        /* Siblings stand in the order of their first ranks. */
        assert_true(p->end >= s->place_count || i == 0 || s->places[p->end].parent != p->parent ||
                    s->places[p->end].first_rank > p->first_rank);
    }
}

/* Ranks on hosts of a grid, dealt, in blocks, or in no order; some hosts have none. */
static uint32_t ranks_draw(struct grid_maker *m, const struct grid_world *w, uint32_t *hosts)
{
    uint32_t size = 2 + draw(m, 60), sort = draw(m, 3), used = 1 + draw(m, w->grid.host_count), from = draw(m, 100);
    for (uint32_t i = 0; i < size; i++)
        hosts[i] = (from + (sort == 0 ? i : sort == 1 ? i / 3 : draw(m, used)) % used) % w->grid.host_count;
    return size;
}

static void random_grids_have_whole_paths(void **state)
{
    struct grid_maker m = {.seed = 11};
    uint32_t deepest = 0;
    for (uint32_t round = 0; round < 400; round++) {
        struct grid_world w;
        uint32_t hosts[64];
        grid_draw(&m);
        world_open(&w, m.text);
        for (uint32_t i = 0; i < 5; i++) {
            uint32_t size = ranks_draw(&m, &w, hosts), split = draw(&m, 2) * draw(&m, size);
            const struct tb_group_shape *s = grid_shape(&w, hosts, size, split), *again;
            paths_compare(&w, hosts, s);
            tree_compare(s);
            deepest = s->depth > deepest ? s->depth : deepest;
            again = grid_shape(&w, hosts, size, split);
            assert_true(tb_group_shape_same(s, again));
            tb_group_shape_release(again);
            for (uint32_t rank = 0; rank < size; rank++) {
                uint32_t kind = tb_group_shape_kind(s, rank), of = tb_group_shape_of_kind(s, kind);
                assert_true(of < size && tb_group_shape_kind(s, of) == kind && (s->host_count > 1 || kind == 0));
            }
            tb_group_shape_release(s);
        }
        world_close(&w);
    }
    assert_int_equal(deepest, 5);
}

/* Of hosts the kind counts and not who they are, but for those that are told apart. */
static void groups_on_other_hosts_of_a_cluster_are_equal(void **state)
{
    struct grid_world w;
    const uint32_t one[] = {1, 2, 4}, other[] = {3, 1, 5}, gateway[] = {0, 1, 4}, elsewhere[] = {1, 2, 3};
    world_open(&w, "clusters: [{name: a, hosts: [ag, a1, a2, a3], gateways: ag}, {name: b, hosts: [b1, b2]}]");
    const struct tb_group_shape *s = grid_shape(&w, one, 3, 0), *t = grid_shape(&w, other, 3, 0);
    const struct tb_group_shape *g = grid_shape(&w, gateway, 3, 0), *e = grid_shape(&w, elsewhere, 3, 0);
    const struct tb_group_shape *two = grid_shape(&w, one, 3, 1);
    assert_true(tb_group_shape_same(s, t));
    assert_false(tb_group_shape_same(s, g) || tb_group_shape_same(s, e) || tb_group_shape_same(s, two));
    assert_int_equal(g->hosts[0].who, 0);
    assert_ptr_equal(tb_group_shape_hold(s), s);
    tb_group_shape_release(s);
    assert_int_equal(tb_group_shape_host(s, 2), 2);
    tb_group_shape_release(s);
    tb_group_shape_release(t);
    tb_group_shape_release(g);
    tb_group_shape_release(e);
    tb_group_shape_release(two);
    world_close(&w);
}

/* Both groups are in it, the first group's ranks first, and each side finds its own and the other's. */
static void two_groups_have_one_shape(void **state)
{
    struct grid_world w;
    const uint32_t hosts[] = {0, 1, 1, 1, 0};
    world_open(&w, "clusters: [{name: a, hosts: a1}, {name: b, hosts: b1}]");
    const struct tb_group_shape *s = grid_shape(&w, hosts, 5, 2);
    assert_int_equal(tb_group_shape_index(s, true, false, 1), 1);
    assert_int_equal(tb_group_shape_index(s, true, true, 1), 3);
    assert_int_equal(tb_group_shape_index(s, false, false, 1), 3);
    assert_int_equal(tb_group_shape_index(s, false, true, 1), 1);
    /* The host that is in both. */
    assert_int_equal(tb_group_shape_host(s, tb_group_shape_index(s, false, false, 2)), 0);
    tb_group_shape_release(s);
    s = grid_shape(&w, hosts, 5, 0);
    assert_int_equal(tb_group_shape_index(s, false, false, 3), 3);
    tb_group_shape_release(s);
    world_close(&w);
}

/* ---- alike ------------------------------------------------------------------------------------------------------- */

#define STAR                                                                                                           \
    "sites: [{name: S, clusters: [{name: a, hosts: [a1, a2], uplink: {bandwidth: 10}},\n"                              \
    " {name: b, hosts: [b1, b2], uplink: {bandwidth: 10}}, {name: c, hosts: [c1, c2], uplink: {bandwidth: 20}}]},\n"   \
    " {name: T, clusters: [{name: d, hosts: [d1, d2], uplink: {bandwidth: 10}}]}]\n"

static void siblings_that_look_alike_are_found(void **state)
{
    struct grid_world w;
    const uint32_t each[] = {0, 1, 2, 3, 4, 5, 6, 7}, more[] = {0, 1, 2, 3, 3, 4, 5, 6, 7},
                   mixed[] = {0, 0, 1, 2, 1, 2};
    world_open(&w, STAR);
    const struct tb_group_shape *s = grid_shape(&w, each, 8, 0);
    assert_int_equal(s->place_count, 7); /* world, S, a, b, c, T, d */
    assert_int_equal(s->places[3].alike, 2);
    assert_int_equal(s->places[4].alike, 4); /* its uplink is another one */
    assert_int_equal(s->places[6].alike, 6); /* in another site, which has other clusters */
    assert_int_equal(s->hosts[3].alike, 0);
    assert_int_equal(s->hosts[5].alike, 4);
    assert_int_equal(s->hosts[7].alike, 6);
    assert_int_equal(tb_group_shape_kind(s, 3), 0);
    tb_group_shape_release(s);
    s = grid_shape(&w, more, 9, 0);
    assert_int_equal(s->places[3].alike, 3); /* has more ranks */
    assert_int_equal(tb_group_shape_kind(s, 4), 2 * 3 + 1);
    assert_int_equal(tb_group_shape_of_kind(s, 7), 4);
    tb_group_shape_release(s);
    s = grid_shape(&w, mixed, 6, 0);
    assert_int_equal(s->hosts[1].alike, 1); /* its ranks are not neighbours */
    tb_group_shape_release(s);
    world_close(&w);
}

/* 32 alike clusters of eight hosts with sixteen ranks each. */
static void alike_clusters_are_folded(void **state)
{
    struct grid_maker m = {.seed = 1};
    struct grid_world w;
    uint32_t *hosts = malloc(4096 * sizeof *hosts), *ranks = malloc(4096 * sizeof *ranks);
    put(&m, "clusters: [");
    for (uint32_t i = 0; i < 32; i++)
        put(&m, "%s{name: c%u, hosts: 'h%u-[1-8]:16', uplink: {bandwidth: 10}}", i > 0 ? ", " : "", i, i);
    put(&m, "]\n");
    world_open(&w, m.text);
    for (int dealt = 0; dealt < 2; dealt++) {
        const struct tb_group_shape *folded, *same;
        for (uint32_t i = 0; i < 4096; i++)
            hosts[i] = dealt ? i % 256 : i / 16;
        const struct tb_group_shape *s = grid_shape(&w, hosts, 4096, 0);
        assert_int_equal(s->range_count, 1);
        assert_int_equal(s->places[32].alike, 1);
        uint32_t keep = 4015; /* in neither of the first two clusters */
        assert_int_equal(tb_group_shape_fold(&folded, s, 2, 2, keep, ranks), TB_OK);
        /* Two clusters of two hosts with eight ranks each, and where `keep` is one more cluster, host and rank. */
        assert_int_equal(folded->cluster_count, 3);
        assert_int_equal(folded->host_count, 7);
        assert_int_equal(folded->size, 7 * 8 + 1);
        bool found = false;
        for (uint32_t i = 0; i < folded->size; i++) {
            assert_true(i == 0 || ranks[i] > ranks[i - 1]);
            found = found || ranks[i] == keep;
            struct tb_spot spot = tb_group_shape_spot(folded, tb_group_shape_host(folded, i));
            assert_int_equal(spot.place, spot_of(&w, hosts[ranks[i]]).place);
        }
        assert_true(found);
        assert_int_equal(tb_group_shape_fold(&same, s, 32, 32, keep, ranks), TB_OK);
        assert_ptr_equal(same, s);
        assert_true(ranks[0] == 0 && ranks[4095] == 4095);
        tb_group_shape_release(same);
        tb_group_shape_release(folded);
        /* All clusters, with one host each and one more. */
        assert_int_equal(tb_group_shape_fold(&folded, s, UINT32_MAX, 1, keep, ranks), TB_OK);
        assert_int_equal(folded->cluster_count, 32);
        assert_int_equal(folded->host_count, 33);
        tb_group_shape_release(folded);
        /* Of two groups both stay. */
        const struct tb_group_shape *two = grid_shape(&w, hosts, 4096, 4090);
        assert_int_equal(tb_group_shape_fold(&folded, two, 1, 1, 0, ranks), TB_OK);
        assert_true(folded->split > 0 && folded->split < folded->size && folded->size < 100);
        tb_group_shape_release(folded);
        tb_group_shape_release(two);
        tb_group_shape_release(s);
    }
    world_close(&w);
    free(hosts);
    free(ranks);
}

/* Half of 4 hosts with 2 ranks each: whole hosts. */
static void samples_have_whole_hosts(void **state)
{
    const struct tb_group_shape *s, *half;
    uint32_t ranks[4];
    assert_int_equal(tb_group_shape_even(&s, 8, 4, false, NULL), TB_OK);
    assert_int_equal(tb_group_shape_sample(&half, s, 4, ranks), TB_OK);
    assert_int_equal(half->host_count, 2);
    assert_int_equal(ranks[1], 1);
    assert_int_equal(ranks[2], 4);
    assert_int_equal(tb_group_shape_kind(s, 2), 0);
    assert_int_equal(tb_group_shape_kind(s, 3), 1);
    assert_int_equal(tb_group_shape_of_kind(s, 1), 1);
    tb_group_shape_release(s);
    tb_group_shape_release(half);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_orders_are_told),        cmocka_unit_test(regular_orders_take_one_range),
        cmocka_unit_test(random_grids_have_whole_paths), cmocka_unit_test(groups_on_other_hosts_of_a_cluster_are_equal),
        cmocka_unit_test(two_groups_have_one_shape),     cmocka_unit_test(siblings_that_look_alike_are_found),
        cmocka_unit_test(alike_clusters_are_folded),     cmocka_unit_test(samples_have_whole_hosts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
