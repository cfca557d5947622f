/* Levels of groups: depths, kinds and colours against what is known of each pair of ranks. */
#include "base/failing_memory_test.h"
#include "topology/grid_world_test.h"
#include "topology/shape_levels.h"

#define RANKS 64u

static struct tb_shape_levels *levels_of(const struct tb_group_shape *s)
{
    struct tb_shape_levels *levels;
    assert_int_equal(tb_shape_levels_make(&levels, s), TB_OK);
    assert_int_equal(levels->size, s->size);
    return levels;
}

/* Colours of a level count from 0 as ranks meet them, and all have the same at the first. */
static void colors_count(const struct tb_shape_levels *levels)
{
    int met[TB_LEVELS_LIMIT] = {0};
    for (uint32_t rank = 0; rank < levels->size; rank++) {
        assert_in_range(levels->depths[rank], 2, TB_LEVELS_LIMIT);
        for (int i = 0; i < levels->depths[rank]; i++) {
            assert_true(levels->colors[rank][i] >= 0 && levels->colors[rank][i] <= met[i]);
            met[i] += levels->colors[rank][i] == met[i];
        }
    }
    assert_int_equal(met[0], 1);
}

/* Whether two ranks have the same group at a level, by what the grid says of their hosts. */
static bool together(const struct grid_world *w, uint32_t a, uint32_t b, int level)
{
    uint32_t x = spot_of(w, a).place, y = spot_of(w, b).place;
    const struct tb_place_row *rows = w->places.rows;
    if (level > rows[x].depth || level > rows[y].depth)
        return a == b;
    return tb_places_up(&w->places, x, (uint32_t)level) == tb_places_up(&w->places, y, (uint32_t)level);
}

static void levels_compare(const struct grid_world *w, const uint32_t *hosts, const struct tb_shape_levels *levels)
{
    for (uint32_t a = 0; a < levels->size; a++) {
        uint32_t place = spot_of(w, hosts[a]).place;
        int last = levels->depths[a] - 1;
        assert_int_equal(last, w->places.rows[place].depth + 1);
        assert_int_equal(levels->kinds[a][last], TB_LEVEL_HOST);
        for (int i = 0; i < last; i++)
            assert_int_equal(levels->kinds[a][i], w->places.rows[tb_places_up(&w->places, place, (uint32_t)i)].level);
        for (uint32_t b = 0; b < levels->size; b++)
            for (int i = 0; i < levels->depths[a] && i < levels->depths[b]; i++)
                assert_int_equal(levels->colors[a][i] == levels->colors[b][i], together(w, hosts[a], hosts[b], i));
    }
}

static void random_grids_have_their_levels(void **state)
{
    struct grid_maker m = {.seed = 17};
    int deepest = 0;
    for (uint32_t round = 0; round < 200; round++) {
        struct grid_world w;
        uint32_t hosts[RANKS];
        grid_draw(&m);
        world_open(&w, m.text);
        for (uint32_t i = 0; i < 3; i++) {
            uint32_t size = 1 + draw(&m, RANKS), sort = draw(&m, 3);
            for (uint32_t k = 0; k < size; k++)
                hosts[k] = (sort == 0 ? k : sort == 1 ? k / 3 : draw(&m, 1000)) % w.grid.host_count;
            const struct tb_group_shape *s = grid_shape(&w, hosts, size, 0);
            struct tb_shape_levels *levels = levels_of(s);
            tb_group_shape_release(s);
            colors_count(levels);
            levels_compare(&w, hosts, levels);
            for (uint32_t k = 0; k < size; k++)
                deepest = levels->depths[k] > deepest ? levels->depths[k] : deepest;
            free(levels);
        }
        world_close(&w);
    }
    assert_int_equal(deepest, 7); /* the world, five clusters in each other, the host */
}

static void sites_are_levels(void **state)
{
    static const char text[] =
        "sites: [{name: S, clusters: [{name: a, hosts: a1, clusters: [{name: b, hosts: b1}]}]},\n"
        "        {name: T, clusters: [{name: c, hosts: [c1, c2]}]}]\n"
        "clusters: [{name: d, hosts: d1}]\n";
    static const int depths[] = {4, 5, 4, 4, 3};
    static const int kinds[][5] = {{TB_LEVEL_WORLD, TB_LEVEL_SITE, TB_LEVEL_CLUSTER, TB_LEVEL_HOST},
                                   {TB_LEVEL_WORLD, TB_LEVEL_SITE, TB_LEVEL_CLUSTER, TB_LEVEL_CLUSTER, TB_LEVEL_HOST},
                                   {TB_LEVEL_WORLD, TB_LEVEL_SITE, TB_LEVEL_CLUSTER, TB_LEVEL_HOST},
                                   {TB_LEVEL_WORLD, TB_LEVEL_SITE, TB_LEVEL_CLUSTER, TB_LEVEL_HOST},
                                   {TB_LEVEL_WORLD, TB_LEVEL_CLUSTER, TB_LEVEL_HOST}};
    static const int colors[][5] = {{0, 0, 0, 0}, {0, 0, 0, 1, 0}, {0, 1, 1, 2}, {0, 1, 1, 3}, {0, 2, 2}};
    static const char *const names[] = {"a1", "b1", "c1", "c2", "d1"};
    struct grid_world w;
    uint32_t hosts[5];
    world_open(&w, text);
    for (int i = 0; i < 5; i++)
        hosts[i] = tb_grid_host_find(&w.grid, names[i]);
    const struct tb_group_shape *s = grid_shape(&w, hosts, 5, 0);
    struct tb_shape_levels *levels = levels_of(s);
    for (int i = 0; i < 5; i++) {
        assert_int_equal(levels->depths[i], depths[i]);
        assert_memory_equal(levels->kinds[i], kinds[i], (size_t)depths[i] * sizeof(int));
        assert_memory_equal(levels->colors[i], colors[i], (size_t)depths[i] * sizeof(int));
    }
    /* Who follows one with the same levels shares its row. */
    assert_ptr_equal(levels->kinds[2], levels->kinds[3]);
    free(levels);
    tb_group_shape_release(s);
    world_close(&w);
}

