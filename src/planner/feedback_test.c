#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "planner/plain_table_test.h"
#include "planner/planner.h"

#define RANKS  8u
#define PERIOD 3u
#define BYTES  100000u

/* A communicator: its ranks' planners, and how long each algorithm really takes. */
struct group {
    struct tb_plan_cache *caches[RANKS];
    struct tb_planner *planners[RANKS];
    uint64_t (*time)(const char *algorithm, uint32_t rank); /* nanoseconds */
    uint32_t agreements, samples;
    bool confused; /* rank 5 means something else */
};

static void group_open(struct group *g)
{
    const struct tb_group_shape *shape;
    char period[16];
    snprintf(period, sizeof period, "%u", PERIOD);
    assert_int_equal(tb_param_load(), TB_OK);
    assert_int_equal(tb_group_shape_even(&shape, RANKS, RANKS, false, plain_table()), TB_OK);
    assert_int_equal(tb_param_set("feedback", period, TB_PARAM_LAUNCHER), TB_OK);
    for (uint32_t i = 0; i < RANKS; i++) {
        assert_int_equal(tb_plan_cache_open(&g->caches[i]), TB_OK);
        assert_int_equal(tb_planner_open(g->caches[i], shape, RANKS, i, &g->planners[i]), TB_OK);
        assert_true(tb_planner_measures(g->planners[i]));
    }
    tb_group_shape_release(shape);
}

static void group_close(struct group *g)
{
    for (uint32_t i = 0; i < RANKS; i++) {
        tb_planner_close(g->planners[i]);
        tb_plan_cache_close(g->caches[i]);
    }
    assert_int_equal(tb_param_load(), TB_OK);
}

static struct tb_collective call_of(uint32_t rank, uint64_t bytes)
{
    return (struct tb_collective){.operation = TB_OPERATION_BCAST,
                                  .size = RANKS,
                                  .rank = rank,
                                  .elements = bytes,
                                  .element_bytes = 1,
                                  .commutative = true,
                                  .in_place = rank % 2 == 0};
}

static void trial_maximum(struct tb_trial *all, const struct tb_trial *one)
{
    uint64_t words[sizeof *all / sizeof(uint64_t)], others[sizeof *all / sizeof(uint64_t)];
    memcpy(words, all, sizeof words);
    memcpy(others, one, sizeof others);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        words[i] = others[i] > words[i] ? others[i] : words[i];
    memcpy(all, words, sizeof words);
}

/* One call on all ranks, as MPI would run it. What has run, on all of them alike. */
static struct tb_choice run(struct group *g, uint64_t bytes)
{
    struct tb_choice first = {.reason = TB_REASON_COUNT};
    struct tb_trial agreed = {.digest = 0};
    uint32_t full = 0, due = 0;
    for (uint32_t i = 0; i < RANKS; i++) {
        struct tb_collective c = call_of(i, bytes);
        const struct tb_program *program;
        struct tb_choice choice;
        assert_int_equal(tb_planner_program(g->planners[i], &c, &program), TB_OK);
        assert_int_equal(tb_planner_choice(g->planners[i], &c, &choice), TB_OK);
        first = i == 0 ? choice : first;
        assert_ptr_equal(choice.best.algorithm, first.best.algorithm);
        assert_int_equal(choice.best.argument, first.best.argument);
        assert_int_equal(choice.reason, first.reason);
        if (tb_planner_due(g->planners[i], &c)) {
            struct tb_trial mine;
            due++;
            if (tb_planner_note(g->planners[i], &c, g->time(choice.best.algorithm->name, i), &mine)) {
                mine.digest += g->confused && i == 5;
                trial_maximum(&agreed, &mine);
                full++;
            }
        }
        tb_planner_release(g->planners[i], program);
    }
    assert_true((full == 0 || full == RANKS) && (due == 0 || due == RANKS));
    for (uint32_t i = 0; i < RANKS && full > 0; i++) {
        struct tb_collective c = call_of(i, bytes);
        assert_int_equal(tb_planner_learn(g->planners[i], &c, &agreed), TB_OK);
    }
    g->agreements += full > 0;
    g->samples += due > 0;
    return first;
}

static struct tb_choice run_often(struct group *g, uint64_t bytes, uint32_t times)
{
    struct tb_choice choice = run(g, bytes);
    for (uint32_t i = 1; i < times; i++)
        choice = run(g, bytes);
    return choice;
}

/* ---- tests ------------------------------------------------------------------------------------------------------- */

static uint64_t right_time; /* what was predicted, in nanoseconds */

static uint64_t as_predicted(const char *algorithm, uint32_t rank)
{
    return rank == 3 ? right_time : right_time / 2;
}

static void a_model_that_is_right_is_left_alone(void **state)
{
    struct group g = {.time = as_predicted};
    group_open(&g);
    struct tb_collective c = call_of(0, BYTES);
    struct tb_choice before, after;
    assert_int_equal(tb_planner_choice(g.planners[0], &c, &before), TB_OK);
    right_time = before.best.time / 1000;
    after = run_often(&g, BYTES, 100);
    assert_ptr_equal(after.best.algorithm, before.best.algorithm);
    assert_int_equal(after.best.argument, before.best.argument);
    assert_int_equal(after.reason, TB_REASON_MODEL);
    assert_int_equal(g.agreements, 1);
    assert_int_equal(g.samples, TB_TRIAL_SAMPLES); /* and then no call is measured any more */
    group_close(&g);
}

