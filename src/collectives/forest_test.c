/* Forests: how they are made and checked, moved to another root, and which calls they fit. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/failing_memory_test.h"
#include "collectives/algorithms.h"
#include "collectives/forest_test.h"

static void children_are_in_order(void **state)
{
    static const uint32_t parents[] = {2, 2, 2, 0, 2, 0, /* and a chain */ 2, 0, 2, 1, 3, 4}, shares[] = {3, 1};
    static const uint64_t order[] = {7, 9, 0, 5, 7, 5, 0, 0, 0, 0, 0, 0};
    static const uint32_t wanted[] = {3, 5, 0, 4, 1, /* and */ 1, 3, 0, 4, 5};
    struct tb_forest source = {.nodes = 6, .root = 2, .trees = 2, .piece = 77, .shares = shares, .parents = parents};
    struct tb_forest *f, *copy;
    assert_int_equal(tb_forest_make(&f, &source, order), TB_OK);
    assert_memory_equal(f->children, wanted, sizeof wanted);
    assert_true(f->first[0] == 0 && f->first[1] == 2 && f->first[2] == 2 && f->first[3] == 5 && f->first[6] == 5);
    assert_true(f->first[7] == 5 && f->first[8] == 6 && f->first[9] == 7 && f->first[10] == 8 && f->first[13] == 10);
    assert_int_equal(tb_forest_copy(&copy, f), TB_OK);
    assert_true(copy->piece == 77 && copy->root == 2 && copy->trees == 2 && copy->nodes == 6);
    assert_memory_equal(copy->children, wanted, sizeof wanted);
    assert_memory_equal(copy->first, f->first, 14 * sizeof(uint32_t));
    assert_memory_equal(copy->parents, parents, sizeof parents);
    assert_memory_equal(copy->shares, shares, sizeof shares);
    tb_forest_close(f);
    tb_forest_close(copy);
}

static void broken_trees_are_refused(void **state)
{
    static const uint32_t broken[][4] = {{0, 2, 1, 0}, {0, 1, 0, 0}, {0, 4, 0, 0}, {1, 0, 0, 0}, {0, 2, 3, 1}};
    static const uint64_t order[4];
    struct tb_forest source = {.nodes = 4, .trees = 1}, *f;
    for (int i = 0; i < 5; i++) {
        source.parents = broken[i];
        assert_int_equal(tb_forest_make(&f, &source, order), TB_ERR_ARGUMENT);
        assert_null(f);
    }
    assert_non_null(strstr(tb_error_story(), "node 1 is not behind the root"));
    source.parents = (const uint32_t[]){0, 0, 0, 0};
    for (int i = 0; i < 4; i++) {
        struct tb_forest wrong = source;
        wrong.nodes = i == 0 ? 0 : 4;
        wrong.root = i == 1 ? 4 : 0;
        wrong.trees = i == 2 ? 0 : i == 3 ? TB_FOREST_TREES + 1 : 1;
        assert_int_equal(tb_forest_make(&f, &wrong, order), TB_ERR_ARGUMENT);
    }
}

/* ---- another root ------------------------------------------------------------------------------------------------ */

/* Two sites of two clusters, of two hosts each, which are alike; and a cluster and a host that are not. */
#define ALIKE_PLACES 9u
#define ALIKE_HOSTS  11u
static const uint32_t alike_places[ALIKE_HOSTS] = {2, 2, 3, 3, 5, 5, 6, 6, 7, 7, 0};

static void alike_run(const void *context, uint32_t rank, struct tb_shape_run *run)
{
    uint32_t host = rank % ALIKE_HOSTS;
    *run = (struct tb_shape_run){.host = host, .place = alike_places[host], .who = TB_COST_NONE, .count = 1};
}

