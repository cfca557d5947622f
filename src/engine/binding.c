#include "engine/binding.h"

#include "engine/likely.h"

#include <stdlib.h>

#define WORK_KEPT_LIMIT (4u << 20) /* bytes that an engine keeps for its next program */
#define WORK_ALIGNMENT  16

/* ---- pieces ------------------------------------------------------------------------------------------------------ */

/* An empty message may be of a symbol that is bound to nothing. */
static const struct tb_buffer nothing = {.type = &tb_type_byte};

static uint64_t piece_start(const struct tb_binding *b, enum tb_cut cut, uint32_t piece)
{
    if (cut == TB_CUT_OFFSETS)
        return b->offsets[piece];
    uint64_t start = piece * b->piece;
    return start < b->elements ? start : b->elements;
}

/* Elements before a piece of WORK, which holds the whole several times over. */
static uint64_t work_start(const struct tb_binding *b, const struct tb_program *program, enum tb_cut cut,
                           uint32_t piece)
{
    return piece / program->pieces * b->elements + piece_start(b, cut, piece % program->pieces);
}

/* Of a buffer that is cut evenly or by offsets. */
static void part_cut(const struct tb_binding *b, const struct tb_program *program, enum tb_symbol symbol,
                     uint32_t piece, uint32_t count, struct tb_part *part)
{
    enum tb_cut cut = (enum tb_cut)b->cuts[symbol];
    uint64_t start, end;
    if (symbol == TB_SYMBOL_WORK && !program->binds && piece + count > program->pieces) {
        start = work_start(b, program, cut, piece);
        end = work_start(b, program, cut, piece + count);
    } else {
        start = piece_start(b, cut, piece);
        end = piece_start(b, cut, piece + count);
    }
    part->from = start * b->element_bytes;
    part->length = (end - start) * b->element_bytes;
}

/* ---- parts of blocks --------------------------------------------------------------------------------------------- */

/* Whether pieces are parts of blocks. Pieces that a BIND step has made have lengths
 * of their own. */
static bool piece_is_part(const struct tb_binding *b, const struct tb_program *program, enum tb_symbol symbol)
{
    return program->parts > 1 && b->cuts[symbol] != TB_CUT_EVEN && symbol != TB_SYMBOL_SIZES &&
           (symbol != TB_SYMBOL_WORK || !program->binds);
}

/* Where in its block of so many bytes a piece begins. */
static uint64_t part_start(const struct tb_binding *b, const struct tb_program *program, uint64_t bytes, uint32_t piece)
{
    /* No basic element is cut, and no operand of a reduction. */
    bool whole = b->op == NULL || b->element_bytes == 0 || TB_PART_UNIT % b->element_bytes == 0;
    return tb_part_start(bytes, program->parts, whole ? TB_PART_UNIT : b->element_bytes, piece % program->parts);
}

/* Where it begins in a buffer that is cut by offsets. */
static uint64_t part_offset(const struct tb_binding *b, const struct tb_program *program, enum tb_symbol symbol,
                            uint32_t piece)
{
    bool copies = symbol == TB_SYMBOL_WORK && piece >= program->pieces;
    uint64_t before = copies ? piece / program->pieces * b->elements : 0;
    uint32_t block = (copies ? piece % program->pieces : piece) / program->parts;
    uint64_t start = b->offsets[block], within = 0;
    if (piece % program->parts > 0)
        within = part_start(b, program, (b->offsets[block + 1] - start) * b->element_bytes, piece);
    return (before + start) * b->element_bytes + within;
}

