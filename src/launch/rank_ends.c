#include "launch/rank_ends.h"

#include "launch/signal_name.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>

#define UNFINALIZED_PATIENCE_NS 2000000000u
#define CAUSE_PATIENCE_NS       2000000000u /* an agent's death needs up to a second to be told */

static void unfinalized_overdue(struct tb_timer *timer);
static void cause_overdue(struct tb_timer *timer);

void tb_rank_ends_init(struct tb_rank_ends *ends, struct tb_loop *loop, const struct tb_rank_ends_events *events)
{
    *ends = (struct tb_rank_ends){.loop = loop, .events = *events};
    tb_timer_init(&ends->timer, unfinalized_overdue);
    tb_timer_init(&ends->cause_timer, cause_overdue);
}

int tb_rank_ends_begin(struct tb_rank_ends *ends, const struct tb_address_book *book)
{
    free(ends->lives);
    ends->book = book;
    ends->stopped = false;
    ends->noticed_weight = TB_VERDICT_NONE;
    ends->lives = calloc(book->ranks, sizeof *ends->lives);
    ends->room = ends->total = book->ranks;
    return ends->lives != NULL ? TB_OK : tb_error(TB_ERR_MEMORY, "no memory for %u ranks", book->ranks);
}

int tb_rank_ends_grow(struct tb_rank_ends *ends, uint32_t first, uint32_t count)
{
    uint32_t room = first + count > ends->room ? first + count : ends->room;
    enum tb_rank_life *lives = reallocarray(ends->lives, room, sizeof *lives);
    if (lives == NULL)
        return tb_error(TB_ERR_MEMORY, "no memory for %u ranks", room);
    for (uint32_t i = ends->room; i < room; i++)
        lives[i] = TB_RANK_ENDED;
    for (uint32_t i = first; i < first + count; i++)
        lives[i] = TB_RANK_RUNS;
    ends->lives = lives;
    ends->room = room;
    ends->total += count;
    return TB_OK;
}

static const char *host_of(const struct tb_rank_ends *ends, uint32_t rank)
{
    return ends->book->hosts[tb_address_book_host_of(ends->book, rank)].name;
}

static void fail(struct tb_rank_ends *ends, enum tb_verdict_weight weight, int code, const char *format, ...)
    __attribute__((format(printf, 4, 5), cold));

static void fail(struct tb_rank_ends *ends, enum tb_verdict_weight weight, int code, const char *format, ...)
{
    char text[4096];
    va_list rest;
    va_start(rest, format);
    vsnprintf(text, sizeof text, format, rest);
    va_end(rest);
    ends->events.failed(ends->events.context, weight, code, text);
}

static void lose(struct tb_rank_ends *ends, uint32_t rank, enum tb_verdict_weight weight, int code, const char *format,
                 ...) __attribute__((format(printf, 5, 6), cold));

/* A rank has died, which ends the job, unless it is to go on. */
static void lose(struct tb_rank_ends *ends, uint32_t rank, enum tb_verdict_weight weight, int code, const char *format,
                 ...)
{
    char text[4096];
    va_list rest;
    va_start(rest, format);
    vsnprintf(text, sizeof text, format, rest);
    va_end(rest);
    bool goes_on = tb_param.keep_going && !ends->stopped;
    ends->events.failed(ends->events.context, goes_on ? TB_VERDICT_LOST : weight, code, text);
    if (goes_on)
        ends->events.lost(ends->events.context, rank, text);
}

static void judge_signal(struct tb_rank_ends *ends, const struct tb_ended *ended)
{
    int number = WTERMSIG(ended->status);
    char text[160];
    tb_signal_name(number, text, sizeof text);
    lose(ends, ended->rank, TB_VERDICT_CAUSE, 128 + number, "rank %u on host %s (pid %u) was ended by %s%s%s",
         ended->rank, host_of(ends, ended->rank), ended->pid, text, WCOREDUMP(ended->status) ? ", core dumped" : "",
         number == SIGKILL ? "; if nobody killed it, the host may have run out of memory" : "");
}

