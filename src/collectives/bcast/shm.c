/* Through common memory: the root writes, and all others read at the same time, long data piece after piece. One
 * latency, and two copies that overlap. */
#include "collectives/algorithms.h"

static int make(const struct tb_collective *c, struct tb_program **program)
{
    const struct tb_contract contract = {TB_COMPOSITE_BCAST, TB_DRIVER_COMMON, 1, 1};
    struct tb_builder b;
    tb_builder_open(&b, 1);
    bool root = c->rank == c->root;
    struct tb_slice data = tb_slice_one(TB_SYMBOL_OUT, 0), nothing = tb_slice_nothing();
    tb_builder_composite(&b, &contract, c->root, root ? data : nothing, root ? nothing : data);
    return tb_builder_finish(&b, program);
}

const struct tb_algorithm tb_bcast_shm = {TB_OPERATION_BCAST, "shm", tb_fits_common, make, NULL, NULL};
