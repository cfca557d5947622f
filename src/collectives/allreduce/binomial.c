/* A reduction along a binomial tree to rank 0 and a broadcast along the same: 2 ceil(log2 p) messages one after the
 * other, each of the whole data; the reference. */
#include "collectives/algorithms.h"

static int make(const struct tb_collective *c, struct tb_program **program)
{
    struct tb_tree tree = {.size = c->size, .rank = c->rank};
    struct tb_builder b;
    tb_builder_open(&b, 1);
    tb_builder_order(&b);
    tb_tree_reduce(&b, &tree, c, c->rank == 0);
    tree.edge = 1;
    tb_tree_broadcast(&b, &tree, tb_slice_one(TB_SYMBOL_OUT, 0));
    return tb_builder_finish(&b, program);
}

const struct tb_algorithm tb_allreduce_binomial = {TB_OPERATION_ALLREDUCE, "binomial", NULL, make};
