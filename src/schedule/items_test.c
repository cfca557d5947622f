/* Items of several pieces, dependencies between steps of different items, and slices that list their pieces. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "schedule/schedule.h"

#define PIECES 13
#define OUT(n) ((struct tb_slice){TB_SYMBOL_OUT, 0, 1, (n)})

static uint64_t source[PIECES];

static uint64_t *initial(void *context, uint32_t rank, enum tb_symbol symbol)
{
    for (uint32_t i = 0; i < PIECES; i++)
        source[i] = 100 + i;
    return rank == 0 && symbol == TB_SYMBOL_OUT ? source : NULL;
}

static const uint64_t *expect(void *context, uint32_t rank, enum tb_symbol symbol)
{
    return symbol == TB_SYMBOL_OUT ? source : NULL;
}

static const uint64_t *backwards(void *context, uint32_t rank, enum tb_symbol symbol)
{
    static uint64_t expected[PIECES];
    for (uint32_t i = 0; i < PIECES; i++)
        expected[i] = 100 + PIECES - 1 - i;
    return symbol == TB_SYMBOL_OUT ? expected : NULL;
}

/* As the executor cuts: all but the last few are of one length. */
static uint64_t length(void *context, uint32_t rank, enum tb_symbol symbol, uint32_t piece)
{
    uint64_t elements = *(uint64_t *)context, each = (elements + PIECES - 1) / PIECES, start = piece % PIECES * each;
    return start >= elements ? 0 : elements - start < each ? elements - start : each;
}

static struct tb_program *finish(struct tb_builder *b)
{
    struct tb_program *p = NULL;
    assert_int_equal(tb_builder_finish(b, &p), TB_OK);
    return p;
}

static int validate(struct tb_program **programs, uint32_t ranks)
{
    struct tb_validation v = {.ranks = ranks, .programs = programs, .initial = initial, .expect = expect};
    int rc = TB_OK;
    for (uint64_t elements = 0; elements < 40 && rc == TB_OK; elements++) {
        v.length = length;
        v.context = &elements;
        rc = tb_schedule_validate(&v);
    }
    for (uint32_t i = 0; i < ranks; i++)
        tb_program_free(programs[i]);
    return rc;
}

/* From rank 0 on each passes pieces to the next, in items of so many; dependencies have this lag. */
static void chain_make(struct tb_program **p, uint32_t ranks, const uint32_t *joins, int32_t lag)
{
    for (uint32_t rank = 0; rank < ranks; rank++) {
        struct tb_builder b;
        uint32_t got = 0;
        tb_builder_open(&b, PIECES);
        if (rank > 0) {
            got = tb_builder_receive(&b, rank - 1, 0, OUT(PIECES));
            tb_builder_cut(&b, joins[rank - 1]);
        }
        if (rank + 1 < ranks) {
            tb_builder_send(&b, rank + 1, 0, OUT(PIECES));
            tb_builder_cut(&b, joins[rank]);
            if (rank > 0)
                tb_builder_after_lag(&b, got, lag);
        }
        p[rank] = finish(&b);
    }
}

static uint32_t needs(const struct tb_program *p, uint32_t item)
{
    const struct tb_after *after = &p->after[p->steps[1].after];
    return tb_step_needs(&p->steps[1], after, &p->steps[after->step], item);
}

/* Long items to short ones and back: each starts as soon as its pieces are there. */
static void steps_have_their_own_items(void **state)
{
    static const uint32_t joins[] = {4, 1, 5, TB_JOIN_ALL};
    struct tb_program *p[5];
    chain_make(p, 5, joins, 0);
    assert_int_equal(p[0]->steps[0].items, 4);
    assert_int_equal(p[1]->steps[1].items, PIECES);
    assert_int_equal(p[3]->steps[0].items, 3);
    assert_int_equal(p[4]->steps[0].items, 1);
    for (uint32_t i = 0; i < PIECES; i++)
        assert_int_equal(needs(p[1], i), i / 4 + 1);
    static const uint32_t after_short[] = {5, 10, 13};
    for (uint32_t i = 0; i < 3; i++)
        assert_int_equal(needs(p[2], i), after_short[i]);
    assert_int_equal(needs(p[3], 0), 3);
    assert_int_equal(validate(p, 5), TB_OK);
}

static void lags_are_signed(void **state)
{
    static const uint32_t joins[] = {4, 1, 5};
    struct tb_program *p[4];
    chain_make(p, 4, joins, -2);
    assert_int_equal(needs(p[1], 0), 1);
    assert_int_equal(needs(p[1], 2), 2);
    assert_int_equal(needs(p[1], PIECES - 1), 4);
    assert_int_equal(needs(p[2], 0), 7);
    assert_int_equal(needs(p[2], 2), 13);
    assert_int_equal(validate(p, 4), TB_OK);
    chain_make(p, 4, joins, 1);
    assert_int_equal(needs(p[1], 0), 0);
    assert_int_equal(needs(p[1], 4), 1);
    assert_int_equal(needs(p[2], 1), 9);
    assert_int_equal(validate(p, 4), TB_ERR_ARGUMENT);
    assert_non_null(strstr(tb_error_story(), "no order"));
}

