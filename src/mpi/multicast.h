/* Multicast inside clusters: what the engine asks of the job, and when it is known whether it works. */
#ifndef TB_MPI_MULTICAST_H
#define TB_MPI_MULTICAST_H

#include "mpi/self.h"

/* Callbacks of the engine; the context is the job. */
bool tb_multicast_in_cluster(void *context, struct tb_proc proc);
bool tb_multicast_group_of(void *context, struct tb_engine_group *group);
void tb_multicast_complain(void *context, enum tb_engine_trouble what);
/* A verdict of the job's agents has come: what it changes for whoever sends, hears, and makes communicators. */
void tb_multicast_learnt(void);

/* Where a communicator of this context may multicast (tb_multicast_allowed), which all of its ranks know alike. Waits
 * until the first verdict is here. *any: somewhere; from then on a standby may be asked for. */
int tb_multicast_await(uint64_t communicator, uint8_t places[TB_MULTICAST_PLACES], bool *any);

#endif
