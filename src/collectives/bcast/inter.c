/* The root sends to rank 0 of the other group, which sends on along a binomial tree: 1 + ceil(log2 p) messages one
 * after the other, each of the whole data. */
#include "collectives/algorithms.h"

static int make(const struct tb_collective *c, struct tb_program **program)
{
    const struct tb_slice all = tb_slice_one(TB_SYMBOL_OUT, 0);
    struct tb_builder b;
    tb_builder_open(&b, 1);
    tb_builder_order(&b);
    if (c->root == TB_ROOT_HERE) {
        tb_builder_send(&b, 0, 0, all);
    } else if (c->root != TB_ROOT_BESIDE) {
        struct tb_tree tree;
        tb_tree_group(&tree, c);
        if (c->rank == 0)
            tb_builder_receive(&b, c->root, 0, all);
        tb_tree_broadcast(&b, &tree, 1, all, TB_STEP_NONE);
    }
    return tb_builder_finish(&b, program);
}

const struct tb_algorithm tb_bcast_inter = {TB_OPERATION_BCAST, "inter", tb_fits_inter, make, NULL, NULL};
