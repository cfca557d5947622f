/* The group without the root reduces along a binomial tree to its rank 0, which sends the result to the root: 1 +
 * ceil(log2 p) messages one after the other, each of the whole data. */
#include "collectives/algorithms.h"

static int make(const struct tb_collective *c, struct tb_program **program)
{
    struct tb_builder b;
    tb_builder_open(&b, 1);
    tb_builder_order(&b);
    if (c->root == TB_ROOT_HERE) {
        tb_builder_receive(&b, 0, 0, tb_slice_one(TB_SYMBOL_OUT, 0));
    } else if (c->root != TB_ROOT_BESIDE) {
        struct tb_tree tree;
        uint32_t ready;
        tb_tree_group(&tree, c);
        struct tb_slice sum = tb_tree_reduce(&b, &tree, c, 0, false, &ready);
        if (c->rank == 0)
            tb_builder_send(&b, c->root, 0, sum);
    }
    return tb_builder_finish(&b, program);
}

const struct tb_algorithm tb_reduce_inter = {TB_OPERATION_REDUCE, "inter", tb_fits_inter, make, NULL, NULL};
