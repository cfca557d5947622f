/* What is to happen, soonest first: a heap in which each entry has four below it. What is taken from it leaves a hole
 * at the top until the next one comes or is taken: mostly something that happens leads to something else. Behind the
 * last entry stand some that never happen, so that there are always four to be compared, and nothing to be guessed. */
#include "planner/simulator_state.h"

#define FAN 4u

static const struct tb_simulator_event never = {UINT64_MAX, UINT64_MAX};

/* 1 or 0. Not && and ||, which would become branches that cannot be guessed. */
static inline uint64_t event_before(struct tb_simulator_event a, struct tb_simulator_event b)
{
    return (uint64_t)(a.time < b.time) | ((uint64_t)(a.time == b.time) & (uint64_t)(a.what < b.what));
}

/* The second of two if `which` is 1. */
static inline struct tb_simulator_event event_pick(struct tb_simulator_event a, struct tb_simulator_event b,
                                                   uint64_t which)
{
    uint64_t mask = -which;
    return (struct tb_simulator_event){a.time ^ ((a.time ^ b.time) & mask), a.what ^ ((a.what ^ b.what) & mask)};
}

/* Puts an entry to where it belongs, from the top down; `count` with it. */
static void event_sink(struct tb_simulator_event *heap, uint32_t count, struct tb_simulator_event e)
{
    uint32_t at = 0;
    for (uint32_t child = 1; child < count; child = FAN * at + 1) {
        const struct tb_simulator_event *c = &heap[child];
        uint64_t left = event_before(c[1], c[0]), right = event_before(c[3], c[2]);
        struct tb_simulator_event a = event_pick(c[0], c[1], left), b = event_pick(c[2], c[3], right);
        uint64_t second = event_before(b, a);
        struct tb_simulator_event best = event_pick(a, b, second);
        if (!event_before(best, e))
            break;
        heap[at] = best;
        at = child + (uint32_t)(left ^ ((left ^ (2 + right)) & -second));
    }
    heap[at] = e;
}

void tb_simulator_push(struct tb_simulator *m, enum tb_simulator_event_kind kind, uint32_t index, uint64_t time)
{
    struct tb_simulator_event e = {time,
                                   (uint64_t)m->order++ << 32 | (uint32_t)kind << TB_SIMULATOR_INDEX_BITS | index};
    uint32_t at = m->heap_count;
    if (m->heap_hole) {
        m->heap_hole = false;
        event_sink(m->heap, ++m->heap_count, e);
        return;
    }
    size_t need = ((size_t)at + FAN) * sizeof *m->heap;
    if (need > m->rooms[ROOM_HEAP].bytes && (m->heap = tb_simulator_room(m, ROOM_HEAP, need)) == NULL)
        return;
    m->heap_count++;
    if (at % FAN == 1) /* the first below its parent */
        m->heap[at + 1] = m->heap[at + 2] = m->heap[at + 3] = never;
    while (at > 0 && event_before(e, m->heap[(at - 1) / FAN])) {
        m->heap[at] = m->heap[(at - 1) / FAN];
        at = (at - 1) / FAN;
    }
    m->heap[at] = e;
}

struct tb_simulator_event tb_simulator_pop(struct tb_simulator *m)
{
    if (m->heap_hole) {
        struct tb_simulator_event last = m->heap[m->heap_count];
        m->heap[m->heap_count] = never;
        event_sink(m->heap, m->heap_count, last);
    }
    m->heap_hole = true;
    m->heap_count--;
    return m->heap[0];
}

/* ---- what is done ------------------------------------------------------------------------------------------------ */

void tb_simulator_count(struct tb_simulator *m, uint32_t step, uint64_t time)
{
    struct tb_simulator_step *f = &m->steps[step];
    if (m->run->ends != NULL)
        m->run->ends[f->rank] = tb_simulator_later(m->run->ends[f->rank], time);
    m->run->end = tb_simulator_later(m->run->end, time);
    if (++f->done == f->items)
        m->finished += --m->left[f->rank] == 0;
}

void tb_simulator_done(struct tb_simulator *m, uint32_t step, uint64_t time)
{
    const struct tb_simulator_step *f = &m->steps[step];
    if (f->waiters > 0 || f->window < f->items)
        tb_simulator_push(m, TB_SIMULATOR_DONE, step, time);
    else
        tb_simulator_count(m, step, time);
}
