/* Programs of roots in one place are kept once, and found again without being made. The catalogue is our own here: one
 * algorithm, by which everyone gets the message from the first rank of the root's place, unless it is in that place. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "planner/planner.h"

#define RANKS  600u
#define PLACES 6u
#define EACH   (RANKS / PLACES)

static uint32_t made;

static int make_by_place(const struct tb_collective *c, struct tb_program **program)
{
    const struct tb_slice all = {.symbol = TB_SYMBOL_OUT, .stride = 1, .count = 1};
    struct tb_builder b;
    uint32_t place = c->root / EACH, mine = c->rank / EACH;
    made++;
    tb_builder_open(&b, 1);
    if (c->rank != c->root)
        tb_builder_receive(&b, place == mine ? c->root : place * EACH, 0, all);
    return tb_builder_finish(&b, program);
}

static const struct tb_algorithm by_place = {TB_OPERATION_BCAST, "by-place", NULL, make_by_place, NULL, NULL};
const struct tb_algorithm *const tb_catalogue[] = {&by_place, NULL};

bool tb_algorithm_fits(const struct tb_algorithm *a, const struct tb_collective *c)
{
    return a->operation == c->operation;
}

bool tb_algorithm_reproducible(const struct tb_algorithm *a)
{
    return false;
}

static const struct tb_program *ask(struct tb_planner *planner, uint32_t root, uint64_t elements)
{
    const struct tb_program *program;
    struct tb_collective c = {
        .operation = TB_OPERATION_BCAST, .size = RANKS, .root = root, .elements = elements, .element_bytes = 1};
    assert_int_equal(tb_planner_program(planner, &c, &program), TB_OK);
    tb_planner_release(planner, program);
    uint32_t place = root / EACH;
    assert_int_equal(program->step_count, root != 0);
    assert_true(root == 0 || program->steps[0].peer == (place == 0 ? root : place * EACH));
    return program;
}

static void roots_of_a_place_have_one_program(void **state)
{
    struct tb_plan_cache *cache;
    struct tb_planner *planner;
    const struct tb_group_shape *shape;
    assert_int_equal(tb_param_load(), TB_OK);
    assert_int_equal(tb_plan_cache_open(&cache), TB_OK);
    assert_int_equal(tb_group_shape_even(&shape, RANKS, PLACES, false, NULL), TB_OK);
    assert_int_equal(tb_planner_open(cache, shape, RANKS, 0, &planner), TB_OK);
    const struct tb_program *first[PLACES];
    for (uint32_t i = 1; i < PLACES; i++)
        first[i] = ask(planner, i * EACH, 8);
    for (uint32_t root = EACH; root < RANKS; root++)
        assert_ptr_equal(ask(planner, root, 8), first[root / EACH]);
    assert_int_equal(made, RANKS - EACH);
    /* Now they are known. */
    for (uint32_t root = RANKS; root-- > EACH;)
        assert_ptr_equal(ask(planner, root, 8), first[root / EACH]);
    assert_int_equal(made, RANKS - EACH);
    /* Those of our own place are as many as its ranks, of which some are forgotten; other sizes are other programs. */
    for (uint32_t i = 0; i < 3 * EACH; i++)
        ask(planner, i % EACH, 8);
    assert_ptr_not_equal(ask(planner, EACH, 800), ask(planner, EACH, 8));
    tb_planner_close(planner);
    tb_group_shape_release(shape);
    tb_plan_cache_close(cache);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(roots_of_a_place_have_one_program)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