static void judge(struct tb_rank_ends *ends, const struct tb_ended *ended)
{
    bool finalized = ended->flags & TB_ENDED_FINALIZED;
    if (ended->flags & TB_ENDED_STOPPED)
        return; /* by us */
    if (WIFSIGNALED(ended->status)) {
        judge_signal(ends, ended);
        return;
    }
    int code = WEXITSTATUS(ended->status);
    if (code != 0) { /* after MPI_Finalize it harms nobody else, so the others may go on */
        char shell[160] = "", name[128];
        if (code > 128 && code <= 128 + 31) {
            tb_signal_name(code - 128, name, sizeof name);
            snprintf(shell, sizeof shell, ", as shells say of %s", name);
        }
        if (finalized)
            fail(ends, TB_VERDICT_LATE, code, "rank %u on host %s (pid %u) ended with exit code %d%s", ended->rank,
                 host_of(ends, ended->rank), ended->pid, code, shell);
        else
            lose(ends, ended->rank, TB_VERDICT_ABORT, code, "rank %u on host %s (pid %u) ended with exit code %d%s",
                 ended->rank, host_of(ends, ended->rank), ended->pid, code, shell);
    } else if (tb_param.keep_going && (ended->flags & TB_ENDED_INITIALIZED) && !finalized) {
        lose(ends, ended->rank, TB_VERDICT_ABORT, 1, "rank %u on host %s (pid %u) ended without calling MPI_Finalize",
             ended->rank, host_of(ends, ended->rank), ended->pid);
    } else if ((ended->flags & TB_ENDED_INITIALIZED) && !finalized && ends->unfinalized_count++ == 0) {
        ends->unfinalized = *ended;
        if (!tb_timer_is_set(&ends->timer))
            tb_timer_set(ends->loop, &ends->timer, UNFINALIZED_PATIENCE_NS);
    }
}

static bool has_failed(const struct tb_ended *left)
{
    return left->status > 0; /* neither not known nor well */
}

static void tell_left(struct tb_rank_ends *ends, const struct tb_ended *left)
{
    enum tb_verdict_weight weight = TB_VERDICT_ABORT;
    char how[256] = "how, only the process above it knows", name[160];
    int code = 1;
    if (left->status >= 0 && WIFSIGNALED(left->status)) {
        weight = TB_VERDICT_CAUSE;
        code = 128 + WTERMSIG(left->status);
        tb_signal_name(WTERMSIG(left->status), name, sizeof name);
        snprintf(how, sizeof how, "by %s%s", name, WCOREDUMP(left->status) ? ", core dumped" : "");
    } else if (left->status >= 0) {
        code = WEXITSTATUS(left->status);
        snprintf(how, sizeof how, "with exit code %d", code);
    }
    lose(ends, left->rank, weight, code,
         "rank %u on host %s: its MPI program (pid %u) has ended without calling MPI_Finalize while other ranks were "
         "still running, below a process that goes on: %s",
         left->rank, host_of(ends, left->rank), left->pid, how);
}

/* Its shell or script may end for that, and then says how; or go on for hours. */
static void leave(struct tb_rank_ends *ends, const struct tb_ended *ended)
{
    if (ends->lives[ended->rank] != TB_RANK_RUNS)
        return;
    ends->lives[ended->rank] = TB_RANK_LEFT;
    ends->over_count++;
    if (tb_param.keep_going) {
        tell_left(ends, ended);
        return;
    }
    if (ends->left_count++ == 0 || (has_failed(ended) && !has_failed(&ends->left)))
        ends->left = *ended;
    if (!ends->stopped && !tb_timer_is_set(&ends->timer))
        tb_timer_set(ends->loop, &ends->timer, UNFINALIZED_PATIENCE_NS);
}

