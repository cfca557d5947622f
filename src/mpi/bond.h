/* Bonds: what connects this process with other worlds (MPI-5.0, 11.10.4): communicators and windows that have processes
 * of theirs. The launcher is told of the first one with a world and of the end of the last one, and so knows whom a
 * failure concerns. A communicator that was freed, and not disconnected, connects for ever. Any thread. */
#ifndef TB_MPI_BOND_H
#define TB_MPI_BOND_H

#include "mpi/self.h"

/* Processes of a communicator, or of one of its groups: their indices in the job; NULL: the identity. */
struct tb_bond_group {
    const uint32_t *procs;
    uint32_t count;
};

/* A communicator with processes of these groups, one or two, has been made. Whether it connects with another world. */
bool tb_bonds_hold(const struct tb_bond_group groups[static 2]);
/* Such a one is given up: by MPI_Comm_free, or so that it connects no longer. */
void tb_bonds_drop(const struct tb_bond_group groups[static 2], bool freed);
/* Waits, in this call of the program, until the launcher knows what it was told. */
void tb_bonds_settle(const char *call);

#endif
