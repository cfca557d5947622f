/* A reduction along a binomial tree to rank 0 and a broadcast along the same: 2 ceil(log2 p) messages one after the
 * other, each of the whole data: 2 log2 p (L + 2o + m G); the reference. In pieces, levels overlap. */
#include "collectives/algorithms.h"

static int make(const struct tb_collective *c, struct tb_program **program)
{
    return tb_tree_make_allreduce(c, tb_tree_binomial(c), 0, program);
}

const struct tb_algorithm tb_allreduce_binomial = {TB_OPERATION_ALLREDUCE, "binomial", NULL, make, "piece", NULL};
