/* In round k everyone sends what it has to the rank 2^k further: it is the sum of the last 2^k ranks up to itself, and
 * what comes are the 2^k before those. ceil(log2 p) messages and reductions one after the other, each of the whole
 * data. The exclusive form hands everyone's data to the next rank first and does the same without rank 0: one message
 * more. */
#include "collectives/algorithms.h"

/* The rounds, among the ranks from `first` on; OUT has this rank's own. */
static void rounds(struct tb_builder *b, const struct tb_collective *c, uint32_t first, uint16_t edge)
{
    const struct tb_slice out = tb_slice_one(TB_SYMBOL_OUT, 0);
    for (uint64_t distance = 1; distance < c->size - first; distance *= 2, edge++) {
        if (c->rank + distance < c->size)
            tb_builder_send(b, (uint32_t)(c->rank + distance), edge, out);
        if (c->rank >= first + distance) {
            struct tb_slice before = tb_slice_one(TB_SYMBOL_WORK, edge % 2);
            tb_builder_receive(b, (uint32_t)(c->rank - distance), edge, before);
            tb_builder_reduce(b, before, out);
        }
    }
}

static int make_scan(const struct tb_collective *c, struct tb_program **program)
{
    struct tb_builder b;
    tb_builder_open(&b, 1);
    tb_builder_order(&b);
    if (!c->in_place)
        tb_builder_copy(&b, tb_slice_one(TB_SYMBOL_IN, 0), tb_slice_one(TB_SYMBOL_OUT, 0));
    rounds(&b, c, 0, 0);
    return tb_builder_finish(&b, program);
}

static int make_exscan(const struct tb_collective *c, struct tb_program **program)
{
    const struct tb_slice out = tb_slice_one(TB_SYMBOL_OUT, 0), work = tb_slice_one(TB_SYMBOL_WORK, 0);
    struct tb_builder b;
    tb_builder_open(&b, 1);
    tb_builder_order(&b);
    if (c->rank + 1 < c->size)
        tb_builder_send(&b, c->rank + 1, 0, tb_slice_one(tb_source(c), 0));
    if (c->rank > 0) {
        /* In place, what comes must not overwrite what has not left. */
        tb_builder_receive(&b, c->rank - 1, 0, c->in_place ? work : out);
        if (c->in_place)
            tb_builder_copy(&b, work, out);
        rounds(&b, c, 1, 1);
    }
    return tb_builder_finish(&b, program);
}

const struct tb_algorithm tb_scan_doubling = {TB_OPERATION_SCAN, "doubling", NULL, make_scan, NULL, NULL};
const struct tb_algorithm tb_exscan_doubling = {TB_OPERATION_EXSCAN, "doubling", NULL, make_exscan, NULL, NULL};
