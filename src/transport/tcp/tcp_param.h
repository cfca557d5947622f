/* What the parameters of tcp are set to; settled with all others, before threads exist, and only read afterwards. */
#ifndef TB_TRANSPORT_TCP_TCP_PARAM_H
#define TB_TRANSPORT_TCP_TCP_PARAM_H

#include "base/base.h"

struct tb_tcp_params {
    uint64_t buffer;
};

extern struct tb_tcp_params tb_tcp_param;
extern const struct tb_param_row tb_tcp_param_rows[];

#endif
