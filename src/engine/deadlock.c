#include "engine/deadlock.h"

#include "engine/engine_state.h"

#include <stdio.h>
#include <stdlib.h>

#define ASK_FIRST UINT64_C(300000000) /* ns: when somebody who waits asks, */
#define ASK_AGAIN UINT64_C(500000000) /* how often again, at first, */
#define ASK_LATER UINT64_C(2000000000)
#define ASK_OFTEN 8u  /* and after so many times */
#define ASK_MANY  16u /* that are asked at a time */
#define HOPS      16u /* processes on a way that is followed */

/* What is said to a question. */
enum answer {
    ANSWER_NOTHING, /* it has been done, or may yet be */
    ANSWER_NEVER,   /* it has not been done, and never will: the process has ended its part of MPI */
    ANSWER_WAITS,   /* it has not been done: the process waits, as the frame says */
    ANSWER_REFER    /* it is another process that has to do it, and is to be asked */
};

struct tb_question {
    struct tb_list in_all;
    struct tb_window_rank *rank; /* which this process waits for */
    uint64_t number;
    const void *wait; /* in which it asks, as long as that began then */
    uint64_t since;
    uint32_t proc;     /* who is asked now */
    uint32_t hops;     /* entries of `way` beyond the first */
    uint32_t referred; /* how often the last of them was passed on to another process */
    struct tb_demand way[HOPS];
};

static void question_free(struct tb_question *q)
{
    tb_list_remove(&q->in_all);
    q->rank->question = NULL;
    free(q);
}

void tb_deadlock_forget(struct tb_window_rank *r)
{
    if (r->question != NULL)
        question_free(r->question);
}

/* ---- who waits here ---------------------------------------------------------------------------------------------- */

/* A thread of this process that waits. */
struct standing {
    const void *wait;
    const struct tb_request *request; /* or a waiter with a condition */
    const struct tb_waiter *waiter;
    uint64_t since; /* 0: it has only just begun */
};

/* The nth of them; false: there are no more. Those that wait for one of several things count for nothing. */
static bool standing_find(const struct tb_engine *e, uint32_t nth, struct standing *s)
{
    const struct tb_only_wait *only = e->waiting.only;
    const struct tb_waiter *w;
    if (only != NULL && only->set == NULL && !tb_request_done(only->request) && nth-- == 0) {
        *s = (struct standing){.wait = only, .request = only->request, .since = only->since};
        return true;
    }
    TB_LIST_EACH (w, &e->waiting.waiters, const struct tb_waiter, on_engine) {
        if (w->satisfied || w->set != NULL || (w->request != NULL && tb_request_done(w->request)) || nth-- != 0)
            continue;
        *s = (struct standing){.wait = w, .request = w->request, .waiter = w, .since = w->since};
        return true;
    }
    return false;
}

/* The nth thing that it waits for, of which it needs each. False: there are no more that somebody can be asked for. */
static bool standing_demands(const struct standing *s, uint32_t nth, struct tb_demand *d, struct tb_window **window)
{
    struct tb_wait wait = {.rank = TB_ANY_RANK};
    if (s->request == NULL)
        return tb_window_awaits(s->waiter->ready, s->waiter->context, nth, d, window);
    if (nth > 0)
        return false;
    tb_request_describe(s->request, &wait);
    if (wait.kind != TB_WAIT_COLLECTIVE || !wait.counted || wait.rank == TB_ANY_RANK || wait.state == TB_WAIT_MOVING)
        return false;
    const struct tb_channel *c = s->request->channel;
    *window = c->window;
    *d = (struct tb_demand){.what = TB_DEMANDED_ENTER,
                            .operation = wait.operation,
                            .context = c->collective->id,
                            .number = wait.number,
                            .rank = wait.rank,
                            .proc = tb_channel_proc(c, wait.rank)};
    return true;
}

static uint32_t standing_count(const struct standing *s)
{
    struct tb_demand d;
    struct tb_window *window;
    uint32_t n = 0;
    while (n < UINT32_MAX && standing_demands(s, n, &d, &window))
        n++;
    return n;
}

/* ---- frames ------------------------------------------------------------------------------------------------------ */

#define EXCLUSIVE (UINT64_C(1) << 40)

static void demand_write(const struct tb_demand *d, struct tb_message *m)
{
    m->context = d->context;
    m->length = d->number | (uint64_t)d->what << 32 | (d->exclusive ? EXCLUSIVE : 0) | (uint64_t)d->operation << 48;
}