static const struct tb_group_shape *alike_shape(uint32_t size)
{
    static const uint32_t parents[ALIKE_PLACES] = {TB_PLACE_NONE, 0, 1, 1, 0, 4, 4, 0, 7};
    static const uint32_t looks[ALIKE_PLACES] = {0, 1, 2, 2, 1, 2, 2, 3, 4};
    static struct tb_cost_place rows[ALIKE_PLACES];
    static struct tb_cost_kind kind = {.port = TB_COST_NONE, .gate_of = TB_COST_NONE};
    static struct tb_cost_head head = {.place_count = ALIKE_PLACES, .kind_count = 1, .version = 1};
    static struct tb_cost_table table = {.head = &head, .places = rows, .kinds = &kind};
    const struct tb_group_shape *shape;
    for (uint32_t i = 0; i < ALIKE_PLACES; i++) {
        rows[i] = (struct tb_cost_place){.parent = parents[i], .look = looks[i]};
        rows[i].depth = i == 0 ? 0 : (uint8_t)(rows[parents[i]].depth + 1);
        rows[i].level = rows[i].depth == 0 ? TB_LEVEL_WORLD : rows[i].depth == 1 ? TB_LEVEL_SITE : TB_LEVEL_CLUSTER;
    }
    const struct tb_shape_source source = {.size = size, .host_limit = ALIKE_HOSTS, .run = alike_run, .table = &table};
    assert_int_equal(tb_group_shape_make(&shape, &source), TB_OK);
    return shape;
}

/* How many edges of a tree leave a place, of those whose depth is at least so much. */
static uint32_t edges_across(const struct tb_group_shape *s, const struct tb_forest *f, uint32_t tree, uint32_t depth)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < f->nodes; i++) {
        uint32_t parent = f->parents[tree * f->nodes + i];
        uint32_t a = tb_group_shape_at(s, s->hosts[i].first_rank, depth);
        count += a != tb_group_shape_at(s, s->hosts[parent].first_rank, depth);
    }
    return count;
}

static void a_root_moves_to_alike_hosts(void **state)
{
    const struct tb_group_shape *s = alike_shape(2 * ALIKE_HOSTS);
    for (uint64_t seed = 0; seed < 40; seed++) {
        struct tb_forest *f = forest_random(seed, ALIKE_HOSTS, 1), *moved, *back;
        assert_non_null(f);
        for (uint32_t host = 0; host < 8; host++) {
            assert_int_equal(tb_forest_move(&moved, f, s, host), TB_OK);
            assert_true(moved->root == host && moved->piece == f->piece && moved->trees == f->trees);
            assert_memory_equal(moved->shares, f->shares, f->trees * sizeof *f->shares);
            for (uint32_t t = 0; t < f->trees; t++)
                for (uint32_t depth = 1; depth < 3; depth++)
                    assert_int_equal(edges_across(s, moved, t, depth), edges_across(s, f, t, depth));
            for (uint32_t i = 8; i < ALIKE_HOSTS; i++) /* who is elsewhere has as many children as before */
                assert_int_equal(moved->first[i + 1] - moved->first[i], f->first[i + 1] - f->first[i]);
            assert_int_equal(tb_forest_move(&back, moved, s, 1), TB_OK);
            assert_memory_equal(back->parents, f->parents, f->trees * ALIKE_HOSTS * sizeof(uint32_t));
            assert_memory_equal(back->children, f->children, f->trees * (ALIKE_HOSTS - 1) * sizeof(uint32_t));
            tb_forest_close(moved);
            tb_forest_close(back);
        }
        for (uint32_t host = 8; host <= ALIKE_HOSTS; host++)
            assert_int_equal(tb_forest_move(&moved, f, s, host), TB_ERR_ARGUMENT);
        tb_forest_close(f);
    }
    tb_group_shape_release(s);
}

/* ---- calls ------------------------------------------------------------------------------------------------------- */

static const struct tb_algorithm *const planned[] = {&tb_barrier_planned, &tb_bcast_planned,  &tb_gather_planned,
                                                     &tb_scatter_planned, &tb_reduce_planned, &tb_allreduce_planned};

