/* What happens next: events by time, of equal times by number. Each number is in it once at most and can be moved to
 * another time. One thread at a time. */
#ifndef TB_SEARCH_EVENT_HEAP_H
#define TB_SEARCH_EVENT_HEAP_H

#include "base/base.h"

struct tb_event {
    uint64_t time;
    uint32_t number;
};

struct tb_event_heap {
    uint32_t count;
    struct tb_event *events;
    uint32_t *places; /* of each number: its place + 1; 0: it is not in it */
};

/* Room for `most` events with numbers below `numbers`. */
int tb_event_heap_open(struct tb_event_heap *heap, uint32_t most, uint32_t numbers);
void tb_event_heap_close(struct tb_event_heap *heap); /* may be all zeros */
/* Adds an event, or moves it. */
void tb_event_heap_set(struct tb_event_heap *heap, uint32_t number, uint64_t time);
/* Takes the next one. The heap is not empty. */
struct tb_event tb_event_heap_take(struct tb_event_heap *heap);

#endif
