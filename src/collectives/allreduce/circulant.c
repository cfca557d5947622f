/* On the circulant graph: everyone comes to have the reduction of one part, and then collects the other parts. For m
 * bytes and any p 2 ceil(log2 p)(L + 2o) + 2 (p - 1)/p m G, and (p - 1)/p m to combine: what a ring sends in as few
 * rounds as halving and doubling take for powers of two. Operands are not in order, so for commutative operations only.
 */
#include "collectives/algorithms.h"

static bool fits(const struct tb_collective *c)
{
    return !c->inter && c->commutative && c->size > 1 && tb_has_parts(c);
}

static int make(const struct tb_collective *c, struct tb_program **program)
{
    struct tb_builder b;
    tb_builder_open(&b, c->size);
    tb_builder_order(&b);
    struct tb_slice out = tb_slice_whole(&b, TB_SYMBOL_OUT, 0);
    tb_circulant_combine(&b, c, tb_slice_whole(&b, tb_source(c), 0), out, tb_slice_whole(&b, TB_SYMBOL_WORK, 0));
    tb_circulant_collect(&b, c, out, false, TB_CIRCULANT_EDGES);
    return tb_builder_finish(&b, program);
}

const struct tb_algorithm tb_allreduce_circulant = {TB_OPERATION_ALLREDUCE, "circulant", fits, make, NULL, NULL};
