/* Shapes below the host: packages, NUMA nodes, caches and cores of ranks that are bound. */
#include "topology/shape.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#define RANKS 64u

/* Ranks on hosts, each with a seat or none. */
struct group {
    uint32_t size;
    uint32_t hosts[RANKS];
    struct tb_seat seats[RANKS];
    bool free[RANKS]; /* not bound */
};

static void group_run(const void *context, uint32_t rank, struct tb_shape_run *run)
{
    const struct group *g = context;
    *run = (struct tb_shape_run){
        .host = g->hosts[rank], .who = TB_COST_NONE, .count = 1, .seats = g->free[rank] ? NULL : &g->seats[rank]};
}

static const struct tb_group_shape *shape_of(const struct group *g)
{
    const struct tb_group_shape *s;
    const struct tb_shape_source source = {.size = g->size, .host_limit = RANKS, .run = group_run, .context = g};
    assert_int_equal(tb_group_shape_make(&s, &source), TB_OK);
    return s;
}

/* Core after core: two to a cache, two caches to a NUMA node, and that is a package; numbers begin somewhere. */
static struct tb_seat seat_at(uint32_t core, uint32_t begin)
{
    uint16_t node = (uint16_t)(begin + core / 4);
    return (struct tb_seat){{node, node, (uint16_t)(begin + core / 2), (uint16_t)(begin + core)}};
}

/* Eight ranks on each of two hosts, in blocks or dealt. */
static void fill(struct group *g, bool dealt, uint32_t begin)
{
    memset(g, 0, sizeof *g);
    g->size = 16;
    for (uint32_t i = 0; i < 16; i++) {
        g->hosts[i] = dealt ? i % 2 : i / 8;
        g->seats[i] = seat_at(dealt ? i / 2 : i % 8, begin + 100 * g->hosts[i]);
    }
}

static void paths_go_down_to_the_core(void **state)
{
    for (int dealt = 0; dealt < 2; dealt++) {
        struct group g;
        fill(&g, dealt != 0, 3);
        const struct tb_group_shape *s = shape_of(&g);
        uint32_t counts[TB_SEAT_LEVELS];
        for (uint32_t a = 0; a < 16; a++)
            for (uint32_t b = 0; b < 16; b++) {
                uint32_t x = dealt ? a / 2 : a % 8, y = dealt ? b / 2 : b % 8; /* cores */
                enum tb_level expected = g.hosts[a] != g.hosts[b] ? TB_LEVEL_WORLD
                                         : x == y                 ? TB_LEVEL_CORE
                                         : x / 2 == y / 2         ? TB_LEVEL_CACHE
                                         : x / 4 == y / 4         ? TB_LEVEL_NUMA
                                                                  : TB_LEVEL_HOST;
                assert_int_equal(tb_group_shape_level(s, a, b), expected);
                /* Numbers count from 0 on each host. */
                assert_int_equal(tb_group_shape_below(s, a, TB_LEVEL_CORE), x);
                assert_int_equal(tb_group_shape_below(s, a, TB_LEVEL_PACKAGE), x / 4);
            }
        tb_group_shape_count_seats(s, counts);
        assert_true(counts[0] == 4 && counts[1] == 4 && counts[2] == 8 && counts[3] == 16);
        assert_int_equal(s->hosts[1].alike, 0);
        tb_group_shape_release(s);
    }
}

