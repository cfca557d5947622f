/* What mpiexec and MPI_Comm_spawn can say to processes about their start, beside what is to run (MPI-5.0, 9.3, 12.4.3
 * and 12.5): the error handler that they begin with, and the kinds of memory that they ask for. A process finds both in
 * its environment, as parameters that are its own: programs of one job may differ in them. */
#ifndef TB_JOB_START_HINTS_H
#define TB_JOB_START_HINTS_H

#include <stdbool.h>
#include <stddef.h>

#define TB_FIRST_ERRHANDLER_VARIABLE "TOMBOLO_INITIAL_ERRHANDLER"
#define TB_MEMORY_KINDS_VARIABLE     "TOMBOLO_MEMORY_ALLOC_KINDS"

enum tb_first_errhandler { TB_FIRST_FATAL, TB_FIRST_ABORT, TB_FIRST_RETURN };

/* Which one a name of the standard means: mpi_errors_are_fatal, mpi_errors_abort, mpi_errors_return. -1: none, and that
 * is told. */
int tb_first_errhandler_find(const char *name);

/* Kinds of memory that buffers may be in: whatever the program has allocated, and what MPI has. We know of no others.
 * Those that are asked for, KIND[:RESTRICTOR]... with commas between, are offered too, as far as they are kinds of
 * these. */
#define TB_MEMORY_KINDS      "system,mpi"
#define TB_MEMORY_KINDS_ROOM 1024 /* of a list, with its end */

/* TB_ERR_ARGUMENT, and told: it is no such list, whether or not there are such kinds. An empty one is. */
int tb_memory_kinds_check(const char *asked);
/* Writes the list of what is offered when this is asked for, which may be NULL: nothing. */
void tb_memory_kinds_offer(const char *asked, char offered[TB_MEMORY_KINDS_ROOM]);

/* Whether this process was told both in a way that can be understood. */
int tb_start_hints_check(void);

#endif
