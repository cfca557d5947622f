/* A reduction along a chain to rank 0 and a broadcast back along the same, both piece by piece, so that they overlap:
 * for n pieces of m bytes in all (2p + n - 3)(L + 2o + (m/n)(G + r)): near m (G + r) for large m where a port sends and
 * receives at once. */
#include "collectives/algorithms.h"

static int make(const struct tb_collective *c, struct tb_program **program)
{
    return tb_tree_make_allreduce(c, TB_TREE_CHAIN, 0, program);
}

const struct tb_algorithm tb_allreduce_chain = {TB_OPERATION_ALLREDUCE, "chain", NULL, make, "piece", NULL};
