/* The root sends to everyone. (p - 1) messages one after the other; the reference. */
#include "collectives/algorithms.h"

static int make(const struct tb_collective *c, struct tb_program **program)
{
    const struct tb_slice all = {.symbol = TB_SYMBOL_OUT, .stride = 1, .count = 1};
    struct tb_builder b;
    tb_builder_open(&b, 1);
    if (c->rank != c->root) {
        tb_builder_receive(&b, c->root, 0, all);
    } else {
        for (uint32_t i = 1; i < c->size; i++)
            tb_builder_send(&b, (uint32_t)(((uint64_t)c->root + i) % c->size), 0, all);
    }
    return tb_builder_finish(&b, program);
}

const struct tb_algorithm tb_bcast_linear = {TB_OPERATION_BCAST, "linear", NULL, make, NULL, NULL};
