/* In place: every two ranks swap a block. In round k those meet whose ranks add up to k (modulo p), which is one pair
 * for everyone, and every rank goes through the rounds in order, so that they do not wait for each other in a circle.
 * The higher rank sends before it receives; the lower one receives into WORK, which has room for a few blocks, and
 * copies when its own has left. p - 1 messages one after the other. */
#include "collectives/algorithms.h"

#define ROOMS 4 /* blocks in WORK */

static bool fits(const struct tb_collective *c)
{
    return c->in_place && !c->inter;
}

static int make(const struct tb_collective *c, struct tb_program **program)
{
    struct tb_builder b;
    uint32_t room = 0;
    tb_builder_open(&b, c->size);
    tb_builder_order(&b);
    for (uint32_t k = 0; k < c->size; k++) {
        uint32_t peer = tb_rank_after(c, c->size - c->rank, k);
        struct tb_slice block = tb_slice_one(TB_SYMBOL_OUT, peer);
        if (peer == c->rank)
            continue;
        if (peer < c->rank) {
            tb_builder_send(&b, peer, 0, block);
            tb_builder_receive(&b, peer, 0, block);
        } else {
            struct tb_slice work = tb_slice_one(TB_SYMBOL_WORK, room++ % ROOMS);
            tb_builder_receive(&b, peer, 0, work);
            tb_builder_like(&b, block);
            tb_builder_send(&b, peer, 0, block);
            tb_builder_copy(&b, work, block);
        }
    }
    return tb_builder_finish(&b, program);
}

const struct tb_algorithm tb_alltoall_swap = {TB_OPERATION_ALLTOALL, "swap", fits, make, NULL, NULL};
const struct tb_algorithm tb_alltoallv_swap = {TB_OPERATION_ALLTOALLV, "swap", fits, make, NULL, NULL};
const struct tb_algorithm tb_alltoallw_swap = {TB_OPERATION_ALLTOALLW, "swap", fits, make, NULL, NULL};
