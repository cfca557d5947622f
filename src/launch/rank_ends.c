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
    tb_rank_ends_close(ends);
    ends->book = book;
    ends->stopped = false;
    ends->noticed_weight = TB_VERDICT_NONE;
    ends->lives = calloc(book->ranks, sizeof *ends->lives);
    ends->room = book->ranks;
    return ends->lives != NULL ? TB_OK : tb_error(TB_ERR_MEMORY, "no memory for %u ranks", book->ranks);
}

void tb_rank_ends_close(struct tb_rank_ends *ends)
{
    free(ends->lives);
    free(ends->failed);
    free(ends->doubtful);
    tb_bonds_close(&ends->bonds);
    ends->lives = NULL;
    ends->failed = NULL;
    ends->doubtful = NULL;
    ends->failed_count = ends->doubtful_count = ends->room = 0;
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
    return TB_OK;
}

static const char *host_of(const struct tb_rank_ends *ends, uint32_t rank)
{
    return ends->book->hosts[tb_address_book_host_of(ends->book, rank)].name;
}

/* ---- who is concerned -------------------------------------------------------------------------------------------- */

static bool has_world(const uint32_t *worlds, uint32_t count, uint32_t world)
{
    for (uint32_t i = 0; i < count; i++)
        if (worlds[i] == world)
            return true;
    return false;
}

static bool has_failed_world(const struct tb_rank_ends *ends, uint32_t rank)
{
    uint32_t end;
    return has_world(ends->failed, ends->failed_count, tb_worlds_of(ends->book, rank, &end));
}

/* Whether one of these worlds has a rank that runs; or, of all the others, one that has not ended. */
static bool any_lives(const struct tb_rank_ends *ends, const uint32_t *worlds, uint32_t count, bool inside)
{
    for (uint32_t i = 0, end; i < ends->room; i = end) {
        bool in = has_world(worlds, count, tb_worlds_of(ends->book, i, &end));
        for (uint32_t rank = i; in == inside && rank < end && rank < ends->room; rank++)
            if (ends->lives[rank] == TB_RANK_RUNS || (!inside && ends->lives[rank] != TB_RANK_ENDED))
                return true;
    }
    return false;
}

/* Whether others run that are connected with a rank. */
static bool is_missed(const struct tb_rank_ends *ends, uint32_t rank)
{
    uint32_t *worlds, count = tb_bonds_connected(&ends->bonds, ends->book, rank, &worlds);
    bool missed = count == 0 || any_lives(ends, worlds, count, true);
    free(worlds);
    return missed;
}

static bool note_failed(struct tb_rank_ends *ends, const uint32_t *worlds, uint32_t count)
{
    uint32_t *grown = reallocarray(ends->failed, ends->failed_count + count, sizeof *grown);
    if (grown == NULL)
        return false;
    ends->failed = grown;
    for (uint32_t i = 0; i < count; i++)
        if (!has_world(grown, ends->failed_count, worlds[i]))
            grown[ends->failed_count++] = worlds[i];
    return true;
}

/* Ends the worlds that are connected with that of the rank, if others run; else, or without memory to find out, false.
 */
static bool part(struct tb_rank_ends *ends, uint32_t rank, int code, const char *text)
{
    uint32_t *worlds, count = tb_bonds_connected(&ends->bonds, ends->book, rank, &worlds);
    bool parted = count > 0 && any_lives(ends, worlds, count, false) && note_failed(ends, worlds, count);
    if (parted) {
        ends->events.failed(ends->events.context, TB_VERDICT_LOST, code, text);
        ends->events.parted(ends->events.context, worlds, count, text);
    }
    free(worlds);
    return parted;
}

static void fail(struct tb_rank_ends *ends, uint32_t rank, enum tb_verdict_weight weight, int code, const char *format,
                 ...) __attribute__((format(printf, 5, 6), cold));

/* What happens to worlds that are being ended is no news, unless all are. */
static void fail(struct tb_rank_ends *ends, uint32_t rank, enum tb_verdict_weight weight, int code, const char *format,
                 ...)
{
    char text[4096];
    va_list rest;
    va_start(rest, format);
    vsnprintf(text, sizeof text, format, rest);
    va_end(rest);
    bool ends_others = weight > TB_VERDICT_LOST && !ends->stopped;
    if (ends_others && (has_failed_world(ends, rank) || part(ends, rank, code, text)))
        return;
    ends->events.failed(ends->events.context, weight, code, text);
}

