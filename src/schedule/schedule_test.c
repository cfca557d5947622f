#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "schedule/schedule.h"

#define OUT(n) ((struct tb_slice){TB_SYMBOL_OUT, 0, 1, (n)})

static uint64_t source[] = {11, 12, 13, 14};

static uint64_t *initial(void *context, uint32_t rank, enum tb_symbol symbol)
{
    return rank == 0 && symbol == TB_SYMBOL_OUT ? source : NULL;
}

static const uint64_t *expect(void *context, uint32_t rank, enum tb_symbol symbol)
{
    return symbol == TB_SYMBOL_OUT ? source : NULL;
}

static int validate(struct tb_program **programs, uint32_t ranks)
{
    struct tb_validation v = {.ranks = ranks, .programs = programs, .initial = initial, .expect = expect};
    int rc = tb_schedule_validate(&v);
    for (uint32_t i = 0; i < ranks; i++)
        tb_program_free(programs[i]);
    return rc;
}

static struct tb_program *finish(struct tb_builder *b)
{
    struct tb_program *p = NULL;
    assert_int_equal(tb_builder_finish(b, &p), TB_OK);
    return p;
}

static struct tb_program *sender(uint32_t peer, uint16_t edge, uint32_t pieces, uint32_t count)
{
    struct tb_builder b;
    tb_builder_open(&b, pieces);
    tb_builder_send(&b, peer, edge, OUT(count));
    return finish(&b);
}

static struct tb_program *receiver(uint32_t peer, uint16_t edge, uint32_t pieces, uint32_t count)
{
    struct tb_builder b;
    tb_builder_open(&b, pieces);
    tb_builder_receive(&b, peer, edge, OUT(count));
    return finish(&b);
}

static void builder_makes_programs(void **state)
{
    struct tb_builder b;
    tb_builder_open(&b, 3);
    uint32_t first = tb_builder_receive(&b, 1, 7, OUT(3));
    uint32_t second = tb_builder_copy(&b, OUT(3), (struct tb_slice){TB_SYMBOL_WORK, 2, 2, 3});
    tb_builder_after(&b, first);
    tb_builder_pipeline(&b, 2);
    for (int i = 0; i < 100; i++)
        tb_builder_send(&b, 2, (uint16_t)i, OUT(0));
    tb_builder_after(&b, first);
    tb_builder_after(&b, second);
    struct tb_program *p = finish(&b);
    assert_int_equal(p->step_count, 102);
    assert_int_equal(p->work_pieces, 7);
    assert_true(p->steps[1].piecewise);
    assert_int_equal(p->steps[1].window, 2);
    assert_int_equal(p->steps[101].after_count, 2);
    assert_int_equal(p->after[p->steps[101].after + 1], second);
    tb_program_free(p);
}

static void builder_keeps_the_first_error(void **state)
{
    struct tb_builder b;
    struct tb_program *p = NULL;
    tb_builder_open(&b, 1);
    tb_builder_after(&b, 0);
    tb_builder_send(&b, 1, 0, OUT(1));
    assert_int_equal(tb_builder_finish(&b, &p), TB_ERR_ARGUMENT);
    assert_null(p);
    tb_builder_open(&b, 1);
    tb_builder_copy(&b, OUT(1), OUT(2));
    assert_int_equal(tb_builder_finish(&b, &p), TB_ERR_ARGUMENT);
    tb_builder_open(&b, 1);
    tb_builder_send(&b, 1, 0, OUT(1));
    tb_builder_after(&b, 0);
    assert_int_equal(tb_builder_finish(&b, &p), TB_ERR_ARGUMENT);
    tb_builder_open(&b, 1);
    tb_builder_pipeline(&b, 1);
    assert_int_equal(tb_builder_finish(&b, &p), TB_ERR_ARGUMENT);
}

