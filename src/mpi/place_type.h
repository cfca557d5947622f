/* Places as types of resources by which communicators are split: tombolo://site; tombolo://cluster, the innermost one
 * around a host; and tombolo://cluster/1, tombolo://cluster/2 and so on where clusters are in one another, from the
 * outermost. Every process knows the places of all others, so no message is needed. Any thread. */
#ifndef TB_MPI_PLACE_TYPE_H
#define TB_MPI_PLACE_TYPE_H

#include "mpi/comm.h"

#define TB_PLACE_TYPE_SITE      0 /* above it: clusters by their number */
#define TB_PLACE_TYPE_INNERMOST (-1)
#define TB_PLACE_TYPE_NONE      (-2)
#define TB_PLACE_TYPE_LIMIT     (TB_PLACES_DEPTH_LIMIT - 1)
#define TB_PLACE_TYPE_BYTES     32u

/* The type of that name, in small or large letters; TB_PLACE_TYPE_NONE: it is none of these. */
int tb_place_type_find(const char *name);
void tb_place_type_print(int type, char name[TB_PLACE_TYPE_BYTES]);
/* The place of this type in which this process is, a number of the job's places; TB_PLACE_NONE: it is in none. */
uint32_t tb_place_type_own(int type);
uint32_t tb_place_type_of(int type, uint32_t proc); /* the same of a process of the job */
/* The widest type of which the ranks of a communicator, those of both groups, do not all share one; the same on all of
 * them. TB_PLACE_TYPE_NONE: there is none. Among the clusters it is the innermost if it is that for all. */
int tb_place_type_widest(struct tb_comm *comm, int *type);

#endif
