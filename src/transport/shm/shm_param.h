/* What the parameters of shm are set to; settled with all others, before threads exist, and only read afterwards. */
#ifndef TB_TRANSPORT_SHM_SHM_PARAM_H
#define TB_TRANSPORT_SHM_SHM_PARAM_H

#include "base/base.h"

struct tb_shm_params {
    uint64_t ring;
    uint64_t single_copy;
    bool cross_memory;
};

extern struct tb_shm_params tb_shm_param;
extern const struct tb_param_row tb_shm_param_rows[];

#endif
