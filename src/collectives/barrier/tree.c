/* Everyone tells its parent in a tree when all behind it have come, and rank 0 lets everyone go along the same tree.
 * With f children each, 2 log_f p (L + 2o + (f - 1) g). */
#include "collectives/algorithms.h"

static int make(const struct tb_collective *c, struct tb_program **program)
{
    const struct tb_slice nothing = tb_slice_nothing();
    struct tb_tree t;
    struct tb_builder b;
    tb_tree_mine(&t, TB_TREE_EVEN, c->argument != 0 ? c->argument : 2, c, 0);
    tb_builder_open(&b, 0);
    for (uint32_t i = 0; i < t.count; i++)
        tb_builder_receive(&b, t.children[i], 0, nothing);
    uint32_t heard = t.count, go = TB_STEP_NONE;
    if (!t.root) {
        tb_builder_send(&b, t.parent, 0, nothing);
        for (uint32_t i = 0; i < heard; i++)
            tb_builder_after(&b, i);
        go = tb_builder_receive(&b, t.parent, 1, nothing);
    }
    for (uint32_t k = 0; k < t.count; k++) {
        tb_builder_send(&b, t.children[k], 1, nothing);
        if (go != TB_STEP_NONE)
            tb_builder_after(&b, go);
        for (uint32_t i = 0; i < heard; i++)
            tb_builder_after(&b, i);
    }
    return tb_builder_finish(&b, program);
}

const struct tb_algorithm tb_barrier_tree = {TB_OPERATION_BARRIER, "tree", NULL, make, "fan-out", tb_candidates_fan};
