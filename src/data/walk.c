/* Walking a layout: finding a byte costs the depth of the tree and the logarithm of its lists; copying finds its first
 * byte so, then goes through the tree once. */
#include "data/kernel.h"
#include "data/layout.h"

/* The block that holds byte `at`: the last one that begins there or before. */
static uint64_t find_block(const struct tb_layout *l, uint64_t at)
{
    uint64_t low = 0, high = l->count;
    while (high - low > 1) {
        uint64_t middle = low + (high - low) / 2;
        if (l->starts[middle] <= at)
            low = middle;
        else
            high = middle;
    }
    return low;
}

static inline uint64_t turn_of(uint64_t at, uint64_t piece)
{
    return at < piece ? 0 : at / piece;
}

struct tb_layout_place tb_layout_find(const struct tb_layout *l, uint64_t size, uint64_t at)
{
    int64_t displacement = 0;
    uint64_t turn;
    while (l != NULL) {
        if (l->form == TB_LAYOUT_LOOP) {
            turn = turn_of(at, l->piece);
            displacement += (int64_t)turn * l->stride;
            size = l->piece;
            at -= turn * size;
            l = l->child;
            continue;
        }
        turn = l->piece > 0 ? turn_of(at, l->piece) : find_block(l, at);
        uint64_t start = l->piece > 0 ? turn * l->piece : l->starts[turn];
        size = l->piece > 0 ? l->piece : l->starts[turn + 1] - start;
        at -= start;
        displacement += l->displacements[turn];
        if (l->form == TB_LAYOUT_PARTS) {
            l = l->children[turn];
        } else if (l->unit == 0) {
            l = NULL;
        } else {
            turn = turn_of(at, l->unit);
            displacement += (int64_t)turn * l->stride;
            size = l->unit;
            at -= turn * size;
            l = l->child;
        }
    }
    return (struct tb_layout_place){.displacement = displacement + (int64_t)at, .run = size - at};
}

static void copy_whole(const struct tb_layout *l, char *memory, char *packed, bool gather);
static void copy_part(const struct tb_layout *l, char *memory, char *packed, uint64_t from, uint64_t n, bool gather);

/* `count` whole turns of a layout of `size` bytes. */
static void copy_turns(const struct tb_layout *l, uint64_t size, int64_t stride, uint64_t count, char *memory,
                       char *packed, bool gather)
{
    if (l == NULL) {
        tb_kernel_loop(memory, stride, packed, size, count, gather);
    } else if (l->form == TB_LAYOUT_LOOP && l->child == NULL) {
        tb_kernel_grid(memory, l->stride, l->count, stride, packed, l->piece, count, gather);
    } else if (l->form == TB_LAYOUT_LIST && l->unit == 0 && l->count <= TB_LAYOUT_RUNS_LISTED && l->starts != NULL &&
               count > 1) {
        tb_kernel_records(memory, stride, count, l->displacements, l->starts, l->count, packed, gather);
    } else {
        for (uint64_t i = 0; i < count; i++)
            copy_whole(l, tb_shifted(memory, (int64_t)i * stride), packed + i * size, gather);
    }
}

/* Blocks [first, last) of a list. */
static void copy_blocks(const struct tb_layout *l, uint64_t first, uint64_t last, char *memory, char *packed,
                        bool gather)
{
    if (l->unit == 0 && l->piece > 0) {
        tb_kernel_scattered(memory, l->displacements + first, l->far, packed, l->piece, last - first, gather);
        return;
    }
    if (l->unit == 0) {
        tb_kernel_ragged(memory, l->displacements + first, l->starts + first, last - first, packed, gather);
        return;
    }
    uint64_t piece = l->piece;
    for (uint64_t i = first; i < last; i++) {
        if (l->piece == 0)
            piece = l->starts[i + 1] - l->starts[i];
        copy_turns(l->child, l->unit, l->stride, piece / l->unit, tb_shifted(memory, l->displacements[i]), packed,
                   gather);
        packed += piece;
    }
}

