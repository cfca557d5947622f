/* The algorithms, for the catalogue. Constant data; any thread may read. */
#ifndef TB_COLLECTIVES_ALGORITHMS_H
#define TB_COLLECTIVES_ALGORITHMS_H

#include "collectives/collectives.h"

extern const struct tb_algorithm tb_barrier_linear, tb_barrier_dissemination;
extern const struct tb_algorithm tb_bcast_linear, tb_bcast_binomial;

#endif
