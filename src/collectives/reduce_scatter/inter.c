/* Each group reduces the whole along a binomial tree to its rank 0; these two exchange their results, and each sends to
 * everyone of its group the part that it is to have, since only they know how their group divides it: 1 + ceil(log2 p)
 * messages of the whole and p - 1 of parts one after the other. */
#include "collectives/algorithms.h"

static int make(const struct tb_collective *c, struct tb_program **program)
{
    struct tb_tree tree;
    uint32_t ready;
    const struct tb_slice out = tb_slice_one(TB_SYMBOL_OUT, 0);
    struct tb_builder b;
    tb_tree_group(&tree, c);
    tb_builder_open(&b, c->size);
    tb_builder_order(&b);
    struct tb_slice sum = tb_tree_reduce(&b, &tree, c, 0, false, &ready);
    if (c->rank != 0) {
        tb_builder_receive(&b, 0, 1, out);
        tb_builder_local(&b);
        return tb_builder_finish(&b, program);
    }
    struct tb_slice theirs = tb_slice_whole(&b, TB_SYMBOL_WORK, 2);
    tb_builder_send(&b, 0, 0, sum);
    tb_builder_join(&b);
    tb_builder_receive(&b, 0, 0, theirs);
    tb_builder_join(&b);
    for (uint32_t i = 1; i < c->size; i++) {
        tb_builder_send(&b, i, 1, tb_slice_one(TB_SYMBOL_WORK, theirs.first + i));
        tb_builder_local(&b);
    }
    tb_builder_copy(&b, tb_slice_one(TB_SYMBOL_WORK, theirs.first), out);
    return tb_builder_finish(&b, program);
}

const struct tb_algorithm tb_reduce_scatter_inter = {
    TB_OPERATION_REDUCE_SCATTER, "inter", tb_fits_inter, make, NULL, NULL};
const struct tb_algorithm tb_reduce_scatter_block_inter = {
    TB_OPERATION_REDUCE_SCATTER_BLOCK, "inter", tb_fits_inter, make, NULL, NULL};
