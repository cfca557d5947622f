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
    uint32_t lost_count, lost; /* ranks without which the job goes on; the last of them */
    uint32_t dropped;          /* bits of ranks that were to be ended, while the job goes on */
    uint32_t parted;           /* bits of worlds that were to be ended, by their first indices */
};

static void take_failed(void *context, enum tb_verdict_weight weight, int code, const char *text)
{
    struct world *w = context;
    tb_verdict_add(&w->verdict, weight, code, text);
    if (weight > TB_VERDICT_LOST)
        tb_rank_ends_stop(&w->ends); /* as the launcher does */
}

static void take_lost(void *context, uint32_t rank, const char *text)
{
    struct world *w = context;
    assert_int_not_equal(*text, 0);
    w->lost_count++;
    w->lost = rank;
}

static void take_dropped(void *context, uint32_t rank, const char *text)
{
    struct world *w = context;
    assert_int_not_equal(*text, 0);
    w->dropped |= 1u << rank;
}

static void take_parted(void *context, const uint32_t *worlds, uint32_t count, const char *text)
{
    struct world *w = context;
    assert_int_not_equal(*text, 0);
    for (uint32_t i = 0; i < count; i++)
        w->parted |= 1u << worlds[i];
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
    tb_rank_ends_init(
        &w->ends, &w->t.loop,
        &(struct tb_rank_ends_events){
            .context = w, .failed = take_failed, .parted = take_parted, .lost = take_lost, .dropped = take_dropped});
    assert_int_equal(tb_rank_ends_begin(&w->ends, &w->book), TB_OK);
}

static void world_close(struct world *w)
{
    tb_rank_ends_stop(&w->ends);
    tb_rank_ends_close(&w->ends);
    tb_worlds_close(&w->book);
    virtual_loop_close(&w->t);
}

static void gives_up(struct world *w, uint32_t rank, uint32_t code, enum tb_abort_reason reason, const char *text)
{
    const struct tb_agent_abort abort = {rank, 100 + rank, code, reason, text, strlen(text), .group.count = 0};
    tb_rank_ends_abort(&w->ends, &abort);
}

