/* Through common memory: everyone writes its data and reduces that of the ranks before it. One latency and an eighth of
 * it for each rank; data is written p times and read p (p + 1) / 2 times, so this is for short data or few ranks. */
#include "collectives/algorithms.h"

static int make_kind(const struct tb_collective *c, enum tb_composite kind, struct tb_program **program)
{
    uint32_t passes = 1 + (c->size + 1) / 2;
    const struct tb_contract contract = {(uint8_t)kind, TB_DRIVER_COMMON, tb_common_rounds(c),
                                         passes < UINT16_MAX ? (uint16_t)passes : UINT16_MAX};
    bool gets = kind == TB_COMPOSITE_SCAN || c->rank > 0;
    struct tb_builder b;
    tb_builder_open(&b, 1);
    tb_builder_composite(&b, &contract, 0, tb_slice_one(tb_source(c), 0),
                         gets ? tb_slice_one(TB_SYMBOL_OUT, 0) : tb_slice_nothing());
    return tb_builder_finish(&b, program);
}

static int make_scan(const struct tb_collective *c, struct tb_program **program)
{
    return make_kind(c, TB_COMPOSITE_SCAN, program);
}

static int make_exscan(const struct tb_collective *c, struct tb_program **program)
{
    return make_kind(c, TB_COMPOSITE_EXSCAN, program);
}

const struct tb_algorithm tb_scan_shm = {TB_OPERATION_SCAN, "shm", tb_fits_common, make_scan, NULL, NULL};
const struct tb_algorithm tb_exscan_shm = {TB_OPERATION_EXSCAN, "shm", tb_fits_common, make_exscan, NULL, NULL};
