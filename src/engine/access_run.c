#include "engine/access_run.h"

#include "engine/part.h"

/* ---- making ------------------------------------------------------------------------------------------------------ */

struct making {
    struct tb_access_run *runs;
    uint32_t count;
    uint64_t data;
};

/* Whether a piece continues the last run; if it does, that has it now. */
static bool run_extend(struct tb_access_run *run, uint64_t at, uint32_t bytes)
{
    if (run->count == 1 && at == run->at + run->bytes && bytes <= UINT32_MAX - run->bytes) {
        run->bytes += bytes;
        return true;
    }
    if (bytes != run->bytes)
        return false;
    if (run->count == 1)
        run->stride = at - run->at;
    else if (at != run->at + run->stride * run->count)
        return false;
    run->count++;
    return true;
}

/* One piece more, if there is room for it. */
static bool make_add(struct making *m, const struct tb_runs_room *room, uint64_t at, uint64_t bytes, uint64_t data)
{
    uint64_t all = m->data + data + (uint64_t)m->count * TB_ACCESS_RUN_BYTES;
    if (m->data + data > room->data)
        return false;
    if (m->count > 0 && all <= room->all && run_extend(&m->runs[m->count - 1], at, (uint32_t)bytes)) {
        m->data += data;
        return true;
    }
    if (m->count == room->runs || all + TB_ACCESS_RUN_BYTES > room->all)
        return false;
    m->runs[m->count++] = (struct tb_access_run){.at = at, .bytes = (uint32_t)bytes, .count = 1};
    m->data += data;
    return true;
}

static void make_items(struct making *m, const struct tb_buffer *target, uint64_t from, const struct tb_type *element,
                       const struct tb_runs_room *room)
{
    uint64_t total = tb_buffer_bytes(target);
    for (uint64_t at = from; at < total; at += element->size) {
        struct tb_spans s;
        tb_buffer_spans(target, at, element->size, &s);
        if (!make_add(m, room, (uintptr_t)s.base, (uint64_t)element->extent, element->size))
            return;
    }
}

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

uint64_t tb_runs_make(const struct tb_buffer *target, uint64_t from, const struct tb_type *element,
                      const struct tb_runs_room *room, struct tb_access_run *runs, uint32_t *count)
{
    struct making m = {.runs = runs};
    uint64_t unit = element != NULL ? element->size : 1;
    if (tb_element_has_gaps(element)) {
        make_items(&m, target, from, element, room);
        *count = m.count;
        return m.data;
    }
    uint64_t most = least(room->data, tb_buffer_bytes(target) - from);
    most -= most % unit;
    struct tb_spans s;
    tb_buffer_spans(target, from, most, &s);
    while (s.left > 0) {
        /* A piece that does not fit as a whole is cut, between elements. */
        uint64_t used = m.data + ((uint64_t)m.count + 1) * TB_ACCESS_RUN_BYTES;
        uint64_t bytes = least(s.length, room->all > used ? room->all - used : 0);
        bytes -= bytes % unit;
        if (bytes == 0 || !make_add(&m, room, (uintptr_t)s.base, bytes, bytes))
            break;
        tb_spans_skip(&s, bytes);
    }
    *count = m.count;
    return m.data;
}

/* ---- doing ------------------------------------------------------------------------------------------------------- */

static uint64_t unit_of(const struct tb_run_work *work)
{
    return work->element != NULL ? (uint64_t)work->element->extent : 1;
}

bool tb_runs_check(const struct tb_run_work *work, uint64_t data)
{
    uint64_t unit = unit_of(work), packed = work->element != NULL ? work->element->size : 1, sum = 0;
    for (uint32_t i = 0; i < work->count; i++) {
        struct tb_access_run run;
        tb_wire_get_access_run(work->runs + (size_t)i * TB_ACCESS_RUN_BYTES, &run);
        if (run.bytes == 0 || run.count == 0 || run.bytes % unit != 0)
            return false;
        uint64_t bytes = run.bytes / unit * packed * run.count; /* packed is at most unit, so this is below 2^64 */
        if (bytes > data - sum)
            return false;
        sum += bytes;
    }
    return sum == data;
}

/* Bytes behind the data of the last item of a run. */
static uint64_t tail_of(const struct tb_run_work *work)
{
    const struct tb_type *element = work->element;
    return tb_element_has_gaps(element) ? (uint64_t)(element->extent - element->true_extent) : 0;
}

/* Calls `each` with all pieces until it says false. */
static bool runs_walk(const struct tb_run_work *work, bool (*each)(void *context, void *at, uint64_t bytes),
                      void *context)
{
    uint64_t tail = tail_of(work);
    for (uint32_t i = 0; i < work->count; i++) {
        struct tb_access_run run;
        tb_wire_get_access_run(work->runs + (size_t)i * TB_ACCESS_RUN_BYTES, &run);
        for (uint32_t k = 0; k < run.count; k++)
            if (!each(context, work->find(work->context, run.at + k * run.stride, run.bytes - tail), run.bytes))
                return false;
    }
    return true;
}

