/* Through common memory: everyone writes its data, and the root reduces it; of long data everyone reduces a part, and
 * the root reads the parts. One latency and an eighth of it for each rank, and twice that for long data, which is
 * copied once, reduced once (each rank 1/p of what all have) and copied again by the root. */
#include "collectives/algorithms.h"

static int make(const struct tb_collective *c, struct tb_program **program)
{
    const struct tb_contract contract = {TB_COMPOSITE_REDUCE, TB_DRIVER_COMMON, tb_common_rounds(c), 2};
    struct tb_builder b;
    tb_builder_open(&b, 1);
    struct tb_slice out = tb_slice_one(TB_SYMBOL_OUT, 0);
    tb_builder_composite(&b, &contract, c->root, tb_slice_one(tb_source(c), 0),
                         c->rank == c->root ? out : tb_slice_nothing());
    return tb_builder_finish(&b, program);
}

const struct tb_algorithm tb_reduce_shm = {TB_OPERATION_REDUCE, "shm", tb_fits_common, make, NULL, NULL};
