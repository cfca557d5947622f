/* Neighbour exchange, for even p: everyone exchanges its block with one neighbour on the ring of ranks and then, with
 * both in turn, the two blocks that came last: p/2 (L + 2o) + (p - 1) m G, and only neighbours talk. Blocks of
 * different sizes lie apart and go each in a message of its own. */
#include "collectives/algorithms.h"

static bool fits(const struct tb_collective *c)
{
    return !c->inter && c->size % 2 == 0;
}

static int make(const struct tb_collective *c, struct tb_program **program)
{
    bool even = c->rank % 2 == 0, apart = c->operation == TB_OPERATION_ALLGATHERV;
    uint32_t pair = c->rank & ~1u; /* blocks come in pairs, each beginning with an even one */
    uint32_t next = tb_rank_after(c, c->rank, 1), before = tb_rank_after(c, c->rank, c->size - 1);
    uint32_t peers[2] = {even ? next : before, even ? before : next};
    uint32_t steps[2] = {even ? 2 : c->size - 2, even ? c->size - 2 : 2}; /* from one pair that comes to the next */
    uint32_t come[2] = {pair, pair}, last = pair;
    struct tb_builder b;
    tb_builder_open(&b, c->size);
    tb_builder_order(&b);
    if (!c->in_place)
        tb_builder_copy(&b, tb_slice_one(TB_SYMBOL_IN, 0), tb_slice_one(TB_SYMBOL_OUT, c->rank));
    tb_builder_receive(&b, peers[0], 0, tb_slice_one(TB_SYMBOL_OUT, peers[0]));
    tb_builder_send(&b, peers[0], 0, tb_slice_one(TB_SYMBOL_OUT, c->rank));
    for (uint32_t k = 1; k < c->size / 2; k++) {
        uint32_t side = k % 2;
        come[side] = tb_rank_after(c, come[side], steps[side]);
        tb_builder_receive(&b, peers[side], (uint16_t)k, tb_slice_many(TB_SYMBOL_OUT, come[side], 2));
        if (!apart)
            tb_builder_join(&b);
        tb_builder_send(&b, peers[side], (uint16_t)k, tb_slice_many(TB_SYMBOL_OUT, last, 2));
        if (!apart)
            tb_builder_join(&b);
        last = come[side];
    }
    return tb_builder_finish(&b, program);
}

const struct tb_algorithm tb_allgather_neighbour = {TB_OPERATION_ALLGATHER, "neighbour", fits, make, NULL, NULL};
const struct tb_algorithm tb_allgatherv_neighbour = {TB_OPERATION_ALLGATHERV, "neighbour", fits, make, NULL, NULL};
