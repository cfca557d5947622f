/* Everyone combines each piece that comes from the next rank with its own and passes it on to the one before: for n
 * pieces of m bytes in all (p + n - 2)(L + 2o + (m/n)(G + r)) where r is the time to combine a byte: near m (G + r) for
 * large m. If order matters the chain ends at rank 0, which passes the result on to another root. */
#include "collectives/algorithms.h"

static int make(const struct tb_collective *c, struct tb_program **program)
{
    return tb_tree_make_reduce(c, TB_TREE_CHAIN, 0, program);
}

const struct tb_algorithm tb_reduce_chain = {TB_OPERATION_REDUCE, "chain", NULL, make, "piece", NULL};
