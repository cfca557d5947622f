/* A tree in which each rank that has the data sends it to the one half of the remaining distance away, the furthest
 * first: ceil(log2 p) messages one after the other, each of the whole data. */
#include "collectives/algorithms.h"

static int make(const struct tb_collective *c, struct tb_program **program)
{
    struct tb_builder b;
    tb_builder_open(&b, 1);
    tb_builder_order(&b);
    const struct tb_tree tree = {.size = c->size, .rank = c->rank, .root = c->root};
    tb_tree_broadcast(&b, &tree, tb_slice_one(TB_SYMBOL_OUT, 0));
    return tb_builder_finish(&b, program);
}

const struct tb_algorithm tb_bcast_binomial = {TB_OPERATION_BCAST, "binomial", NULL, make};