static struct tb_program *relay(bool piecewise, bool ordered)
{
    struct tb_builder b;
    tb_builder_open(&b, 4);
    uint32_t got = tb_builder_receive(&b, 0, 0, OUT(4));
    tb_builder_send(&b, 2, 0, OUT(4));
    if (ordered)
        tb_builder_after(&b, got);
    if (piecewise)
        tb_builder_pipeline(&b, 1);
    return finish(&b);
}

static void a_chain_is_valid(void **state)
{
    for (int piecewise = 0; piecewise < 2; piecewise++) {
        struct tb_program *p[] = {sender(1, 0, 4, 4), relay(piecewise != 0, true), receiver(1, 0, 4, 4)};
        assert_int_equal(validate(p, 3), TB_OK);
    }
}

static void a_race_is_found(void **state)
{
    struct tb_program *p[] = {sender(1, 0, 4, 4), relay(true, false), receiver(1, 0, 4, 4)};
    assert_int_equal(validate(p, 3), TB_ERR_ARGUMENT);
    assert_non_null(strstr(tb_error_story(), "rank 1"));
}

static void wrong_programs_are_found(void **state)
{
    struct tb_program *missing[] = {sender(1, 0, 1, 1), receiver(0, 1, 1, 1)};
    assert_int_equal(validate(missing, 2), TB_ERR_MISMATCH);
    assert_non_null(strstr(tb_error_story(), "rank 1, step 0"));
    struct tb_program *shorter[] = {sender(1, 0, 4, 4), receiver(0, 0, 4, 3)};
    assert_int_equal(validate(shorter, 2), TB_ERR_MISMATCH);
    struct tb_program *longer[] = {sender(1, 0, 4, 3), receiver(0, 0, 4, 4)};
    assert_int_equal(validate(longer, 2), TB_ERR_MISMATCH);
    struct tb_program *emptier[] = {sender(1, 0, 1, 0), receiver(0, 0, 1, 1)};
    assert_int_equal(validate(emptier, 2), TB_ERR_MISMATCH);
    struct tb_program *outside[] = {sender(1, 0, 2, 3), receiver(0, 0, 3, 3)};
    assert_int_equal(validate(outside, 2), TB_ERR_ARGUMENT);
    struct tb_program *nobody[] = {sender(2, 0, 1, 1), receiver(0, 0, 1, 1)};
    assert_int_equal(validate(nobody, 2), TB_ERR_ARGUMENT);
    struct tb_program *undefined[] = {receiver(1, 0, 1, 1), sender(0, 0, 1, 1)};
    assert_int_equal(validate(undefined, 2), TB_ERR_ARGUMENT);
}

static void a_cycle_is_found(void **state)
{
    struct tb_program *p[2];
    for (uint32_t rank = 0; rank < 2; rank++) {
        struct tb_builder b;
        tb_builder_open(&b, 0);
        uint32_t got = tb_builder_receive(&b, 1 - rank, 0, OUT(0));
        tb_builder_send(&b, 1 - rank, 0, OUT(0));
        tb_builder_after(&b, got);
        p[rank] = finish(&b);
    }
    assert_int_equal(validate(p, 2), TB_ERR_MISMATCH);
}

static void an_edge_used_twice_is_found(void **state)
{
    struct tb_builder b;
    tb_builder_open(&b, 1);
    tb_builder_send(&b, 1, 3, OUT(1));
    tb_builder_send(&b, 1, 3, OUT(1));
    struct tb_program *p[] = {finish(&b), receiver(0, 3, 1, 1)};
    assert_int_equal(validate(p, 2), TB_ERR_ARGUMENT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(builder_makes_programs),     cmocka_unit_test(builder_keeps_the_first_error),
        cmocka_unit_test(a_chain_is_valid),           cmocka_unit_test(a_race_is_found),
        cmocka_unit_test(wrong_programs_are_found),   cmocka_unit_test(a_cycle_is_found),
        cmocka_unit_test(an_edge_used_twice_is_found)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
