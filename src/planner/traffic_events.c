/* What is to happen, soonest first: a heap in which each entry has four below it. */
#include "planner/traffic_state.h"

static bool event_before(const struct tb_traffic_event *a, const struct tb_traffic_event *b)
{
    return a->time != b->time ? a->time < b->time : a->order < b->order;
}

void tb_traffic_push(struct tb_traffic *m, enum tb_traffic_event_kind kind, uint32_t index, uint64_t time)
{
    size_t need = ((size_t)m->heap_count + 1) * sizeof *m->heap;
    if (need > m->rooms[ROOM_HEAP].bytes && (m->heap = tb_traffic_room(m, ROOM_HEAP, need)) == NULL)
        return;
    struct tb_traffic_event e = {time, m->order++, (uint32_t)kind << TB_TRAFFIC_INDEX_BITS | index};
    uint32_t at = m->heap_count++;
    while (at > 0 && event_before(&e, &m->heap[(at - 1) / 4])) {
        m->heap[at] = m->heap[(at - 1) / 4];
        at = (at - 1) / 4;
    }
    m->heap[at] = e;
}

struct tb_traffic_event tb_traffic_pop(struct tb_traffic *m)
{
    struct tb_traffic_event *heap = m->heap, first = heap[0], last = heap[--m->heap_count];
    uint32_t at = 0, count = m->heap_count;
    for (;;) {
        uint32_t child = 4 * at + 1, best = child, end = child + 4 < count ? child + 4 : count;
        if (child >= count)
            break;
        for (uint32_t i = child + 1; i < end; i++)
            best = event_before(&heap[i], &heap[best]) ? i : best;
        if (!event_before(&heap[best], &last))
            break;
        heap[at] = heap[best];
        at = best;
    }
    heap[at] = last;
    return first;
}
