/* Foreign MPI: which other MPI library a program was built with, known by the libraries that it needs. Such a program
 * runs, but does not know of us, and each of its ranks takes itself for a job of one. */
#ifndef TB_AGENT_FOREIGN_MPI_H
#define TB_AGENT_FOREIGN_MPI_H

#include "remote/remote.h"

struct tb_foreign_mpi {
    const char *name;    /* of the library, as in "Open MPI" */
    const char *command; /* whose mpiexec starts it */
    const char *needed;  /* by which library it is known; points into the executable */
};

/* False: it needs none that we know. One that needs the library of the standard's binary interface is ours. */
bool tb_foreign_mpi_find(const struct tb_executable *x, struct tb_foreign_mpi *found);
/* Whether this variable binds whoever inherits it to another launcher: a socket or the address of a server. A program
 * of another MPI below one of our ranks must not take itself for a process of that one. */
bool tb_foreign_mpi_binds(const char *variable);

#endif
