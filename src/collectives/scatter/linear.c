/* The root sends to everyone. p - 1 messages one after the other; the reference, and for blocks of different sizes,
 * which only the root knows. */
#include "collectives/algorithms.h"

static int make(const struct tb_collective *c, struct tb_program **program)
{
    bool root = c->root == (c->inter ? TB_ROOT_HERE : c->rank);
    uint32_t others = c->inter ? c->remote_size : c->size;
    struct tb_builder b;
    tb_builder_open(&b, others);
    if (root) {
        for (uint32_t i = c->inter ? 0 : 1; i < others; i++) {
            uint32_t to = c->inter ? i : tb_rank_after(c, c->rank, i);
            tb_builder_send(&b, to, 0, tb_slice_one(TB_SYMBOL_IN, to));
        }
        if (!c->inter && !c->in_place)
            tb_builder_copy(&b, tb_slice_one(TB_SYMBOL_IN, c->rank), tb_slice_one(TB_SYMBOL_OUT, 0));
    } else if (c->root != TB_ROOT_BESIDE) {
        tb_builder_receive(&b, c->root, 0, tb_slice_one(TB_SYMBOL_OUT, 0));
    }
    return tb_builder_finish(&b, program);
}

const struct tb_algorithm tb_scatter_linear = {TB_OPERATION_SCATTER, "linear", tb_fits_any, make, NULL, NULL};
const struct tb_algorithm tb_scatterv_linear = {TB_OPERATION_SCATTERV, "linear", tb_fits_any, make, NULL, NULL};
