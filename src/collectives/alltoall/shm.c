/* Through common memory: everyone writes its blocks with a table of where each is, and reads those that are for it; of
 * long blocks a piece of each at a time. One latency and an eighth of it for each rank, and two copies of all blocks.
 * In place only with blocks of one size, where a piece that has come goes where one has just left. */
#include "collectives/algorithms.h"

static bool fits_apart(const struct tb_collective *c)
{
    return tb_fits_deals(c) && !c->in_place;
}

static int make(const struct tb_collective *c, struct tb_program **program)
{
    const struct tb_contract contract = {TB_COMPOSITE_ALLTOALL, TB_DRIVER_COMMON, tb_common_rounds(c), 2};
    struct tb_builder b;
    tb_builder_open(&b, c->size);
    tb_builder_composite(&b, &contract, 0, tb_slice_many(tb_source(c), 0, c->size),
                         tb_slice_many(TB_SYMBOL_OUT, 0, c->size));
    return tb_builder_finish(&b, program);
}

const struct tb_algorithm tb_alltoall_shm = {TB_OPERATION_ALLTOALL, "shm", tb_fits_deals, make, NULL, NULL};
const struct tb_algorithm tb_alltoallv_shm = {TB_OPERATION_ALLTOALLV, "shm", fits_apart, make, NULL, NULL};
const struct tb_algorithm tb_alltoallw_shm = {TB_OPERATION_ALLTOALLW, "shm", fits_apart, make, NULL, NULL};
