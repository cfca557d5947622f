/* In each group everyone tells rank 0 along a binomial tree, the two ranks 0 tell each other, and each tells its group
 * along the same tree. About 2 log2 p + 1 empty messages one after the other. */
#include "collectives/algorithms.h"

static int make(const struct tb_collective *c, struct tb_program **program)
{
    const struct tb_slice nothing = tb_slice_nothing();
    struct tb_builder b;
    uint32_t heard = 0, go; /* steps before `heard` are what children have told */
    tb_builder_open(&b, 0);
    uint64_t bit = 1;
    for (; bit < c->size && (c->rank & bit) == 0; bit *= 2)
        if (c->rank + bit < c->size) {
            heard = tb_builder_receive(&b, (uint32_t)(c->rank + bit), 0, nothing) + 1;
            tb_builder_local(&b);
        }
    uint32_t parent = c->rank == 0 ? 0 : (uint32_t)(c->rank - bit);
    tb_builder_send(&b, parent, 0, nothing);
    if (c->rank != 0)
        tb_builder_local(&b);
    for (uint32_t i = 0; i < heard; i++)
        tb_builder_after(&b, i);
    go = tb_builder_receive(&b, parent, c->rank != 0 ? 1 : 0, nothing);
    if (c->rank != 0)
        tb_builder_local(&b);
    for (bit /= 2; bit > 0; bit /= 2)
        if (c->rank + bit < c->size) {
            tb_builder_send(&b, (uint32_t)(c->rank + bit), 1, nothing);
            tb_builder_local(&b);
            tb_builder_after(&b, go);
            for (uint32_t i = 0; i < heard; i++)
                tb_builder_after(&b, i);
        }
    return tb_builder_finish(&b, program);
}

const struct tb_algorithm tb_barrier_inter = {TB_OPERATION_BARRIER, "inter", tb_fits_inter, make, NULL, NULL};
