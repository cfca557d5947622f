/* Groups: ordered sets of processes of the job. A struct tb_group is what MPI_Group names; immutable once made, counted
 * by its handles. Any thread may read. */
#ifndef TB_MPI_GROUP_H
#define TB_MPI_GROUP_H

#include "mpi/comm.h"

struct tb_group {
    struct tb_handle head;
    uint32_t size;
    uint32_t *procs; /* job index of each rank */
};

#endif
