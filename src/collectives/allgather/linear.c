/* Everyone sends to everyone. p - 1 messages from each, all at once; the reference. */
#include "collectives/algorithms.h"

static int make(const struct tb_collective *c, struct tb_program **program)
{
    uint32_t others = c->inter ? c->remote_size : c->size;
    struct tb_slice mine = tb_slice_one(tb_source(c), c->in_place ? c->rank : 0);
    struct tb_builder b;
    tb_builder_open(&b, others);
    for (uint32_t i = c->inter ? 0 : 1; i < others; i++) {
        uint32_t from = c->inter ? i : tb_rank_after(c, c->rank, c->size - i);
        tb_builder_receive(&b, from, 0, tb_slice_one(TB_SYMBOL_OUT, from));
    }
    for (uint32_t i = c->inter ? 0 : 1; i < others; i++)
        tb_builder_send(&b, c->inter ? (c->rank + i) % others : tb_rank_after(c, c->rank, i), 0, mine);
    if (!c->inter && !c->in_place)
        tb_builder_copy(&b, mine, tb_slice_one(TB_SYMBOL_OUT, c->rank));
    return tb_builder_finish(&b, program);
}

const struct tb_algorithm tb_allgather_linear = {TB_OPERATION_ALLGATHER, "linear", tb_fits_any, make, NULL, NULL};
const struct tb_algorithm tb_allgatherv_linear = {TB_OPERATION_ALLGATHERV, "linear", tb_fits_any, make, NULL, NULL};
