#include "planner/simulator_state.h"

#include <stdlib.h>
#include <string.h>

#define STOP_EVENTS 65536u /* between two questions whether to give up: some milliseconds */

/* ---- messages ---------------------------------------------------------------------------------------------------- */

/* To a rank of the same host: the two copy at the same time, if there are cores for both. */
static void message_hand(struct tb_simulator *m, uint32_t step, uint64_t bytes, uint64_t now)
{
    const uint32_t send = TB_TIME_ENDS + 2 * TB_ENDS_SHM, receive = send + 1;
    uint64_t own = tb_simulator_time(m, send, bytes), latency = m->constants->shm_latency;
    uint64_t end = tb_simulator_work(m, m->steps[step].rank, now, own, bytes);
    uint64_t first = end - own + tb_simulator_time(m, send, 0);
    uint32_t index = tb_simulator_message_new(m);
    if (index == TB_SIMULATOR_NONE)
        return;
    struct tb_simulator_message *message = &m->messages[index];
    message->partner = m->steps[step].partner;
    message->bytes = bytes;
    message->until = tb_cost_add(tb_cost_add(end, latency), tb_simulator_time(m, receive, 0));
    tb_simulator_done(m, step, end);
    tb_simulator_push(m, TB_SIMULATOR_ARRIVE, index, tb_cost_add(first, latency));
}

static void message_receive(struct tb_simulator *m, uint32_t step, uint64_t bytes, uint64_t now, uint64_t until)
{
    struct tb_simulator_step *f = &m->steps[step];
    bool near = f->path == TB_SIMULATOR_NONE;
    uint64_t own = near ? tb_simulator_time(m, TB_TIME_ENDS + 2 * TB_ENDS_SHM + 1, bytes)
                        : tb_simulator_receive_time(m, f->path, bytes);
    uint64_t end = tb_simulator_work(m, f->rank, now, own, near ? bytes : 0);
    if (end < until)
        end = m->busy[f->rank] = until;
    if (f->waiters > 0) {
        __builtin_prefetch(&m->steps[m->waiting[f->waiting]], 1); /* needed then, and not in the cache */
        tb_simulator_push(m, TB_SIMULATOR_DONE, step, end);
    } else {
        tb_simulator_count(m, step, end);
    }
}

/* ---- steps ------------------------------------------------------------------------------------------------------- */

/* Whether the next item of a step must wait for another step. Mostly without a look at what the two are about. */
static bool item_waits(const struct tb_simulator_step *f, const struct tb_simulator_after *a,
                       const struct tb_simulator_step *before)
{
    if (before->done == before->items)
        return false;
    if (a->lag == TB_AFTER_WHOLE)
        return true;
    if (!a->joined)
        return before->done < (int64_t)f->started + 1 - a->lag;
    struct tb_after after = {.lag = a->lag};
    return tb_step_waits(f->about, &after, before->about, before->done, f->started);
}

static bool item_ready(const struct tb_simulator *m, struct tb_simulator_step *f)
{
    f->blocker = TB_SIMULATOR_NONE;
    for (uint32_t i = f->after; i != TB_SIMULATOR_NONE; i = tb_simulator_after_next(m, i)) {
        const struct tb_simulator_after *a = &m->after[i];
        if (item_waits(f, a, &m->steps[a->step])) {
            f->blocker = a->step;
            return false;
        }
    }
    return true;
}

/* False: not yet. */
static bool item_start(struct tb_simulator *m, uint32_t step, uint64_t now)
{
    struct tb_simulator_step *f = &m->steps[step];
    enum tb_step_kind kind = (enum tb_step_kind)f->kind;
    uint32_t item = f->started;
    bool message = kind == TB_STEP_SEND || kind == TB_STEP_RECEIVE, composite = kind == TB_STEP_COMPOSITE;
    uint64_t bytes = composite ? 0
                     : item + 1 < f->items && f->each > 0
                         ? f->each
                         : tb_item_bytes(&m->data, m->run->programs[f->rank], f->about, item);
    bool nothing = !composite && bytes == 0 && (!message || (f->about->slice.count > 0 && !f->about->upto));
    /* Who waits for items counts them: one for which nothing comes is not there before those in front of it. */
    if (nothing && kind == TB_STEP_RECEIVE && f->done < item)
        return false;
    f->started++;
    if (m->run->times != NULL && item == 0)
        m->run->times[step].begin = now;
    if (composite) {
        tb_simulator_come(m, step, now);
    } else if (nothing) {
        tb_simulator_done(m, step, now);
    } else if (!message) {
        uint64_t time = tb_simulator_time(m, kind == TB_STEP_COPY ? TB_TIME_COPY : TB_TIME_REDUCE, bytes);
        tb_simulator_done(m, step, tb_simulator_work(m, f->rank, now, time, bytes));
    } else if (kind == TB_STEP_SEND && f->path == TB_SIMULATOR_NONE) {
        message_hand(m, step, bytes, now);
    } else if (kind == TB_STEP_SEND) {
        tb_simulator_send(m, step, item, bytes, now);
    } else if (++f->posted <= f->arrived) {
        message_receive(m, step, bytes, now, 0);
    } else if (f->askers != TB_SIMULATOR_NONE) {
        tb_simulator_posted(m, step, now);
    }
    return true;
}

