/* A tree in which each rank combines what its children have with its own and sends it to its parent: ceil(log2 p)
 * messages and reductions one after the other, each of the whole data. If order matters, the tree's root is rank 0,
 * which sends the result to another root: one message more. */
#include "collectives/algorithms.h"

static int make(const struct tb_collective *c, struct tb_program **program)
{
    struct tb_tree tree = {.size = c->size, .rank = c->rank, .root = c->commutative ? c->root : 0};
    struct tb_builder b;
    tb_builder_open(&b, 1);
    tb_builder_order(&b);
    struct tb_slice sum = tb_tree_reduce(&b, &tree, c, c->rank == tree.root && tree.root == c->root);
    if (tree.root != c->root && c->rank == 0)
        tb_builder_send(&b, c->root, 1, sum);
    if (tree.root != c->root && c->rank == c->root)
        tb_builder_receive(&b, 0, 1, tb_slice_one(TB_SYMBOL_OUT, 0));
    return tb_builder_finish(&b, program);
}

const struct tb_algorithm tb_reduce_binomial = {TB_OPERATION_REDUCE, "binomial", NULL, make};
