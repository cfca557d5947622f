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
/* This process is about to join a group of this name. If it was a member of one and has left it, that may be the same
 * one, and messages for it may come before it asks for the inbox; this opens it again, or they would be dropped like
 * those that come too late. */
int tb_inbox_expect(const char *name, bool *reopened);
/* It has not joined after all. */
void tb_inbox_dismiss(const char *name);
/* This process has left the group of this number: the inbox is gone, with what is in it, and whoever waits for a
 * receive there waits no longer, also if there never was an inbox. */
void tb_inbox_leave(const char *name, uint32_t id);

#endif
