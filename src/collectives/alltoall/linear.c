/* Everyone sends to everyone, beginning with the next rank. p - 1 messages from each, all at once; the reference. */
#include "collectives/algorithms.h"

static bool fits(const struct tb_collective *c)
{
    return !c->in_place;
}

static int make(const struct tb_collective *c, struct tb_program **program)
{
    uint32_t others = c->inter ? c->remote_size : c->size;
    struct tb_builder b;
    tb_builder_open(&b, others);
    for (uint32_t i = c->inter ? 0 : 1; i < others; i++) {
        uint32_t from = c->inter ? i : tb_rank_after(c, c->rank, c->size - i);
        tb_builder_receive(&b, from, 0, tb_slice_one(TB_SYMBOL_OUT, from));
    }
    for (uint32_t i = c->inter ? 0 : 1; i < others; i++) {
        uint32_t to = c->inter ? (c->rank + i) % others : tb_rank_after(c, c->rank, i);
        tb_builder_send(&b, to, 0, tb_slice_one(TB_SYMBOL_IN, to));
    }
    if (!c->inter)
        tb_builder_copy(&b, tb_slice_one(TB_SYMBOL_IN, c->rank), tb_slice_one(TB_SYMBOL_OUT, c->rank));
    return tb_builder_finish(&b, program);
}

const struct tb_algorithm tb_alltoall_linear = {TB_OPERATION_ALLTOALL, "linear", fits, make, NULL, NULL};
const struct tb_algorithm tb_alltoallv_linear = {TB_OPERATION_ALLTOALLV, "linear", fits, make, NULL, NULL};
const struct tb_algorithm tb_alltoallw_linear = {TB_OPERATION_ALLTOALLW, "linear", fits, make, NULL, NULL};
