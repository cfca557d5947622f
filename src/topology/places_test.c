#include "topology/places_grid.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static uint32_t add(struct tb_places_builder *b, uint32_t parent, enum tb_level level, const char *name)
{
    uint32_t handle;
    assert_int_equal(tb_places_builder_add(b, parent, level, name, &handle), TB_OK);
    return handle;
}

static void places_are_in_preorder(void **state)
{
    struct tb_places_builder *b;
    struct tb_places p;
    uint32_t n[16];
    assert_int_equal(tb_places_builder_open(&b), TB_OK);
    uint32_t delft = add(b, 0, TB_LEVEL_SITE, "Delft"), c = add(b, 0, TB_LEVEL_CLUSTER, "c");
    uint32_t utrecht = add(b, 0, TB_LEVEL_SITE, "Utrecht"), a = add(b, delft, TB_LEVEL_CLUSTER, "a");
    /* The same name in another site is another place, and the same one below the same is the same. */
    uint32_t other = add(b, utrecht, TB_LEVEL_CLUSTER, "a"), inner = add(b, a, TB_LEVEL_CLUSTER, "a");
    uint32_t second = add(b, delft, TB_LEVEL_CLUSTER, "b");
    assert_int_not_equal(a, other);
    assert_int_equal(add(b, delft, TB_LEVEL_CLUSTER, "a"), a);
    assert_int_equal(add(b, 0, TB_LEVEL_SITE, "Delft"), delft);
    assert_int_not_equal(add(b, 0, TB_LEVEL_CLUSTER, "Delft"), delft);
    assert_int_equal(tb_places_builder_count(b), 9);
    assert_int_equal(tb_places_builder_seal(b, &p, n), TB_OK);
    tb_places_builder_close(b);
    static const char *const names[] = {"", "Delft", "a", "a", "b", "c", "Utrecht", "a", "Delft"};
    static const uint32_t ends[] = {9, 5, 4, 4, 5, 6, 8, 8, 9};
    assert_int_equal(p.count, 9);
    for (uint32_t i = 0; i < 9; i++) {
        assert_string_equal(tb_places_name(&p, i), names[i]);
        assert_int_equal(p.rows[i].end, ends[i]);
        assert_true(i == 0 ? p.rows[i].parent == TB_PLACE_NONE : p.rows[i].parent < i);
    }
    assert_int_equal(p.rows[n[inner]].depth, 3);
    assert_int_equal(p.rows[n[c]].level, TB_LEVEL_CLUSTER);
    assert_true(tb_places_within(&p, n[inner], n[delft]) && !tb_places_within(&p, n[delft], n[inner]));
    assert_true(tb_places_within(&p, n[a], n[a]) && !tb_places_within(&p, n[other], n[delft]));
    assert_int_equal(tb_places_meet(&p, n[inner], n[second]), n[delft]);
    assert_int_equal(tb_places_meet(&p, n[inner], n[a]), n[a]);
    assert_int_equal(tb_places_meet(&p, n[a], n[inner]), n[a]);
    assert_int_equal(tb_places_meet(&p, n[inner], n[other]), 0);
    assert_int_equal(tb_places_up(&p, n[inner], 1), n[delft]);
    assert_int_equal(tb_places_up(&p, n[inner], 9), n[inner]);
    assert_int_equal(tb_places_outermost(&p, n[inner]), n[a]);
    assert_int_equal(tb_places_outermost(&p, n[delft]), n[delft]);
    assert_int_equal(tb_places_find(&p, "Utrecht", 7), n[utrecht]);
    assert_int_equal(tb_places_find(&p, "Utrechtx", 8), TB_PLACE_NONE);
    tb_places_close(&p);
}

