/* A tree in which everyone combines each piece from two others, with half of the rest behind each, with its own: for n
 * pieces of m bytes in all about (log2 p + n)(L + 2o + 2 (m/n)(G + r)): a port carries everything twice. If order
 * matters the tree's root is rank 0, which passes the result on to another root. */
#include "collectives/algorithms.h"

static int make(const struct tb_collective *c, struct tb_program **program)
{
    return tb_tree_make_reduce(c, TB_TREE_EVEN, 2, program);
}

const struct tb_algorithm tb_reduce_binary = {TB_OPERATION_REDUCE, "binary", NULL, make, "piece", NULL};
