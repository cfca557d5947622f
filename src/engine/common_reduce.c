#include "engine/common_reduce.h"

#include "engine/common_cut.h"

#include <stdlib.h>
#include <string.h>

#define BLOCK_BYTES (64u << 10) /* of memory for items with gaps, unless one item is larger */

/* Everyone's packed data, from byte `at` of a cell or of the slots of a fragment on. */
struct operands {
    const struct tb_common_drive *s;
    uint32_t fragment, at;
};

static const char *operand_of(const struct operands *o, uint32_t rank)
{
    const struct tb_common_drive *s = o->s;
    if (s->direct && rank == s->rank)
        return s->operand + (uint64_t)o->fragment * s->fragment + o->at;
    if (s->is_long)
        return tb_common_slot(s, rank, o->fragment) + s->own_stripe + o->at;
    const struct tb_board_cell *cell = tb_common_cell(s, rank);
    bool block = tb_common_exchanges(s);
    return cell->data + (block ? tb_block_words(cell)[s->rank] & UINT16_MAX : 0) + o->at;
}

/* To another place, or to that of the last operand. */
static int fold_dense(const struct operands *o, uint32_t length, char *to)
{
    const struct tb_common_drive *s = o->s;
    uint64_t count = length / s->type->size;
    uint32_t rank = tb_common_operands(s) - 1;
    const char *last = operand_of(o, rank);
    tb_op_loop3 *both = rank > 0 && to != last && s->op->code != TB_OP_USER ? tb_op_kernel3(s->op, s->type) : NULL;
    if (both != NULL) {
        both(operand_of(o, rank - 1), last, to, count);
        rank--;
    } else if (to != last) {
        memcpy(to, last, length);
    }
    int error = TB_OK;
    while (rank-- > 0 && error == TB_OK)
        error = tb_op_apply(s->op, operand_of(o, rank), to, count, s->type);
    return error;
}

/* Room for some items of a type with gaps, and where the first of them stands. */
static int block_make(const struct tb_type *type, uint64_t *items, void **memory, struct tb_buffer *buffer)
{
    uint64_t bytes, extent = (uint64_t)(type->extent < 0 ? -type->extent : type->extent);
    int64_t origin;
    uint64_t fit = extent > 0 ? BLOCK_BYTES / extent : 1;
    *items = fit > 0 ? fit : 1;
    int error = tb_items_measure(type, *items, &bytes, &origin);
    if (error != TB_OK)
        return error;
    *memory = malloc(bytes + 1);
    if (*memory == NULL)
        return tb_error(TB_ERR_MEMORY, "no memory for %llu bytes of work space", (unsigned long long)bytes);
    *buffer = (struct tb_buffer){(char *)((uintptr_t)*memory + (uint64_t)origin), *items, type};
    return TB_OK;
}

static void block_fill(const struct tb_buffer *block, const char *from, uint64_t length)
{
    struct tb_spans spans;
    tb_buffer_spans(block, 0, length, &spans);
    tb_spans_scatter(&spans, from, length);
}

/* Operations see items as their type has them: they are unpacked, some at a time. The result is packed at `to`, or,
 * without that, goes where it belongs, the operands being a whole fragment or cell. */
static int fold_sparse(const struct operands *operands, uint32_t length, char *to)
{
    const struct tb_common_drive *s = operands->s;
    struct operands o = *operands;
    struct tb_buffer sum, next, room;
    struct tb_part target;
    void *memory[2] = {NULL, NULL};
    uint64_t items = 0;
    tb_common_cut_find(s, true, o.fragment, &target, &room);
    int error = block_make(s->type, &items, &memory[0], &sum);
    if (error == TB_OK)
        error = block_make(s->type, &items, &memory[1], &next);
    for (uint64_t at = 0; at < length && error == TB_OK;) {
        uint64_t left = (length - at) / s->type->size, count = left < items ? left : items;
        uint64_t bytes = count * s->type->size;
        uint32_t rank = tb_common_operands(s) - 1;
        struct tb_spans from, into = tb_spans_of(to != NULL ? to + at : NULL, bytes);
        block_fill(&sum, operand_of(&o, rank), bytes);
        while (rank-- > 0 && error == TB_OK) {
            block_fill(&next, operand_of(&o, rank), bytes);
            error = tb_op_apply(s->op, next.base, sum.base, count, s->type);
        }
        tb_buffer_spans(&sum, 0, bytes, &from);
        if (to == NULL)
            tb_buffer_spans(target.buffer, target.from + at, bytes, &into);
        tb_spans_move(&from, &into);
        at += bytes;
        o.at += (uint32_t)bytes;
    }
    free(memory[0]);
    free(memory[1]);
    return error;
}

int tb_common_reduce_whole(struct tb_common_drive *s, uint32_t fragment, uint32_t length)
{
    struct operands o = {s, fragment, 0};
    if (!s->type->dense)
        return fold_sparse(&o, length, NULL);
    struct tb_part into = s->get;
    struct tb_buffer room;
    if (s->is_long)
        tb_common_cut_find(s, true, fragment, &into, &room);
    return fold_dense(&o, length, (char *)((uintptr_t)into.buffer->base + into.from));
}

int tb_common_reduce_range(struct tb_common_drive *s, uint32_t fragment, uint32_t length)
{
    uint64_t items = length / s->unit;
    uint32_t low = (uint32_t)(items * s->rank / s->size * s->unit);
    uint32_t high = (uint32_t)(items * (s->rank + 1) / s->size * s->unit);
    struct operands o = {s, fragment, low};
    if (low == high)
        return TB_OK;
    char *to = tb_common_slot(s, s->size - 1, fragment) + low;
    return s->type->dense ? fold_dense(&o, high - low, to) : fold_sparse(&o, high - low, to);
}
