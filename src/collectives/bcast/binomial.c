/* A tree in which each rank that has the data sends it to the one half of the remaining distance away, the furthest
 * first: ceil(log2 p) messages one after the other, each of the whole data. */
#include "collectives/algorithms.h"

static int make(const struct tb_collective *c, struct tb_program **program)
{
    const struct tb_slice all = {.symbol = TB_SYMBOL_OUT, .stride = 1, .count = 1};
    uint64_t relative = ((uint64_t)c->rank + c->size - c->root) % c->size;
    struct tb_builder b;
    tb_builder_open(&b, 1);
    /* The lowest set bit of the relative rank leads to the parent; below it lie the children. */
    uint64_t bit = 1;
    while (bit < c->size && (relative & bit) == 0)
        bit *= 2;
    if (relative != 0)
        tb_builder_receive(&b, (uint32_t)((relative - bit + c->root) % c->size), 0, all);
    for (bit /= 2; bit > 0; bit /= 2) {
        if (relative + bit >= c->size)
            continue;
        tb_builder_send(&b, (uint32_t)((relative + bit + c->root) % c->size), 0, all);
        if (relative != 0)
            tb_builder_after(&b, 0);
    }
    return tb_builder_finish(&b, program);
}

const struct tb_algorithm tb_bcast_binomial = {TB_OPERATION_BCAST, "binomial", NULL, make};
