#include "transport/shm/shm_param.h"

struct tb_shm_params tb_shm_param;

const struct tb_param_row tb_shm_param_rows[] = {
    {.name = "shm_ring",
     .type = TB_PARAM_SIZE,
     .fallback = "128k",
     .low = 1 << 13,
     .high = 1 << 24,
     .help = "bytes of the ring between two ranks of a host",
     .at = &tb_shm_param.ring},
    {.name = "shm_single_copy",
     .type = TB_PARAM_SIZE,
     .fallback = "0",
     .high = INT64_MAX,
     .help = "messages from this size on are copied once, straight from the sender's memory; 0: none",
     .at = &tb_shm_param.single_copy},
    {.name = "cross_memory",
     .type = TB_PARAM_BOOL,
     .fallback = "yes",
     .help = "allow reading another rank's memory (cross-memory attach)",
     .at = &tb_shm_param.cross_memory},
    {.name = NULL},
};
