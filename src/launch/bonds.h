/* Which worlds are connected with which (MPI-5.0, 11.10.4): by a communicator or a window that has processes of both,
 * and through others. Each process tells when it has the first of those with another world, and when it has given up
 * the last one, so that a bond is a process and a world. Belongs to the launcher; its one thread. */
#ifndef TB_LAUNCH_BONDS_H
#define TB_LAUNCH_BONDS_H

#include "job/job.h"

struct tb_known_bond {
    uint32_t rank, world; /* the first index of the world */
    int32_t count;        /* how often it was told; what was freed, and not disconnected, is never taken back */
};

struct tb_bonds {
    struct tb_known_bond *all; /* in order of ranks and worlds */
    uint32_t count, room;
};

void tb_bonds_close(struct tb_bonds *bonds);
/* One more of them, or one less. */
int tb_bonds_change(struct tb_bonds *bonds, uint32_t rank, uint32_t world, int32_t by);
void tb_bonds_forget_rank(struct tb_bonds *bonds, uint32_t rank);   /* it has ended */
void tb_bonds_forget_world(struct tb_bonds *bonds, uint32_t world); /* all of it has */

/* The worlds that are connected with that of a rank, that one first: how many, in an allocated array of their first
 * indices; 0: no memory. */
uint32_t tb_bonds_connected(const struct tb_bonds *bonds, const struct tb_address_book *book, uint32_t rank,
                            uint32_t **worlds);

#endif
