#include "search/event_heap.h"

#include <stdlib.h>

int tb_event_heap_open(struct tb_event_heap *heap, uint32_t most, uint32_t numbers)
{
    *heap =
        (struct tb_event_heap){0, malloc((size_t)most * sizeof *heap->events), calloc(numbers, sizeof *heap->places)};
    if (heap->events != NULL && heap->places != NULL)
        return TB_OK;
    tb_event_heap_close(heap);
    return tb_error(TB_ERR_MEMORY, "no memory for %u events", most);
}

void tb_event_heap_close(struct tb_event_heap *heap)
{
    free(heap->events);
    free(heap->places);
    *heap = (struct tb_event_heap){0};
}

static bool is_before(struct tb_event a, struct tb_event b)
{
    return a.time < b.time || (a.time == b.time && a.number < b.number);
}

static void event_store(struct tb_event_heap *heap, uint32_t place, struct tb_event event)
{
    heap->events[place] = event;
    heap->places[event.number] = place + 1;
}

static void event_rise(struct tb_event_heap *heap, uint32_t place, struct tb_event event)
{
    for (; place > 0 && is_before(event, heap->events[(place - 1) / 2]); place = (place - 1) / 2)
        event_store(heap, place, heap->events[(place - 1) / 2]);
    event_store(heap, place, event);
}

static void event_sink(struct tb_event_heap *heap, uint32_t place, struct tb_event event)
{
    for (;;) {
        uint32_t below = 2 * place + 1;
        if (below + 1 < heap->count && is_before(heap->events[below + 1], heap->events[below]))
            below++;
        if (below >= heap->count || !is_before(heap->events[below], event))
            break;
        event_store(heap, place, heap->events[below]);
        place = below;
    }
    event_store(heap, place, event);
}

void tb_event_heap_set(struct tb_event_heap *heap, uint32_t number, uint64_t time)
{
    const struct tb_event event = {time, number};
    uint32_t place = heap->places[number];
    if (place == 0)
        event_rise(heap, heap->count++, event);
    else if (is_before(event, heap->events[place - 1]))
        event_rise(heap, place - 1, event);
    else
        event_sink(heap, place - 1, event);
}

struct tb_event tb_event_heap_take(struct tb_event_heap *heap)
{
    struct tb_event first = heap->events[0], last = heap->events[--heap->count];
    heap->places[first.number] = 0;
    if (heap->count > 0)
        event_sink(heap, 0, last);
    return first;
}
