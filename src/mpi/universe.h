/* The universe of a job: all of its processes, also those that were started since, by their index. Communicators of it
 * are made by each process for itself, and nothing is agreed on for that: nobody has made up their contexts, but for a
 * number. So they lead to processes with which there is no other communicator, and are for messages alone. They grow
 * with the job. Number 0 is the library's own (tb_self.universe): by it processes agree on others. */
#ifndef TB_MPI_UNIVERSE_H
#define TB_MPI_UNIVERSE_H

#include "mpi/comm.h"

/* One of this number. An error has its story. */
int tb_universe_open(uint32_t number, struct tb_comm **made);
/* All processes that there are now are in it. */
int tb_universe_widen(struct tb_comm *comm);
/* The library's own, with all that there are now. */
int tb_universe_own(struct tb_comm **comm);

#endif