static void who_is_not_bound_is_on_a_host(void **state)
{
    struct group g;
    uint32_t counts[TB_SEAT_LEVELS];
    fill(&g, false, 0);
    memset(g.free, true, sizeof g.free);
    const struct tb_group_shape *s = shape_of(&g);
    assert_null(s->seats);
    assert_int_equal(tb_group_shape_level(s, 0, 1), TB_LEVEL_HOST);
    assert_int_equal(tb_group_shape_below(s, 0, TB_LEVEL_CORE), TB_PLACE_NONE);
    tb_group_shape_count_seats(s, counts);
    assert_int_equal(counts[3], 0);
    tb_group_shape_release(s);
    /* Only the last host binds, and of its ranks one has two cores of a cache. */
    memset(g.free + 8, false, 8);
    g.seats[9].at[3] = TB_SEAT_NONE;
    s = shape_of(&g);
    assert_int_equal(tb_group_shape_level(s, 0, 1), TB_LEVEL_HOST);
    assert_int_equal(tb_group_shape_below(s, 3, TB_LEVEL_NUMA), TB_PLACE_NONE);
    assert_int_equal(tb_group_shape_below(s, 9, TB_LEVEL_CORE), TB_PLACE_NONE);
    assert_int_equal(tb_group_shape_level(s, 8, 9), TB_LEVEL_CACHE);
    assert_int_equal(tb_group_shape_level(s, 9, 9), TB_LEVEL_CACHE);
    assert_int_equal(tb_group_shape_below(s, 10, TB_LEVEL_CORE), 1); /* the second that is met */
    assert_int_equal(s->hosts[1].alike, 1);
    tb_group_shape_count_seats(s, counts);
    assert_true(counts[0] == 2 && counts[3] == 7);
    tb_group_shape_release(s);
}

/* Which packages and cores they are does not matter, only who shares them. */
static void groups_that_sit_alike_are_equal(void **state)
{
    struct group g;
    fill(&g, false, 0);
    const struct tb_group_shape *a = shape_of(&g);
    fill(&g, false, 40);
    const struct tb_group_shape *b = shape_of(&g);
    assert_true(tb_group_shape_same(a, b));
    tb_group_shape_release(b);
    g.seats[5] = g.seats[4];
    b = shape_of(&g);
    assert_false(tb_group_shape_same(a, b));
    assert_int_equal(b->hosts[1].alike, 1);
    tb_group_shape_release(b);
    memset(g.free, true, sizeof g.free);
    b = shape_of(&g);
    assert_false(tb_group_shape_same(a, b));
    tb_group_shape_release(a);
    tb_group_shape_release(b);
}

/* A smaller group that resembles it sits as it did. */
static void folded_ranks_keep_their_seats(void **state)
{
    struct group g;
    const struct tb_group_shape *folded;
    uint32_t ranks[RANKS];
    fill(&g, false, 9);
    const struct tb_group_shape *s = shape_of(&g);
    assert_int_equal(tb_group_shape_fold(&folded, s, 1, 1, 0, ranks), TB_OK);
    assert_int_equal(folded->size, 4);
    for (uint32_t i = 0; i < 4; i++)
        for (uint32_t k = 0; k < 4; k++)
            assert_int_equal(tb_group_shape_level(folded, i, k), tb_group_shape_level(s, ranks[i], ranks[k]));
    tb_group_shape_release(folded);
    tb_group_shape_release(s);
}

/* Any order of ranks on any seats: as asking the list itself. */
static void random_orders_are_told(void **state)
{
    uint64_t seed = 5;
    for (uint32_t round = 0; round < 300; round++) {
        struct group g = {.size = RANKS};
        for (uint32_t i = 0; i < RANKS; i++) {
            seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
            g.hosts[i] = (uint32_t)(seed >> 60) % (1 + round % 5);
            g.free[i] = round % 3 == 0 && (seed >> 40) % 4 == 0;
            for (int k = 0; k < TB_SEAT_LEVELS; k++)
                g.seats[i].at[k] =
                    (seed >> (50 - 4 * k)) % 9 == 8 ? TB_SEAT_NONE : (uint16_t)(seed >> (50 - 4 * k)) % 5;
        }
        const struct tb_group_shape *s = shape_of(&g);
        for (uint32_t a = 0; a < RANKS; a++)
            for (uint32_t b = 0; b < RANKS; b++) {
                enum tb_level expected = g.hosts[a] != g.hosts[b] ? TB_LEVEL_WORLD
                                         : g.free[a] || g.free[b] ? TB_LEVEL_HOST
                                                                  : tb_seat_meet(&g.seats[a], &g.seats[b]);
                assert_int_equal(tb_group_shape_level(s, a, b), expected);
            }
        tb_group_shape_release(s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(paths_go_down_to_the_core),       cmocka_unit_test(who_is_not_bound_is_on_a_host),
        cmocka_unit_test(groups_that_sit_alike_are_equal), cmocka_unit_test(folded_ranks_keep_their_seats),
        cmocka_unit_test(random_orders_are_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