/* Binary is quickest, and was not expected to be. */
static uint64_t binary_wins(const char *algorithm, uint32_t rank)
{
    return (strcmp(algorithm, "binary") == 0 ? 20000000 : 90000000) + rank;
}

static void the_really_faster_one_is_found(void **state)
{
    struct group g = {.time = binary_wins};
    group_open(&g);
    struct tb_choice first = run(&g, BYTES);
    assert_string_not_equal(first.best.algorithm->name, "binary");
    assert_int_equal(run_often(&g, BYTES, PERIOD * TB_TRIAL_SAMPLES).reason, TB_REASON_TRIAL);
    struct tb_choice last = run_often(&g, BYTES, 200);
    assert_string_equal(last.best.algorithm->name, "binary");
    assert_int_equal(last.reason, TB_REASON_MEASURED);
    /* What is predicted now is about what was measured. */
    assert_true(last.best.time / 1000 > 19000000 && last.best.time / 1000 < 21000000);
    assert_non_null(last.next.algorithm);
    uint32_t samples = g.samples;
    run_often(&g, BYTES, 50);
    assert_int_equal(g.samples, samples);
    /* Other sizes are other kinds, of which nothing is known yet. */
    assert_int_equal(run(&g, 8).reason, TB_REASON_MODEL);
    group_close(&g);
}

static uint64_t failing(const char *algorithm, uint32_t rank)
{
    return rank == 2 ? UINT64_MAX : 5;
}

static void without_agreement_nothing_changes(void **state)
{
    for (int i = 0; i < 2; i++) {
        struct group g = {.time = i == 0 ? binary_wins : failing, .confused = i == 0};
        group_open(&g);
        struct tb_choice first = run(&g, BYTES), last = run_often(&g, BYTES, 100);
        assert_int_equal(g.agreements, 1);
        assert_ptr_equal(first.best.algorithm, last.best.algorithm);
        assert_int_equal(last.reason, TB_REASON_MODEL);
        group_close(&g);
    }
}

static void what_the_user_wants_is_not_tried(void **state)
{
    struct group g = {.time = binary_wins};
    group_open(&g);
    for (uint32_t i = 0; i < RANKS; i++)
        assert_int_equal(tb_planner_prefer(g.planners[i], TB_OPERATION_BCAST, "chain:16k"), TB_OK);
    char text[64];
    assert_true(tb_planner_preferred(g.planners[0], TB_OPERATION_BCAST, text, sizeof text));
    assert_string_equal(text, "chain:16k");
    assert_false(tb_planner_preferred(g.planners[0], TB_OPERATION_REDUCE, text, sizeof text));
    struct tb_choice choice = run_often(&g, BYTES, 100);
    assert_string_equal(choice.best.algorithm->name, "chain");
    assert_int_equal(g.samples, 0);
    /* Taken back, and then measured. */
    for (uint32_t i = 0; i < RANKS; i++)
        assert_int_equal(tb_planner_prefer(g.planners[i], TB_OPERATION_BCAST, ""), TB_OK);
    assert_string_equal(run_often(&g, BYTES, 300).best.algorithm->name, "binary");
    group_close(&g);
}

/* More kinds than there is room for: the others run as ever. */
static void kinds_are_bounded(void **state)
{
    struct group g = {.time = binary_wins};
    group_open(&g);
    for (uint64_t bytes = 1; bytes < 1ull << 30; bytes = bytes * 5 / 4 + 1)
        run_often(&g, bytes, 2);
    struct tb_choice last = run_often(&g, 1ull << 30, 100);
    assert_int_equal(last.reason, TB_REASON_MODEL);
    group_close(&g);
}

static void it_is_off_by_default(void **state)
{
    const struct tb_group_shape *shape;
    struct tb_plan_cache *cache;
    struct tb_planner *planner;
    assert_int_equal(tb_param_load(), TB_OK);
    assert_int_equal(tb_group_shape_even(&shape, RANKS, RANKS, false, plain_table()), TB_OK);
    assert_int_equal(tb_plan_cache_open(&cache), TB_OK);
    assert_int_equal(tb_planner_open(cache, shape, RANKS, 0, &planner), TB_OK);
    tb_group_shape_release(shape);
    struct tb_collective c = call_of(0, BYTES);
    assert_false(tb_planner_measures(planner));
    assert_false(tb_planner_due(planner, &c));
    tb_planner_close(planner);
    tb_plan_cache_close(cache);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_model_that_is_right_is_left_alone),
        cmocka_unit_test(the_really_faster_one_is_found),
        cmocka_unit_test(without_agreement_nothing_changes),
        cmocka_unit_test(what_the_user_wants_is_not_tried),
        cmocka_unit_test(kinds_are_bounded),
        cmocka_unit_test(it_is_off_by_default),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