static void lose(struct tb_rank_ends *ends, uint32_t rank, enum tb_verdict_weight weight, int code, const char *format,
                 ...) __attribute__((format(printf, 5, 6), cold));

/* A rank has died, which ends the others, unless they are to go on. */
static void lose(struct tb_rank_ends *ends, uint32_t rank, enum tb_verdict_weight weight, int code, const char *format,
                 ...)
{
    char text[4096];
    va_list rest;
    va_start(rest, format);
    vsnprintf(text, sizeof text, format, rest);
    va_end(rest);
    if (!tb_param.keep_going || ends->stopped) {
        fail(ends, rank, weight, code, "%s", text);
        return;
    }
    ends->events.failed(ends->events.context, TB_VERDICT_LOST, code, text);
    ends->events.lost(ends->events.context, rank, text);
}

/* Nobody of it is left, so nobody is connected with it. */
static bool is_over(const struct tb_rank_ends *ends, uint32_t first, uint32_t end)
{
    for (uint32_t rank = first; rank < end && rank < ends->room; rank++)
        if (ends->lives[rank] != TB_RANK_ENDED)
            return false;
    return true;
}

/* Of worlds that have failed meanwhile the rank could not know. */
int tb_rank_ends_bond(struct tb_rank_ends *ends, uint32_t rank, const struct tb_bond *bond)
{
    int rc = TB_OK;
    bool late = false;
    for (uint32_t i = 0, end; i < bond->count && rc == TB_OK; i++) {
        if (!tb_address_book_knows(ends->book, bond->worlds[i]))
            return tb_error(TB_ERR_PROTOCOL, "there is no process %u to be connected with", bond->worlds[i]);
        uint32_t world = tb_worlds_of(ends->book, bond->worlds[i], &end);
        late = late || (bond->bonded && has_world(ends->failed, ends->failed_count, world));
        if (!is_over(ends, world, end))
            rc = tb_bonds_change(&ends->bonds, rank, world, bond->bonded ? 1 : -1);
    }
    if (late && !ends->stopped && !has_failed_world(ends, rank))
        fail(ends, rank, TB_VERDICT_ABORT, 1,
             "rank %u on host %s has got connected with processes that were being ended", rank, host_of(ends, rank));
    return rc;
}

/* ---- how they end ------------------------------------------------------------------------------------------------ */

static void judge_signal(struct tb_rank_ends *ends, const struct tb_ended *ended)
{
    int number = WTERMSIG(ended->status);
    char text[160];
    tb_signal_name(number, text, sizeof text);
    lose(ends, ended->rank, TB_VERDICT_CAUSE, 128 + number, "rank %u on host %s (pid %u) was ended by %s%s%s",
         ended->rank, host_of(ends, ended->rank), ended->pid, text, WCOREDUMP(ended->status) ? ", core dumped" : "",
         number == SIGKILL ? "; if nobody killed it, the host may have run out of memory" : "");
}

/* The others may end likewise. */
static void doubt(struct tb_rank_ends *ends, const struct tb_ended *ended)
{
    struct tb_ended *grown = reallocarray(ends->doubtful, ends->doubtful_count + 1u, sizeof *grown);
    if (grown == NULL)
        return;
    ends->doubtful = grown;
    grown[ends->doubtful_count++] = *ended;
    if (!ends->stopped && !tb_timer_is_set(&ends->timer))
        tb_timer_set(ends->loop, &ends->timer, UNFINALIZED_PATIENCE_NS);
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
            fail(ends, ended->rank, TB_VERDICT_LATE, code, "rank %u on host %s (pid %u) ended with exit code %d%s",
                 ended->rank, host_of(ends, ended->rank), ended->pid, code, shell);
        else
            lose(ends, ended->rank, TB_VERDICT_ABORT, code, "rank %u on host %s (pid %u) ended with exit code %d%s",
                 ended->rank, host_of(ends, ended->rank), ended->pid, code, shell);
    } else if (tb_param.keep_going && (ended->flags & TB_ENDED_INITIALIZED) && !finalized) {
        lose(ends, ended->rank, TB_VERDICT_ABORT, 1, "rank %u on host %s (pid %u) ended without calling MPI_Finalize",
             ended->rank, host_of(ends, ended->rank), ended->pid);
    } else if ((ended->flags & TB_ENDED_INITIALIZED) && !finalized) {
        if (ends->unfinalized_count++ == 0)
            ends->unfinalized = *ended;
        doubt(ends, ended);
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
    if (tb_param.keep_going)
        tell_left(ends, ended);
    else
        doubt(ends, ended);
}

