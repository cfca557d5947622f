/* Everyone passes on to the next rank what comes from the one before: p - 1 messages one after the other, each of one
 * block. A handful of steps for any number of ranks: what comes are the blocks of the ranks below, from the nearest
 * down to rank 0, and then those from the last rank down to the one above. */
#include "collectives/algorithms.h"

/* The pieces from `high` down, so many. */
static struct tb_slice down(uint32_t high, uint32_t count)
{
    return (struct tb_slice){.symbol = TB_SYMBOL_OUT, .first = high, .stride = -1, .count = count};
}

static int make(const struct tb_collective *c, struct tb_program **program)
{
    uint32_t me = c->rank, last = c->size - 1, lower = 0, upper = 0, own = 0;
    struct tb_builder b;
    tb_builder_open(&b, c->size);
    if (!c->in_place)
        own = tb_builder_copy(&b, tb_slice_one(TB_SYMBOL_IN, 0), tb_slice_one(TB_SYMBOL_OUT, me));
    if (me > 0)
        lower = tb_builder_receive(&b, me - 1, 0, down(me - 1, me));
    if (me < last)
        upper = tb_builder_receive(&b, me > 0 ? me - 1 : last, 1, down(last, last - me));
    if (last == 0)
        return tb_builder_finish(&b, program);
    /* The next rank gets my block and what I get, but for its own block. For rank 0 the last rank is above. */
    if (me < last)
        tb_builder_send(&b, me + 1, 0, down(me, me + 1));
    else
        tb_builder_send(&b, 0, 1, down(me, me));
    if (!c->in_place)
        tb_builder_after(&b, own);
    if (me > 0)
        tb_builder_after_shifted(&b, lower);
    if (me + 1 < last) {
        tb_builder_send(&b, me + 1, 1, down(last, last - me - 1));
        tb_builder_after_pieces(&b, upper);
    }
    return tb_builder_finish(&b, program);
}

const struct tb_algorithm tb_allgather_ring = {TB_OPERATION_ALLGATHER, "ring", NULL, make, NULL, NULL};
const struct tb_algorithm tb_allgatherv_ring = {TB_OPERATION_ALLGATHERV, "ring", NULL, make, NULL, NULL};