bool tb_rank_ends_add(struct tb_rank_ends *ends, const struct tb_ended *ended)
{
    if (ended->rank >= ends->room || ends->lives[ended->rank] == TB_RANK_ENDED)
        return false;
    if (ended->flags & TB_ENDED_DUMPING) {
        /* How it has ended is known, and weighs more, when the core file is complete. */
        lose(ends, ended->rank, TB_VERDICT_OPEN, 128 + SIGABRT,
             "rank %u on host %s (pid %u) has crashed, and its core file was not complete after %.0f s", ended->rank,
             host_of(ends, ended->rank), ended->pid, (double)TB_DUMP_PATIENCE_NS / 1e9);
        return false;
    }
    if (ended->flags & TB_ENDED_BELOW) {
        leave(ends, ended);
        return false;
    }
    ends->over_count += ends->lives[ended->rank] == TB_RANK_RUNS;
    ends->lives[ended->rank] = TB_RANK_ENDED;
    judge(ends, ended);
    return true;
}

static void unfinalized_overdue(struct tb_timer *timer)
{
    struct tb_rank_ends *ends = TB_CONTAINER(timer, struct tb_rank_ends, timer);
    const struct tb_ended *ended = &ends->unfinalized;
    if (ends->over_count >= ends->total)
        return;
    if (ends->left_count > 0 && (ends->unfinalized_count == 0 || has_failed(&ends->left)))
        tell_left(ends, &ends->left);
    else
        fail(ends, TB_VERDICT_ABORT, 1,
             "rank %u on host %s (pid %u) ended without calling MPI_Finalize while other ranks were still running",
             ended->rank, host_of(ends, ended->rank), ended->pid);
}

/* ---- ranks that give up ------------------------------------------------------------------------------------------ */

/* No cause has come. */
static void cause_overdue(struct tb_timer *timer)
{
    struct tb_rank_ends *ends = TB_CONTAINER(timer, struct tb_rank_ends, cause_timer);
    if (ends->unfinalized_count + ends->left_count > 0)
        unfinalized_overdue(&ends->timer);
    else
        fail(ends, ends->noticed_weight, ends->noticed_code, "%s", ends->noticed);
}

/* Of those that have only noticed something, one that has lost its peer is nearer to the cause. */
static void wait_for_cause(struct tb_rank_ends *ends, enum tb_verdict_weight weight, int code, const char *text)
{
    if (ends->noticed_weight == TB_VERDICT_NONE)
        tb_timer_set(ends->loop, &ends->cause_timer, CAUSE_PATIENCE_NS);
    if (weight <= ends->noticed_weight)
        return;
    ends->noticed_weight = weight;
    ends->noticed_code = code;
    snprintf(ends->noticed, sizeof ends->noticed, "%s", text);
}

void tb_rank_ends_abort(struct tb_rank_ends *ends, const struct tb_agent_abort *abort)
{
    int code = (abort->code & 255) != 0 ? (int)(abort->code & 255) : 1;
    enum tb_verdict_weight weight = abort->reason == TB_ABORT_FOLLOWS ? TB_VERDICT_FOLLOW : TB_VERDICT_ABORT;
    char text[4096];
    if (abort->rank >= ends->room)
        return;
    if (abort->length > 0)
        snprintf(text, sizeof text, "rank %u on host %s (pid %u): %.*s", abort->rank, host_of(ends, abort->rank),
                 abort->pid, (int)abort->length, abort->text);
    else
        snprintf(text, sizeof text, "rank %u on host %s (pid %u) called MPI_Abort with code %d", abort->rank,
                 host_of(ends, abort->rank), abort->pid, (int32_t)abort->code);
    if (!ends->stopped && (abort->reason == TB_ABORT_LOST || abort->reason == TB_ABORT_FOLLOWS))
        wait_for_cause(ends, weight, code, text);
    else
        fail(ends, weight, code, "%s", text);
}

void tb_rank_ends_warn(const struct tb_rank_ends *ends, void (*say)(void *context, const char *text), void *context)
{
    uint32_t count = ends->unfinalized_count;
    char text[512];
    if (count == 0)
        return;
    snprintf(text, sizeof text,
             "warning: %u rank%s ended without calling MPI_Finalize, the first was rank %u on host %s", count,
             count > 1 ? "s" : "", ends->unfinalized.rank, host_of(ends, ends->unfinalized.rank));
    say(context, text);
}

void tb_rank_ends_stop(struct tb_rank_ends *ends)
{
    ends->stopped = true;
    tb_timer_clear(&ends->timer);
    tb_timer_clear(&ends->cause_timer);
}
