/* Predefined datatypes (MPI-5.0, chapter 5): sizes, extents, names, addresses. */
#include "mpi/datatype.h"

#include <stdio.h>
#include <string.h>

#include "mpi/comm.h"
#include "mpi/error.h"
#include "mpi/face_decls.h"

void tb_types_open(void)
{
    for (uintptr_t i = 1; i < sizeof tb_self.types / sizeof tb_self.types[0]; i++)
        tb_self.types[i] = tb_type_predefined((uintptr_t)MPI_DATATYPE_NULL + i);
}

uint64_t tb_type_pair_value(const struct tb_type *type)
{
    /* The index is an int, except in Fortran's pairs of two reals. */
    return type == tb_type_find(MPI_2DOUBLE_PRECISION) ? sizeof(double) : type->size - sizeof(int);
}

int tb_raise_type(struct tb_comm *comm, const char *call, int position, const char *name, MPI_Datatype datatype)
{
    tb_require_active(call);
    const char *what = datatype == MPI_DATATYPE_NULL ? "it is MPI_DATATYPE_NULL"
                                                     : "this is no handle of a datatype, or it has been freed";
    return tb_raise_argument(comm, MPI_ERR_TYPE, call, position, name, "%s", what);
}

int tb_mpi_Type_size(MPI_Datatype datatype, MPI_Count *size)
{
    const struct tb_type *type = tb_type_find(datatype);
    if (type == NULL)
        return tb_raise_type(NULL, "MPI_Type_size", 1, "datatype", datatype);
    if (size == NULL)
        return tb_raise_null(NULL, "MPI_Type_size", 2, "size");
    *size = (MPI_Count)type->size;
    return MPI_SUCCESS;
}

int tb_mpi_Type_get_extent(MPI_Datatype datatype, MPI_Count *lb, MPI_Count *extent)
{
    static const char call[] = "MPI_Type_get_extent";
    const struct tb_type *type = tb_type_find(datatype);
    if (type == NULL)
        return tb_raise_type(NULL, call, 1, "datatype", datatype);
    if (lb == NULL || extent == NULL)
        return tb_raise_null(NULL, call, lb == NULL ? 2 : 3, lb == NULL ? "lb" : "extent");
    *lb = type->lower_bound;
    *extent = type->extent;
    return MPI_SUCCESS;
}

int tb_mpi_Type_get_true_extent(MPI_Datatype datatype, MPI_Count *true_lb, MPI_Count *true_extent)
{
    static const char call[] = "MPI_Type_get_true_extent";
    const struct tb_type *type = tb_type_find(datatype);
    if (type == NULL)
        return tb_raise_type(NULL, call, 1, "datatype", datatype);
    if (true_lb == NULL || true_extent == NULL)
        return tb_raise_null(NULL, call, true_lb == NULL ? 2 : 3, true_lb == NULL ? "true_lb" : "true_extent");
    *true_lb = type->true_lower_bound;
    *true_extent = type->true_extent;
    return MPI_SUCCESS;
}

int tb_mpi_Type_get_name(MPI_Datatype datatype, char *type_name, int *resultlen)
{
    static const char call[] = "MPI_Type_get_name";
    const struct tb_type *type = tb_type_find(datatype);
    if (type == NULL && datatype != MPI_DATATYPE_NULL)
        return tb_raise_type(NULL, call, 1, "datatype", datatype);
    if (type_name == NULL || resultlen == NULL)
        return tb_raise_null(NULL, call, type_name == NULL ? 2 : 3, type_name == NULL ? "type_name" : "resultlen");
    *resultlen = snprintf(type_name, MPI_MAX_OBJECT_NAME, "%s", type != NULL ? type->name : "MPI_DATATYPE_NULL");
    return MPI_SUCCESS;
}

/* Predefined types are committed already. */
int tb_mpi_Type_commit(MPI_Datatype *datatype)
{
    if (datatype == NULL)
        return tb_raise_null(NULL, "MPI_Type_commit", 1, "datatype");
    if (tb_type_find(*datatype) == NULL)
        return tb_raise_type(NULL, "MPI_Type_commit", 1, "datatype", *datatype);
    return MPI_SUCCESS;
}

int tb_mpi_Pack_size(MPI_Count incount, MPI_Datatype datatype, MPI_Comm comm, MPI_Count *size)
{
    static const char call[] = "MPI_Pack_size";
    struct tb_comm *c = tb_comm_find(comm);
    const struct tb_type *type = tb_type_find(datatype);
    uint64_t bytes = 0;
    if (c == NULL)
        return tb_raise_comm(call, 3, "comm", comm);
    if (type == NULL)
        return tb_raise_type(c, call, 2, "datatype", datatype);
    if (incount < 0 || __builtin_mul_overflow((uint64_t)incount, type->size, &bytes) || bytes > INT64_MAX)
        return tb_raise_argument(c, MPI_ERR_COUNT, call, 1, "incount", "%lld elements of %s are not possible",
                                 (long long)incount, type->name);
    if (size == NULL)
        return tb_raise_null(c, call, 4, "size");
    *size = (MPI_Count)bytes;
    return MPI_SUCCESS;
}

int tb_mpi_Get_address(const void *location, MPI_Aint *address)
{
    if (address == NULL)
        return tb_raise_null(NULL, "MPI_Get_address", 2, "address");
    *address = (MPI_Aint)location;
    return MPI_SUCCESS;
}

MPI_Aint tb_mpi_Aint_add(MPI_Aint base, MPI_Aint disp)
{
    return (MPI_Aint)((uintptr_t)base + (uintptr_t)disp);
}

MPI_Aint tb_mpi_Aint_diff(MPI_Aint addr1, MPI_Aint addr2)
{
    return (MPI_Aint)((uintptr_t)addr1 - (uintptr_t)addr2);
}

/* All that there are so far have the standard's values. */
int tb_mpi_Type_toint(MPI_Datatype datatype)
{
    return tb_handle_to_int(datatype);
}

MPI_Datatype tb_mpi_Type_fromint(int datatype)
{
    return datatype >= 0 && (uint32_t)datatype < TB_HANDLE_FIRST ? (MPI_Datatype)(uintptr_t)datatype
                                                                 : MPI_DATATYPE_NULL;
}
