/* A reduction along a tree of two children each to rank 0 and a broadcast back along the same, both piece by piece, so
 * that they overlap: for n pieces of m bytes in all about (2 log2 p + n)(L + 2o + 3 (m/n)(G + r)), since a port carries
 * everything three times in each direction. */
#include "collectives/algorithms.h"

static int make(const struct tb_collective *c, struct tb_program **program)
{
    return tb_tree_make_allreduce(c, TB_TREE_EVEN, 2, program);
}

const struct tb_algorithm tb_allreduce_binary = {TB_OPERATION_ALLREDUCE, "binary", NULL, make, "piece", NULL};
