/* Every rank passes each piece on to the next one: for n pieces of m bytes in all, (p + n - 2) messages of m/n one
 * after the other: (p + n - 2)(L + 2o + (m/n) G), near m G for large m. */
#include "collectives/algorithms.h"

static int make(const struct tb_collective *c, struct tb_program **program)
{
    return tb_tree_make_bcast(c, TB_TREE_CHAIN, 0, true, program);
}

const struct tb_algorithm tb_bcast_chain = {TB_OPERATION_BCAST, "chain", NULL, make, "piece", NULL};