static bool piece_is_there(void *context, void *at, uint64_t bytes)
{
    return at != NULL;
}

bool tb_runs_reach(const struct tb_run_work *work)
{
    return runs_walk(work, piece_is_there, NULL);
}

static bool piece_read(void *context, void *at, uint64_t bytes)
{
    char **to = context;
    memcpy(*to, at, bytes);
    *to += bytes;
    return true;
}

void tb_runs_read(const struct tb_run_work *work, void *to)
{
    char *at = to;
    runs_walk(work, piece_read, (void *)&at);
}

static bool piece_write(void *context, void *at, uint64_t bytes)
{
    const char **from = context;
    memcpy(at, *from, bytes);
    *from += bytes;
    return true;
}

void tb_runs_write(const struct tb_run_work *work, const void *from)
{
    const char *at = from;
    runs_walk(work, piece_write, (void *)&at);
}

#define ITEMS_AT_ONCE 64u
#define ITEM_MOST     48u /* bytes of a predefined type with its gaps */

/* Items with gaps are put together here, as they would lie in memory, and combined. */
static void gaps_apply(const struct tb_type *element, const struct tb_op *op, const char *from, char *packed,
                       uint64_t count)
{
    _Alignas(16) char items[ITEMS_AT_ONCE * ITEM_MOST], results[ITEMS_AT_ONCE * ITEM_MOST];
    TB_ASSERT(element->extent <= ITEM_MOST);
    while (count > 0) {
        uint64_t n = least(count, ITEMS_AT_ONCE), bytes = n * element->size;
        const struct tb_buffer here = {items, n, element}, result = {results, n, element};
        tb_part_scatter(&(struct tb_part){&here, 0, bytes}, 0, bytes, from);
        tb_part_scatter(&(struct tb_part){&result, 0, bytes}, 0, bytes, packed);
        tb_op_apply(op, items, results, n, element);
        tb_part_gather(&(struct tb_part){&result, 0, bytes}, 0, bytes, packed);
        from += bytes;
        packed += bytes;
        count -= n;
    }
}

void tb_packed_combine(const struct tb_type *element, const struct tb_op *op, const void *from, void *old, void *packed,
                       uint64_t count)
{
    if (old != NULL)
        memcpy(old, packed, count * element->size);
    if (op->code != TB_OP_NO_OP && tb_element_has_gaps(element))
        gaps_apply(element, op, from, packed, count);
    else if (op->code != TB_OP_NO_OP)
        tb_op_apply(op, from, packed, count, element);
}

/* What is in the gaps there is none of ours, and that of the last item may be outside of the window. */
static void gapped_combine(const struct tb_type *element, const struct tb_op *op, const char *from, char *old, char *at,
                           uint64_t count)
{
    char packed[ITEMS_AT_ONCE * ITEM_MOST];
    TB_ASSERT(element->extent <= ITEM_MOST);
    while (count > 0) {
        uint64_t n = least(count, ITEMS_AT_ONCE), bytes = n * element->size;
        const struct tb_buffer there = {at, n, element};
        tb_part_gather(&(struct tb_part){&there, 0, bytes}, 0, bytes, packed);
        tb_packed_combine(element, op, from, old, packed, n);
        if (op->code != TB_OP_NO_OP) {
            tb_part_scatter(&(struct tb_part){&there, 0, bytes}, 0, bytes, packed);
            from += bytes;
        }
        old = old != NULL ? old + bytes : NULL;
        at += n * (uint64_t)element->extent;
        count -= n;
    }
}

void tb_items_combine(const struct tb_type *element, const struct tb_op *op, const void *from, void *old, void *at,
                      uint64_t count)
{
    if (tb_element_has_gaps(element)) {
        gapped_combine(element, op, from, old, at, count);
        return;
    }
    tb_packed_combine(element, op, from, old, at, count);
}

struct combining {
    const struct tb_type *element;
    const struct tb_op *op;
    const char *from;
    char *old;
};

static bool piece_combine(void *context, void *at, uint64_t bytes)
{
    struct combining *c = context;
    uint64_t count = bytes / (uint64_t)c->element->extent, data = count * c->element->size;
    tb_items_combine(c->element, c->op, c->from, c->old, at, count);
    if (c->op->code != TB_OP_NO_OP)
        c->from += data;
    c->old = c->old != NULL ? c->old + data : NULL;
    return true;
}

void tb_runs_combine(const struct tb_run_work *work, const struct tb_op *op, const void *from, void *old)
{
    struct combining c = {.element = work->element, .op = op, .from = from, .old = old};
    runs_walk(work, piece_combine, &c);
}
