#include "planner/traffic_state.h"

#include <stdlib.h>
#include <string.h>

/* ---- messages ---------------------------------------------------------------------------------------------------- */

/* To a rank of the same host: the two copy at the same time, if there are cores for both. */
static void message_hand(struct tb_traffic *m, uint32_t step, uint64_t bytes, uint64_t now)
{
    const uint32_t send = TB_TIME_ENDS + 2 * TB_ENDS_SHM, receive = send + 1;
    uint64_t own = tb_traffic_time(m, send, bytes), latency = m->constants->shm_latency;
    uint64_t end = tb_traffic_work(m, m->steps[step].rank, now, own, bytes);
    uint64_t first = end - own + tb_traffic_time(m, send, 0);
    uint32_t index = tb_traffic_message_new(m);
    if (index == TB_TRAFFIC_NONE)
        return;
    struct tb_traffic_message *message = &m->messages[index];
    message->step = step;
    message->bytes = bytes;
    message->until = tb_cost_add(tb_cost_add(end, latency), tb_traffic_time(m, receive, 0));
    tb_traffic_push(m, TB_TRAFFIC_DONE, step, end);
    tb_traffic_push(m, TB_TRAFFIC_ARRIVE, index, tb_cost_add(first, latency));
}

static void message_receive(struct tb_traffic *m, uint32_t step, uint64_t bytes, uint64_t now, uint64_t until)
{
    struct tb_traffic_step *f = &m->steps[step];
    bool near = f->path == TB_TRAFFIC_NONE;
    uint32_t what = near ? TB_TIME_ENDS + 2 * TB_ENDS_SHM + 1 : tb_traffic_receive_time(&m->paths[f->path]);
    uint64_t end = tb_traffic_work(m, f->rank, now, tb_traffic_time(m, what, bytes), near ? bytes : 0);
    if (end < until)
        end = m->busy[f->rank] = until;
    tb_traffic_push(m, TB_TRAFFIC_DONE, step, end);
}

static void message_arrive(struct tb_traffic *m, uint32_t index, uint64_t now)
{
    const struct tb_traffic_message *message = &m->messages[index];
    uint32_t step = m->steps[message->step].partner;
    uint64_t bytes = message->bytes, until = message->until;
    tb_traffic_message_free(m, index);
    if (++m->steps[step].arrived <= m->steps[step].posted)
        message_receive(m, step, bytes, now, until);
}

/* ---- steps ------------------------------------------------------------------------------------------------------- */

static bool item_ready(const struct tb_traffic *m, const struct tb_traffic_step *f)
{
    if (f->about->after_count == 0)
        return true;
    const struct tb_after *after = m->run->programs[f->rank]->after + f->about->after;
    for (uint32_t i = 0; i < f->about->after_count; i++) {
        const struct tb_traffic_step *before = &m->steps[m->firsts[f->rank] + after[i].step];
        if (before->done < before->items && tb_step_waits(f->about, &after[i], before->about, before->done, f->started))
            return false;
    }
    return true;
}

static void item_start(struct tb_traffic *m, uint32_t step, uint64_t now)
{
    struct tb_traffic_step *f = &m->steps[step];
    const struct tb_step *t = f->about;
    uint32_t item = f->started++;
    if (t->kind == TB_STEP_COMPOSITE) {
        tb_traffic_come(m, step, now);
        return;
    }
    uint64_t bytes = tb_item_bytes(&m->data, m->run->programs[f->rank], t, item);
    bool message = t->kind == TB_STEP_SEND || t->kind == TB_STEP_RECEIVE;
    if (bytes == 0 && (!message || (t->slice.count > 0 && !t->upto))) {
        tb_traffic_push(m, TB_TRAFFIC_DONE, step, now);
    } else if (!message) {
        uint64_t time = tb_traffic_time(m, t->kind == TB_STEP_COPY ? TB_TIME_COPY : TB_TIME_REDUCE, bytes);
        tb_traffic_push(m, TB_TRAFFIC_DONE, step, tb_traffic_work(m, f->rank, now, time, bytes));
    } else if (t->kind == TB_STEP_SEND && f->path == TB_TRAFFIC_NONE) {
        message_hand(m, step, bytes, now);
    } else if (t->kind == TB_STEP_SEND) {
        tb_traffic_send(m, step, item, bytes, now);
    } else if (++f->posted <= f->arrived) {
        message_receive(m, step, bytes, now, 0);
    } else if (f->askers != TB_TRAFFIC_NONE) {
        tb_traffic_posted(m, step, now);
    }
}