/* `count` pieces that are parts, of one block if that stands by itself. */
static __attribute__((cold)) void part_find_parts(const struct tb_binding *b, const struct tb_program *program,
                                                  enum tb_symbol symbol, uint32_t piece, uint32_t count,
                                                  struct tb_part *part, struct tb_buffer *room)
{
    uint32_t block = piece / program->parts, end = piece + count;
    uint64_t bytes;
    if (b->cuts[symbol] == TB_CUT_OFFSETS) {
        part->from = part_offset(b, program, symbol, piece);
        part->length = part_offset(b, program, symbol, end) - part->from;
        return;
    }
    if (b->cuts[symbol] == TB_CUT_TABLE) {
        part->buffer = &b->tables[symbol][block];
        bytes = tb_buffer_bytes(part->buffer);
    } else {
        *room = b->buffers[symbol];
        bytes = tb_buffer_bytes(room);
        room->base = (char *)((uintptr_t)room->base + block * room->count * (uint64_t)room->type->extent);
        room->count *= (end + program->parts - 1) / program->parts - block;
        part->buffer = room;
    }
    part->from = part_start(b, program, bytes, piece);
    part->length = (end / program->parts - block) * bytes - part->from +
                   (end % program->parts > 0 ? part_start(b, program, bytes, end) : 0);
}

static void part_find(const struct tb_binding *b, const struct tb_program *program, const struct tb_slice *slice,
                      uint32_t at, uint32_t count, struct tb_part *part, struct tb_buffer *room)
{
    *part = (struct tb_part){.buffer = slice->count == 0 ? &nothing : &b->buffers[slice->symbol]};
    if (slice->count == 0)
        return;
    uint32_t piece = tb_slice_piece(program, slice, at);
    if (TB_UNLIKELY(piece_is_part(b, program, slice->symbol))) {
        part_find_parts(b, program, slice->symbol, piece, count, part, room);
        return;
    }
    switch ((enum tb_cut)b->cuts[slice->symbol]) {
    case TB_CUT_EVEN:
    case TB_CUT_OFFSETS:
        part_cut(b, program, slice->symbol, piece, count, part);
        break;
    case TB_CUT_BLOCKS:
        *room = b->buffers[slice->symbol];
        room->base = (char *)((uintptr_t)room->base + piece * room->count * (uint64_t)room->type->extent);
        room->count *= count;
        part->buffer = room;
        part->length = tb_buffer_bytes(room);
        break;
    case TB_CUT_TABLE:
        part->buffer = &b->tables[slice->symbol][piece];
        part->length = tb_buffer_bytes(part->buffer);
        break;
    }
}

void tb_binding_part(const struct tb_binding *b, const struct tb_program *program, const struct tb_step *step,
                     const struct tb_slice *slice, uint32_t item, struct tb_part *part, struct tb_buffer *room)
{
    enum tb_symbol symbol = slice->symbol;
    if (program->pieces == 1 && symbol < TB_SYMBOL_WORK && slice->count == 1 && b->cuts[symbol] == TB_CUT_EVEN) {
        *part = (struct tb_part){&b->buffers[symbol], 0, b->elements * b->element_bytes}; /* all of it */
        return;
    }
    if (slice->count == 0) {
        *part = (struct tb_part){&nothing, 0, 0};
        return;
    }
    uint32_t at = item, count = 1;
    if (step->join != 1) {
        at = item * tb_step_join(step);
        count = tb_step_item_pieces(step, slice, item);
    }
    if (TB_LIKELY(b->cuts[symbol] == TB_CUT_EVEN)) { /* the usual, at once */
        uint32_t piece = tb_slice_piece(program, slice, at);
        if (TB_LIKELY(symbol != TB_SYMBOL_WORK || piece + count <= program->pieces)) {
            uint64_t start = piece_start(b, TB_CUT_EVEN, piece), end = piece_start(b, TB_CUT_EVEN, piece + count);
            *part = (struct tb_part){&b->buffers[symbol], start * b->element_bytes, (end - start) * b->element_bytes};
            return;
        }
    }
    part_find(b, program, slice, at, count, part, room);
}

void tb_binding_block(const struct tb_binding *b, const struct tb_program *program, const struct tb_slice *slice,
                      uint32_t at, struct tb_part *part, struct tb_buffer *room)
{
    part_find(b, program, slice, at, 1, part, room);
}

