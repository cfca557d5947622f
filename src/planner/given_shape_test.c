/* Algorithms are given the shape of the ranks they are made for, when they are rated and when they run. The catalogue
 * is our own here: one algorithm that looks, and one beside it, so that there is something to be rated. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "planner/planner.h"

#define RANKS 96u

static const struct tb_group_shape *seen;
static uint32_t rated;

static int make_linear(const struct tb_collective *c, struct tb_program **program)
{
    const struct tb_slice all = {.symbol = TB_SYMBOL_OUT, .stride = 1, .count = 1};
    struct tb_builder b;
    tb_builder_open(&b, 1);
    if (c->rank != c->root)
        tb_builder_receive(&b, c->root, 0, all);
    for (uint32_t i = 1; c->rank == c->root && i < c->size; i++)
        tb_builder_send(&b, (c->root + i) % c->size, 0, all);
    return tb_builder_finish(&b, program);
}

static int make_looking(const struct tb_collective *c, struct tb_program **program)
{
    assert_non_null(c->shape);
    assert_ptr_equal(c->costs, c->shape->table);
    assert_int_equal(c->shape->size, c->size); /* of the smaller group, too, that stands for a large one */
    seen = c->shape;
    rated += c->size < RANKS;
    return make_linear(c, program);
}

static bool fits_looking(const struct tb_collective *c)
{
    return c->shape != NULL && c->shape->host_count > 1;
}

static const struct tb_algorithm looking = {TB_OPERATION_BCAST, "looking", fits_looking, make_looking, NULL, NULL},
                                 other = {TB_OPERATION_BCAST, "other", NULL, make_linear, NULL, NULL};
const struct tb_algorithm *const tb_catalogue[] = {&looking, &other, NULL};

bool tb_algorithm_fits(const struct tb_algorithm *a, const struct tb_collective *c)
{
    return a->operation == c->operation && (a->fits == NULL || a->fits(c));
}

bool tb_algorithm_reproducible(const struct tb_algorithm *a)
{
    return false;
}

static void algorithms_are_given_the_shape(void **state)
{
    struct tb_plan_cache *cache;
    struct tb_planner *planner;
    const struct tb_group_shape *shape, *equal;
    const struct tb_program *program;
    struct tb_place_row world = {.parent = TB_PLACE_NONE, .end = 1};
    char name[1] = "";
    const struct tb_places places = {.count = 1, .name_bytes = 1, .rows = &world, .names = name};
    struct tb_cost_table table;
    void *bytes;
    size_t length;
    assert_int_equal(tb_param_load(), TB_OK);
    assert_int_equal(tb_cost_table_make_plain(&places, 48, &bytes, &length), TB_OK);
    assert_int_equal(tb_cost_table_view(&table, bytes, length), TB_OK);
    assert_int_equal(tb_plan_cache_open(&cache), TB_OK);
    assert_int_equal(tb_group_shape_even(&shape, RANKS, 48, false, &table), TB_OK);
    assert_int_equal(tb_group_shape_even(&equal, RANKS, 48, false, &table), TB_OK);
    assert_int_equal(tb_planner_open(cache, shape, RANKS, 5, &planner), TB_OK);
    assert_ptr_equal(tb_planner_shape(planner), shape);
    struct tb_collective c = {.operation = TB_OPERATION_BCAST,
                              .size = RANKS,
                              .rank = 5,
                              .elements = 100,
                              .element_bytes = 1,
                              .commutative = true};
    assert_int_equal(tb_planner_program(planner, &c, &program), TB_OK);
    tb_planner_release(planner, program);
    assert_true(rated > 0);
    assert_ptr_equal(seen, shape);
    /* A second copy is given up for the one that is there. */
    equal = tb_plan_cache_share(cache, equal);
    assert_ptr_equal(equal, shape);
    tb_group_shape_release(equal);
    tb_group_shape_release(shape);
    tb_planner_close(planner);
    tb_plan_cache_close(cache);
    free(bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(algorithms_are_given_the_shape)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
