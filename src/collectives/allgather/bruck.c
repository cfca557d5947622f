/* Bruck's: in round k everyone sends the up to 2^k blocks that it has to the rank 2^k before, and gets as many from the
 * one 2^k further, so that after ceil(log2 p) rounds all are there, beginning with the own one, and are put into their
 * places: ceil(log2 p)(L + 2o) + (p - 1) m G, and a copy of the whole. */
#include "collectives/algorithms.h"

static int make(const struct tb_collective *c, struct tb_program **program)
{
    uint32_t me = c->rank;
    uint16_t edge = 0;
    struct tb_builder b;
    tb_builder_open(&b, c->size);
    tb_builder_order(&b);
    tb_builder_copy(&b, tb_slice_one(tb_source(c), c->in_place ? me : 0), tb_slice_one(TB_SYMBOL_WORK, 0));
    for (uint32_t have = 1; have < c->size; edge++) {
        uint32_t more = have < c->size - have ? have : c->size - have;
        tb_builder_send(&b, tb_rank_after(c, me, c->size - have), edge, tb_slice_many(TB_SYMBOL_WORK, 0, more));
        tb_builder_join(&b);
        tb_builder_receive(&b, tb_rank_after(c, me, have), edge, tb_slice_many(TB_SYMBOL_WORK, have, more));
        tb_builder_join(&b);
        have += more;
    }
    tb_builder_copy(&b, tb_slice_many(TB_SYMBOL_WORK, 0, c->size - me), tb_slice_many(TB_SYMBOL_OUT, me, c->size - me));
    tb_builder_join(&b);
    if (me > 0) {
        tb_builder_copy(&b, tb_slice_many(TB_SYMBOL_WORK, c->size - me, me), tb_slice_many(TB_SYMBOL_OUT, 0, me));
        tb_builder_join(&b);
    }
    return tb_builder_finish(&b, program);
}

const struct tb_algorithm tb_allgather_bruck = {TB_OPERATION_ALLGATHER, "bruck", NULL, make, NULL, NULL};