/* ---- WORK -------------------------------------------------------------------------------------------------------- */

int tb_items_measure(const struct tb_type *type, unsigned __int128 count, uint64_t *bytes, int64_t *origin)
{
    __int128 far = count > 0 ? (__int128)(count - 1) * type->extent : 0;
    __int128 low = (far < 0 ? far : 0) + type->true_lower_bound;
    __int128 high = (far > 0 ? far : 0) + type->true_lower_bound + type->true_extent;
    low = low < 0 ? -((-low + WORK_ALIGNMENT - 1) / WORK_ALIGNMENT * WORK_ALIGNMENT)
                  : low / WORK_ALIGNMENT * WORK_ALIGNMENT;
    if (count > INT64_MAX || high - low > INT64_MAX)
        return tb_error(TB_ERR_MEMORY, "a collective needs more work space than any memory can hold");
    *bytes = count > 0 && type->size > 0 ? (uint64_t)(high - low) : 0;
    *origin = (int64_t)-low;
    return TB_OK;
}

static unsigned __int128 work_items(const struct tb_binding *b, const struct tb_program *program)
{
    const struct tb_buffer *buffer = &b->buffers[TB_SYMBOL_WORK];
    if (b->cuts[TB_SYMBOL_WORK] == TB_CUT_BLOCKS)
        return (unsigned __int128)((program->work_pieces - 1) / program->parts + 1) * buffer->count;
    if (program->pieces == 0 || buffer->type->size == 0)
        return 0;
    uint32_t copies = program->binds ? 1 : (program->work_pieces - 1) / program->pieces + 1;
    return (unsigned __int128)b->elements * b->element_bytes / buffer->type->size * copies;
}

int tb_binding_take_work(struct tb_binding *b, const struct tb_program *program, struct tb_work_cache *cache,
                         void *small, uint64_t small_bytes, void **work, uint64_t *work_bytes)
{
    struct tb_buffer *buffer = &b->buffers[TB_SYMBOL_WORK];
    uint64_t bytes = 0;
    int64_t origin = 0;
    *work = NULL;
    if (program->work_pieces == 0)
        return TB_OK;
    bool blocks = b->cuts[TB_SYMBOL_IN] >= TB_CUT_BLOCKS || b->cuts[TB_SYMBOL_OUT] >= TB_CUT_BLOCKS;
    if (blocks && b->cuts[TB_SYMBOL_WORK] == TB_CUT_EVEN)
        return tb_error(TB_ERR_ARGUMENT, "%s: a program needs blocks of work space, and none is bound",
                        tb_operation_name(b->operation));
    if (buffer->type == NULL)
        buffer->type = &tb_type_byte;
    unsigned __int128 items = work_items(b, program);
    int error = tb_items_measure(buffer->type, items, &bytes, &origin);
    if (error != TB_OK)
        return error;
    char *memory = small;
    if (bytes > small_bytes && cache->bytes >= bytes) {
        memory = *work = cache->memory;
        *work_bytes = cache->bytes;
        cache->memory = NULL;
        cache->bytes = 0;
    } else if (bytes > small_bytes) {
        memory = *work = malloc(bytes);
        *work_bytes = bytes;
        if (memory == NULL)
            return tb_error(TB_ERR_MEMORY, "no memory for %llu bytes of work space", (unsigned long long)bytes);
    }
    buffer->base = (char *)((uintptr_t)memory + (uint64_t)origin);
    if (b->cuts[TB_SYMBOL_WORK] != TB_CUT_BLOCKS)
        buffer->count = (uint64_t)items;
    return TB_OK;
}

void tb_work_cache_give(struct tb_work_cache *cache, void *work, uint64_t bytes)
{
    if (bytes > WORK_KEPT_LIMIT || bytes <= cache->bytes) {
        free(work);
        return;
    }
    free(cache->memory);
    cache->memory = work;
    cache->bytes = bytes;
}
