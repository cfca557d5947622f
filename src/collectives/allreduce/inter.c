/* Each group reduces along a binomial tree to its rank 0; these two exchange their results, which are broadcast along
 * the same trees: 1 + 2 ceil(log2 p) messages one after the other, each of the whole data. */
#include "collectives/algorithms.h"

static int make(const struct tb_collective *c, struct tb_program **program)
{
    struct tb_tree tree;
    uint32_t ready;
    const struct tb_slice out = tb_slice_one(TB_SYMBOL_OUT, 0);
    struct tb_builder b;
    tb_tree_group(&tree, c);
    tb_builder_open(&b, 1);
    tb_builder_order(&b);
    struct tb_slice sum = tb_tree_reduce(&b, &tree, c, 0, false, &ready);
    if (c->rank == 0) {
        tb_builder_send(&b, 0, 0, sum);
        tb_builder_receive(&b, 0, 0, out); /* nobody ends before all of both groups have begun */
        if (ready != TB_STEP_NONE)
            tb_builder_after(&b, ready);
    }
    tb_tree_broadcast(&b, &tree, 1, out, ready);
    return tb_builder_finish(&b, program);
}

const struct tb_algorithm tb_allreduce_inter = {TB_OPERATION_ALLREDUCE, "inter", tb_fits_inter, make, NULL, NULL};
