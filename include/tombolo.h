/* tombolo.h: what Tombolo offers beyond the MPI standard. */
#ifndef TOMBOLO_H
#define TOMBOLO_H

#include <mpi.h>

#define TOMBOLO_VERSION_MAJOR 0
#define TOMBOLO_VERSION_MINOR 1
#define TOMBOLO_VERSION_PATCH 0

/* One number to compare with: major * 10000 + minor * 100 + patch. */
#define TOMBOLO_VERSION (TOMBOLO_VERSION_MAJOR * 10000 + TOMBOLO_VERSION_MINOR * 100 + TOMBOLO_VERSION_PATCH)

/*
 * Where the ranks of a communicator are: attributes that every communicator has from the start (MPI_Comm_get_attr).
 * They are arrays by rank, of an intercommunicator those of the local group:
 *
 *     int *depths, **colors, **levels, flag;
 *     MPI_Comm_get_attr(comm, TOMBOLO_TOPOLOGY_DEPTHS, &depths, &flag);
 *     MPI_Comm_get_attr(comm, TOMBOLO_TOPOLOGY_COLORS, &colors, &flag);
 *     MPI_Comm_get_attr(comm, TOMBOLO_TOPOLOGY_LEVELS, &levels, &flag);
 *
 * Rank r takes part in depths[r] levels, from 0, the world, inwards. levels[r][i] is what level i of rank r is, one of
 * TOMBOLO_LEVEL_ below, and colors[r][i] its group there: a and b are together at level i if i is less than both
 * depths and colors[a][i] == colors[b][i]. Colours of a level are 0, 1, 2 and so on, in the order of their first ranks.
 * The arrays must not be changed, and live as long as the communicator.
 */
#define TOMBOLO_TOPOLOGY_DEPTHS 4001
#define TOMBOLO_TOPOLOGY_COLORS 4002
#define TOMBOLO_TOPOLOGY_LEVELS 4003

#define TOMBOLO_LEVEL_WORLD   0 /* the whole job, which may span wide-area links */
#define TOMBOLO_LEVEL_SITE    1
#define TOMBOLO_LEVEL_CLUSTER 2 /* clusters in one another are a level each */
#define TOMBOLO_LEVEL_HOST    3 /* ranks with memory in common; below it, of ranks that are bound: */
#define TOMBOLO_LEVEL_PACKAGE 4
#define TOMBOLO_LEVEL_NUMA    5
#define TOMBOLO_LEVEL_CACHE   6 /* the outermost one that cores share */
#define TOMBOLO_LEVEL_CORE    7

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Two functions that may be called at any time, also before MPI_Init and after MPI_Finalize, from any thread. What they
 * return is constant and never freed.
 */

/* The version of the library that the program runs with, such as "0.1.0"; it may be newer than the header. */
const char *Tombolo_version(void);

/* The names of the MPI calls that this library does not implement yet, in the order of mpi.h, ended by a null pointer.
 */
const char *const *Tombolo_unimplemented(void);

/*
 * Sends one message to `n` ranks of a communicator, of an intercommunicator to those of the remote group. Each of them
 * takes it by an ordinary receive, or finds it by a probe, as if the caller had called MPI_Send to one after the other:
 * with this tag, in order with everything else that the caller sends to that rank. The caller may be among them, and
 * has to have a receive for a long message then, as with MPI_Send; a rank that is named twice gets two messages, and
 * MPI_PROC_NULL gets none. Messages do not wait for each other: each rank gets its own when it has a receive for it.
 * When the call returns, the buffer may be used again. Nothing is sent if an argument is wrong; if a rank cannot be
 * reached, the others get the message all the same, and the error names the first that was not.
 */
int Tombolo_Multicast(const void *buffer, MPI_Count count, MPI_Datatype type, const int ranks[], int n, int tag,
                      MPI_Comm comm);

#ifdef __cplusplus
}
#endif

#endif /* TOMBOLO_H */
