/* Through common memory: everyone writes its block once and reads those of all others, long ones piece after piece. One
 * latency and an eighth of it for each rank; p blocks are written and p (p - 1) read, where messages are both p (p - 1)
 * times. */
#include "collectives/algorithms.h"

static int make(const struct tb_collective *c, struct tb_program **program)
{
    const struct tb_contract contract = {TB_COMPOSITE_ALLGATHER, TB_DRIVER_COMMON, tb_common_rounds(c), 1};
    struct tb_builder b;
    tb_builder_open(&b, c->size);
    tb_builder_composite(&b, &contract, 0, tb_slice_one(tb_source(c), c->in_place ? c->rank : 0),
                         tb_slice_many(TB_SYMBOL_OUT, 0, c->size));
    return tb_builder_finish(&b, program);
}

const struct tb_algorithm tb_allgather_shm = {TB_OPERATION_ALLGATHER, "shm", tb_fits_common, make, NULL, NULL};
const struct tb_algorithm tb_allgatherv_shm = {TB_OPERATION_ALLGATHERV, "shm", tb_fits_common, make, NULL, NULL};
