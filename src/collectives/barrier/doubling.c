/* Recursive doubling: in each round everyone exchanges an empty message with the rank whose number differs in one bit.
 * If p is no power of two, the first ranks stand two by two for one: log2 p' rounds, and two messages more:
 * (log2 p' + 2)(L + 2o). */
#include "collectives/algorithms.h"

static int make(const struct tb_collective *c, struct tb_program **program)
{
    const struct tb_fold fold = tb_fold_make(c->size, UINT32_MAX);
    const struct tb_slice nothing = tb_slice_nothing();
    uint32_t number, other, told = TB_STEP_NONE, heard = TB_STEP_NONE;
    uint16_t edge = 2;
    struct tb_builder b;
    tb_builder_open(&b, 0);
    bool out = tb_fold_out(&fold, c->rank, &number), paired = tb_fold_other(&fold, c->rank, &other);
    if (out) {
        tb_builder_send(&b, other, 0, nothing);
        tb_builder_receive(&b, other, 1, nothing);
        return tb_builder_finish(&b, program);
    }
    if (paired)
        heard = tb_builder_receive(&b, other, 0, nothing);
    for (uint32_t bit = 1; bit < fold.power; bit *= 2, edge++) {
        uint32_t peer = tb_fold_rank(&fold, number ^ bit), before = told;
        told = tb_builder_send(&b, peer, edge, nothing);
        /* What was told a round ago came after everything heard earlier. */
        if (before != TB_STEP_NONE)
            tb_builder_after(&b, before);
        if (heard != TB_STEP_NONE)
            tb_builder_after(&b, heard);
        heard = tb_builder_receive(&b, peer, edge, nothing);
    }
    if (paired) {
        tb_builder_send(&b, other, 1, nothing);
        tb_builder_after(&b, heard);
        if (told != TB_STEP_NONE)
            tb_builder_after(&b, told);
    }
    return tb_builder_finish(&b, program);
}

const struct tb_algorithm tb_barrier_doubling = {TB_OPERATION_BARRIER, "doubling", NULL, make, NULL, NULL};
