/* The inbox of a named group: a communicator in which messages of whoever knows the group's name come to its members.
 * It has all processes of the job by their index (universe.h), and its context follows from the number that the
 * registry has given the group; so each process makes it for itself, when it needs it, and nobody agrees with anybody.
 * What comes before its receiver has made it waits, as with any communicator. For messages alone. */
#ifndef TB_MPI_INBOX_H
#define TB_MPI_INBOX_H

#include "mpi/comm.h"

/* That of the group with this number, of which there may have been others of the same name: their inbox is closed. It
 * has all processes that there are now. An error has its story. */
int tb_inbox_open(const char *name, uint32_t id, MPI_Comm *inbox);
/* This process has left the group: the inbox is gone, with what is in it. */
void tb_inbox_close(const char *name);

#endif
