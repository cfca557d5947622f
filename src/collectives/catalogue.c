#include "collectives/algorithms.h"

const struct tb_algorithm *const tb_catalogue[] = {
    &tb_barrier_linear, &tb_barrier_dissemination, &tb_bcast_linear, &tb_bcast_binomial, NULL,
};