static bool demand_read(const struct tb_message *m, struct tb_demand *d)
{
    *d = (struct tb_demand){.what = (uint8_t)(m->length >> 32),
                            .exclusive = (m->length & EXCLUSIVE) != 0,
                            .operation = (uint8_t)(m->length >> 48),
                            .context = m->context,
                            .number = (uint32_t)m->length};
    return d->what >= TB_DEMANDED_POST && d->what <= TB_DEMANDED_ENTER;
}

static void frame_send(struct tb_peer *p, const struct tb_message *m)
{
    if (p->self)
        tb_frame_kinds[m->kind].handle(p, m, NULL, 0);
    else if (m->kind == TB_KIND_ASK)
        tb_peer_ask(p, m);
    else
        tb_peer_answer(p, m);
}

/* ---- answering --------------------------------------------------------------------------------------------------- */

/* The channel that a demand is about; NULL: it is not known here, or not any more. */
static struct tb_channel *demand_channel(struct tb_engine *e, const struct tb_demand *d, struct tb_window **window)
{
    *window = NULL;
    if (d->what == TB_DEMANDED_ENTER) {
        const struct tb_context *c = tb_contexts_find(&e->contexts, d->context);
        return c != NULL && c->channel != NULL && c->channel->collective == c ? c->channel : NULL;
    }
    struct tb_window *w = tb_windows_find(&e->windows, d->context);
    *window = w;
    return w != NULL && d->number < w->channel->size ? w->channel : NULL;
}

/* Whether this process may have done it, as far as it knows: what it has done, it knows. */
static bool is_done(const struct tb_channel *channel, const struct tb_window *window, const struct tb_demand *d)
{
    if (d->what == TB_DEMANDED_ENTER)
        return (int32_t)(channel->collectives - d->number) > 0;
    const struct tb_window_rank *r = &window->ranks[d->number];
    if (d->what == TB_DEMANDED_POST)
        return r->exposed;
    if (d->what == TB_DEMANDED_COMPLETE)
        return r->posts == 0 && !r->started;
    return r->locked == TB_LOCK_NONE || (!d->exclusive && r->locked != TB_LOCK_EXCLUSIVE);
}

/* Who may have the lock of this process's memory; TB_ANY_RANK: nobody else has. Of those who use it in memory one after
 * the other is named. */
static uint32_t find_holder(const struct tb_window *w, uint64_t round)
{
    uint32_t own = w->channel->rank, count = 0;
    for (uint32_t rank = 0; rank < w->channel->size; rank++)
        if (w->ranks[rank].seat.holds != TB_LOCK_NONE)
            return rank;
    for (uint32_t rank = 0; rank < w->channel->size; rank++)
        count += rank != own && tb_window_uses(w, own, rank);
    uint64_t nth = count > 0 ? round % count : 0;
    for (uint32_t rank = 0; rank < w->channel->size && count > 0; rank++)
        if (rank != own && tb_window_uses(w, own, rank) && nth-- == 0)
            return rank;
    return TB_ANY_RANK;
}

/* Nobody leaves such a collective before all have come to it. */
static bool synchronises(uint8_t operation)
{
    return operation == TB_OPERATION_BARRIER || operation == TB_OPERATION_WIN_FENCE ||
           operation == TB_OPERATION_WIN_FREE;
}

/* Who is in it waits for all members, this process among them. (In that of two groups each waits for the other one.) */
static bool needs_all(const struct tb_engine *e, const struct tb_channel *channel, const struct tb_demand *d)
{
    return d->what == TB_DEMANDED_ENTER && synchronises(d->operation) && channel->rank < channel->size &&
           tb_channel_proc(channel, channel->rank) == e->config.transport.self.index;
}

/* What a process with one thread in MPI waits for. */
static bool find_wait(const struct tb_engine *e, uint64_t round, struct tb_demand *d)
{
    struct standing s;
    struct tb_window *window;
    uint32_t count = !e->threaded && standing_find(e, 0, &s) && s.since != 0 ? standing_count(&s) : 0;
    return count > 0 && standing_demands(&s, (uint32_t)(round % count), d, &window);
}

static bool is_member(const struct tb_channel *channel, uint32_t proc)
{
    for (uint32_t rank = 0; rank < channel->size; rank++)
        if (tb_channel_proc(channel, rank) == proc)
            return true;
    return false;
}

/* It is in the collective itself, and waits there for another one, which may be who has not come. */
static bool waits_within(const struct tb_engine *e, const struct tb_channel *channel, const struct tb_demand *d,
                         struct tb_demand *next)
{
    return needs_all(e, channel, d) && find_wait(e, 0, next) && next->what == TB_DEMANDED_ENTER &&
           next->context == d->context && next->number == d->number;
}

