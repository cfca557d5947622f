/* Calls that make communicators from groups, without another communicator. */
#ifndef TB_MPI_CREATION_H
#define TB_MPI_CREATION_H

#include "mpi/comm.h"
#include "mpi/info.h"

/* A call that makes a communicator from groups alone: its error handler is that of the new one, and told of what goes
 * wrong before there is one. */
struct tb_creation {
    const char *call, *result_name; /* "newcomm", as the argument for it is called */
    struct tb_errhandler *errhandler;
    const struct tb_info *hints; /* NULL: none */
};
/* What such calls have in common: four arguments, the first of which is at `position`. Raises errors; the code. */
int tb_creation_check(struct tb_creation *creation, const char *stringtag, int position, MPI_Info info,
                      MPI_Errhandler errhandler, const MPI_Comm *result);
int tb_raise_creation(const struct tb_creation *creation, int code) __attribute__((cold));
/* A communicator of a group, the first argument, of which this process must be a member, made by way of all
 * processes of the job. Raises errors; the code. */
int tb_creation_make(const struct tb_creation *creation, MPI_Group group, const char *name, uint64_t match,
                     struct tb_comm **made);
/* A number for a string that tells calls apart. */
uint64_t tb_stringtag_number(const char *stringtag);

#endif
