/*
 * mpi_fortran.h: handles and statuses as Fortran has them, for programs in C that are called from Fortran or call it.
 *
 * Included by mpi.h. The standard's binary interface leaves these calls out, since how large an INTEGER is depends on
 * the Fortran compiler: nothing here is part of the library, each call is a small function of the program itself on top
 * of MPI_X_toint and MPI_X_fromint. Where INTEGER is not a C int (-fdefault-integer-8), the program defines
 * MPI_ABI_Fint as that type before it includes mpi.h.
 */
#ifndef TOMBOLO_MPI_FORTRAN_H
#define TOMBOLO_MPI_FORTRAN_H

#include "mpi.h"

#ifdef __cplusplus
extern "C" {
#endif

#ifndef MPI_ABI_Fint
#define MPI_ABI_Fint int
#endif
typedef MPI_ABI_Fint MPI_Fint;

#define MPI_F_STATUS_IGNORE   ((MPI_Fint *)0)
#define MPI_F_STATUSES_IGNORE ((MPI_Fint *)0)

/* `__inline`, since programs of 1989's C include this, too. */

#define MPI_ABI_CONVERSIONS_OF(call, type)                                                                             \
    static __inline MPI_Fint call##_c2f(type handle)                                                                   \
    {                                                                                                                  \
        return call##_toint(handle);                                                                                   \
    }                                                                                                                  \
    static __inline type call##_f2c(MPI_Fint handle)                                                                   \
    {                                                                                                                  \
        return call##_fromint((int)handle);                                                                            \
    }
#define MPI_ABI_CONVERSIONS(name, type)                                                                                \
    MPI_ABI_CONVERSIONS_OF(MPI_##name, type)                                                                           \
    MPI_ABI_CONVERSIONS_OF(PMPI_##name, type)

MPI_ABI_CONVERSIONS(Comm, MPI_Comm)
MPI_ABI_CONVERSIONS(Errhandler, MPI_Errhandler)
MPI_ABI_CONVERSIONS(File, MPI_File)
MPI_ABI_CONVERSIONS(Group, MPI_Group)
MPI_ABI_CONVERSIONS(Info, MPI_Info)
MPI_ABI_CONVERSIONS(Message, MPI_Message)
MPI_ABI_CONVERSIONS(Op, MPI_Op)
MPI_ABI_CONVERSIONS(Request, MPI_Request)
MPI_ABI_CONVERSIONS(Session, MPI_Session)
MPI_ABI_CONVERSIONS(Type, MPI_Datatype)
MPI_ABI_CONVERSIONS(Win, MPI_Win)

#undef MPI_ABI_CONVERSIONS
#undef MPI_ABI_CONVERSIONS_OF

/* A status in Fortran is MPI_F_STATUS_SIZE integers. A status that is ignored cannot be converted. */

static __inline int PMPI_Status_c2f(const MPI_Status *c_status, MPI_Fint *f_status)
{
    int i;
    if (c_status == MPI_STATUS_IGNORE || f_status == MPI_F_STATUS_IGNORE)
        return MPI_ERR_ARG;
    f_status[MPI_F_SOURCE] = c_status->MPI_SOURCE;
    f_status[MPI_F_TAG] = c_status->MPI_TAG;
    f_status[MPI_F_ERROR] = c_status->MPI_ERROR;
    for (i = 0; i < MPI_F_STATUS_SIZE - 3; i++)
        f_status[3 + i] = c_status->MPI_internal[i];
    return MPI_SUCCESS;
}

static __inline int PMPI_Status_f2c(const MPI_Fint *f_status, MPI_Status *c_status)
{
    int i;
    if (c_status == MPI_STATUS_IGNORE || f_status == MPI_F_STATUS_IGNORE)
        return MPI_ERR_ARG;
    c_status->MPI_SOURCE = (int)f_status[MPI_F_SOURCE];
    c_status->MPI_TAG = (int)f_status[MPI_F_TAG];
    c_status->MPI_ERROR = (int)f_status[MPI_F_ERROR];
    for (i = 0; i < MPI_F_STATUS_SIZE - 3; i++)
        c_status->MPI_internal[i] = (int)f_status[3 + i];
    return MPI_SUCCESS;
}

static __inline int MPI_Status_c2f(const MPI_Status *c_status, MPI_Fint *f_status)
{
    return PMPI_Status_c2f(c_status, f_status);
}

static __inline int MPI_Status_f2c(const MPI_Fint *f_status, MPI_Status *c_status)
{
    return PMPI_Status_f2c(f_status, c_status);
}

#ifdef __cplusplus
}
#endif

#endif /* TOMBOLO_MPI_FORTRAN_H */
