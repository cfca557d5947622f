/* The bytes of a buffer whose type has gaps. */
#include "data/layout.h"

/* The walker's whole state is in the spans: `owner` is the type, cursor[0] the place in the packed data where the
 * current span ends, cursor[1] the user's address. */
static void set_span(struct tb_spans *spans, uint64_t at)
{
    const struct tb_type *type = spans->owner;
    uint64_t item = at / type->size;
    struct tb_layout_place place = tb_layout_find(type->layout, type->size, at - item * type->size);
    uint64_t run = place.run < spans->left ? place.run : spans->left;
    spans->base = (char *)(uintptr_t)(spans->cursor[1] + item * (uint64_t)type->extent +
                                      (uint64_t)(type->origin + place.displacement));
    spans->length = (size_t)run;
    spans->cursor[0] = at + run;
}

static void next_span(struct tb_spans *spans)
{
    set_span(spans, spans->cursor[0]);
}

static void copy_spans(struct tb_spans *spans, void *packed, size_t n, bool gather)
{
    const struct tb_type *type = spans->owner;
    uint64_t at = spans->cursor[0] - spans->length;
    char *memory = (char *)(uintptr_t)(spans->cursor[1] + (uint64_t)type->origin);
    tb_layout_copy(type->layout, type->size, type->extent, memory, packed, at, n, gather);
    spans->left -= n;
    spans->length = 0;
    spans->cursor[0] = at + n;
    if (spans->left > 0)
        set_span(spans, at + n);
}

void tb_buffer_spans_slow(const struct tb_buffer *b, uint64_t from, uint64_t length, struct tb_spans *spans)
{
    const struct tb_type *type = b->type;
    if (type->dense || length == 0) {
        *spans = tb_spans_of((char *)((uintptr_t)b->base + from), length);
        return;
    }
    TB_ASSERT(type->size > 0);
    *spans = (struct tb_spans){
        .left = length,
        .next = next_span,
        .copy = copy_spans,
        .owner = type,
        .cursor = {0, (uintptr_t)b->base},
    };
    set_span(spans, from);
}

uint64_t tb_type_average_span(const struct tb_type *type)
{
    if (type->dense)
        return UINT64_MAX;
    return type->layout == NULL ? type->size : type->size / type->layout->runs;
}
