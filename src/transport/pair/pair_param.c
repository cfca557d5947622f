#include "transport/pair/pair_param.h"

struct tb_pair_params tb_pair_param;

const struct tb_param_row tb_pair_param_rows[] = {
    {.name = "pair_ring",
     .type = TB_PARAM_SIZE,
     .fallback = "64k",
     .low = 1 << 13,
     .high = 1 << 24,
     .help = "bytes of the ring between two processes of a host that were not started together",
     .at = &tb_pair_param.ring},
    {.name = NULL},
};
