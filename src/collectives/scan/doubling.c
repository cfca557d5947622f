/* In round k everyone sends what it has to the rank 2^k further: it is the sum of the last 2^k ranks up to itself, and
 * what comes are the 2^k before those. ceil(log2 p) messages and reductions one after the other, each of the whole
 * data. The exclusive form hands everyone's data to the next rank first and does the same without rank 0: one message
 * more. In pieces, rounds overlap; that is tried only where no chain may run, which is better then. */
#include "collectives/algorithms.h"

static uint32_t candidates(const struct tb_collective *c, uint64_t *values, uint32_t room)
{
    return c->reproducible ? tb_candidates_piece(c, values, room) : 0;
}

/* The last added step goes piece by piece. */
static void in_pieces(struct tb_builder *b)
{
    if (b->program.pieces > 1)
        tb_builder_pipeline(b, 0);
}

static void copy(struct tb_builder *b, struct tb_slice from, struct tb_slice to)
{
    tb_builder_copy(b, from, to);
    in_pieces(b);
}

static void send(struct tb_builder *b, uint32_t rank, uint16_t edge, struct tb_slice slice)
{
    tb_builder_send(b, rank, edge, slice);
    in_pieces(b);
}

static void receive(struct tb_builder *b, uint32_t rank, uint16_t edge, struct tb_slice slice)
{
    tb_builder_receive(b, rank, edge, slice);
    in_pieces(b);
}

/* The rounds, among the ranks from `first` on; OUT has this rank's own. */
static void rounds(struct tb_builder *b, const struct tb_collective *c, uint32_t first, uint16_t edge)
{
    const struct tb_slice out = tb_slice_whole(b, TB_SYMBOL_OUT, 0);
    for (uint64_t distance = 1; distance < c->size - first; distance *= 2, edge++) {
        if (c->rank + distance < c->size)
            send(b, (uint32_t)(c->rank + distance), edge, out);
        if (c->rank >= first + distance) {
            struct tb_slice before = tb_slice_whole(b, TB_SYMBOL_WORK, edge % 2);
            receive(b, (uint32_t)(c->rank - distance), edge, before);
            tb_builder_reduce(b, before, out);
            in_pieces(b);
        }
    }
}

static int make_scan(const struct tb_collective *c, struct tb_program **program)
{
    struct tb_builder b;
    tb_builder_open(&b, tb_pieces(c));
    tb_builder_order(&b);
    if (!c->in_place)
        copy(&b, tb_slice_whole(&b, TB_SYMBOL_IN, 0), tb_slice_whole(&b, TB_SYMBOL_OUT, 0));
    rounds(&b, c, 0, 0);
    return tb_builder_finish(&b, program);
}

static int make_exscan(const struct tb_collective *c, struct tb_program **program)
{
    struct tb_builder b;
    tb_builder_open(&b, tb_pieces(c));
    tb_builder_order(&b);
    const struct tb_slice out = tb_slice_whole(&b, TB_SYMBOL_OUT, 0), work = tb_slice_whole(&b, TB_SYMBOL_WORK, 0);
    if (c->rank + 1 < c->size)
        send(&b, c->rank + 1, 0, tb_slice_whole(&b, tb_source(c), 0));
    if (c->rank > 0) {
        /* In place, what comes must not overwrite what has not left. */
        receive(&b, c->rank - 1, 0, c->in_place ? work : out);
        if (c->in_place)
            copy(&b, work, out);
        rounds(&b, c, 1, 1);
    }
    return tb_builder_finish(&b, program);
}

const struct tb_algorithm tb_scan_doubling = {TB_OPERATION_SCAN, "doubling", NULL, make_scan, "piece", candidates};
const struct tb_algorithm tb_exscan_doubling = {TB_OPERATION_EXSCAN, "doubling", NULL,
                                                make_exscan,         "piece",    candidates};