static void step_advance(struct tb_simulator *m, uint32_t step, uint64_t now)
{
    struct tb_simulator_step *f = &m->steps[step];
    while (f->started < f->items && f->started - f->done < f->window && item_ready(m, f))
        if (!item_start(m, step, now))
            break;
}

static void receive_begin(struct tb_simulator *m, uint32_t step, uint64_t bytes, uint64_t now, uint64_t until)
{
    struct tb_simulator_step *f = &m->steps[step];
    if (++f->arrived > f->posted)
        return;
    message_receive(m, step, bytes, now, until);
    /* The next one may be posted: nothing of this rank begins before it has received this one. */
    if (f->waiters == 0)
        step_advance(m, step, now);
}

static void message_arrive(struct tb_simulator *m, uint32_t index, uint64_t now)
{
    struct tb_simulator_message message = m->messages[index];
    tb_simulator_message_free(m, index);
    receive_begin(m, message.partner, message.bytes, now, message.until);
}

static void part_arrive(struct tb_simulator *m, uint32_t index, uint64_t now)
{
    struct tb_simulator_part part = m->parts[index];
    tb_simulator_part_free(m, index);
    receive_begin(m, part.message, part.length, now, part.last);
}

static void item_done(struct tb_simulator *m, uint32_t step, uint64_t now)
{
    const struct tb_simulator_step *f = &m->steps[step];
    tb_simulator_count(m, step, now);
    step_advance(m, step, now);
    for (uint32_t i = 0; i < f->waiters; i++) {
        uint32_t waiter = m->waiting[f->waiting + i], blocker = m->steps[waiter].blocker;
        if (blocker == TB_SIMULATOR_NONE || blocker == step)
            step_advance(m, waiter, now);
    }
}

/* ---- all of it --------------------------------------------------------------------------------------------------- */

/* The busiest of all that work one after the other. */
static uint64_t busiest(const struct tb_simulator *m)
{
    uint64_t load = 0, pool = 0;
    for (uint32_t i = 0; i < m->ranks; i++)
        load = tb_simulator_later(load, m->loads[i]);
    for (uint32_t i = 0; i < m->shape->host_count; i++) {
        const struct tb_simulator_host *h = &m->hosts[i];
        if (h->cores == TB_SIMULATOR_NONE)
            continue;
        pool = m->constants->pool > 0 ? tb_cost_add(pool, h->load) : h->load;
        load = tb_simulator_later(load, pool / m->pool);
    }
    for (uint32_t i = 0; i < m->wire_count; i++)
        load = tb_simulator_later(load, m->wires[i].load);
    return load;
}

static void event_happen(struct tb_simulator *m, const struct tb_simulator_event *e)
{
    uint32_t what = (uint32_t)e->what, index = what & ((1u << TB_SIMULATOR_INDEX_BITS) - 1);
    switch ((enum tb_simulator_event_kind)(what >> TB_SIMULATOR_INDEX_BITS)) {
    case TB_SIMULATOR_DONE:
        item_done(m, index, e->time);
        break;
    case TB_SIMULATOR_ARRIVE:
        message_arrive(m, index, e->time);
        break;
    case TB_SIMULATOR_COME:
        part_arrive(m, index, e->time);
        break;
    case TB_SIMULATOR_NEXT:
        if (index / 2 < m->stream_count)
            tb_simulator_next(m, index, e->time);
        else
            tb_simulator_cast_next(m, index / 2 - m->stream_count, e->time);
        break;
    case TB_SIMULATOR_PART:
        tb_simulator_part_comes(m, index, e->time);
        break;
    case TB_SIMULATOR_ASK:
        tb_simulator_ask(m, index, e->time);
        break;
    case TB_SIMULATOR_ANSWER:
        tb_simulator_answer(m, index, e->time);
        break;
    case TB_SIMULATOR_WIRE:
        tb_simulator_wire_free(m, index, e->time);
        break;
    }
}

int tb_simulate(struct tb_simulator *m, struct tb_simulation *run)
{
    run->end = run->events = run->load = 0;
    int error = tb_simulator_fill(m, run);
    if (error != TB_OK)
        return error;
    for (uint32_t i = 0; i < m->step_count; i++)
        step_advance(m, i, 0);
    while (m->to_come > 0 && m->error == TB_OK) {
        struct tb_simulator_event e = tb_simulator_pop(m);
        if (++run->events > run->limit)
            return TB_ERR_LIMIT;
        if (run->stop != NULL && run->events % STOP_EVENTS == 0 && run->stop(run->context))
            return TB_ERR_LIMIT;
        event_happen(m, &e);
    }
    if (m->error != TB_OK)
        return m->error;
    run->load = busiest(m);
    return m->finished == m->ranks ? TB_OK : TB_ERR_MISMATCH;
}

int tb_simulator_open(struct tb_simulator **simulator)
{
    *simulator = calloc(1, sizeof **simulator);
    return *simulator != NULL ? TB_OK : tb_error(TB_ERR_MEMORY, "no memory to simulate programs");
}

void tb_simulator_close(struct tb_simulator *m)
{
    for (int i = 0; m != NULL && i < ROOM_COUNT; i++)
        free(m->rooms[i].at);
    free(m);
}
