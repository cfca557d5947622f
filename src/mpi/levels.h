/* The attributes of tombolo.h that say where the ranks of a communicator are. They are made of its shape when a program
 * first asks for one, without a message, and freed with it. Any thread. */
#ifndef TB_MPI_LEVELS_H
#define TB_MPI_LEVELS_H

#include "mpi/comm.h"

#include <tombolo.h>

static inline bool tb_levels_is_key(int keyval)
{
    return keyval >= TOMBOLO_TOPOLOGY_DEPTHS && keyval <= TOMBOLO_TOPOLOGY_LEVELS;
}

/* MPI_Comm_get_attr of one of these keys: raises errors, returns an MPI code. */
int tb_levels_get(struct tb_comm *comm, const char *call, int keyval, void *attribute_val, int *flag);

#endif