/* What was known of a rank that has ended, and of its world, if that was the last one. */
static void forget(struct tb_rank_ends *ends, uint32_t rank)
{
    uint32_t end, first = tb_worlds_of(ends->book, rank, &end);
    tb_bonds_forget_rank(&ends->bonds, rank);
    if (is_over(ends, first, end))
        tb_bonds_forget_world(&ends->bonds, first);
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
    ends->lives[ended->rank] = TB_RANK_ENDED;
    judge(ends, ended);
    forget(ends, ended->rank);
    return true;
}

/* Of those whom others miss, one of which is known that it has failed explains most, and one that has left least. */
static int weight_of(const struct tb_ended *ended)
{
    bool left = ended->flags & TB_ENDED_BELOW;
    return left && has_failed(ended) ? 2 : left ? 0 : 1;
}

static void tell_doubtful(struct tb_rank_ends *ends, const struct tb_ended *ended)
{
    if (ends->stopped || has_failed_world(ends, ended->rank) || !is_missed(ends, ended->rank))
        return;
    if (ended->flags & TB_ENDED_BELOW)
        tell_left(ends, ended);
    else
        fail(ends, ended->rank, TB_VERDICT_ABORT, 1,
             "rank %u on host %s (pid %u) ended without calling MPI_Finalize while other ranks were still running",
             ended->rank, host_of(ends, ended->rank), ended->pid);
}

static void unfinalized_overdue(struct tb_timer *timer)
{
    struct tb_rank_ends *ends = TB_CONTAINER(timer, struct tb_rank_ends, timer);
    for (int weight = 2; weight >= 0; weight--)
        for (uint32_t i = 0; i < ends->doubtful_count; i++)
            if (weight_of(&ends->doubtful[i]) == weight)
                tell_doubtful(ends, &ends->doubtful[i]);
    ends->doubtful_count = 0;
}

/* ---- ranks that give up ------------------------------------------------------------------------------------------ */

/* No cause has come. */
static void cause_overdue(struct tb_timer *timer)
{
    struct tb_rank_ends *ends = TB_CONTAINER(timer, struct tb_rank_ends, cause_timer);
    enum tb_verdict_weight weight = ends->noticed_weight;
    ends->noticed_weight = TB_VERDICT_NONE;
    unfinalized_overdue(&ends->timer);
    if (!ends->stopped)
        fail(ends, ends->noticed_rank, weight, ends->noticed_code, "%s", ends->noticed);
}

/* Of those that have only noticed something, one that has lost its peer is nearer to the cause. */
static void wait_for_cause(struct tb_rank_ends *ends, uint32_t rank, enum tb_verdict_weight weight, int code,
                           const char *text)
{
    if (ends->noticed_weight == TB_VERDICT_NONE)
        tb_timer_set(ends->loop, &ends->cause_timer, CAUSE_PATIENCE_NS);
    if (weight <= ends->noticed_weight)
        return;
    ends->noticed_weight = weight;
    ends->noticed_rank = rank;
    ends->noticed_code = code;
    snprintf(ends->noticed, sizeof ends->noticed, "%s", text);
}

/* Ends the group alone, if others are left, and go on without it. */
static bool drop_group(struct tb_rank_ends *ends, const struct tb_agent_abort *abort, int code, const char *text)
{
    uint32_t inside = 0, outside = 0;
    for (uint32_t rank = 0; rank < ends->room; rank++)
        if (ends->lives[rank] != TB_RANK_ENDED)
            *(tb_abort_group_has(&abort->group, rank) ? &inside : &outside) += 1;
    if (!tb_param.keep_going || ends->stopped || inside == 0 || outside == 0)
        return false;
    char story[4200];
    snprintf(story, sizeof story, "%s, which ends %u rank%s of its communicator", text, inside, tb_plural(inside));
    ends->events.failed(ends->events.context, TB_VERDICT_LOST, code, story);
    ends->events.lost(ends->events.context, abort->rank, story);
    for (uint32_t rank = 0; rank < ends->room; rank++)
        if (ends->lives[rank] != TB_RANK_ENDED && tb_abort_group_has(&abort->group, rank))
            ends->events.dropped(ends->events.context, rank, story);
    return true;
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
    if (drop_group(ends, abort, code, text))
        return;
    if (!ends->stopped && (abort->reason == TB_ABORT_LOST || abort->reason == TB_ABORT_FOLLOWS))
        wait_for_cause(ends, abort->rank, weight, code, text);
    else
        fail(ends, abort->rank, weight, code, "%s", text);
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
