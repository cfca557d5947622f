#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "planner/choice.h"
#include "planner/planner.h"

static struct tb_collective bcast(uint32_t root, uint64_t elements)
{
    return (struct tb_collective){.operation = TB_OPERATION_BCAST,
                                  .size = 100,
                                  .rank = 3,
                                  .root = root,
                                  .elements = elements,
                                  .element_bytes = 4};
}

static void the_choice_depends_on_the_size(void **state)
{
    struct tb_collective c = {.operation = TB_OPERATION_BARRIER, .size = 2, .element_bytes = 1};
    assert_string_equal(tb_choice_make(&c)->name, "linear");
    c.size = 3;
    assert_string_equal(tb_choice_make(&c)->name, "dissemination");
    c.operation = TB_OPERATION_BCAST;
    assert_string_equal(tb_choice_make(&c)->name, "binomial");
    c.inter = true;
    c.remote_size = 3;
    assert_string_equal(tb_choice_make(&c)->name, "inter");
}

/* What changes the program is part of what it is found by. */
static void other_arguments_are_other_programs(void **state)
{
    struct tb_planner *p;
    const struct tb_program *programs[4];
    assert_int_equal(tb_planner_open(100, 3, &p), TB_OK);
    for (int i = 0; i < 4; i++) {
        struct tb_collective c = bcast(0, 10);
        c.operation = TB_OPERATION_ALLREDUCE;
        c.commutative = (i & 1) != 0;
        c.in_place = (i & 2) != 0;
        assert_int_equal(tb_planner_program(p, &c, &programs[i]), TB_OK);
        for (int k = 0; k < i; k++)
            assert_ptr_not_equal(programs[i], programs[k]);
    }
    for (int i = 0; i < 4; i++)
        tb_planner_release(p, programs[i]);
    tb_planner_close(p);
}

static void a_program_is_found_again(void **state)
{
    struct tb_planner *p;
    const struct tb_program *first, *again, *other;
    assert_int_equal(tb_planner_open(100, 3, &p), TB_OK);
    struct tb_collective c = bcast(5, 1000), larger = bcast(5, 5000);
    assert_int_equal(tb_planner_program(p, &c, &first), TB_OK);
    assert_int_equal(tb_planner_program(p, &larger, &other), TB_OK);
    tb_planner_release(p, first);
    c.elements = 1001;
    assert_int_equal(tb_planner_program(p, &c, &again), TB_OK);
    assert_ptr_equal(first, again);
    assert_ptr_not_equal(first, other);
    tb_planner_release(p, again);
    tb_planner_release(p, other);
    tb_planner_close(p);
}

static void what_runs_is_never_thrown_away(void **state)
{
    struct tb_planner *p;
    const struct tb_program *programs[200];
    assert_int_equal(tb_planner_open(100, 3, &p), TB_OK);
    for (uint32_t i = 0; i < 200; i++) {
        struct tb_collective c = bcast(i % 100, i < 100 ? 1 : 1000);
        assert_int_equal(tb_planner_program(p, &c, &programs[i]), TB_OK);
    }
    for (uint32_t i = 0; i < 200; i++)
        for (uint32_t k = 0; k < i; k++)
            assert_ptr_not_equal(programs[i], programs[k]);
    for (uint32_t i = 0; i < 200; i++)
        tb_planner_release(p, programs[i]);
    tb_planner_close(p);
}

static void old_programs_make_room(void **state)
{
    struct tb_planner *p;
    const struct tb_program *program;
    assert_int_equal(tb_planner_open(100, 3, &p), TB_OK);
    for (uint32_t round = 0; round < 3; round++)
        for (uint32_t i = 0; i < 100; i++) {
            struct tb_collective c = bcast(i, 7);
            assert_int_equal(tb_planner_program(p, &c, &program), TB_OK);
            tb_planner_release(p, program);
        }
    tb_planner_close(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_choice_depends_on_the_size), cmocka_unit_test(other_arguments_are_other_programs),
        cmocka_unit_test(a_program_is_found_again), cmocka_unit_test(what_runs_is_never_thrown_away),
        cmocka_unit_test(old_programs_make_room)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
