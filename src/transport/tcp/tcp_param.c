#include "transport/tcp/tcp_param.h"

struct tb_tcp_params tb_tcp_param;

const struct tb_param_row tb_tcp_param_rows[] = {
    {.name = "tcp_buffer",
     .type = TB_PARAM_SIZE,
     .flags = TB_PARAM_OR_ZERO,
     .fallback = "0",
     .low = 1 << 12,
     .high = 1 << 30,
     .help = "socket buffers of TCP connections; 0 leaves them to the kernel",
     .at = &tb_tcp_param.buffer},
    {.name = NULL},
};
