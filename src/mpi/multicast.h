/* Multicast inside clusters: what the engine asks of the job, and when it is known whether it works. */
#ifndef TB_MPI_MULTICAST_H
#define TB_MPI_MULTICAST_H

#include "mpi/self.h"

/* Callbacks of the engine; the context is the job. */
bool tb_multicast_in_cluster(void *context, struct tb_proc proc);
bool tb_multicast_group_of(void *context, struct tb_engine_group *group);
/* Waits until the verdict of the job's agents is here, which all ranks have alike. The places where it works; NULL:
 * nowhere. From then on a standby may be asked for. */
int tb_multicast_await(const uint8_t **places);

#endif