/* Each dependency of a step has a lag of its own. */
static void every_dependency_has_its_lag(void **state)
{
    struct tb_builder b;
    tb_builder_open(&b, PIECES);
    for (uint32_t i = 0; i < 3; i++)
        tb_builder_receive(&b, i + 1, 0, OUT(PIECES));
    tb_builder_send(&b, 1, 0, OUT(PIECES));
    tb_builder_after_lag(&b, 0, 3);
    tb_builder_after_shifted(&b, 1);
    tb_builder_after_lag(&b, 2, -3);
    struct tb_program *p = finish(&b);
    static const uint32_t expected[] = {2, 4, 8};
    for (uint32_t i = 0; i < 3; i++)
        assert_int_equal(tb_step_needs(&p->steps[3], &p->after[p->steps[3].after + i], &p->steps[i], 4), expected[i]);
    tb_program_free(p);
}

static void both_ends_have_the_same_items(void **state)
{
    static const uint32_t joins[] = {4, 4};
    struct tb_program *p[3];
    chain_make(p, 3, joins, 0);
    p[1]->steps[1].join = 3;
    p[1]->steps[1].items = 5;
    assert_int_equal(validate(p, 3), TB_ERR_MISMATCH);
}

/* A piece goes through a middle step; what that one makes sure of is no more than it has pieces for. */
static int through_middle(uint32_t count, int32_t lag, int32_t middle_lag)
{
    struct tb_builder b;
    struct tb_program *p[2];
    tb_builder_open(&b, PIECES);
    tb_builder_send(&b, 1, 0, OUT(PIECES));
    p[0] = finish(&b);
    tb_builder_open(&b, PIECES);
    uint32_t come = tb_builder_receive(&b, 0, 0, OUT(PIECES));
    uint32_t middle = tb_builder_copy(&b, OUT(count), (struct tb_slice){TB_SYMBOL_WORK, 0, 1, count});
    tb_builder_after_lag(&b, come, middle_lag);
    tb_builder_copy(&b, OUT(PIECES), (struct tb_slice){TB_SYMBOL_IN, 0, 1, PIECES});
    tb_builder_after_lag(&b, middle, lag);
    p[1] = finish(&b);
    return validate(p, 2);
}

static void lags_add_up(void **state)
{
    assert_int_equal(through_middle(PIECES, 0, 0), TB_OK);
    assert_int_equal(through_middle(PIECES, 1, 0), TB_ERR_ARGUMENT);
    assert_int_equal(through_middle(PIECES, -1, 0), TB_OK);
    /* The last pieces wait for all of the middle step, which is not all that came. */
    assert_int_equal(through_middle(PIECES - 1, 0, 0), TB_ERR_ARGUMENT);
    assert_int_equal(through_middle(PIECES - 1, 0, -1), TB_OK);
    assert_int_equal(through_middle(PIECES - 1, TB_AFTER_WHOLE, 0), TB_ERR_ARGUMENT);
    assert_int_equal(through_middle(PIECES - 1, TB_AFTER_WHOLE, -1), TB_OK);
    /* The first one waits for nothing. */
    assert_int_equal(through_middle(PIECES, 1, -1), TB_ERR_ARGUMENT);
}

/* ---- lists ------------------------------------------------------------------------------------------------------- */

static const uint32_t order[PIECES] = {5, 1, 12, 0, 7, 3, 11, 2, 10, 4, 9, 6, 8};

/* Rank 0 sends pieces in that order; rank 1 takes them into WORK side by side and puts them where the list says. */
static int send_list(const uint32_t *to, int32_t lag, bool whole)
{
    struct tb_builder b;
    struct tb_program *p[2];
    const struct tb_slice work = {TB_SYMBOL_WORK, 0, 1, PIECES};
    tb_builder_open(&b, PIECES);
    tb_builder_send(&b, 1, 0, tb_builder_list(&b, TB_SYMBOL_OUT, order, PIECES));
    p[0] = finish(&b);
    tb_builder_open(&b, PIECES);
    if (whole)
        tb_builder_order(&b);
    uint32_t come = tb_builder_receive(&b, 0, 0, work);
    tb_builder_copy(&b, work, tb_builder_list(&b, TB_SYMBOL_OUT, to, PIECES));
    if (!whole)
        tb_builder_after_lag(&b, come, lag);
    p[1] = finish(&b);
    struct tb_validation v = {.ranks = 2, .programs = p, .initial = initial, .expect = expect};
    int rc = tb_schedule_validate(&v);
    tb_program_free(p[0]);
    tb_program_free(p[1]);
    return rc;
}