/* A forest that is not one of this group or root, or none, or an order that must be kept: nothing is planned. */
static void only_what_has_a_forest_is_planned(void **state)
{
    const struct tb_group_shape *s = alike_shape(2 * ALIKE_HOSTS);
    struct tb_forest *f = forest_random(3, ALIKE_HOSTS, 4), *fewer = forest_random(3, ALIKE_HOSTS - 1, 4);
    for (int i = 0; i < 6; i++) {
        struct tb_collective good = {.operation = planned[i]->operation,
                                     .size = s->size,
                                     .root = 4 + ALIKE_HOSTS,
                                     .elements = 10,
                                     .element_bytes = 1,
                                     .commutative = true,
                                     .shape = s,
                                     .forest = f};
        bool rooted = i > 0 && i<5, reduces = i> 3;
        struct tb_collective c = good;
        assert_true(tb_algorithm_fits(planned[i], &c));
        c.forest = NULL;
        assert_false(tb_algorithm_fits(planned[i], &c));
        c.forest = fewer;
        assert_false(tb_algorithm_fits(planned[i], &c));
        c = good;
        c.root = 5;
        assert_int_equal(tb_algorithm_fits(planned[i], &c), !rooted);
        c = good;
        c.inter = true;
        assert_false(tb_algorithm_fits(planned[i], &c));
        c = good;
        c.shape = NULL;
        assert_false(tb_algorithm_fits(planned[i], &c));
        c = good;
        c.commutative = false;
        assert_int_equal(tb_algorithm_fits(planned[i], &c), !reduces);
        c = good;
        tb_collective_reproduce(&c);
        assert_int_equal(tb_algorithm_fits(planned[i], &c), !reduces);
        c = good;
        c.elements = 16u << 20; /* too much to be kept by others */
        assert_int_equal(tb_algorithm_fits(planned[i], &c), i != 2 && i != 3);
    }
    tb_forest_close(f);
    tb_forest_close(fewer);
    tb_group_shape_release(s);
}

/* Pieces of a tree are as many as its share says, and a forest without pieces sends one message along each tree. */
static void shares_are_kept(void **state)
{
    static const uint32_t parents[] = {0, 0, 0, 0}, shares[] = {5, 3};
    static const uint64_t order[4];
    static const uint64_t pieces[] = {0, 100000, 1000};
    const struct tb_group_shape *s;
    assert_int_equal(tb_group_shape_even(&s, 2, 2, false, NULL), TB_OK);
    for (int i = 0; i < 3; i++) {
        struct tb_forest source = {.nodes = 2, .trees = 2, .piece = pieces[i], .shares = shares, .parents = parents},
                         *f;
        struct tb_program *p;
        assert_int_equal(tb_forest_make(&f, &source, order), TB_OK);
        struct tb_collective c = {.operation = TB_OPERATION_BCAST, .size = 2, .elements = 800000, .element_bytes = 1};
        c.shape = s;
        c.forest = f;
        assert_int_equal(tb_bcast_planned.make(&c, &p), TB_OK);
        assert_int_equal(p->step_count, 2);
        assert_int_equal(p->steps[0].slice.count * 3, p->steps[1].slice.count * 5);
        assert_int_equal(p->steps[0].items, i == 0 ? 1 : i == 1 ? 5 : 500);
        assert_int_equal(p->steps[1].items, i == 0 ? 1 : i == 1 ? 3 : 300);
        tb_program_free(p);
        tb_forest_close(f);
    }
    tb_group_shape_release(s);
}

/* Without memory there is an error, and nothing is left over. */
static void memory_may_fail(void **state)
{
    const struct tb_group_shape *s = alike_shape(2 * ALIKE_HOSTS);
    struct tb_forest *f = forest_random(5, ALIKE_HOSTS, 0), *made;
    struct tb_program *p;
    uint32_t failed = 0;
    for (int i = 0; i < 8; i++) {
        int error = TB_ERR_MEMORY;
        for (uint32_t at = 1; error != TB_OK; at++) {
            struct tb_collective c = {.size = s->size, .elements = 10, .element_bytes = 1, .commutative = true};
            c.operation = planned[i % 6]->operation;
            c.shape = s;
            c.forest = f;
            made = NULL;
            p = NULL;
            countdown = at;
            error = i == 6   ? tb_forest_move(&made, f, s, 6)
                    : i == 7 ? tb_forest_copy(&made, f)
                             : planned[i]->make(&c, &p);
            countdown = 0;
            assert_true(error == TB_OK || error == TB_ERR_MEMORY);
            failed += error != TB_OK;
            tb_forest_close(made);
            tb_program_free(p);
        }
    }
    assert_in_range(failed, 30, 200);
    tb_forest_close(f);
    tb_group_shape_release(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(children_are_in_order),
                                       cmocka_unit_test(broken_trees_are_refused),
                                       cmocka_unit_test(a_root_moves_to_alike_hosts),
                                       cmocka_unit_test(only_what_has_a_forest_is_planned),
                                       cmocka_unit_test(shares_are_kept),
                                       cmocka_unit_test(memory_may_fail)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
