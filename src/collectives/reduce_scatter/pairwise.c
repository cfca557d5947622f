/* In round k everyone sends to the rank k further the part that it is to have, and combines what comes from the one k
 * before, so that nobody is sent to by two at once; a few rounds overlap. (p - 1)(L + 2o + m/p (G + r)) for m bytes in
 * all; operands are not in order, so for commutative operations only. In place the result must wait in WORK until all
 * parts have left. */
#include "collectives/algorithms.h"

#define ROOMS 4 /* for blocks that come while others are combined; behind them in WORK the result is made */

static bool fits(const struct tb_collective *c)
{
    return !c->inter && c->commutative;
}

static int make(const struct tb_collective *c, struct tb_program **program)
{
    struct tb_slice mine = tb_slice_one(TB_SYMBOL_IN, c->rank), out = tb_slice_one(TB_SYMBOL_OUT, 0);
    struct tb_slice sum = c->in_place ? tb_slice_one(TB_SYMBOL_WORK, ROOMS) : out;
    uint32_t sends[ROOMS];
    struct tb_builder b;
    tb_builder_open(&b, c->size);
    tb_builder_order(&b);
    if (c->size == 1)
        tb_builder_copy(&b, mine, sum);
    for (uint32_t k = 1; k < c->size; k++) {
        uint32_t to = tb_rank_after(c, c->rank, k), from = tb_rank_after(c, c->rank, c->size - k);
        struct tb_slice theirs = k == 1 ? sum : tb_slice_one(TB_SYMBOL_WORK, k % ROOMS);
        uint32_t sent = tb_builder_send(&b, to, 0, tb_slice_one(TB_SYMBOL_IN, to));
        if (k > ROOMS)
            tb_builder_after(&b, sends[k % ROOMS]);
        sends[k % ROOMS] = sent;
        tb_builder_receive(&b, from, 0, theirs);
        tb_builder_reduce(&b, k == 1 ? mine : theirs, sum);
    }
    if (c->in_place) {
        tb_builder_copy(&b, sum, out);
        tb_after_input(&b);
    }
    return tb_builder_finish(&b, program);
}

const struct tb_algorithm tb_reduce_scatter_pairwise = {
    TB_OPERATION_REDUCE_SCATTER, "pairwise", fits, make, NULL, NULL};
const struct tb_algorithm tb_reduce_scatter_block_pairwise = {
    TB_OPERATION_REDUCE_SCATTER_BLOCK, "pairwise", fits, make, NULL, NULL};