/* ---- below the host ---------------------------------------------------------------------------------------------- */

struct seated {
    uint32_t size;
    uint32_t hosts[8];
    struct tb_seat seats[8];
};

static void seated_run(const void *context, uint32_t rank, struct tb_shape_run *run)
{
    const struct seated *g = context;
    *run = (struct tb_shape_run){.host = g->hosts[rank], .who = TB_COST_NONE, .count = 1, .seats = &g->seats[rank]};
}

#define N TB_SEAT_NONE

/* Two packages of two cores without NUMA nodes or caches on one host; on the other ranks have several cores, or are
 * free, or on a core that the machine does not say the cache of. */
static const struct seated bound = {8,
                                    {0, 0, 1, 0, 1, 1, 0, 1},
                                    {{{5, N, N, 50}},
                                     {{6, N, N, 60}},
                                     {{0, 1, 2, N}},
                                     {{5, N, N, 51}},
                                     {{0, 1, 3, 4}},
                                     {{N, N, N, N}},
                                     {{6, N, N, 60}},
                                     {{0, 1, N, 4}}}};

static const struct tb_group_shape *bound_shape(void)
{
    const struct tb_group_shape *s;
    const struct tb_shape_source source = {.size = 8, .host_limit = 2, .run = seated_run, .context = &bound};
    assert_int_equal(tb_group_shape_make(&s, &source), TB_OK);
    return s;
}

static void bound_ranks_go_on_below_the_host(void **state)
{
    static const int depths[] = {4, 4, 5, 4, 6, 2, 4, 4};
    static const int colors[][6] = {{0, 0, 0, 0},       {0, 0, 1, 1}, {0, 1, 2, 2, 0}, {0, 0, 0, 3},
                                    {0, 1, 2, 2, 1, 0}, {0, 1},       {0, 0, 1, 1},    {0, 1, 2, 2}};
    static const int here[] = {TB_LEVEL_WORLD, TB_LEVEL_HOST, TB_LEVEL_PACKAGE, TB_LEVEL_CORE};
    static const int there[] = {TB_LEVEL_WORLD, TB_LEVEL_HOST,  TB_LEVEL_PACKAGE,
                                TB_LEVEL_NUMA,  TB_LEVEL_CACHE, TB_LEVEL_CORE};
    const struct tb_group_shape *s = bound_shape();
    struct tb_shape_levels *levels = levels_of(s);
    colors_count(levels);
    for (uint32_t i = 0; i < 8; i++) {
        size_t bytes = (size_t)depths[i] * sizeof(int);
        assert_int_equal(levels->depths[i], depths[i]);
        assert_memory_equal(levels->colors[i], colors[i], bytes);
        assert_memory_equal(levels->kinds[i], bound.hosts[i] == 0 ? here : there, bytes);
    }
    free(levels);
    tb_group_shape_release(s);
}

/* ---- limits ------------------------------------------------------------------------------------------------------ */

static void one_rank_has_levels(void **state)
{
    const struct tb_group_shape *s;
    assert_int_equal(tb_group_shape_even(&s, 1, 1, false, NULL), TB_OK);
    struct tb_shape_levels *levels = levels_of(s);
    assert_int_equal(levels->depths[0], 2);
    assert_true(levels->colors[0][0] == 0 && levels->colors[0][1] == 0);
    assert_true(levels->kinds[0][0] == TB_LEVEL_WORLD && levels->kinds[0][1] == TB_LEVEL_HOST);
    free(levels);
    tb_group_shape_release(s);
}

static void no_memory_is_told(void **state)
{
    const struct tb_group_shape *s = bound_shape();
    uint32_t failed = 0;
    struct tb_shape_levels *levels = NULL;
    for (uint32_t at = 1; levels == NULL; at++) {
        countdown = at;
        int rc = tb_shape_levels_make(&levels, s);
        failed += rc == TB_ERR_MEMORY;
        assert_true(rc == (levels != NULL ? TB_OK : TB_ERR_MEMORY));
    }
    countdown = 0;
    assert_int_equal(failed, 4);
    free(levels);
    tb_group_shape_release(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_grids_have_their_levels),
        cmocka_unit_test(sites_are_levels),
        cmocka_unit_test(bound_ranks_go_on_below_the_host),
        cmocka_unit_test(one_rank_has_levels),
        cmocka_unit_test(no_memory_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
