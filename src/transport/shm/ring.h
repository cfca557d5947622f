/* A ring: the way of frames from one process to another in shared memory. One writer, one reader.
 *
 * It has two parts. The records, of 64-byte units, are what the reader looks at: the first line of a record holds a
 * word that says what it is (0: nothing there yet), the message header, and up to 16 bytes of payload, so that a short
 * frame is one cache line. A little more payload continues in the following units. Longer payload stands in the second
 * part, the bulk, in the order of its records. Records are few, so that ranks that exchange only short messages touch
 * only two pages; the bulk is large, so that writer and reader can copy at the same time.
 *
 * There is no common index. The writer zeroes the word behind a record before it publishes the record's own word, so
 * the reader need look only at the word where it stands. The reader tells how far it has come now and then, in a line
 * of its own, which the writer reads only when it believes the ring full. A record that starts near the end runs into a
 * few spare units behind it and the next one starts at the front, so there are no filler records; bulk payload that
 * does not fit behind the last one starts at the front too, which both sides know by themselves.
 *
 * Positions count units (bytes for the bulk) since the beginning and never wrap. struct tb_ring_writer and
 * tb_ring_reader are the private halves of the two processes; each belongs to its transport's owner. */
#ifndef TB_TRANSPORT_SHM_RING_H
#define TB_TRANSPORT_SHM_RING_H

#include <stdatomic.h>

#include "wire/wire.h"

#define TB_RING_UNIT         64
#define TB_RING_RECORD_BYTES 8192 /* control lines and records */
#define TB_RING_RECORD_UNITS 4    /* the longest record */
#define TB_RING_SPARE        (TB_RING_RECORD_UNITS - 1)
#define TB_RING_UNITS        (TB_RING_RECORD_BYTES / TB_RING_UNIT - 2 - TB_RING_SPARE) /* where records may start */
#define TB_RING_TELL         (TB_RING_UNITS / 4) /* the reader tells its position after so many units */

/* Where payload begins in a record without and with routing, and how much of it fits behind that. */
#define TB_RING_PLAIN         (8 + sizeof(struct tb_message))
#define TB_RING_ROUTED        (TB_RING_UNIT + sizeof(struct tb_routing))
#define TB_RING_INLINE_PLAIN  (TB_RING_RECORD_UNITS * TB_RING_UNIT - TB_RING_PLAIN)
#define TB_RING_INLINE_ROUTED (TB_RING_RECORD_UNITS * TB_RING_UNIT - TB_RING_ROUTED)

/* The word: payload length in the lower half, these in the upper. */
enum tb_ring_word { TB_RING_IS_RECORD = 0x7461, TB_RING_IS_ROUTED = 1 << 16, TB_RING_IS_BULK = 1 << 17 };

struct tb_ring_record {
    _Atomic uint64_t word;
    struct tb_message message;
    char rest[TB_RING_UNIT - 8 - sizeof(struct tb_message)];
};
_Static_assert(sizeof(struct tb_ring_record) == TB_RING_UNIT, "the first unit of a record is one line");

struct tb_ring_memory {
    /* The reader's line: everything before these positions is free again. */
    alignas(TB_RING_UNIT) _Atomic uint64_t head;
    _Atomic uint64_t bulk_head;
    /* The writer's line: 1 while it waits for room. */
    alignas(TB_RING_UNIT) _Atomic uint32_t waiting;
    alignas(TB_RING_UNIT) struct tb_ring_record units[TB_RING_UNITS + TB_RING_SPARE];
    char bulk[];
};
_Static_assert(offsetof(struct tb_ring_memory, bulk) == TB_RING_RECORD_BYTES, "the bulk begins on a page");

struct tb_ring_writer {
    struct tb_ring_memory *memory;
    uint64_t tail, head; /* next record; what the reader had told when we last looked */
    uint64_t bulk_tail, bulk_head;
    uint32_t index; /* of the unit at tail */
    uint32_t bulk_bytes;
};

struct tb_ring_reader {
    struct tb_ring_memory *memory;
    uint64_t head, told; /* next record; what the writer has been told */
    uint64_t bulk_head, bulk_told;
    uint32_t index;
    uint32_t bulk_bytes;
};

/* A record in the ring: being written, or being read. */
struct tb_ring_frame {
    struct tb_ring_record *record;
    struct tb_routing *routing; /* NULL without */
    char *payload;
    uint32_t length, units;
    uint64_t bulk_next; /* the bulk's position behind it */
};

/* Memory of one ring; `bulk` is a power of two. The longest payload of a frame is an eighth of the bulk, so that
 * several are under way; with the quarter that the reader may have freed without telling, and what is left unused at
 * the end, there is always room for one when the ring is empty, and no writer is blocked for ever. */
static inline size_t tb_ring_bytes(size_t bulk)
{
    return TB_RING_RECORD_BYTES + bulk;
}

static inline uint32_t tb_ring_longest(size_t bulk)
{
    return (uint32_t)(bulk / 8);
}

/* The bulk that has room for so many bytes. */
size_t tb_ring_bulk(uint64_t bytes);

void tb_ring_writer_open(struct tb_ring_writer *writer, void *memory, size_t bulk);
void tb_ring_reader_open(struct tb_ring_reader *reader, void *memory, size_t bulk);

/* Looks whether the reader has freed enough for the longest frame. */
bool tb_ring_writer_look(struct tb_ring_writer *writer);
/* The same after telling the reader that we wait; false: it will see that we do when it frees something. */
bool tb_ring_writer_wait(struct tb_ring_writer *writer);
/* We wait no longer. */
void tb_ring_writer_resume(struct tb_ring_writer *writer);
/* Tells how far the reader has come. True: the writer waits and may sleep: ring its doorbell. */
bool tb_ring_reader_tell(struct tb_ring_reader *reader);
/* The story of a word that makes no sense. */
int tb_ring_reader_nonsense(const struct tb_ring_reader *reader, uint64_t word);

