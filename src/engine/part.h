/* A part of a buffer: `length` bytes of its packed form from `from` on. It refers to the buffer and is passed around on
 * the stack; whoever makes it keeps the buffer. */
#ifndef TB_ENGINE_PART_H
#define TB_ENGINE_PART_H

#include <string.h>

#include "data/data.h"
#include "engine/likely.h"

struct tb_part {
    const struct tb_buffer *buffer;
    uint64_t from, length;
};

/* Packs `length` bytes from byte `at` of the part on. What is one span is copied at once. */
static inline void tb_part_gather(const struct tb_part *part, uint64_t at, uint64_t length, void *to)
{
    struct tb_spans spans;
    if (TB_LIKELY(part->buffer->type->dense)) {
        if (length > 0)
            memcpy(to, (const char *)((uintptr_t)part->buffer->base + part->from + at), length);
        return;
    }
    tb_buffer_spans(part->buffer, part->from + at, length, &spans);
    tb_spans_gather(&spans, to, length);
}

/* Unpacks them. */
static inline void tb_part_scatter(const struct tb_part *part, uint64_t at, uint64_t length, const void *from)
{
    struct tb_spans spans;
    if (TB_LIKELY(part->buffer->type->dense)) {
        if (length > 0)
            memcpy((char *)((uintptr_t)part->buffer->base + part->from + at), from, length);
        return;
    }
    tb_buffer_spans(part->buffer, part->from + at, length, &spans);
    tb_spans_scatter(&spans, from, length);
}

#endif
