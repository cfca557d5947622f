/* Communicators of some ranks of another one, when every member knows who they are. */
#ifndef TB_MPI_SUBGROUP_H
#define TB_MPI_SUBGROUP_H

#include "mpi/agreement.h"

/* A communicator of these ranks of an intracommunicator. They call, and nobody else need. All get it, or none: `error`
 * is what keeps this one from it already. */
int tb_subgroup_make(struct tb_comm *parent, int error, const struct tb_members *members, uint64_t match,
                     struct tb_comm **made);
/* Of the first `count` ranks, in their order. */
int tb_subgroup_first(struct tb_comm *parent, int error, uint32_t count, uint64_t match, struct tb_comm **made);

/* Of processes that are listed, of which this is number `mine`. */
int tb_subgroup_listed(struct tb_comm *parent, const uint32_t *procs, uint32_t count, uint32_t mine, uint64_t match,
                       struct tb_comm **made);

/* Where `rank` stands among `ranks`; `count` if it does not. */
uint32_t tb_subgroup_position(const uint32_t *ranks, uint32_t count, uint32_t rank);
/* The shape of a communicator like this one. TB_ERR_MEMORY leaves nothing allocated. */
int tb_shape_copy(const struct tb_comm *comm, struct tb_comm_shape *shape);

#endif
