/* On the circulant graph: in each round everyone gives the sums of the blocks furthest behind its own to the rank whose
 * they begin with, and combines what comes for the others: ceil(log2 p)(L + 2o) + (p - 1)/p m (G + r) for m bytes in
 * all and any p; operands are not in order, so for commutative operations only. */
#include "collectives/algorithms.h"

static bool fits(const struct tb_collective *c)
{
    return !c->inter && c->commutative;
}

static int make(const struct tb_collective *c, struct tb_program **program)
{
    struct tb_builder b;
    tb_builder_open(&b, c->size);
    tb_builder_order(&b);
    tb_builder_whole(&b);
    struct tb_slice own = tb_slice_whole(&b, TB_SYMBOL_IN, 0), sum = tb_slice_whole(&b, TB_SYMBOL_WORK, 0);
    if (c->size == 1)
        tb_builder_copy(&b, own, sum);
    tb_circulant_combine(&b, c, own, sum, tb_slice_whole(&b, TB_SYMBOL_WORK, 1));
    tb_builder_copy(&b, tb_slice_range(sum, c->rank, c->rank + 1), tb_slice_one(TB_SYMBOL_OUT, 0));
    if (c->in_place)
        tb_after_input(&b);
    return tb_builder_finish(&b, program);
}

const struct tb_algorithm tb_reduce_scatter_circulant = {
    TB_OPERATION_REDUCE_SCATTER, "circulant", fits, make, NULL, NULL};
const struct tb_algorithm tb_reduce_scatter_block_circulant = {
    TB_OPERATION_REDUCE_SCATTER_BLOCK, "circulant", fits, make, NULL, NULL};
