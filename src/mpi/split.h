/* Splitting a communicator by colour. */
#ifndef TB_MPI_SPLIT_H
#define TB_MPI_SPLIT_H

#include "mpi/comm.h"

#define TB_COLOR_NONE INT64_MIN /* in no part */

/* The part of `comm` that consists of the ranks with the same colour, in the order of `key` and then of rank; NULL for
 * TB_COLOR_NONE, and on an inter-communicator where the other group has nobody of that colour. Collective. All get it
 * or none: `error` is what keeps this rank from it already. */
int tb_split(struct tb_comm *comm, int error, int64_t color, int key, struct tb_comm **made);

#endif
