/* Groups: ordered sets of processes of the job. A struct tb_group is what MPI_Group names; immutable once made, counted
 * by its handles. Any thread may read. */
#ifndef TB_MPI_GROUP_H
#define TB_MPI_GROUP_H

#include "mpi/comm.h"

struct tb_group {
    struct tb_handle head;
    uint32_t size;
    uint32_t *procs;            /* job index of each rank */
    struct tb_session *session; /* from which it comes; NULL: from MPI_COMM_WORLD, in the end. Held */
};

/* A group with room for `size` processes; NULL: no memory. The caller fills procs, and may lower size. */
struct tb_group *tb_group_new(uint32_t size, struct tb_session *session);
/* The handle of a group that was just made: an empty one is MPI_GROUP_EMPTY. */
MPI_Group tb_group_publish(struct tb_group *group);

struct tb_group *tb_group_find(MPI_Group handle); /* NULL if there is none; MPI_GROUP_EMPTY is a group */
/* The handle of a group, argument `position`, is not one: says why. On the communicator's error handler, or NULL. */
int tb_raise_group(struct tb_comm *comm, const char *call, int position, const char *name, MPI_Group handle)
    __attribute__((cold));
/* Whether a group's members are in an intracommunicator, or in the local group of an inter-communicator. Raises an
 * error if one is not; the code. */
int tb_group_check(const struct tb_group *group, struct tb_comm *comm, const char *call, int position);

#endif
