/*
 * tombolo.h: what Tombolo offers beyond the MPI standard. The functions here may be called at any time, also before
 * MPI_Init and after MPI_Finalize, from any thread. Everything that they return is constant and never freed.
 */
#ifndef TOMBOLO_H
#define TOMBOLO_H

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

/* The version of the library that the program runs with, such as "0.1.0"; it may be newer than the header. */
const char *Tombolo_version(void);

/* The names of the MPI calls that this library does not implement yet, in the order of mpi.h, ended by a null pointer.
 */
const char *const *Tombolo_unimplemented(void);

#ifdef __cplusplus
}
#endif

#endif /* TOMBOLO_H */
