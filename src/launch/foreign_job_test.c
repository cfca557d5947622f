/* One foreign job: which indices its processes have, however many they are and in whatever order they are met, and who
 * of ours has left it. */
#include "launch/foreign_job.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#define MANY 300000u /* so many that nothing may be looked for by walking over all */

/* Those of a party of another job get indices from `next` on; how many do. */
static uint32_t introduce(struct tb_foreign_job *job, const uint32_t *homes, uint32_t count, uint32_t next)
{
    struct tb_rank_range *ranges = NULL;
    uint32_t range_count = 0, added = 0;
    assert_int_equal(tb_foreign_job_place(job, homes, count, next, 3, &ranges, &range_count), TB_OK);
    for (uint32_t i = 0; i < range_count; i++)
        added += ranges[i].count;
    assert_int_equal(tb_foreign_job_add(job, ranges, range_count), TB_OK);
    free(ranges);
    return added;
}

static void each_keeps_its_index(void **state)
{
    struct tb_foreign_job *job = tb_foreign_job_new(7, 1);
    uint32_t index;
    assert_non_null(job);
    assert_false(tb_foreign_job_find(job, 0, &index));
    assert_int_equal(introduce(job, (const uint32_t[]){9, 8, 4}, 3, 100), 3); /* 4 is 100, 8 and 9 follow */
    assert_int_equal(introduce(job, (const uint32_t[]){1, 4, 5, 10}, 4, 200), 3);
    static const uint32_t homes[][2] = {{1, 200}, {4, 100}, {5, 201}, {8, 101}, {9, 102}, {10, 202}};
    for (size_t i = 0; i < sizeof homes / sizeof homes[0]; i++) {
        assert_true(tb_foreign_job_find(job, homes[i][0], &index));
        assert_int_equal(index, homes[i][1]);
    }
    static const uint32_t none[] = {0, 2, 3, 6, 7, 11, UINT32_MAX};
    for (size_t i = 0; i < sizeof none / sizeof none[0]; i++)
        assert_false(tb_foreign_job_find(job, none[i], &index));
    tb_foreign_job_free(job);
}

static void parties_that_make_no_sense(void **state)
{
    struct tb_foreign_job *job = tb_foreign_job_new(7, 1);
    struct tb_rank_range *ranges = NULL;
    uint32_t count;
    assert_int_equal(tb_foreign_job_place(job, (const uint32_t[]){4, 5, 4}, 3, 100, 0, &ranges, &count),
                     TB_ERR_PROTOCOL);
    assert_int_equal(tb_foreign_job_place(job, (const uint32_t[]){TB_JOB_RANKS_LIMIT}, 1, 100, 0, &ranges, &count),
                     TB_ERR_PROTOCOL);
    assert_int_equal(tb_foreign_job_place(job, (const uint32_t[]){4, 5}, 2, TB_JOB_RANKS_LIMIT - 1, 0, &ranges, &count),
                     TB_ERR_LIMIT);
    tb_foreign_job_free(job);
}

static void who_has_left(void **state)
{
    struct tb_foreign_job *job = tb_foreign_job_new(7, 1);
    assert_true(tb_foreign_job_all_left(job));
    assert_int_equal(tb_foreign_job_meet(job, (const uint32_t[]){5, 2, 9}, 3, 1), TB_OK);
    assert_int_equal(tb_foreign_job_meet(job, (const uint32_t[]){7, 2}, 2, 2), TB_OK);
    tb_foreign_job_leave(job, 2, 1); /* it has met them again since */
    tb_foreign_job_leave(job, 3, 1); /* is none of them */
    tb_foreign_job_leave(job, 5, 1);
    tb_foreign_job_leave(job, 5, 1);
    tb_foreign_job_leave(job, 9, 0); /* it has ended */
    tb_foreign_job_leave(job, 7, 2);
    assert_false(tb_foreign_job_all_left(job));
    tb_foreign_job_leave(job, 2, 2);
    assert_true(tb_foreign_job_all_left(job));
    assert_int_equal(tb_foreign_job_meet(job, (const uint32_t[]){5}, 1, 3), TB_OK);
    assert_false(tb_foreign_job_all_left(job));
    tb_foreign_job_free(job);
}

struct lost {
    uint32_t calls, first, count;
};

static void note_lost(void *context, uint32_t first, uint32_t count)
{
    struct lost *lost = context;
    lost->calls++;
    lost->first = first;
    lost->count = count;
}

