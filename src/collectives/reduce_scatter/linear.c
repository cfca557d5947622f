/* Everyone sends to everyone the part that it is to have, and combines what comes from the last rank down, so in order.
 * p - 1 messages and reductions one after the other, each of one block; the reference. In place the result must wait in
 * WORK until all parts have left. */
#include "collectives/algorithms.h"

#define ROOMS 8 /* for blocks that come while others are combined; behind them in WORK the result is made */

static int make(const struct tb_collective *c, struct tb_program **program)
{
    struct tb_slice mine = tb_slice_one(TB_SYMBOL_IN, c->rank), out = tb_slice_one(TB_SYMBOL_OUT, 0);
    struct tb_slice sum = c->in_place ? tb_slice_one(TB_SYMBOL_WORK, ROOMS) : out;
    struct tb_builder b;
    tb_builder_open(&b, c->size);
    tb_builder_order(&b);
    for (uint32_t i = 1; i < c->size; i++) {
        uint32_t to = tb_rank_after(c, c->rank, i);
        tb_builder_send(&b, to, 0, tb_slice_one(TB_SYMBOL_IN, to));
    }
    if (c->rank == c->size - 1)
        tb_builder_copy(&b, mine, sum);
    else
        tb_builder_receive(&b, c->size - 1, 0, sum);
    for (uint32_t rank = c->size - 1; rank-- > 0;) {
        struct tb_slice theirs = tb_slice_one(TB_SYMBOL_WORK, rank % ROOMS);
        if (rank != c->rank)
            tb_builder_receive(&b, rank, 0, theirs);
        tb_builder_reduce(&b, rank != c->rank ? theirs : mine, sum);
    }
    if (c->in_place) {
        uint32_t steps = b.program.step_count;
        tb_builder_copy(&b, sum, out);
        for (uint32_t i = 0; i < steps; i++)
            if (b.error == TB_OK && b.program.steps[i].slice.symbol == TB_SYMBOL_IN)
                tb_builder_after(&b, i);
    }
    return tb_builder_finish(&b, program);
}

const struct tb_algorithm tb_reduce_scatter_linear = {TB_OPERATION_REDUCE_SCATTER, "linear", NULL, make, NULL, NULL};
const struct tb_algorithm tb_reduce_scatter_block_linear = {
    TB_OPERATION_REDUCE_SCATTER_BLOCK, "linear", NULL, make, NULL, NULL};