static void places_have_limits(void **state)
{
    struct tb_places_builder *b;
    struct tb_places p;
    uint32_t handle = 0, parent = 0;
    assert_int_equal(tb_places_builder_open(&b), TB_OK);
    parent = add(b, 0, TB_LEVEL_SITE, "s");
    for (uint32_t depth = 2; depth < TB_PLACES_DEPTH_LIMIT; depth++)
        parent = add(b, parent, TB_LEVEL_CLUSTER, "c");
    assert_int_equal(tb_places_builder_add(b, parent, TB_LEVEL_CLUSTER, "c", &handle), TB_ERR_LIMIT);
    while (tb_places_builder_count(b) < TB_PLACES_LIMIT) {
        char name[16];
        snprintf(name, sizeof name, "n%u", tb_places_builder_count(b));
        add(b, 0, TB_LEVEL_CLUSTER, name);
    }
    assert_int_equal(tb_places_builder_add(b, 0, TB_LEVEL_CLUSTER, "more", &handle), TB_ERR_LIMIT);
    assert_int_equal(tb_places_builder_add(b, 0, TB_LEVEL_CLUSTER, "n100", &handle), TB_OK);
    uint32_t *numbers = malloc(TB_PLACES_LIMIT * sizeof *numbers);
    assert_int_equal(tb_places_builder_seal(b, &p, numbers), TB_OK);
    assert_int_equal(p.count, TB_PLACES_LIMIT);
    assert_int_equal(p.rows[TB_PLACES_DEPTH_LIMIT - 1].depth, TB_PLACES_DEPTH_LIMIT - 1);
    assert_int_equal(p.rows[1].end, TB_PLACES_DEPTH_LIMIT);
    tb_places_builder_close(b);
    tb_places_close(&p);
    free(numbers);
}

/* Which sites and clusters are around a place, by number from the outermost. */
static void clusters_are_numbered_inwards(void **state)
{
    struct tb_places_builder *b;
    struct tb_places p;
    uint32_t n[8];
    assert_int_equal(tb_places_builder_open(&b), TB_OK);
    uint32_t s = add(b, 0, TB_LEVEL_SITE, "s"), x = add(b, s, TB_LEVEL_CLUSTER, "x");
    uint32_t y = add(b, x, TB_LEVEL_CLUSTER, "y"), z = add(b, y, TB_LEVEL_CLUSTER, "z");
    uint32_t u = add(b, 0, TB_LEVEL_CLUSTER, "u"), v = add(b, u, TB_LEVEL_CLUSTER, "v");
    assert_int_equal(tb_places_builder_seal(b, &p, n), TB_OK);
    tb_places_builder_close(b);
    const struct {
        uint32_t place, site, nesting, clusters[3];
    } cases[] = {{0, TB_PLACE_NONE, 0, {0}},
                 {n[s], n[s], 0, {0}},
                 {n[x], n[s], 1, {n[x]}},
                 {n[y], n[s], 2, {n[x], n[y]}},
                 {n[z], n[s], 3, {n[x], n[y], n[z]}},
                 {n[u], TB_PLACE_NONE, 1, {n[u]}},
                 {n[v], TB_PLACE_NONE, 2, {n[u], n[v]}}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_int_equal(tb_places_site(&p, cases[i].place), cases[i].site);
        assert_int_equal(tb_places_nesting(&p, cases[i].place), cases[i].nesting);
        assert_int_equal(tb_places_cluster(&p, cases[i].place, 0), TB_PLACE_NONE);
        for (uint32_t k = 1; k <= 4; k++)
            assert_int_equal(tb_places_cluster(&p, cases[i].place, k),
                             k <= cases[i].nesting ? cases[i].clusters[k - 1] : TB_PLACE_NONE);
    }
    tb_places_close(&p);
}

static void grids_have_places(void **state)
{
    static const char text[] =
        "sites: [{name: S, clusters: [{name: a, hosts: a1, clusters: [{name: b, hosts: b1}]}]},\n"
        "  {name: E, clusters: []}]\nclusters: [{name: c, hosts: c1}]\n";
    struct tb_grid grid;
    struct tb_places p;
    uint32_t clusters[3], sites[2];
    assert_int_equal(tb_grid_parse(&grid, text, strlen(text), "g"), TB_OK);
    assert_int_equal(tb_places_from_grid(&p, &grid, clusters, sites), TB_OK);
    assert_int_equal(p.count, 6);
    assert_true(sites[0] == 1 && clusters[0] == 2 && clusters[1] == 3 && sites[1] == 4 && clusters[2] == 5);
    assert_string_equal(tb_places_name(&p, 3), "b");
    tb_places_close(&p);
    tb_grid_close(&grid);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(places_are_in_preorder),
        cmocka_unit_test(places_have_limits),
        cmocka_unit_test(clusters_are_numbered_inwards),
        cmocka_unit_test(grids_have_places),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
