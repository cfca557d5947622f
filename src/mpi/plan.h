/* What the planner must know of a communicator: where its ranks are, and what the program prefers. */
#ifndef TB_MPI_PLAN_H
#define TB_MPI_PLAN_H

#include "mpi/comm.h"
#include "mpi/info.h"

/* Makes the plan cache of the process; the job is joined. */
int tb_plans_open(void);
/* With the parameter `explain` rank 0 prints what has run. */
void tb_plans_print(void);
void tb_plans_close(void); /* communicators that are left are not used any more */

/* Makes the communicator's shape, if there is none yet; without a message. Any thread. */
int tb_comm_open_shape(struct tb_comm *comm);
/* Whether its ranks, those of one group, are on several hosts, of which one has several of them. Not known without the
 * shape, which is made where there are hosts at all. */
int tb_comm_spans(struct tb_comm *comm, bool *spans);
/* Its ranks that are on this host, ascending; allocated. NULL: they can be found otherwise, or there is no memory. */
uint32_t *tb_comm_locals(const struct tb_comm *comm, uint32_t *count);
/* "12 ranks, 4 hosts, 3 clusters, 2 sites"; of an intercommunicator "3 and 4 ranks, ...". */
int tb_comm_print_shape(struct tb_comm *comm, char *text, size_t size);
/* Makes the communicator's planner, if there is none yet. */
int tb_comm_open_planner(struct tb_comm *comm);
/* Takes keys such as tombolo_bcast=chain:64k, which all ranks must give alike. One that names no algorithm is passed
 * over with a warning, as hints are that make no sense. */
void tb_comm_prefer(struct tb_comm *comm, const struct tb_info *info);
/* Puts those that are in force into `info`. */
int tb_comm_preferred(const struct tb_comm *comm, struct tb_info *info);

#endif
