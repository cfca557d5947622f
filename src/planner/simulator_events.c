/* What is to happen, soonest first. What happens soon is in a heap in which each entry has four below it. What is taken
 * from it leaves a hole at the top until the next one comes or is taken: mostly something that happens leads to
 * something else. Behind the last entry stand some that never happen, so that there are always four to be compared, and
 * nothing to be guessed.
 *
 * A large heap is slow, so what happens later waits outside, by its time in one of many lists, and what happens still
 * later in one more. When the heap is empty the next list comes into it; when all are, their times are chosen anew, so
 * that most of what is left is in one of them. */
#include "planner/simulator_state.h"

#include <string.h>

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

static void heap_push(struct tb_simulator *m, struct tb_simulator_event e)
{
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

/* Fills the hole. */
static void heap_close(struct tb_simulator *m)
{
    struct tb_simulator_event last = m->heap[m->heap_count];
    m->heap_hole = false;
    m->heap[m->heap_count] = never;
    if (m->heap_count > 0)
        event_sink(m->heap, m->heap_count, last);
}

/* ---- later ------------------------------------------------------------------------------------------------------- */

static void wait_in(struct tb_simulator *m, uint32_t index)
{
    struct tb_simulator_waiting *w = &m->waits[index];
    uint64_t list = (w->event.time - m->list_begin) >> m->list_bits;
    if (list >= TB_SIMULATOR_LISTS)
        list = TB_SIMULATOR_LISTS; /* the last one */
    else
        m->lists_used[list / 64] |= 1ull << list % 64;
    w->next = m->lists[list];
    m->lists[list] = index;
}

static void later_push(struct tb_simulator *m, struct tb_simulator_event e)
{
    uint32_t index = m->free_wait;
    if (index != TB_SIMULATOR_NONE) {
        m->free_wait = m->waits[index].next;
    } else {
        index = m->wait_count;
        size_t need = ((size_t)index + 1) * sizeof *m->waits;
        if (need > m->rooms[ROOM_WAITS].bytes && (m->waits = tb_simulator_room(m, ROOM_WAITS, need)) == NULL)
            return;
        m->wait_count++;
    }
    m->waits[index].event = e;
    wait_in(m, index);
}

/* The times of lists: from the soonest of those who wait longest on, for twice the time that they wait on average, so
 * that at least half of them get into one. */
static void lists_begin(struct tb_simulator *m)
{
    uint64_t count = 0, soonest = UINT64_MAX;
    unsigned __int128 sum = 0;
    for (uint32_t i = m->lists[TB_SIMULATOR_LISTS]; i != TB_SIMULATOR_NONE; i = m->waits[i].next) {
        uint64_t time = m->waits[i].event.time;
        soonest = time < soonest ? time : soonest;
        sum += time;
        count++;
    }
    uint64_t each = count > 0 ? (uint64_t)(sum / count - soonest) / (TB_SIMULATOR_LISTS / 2) : 0;
    uint32_t next = m->lists[TB_SIMULATOR_LISTS];
    m->list_begin = soonest;
    m->list_bits = each > 0 ? 64 - (uint32_t)__builtin_clzll(each) : 0;
    m->lists[TB_SIMULATOR_LISTS] = TB_SIMULATOR_NONE;
    while (next != TB_SIMULATOR_NONE) {
        uint32_t index = next;
        next = m->waits[index].next;
        wait_in(m, index);
    }
}

/* The next list comes into the heap, which is empty. */
static void list_open(struct tb_simulator *m)
{
    uint32_t word = m->lists_word, last = TB_SIMULATOR_LISTS / 64 - 1;
    while (word < last && m->lists_used[word] == 0)
        word++;
    if (m->lists_used[word] == 0) {
        lists_begin(m);
        word = 0;
    }
    m->lists_word = word;
    uint32_t list = 64 * word + (uint32_t)__builtin_ctzll(m->lists_used[word]), next = m->lists[list];
    m->lists_used[word] &= m->lists_used[word] - 1;
    m->lists[list] = TB_SIMULATOR_NONE;
    m->soon = tb_cost_add(m->list_begin + ((uint64_t)list << m->list_bits), 1ull << m->list_bits);
    while (next != TB_SIMULATOR_NONE && m->error == TB_OK) {
        struct tb_simulator_waiting *w = &m->waits[next];
        uint32_t index = next;
        heap_push(m, w->event);
        next = w->next;
        w->next = m->free_wait;
        m->free_wait = index;
    }
}

/* ---- both -------------------------------------------------------------------------------------------------------- */

void tb_simulator_push(struct tb_simulator *m, enum tb_simulator_event_kind kind, uint32_t index, uint64_t time)
{
    struct tb_simulator_event e = {time,
                                   (uint64_t)m->order++ << 32 | (uint32_t)kind << TB_SIMULATOR_INDEX_BITS | index};
    m->to_come++;
    if (time < m->soon)
        heap_push(m, e);
    else
        later_push(m, e);
}

struct tb_simulator_event tb_simulator_pop(struct tb_simulator *m)
{
    if (m->heap_hole)
        heap_close(m);
    if (m->heap_count == 0)
        list_open(m);
    m->to_come--;
    m->heap_hole = true;
    m->heap_count--;
    return m->heap[0];
}

void tb_simulator_events_clear(struct tb_simulator *m)
{
    m->heap = m->rooms[ROOM_HEAP].at;
    m->heap_count = m->order = 0;
    m->heap_hole = false;
    /* After a simulation that came to its end all lists are empty. */
    if (m->runs == 0 || m->to_come > 0) {
        memset(m->lists, 0xff, sizeof m->lists);
        memset(m->lists_used, 0, sizeof m->lists_used);
    }
    m->to_come = 0;
    m->waits = m->rooms[ROOM_WAITS].at;
    m->wait_count = 0;
    m->free_wait = TB_SIMULATOR_NONE;
    m->soon = m->list_begin = 0;
    m->list_bits = 0;
    m->lists_word = 0;
}

/* ---- what is done ------------------------------------------------------------------------------------------------ */

void tb_simulator_count(struct tb_simulator *m, uint32_t step, uint64_t time)
{
    struct tb_simulator_step *f = &m->steps[step];
    if (m->run->ends != NULL)
        m->run->ends[f->rank] = tb_simulator_later(m->run->ends[f->rank], time);
    if (m->run->times != NULL && f->done == 0)
        m->run->times[step].done = time;
    if (m->run->times != NULL && f->done == f->items / 2)
        m->run->times[step].half = time;
    if (m->run->times != NULL && f->done + 1 == f->items)
        m->run->times[step].last = time;
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
