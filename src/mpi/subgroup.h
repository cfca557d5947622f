/* Communicators of some ranks of another one, when every member knows who they are. */
#ifndef TB_MPI_SUBGROUP_H
#define TB_MPI_SUBGROUP_H

#include "mpi/agreement.h"
#include "mpi/info.h"

/* A communicator of these ranks of an intracommunicator. They call, and nobody else need. All get it, or none: `error`
 * is what keeps this one from it already. */
int tb_subgroup_make(struct tb_comm *parent, int error, const struct tb_members *members, uint64_t match,
                     struct tb_comm **made);
/* Of the first `count` ranks, in their order. */
int tb_subgroup_first(struct tb_comm *parent, int error, uint32_t count, uint64_t match, struct tb_comm **made);

/* A call that makes a communicator from groups alone: its error handler is that of the new one, and told of what goes
 * wrong before there is one. */
struct tb_creation {
    const char *call;
    struct tb_errhandler *errhandler;
    const struct tb_info *hints; /* NULL: none */
};
/* What such calls have in common: four arguments, the first of which is at `position`. Raises errors; the code. */
int tb_creation_check(struct tb_creation *creation, const char *stringtag, int position, MPI_Info info,
                      MPI_Errhandler errhandler, const MPI_Comm *result);
int tb_raise_creation(const struct tb_creation *creation, int code) __attribute__((cold));
/* A communicator of a group, the first argument, of which this process must be a member, made by way of all ranks of
 * the job. Raises errors; the code. */
int tb_subgroup_from_group(const struct tb_creation *creation, MPI_Group group, const char *name, uint64_t match,
                           struct tb_comm **made);
/* A number for a string that tells calls apart. */
uint64_t tb_stringtag_number(const char *stringtag);
/* Where `rank` stands among `ranks`; `count` if it does not. */
uint32_t tb_subgroup_position(const uint32_t *ranks, uint32_t count, uint32_t rank);
/* The shape of a communicator like this one. TB_ERR_MEMORY leaves nothing allocated. */
int tb_shape_copy(const struct tb_comm *comm, struct tb_comm_shape *shape);

#endif
