/* What the parameters of pair are set to; settled with all others, before threads exist, and only read afterwards. */
#ifndef TB_TRANSPORT_PAIR_PAIR_PARAM_H
#define TB_TRANSPORT_PAIR_PAIR_PARAM_H

#include "base/base.h"

struct tb_pair_params {
    uint64_t ring;
};

extern struct tb_pair_params tb_pair_param;
extern const struct tb_param_row tb_pair_param_rows[];

#endif
