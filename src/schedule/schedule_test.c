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

static const uint64_t *nothing_expected(void *context, uint32_t rank, enum tb_symbol symbol)
{
    return NULL;
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
    assert_int_equal(p->after[p->steps[1].after].lag, 0);
    assert_int_equal(p->steps[1].window, 2);
    assert_int_equal(p->steps[101].after_count, 2);
    assert_int_equal(p->after[p->steps[101].after + 1].step, second);
    assert_int_equal(p->after[p->steps[101].after + 1].lag, TB_AFTER_WHOLE);
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

/* Both send first and receive when that is done: a long message would wait for its receiver forever. */
static void waiting_for_each_other_is_found(void **state)
{
    for (int waits = 0; waits < 2; waits++) {
        struct tb_program *p[2];
        for (uint32_t rank = 0; rank < 2; rank++) {
            struct tb_builder b;
            tb_builder_open(&b, 0);
            uint32_t sent = tb_builder_send(&b, 1 - rank, 0, OUT(0));
            tb_builder_receive(&b, 1 - rank, 0, OUT(0));
            if (waits)
                tb_builder_after(&b, sent);
            p[rank] = finish(&b);
        }
        assert_int_equal(validate(p, 2), waits ? TB_ERR_MISMATCH : TB_OK);
    }
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

/* Operands are numbered by rank, and only neighbours may be combined: low digit the last one, high digit the first. */
static uint64_t operands[3][2] = {{0x11, 0x11}, {0x22, 0x22}, {0x33, 0x33}}, total[] = {0x13, 0x13};

static uint64_t *operand(void *context, uint32_t rank, enum tb_symbol symbol)
{
    return symbol == TB_SYMBOL_IN ? operands[rank] : NULL;
}

static const uint64_t *reduced(void *context, uint32_t rank, enum tb_symbol symbol)
{
    return rank == 0 && symbol == TB_SYMBOL_OUT ? total : NULL;
}

static uint64_t neighbours(void *context, uint64_t first, uint64_t second)
{
    return (first & 15) + 1 == second >> 4 ? (first & 0xf0) | (second & 15) : 0;
}

#define IN   ((struct tb_slice){TB_SYMBOL_IN, 0, 1, 1})
#define WORK ((struct tb_slice){TB_SYMBOL_WORK, 0, 1, 1})

/* Ranks 1 and 2 send to rank 0, which combines in order, or not; ordered by the builder, or not. */
static int reduce_to_first(bool in_order, bool ordered)
{
    struct tb_builder b;
    struct tb_program *p[3];
    tb_builder_open(&b, 1);
    if (ordered)
        tb_builder_order(&b);
    tb_builder_receive(&b, in_order ? 2 : 1, 0, OUT(1));
    tb_builder_receive(&b, in_order ? 1 : 2, 0, WORK);
    tb_builder_reduce(&b, WORK, OUT(1));
    tb_builder_reduce(&b, IN, OUT(1));
    p[0] = finish(&b);
    for (uint32_t rank = 1; rank < 3; rank++) {
        tb_builder_open(&b, 1);
        tb_builder_send(&b, 0, 0, IN);
        p[rank] = finish(&b);
    }
    struct tb_validation v = {3, p, operand, reduced, NULL, neighbours, 0, NULL};
    int rc = tb_schedule_validate(&v);
    for (int i = 0; i < 3; i++)
        tb_program_free(p[i]);
    return rc;
}

static void reductions_are_checked(void **state)
{
    assert_int_equal(reduce_to_first(true, true), TB_OK);
    assert_int_equal(reduce_to_first(false, true), TB_ERR_ARGUMENT);
    assert_non_null(strstr(tb_error_story(), "combines"));
    assert_int_equal(reduce_to_first(true, false), TB_ERR_ARGUMENT);
    assert_non_null(strstr(tb_error_story(), "no order"));
}

/* Four pieces in one message, and in two. */
static void joined_pieces_are_one_message(void **state)
{
    for (int other = 0; other < 2; other++) {
        struct tb_builder b;
        struct tb_program *p[2];
        tb_builder_open(&b, 4);
        tb_builder_send(&b, 1, 0, OUT(4));
        tb_builder_join(&b);
        p[0] = finish(&b);
        tb_builder_open(&b, 4);
        tb_builder_receive(&b, 0, 0, OUT(4));
        if (!other)
            tb_builder_join(&b);
        p[1] = finish(&b);
        assert_int_equal(p[0]->steps[0].items, 1);
        assert_int_equal(validate(p, 2), other ? TB_ERR_MISMATCH : TB_OK);
    }
    struct tb_builder b;
    struct tb_program *none = NULL;
    tb_builder_open(&b, 4);
    tb_builder_send(&b, 1, 0, (struct tb_slice){TB_SYMBOL_OUT, 0, 2, 2});
    tb_builder_join(&b);
    assert_int_equal(tb_builder_finish(&b, &none), TB_ERR_ARGUMENT);
}

/* Rank 1 passes on downwards what comes: piece 3 first, then each of the others when it is there. */
static void shifted_dependencies(void **state)
{
    struct tb_builder b;
    struct tb_program *p[3];
    const struct tb_slice top = {TB_SYMBOL_OUT, 3, 1, 1}, below = {TB_SYMBOL_OUT, 2, -1, 3},
                          all = {TB_SYMBOL_OUT, 3, -1, 4};
    tb_builder_open(&b, 4);
    tb_builder_send(&b, 1, 1, top);
    tb_builder_send(&b, 1, 0, below);
    p[0] = finish(&b);
    tb_builder_open(&b, 4);
    uint32_t first = tb_builder_receive(&b, 0, 1, top);
    uint32_t rest = tb_builder_receive(&b, 0, 0, below);
    tb_builder_send(&b, 2, 0, all);
    tb_builder_after(&b, first);
    tb_builder_after_shifted(&b, rest);
    p[1] = finish(&b);
    const struct tb_after *shifted = &p[1]->after[p[1]->steps[2].after + 1];
    assert_int_equal(tb_step_needs(&p[1]->steps[2], shifted, &p[1]->steps[rest], 0), 0);
    assert_int_equal(tb_step_needs(&p[1]->steps[2], shifted, &p[1]->steps[rest], 3), 3);
    tb_builder_open(&b, 4);
    tb_builder_receive(&b, 1, 0, all);
    p[2] = finish(&b);
    assert_int_equal(validate(p, 3), TB_OK);
}

/* A shift too many: piece k may be sent before it has come. */
static void shifted_races_are_found(void **state)
{
    struct tb_builder b;
    tb_builder_open(&b, 4);
    uint32_t got = tb_builder_receive(&b, 0, 0, OUT(4));
    tb_builder_send(&b, 2, 0, OUT(4));
    tb_builder_after_shifted(&b, got);
    struct tb_program *p[] = {sender(1, 0, 4, 4), finish(&b), receiver(1, 0, 4, 4)};
    assert_int_equal(validate(p, 3), TB_ERR_ARGUMENT);
    assert_non_null(strstr(tb_error_story(), "no order"));
}

/* Rank 0 of the first group to rank 0 of the second, which sends on to rank 1 beside it. */
static void groups_have_their_own_ranks(void **state)
{
    for (int wrong = 0; wrong < 2; wrong++) {
        struct tb_builder b;
        struct tb_program *p[3];
        p[0] = sender(0, 0, 4, 4);
        tb_builder_open(&b, 4);
        tb_builder_order(&b);
        tb_builder_receive(&b, 0, 0, OUT(4));
        tb_builder_send(&b, 1, 0, OUT(4));
        if (!wrong)
            tb_builder_local(&b);
        p[1] = finish(&b);
        tb_builder_open(&b, 4);
        tb_builder_receive(&b, 0, 0, OUT(4));
        tb_builder_local(&b);
        p[2] = finish(&b);
        struct tb_validation v = {.ranks = 3, .programs = p, .initial = initial, .expect = expect, .split = 1};
        assert_int_equal(tb_schedule_validate(&v), wrong ? TB_ERR_ARGUMENT : TB_OK);
        for (int i = 0; i < 3; i++)
            tb_program_free(p[i]);
    }
}

/* An ordered program depends on what it must, and on nothing that follows from that. */
static void the_builder_orders_steps(void **state)
{
    struct tb_builder b;
    tb_builder_open(&b, 2);
    tb_builder_order(&b);
    for (uint32_t i = 0; i < 10; i++)
        tb_builder_copy(&b, (struct tb_slice){TB_SYMBOL_OUT, i % 2, 1, 1},
                        (struct tb_slice){TB_SYMBOL_OUT, 1 - i % 2, 1, 1});
    tb_builder_send(&b, 1, 0, OUT(1));
    tb_builder_send(&b, 2, 0, OUT(1));
    tb_builder_receive(&b, 3, 0, OUT(2));
    struct tb_program *p = finish(&b);
    assert_int_equal(p->steps[0].after_count, 0);
    for (uint32_t i = 1; i < 10; i++)
        assert_int_equal(p->steps[i].after_count, 1);
    assert_int_equal(p->steps[10].after_count, 1);
    assert_int_equal(p->steps[11].after_count, 1);
    assert_int_equal(p->after[p->steps[11].after].step, 9);
    assert_int_equal(p->steps[12].after_count, 2);
    tb_program_free(p);
}

static void a_shape_is_for_work_alone(void **state)
{
    struct tb_builder b;
    struct tb_program *p = NULL;
    tb_builder_open(&b, 1);
    tb_builder_receive(&b, 1, 0, OUT(1));
    tb_builder_like(&b, OUT(1));
    assert_int_equal(tb_builder_finish(&b, &p), TB_ERR_ARGUMENT);
    tb_builder_open(&b, 1);
    tb_builder_receive(&b, 1, 0, WORK);
    tb_builder_like(&b, OUT(1));
    assert_int_equal(tb_builder_finish(&b, &p), TB_OK);
    assert_int_equal(p->work_pieces, 1);
    tb_program_free(p);
}

/* ---- lengths ----------------------------------------------------------------------------------------------------- */

static uint64_t five_or_three(void *context, uint32_t rank, enum tb_symbol symbol, uint32_t piece)
{
    return piece == *(uint32_t *)context ? 3 : 5;
}

/* Piece 1 of one rank to piece 1, or 2, of the other, where the last piece is shorter. */
static int send_piece(uint32_t to, bool upto)
{
    struct tb_builder b;
    struct tb_program *p[2];
    uint32_t shorter = 2;
    tb_builder_open(&b, 3);
    tb_builder_send(&b, 1, 0, (struct tb_slice){TB_SYMBOL_OUT, upto ? 2 : 1, 1, 1});
    p[0] = finish(&b);
    tb_builder_open(&b, 3);
    tb_builder_receive(&b, 0, 0, (struct tb_slice){TB_SYMBOL_WORK, to, 1, 1});
    if (upto)
        tb_builder_upto(&b);
    p[1] = finish(&b);
    struct tb_validation v = {.ranks = 2, .programs = p, .initial = initial, .context = &shorter};
    v.expect = nothing_expected;
    v.length = five_or_three;
    int rc = tb_schedule_validate(&v);
    tb_program_free(p[0]);
    tb_program_free(p[1]);
    return rc;
}

static void lengths_are_compared(void **state)
{
    assert_int_equal(send_piece(1, false), TB_OK);
    assert_int_equal(send_piece(2, false), TB_ERR_MISMATCH);
    assert_int_equal(send_piece(1, true), TB_OK);
    assert_int_equal(send_piece(2, true), TB_OK);
}

#define SIZES(first, n) ((struct tb_slice){TB_SYMBOL_SIZES, (first), 1, (n)})

/* Rank 0 tells rank 1 the sizes of three pieces, or of fewer, and sends them. */
static int send_sizes(uint32_t told, bool ordered)
{
    struct tb_builder b;
    struct tb_program *p[2];
    uint32_t shorter = 1;
    tb_builder_open(&b, 3);
    tb_builder_order(&b);
    tb_builder_measure(&b, OUT(told), 0);
    tb_builder_send(&b, 1, 0, SIZES(0, told));
    tb_builder_join(&b);
    tb_builder_send(&b, 1, 1, OUT(3));
    p[0] = finish(&b);
    tb_builder_open(&b, 3);
    if (ordered)
        tb_builder_order(&b);
    tb_builder_receive(&b, 0, 0, SIZES(0, told));
    tb_builder_join(&b);
    tb_builder_bind(&b, 3);
    tb_builder_receive(&b, 0, 1, (struct tb_slice){TB_SYMBOL_WORK, 0, 1, 3});
    p[1] = finish(&b);
    struct tb_validation v = {.ranks = 2, .programs = p, .initial = initial, .context = &shorter};
    v.expect = nothing_expected;
    v.length = five_or_three;
    int rc = tb_schedule_validate(&v);
    tb_program_free(p[0]);
    tb_program_free(p[1]);
    return rc;
}

static void sizes_must_be_known(void **state)
{
    assert_int_equal(send_sizes(3, true), TB_OK);
    assert_int_equal(send_sizes(2, true), TB_ERR_ARGUMENT);
    assert_non_null(strstr(tb_error_story(), "undefined"));
    assert_int_equal(send_sizes(3, false), TB_ERR_ARGUMENT);
    struct tb_builder b;
    struct tb_program *p = NULL;
    tb_builder_open(&b, 1);
    tb_builder_bind(&b, 1);
    tb_builder_bind(&b, 1);
    assert_int_equal(tb_builder_finish(&b, &p), TB_ERR_ARGUMENT);
}

/* ---- composite steps --------------------------------------------------------------------------------------------- */

static const uint64_t *reduced_everywhere(void *context, uint32_t rank, enum tb_symbol symbol)
{
    return symbol == TB_SYMBOL_OUT ? total : NULL;
}

enum composite_fault { RIGHT, ABSENT, OTHER_ROOT, TWO_PIECES, LATE };

/* All three ranks reduce for all, but rank 2 does something else. */
static int reduce_together(enum tb_composite composite, enum composite_fault fault)
{
    struct tb_program *p[3];
    for (uint32_t rank = 0; rank < 3; rank++) {
        struct tb_contract contract = {.composite = (uint8_t)composite, .rounds = 1, .passes = 1};
        bool wrong = rank == 2, gets = composite == TB_COMPOSITE_ALLREDUCE || rank == 0;
        uint32_t pieces = wrong && fault == TWO_PIECES ? 2 : 1;
        struct tb_builder b;
        tb_builder_open(&b, pieces);
        tb_builder_order(&b);
        if (wrong && fault == LATE)
            tb_builder_receive(&b, 0, 0, (struct tb_slice){TB_SYMBOL_IN, 0, 1, 1});
        if (!wrong || fault != ABSENT)
            tb_builder_composite(&b, &contract, wrong && fault == OTHER_ROOT ? 1 : 0,
                                 (struct tb_slice){TB_SYMBOL_IN, 0, 1, pieces}, OUT(gets ? pieces : 0));
        p[rank] = finish(&b);
    }
    struct tb_validation v = {
        3, p, operand, composite == TB_COMPOSITE_ALLREDUCE ? reduced_everywhere : reduced, NULL, neighbours, 0, NULL};
    int rc = tb_schedule_validate(&v);
    for (int i = 0; i < 3; i++)
        tb_program_free(p[i]);
    return rc;
}

static void composites_keep_their_contract(void **state)
{
    assert_int_equal(reduce_together(TB_COMPOSITE_ALLREDUCE, RIGHT), TB_OK);
    assert_int_equal(reduce_together(TB_COMPOSITE_REDUCE, RIGHT), TB_OK);
    assert_int_equal(reduce_together(TB_COMPOSITE_ALLREDUCE, ABSENT), TB_ERR_MISMATCH);
    assert_int_equal(reduce_together(TB_COMPOSITE_REDUCE, OTHER_ROOT), TB_ERR_MISMATCH);
    assert_int_equal(reduce_together(TB_COMPOSITE_ALLREDUCE, TWO_PIECES), TB_ERR_ARGUMENT);
    assert_int_equal(reduce_together(TB_COMPOSITE_ALLREDUCE, LATE), TB_ERR_MISMATCH);
    assert_int_equal(reduce_together(TB_COMPOSITE_BCAST, RIGHT), TB_ERR_ARGUMENT);
}

/* What waits for a composite step comes after it: the root's data is sent on by the others. */
static void a_composite_broadcast(void **state)
{
    struct tb_program *p[3];
    for (uint32_t rank = 0; rank < 3; rank++) {
        const struct tb_contract contract = {.composite = TB_COMPOSITE_BCAST};
        struct tb_builder b;
        tb_builder_open(&b, 4);
        tb_builder_order(&b);
        tb_builder_composite(&b, &contract, 0, OUT(rank == 0 ? 4 : 0), OUT(rank == 0 ? 0 : 4));
        if (rank == 1)
            tb_builder_send(&b, 2, 0, OUT(4));
        if (rank == 2)
            tb_builder_receive(&b, 1, 0, OUT(4));
        p[rank] = finish(&b);
    }
    assert_int_equal(validate(p, 3), TB_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(builder_makes_programs),
                                       cmocka_unit_test(builder_keeps_the_first_error),
                                       cmocka_unit_test(a_chain_is_valid),
                                       cmocka_unit_test(a_race_is_found),
                                       cmocka_unit_test(wrong_programs_are_found),
                                       cmocka_unit_test(a_cycle_is_found),
                                       cmocka_unit_test(an_edge_used_twice_is_found),
                                       cmocka_unit_test(waiting_for_each_other_is_found),
                                       cmocka_unit_test(reductions_are_checked),
                                       cmocka_unit_test(joined_pieces_are_one_message),
                                       cmocka_unit_test(shifted_dependencies),
                                       cmocka_unit_test(shifted_races_are_found),
                                       cmocka_unit_test(groups_have_their_own_ranks),
                                       cmocka_unit_test(the_builder_orders_steps),
                                       cmocka_unit_test(a_shape_is_for_work_alone),
                                       cmocka_unit_test(lengths_are_compared),
                                       cmocka_unit_test(sizes_must_be_known),
                                       cmocka_unit_test(composites_keep_their_contract),
                                       cmocka_unit_test(a_composite_broadcast)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
