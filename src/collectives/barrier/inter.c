/* In each group everyone tells rank 0 along a binomial tree, the two ranks 0 tell each other, and each tells its group
 * along the same tree. About 2 log2 p + 1 empty messages one after the other. */
#include "collectives/algorithms.h"

static int make(const struct tb_collective *c, struct tb_program **program)
{
    const struct tb_slice nothing = tb_slice_nothing();
    struct tb_tree tree;
    struct tb_builder b;
    tb_tree_group(&tree, c);
    tb_builder_open(&b, 0);
    uint32_t heard = tree.count; /* steps before it are what children have told */
    for (uint32_t i = heard; i-- > 0;) {
        tb_builder_receive(&b, tree.children[i], 0, nothing);
        tb_builder_local(&b);
    }
    uint32_t parent = tree.root ? 0 : tree.parent; /* of the root: the other one */
    tb_builder_send(&b, parent, 0, nothing);
    if (!tree.root)
        tb_builder_local(&b);
    for (uint32_t i = 0; i < heard; i++)
        tb_builder_after(&b, i);
    uint32_t go = tb_builder_receive(&b, parent, tree.root ? 0 : 1, nothing);
    if (!tree.root)
        tb_builder_local(&b);
    for (uint32_t k = 0; k < tree.count; k++) {
        tb_builder_send(&b, tree.children[k], 1, nothing);
        tb_builder_local(&b);
        tb_builder_after(&b, go);
        for (uint32_t i = 0; i < heard; i++)
            tb_builder_after(&b, i);
    }
    return tb_builder_finish(&b, program);
}

const struct tb_algorithm tb_barrier_inter = {TB_OPERATION_BARRIER, "inter", tb_fits_inter, make, NULL, NULL};