static enum answer judge(struct tb_engine *e, const struct tb_peer *p, const struct tb_demand *d, uint64_t round,
                         struct tb_demand *found)
{
    struct tb_window *w;
    const struct tb_channel *channel = demand_channel(e, d, &w);
    if (channel == NULL || (p->stranger && !is_member(channel, p->proc.index)))
        return ANSWER_NOTHING;
    if (is_done(channel, w, d)) {
        struct tb_demand next = {.rank = TB_ANY_RANK};
        if (d->what == TB_DEMANDED_UNLOCK && d->number == channel->rank)
            next.rank = find_holder(w, round);
        else if (p->stranger || !waits_within(e, channel, d, &next))
            return ANSWER_NOTHING;
        if (next.rank == TB_ANY_RANK)
            return ANSWER_NOTHING;
        found->rank = next.rank;
        found->proc = tb_channel_proc(channel, next.rank);
        return ANSWER_REFER;
    }
    if (channel->left)
        return ANSWER_NEVER;
    return !p->stranger && find_wait(e, round, found) ? ANSWER_WAITS : ANSWER_NOTHING;
}

void tb_deadlock_asked(struct tb_peer *p, const struct tb_message *m, const void *payload, size_t length)
{
    struct tb_demand d, found;
    if (!demand_read(m, &d)) {
        tb_peer_break(p, tb_error(TB_ERR_PROTOCOL, "process %u has asked a senseless question", p->proc.index));
        return;
    }
    found = d;
    enum answer answer = judge(p->engine, p, &d, m->offset, &found);
    struct tb_message back = {.kind = TB_KIND_ANSWER,
                              .match = m->match,
                              .offset = answer | (uint64_t)found.proc << 32,
                              .source_rank = found.rank,
                              .representation = p->engine->representation};
    demand_write(answer == ANSWER_WAITS ? &found : &d, &back);
    frame_send(p, &back);
}

/* ---- asking ------------------------------------------------------------------------------------------------------ */

/* About the last demand of its way. */
static void question_send(struct tb_question *q)
{
    struct tb_engine *e = q->rank->window->engine;
    struct tb_message m = {.kind = TB_KIND_ASK,
                           .match = q->number,
                           .offset = e->deadlock.round,
                           .source_rank = q->rank->window->channel->rank,
                           .representation = e->representation};
    struct tb_peer *p = q->proc < e->peers.count ? tb_peer_of(e, q->proc) : NULL;
    if (p == NULL || p->error != TB_OK) {
        question_free(q);
        return;
    }
    demand_write(&q->way[q->hops], &m);
    frame_send(p, &m); /* the question may be answered, and gone, by now */
}

static void ask(struct tb_window *w, const struct standing *s, const struct tb_demand *d)
{
    struct tb_deadlock *all = &w->engine->deadlock;
    struct tb_window_rank *r = &w->ranks[d->rank];
    struct tb_question *q = r->question;
    if (q != NULL && (q->proc >= w->engine->peers.count || w->engine->peers.by_index[q->proc] == NULL ||
                      w->engine->peers.by_index[q->proc]->error != TB_OK)) {
        question_free(q); /* it is asked what cannot be answered any more */
        q = NULL;
    }
    if (q != NULL || (q = calloc(1, sizeof *q)) == NULL)
        return;
    q->rank = r;
    q->number = tb_slots_id(&w->engine->slots);
    q->wait = s->wait;
    q->since = s->since;
    q->proc = d->proc;
    q->way[0] = *d;
    r->question = q;
    tb_list_append(&all->questions, &q->in_all);
    question_send(q);
}

/* Some of those that a thread waits for, others each time. True: there is somebody whom it waits for in a window. */
static bool standing_ask(struct tb_engine *e, const struct standing *s)
{
    struct tb_demand d;
    struct tb_window *w;
    uint32_t count = standing_count(s);
    for (uint32_t i = 0; i < count && i < ASK_MANY; i++) {
        uint32_t nth = (uint32_t)(((uint64_t)e->deadlock.round * ASK_MANY + i) % count);
        if (standing_demands(s, nth, &d, &w) && w != NULL)
            ask(w, s, &d);
    }
    return count > 0 && standing_demands(s, 0, &d, &w) && w != NULL;
}

