/*
 * tombolo.h: what Tombolo offers beyond the MPI standard. Calls here may be made at any time, also before MPI_Init and
 * after MPI_Finalize, from any thread. Everything returned is constant and never freed.
 */
#ifndef TOMBOLO_H
#define TOMBOLO_H

#define TOMBOLO_VERSION_MAJOR 0
#define TOMBOLO_VERSION_MINOR 1
#define TOMBOLO_VERSION_PATCH 0

/* One number to compare with: major * 10000 + minor * 100 + patch. */
#define TOMBOLO_VERSION (TOMBOLO_VERSION_MAJOR * 10000 + TOMBOLO_VERSION_MINOR * 100 + TOMBOLO_VERSION_PATCH)

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