static inline uint32_t tb_ring_units(size_t bytes)
{
    return (uint32_t)((bytes + TB_RING_UNIT - 1) / TB_RING_UNIT);
}

/* Where bulk payload of this length begins when everything before `position` is taken. */
static inline uint64_t tb_ring_bulk_place(uint64_t position, uint32_t length, uint32_t bulk_bytes)
{
    uint64_t behind = bulk_bytes - (position & (bulk_bytes - 1));
    return length <= behind ? position : position + behind;
}

/* What a record of this shape looks like; its payload is still to be placed when it goes into the bulk. */
static inline bool tb_ring_shape(struct tb_ring_frame *frame, bool routed)
{
    size_t begin = routed ? TB_RING_ROUTED : TB_RING_PLAIN;
    frame->routing = routed ? (struct tb_routing *)(frame->record + 1) : NULL;
    bool bulk = frame->length > (routed ? TB_RING_INLINE_ROUTED : TB_RING_INLINE_PLAIN);
    frame->units = tb_ring_units(bulk ? begin : begin + frame->length);
    frame->payload = (char *)frame->record + begin;
    return bulk;
}

static inline void tb_ring_step(uint64_t *position, uint32_t *index, uint32_t units)
{
    if (*index + units < TB_RING_UNITS) {
        *position += units;
        *index += units;
    } else {
        *position += TB_RING_UNITS - *index;
        *index = 0;
    }
}

/* Room for a frame: the caller then writes message, routing and payload and publishes. False: full; nothing was taken.
 * frame->length is given by the caller. */
static inline bool tb_ring_reserve(struct tb_ring_writer *w, struct tb_ring_frame *frame, bool routed)
{
    frame->record = &w->memory->units[w->index];
    frame->bulk_next = w->bulk_tail;
    if (tb_ring_shape(frame, routed)) {
        uint64_t place = tb_ring_bulk_place(w->bulk_tail, frame->length, w->bulk_bytes);
        frame->bulk_next = place + (uint64_t)tb_ring_units(frame->length) * TB_RING_UNIT;
        frame->payload = w->memory->bulk + (place & (w->bulk_bytes - 1));
    }
    /* One unit more than the record: the word behind it is zeroed. */
    if (__builtin_expect(
            w->tail + frame->units + 1 > w->head + TB_RING_UNITS || frame->bulk_next > w->bulk_head + w->bulk_bytes, 0))
        return false;
    return true;
}

/* The reader can see the frame from now on. The caller then wakes it if it sleeps. */
static inline void tb_ring_publish(struct tb_ring_writer *w, const struct tb_ring_frame *frame)
{
    uint64_t what = TB_RING_IS_RECORD;
    if (frame->routing != NULL)
        what |= TB_RING_IS_ROUTED;
    if (frame->bulk_next != w->bulk_tail)
        what |= TB_RING_IS_BULK;
    w->bulk_tail = frame->bulk_next;
    tb_ring_step(&w->tail, &w->index, frame->units);
    atomic_store_explicit(&w->memory->units[w->index].word, 0, memory_order_relaxed);
    atomic_store_explicit(&frame->record->word, what << 32 | frame->length, memory_order_release);
}

/* The last look before sleeping: is something there? Behind the fence of tb_doorbell_sleep. */
static inline bool tb_ring_ready(const struct tb_ring_reader *r)
{
    return atomic_load_explicit(&r->memory->units[r->index].word, memory_order_acquire) != 0;
}

/* The frame at the head: 1; none: 0; nonsense: an error. It stays in the ring until tb_ring_release. */
static inline int tb_ring_peek(const struct tb_ring_reader *r, struct tb_ring_frame *frame)
{
    struct tb_ring_record *record = &r->memory->units[r->index];
    uint64_t word = atomic_load_explicit(&record->word, memory_order_acquire);
    if (word == 0)
        return 0;
    uint32_t what = (uint32_t)(word >> 32);
    frame->record = record;
    frame->length = (uint32_t)word;
    frame->bulk_next = r->bulk_head;
    bool bulk = tb_ring_shape(frame, what & TB_RING_IS_ROUTED);
    if (__builtin_expect((what & ~(uint32_t)TB_RING_IS_ROUTED) != (TB_RING_IS_RECORD | (bulk ? TB_RING_IS_BULK : 0)),
                         0))
        return tb_ring_reader_nonsense(r, word);
    if (bulk) {
        if (__builtin_expect(frame->length > tb_ring_longest(r->bulk_bytes), 0))
            return tb_ring_reader_nonsense(r, word);
        uint64_t place = tb_ring_bulk_place(r->bulk_head, frame->length, r->bulk_bytes);
        frame->bulk_next = place + (uint64_t)tb_ring_units(frame->length) * TB_RING_UNIT;
        frame->payload = r->memory->bulk + (place & (r->bulk_bytes - 1));
    }
    return 1;
}

/* The frame at the head has been used. True: the writer waits and may sleep: ring its doorbell. */
static inline bool tb_ring_release(struct tb_ring_reader *r, const struct tb_ring_frame *frame)
{
    r->bulk_head = frame->bulk_next;
    tb_ring_step(&r->head, &r->index, frame->units);
    if (__builtin_expect(r->head - r->told < TB_RING_TELL && r->bulk_head - r->bulk_told < r->bulk_bytes / 4, 1))
        return false;
    return tb_ring_reader_tell(r);
}

#endif