static void slices_list_pieces(void **state)
{
    uint32_t outside[PIECES];
    memcpy(outside, order, sizeof outside);
    outside[3] = PIECES;
    assert_int_equal(send_list(order, 0, false), TB_OK);
    assert_int_equal(send_list(order, 0, true), TB_OK);
    assert_int_equal(send_list(order, 1, false), TB_ERR_ARGUMENT);
    assert_int_equal(send_list(outside, 0, false), TB_ERR_ARGUMENT);
    assert_non_null(strstr(tb_error_story(), "piece 13"));
}

/* In WORK pieces are turned around, and taken from there in the order of a list, each when it has been turned. */
static int turn_around(int32_t lag, bool twice)
{
    struct tb_builder b;
    struct tb_program *p[1];
    uint32_t list[PIECES];
    tb_builder_open(&b, PIECES);
    for (uint32_t i = 0; i < PIECES; i++)
        list[i] = PIECES - 1 - i;
    const struct tb_slice turned = tb_builder_list(&b, TB_SYMBOL_WORK, list, PIECES);
    uint32_t away = tb_builder_copy(&b, OUT(PIECES), turned);
    if (twice)
        list[1] = PIECES - 1;
    tb_builder_copy(&b, tb_builder_list(&b, TB_SYMBOL_WORK, list, PIECES),
                    (struct tb_slice){TB_SYMBOL_IN, 0, 1, PIECES});
    tb_builder_after_lag(&b, away, lag);
    tb_builder_copy(&b, (struct tb_slice){TB_SYMBOL_WORK, 0, 1, PIECES}, OUT(PIECES));
    tb_builder_after(&b, away);
    p[0] = finish(&b);
    assert_int_equal(p[0]->work_pieces, PIECES);
    struct tb_validation v = {.ranks = 1, .programs = p, .initial = initial, .expect = backwards};
    int rc = tb_schedule_validate(&v);
    tb_program_free(p[0]);
    return rc;
}

static void races_in_lists_are_found(void **state)
{
    assert_int_equal(turn_around(0, false), TB_OK);
    assert_int_equal(turn_around(0, true), TB_OK); /* what is read may stand there twice */
    assert_int_equal(turn_around(1, false), TB_ERR_ARGUMENT);
    assert_non_null(strstr(tb_error_story(), "no order"));
}

enum mistake { TWICE, LIST_JOINED, STRIDE_CUT, MEASURE_CUT, MISTAKES };

static void mistakes_are_refused(void **state)
{
    static const uint32_t twice[] = {2, 3, 2};
    for (int mistake = 0; mistake < MISTAKES; mistake++) {
        struct tb_builder b;
        struct tb_program *p = NULL;
        tb_builder_open(&b, PIECES);
        if (mistake == TWICE) {
            tb_builder_receive(&b, 1, 0, tb_builder_list(&b, TB_SYMBOL_OUT, twice, 3));
        } else if (mistake == LIST_JOINED) {
            tb_builder_send(&b, 1, 0, tb_builder_list(&b, TB_SYMBOL_OUT, twice, 3));
            tb_builder_join(&b);
        } else if (mistake == STRIDE_CUT) {
            tb_builder_send(&b, 1, 0, (struct tb_slice){TB_SYMBOL_OUT, 0, 2, 4});
            tb_builder_cut(&b, 2);
        } else {
            tb_builder_measure(&b, OUT(4), 0);
            tb_builder_cut(&b, 2);
        }
        assert_int_equal(tb_builder_finish(&b, &p), TB_ERR_ARGUMENT);
        assert_null(p);
    }
}

/* ---- parts ------------------------------------------------------------------------------------------------------- */

static void parts_of_blocks(void **state)
{
    for (uint64_t bytes = 0; bytes < 20000; bytes += 241)
        for (uint32_t parts = 1; parts < 9; parts++) {
            assert_int_equal(tb_part_start(bytes, parts, TB_PART_UNIT, 0), 0);
            assert_int_equal(tb_part_start(bytes, parts, TB_PART_UNIT, parts), bytes);
            uint64_t most = (bytes / TB_PART_UNIT + 1) / parts * TB_PART_UNIT + TB_PART_UNIT;
            for (uint32_t i = 0; i < parts; i++) {
                uint64_t start = tb_part_start(bytes, parts, TB_PART_UNIT, i);
                uint64_t end = tb_part_start(bytes, parts, TB_PART_UNIT, i + 1);
                assert_true(start <= end && end - start <= most);
                assert_true(start == bytes || start % TB_PART_UNIT == 0);
            }
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(steps_have_their_own_items),
                                       cmocka_unit_test(lags_are_signed),
                                       cmocka_unit_test(every_dependency_has_its_lag),
                                       cmocka_unit_test(both_ends_have_the_same_items),
                                       cmocka_unit_test(lags_add_up),
                                       cmocka_unit_test(slices_list_pieces),
                                       cmocka_unit_test(races_in_lists_are_found),
                                       cmocka_unit_test(mistakes_are_refused),
                                       cmocka_unit_test(parts_of_blocks)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