static void step_advance(struct tb_traffic *m, uint32_t step, uint64_t now)
{
    struct tb_traffic_step *f = &m->steps[step];
    while (f->started < f->items && f->started - f->done < f->window && item_ready(m, f))
        item_start(m, step, now);
}

static void item_done(struct tb_traffic *m, uint32_t step, uint64_t now)
{
    struct tb_traffic_step *f = &m->steps[step];
    f->done++;
    if (f->done == f->items && --m->left[f->rank] == 0) {
        m->finished++;
        if (m->run->ends != NULL)
            m->run->ends[f->rank] = now;
        m->run->end = tb_traffic_later(m->run->end, now);
    }
    step_advance(m, step, now);
    for (uint32_t i = 0; i < f->waiters; i++)
        step_advance(m, m->waiting[f->waiting + i], now);
}

/* ---- all of it --------------------------------------------------------------------------------------------------- */

/* The busiest of all that work one after the other. */
static uint64_t busiest(const struct tb_traffic *m)
{
    uint64_t load = 0, pool = 0;
    for (uint32_t i = 0; i < m->ranks; i++)
        load = tb_traffic_later(load, m->loads[i]);
    for (uint32_t i = 0; i < m->shape->host_count; i++) {
        const struct tb_traffic_host *h = &m->hosts[i];
        if (h->cores == TB_TRAFFIC_NONE)
            continue;
        pool = m->constants->pool > 0 ? tb_cost_add(pool, h->load) : h->load;
        load = tb_traffic_later(load, pool / m->pool);
    }
    for (uint32_t i = 0; i < m->wire_count; i++)
        load = tb_traffic_later(load, m->wires[i].load);
    return load;
}

static void event_happen(struct tb_traffic *m, const struct tb_traffic_event *e)
{
    uint32_t index = e->what & ((1u << TB_TRAFFIC_INDEX_BITS) - 1);
    switch ((enum tb_traffic_event_kind)(e->what >> TB_TRAFFIC_INDEX_BITS)) {
    case TB_TRAFFIC_DONE:
        item_done(m, index, e->time);
        break;
    case TB_TRAFFIC_ARRIVE:
        message_arrive(m, index, e->time);
        break;
    case TB_TRAFFIC_NEXT:
        tb_traffic_next(m, index, e->time);
        break;
    case TB_TRAFFIC_PART:
        tb_traffic_part_comes(m, index, e->time);
        break;
    case TB_TRAFFIC_ASK:
        tb_traffic_ask(m, index, e->time);
        break;
    case TB_TRAFFIC_ANSWER:
        tb_traffic_answer(m, index, e->time);
        break;
    }
}

int tb_traffic_simulate(struct tb_traffic *m, struct tb_traffic_run *run)
{
    run->end = run->events = run->load = 0;
    int error = tb_traffic_fill(m, run);
    if (error != TB_OK)
        return error;
    for (uint32_t i = 0; i < m->step_count; i++)
        step_advance(m, i, 0);
    while (m->heap_count > 0 && m->error == TB_OK) {
        struct tb_traffic_event e = tb_traffic_pop(m);
        if (++run->events > run->limit)
            return TB_ERR_LIMIT;
        event_happen(m, &e);
    }
    if (m->error != TB_OK)
        return m->error;
    run->load = busiest(m);
    return m->finished == m->ranks ? TB_OK : TB_ERR_MISMATCH;
}

int tb_traffic_open(struct tb_traffic **traffic)
{
    *traffic = calloc(1, sizeof **traffic);
    return *traffic != NULL ? TB_OK : tb_error(TB_ERR_MEMORY, "no memory to simulate programs");
}

void tb_traffic_close(struct tb_traffic *m)
{
    for (int i = 0; m != NULL && i < ROOM_COUNT; i++)
        free(m->rooms[i].at);
    free(m);
}
