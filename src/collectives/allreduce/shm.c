/* Through common memory: everyone writes its data and reduces that of all; of long data everyone reduces a part, and
 * all read the parts. One latency and an eighth of it for each rank, and twice that for long data, which is copied
 * once, reduced once (each rank 1/p of what all have) and copied again by everyone. */
#include "collectives/algorithms.h"

static int make(const struct tb_collective *c, struct tb_program **program)
{
    const struct tb_contract contract = {TB_COMPOSITE_ALLREDUCE, TB_DRIVER_COMMON, tb_common_rounds(c), 3};
    struct tb_builder b;
    tb_builder_open(&b, 1);
    tb_builder_composite(&b, &contract, 0, tb_slice_one(tb_source(c), 0), tb_slice_one(TB_SYMBOL_OUT, 0));
    return tb_builder_finish(&b, program);
}

const struct tb_algorithm tb_allreduce_shm = {TB_OPERATION_ALLREDUCE, "shm", tb_fits_common, make, NULL, NULL};
