/* How ranks end, and which of them is the cause. */
#include "launch/rank_ends.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "remote/virtual_loop_test.h"

#define SECOND 1000000000u

struct world {
    struct virtual_loop t;
    struct tb_rank_ends ends;
    struct tb_host hosts[1];
    struct tb_rank_range ranges[1];
    struct tb_address_book book;
    struct tb_verdict verdict;
};

static void take_failed(void *context, enum tb_verdict_weight weight, int code, const char *text)
{
    struct world *w = context;
    tb_verdict_add(&w->verdict, weight, code, text);
    if (weight != TB_VERDICT_LATE)
        tb_rank_ends_stop(&w->ends); /* as the launcher does */
}

static void world_open(struct world *w)
{
    memset(w, 0, sizeof *w);
    assert_int_equal(virtual_loop_open(&w->t), TB_OK);
    snprintf(w->hosts[0].name, sizeof w->hosts[0].name, "venus");
    w->hosts[0].rank_count = 4;
    w->ranges[0] = (struct tb_rank_range){.host = 0, .first_rank = 0, .count = 4};
    w->book =
        (struct tb_address_book){.host_count = 1, .hosts = w->hosts, .range_count = 1, .ranges = w->ranges, .ranks = 4};
    tb_rank_ends_init(&w->ends, &w->t.loop, &(struct tb_rank_ends_events){.context = w, .failed = take_failed});
    assert_int_equal(tb_rank_ends_begin(&w->ends, &w->book), TB_OK);
}

static void world_close(struct world *w)
{
    tb_rank_ends_stop(&w->ends);
    free(w->ends.ended);
    virtual_loop_close(&w->t);
}

static void gives_up(struct world *w, uint32_t rank, uint32_t code, enum tb_abort_reason reason, const char *text)
{
    const struct tb_agent_abort abort = {rank, 100 + rank, code, reason, text, strlen(text)};
    tb_rank_ends_abort(&w->ends, &abort);
}

static void ends(struct world *w, uint32_t rank, int status, uint32_t flags)
{
    const struct tb_ended ended = {.rank = rank, .pid = 100 + rank, .status = status, .flags = flags};
    assert_true(tb_rank_ends_add(&w->ends, &ended));
}

static void is_judged(const struct world *w, int code, const char *words)
{
    assert_int_equal(w->verdict.code, code);
    if (strstr(w->verdict.text, words) == NULL)
        fail_msg("%s", w->verdict.text);
}

/* Those who have lost it are heard before its end is known. */
static void a_killed_rank_is_the_cause(void **state)
{
    struct world w;
    world_open(&w);
    gives_up(&w, 3, 16, TB_ABORT_FOLLOWS, "rank 1 has given up");
    gives_up(&w, 1, 58, TB_ABORT_LOST, "receiving from rank 2 failed");
    virtual_loop_pass(&w.t, SECOND);
    assert_int_equal(w.verdict.weight, TB_VERDICT_NONE);
    ends(&w, 2, SIGKILL, TB_ENDED_INITIALIZED);
    is_judged(&w, 137, "rank 2 on host venus (pid 102) was ended by signal 9");
    virtual_loop_pass(&w.t, 5 * (uint64_t)SECOND);
    is_judged(&w, 137, "rank 2");
    world_close(&w);
}

/* Its end is reported although the job is being ended for another reason that weighs less. */
static void a_cause_that_comes_late_weighs_more(void **state)
{
    struct world w;
    world_open(&w);
    gives_up(&w, 1, 58, TB_ABORT_LOST, "receiving from rank 2 failed");
    virtual_loop_pass(&w.t, 3 * (uint64_t)SECOND);
    is_judged(&w, 58, "rank 1 on host venus (pid 101): receiving from rank 2 failed");
    ends(&w, 2, SIGSEGV, TB_ENDED_INITIALIZED);
    is_judged(&w, 128 + SIGSEGV, "rank 2");
    ends(&w, 3, SIGKILL, TB_ENDED_INITIALIZED | TB_ENDED_STOPPED);
    is_judged(&w, 128 + SIGSEGV, "rank 2");
    world_close(&w);
}

static void without_a_cause_the_loss_is_told(void **state)
{
    struct world w;
    world_open(&w);
    gives_up(&w, 3, 16, TB_ABORT_FOLLOWS, "rank 1 has given up");
    gives_up(&w, 1, 58, TB_ABORT_LOST, "receiving from rank 2 failed");
    gives_up(&w, 0, 58, TB_ABORT_LOST, "receiving from rank 1 failed");
    virtual_loop_pass(&w.t, 19 * (uint64_t)SECOND / 10);
    assert_int_equal(w.verdict.weight, TB_VERDICT_NONE);
    virtual_loop_pass(&w.t, SECOND / 5);
    is_judged(&w, 58, "rank 1");
    world_close(&w);
}

/* Whoever diagnoses is told, not those who follow, in whatever order they come. */
static void the_diagnosis_is_told(void **state)
{
    for (int order = 0; order < 2; order++) {
        struct world w;
        world_open(&w);
        if (order == 0)
            gives_up(&w, 3, 16, TB_ABORT_FOLLOWS, "rank 1 has given up");
        gives_up(&w, 1, 16, TB_ABORT_ERROR, "ranks call different collectives");
        is_judged(&w, 16, "rank 1 on host venus (pid 101): ranks call different");
        gives_up(&w, 2, 16, TB_ABORT_FOLLOWS, "rank 1 has given up");
        is_judged(&w, 16, "rank 1 on host venus (pid 101): ranks call different");
        world_close(&w);
    }
}

static void the_program_is_not_kept_waiting(void **state)
{
    struct world w;
    world_open(&w);
    gives_up(&w, 1, 58, TB_ABORT_CALLED, "");
    is_judged(&w, 58, "called MPI_Abort with code 58");
    world_close(&w);
}

/* One that left without MPI_Finalize is why others have lost it. */
static void a_rank_that_leaves_is_the_cause(void **state)
{
    struct world w;
    world_open(&w);
    gives_up(&w, 1, 58, TB_ABORT_LOST, "receiving from rank 2 failed");
    ends(&w, 2, 0, TB_ENDED_INITIALIZED);
    virtual_loop_pass(&w.t, 3 * (uint64_t)SECOND);
    is_judged(&w, 1, "rank 2 on host venus (pid 102) ended without calling MPI_Finalize");
    world_close(&w);
}

static void shells_tell_of_signals(void **state)
{
    struct world w;
    world_open(&w);
    gives_up(&w, 1, 58, TB_ABORT_LOST, "receiving from rank 2 failed");
    ends(&w, 2, 137 << 8, TB_ENDED_INITIALIZED);
    is_judged(&w, 137, "exit code 137, as shells say of signal 9 (SIGKILL, ");
    world_close(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_killed_rank_is_the_cause),       cmocka_unit_test(a_cause_that_comes_late_weighs_more),
        cmocka_unit_test(without_a_cause_the_loss_is_told), cmocka_unit_test(the_diagnosis_is_told),
        cmocka_unit_test(the_program_is_not_kept_waiting),  cmocka_unit_test(a_rank_that_leaves_is_the_cause),
        cmocka_unit_test(shells_tell_of_signals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
