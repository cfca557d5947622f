/* Everyone tells rank 0, which tells everyone. 2 (p - 1) messages, all through rank 0; the reference. */
#include "collectives/algorithms.h"

static int make(const struct tb_collective *c, struct tb_program **program)
{
    const struct tb_slice nothing = {.symbol = TB_SYMBOL_OUT};
    struct tb_builder b;
    tb_builder_open(&b, 0);
    if (c->rank == 0) {
        for (uint32_t rank = 1; rank < c->size; rank++)
            tb_builder_receive(&b, rank, 0, nothing);
        for (uint32_t rank = 1; rank < c->size; rank++) {
            tb_builder_send(&b, rank, 1, nothing);
            for (uint32_t other = 1; other < c->size; other++)
                tb_builder_after(&b, other - 1);
        }
    } else {
        tb_builder_send(&b, 0, 0, nothing);
        tb_builder_receive(&b, 0, 1, nothing);
    }
    return tb_builder_finish(&b, program);
}

static bool fits(const struct tb_collective *c)
{
    return !c->inter && c->size <= 1024; /* rank 0's program has a dependency for each pair of ranks */
}

const struct tb_algorithm tb_barrier_linear = {TB_OPERATION_BARRIER, "linear", fits, make, NULL, NULL};
