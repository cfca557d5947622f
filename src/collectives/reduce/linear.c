/* Everyone sends to the root, which combines from the last rank down, so in order. p - 1 messages and reductions one
 * after the other; the reference. */
#include "collectives/algorithms.h"

#define ROOMS 2 /* for data that comes while other data is combined */

static int make(const struct tb_collective *c, struct tb_program **program)
{
    struct tb_slice mine = tb_slice_one(tb_source(c), 0), out = tb_slice_one(TB_SYMBOL_OUT, 0);
    struct tb_builder b;
    tb_builder_open(&b, 1);
    tb_builder_order(&b);
    if (c->rank != c->root) {
        tb_builder_send(&b, c->root, 0, mine);
        return tb_builder_finish(&b, program);
    }
    /* What OUT holds in place is needed until its turn. */
    bool last = c->rank == c->size - 1;
    struct tb_slice sum = c->in_place && !last ? tb_slice_one(TB_SYMBOL_WORK, ROOMS) : out;
    if (!last)
        tb_builder_receive(&b, c->size - 1, 0, sum);
    else if (!c->in_place)
        tb_builder_copy(&b, mine, sum);
    for (uint32_t rank = c->size - 1; rank-- > 0;) {
        struct tb_slice theirs = tb_slice_one(TB_SYMBOL_WORK, rank % ROOMS);
        if (rank != c->rank)
            tb_builder_receive(&b, rank, 0, theirs);
        tb_builder_reduce(&b, rank != c->rank ? theirs : mine, sum);
    }
    if (sum.symbol != TB_SYMBOL_OUT)
        tb_builder_copy(&b, sum, out);
    return tb_builder_finish(&b, program);
}

const struct tb_algorithm tb_reduce_linear = {TB_OPERATION_REDUCE, "linear", NULL, make, NULL, NULL};
