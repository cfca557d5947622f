/* Through common memory: everyone writes its blocks and reduces all that are for it, in the order of ranks, long ones
 * piece after piece. One latency and an eighth of it for each rank; all blocks are written once and read once. */
#include "collectives/algorithms.h"

static int make(const struct tb_collective *c, struct tb_program **program)
{
    const struct tb_contract contract = {TB_COMPOSITE_REDUCE_SCATTER, TB_DRIVER_COMMON, tb_common_rounds(c), 2};
    struct tb_builder b;
    tb_builder_open(&b, c->size);
    tb_builder_composite(&b, &contract, 0, tb_slice_many(TB_SYMBOL_IN, 0, c->size), tb_slice_one(TB_SYMBOL_OUT, 0));
    return tb_builder_finish(&b, program);
}

const struct tb_algorithm tb_reduce_scatter_shm = {TB_OPERATION_REDUCE_SCATTER, "shm", tb_fits_deals, make, NULL, NULL};
const struct tb_algorithm tb_reduce_scatter_block_shm = {
    TB_OPERATION_REDUCE_SCATTER_BLOCK, "shm", tb_fits_deals, make, NULL, NULL};
