#include "engine/common_reduce.h"

#include "engine/common_cut.h"

#include <stdlib.h>
#include <string.h>

#define BLOCK_BYTES (64u << 10) /* of memory for items with gaps, unless one item is larger */
#define LEVELS      16u         /* of the fixed tree of as many ranks as a host may have, and more */
#define SHORT_ROOM  128u        /* bytes of what is kept on a level of it */
#define LONG_ROOM   4096u       /* the same of long data, which is combined in blocks of so many */

_Static_assert(LONG_ROOM >= TB_COMMON_ELEMENT, "a block has an element at least");

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

static bool combines_prefix(const struct tb_common_drive *s)
{
    return s->what == TB_COMPOSITE_SCAN || s->what == TB_COMPOSITE_EXSCAN;
}

/* ---- items without gaps ------------------------------------------------------------------------------------------ */

/* A block of everyone's items, which is combined along the fixed tree. */
struct dense_block {
    struct operands operands;
    uint64_t count;
    uint32_t bytes, room; /* of the block; of what is kept on a level of the tree */
    bool prefix;
    char *rooms; /* a room for each level */
};

/* What so many ranks have, from the first on: to another place than their operands', or to that of the last one. */
static int dense_combine(const struct dense_block *b, uint32_t first, uint32_t count, uint32_t level, char *to)
{
    const struct tb_common_drive *s = b->operands.s;
    const char *before = operand_of(&b->operands, first);
    if (count == 1) {
        if (to != before)
            memcpy(to, before, b->bytes);
        return TB_OK;
    }
    uint32_t split = tb_fixed_split(count, b->prefix);
    if (count == 2 && s->op->code != TB_OP_USER) {
        const char *last = operand_of(&b->operands, first + 1);
        tb_op_loop3 *both = to != last ? tb_op_kernel3(s->op, s->type) : NULL;
        if (both != NULL) {
            both(before, last, to, b->count);
            return TB_OK;
        }
    }
    int error = dense_combine(b, first + split, count - split, level, to);
    if (error == TB_OK && split > 1) {
        char *room = b->rooms + (size_t)level * b->room;
        error = dense_combine(b, first, split, level + 1, room);
        before = room;
    }
    return error == TB_OK ? tb_op_apply(s->op, before, to, b->count, s->type) : error;
}

static int fold_blocks(const struct operands *o, uint32_t length, char *to, char *rooms, uint32_t room)
{
    const struct tb_common_drive *s = o->s;
    uint32_t most = (uint32_t)(room - room % s->type->size);
    struct dense_block b = {.operands = *o, .room = room, .prefix = combines_prefix(s), .rooms = rooms};
    int error = TB_OK;
    for (uint32_t at = 0; at < length && error == TB_OK; at += b.bytes) {
        b.bytes = length - at < most ? length - at : most;
        b.count = b.bytes / s->type->size;
        b.operands.at = o->at + at;
        error = dense_combine(&b, 0, tb_common_operands(s), 0, to + at);
    }
    return error;
}

/* Apart, since short data does without so much of the stack. */
static __attribute__((noinline)) int fold_dense_long(const struct operands *o, uint32_t length, char *to)
{
    _Alignas(64) char rooms[LEVELS * LONG_ROOM];
    return fold_blocks(o, length, to, rooms, LONG_ROOM);
}

static int fold_dense(const struct operands *o, uint32_t length, char *to)
{
    _Alignas(64) char rooms[LEVELS * SHORT_ROOM];
    TB_ASSERT(tb_common_operands(o->s) <= 1u << LEVELS);
    return length > SHORT_ROOM ? fold_dense_long(o, length, to) : fold_blocks(o, length, to, rooms, SHORT_ROOM);
}

/* ---- items with gaps --------------------------------------------------------------------------------------------- */

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

/* Blocks of unpacked items, one more than the fixed tree has levels. */
struct sparse_blocks {
    struct operands operands;
    uint64_t items, count; /* that there is room for; of them, those that are combined */
    bool prefix;
    struct tb_buffer rooms[LEVELS + 1];
    void *memory[LEVELS + 1];
};

static int blocks_make(struct sparse_blocks *b, uint32_t ranks)
{
    int error = TB_OK;
    for (uint32_t level = 0; level <= LEVELS && error == TB_OK && (level == 0 || 1u << (level - 1) < ranks); level++)
        error = block_make(b->operands.s->type, &b->items, &b->memory[level], &b->rooms[level]);
    return error;
}

/* What so many ranks have, from the first on: in the room of a level, with the help of those behind it. */
static int sparse_combine(struct sparse_blocks *b, uint32_t first, uint32_t count, uint32_t level)
{
    const struct tb_common_drive *s = b->operands.s;
    if (count == 1) {
        block_fill(&b->rooms[level], operand_of(&b->operands, first), b->count * s->type->size);
        return TB_OK;
    }
    uint32_t split = tb_fixed_split(count, b->prefix);
    int error = sparse_combine(b, first + split, count - split, level);
    if (error == TB_OK)
        error = sparse_combine(b, first, split, level + 1);
    if (error != TB_OK)
        return error;
    return tb_op_apply(s->op, b->rooms[level + 1].base, b->rooms[level].base, b->count, s->type);
}

/* Operations see items as their type has them: they are unpacked, some at a time. The result is packed at `to`, or,
 * without that, goes where it belongs, the operands being a whole fragment or cell. */
static int fold_sparse(const struct operands *operands, uint32_t length, char *to)
{
    const struct tb_common_drive *s = operands->s;
    struct sparse_blocks b = {.operands = *operands, .prefix = combines_prefix(s)};
    struct tb_buffer room;
    struct tb_part target;
    uint32_t ranks = tb_common_operands(s);
    tb_common_cut_find(s, true, operands->fragment, &target, &room);
    int error = blocks_make(&b, ranks);
    for (uint64_t at = 0; at < length && error == TB_OK;) {
        uint64_t left = (length - at) / s->type->size;
        b.count = left < b.items ? left : b.items;
        uint64_t bytes = b.count * s->type->size;
        struct tb_spans from, into = tb_spans_of(to != NULL ? to + at : NULL, bytes);
        error = sparse_combine(&b, 0, ranks, 0);
        tb_buffer_spans(&b.rooms[0], 0, bytes, &from);
        if (to == NULL)
            tb_buffer_spans(target.buffer, target.from + at, bytes, &into);
        tb_spans_move(&from, &into);
        at += bytes;
        b.operands.at += (uint32_t)bytes;
    }
    for (uint32_t level = 0; level <= LEVELS; level++)
        free(b.memory[level]);
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
