/* A tree in which each rank that has the data sends it to the one half of the remaining distance away, the furthest
 * first: ceil(log2 p) messages one after the other, each of the whole data: log2 p (L + 2o + m G). In pieces, levels
 * overlap, while the root's port still carries everything log2 p times. */
#include "collectives/algorithms.h"

static int make(const struct tb_collective *c, struct tb_program **program)
{
    return tb_tree_make_bcast(c, TB_TREE_BINOMIAL, 0, true, program);
}

const struct tb_algorithm tb_bcast_binomial = {TB_OPERATION_BCAST, "binomial", NULL, make, "piece", NULL};