static uint64_t deadlock_look(struct tb_engine *e)
{
    struct tb_deadlock *all = &e->deadlock;
    struct standing s;
    bool waits = false, asks = false;
    if (TB_LIKELY(e->windows.count == 0))
        return TB_NEVER;
    uint64_t now = tb_clock_now(e->config.transport.clock), real = tb_clock_now_real();
    if (now < all->look_at)
        return all->look_at;
    for (uint32_t nth = 0; standing_find(e, nth, &s); nth++) {
        struct tb_demand d;
        struct tb_window *w;
        bool old = s.since != 0 && real >= s.since + ASK_FIRST;
        waits |= standing_demands(&s, 0, &d, &w) && w != NULL;
        asks |= old && standing_ask(e, &s);
    }
    all->round = asks ? all->round + 1 : waits ? 0 : all->round;
    if (!waits)
        return TB_NEVER;
    all->look_at = now + (!asks ? ASK_FIRST : all->round < ASK_OFTEN ? ASK_AGAIN : ASK_LATER);
    return all->look_at;
}

static void deadlock_close(struct tb_deadlock *d)
{
    struct tb_question *q;
    TB_LIST_EACH (q, &d->questions, struct tb_question, in_all)
        question_free(q);
}

const struct tb_deadlock_work tb_deadlock_work = {.look = deadlock_look, .close = deadlock_close};

/* ---- what is told ------------------------------------------------------------------------------------------------ */

#define STORY_BYTES sizeof(((struct tb_window *)NULL)->story)

static void say_undone(const struct tb_demand *d, char *text, size_t size)
{
    switch (d->what) {
    case TB_DEMANDED_POST:
        snprintf(text, size, "rank %u has not called MPI_Win_post for rank %u", d->rank, d->number);
        return;
    case TB_DEMANDED_COMPLETE:
        snprintf(text, size, "rank %u has not called MPI_Win_complete for what rank %u has posted", d->rank, d->number);
        return;
    case TB_DEMANDED_UNLOCK:
        snprintf(text, size, "rank %u has not given back the lock of rank %u", d->rank, d->number);
        return;
    default:
        snprintf(text, size, "rank %u has not called %s", d->rank, tb_operation_name(d->operation));
        return;
    }
}

static const char *name_of(const struct tb_demand *d)
{
    return d->what == TB_DEMANDED_POST       ? "MPI_Win_start"
           : d->what == TB_DEMANDED_COMPLETE ? "MPI_Win_wait"
           : d->what == TB_DEMANDED_UNLOCK   ? "MPI_Win_lock"
                                             : tb_operation_name(d->operation);
}

static const char *remedy(const struct tb_demand *d)
{
    switch (d->what) {
    case TB_DEMANDED_POST:
        return "every rank of the group of MPI_Win_start has to call MPI_Win_post for it";
    case TB_DEMANDED_COMPLETE:
        return "every rank of the group of MPI_Win_post has to call MPI_Win_start and MPI_Win_complete for it";
    case TB_DEMANDED_UNLOCK:
        return "whoever locks has to call MPI_Win_unlock, before it waits for others or ends";
    default:
        return "all ranks of a window have to call MPI_Win_fence and MPI_Win_free, in the same order";
    }
}

static void story_write(const struct tb_question *q, bool never, char *story)
{
    char undone[128];
    const struct tb_demand *d = &q->way[0];
    size_t at, size = STORY_BYTES;
    say_undone(d, undone, sizeof undone);
    at = (size_t)snprintf(story, size, "%s", undone);
    for (uint32_t i = 1; i <= q->hops && at < size / 2; i++)
        at += (size_t)snprintf(story + at, size - at,
                               i == 1 ? ", since it waits in %s for process %u of the job"
                                      : ", which waits in %s for process %u",
                               name_of(&q->way[i]), q->way[i].proc);
    if (never)
        snprintf(story + at, size - at, " and never will: it is in MPI_Finalize; %s", remedy(d));
    else
        snprintf(story + at, size - at, ": they wait for each other for ever; %s", remedy(d));
}

/* ---- ending a wait ----------------------------------------------------------------------------------------------- */

/* It is a collective of the window's: everybody has to know. */
static void enter_end(struct tb_window *w, const struct tb_demand *d, bool never)
{
    uint8_t why = never ? TB_OPERATION_FINALIZES : TB_OPERATION_ELSEWHERE;
    const struct tb_failure f = {tb_match_collective(d->number, why, 0), d->rank, 0, true, 0};
    tb_channel_fail(w->channel, &f);
    tb_channel_drives_give_up(w->channel, &f);
    tb_runs_give_up(&w->engine->runs, w->channel->collective, &f);
}

