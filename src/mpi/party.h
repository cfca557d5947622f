/* A party: another group of processes that this one meets without a communicator in common, as new processes and those
 * who have spawned them do, or those at the two ends of a port. One process of each group, the root, learns who they
 * are and which context both use; then all of its group make the inter-communicator, without a message to the others.
 */
#ifndef TB_MPI_PARTY_H
#define TB_MPI_PARTY_H

#include "mpi/comm.h"

struct tb_party {
    int class;      /* MPI_SUCCESS; or it does not come to that, and the text says why */
    char text[900]; /* cut off if it is longer */
    uint64_t context;
    bool told; /* the others have the context, so that it is never used for anything else, */
    bool used; /* and may have sent something in it, even if nothing comes of it */
    uint32_t size;
    uint32_t meeting; /* of another job: which one it is (foreign.h); else 0 */
    uint32_t asked;   /* of new ones: that were asked for; */
    bool uneven;      /* fewer were started, and not simply the first of them */
    uint32_t *procs;  /* allocated */
};

/* What one root has to tell the other: the context, which may be 0, and the group of an intracommunicator. Allocated,
 * as it is in memory: hosts of a job have one order of bytes. NULL: no memory, told. */
void *tb_party_pack(uint64_t context, const struct tb_comm *comm, size_t *bytes);
int tb_party_unpack(const void *packed, size_t bytes, struct tb_party *party); /* an error, if that makes no sense */

/* The party cannot be met: an error of `class`, with the present story. */
void tb_party_fail(struct tb_party *party, int class);

/* All ranks of an intracommunicator call; the party is the root's, and is freed. Raises what is wrong, on all of them.
 */
int tb_party_meet(const char *call, struct tb_comm *comm, uint32_t root, struct tb_party *party, MPI_Comm *newcomm);
/* The same for a group that knows alike who the others are: nobody need be told. Not raised. */
int tb_party_join(struct tb_comm *comm, struct tb_party *party, struct tb_comm **made);

#endif
