/* Through common memory: everyone writes its block, and the root reads them, long ones piece after piece. One latency
 * and an eighth of it for each rank, and two copies of everyone's block. Also for blocks of different sizes: each
 * brings its length. */
#include "collectives/algorithms.h"

static int make(const struct tb_collective *c, struct tb_program **program)
{
    const struct tb_contract contract = {TB_COMPOSITE_GATHER, TB_DRIVER_COMMON, tb_common_rounds(c), 1};
    struct tb_builder b;
    tb_builder_open(&b, c->size);
    tb_builder_composite(&b, &contract, c->root, tb_slice_one(tb_source(c), c->in_place ? c->rank : 0),
                         c->rank == c->root ? tb_slice_many(TB_SYMBOL_OUT, 0, c->size) : tb_slice_nothing());
    return tb_builder_finish(&b, program);
}

const struct tb_algorithm tb_gather_shm = {TB_OPERATION_GATHER, "shm", tb_fits_common, make, NULL, NULL};
const struct tb_algorithm tb_gatherv_shm = {TB_OPERATION_GATHERV, "shm", tb_fits_common, make, NULL, NULL};
