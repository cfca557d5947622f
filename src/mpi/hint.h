/* Hints of communicators: taken from info objects of the program. */
#ifndef TB_MPI_HINT_H
#define TB_MPI_HINT_H

#include "mpi/comm.h"
#include "mpi/info.h"

/* The kinds of memory that buffers may be in (MPI-5.0, 12.4.3). We know of no others, so none can be asked for. */
#define TB_MEMORY_KINDS "system,mpi"

/* Takes over the hints that are known; others, and values that make no sense, are left alone. */
void tb_hints_take(struct tb_hints *hints, const struct tb_info *info);
/* The info object of an argument that may be MPI_INFO_NULL (then NULL). Raises what is wrong; the code. */
int tb_hints_check(struct tb_comm *comm, const char *call, int position, MPI_Info handle, const struct tb_info **info);

#endif
