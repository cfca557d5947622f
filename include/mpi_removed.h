/*
 * mpi_removed.h: the names that MPI 3.0 removed, for programs of an older date, on top of what has replaced them.
 *
 * Included by mpi.h when TOMBOLO_REMOVED_NAMES is defined (mpicc -DTOMBOLO_REMOVED_NAMES ...). Nothing here is part of
 * the library: each call is a small function of the program itself.
 *
 * The markers MPI_LB and MPI_UB are gone for good: the binary interface has no such datatypes. A type with other bounds
 * than its data has is made by MPI_Type_create_resized.
 */
#ifndef TOMBOLO_MPI_REMOVED_H
#define TOMBOLO_MPI_REMOVED_H

#include "mpi.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef MPI_Comm_errhandler_function MPI_Handler_function;

/* How MPI_Type_get_envelope called types made by the calls below from Fortran; it never does so now. */

#define MPI_COMBINER_HVECTOR_INTEGER  (-MPI_COMBINER_HVECTOR)
#define MPI_COMBINER_HINDEXED_INTEGER (-MPI_COMBINER_HINDEXED)
#define MPI_COMBINER_STRUCT_INTEGER   (-MPI_COMBINER_STRUCT)

static inline int MPI_Address(const void *location, MPI_Aint *address)
{
    return MPI_Get_address(location, address);
}

static inline int MPI_Errhandler_create(MPI_Handler_function *handler_fn, MPI_Errhandler *errhandler)
{
    return MPI_Comm_create_errhandler(handler_fn, errhandler);
}

static inline int MPI_Errhandler_set(MPI_Comm comm, MPI_Errhandler errhandler)
{
    return MPI_Comm_set_errhandler(comm, errhandler);
}

static inline int MPI_Errhandler_get(MPI_Comm comm, MPI_Errhandler *errhandler)
{
    return MPI_Comm_get_errhandler(comm, errhandler);
}

static inline int MPI_Type_extent(MPI_Datatype datatype, MPI_Aint *extent)
{
    MPI_Aint lb;
    return MPI_Type_get_extent(datatype, &lb, extent);
}

static inline int MPI_Type_lb(MPI_Datatype datatype, MPI_Aint *displacement)
{
    MPI_Aint extent;
    return MPI_Type_get_extent(datatype, displacement, &extent);
}

static inline int MPI_Type_ub(MPI_Datatype datatype, MPI_Aint *displacement)
{
    MPI_Aint lb = 0;
    int code = MPI_Type_get_extent(datatype, &lb, displacement); /* which refuses a null pointer */
    if (code == MPI_SUCCESS)
        *displacement += lb;
    return code;
}

static inline int MPI_Type_hvector(int count, int blocklength, MPI_Aint stride, MPI_Datatype oldtype,
                                   MPI_Datatype *newtype)
{
    return MPI_Type_create_hvector(count, blocklength, stride, oldtype, newtype);
}

static inline int MPI_Type_hindexed(int count, const int array_of_blocklengths[],
                                    const MPI_Aint array_of_displacements[], MPI_Datatype oldtype,
                                    MPI_Datatype *newtype)
{
    return MPI_Type_create_hindexed(count, array_of_blocklengths, array_of_displacements, oldtype, newtype);
}

static inline int MPI_Type_struct(int count, const int array_of_blocklengths[], const MPI_Aint array_of_displacements[],
                                  const MPI_Datatype array_of_types[], MPI_Datatype *newtype)
{
    return MPI_Type_create_struct(count, array_of_blocklengths, array_of_displacements, array_of_types, newtype);
}

#ifdef __cplusplus
}
#endif

#endif /* TOMBOLO_MPI_REMOVED_H */
