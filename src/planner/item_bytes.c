#include "planner/item_bytes.h"

static uint64_t sum(uint64_t a, uint64_t b)
{
    uint64_t both;
    return __builtin_add_overflow(a, b, &both) ? UINT64_MAX : both;
}

/* Bytes before a piece of what is cut evenly. */
static uint64_t piece_start(uint64_t piece, uint64_t length, uint64_t bytes)
{
    uint64_t start;
    return __builtin_mul_overflow(piece, length, &start) || start > bytes ? bytes : start;
}

/* Of a piece that is a part of a block. */
static uint64_t part_bytes(const struct tb_program *p, uint32_t piece, uint64_t block)
{
    uint32_t part = piece % p->parts;
    return tb_part_start(block, p->parts, TB_PART_UNIT, part + 1) - tb_part_start(block, p->parts, TB_PART_UNIT, part);
}

uint64_t tb_call_bytes(const struct tb_collective *c)
{
    return c->elements == 0 && tb_operation_unsized(c->operation) ? tb_param.assumed_block : c->elements;
}

struct tb_item_data tb_item_data_of(const struct tb_collective *c)
{
    struct tb_item_data data = {.bytes = tb_call_bytes(c)};
    switch (c->operation) {
    case TB_OPERATION_BCAST:
    case TB_OPERATION_REDUCE:
    case TB_OPERATION_ALLREDUCE:
    case TB_OPERATION_SCAN:
    case TB_OPERATION_EXSCAN:
        break;
    case TB_OPERATION_REDUCE_SCATTER:
    case TB_OPERATION_REDUCE_SCATTER_BLOCK:
        data.bytes = data.bytes / c->size + (data.bytes % c->size != 0);
        data.blocks = true;
        break;
    default:
        data.blocks = true;
    }
    return data;
}

uint64_t tb_slice_bytes(const struct tb_item_data *data, const struct tb_program *p, const struct tb_step *t,
                        const struct tb_slice *slice, uint32_t item)
{
    if (slice->count == 0)
        return 0;
    uint32_t at = item * tb_step_join(t), count = tb_step_item_pieces(t, slice, item);
    if (slice->symbol == TB_SYMBOL_SIZES)
        return count * sizeof(uint64_t);
    if (data->blocks) {
        uint64_t bytes = 0;
        if (p->parts == 1)
            return __builtin_mul_overflow(count, data->bytes, &bytes) ? UINT64_MAX : bytes;
        for (uint32_t i = 0; i < count; i++)
            bytes = sum(bytes, part_bytes(p, tb_slice_piece(p, slice, at + i), data->bytes));
        return bytes;
    }
    if (p->pieces == 0 || data->bytes == 0)
        return 0;
    if (p->pieces == 1)
        return data->bytes;
    /* Short divisions where they do, as this is asked for each item. */
    uint64_t length =
        data->bytes <= UINT32_MAX ? ((uint32_t)data->bytes - 1) / p->pieces + 1 : (data->bytes - 1) / p->pieces + 1;
    uint64_t piece = tb_slice_piece(p, slice, at);
    if (piece >= p->pieces)
        piece %= p->pieces;
    return piece_start(piece + count, length, data->bytes) - piece_start(piece, length, data->bytes);
}

uint64_t tb_item_bytes(const struct tb_item_data *data, const struct tb_program *p, const struct tb_step *t,
                       uint32_t item)
{
    if (t->kind == TB_STEP_MEASURE || t->kind == TB_STEP_BIND)
        return 0;
    bool like = (t->kind == TB_STEP_SEND || t->kind == TB_STEP_RECEIVE) && t->other.count > 0;
    return tb_slice_bytes(data, p, t, like ? &t->other : &t->slice, item);
}