/* The same for a group of ranks, given as bits. */
static void gives_up_some(struct world *w, uint32_t rank, uint32_t code, enum tb_abort_reason reason, uint32_t some)
{
    struct tb_agent_abort abort = {rank, 100 + rank, code, reason, "", 0, .group.count = 0};
    for (uint32_t i = 0; i < 32; i++)
        if (some >> i & 1)
            assert_true(tb_abort_group_add(&abort.group, i));
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

static void leaves(struct world *w, uint32_t rank, int status)
{
    const struct tb_ended ended = {.rank = rank, .pid = 200 + rank, .status = status, .flags = TB_ENDED_BELOW};
    assert_false(tb_rank_ends_add(&w->ends, &ended));
}

/* A script that goes on above a program that was killed keeps the others waiting for two seconds only. */
static void a_program_below_is_the_cause(void **state)
{
    const struct {
        int status, code;
        const char *words;
    } cases[] = {
        {SIGKILL, 137,
         "(pid 202) has ended without calling MPI_Finalize while other ranks were still running, below a "
         "process that goes on: by signal 9 (SIGKILL, "},
        {7 << 8, 7, "goes on: with exit code 7"},
        {0, 1, "goes on: with exit code 0"},
        {-1, 1, "goes on: how, only the process above it knows"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct world w;
        world_open(&w);
        gives_up(&w, 1, 58, TB_ABORT_LOST, "receiving from rank 2 failed");
        leaves(&w, 2, cases[i].status);
        virtual_loop_pass(&w.t, 19 * (uint64_t)SECOND / 10);
        assert_int_equal(w.verdict.weight, TB_VERDICT_NONE);
        virtual_loop_pass(&w.t, SECOND / 5);
        is_judged(&w, cases[i].code, "rank 2 on host venus: ");
        is_judged(&w, cases[i].code, cases[i].words);
        world_close(&w);
    }
}

/* The one of which is known that it has failed, in whatever order they come. */
static void the_worst_that_leaves_is_told(void **state)
{
    for (int order = 0; order < 2; order++) {
        struct world w;
        world_open(&w);
        leaves(&w, order == 0 ? 1 : 3, order == 0 ? 0 : SIGSEGV);
        leaves(&w, order == 0 ? 3 : 1, order == 0 ? SIGSEGV : 0);
        ends(&w, 1, 0, TB_ENDED_INITIALIZED);
        virtual_loop_pass(&w.t, 3 * (uint64_t)SECOND);
        is_judged(&w, 128 + SIGSEGV, "rank 3");
        world_close(&w);
    }
}

/* The script ends, too, and says how; or nobody is left who could wait. */
static void scripts_may_end_or_go_on(void **state)
{
    struct world w;
    world_open(&w);
    leaves(&w, 2, SIGKILL);
    ends(&w, 2, 137 << 8, TB_ENDED_INITIALIZED);
    is_judged(&w, 137, "(pid 102) ended with exit code 137");
    world_close(&w);
    world_open(&w);
    for (uint32_t i = 0; i < 4; i++) {
        leaves(&w, i, 0);
        leaves(&w, i, 0); /* an agent that says it twice */
    }
    virtual_loop_pass(&w.t, 5 * (uint64_t)SECOND);
    assert_int_equal(w.verdict.weight, TB_VERDICT_NONE);
    for (uint32_t i = 0; i < 4; i++)
        ends(&w, i, 0, TB_ENDED_INITIALIZED);
    virtual_loop_pass(&w.t, 5 * (uint64_t)SECOND);
    assert_int_equal(w.verdict.weight, TB_VERDICT_NONE);
    assert_int_equal(w.ends.unfinalized_count, 4);
    world_close(&w);
}

/* However a rank dies, the others go on and are told; but a program that wants the end of the job has it. */
static void a_job_goes_on_without_the_dead(void **state)
{
    struct world w;
    const struct tb_ended left = {.rank = 3, .pid = 103, .status = 9, .flags = TB_ENDED_BELOW};
    world_open(&w);
    tb_param.keep_going = true;
    ends(&w, 1, 9, TB_ENDED_INITIALIZED); /* SIGKILL */
    assert_int_equal(w.lost_count, 1);
    assert_int_equal(w.lost, 1);
    assert_int_equal(w.verdict.weight, TB_VERDICT_LOST);
    is_judged(&w, 137, "rank 1 on host venus (pid 101) was ended by signal 9");
    ends(&w, 2, 3 << 8, TB_ENDED_INITIALIZED); /* exit code 3 */
    assert_int_equal(w.lost_count, 2);
    assert_int_equal(w.lost, 2);
    assert_false(tb_rank_ends_add(&w.ends, &left));
    assert_int_equal(w.lost_count, 3);
    assert_int_equal(w.lost, 3);
    virtual_loop_pass(&w.t, 5 * (uint64_t)SECOND);
    assert_int_equal(w.verdict.weight, TB_VERDICT_LOST);
    is_judged(&w, 137, "rank 1 on host venus"); /* the first */
    gives_up(&w, 0, 7, TB_ABORT_CALLED, "");
    is_judged(&w, 7, "rank 0 on host venus (pid 100) called MPI_Abort with code 7");
    tb_param.keep_going = false;
    world_close(&w);
}

/* MPI_Abort of some: they are ended, and the others go on; of all that are left, or where nobody goes on, the job. */
static void a_group_is_ended(void **state)
{
    struct world w;
    world_open(&w);
    gives_up_some(&w, 1, 8, TB_ABORT_CALLED, 1u << 1 | 1u << 3);
    assert_int_equal(w.dropped, 0);
    assert_int_equal(w.verdict.weight, TB_VERDICT_ABORT);
    world_close(&w);
    world_open(&w);
    tb_param.keep_going = true;
    gives_up_some(&w, 1, 8, TB_ABORT_CALLED, 1u << 1 | 1u << 3 | 1u << 30);
    assert_int_equal(w.dropped, 1u << 1 | 1u << 3);
    assert_int_equal(w.lost_count, 1);
    assert_int_equal(w.lost, 1);
    assert_int_equal(w.verdict.weight, TB_VERDICT_LOST);
    is_judged(&w, 8,
              "rank 1 on host venus (pid 101) called MPI_Abort with code 8, which ends 2 ranks of its communicator");
    ends(&w, 1, 15, TB_ENDED_INITIALIZED | TB_ENDED_STOPPED);
    ends(&w, 3, 15, TB_ENDED_INITIALIZED | TB_ENDED_STOPPED);
    assert_int_equal(w.lost_count, 1);
    /* An error of a communicator whose errors abort it does the same, whoever was the first to notice. */
    gives_up_some(&w, 0, 16, TB_ABORT_FOLLOWS, 1u << 0 | 1u << 1);
    assert_int_equal(w.dropped, 1u << 0 | 1u << 1 | 1u << 3);
    ends(&w, 0, 15, TB_ENDED_INITIALIZED | TB_ENDED_STOPPED);
    assert_int_equal(w.verdict.code, 8);
    /* Nobody would be left. */
    gives_up_some(&w, 2, 9, TB_ABORT_CALLED, 1u << 2);
    assert_int_equal(w.dropped >> 2 & 1, 0);
    assert_int_equal(w.verdict.weight, TB_VERDICT_ABORT);
    is_judged(&w, 9, "rank 2 on host venus (pid 102) called MPI_Abort with code 9");
    tb_param.keep_going = false;
    world_close(&w);
}

static void those_who_end_well_are_not_lost(void **state)
{
    struct world w;
    world_open(&w);
    tb_param.keep_going = true;
    ends(&w, 0, 0, TB_ENDED_INITIALIZED | TB_ENDED_FINALIZED);
    ends(&w, 1, 0, 0); /* it was never part of MPI */
    assert_int_equal(w.verdict.weight, TB_VERDICT_NONE);
    ends(&w, 3, 5 << 8, TB_ENDED_INITIALIZED | TB_ENDED_FINALIZED);
    assert_int_equal(w.lost_count, 0);
    ends(&w, 2, 0, TB_ENDED_INITIALIZED); /* without MPI_Finalize */
    assert_int_equal(w.lost_count, 1);
    assert_int_equal(w.lost, 2);
    tb_param.keep_going = false;
    world_close(&w);
}

/* ---- worlds that are not connected ------------------------------------------------------------------------------- */

/* Two ranks more, of one world. Returns the first. */
static uint32_t grows(struct world *w)
{
    uint32_t first = tb_worlds_processes(&w->book);
    assert_int_equal(tb_worlds_add(&w->book, &(struct tb_rank_range){.first_rank = first, .count = 2}, 1), TB_OK);
    assert_int_equal(tb_rank_ends_grow(&w->ends, first, 2), TB_OK);
    return first;
}

static void bonds(struct world *w, uint32_t rank, uint32_t world, bool bonded)
{
    const struct tb_bond bond = {.bonded = bonded, .count = 1, .worlds = {world}};
    assert_int_equal(tb_rank_ends_bond(&w->ends, rank, &bond), TB_OK);
}

static void only_those_who_are_connected_end(void **state)
{
    struct world w;
    world_open(&w);
    uint32_t a = grows(&w), b = grows(&w), c = grows(&w);
    bonds(&w, 1, a, true);
    bonds(&w, a, 0, true);
    bonds(&w, b + 1, a + 1, true); /* a process of it will do */
    bonds(&w, c, 0, true);
    bonds(&w, 1, a, false);
    gives_up(&w, b, 3, TB_ABORT_CALLED, ""); /* b, a, 0 and c: all */
    is_judged(&w, 3, "called MPI_Abort");
    assert_int_equal(w.verdict.weight, TB_VERDICT_ABORT);
    assert_int_equal(w.parted, 0);
    world_close(&w);

    world_open(&w);
    a = grows(&w), b = grows(&w), c = grows(&w);
    bonds(&w, a, 0, true);
    bonds(&w, b + 1, a, true);
    bonds(&w, a, 0, false);
    ends(&w, b, SIGKILL, TB_ENDED_INITIALIZED);
    assert_int_equal(w.verdict.weight, TB_VERDICT_LOST);
    is_judged(&w, 137, "was ended by signal 9");
    assert_int_equal(w.parted, 1u << a | 1u << b);
    w.parted = 0;
    gives_up(&w, a, 58, TB_ABORT_CALLED, ""); /* which is being ended */
    ends(&w, a + 1, 1 << 8, TB_ENDED_INITIALIZED);
    is_judged(&w, 137, "was ended by signal 9");
    bonds(&w, c + 1, a, true); /* too late */
    assert_int_equal(w.parted, 1u << a | 1u << b | 1u << c);
    ends(&w, 3, SIGSEGV, TB_ENDED_INITIALIZED);
    is_judged(&w, 137, "was ended by signal 9"); /* some of those that are being ended have not ended yet */
    assert_true(w.parted & 1);
    world_close(&w);
}

static void what_was_freed_connects_until_it_is_over(void **state)
{
    struct world w;
    world_open(&w);
    uint32_t a = grows(&w);
    bonds(&w, 2, a, true); /* by a communicator that is freed, */
    bonds(&w, 2, a, true); /* and by another one */
    bonds(&w, 2, a, false);
    assert_int_equal(w.ends.bonds.count, 1);
    ends(&w, a, 0, TB_ENDED_INITIALIZED | TB_ENDED_FINALIZED);
    assert_int_equal(w.ends.bonds.count, 1);
    ends(&w, a + 1, 0, TB_ENDED_INITIALIZED | TB_ENDED_FINALIZED);
    assert_int_equal(w.ends.bonds.count, 0);
    bonds(&w, 1, a, true); /* heard of late */
    bonds(&w, 1, a, false);
    bonds(&w, 3, a, false);
    assert_int_equal(w.ends.bonds.count, 0);
    uint32_t b = grows(&w);
    bonds(&w, b, 0, true);
    ends(&w, b, 0, TB_ENDED_INITIALIZED | TB_ENDED_FINALIZED);
    assert_int_equal(w.ends.bonds.count, 0);
    const struct tb_bond unknown = {.bonded = true, .count = 1, .worlds = {b + 2}};
    assert_int_equal(tb_rank_ends_bond(&w.ends, 0, &unknown), TB_ERR_PROTOCOL);
    world_close(&w);
}

/* It is missed by those that it was connected with alone, and by each such group. */
static void who_leaves_is_missed_by_the_connected(void **state)
{
    struct world w;
    world_open(&w);
    uint32_t a = grows(&w), b = grows(&w);
    ends(&w, b, 0, TB_ENDED_INITIALIZED);
    ends(&w, b + 1, 0, TB_ENDED_INITIALIZED);
    virtual_loop_pass(&w.t, 3 * (uint64_t)SECOND);
    assert_int_equal(w.verdict.weight, TB_VERDICT_NONE); /* nobody of its own is left */
    ends(&w, a + 1, 0, TB_ENDED_INITIALIZED);
    leaves(&w, 2, SIGKILL);
    virtual_loop_pass(&w.t, 3 * (uint64_t)SECOND);
    is_judged(&w, 137, "rank 2");
    assert_int_equal(w.parted, 1u | 1u << a);
    world_close(&w);
}

/* Whatever comes from an agent: somebody is told something. */
static void no_failure_is_without_words(void **state)
{
    struct world w;
    world_open(&w);
    take_failed(&w, TB_VERDICT_CAUSE, 0, "");
    is_judged(&w, 1, "exit code 1, and nothing was said why");
    world_close(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_killed_rank_is_the_cause),
        cmocka_unit_test(a_cause_that_comes_late_weighs_more),
        cmocka_unit_test(without_a_cause_the_loss_is_told),
        cmocka_unit_test(the_diagnosis_is_told),
        cmocka_unit_test(the_program_is_not_kept_waiting),
        cmocka_unit_test(a_rank_that_leaves_is_the_cause),
        cmocka_unit_test(shells_tell_of_signals),
        cmocka_unit_test(a_program_below_is_the_cause),
        cmocka_unit_test(the_worst_that_leaves_is_told),
        cmocka_unit_test(scripts_may_end_or_go_on),
        cmocka_unit_test(no_failure_is_without_words),
        cmocka_unit_test(a_job_goes_on_without_the_dead),
        cmocka_unit_test(those_who_end_well_are_not_lost),
        cmocka_unit_test(a_group_is_ended),
        cmocka_unit_test(only_those_who_are_connected_end),
        cmocka_unit_test(what_was_freed_connects_until_it_is_over),
        cmocka_unit_test(who_leaves_is_missed_by_the_connected),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
