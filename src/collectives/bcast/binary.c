/* A tree in which everyone passes each piece on to two others, with half of the rest behind each: for n pieces of m
 * bytes in all about (log2 p + n)(L + 2o + 2 (m/n) G): a port carries everything twice. */
#include "collectives/algorithms.h"

static int make(const struct tb_collective *c, struct tb_program **program)
{
    return tb_tree_make_bcast(c, TB_TREE_EVEN, 2, true, program);
}

const struct tb_algorithm tb_bcast_binary = {TB_OPERATION_BCAST, "binary", NULL, make, "piece", NULL};