static void question_end(struct tb_question *q, bool never)
{
    struct tb_window_rank *r = q->rank;
    struct tb_window *w = r->window;
    const struct tb_demand d = q->way[0];
    story_write(q, never, w->story);
    question_free(q);
    if (d.what == TB_DEMANDED_ENTER)
        enter_end(w, &d, never);
    else
        tb_window_despair(r, &d);
    w->engine->waiting.events++;
    w->engine->waiting.stirred = true;
}

/* Whether the process still waits as it did when it asked. */
static bool still_waits(const struct tb_engine *e, const struct tb_question *q)
{
    struct standing s;
    struct tb_demand d;
    struct tb_window *w;
    for (uint32_t nth = 0; standing_find(e, nth, &s); nth++)
        for (uint32_t i = 0; s.wait == q->wait && s.since == q->since && standing_demands(&s, i, &d, &w); i++)
            if (d.what == q->way[0].what && d.context == q->way[0].context && d.number == q->way[0].number &&
                (d.rank == q->way[0].rank || d.what == TB_DEMANDED_ENTER || d.what == TB_DEMANDED_UNLOCK))
                return true;
    return false;
}

/* Whether the way, of so many before the last, ends where it has been: that one waits for this process, which waits as
 * well, or in a collective that this process, or somebody on the way, has not come to. */
static bool is_closed(struct tb_engine *e, const struct tb_question *q, uint32_t before, struct tb_demand *last)
{
    struct tb_window *w;
    const struct tb_channel *channel = demand_channel(e, last, &w);
    bool undone = channel != NULL && !is_done(channel, w, last);
    if (undone && needs_all(e, channel, last)) {
        last->rank = channel->rank;
        last->proc = e->config.transport.self.index;
    }
    if (undone && last->proc == e->config.transport.self.index)
        return true;
    for (uint32_t i = 0; i < before && last->what == TB_DEMANDED_ENTER && synchronises(last->operation); i++)
        if (q->way[i].what == TB_DEMANDED_ENTER && q->way[i].context == last->context &&
            q->way[i].number == last->number)
            return true;
    return false;
}

static void question_follow(struct tb_engine *e, struct tb_question *q, struct tb_demand *next)
{
    bool closed = is_closed(e, q, q->hops + 1, next);
    if (q->hops + 1 == HOPS || e->threaded || (!closed && next->proc == e->config.transport.self.index)) {
        question_free(q);
        return;
    }
    q->way[++q->hops] = *next;
    q->referred = 0;
    q->proc = next->proc;
    if (closed)
        question_end(q, false);
    else
        question_send(q);
}

/* The lock that the last of the way is about is not had by who was asked for it; or who was asked is in the collective,
 * and passes on who it waits for there, as that one may do in turn. */
static void question_refer(struct tb_engine *e, struct tb_question *q, const struct tb_demand *to)
{
    struct tb_demand *last = &q->way[q->hops];
    uint32_t most = last->what == TB_DEMANDED_UNLOCK ? 1 : last->what == TB_DEMANDED_ENTER ? HOPS : 0;
    bool again = q->referred++ >= most;
    last->rank = to->rank;
    q->proc = last->proc = to->proc;
    if (!again && is_closed(e, q, q->hops, last))
        question_end(q, false);
    else if (again || to->proc == e->config.transport.self.index)
        question_free(q);
    else
        question_send(q);
}

static struct tb_question *question_find(const struct tb_deadlock *all, uint64_t number, uint32_t proc)
{
    struct tb_question *q;
    TB_LIST_EACH (q, &all->questions, struct tb_question, in_all)
        if (q->number == number && q->proc == proc)
            return q;
    return NULL;
}

void tb_deadlock_answered(struct tb_peer *p, const struct tb_message *m, const void *payload, size_t length)
{
    struct tb_engine *e = p->engine;
    struct tb_question *q = question_find(&e->deadlock, m->match, p->proc.index);
    struct tb_demand d;
    if (p->unanswered > 0 && --p->unanswered == 0) { /* for which somebody may wait in MPI_Finalize */
        e->waiting.events++;
        e->waiting.stirred = true;
    }
    if (q == NULL)
        return;
    bool sound = demand_read(m, &d) && still_waits(e, q);
    d.rank = m->source_rank;
    d.proc = (uint32_t)(m->offset >> 32);
    switch (sound ? (uint32_t)m->offset : ANSWER_NOTHING) {
    case ANSWER_NEVER:
        if (q->hops > 0)
            break; /* whoever waits for that is told so itself, and goes on */
        question_end(q, true);
        return;
    case ANSWER_WAITS:
        question_follow(e, q, &d);
        return;
    case ANSWER_REFER:
        question_refer(e, q, &d);
        return;
    default:
        break;
    }
    question_free(q);
}
