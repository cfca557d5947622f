/* One message to several ranks of a communicator (multicast_send.c): what Tombolo_Multicast and Tombolo_Group_send
 * share, whose arguments have names and places of their own. */
#ifndef TB_MPI_MULTICAST_SEND_H
#define TB_MPI_MULTICAST_SEND_H

#include "mpi/check.h"

/* Sends it to `n` ranks, 0 or more. Arguments that are wrong are raised before anything is sent. */
int tb_multicast_send(const struct tb_names *names, const void *buffer, MPI_Count count, MPI_Datatype type,
                      const int ranks[], int n, int tag, MPI_Comm comm);

#endif
