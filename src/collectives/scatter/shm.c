/* Through common memory: the root writes all blocks, and everyone reads its own, long ones piece after piece. One
 * latency, and two copies of all blocks. Also for blocks of different sizes: a table says where each is. */
#include "collectives/algorithms.h"

static int make(const struct tb_collective *c, struct tb_program **program)
{
    const struct tb_contract contract = {TB_COMPOSITE_SCATTER, TB_DRIVER_COMMON, 1, 1};
    struct tb_builder b;
    tb_builder_open(&b, c->size);
    tb_builder_composite(&b, &contract, c->root,
                         c->rank == c->root ? tb_slice_many(TB_SYMBOL_IN, 0, c->size) : tb_slice_nothing(),
                         c->in_place ? tb_slice_nothing() : tb_slice_one(TB_SYMBOL_OUT, 0));
    return tb_builder_finish(&b, program);
}

const struct tb_algorithm tb_scatter_shm = {TB_OPERATION_SCATTER, "shm", tb_fits_deals, make, NULL, NULL};
const struct tb_algorithm tb_scatterv_shm = {TB_OPERATION_SCATTERV, "shm", tb_fits_deals, make, NULL, NULL};