/* Ranges of theirs, as they are known here. */
static void who_is_lost(void **state)
{
    struct tb_foreign_job *job = tb_foreign_job_new(7, 1);
    introduce(job, (const uint32_t[]){9, 8, 4}, 3, 100);         /* 4 is 100, 8 and 9 follow */
    introduce(job, (const uint32_t[]){5, 6, 7, 10, 11}, 5, 200); /* 5 is 200, 10 is 203 */
    static const struct {
        uint32_t home, count, calls, first, lost;
    } cases[] = {
        {4, 1, 1, 100, 1}, {6, 1, 1, 201, 1}, {8, 2, 1, 101, 2}, {9, 2, 2, 203, 1}, {4, UINT32_MAX, 2, 200, 5}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct lost lost = {0};
        job->losses = 0;
        assert_int_equal(tb_foreign_job_lose(job, cases[i].home, cases[i].count, note_lost, &lost), TB_OK);
        assert_int_equal(lost.calls, cases[i].calls);
        assert_int_equal(lost.first, cases[i].first);
        assert_int_equal(lost.count, cases[i].lost);
    }
    static const uint32_t none[][2] = {{0, 4}, {12, 9}, {UINT32_MAX, UINT32_MAX}, {5, 0}};
    for (size_t i = 0; i < sizeof none / sizeof none[0]; i++) {
        struct lost lost = {0};
        assert_int_equal(tb_foreign_job_lose(job, none[i][0], none[i][1], note_lost, &lost), TB_OK);
        assert_int_equal(lost.calls, 0);
    }
    tb_foreign_job_free(job);
}

/* Ours, piece by piece: nobody is told of whom they do not know, nor twice. */
static void who_is_missed(void **state)
{
    static const uint32_t procs[] = {1, 2, 4, 5, 7, 8};
    struct tb_foreign_job *job = tb_foreign_job_new(7, 1);
    uint32_t first, count;
    assert_int_equal(tb_foreign_job_meet(job, procs, 6, 1), TB_OK);
    assert_false(tb_foreign_job_misses(job, 1, 1, &first, &count));
    assert_false(tb_foreign_job_take_lost(job, &first, &count));
    tb_foreign_job_show(job, procs, 3);
    tb_foreign_job_show(job, procs + 4, 2); /* but not 5 */
    assert_true(tb_foreign_job_take_lost(job, &first, &count));
    assert_true(first == 1 && count == 1);
    assert_true(tb_foreign_job_misses(job, 0, 8, &first, &count));
    assert_true(first == 2 && count == 3); /* 3 has died, too */
    assert_true(tb_foreign_job_misses(job, 0, 8, &first, &count));
    assert_true(first == 7 && count == 1);
    assert_false(tb_foreign_job_misses(job, 0, 8, &first, &count));
    assert_false(tb_foreign_job_take_lost(job, &first, &count));
    tb_foreign_job_show(job, procs, 6);
    assert_true(tb_foreign_job_take_lost(job, &first, &count));
    assert_true(first == 5 && count == 1);
    tb_foreign_job_note_lost(job, 5, 3);
    assert_false(tb_foreign_job_take_lost(job, &first, &count));
    tb_foreign_job_unmeet(job, procs, 1, 1); /* in vain: they never knew it */
    assert_int_equal(tb_foreign_job_meet(job, procs, 1, 2), TB_OK);
    tb_foreign_job_note_lost(job, 1, 1);
    assert_false(tb_foreign_job_take_lost(job, &first, &count));
    tb_foreign_job_show(job, procs, 1);
    assert_true(tb_foreign_job_take_lost(job, &first, &count));
    tb_foreign_job_free(job);
}

/* Every second process, so that each is a range of its own. */
static void very_many(void **state)
{
    struct tb_foreign_job *job = tb_foreign_job_new(7, 1);
    uint32_t *procs = malloc(MANY * sizeof *procs), index;
    assert_non_null(job);
    assert_non_null(procs);
    for (uint32_t i = 0; i < MANY; i++)
        procs[i] = 2 * ((i * 7919u) % MANY);
    assert_int_equal(introduce(job, procs, MANY, 100), MANY);
    assert_int_equal(introduce(job, procs, MANY, 100 + MANY), 0);
    for (uint32_t i = 0; i < MANY; i++) {
        assert_true(tb_foreign_job_find(job, 2 * i, &index));
        assert_int_equal(index, 100 + i);
        assert_false(tb_foreign_job_find(job, 2 * i + 1, &index));
    }
    struct lost lost = {0};
    assert_int_equal(tb_foreign_job_lose(job, 0, TB_JOB_RANKS_LIMIT, note_lost, &lost), TB_OK);
    assert_true(lost.calls == 1 && lost.first == 100 && lost.count == MANY);
    assert_int_equal(tb_foreign_job_meet(job, procs, MANY, 1), TB_OK);
    assert_int_equal(tb_foreign_job_meet(job, procs, MANY, 2), TB_OK);
    for (uint32_t i = 0; i < MANY; i++) {
        assert_false(tb_foreign_job_all_left(job));
        tb_foreign_job_leave(job, 2 * i, 2);
    }
    assert_true(tb_foreign_job_all_left(job));
    tb_foreign_job_free(job);
    free(procs);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_keeps_its_index), cmocka_unit_test(parties_that_make_no_sense),
        cmocka_unit_test(who_has_left),         cmocka_unit_test(who_is_lost),
        cmocka_unit_test(who_is_missed),        cmocka_unit_test(very_many),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
