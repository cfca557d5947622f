/* Recursive doubling: in round k everyone exchanges the 2^k blocks that it has with the rank that differs in bit k, for
 * powers of two: log2 p (L + 2o) + (p - 1) m G. Blocks of different sizes lie apart and go each in a message of its
 * own. */
#include "collectives/algorithms.h"

static bool fits(const struct tb_collective *c)
{
    return !c->inter && (c->size & (c->size - 1)) == 0;
}

static int make(const struct tb_collective *c, struct tb_program **program)
{
    bool apart = c->operation == TB_OPERATION_ALLGATHERV;
    uint16_t edge = 0;
    struct tb_builder b;
    tb_builder_open(&b, c->size);
    tb_builder_order(&b);
    if (!c->in_place)
        tb_builder_copy(&b, tb_slice_one(TB_SYMBOL_IN, 0), tb_slice_one(TB_SYMBOL_OUT, c->rank));
    for (uint32_t bit = 1; bit < c->size; bit *= 2, edge++) {
        uint32_t peer = c->rank ^ bit;
        tb_builder_receive(&b, peer, edge, tb_slice_many(TB_SYMBOL_OUT, peer & -bit, bit));
        if (!apart)
            tb_builder_join(&b);
        tb_builder_send(&b, peer, edge, tb_slice_many(TB_SYMBOL_OUT, c->rank & -bit, bit));
        if (!apart)
            tb_builder_join(&b);
    }
    return tb_builder_finish(&b, program);
}

const struct tb_algorithm tb_allgather_doubling = {TB_OPERATION_ALLGATHER, "doubling", fits, make, NULL, NULL};
const struct tb_algorithm tb_allgatherv_doubling = {TB_OPERATION_ALLGATHERV, "doubling", fits, make, NULL, NULL};