static void copy_whole(const struct tb_layout *l, char *memory, char *packed, bool gather)
{
    switch (l->form) {
    case TB_LAYOUT_LOOP:
        copy_turns(l->child, l->piece, l->stride, l->count, memory, packed, gather);
        break;
    case TB_LAYOUT_LIST:
        copy_blocks(l, 0, l->count, memory, packed, gather);
        break;
    case TB_LAYOUT_PARTS:
        for (uint64_t i = 0; i < l->count; i++) {
            char *place = tb_shifted(memory, l->displacements[i]);
            if (l->children[i] == NULL)
                tb_kernel_run(place, packed + l->starts[i], l->starts[i + 1] - l->starts[i], gather);
            else
                copy_whole(l->children[i], place, packed + l->starts[i], gather);
        }
        break;
    }
}

/* Bytes [from, from + n) of the block or part `i`, of `size` bytes. */
static void copy_in_block(const struct tb_layout *l, uint64_t i, char *memory, char *packed, uint64_t from, uint64_t n,
                          bool gather)
{
    memory = tb_shifted(memory, l->displacements[i]);
    if (l->form == TB_LAYOUT_PARTS)
        copy_part(l->children[i], memory, packed, from, n, gather);
    else if (l->unit == 0)
        tb_kernel_run(memory + from, packed, n, gather);
    else
        tb_layout_copy(l->child, l->unit, l->stride, memory, packed, from, n, gather);
}

/* The part of a list or of parts: the rest of the first block, whole blocks, the beginning of the last. */
static void copy_some_blocks(const struct tb_layout *l, char *memory, char *packed, uint64_t from, uint64_t n,
                             bool gather)
{
    bool equal = l->piece > 0;
    uint64_t end = from + n;
    uint64_t i = equal ? turn_of(from, l->piece) : find_block(l, from);
    uint64_t last = equal ? turn_of(end, l->piece) : (end == l->size ? l->count : find_block(l, end));
    uint64_t start = equal ? i * l->piece : l->starts[i];
    if (i == last || from > start) {
        uint64_t stop = equal ? start + l->piece : l->starts[i + 1];
        uint64_t part = (end < stop ? end : stop) - from;
        copy_in_block(l, i, memory, packed, from - start, part, gather);
        packed += part;
        n -= part;
        i++;
    }
    if (i < last) {
        uint64_t bytes = equal ? (last - i) * l->piece : l->starts[last] - l->starts[i];
        if (l->form == TB_LAYOUT_LIST) {
            copy_blocks(l, i, last, memory, packed, gather);
        } else {
            for (uint64_t j = i; j < last; j++)
                copy_in_block(l, j, memory, packed + (l->starts[j] - l->starts[i]), 0, l->starts[j + 1] - l->starts[j],
                              gather);
        }
        packed += bytes;
        n -= bytes;
    }
    if (n > 0)
        copy_in_block(l, last, memory, packed, 0, n, gather);
}

static void copy_part(const struct tb_layout *l, char *memory, char *packed, uint64_t from, uint64_t n, bool gather)
{
    if (l == NULL)
        tb_kernel_run(memory + from, packed, n, gather);
    else if (n == l->size)
        copy_whole(l, memory, packed, gather);
    else if (l->form == TB_LAYOUT_LOOP)
        tb_layout_copy(l->child, l->piece, l->stride, memory, packed, from, n, gather);
    else
        copy_some_blocks(l, memory, packed, from, n, gather);
}

void tb_layout_copy(const struct tb_layout *l, uint64_t size, int64_t stride, char *memory, char *packed, uint64_t from,
                    uint64_t n, bool gather)
{
    TB_ASSERT(size > 0);
    uint64_t turn = turn_of(from, size);
    uint64_t within = from - turn * size;
    memory = tb_shifted(memory, (int64_t)turn * stride);
    if (within > 0) {
        uint64_t part = n < size - within ? n : size - within;
        copy_part(l, memory, packed, within, part, gather);
        packed += part;
        n -= part;
        memory = tb_shifted(memory, stride);
    }
    uint64_t turns = n < size ? 0 : n / size;
    if (turns > 0) {
        copy_turns(l, size, stride, turns, memory, packed, gather);
        memory = tb_shifted(memory, (int64_t)turns * stride);
        packed += turns * size;
        n -= turns * size;
    }
    if (n > 0)
        copy_part(l, memory, packed, 0, n, gather);
}
