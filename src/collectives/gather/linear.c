/* Everyone sends to the root. p - 1 messages, all at once; the reference, and for blocks of different sizes, which only
 * the root knows. */
#include "collectives/algorithms.h"

static int make(const struct tb_collective *c, struct tb_program **program)
{
    bool root = c->root == (c->inter ? TB_ROOT_HERE : c->rank);
    uint32_t others = c->inter ? c->remote_size : c->size;
    struct tb_builder b;
    tb_builder_open(&b, others);
    if (root) {
        for (uint32_t i = 0; i < others; i++)
            if (c->inter || i != c->rank)
                tb_builder_receive(&b, i, 0, tb_slice_one(TB_SYMBOL_OUT, i));
        if (!c->inter && !c->in_place)
            tb_builder_copy(&b, tb_slice_one(TB_SYMBOL_IN, 0), tb_slice_one(TB_SYMBOL_OUT, c->rank));
    } else if (c->root != TB_ROOT_BESIDE) {
        tb_builder_send(&b, c->root, 0, tb_slice_one(TB_SYMBOL_IN, 0));
    }
    return tb_builder_finish(&b, program);
}

const struct tb_algorithm tb_gather_linear = {TB_OPERATION_GATHER, "linear", tb_fits_any, make, NULL, NULL};
const struct tb_algorithm tb_gatherv_linear = {TB_OPERATION_GATHERV, "linear", tb_fits_any, make, NULL, NULL};
