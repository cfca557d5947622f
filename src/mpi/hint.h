/* Hints of communicators: taken from info objects of the program. */
#ifndef TB_MPI_HINT_H
#define TB_MPI_HINT_H

#include "mpi/comm.h"
#include "mpi/info.h"

/* The kinds of memory that buffers of communicators and windows may be in (MPI-5.0, 12.4.3), which come from that
 * session, or from the world model: NULL. As a value of the key mpi_memory_alloc_kinds. */
int tb_memory_kinds_put(struct tb_info *info, const struct tb_session *session);

/* Takes over the hints that are known; others, and values that make no sense, are left alone. */
void tb_hints_take(struct tb_hints *hints, const struct tb_info *info);
/* The info object of an argument that may be MPI_INFO_NULL (then NULL). Raises what is wrong; the code. */
int tb_hints_check(struct tb_comm *comm, const char *call, int position, MPI_Info handle, const struct tb_info **info);

#endif
