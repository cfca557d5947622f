/* A tree in which each rank combines what its children have with its own and sends it to its parent: ceil(log2 p)
 * messages and reductions one after the other, each of the whole data: log2 p (L + 2o + m (G + r)). In pieces, levels
 * overlap. If order matters, the tree's root is rank 0, which sends the result to another root: one message more. */
#include "collectives/algorithms.h"

static int make(const struct tb_collective *c, struct tb_program **program)
{
    return tb_tree_make_reduce(c, tb_tree_binomial(c), 0, program);
}

const struct tb_algorithm tb_reduce_binomial = {TB_OPERATION_REDUCE, "binomial", NULL, make, "piece", NULL};
