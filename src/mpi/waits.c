#include "mpi/waits.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "mpi/comm.h"
#include "mpi/request.h"
#include "mpi/win.h"

/* A text that is written bit by bit and cut off at its end. */
struct phrase {
    char *text;
    size_t at;
};

static void say(struct phrase *s, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void say(struct phrase *s, const char *format, ...)
{
    va_list rest;
    va_start(rest, format);
    int n = vsnprintf(s->text + s->at, TB_WAIT_TEXT - s->at, format, rest);
    va_end(rest);
    s->at += n > 0 ? (size_t)n : 0;
    s->at = s->at < TB_WAIT_TEXT ? s->at : TB_WAIT_TEXT - 1;
}

static void say_comm(struct phrase *s, const struct tb_comm *c)
{
    char window[MPI_MAX_OBJECT_NAME + 64];
    if (c != NULL && c->win != NULL)
        tb_win_print(c->win, window, sizeof window);
    if (c == NULL)
        say(s, "a communicator");
    else if (c->win != NULL)
        say(s, "%s", window);
    else if (c->predefined != NULL)
        say(s, "%s", tb_comm_name(c));
    else if (c->name[0] != 0)
        say(s, "\"%s\" (%u ranks)", c->name, c->peers);
    else
        say(s, "a communicator of %u ranks", c->peers);
}

static void say_message(struct phrase *s, const struct tb_wait *w)
{
    const char *side = w->kind == TB_WAIT_SEND ? "to" : "from";
    if (w->rank == TB_ANY_RANK)
        say(s, "%s any rank, ", side);
    else
        say(s, "%s rank %u, ", side, w->rank);
    if (w->library)
        say(s, "of the library itself, ");
    else if (w->mask == 0)
        say(s, "any tag, ");
    else
        say(s, "tag %llu, ", (unsigned long long)w->match);
    say_comm(s, w->owner);
    if (w->state == TB_WAIT_MOVING)
        say(s, ": its data is on its way");
    else if (w->kind == TB_WAIT_SEND)
        say(s, ": the receive has not been posted");
}

static void say_collective(struct phrase *s, const struct tb_wait *w)
{
    if (w->collective != NULL)
        say(s, "%s on ", w->collective);
    else
        say(s, "%s of the library itself on ", tb_operation_name(w->operation));
    say_comm(s, w->owner);
    if (w->rank == TB_ANY_RANK)
        return;
    if (w->state == TB_WAIT_UNCALLED)
        say(s, ": rank %u has not called it", w->rank);
    else if (w->state == TB_WAIT_NOTHING)
        say(s, ": nothing has come from rank %u", w->rank);
    else
        say(s, ": data of or for rank %u is on its way", w->rank);
}

static void say_window(struct phrase *s, const struct tb_wait *w)
{
    say_comm(s, w->owner);
    if (w->state == TB_WAIT_POST)
        say(s, ": rank %u has not called MPI_Win_post", w->rank);
    else if (w->state == TB_WAIT_COMPLETE)
        say(s, ": rank %u has not called MPI_Win_complete", w->rank);
    else if (w->state == TB_WAIT_LOCK && w->other != w->rank)
        say(s, ": the lock of rank %u, which rank %u has or waits for", w->other, w->rank);
    else if (w->state == TB_WAIT_LOCK)
        say(s, ": the lock of rank %u, which has not granted it", w->rank);
    else
        say(s, ": rank %u has not said that all accesses have come", w->rank);
    if (w->more > 0)
        say(s, "; and %u more", w->more);
}

/* Calls whose name says what they do with a message. */
static bool says_itself(const char *call)
{
    static const char *const names[] = {"MPI_Send",  "MPI_Ssend", "MPI_Rsend", "MPI_Recv",
                                        "MPI_Mrecv", "MPI_Probe", "MPI_Mprobe"};
    for (size_t i = 0; call != NULL && i < sizeof names / sizeof names[0]; i++)
        if (strcmp(call, names[i]) == 0)
            return true;
    return false;
}

static void say_work(struct phrase *s, const struct tb_wait *w, bool named)
{
    static const char *const words[] = {
        [TB_WAIT_SEND] = "send ", [TB_WAIT_RECEIVE] = "receive ", [TB_WAIT_PROBE] = "message "};
    if (w->kind == TB_WAIT_COLLECTIVE) {
        say_collective(s, w);
    } else if (w->kind == TB_WAIT_WINDOW) {
        say_window(s, w);
    } else if (w->kind != TB_WAIT_CONDITION) {
        say(s, "%s", named ? "" : words[w->kind]);
        say_message(s, w);
    }
}

/* All that a call waits for: how many are left, and the first of them. */
static void say_set(struct phrase *s, const struct tb_request_set *set)
{
    const struct tb_pending *first;
    int left = tb_request_set_left(set, &first);
    say(s, "%d of %d requests left", left, set->count);
    const struct tb_request *request = first != NULL ? tb_pending_awaited(first) : NULL;
    if (request == NULL)
        return;
    struct tb_wait w = {.rank = TB_ANY_RANK};
    tb_request_describe(request, &w);
    say(s, "; %s", left > 1 ? "the first: " : "");
    say_work(s, &w, false);
}

/* A blocking collective is the call; whatever else is waited for is named behind it. */
static void say_wait(struct phrase *s, const struct tb_wait *w)
{
    const struct tb_request_set *set = w->set;
    if (w->kind == TB_WAIT_CONDITION && (w->ready == tb_request_set_any || w->ready == tb_request_set_all))
        set = w->context;
    bool named = set == NULL && says_itself(w->call), alone = w->kind == TB_WAIT_CONDITION && set == NULL;
    if (w->call != NULL)
        say(s, "%s%s", w->call, alone ? "" : w->kind == TB_WAIT_WINDOW ? " on " : named ? " " : ": ");
    if (set != NULL)
        say_set(s, set);
    else
        say_work(s, w, named);
}

struct answer {
    struct tb_job_wait waits[TB_WAITS_LIMIT];
    uint32_t count;
};

static void add_wait(void *context, const struct tb_wait *w)
{
    struct answer *a = context;
    if (a->count == TB_WAITS_LIMIT)
        return;
    struct tb_job_wait *to = &a->waits[a->count++];
    struct phrase s = {.text = to->text};
    to->time = w->time;
    to->text[0] = 0;
    say_wait(&s, w);
}

void tb_waits_tell(uint32_t number)
{
    static struct answer a; /* touched with the engine locked */
    a.count = 0;
    tb_engine_waits(tb_self.engine, add_wait, &a);
    tb_job_tell_waits(&tb_self.job, number, a.waits, a.count);
}
