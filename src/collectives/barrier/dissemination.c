/* In round k everyone tells the rank 2^k behind and hears of the one 2^k ahead (on the ring of ranks): after
 * ceil(log2 p) rounds everyone has heard of everyone, directly or not. p ceil(log2 p) empty messages, log2 p of them
 * one after the other. */
#include "collectives/algorithms.h"

static int make(const struct tb_collective *c, struct tb_program **program)
{
    const struct tb_slice nothing = {.symbol = TB_SYMBOL_OUT};
    struct tb_builder b;
    tb_builder_open(&b, 0);
    uint32_t told = 0, heard = 0; /* steps of the round before */
    uint16_t round = 0;
    for (uint64_t distance = 1; distance < c->size; distance *= 2, round++) {
        uint32_t to = (uint32_t)((c->rank + distance) % c->size);
        uint32_t from = (uint32_t)((c->rank + c->size - distance) % c->size);
        uint32_t send = tb_builder_send(&b, to, round, nothing);
        if (round > 0) {
            /* What was told a round ago came after everything heard earlier, so these two stand for all rounds. */
            tb_builder_after(&b, told);
            tb_builder_after(&b, heard);
        }
        told = send;
        heard = tb_builder_receive(&b, from, round, nothing);
    }
    return tb_builder_finish(&b, program);
}

const struct tb_algorithm tb_barrier_dissemination = {TB_OPERATION_BARRIER, "dissemination", NULL, make, NULL, NULL};
