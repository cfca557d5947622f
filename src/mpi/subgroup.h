/* Communicators of some ranks of another one, when every member knows who they are. */
#ifndef TB_MPI_SUBGROUP_H
#define TB_MPI_SUBGROUP_H

#include "mpi/agreement.h"

/* A communicator of the ranks ranks[0..count) of an intracommunicator, in this order; this process is ranks[mine]. The
 * members call, and nobody else need. */
int tb_subgroup_make(struct tb_comm *parent, const uint32_t *ranks, uint32_t count, uint32_t mine, uint64_t match,
                     struct tb_comm **made);
/* A communicator of a group, of which this process must be a member, made by way of MPI_COMM_WORLD. Its error handler
 * is the one given. `position` is that of the group among the arguments of the call. Raises errors; the code. */
int tb_subgroup_from_group(const char *call, MPI_Group group, int position, const char *name, uint64_t match,
                           MPI_Errhandler errhandler, struct tb_comm **made);
/* A number for a string that tells calls apart. */
uint64_t tb_stringtag_number(const char *stringtag);
/* Where `rank` stands among `ranks`; `count` if it does not. */
uint32_t tb_subgroup_position(const uint32_t *ranks, uint32_t count, uint32_t rank);
/* The shape of a communicator like this one. TB_ERR_MEMORY leaves nothing allocated. */
int tb_shape_copy(const struct tb_comm *comm, struct tb_comm_shape *shape);

#endif
