/* What the program asks about a status (MPI-5.0, 3.2.5, 13.3). */
#include "mpi/status.h"

#include "mpi/datatype.h"
#include "mpi/error.h"
#include "mpi/binding_decls.h"

static int check(const char *call, const MPI_Status *status, const void *result, int position, const char *name)
{
    if (status == MPI_STATUS_IGNORE)
        return tb_raise_null(NULL, call, 1, "status");
    if (result == NULL)
        return tb_raise_null(NULL, call, position, name);
    return MPI_SUCCESS;
}

int tb_mpi_Get_count(const MPI_Status *status, MPI_Datatype datatype, MPI_Count *count)
{
    static const char call[] = "MPI_Get_count";
    const struct tb_type *type = tb_type_find(datatype);
    if (type == NULL)
        return tb_raise_type(NULL, call, 2, "datatype", datatype);
    int code = check(call, status, count, 3, "count");
    if (code != MPI_SUCCESS)
        return code;
    uint64_t bytes = tb_status_bytes(status);
    if (type->size == 0)
        *count = bytes == 0 ? 0 : MPI_UNDEFINED;
    else
        *count = bytes % type->size == 0 ? (MPI_Count)(bytes / type->size) : MPI_UNDEFINED;
    return MPI_SUCCESS;
}

int tb_mpi_Get_elements(const MPI_Status *status, MPI_Datatype datatype, MPI_Count *count)
{
    static const char call[] = "MPI_Get_elements";
    const struct tb_type *type = tb_type_find(datatype);
    if (type == NULL)
        return tb_raise_type(NULL, call, 2, "datatype", datatype);
    int code = check(call, status, count, 3, "count");
    if (code != MPI_SUCCESS)
        return code;
    int64_t elements = tb_type_elements_in(type, tb_status_bytes(status));
    *count = elements >= 0 ? elements : MPI_UNDEFINED;
    return MPI_SUCCESS;
}

int tb_mpi_Status_set_elements(MPI_Status *status, MPI_Datatype datatype, MPI_Count count)
{
    static const char call[] = "MPI_Status_set_elements";
    const struct tb_type *type = tb_type_find(datatype);
    if (type == NULL)
        return tb_raise_type(NULL, call, 2, "datatype", datatype);
    if (status == MPI_STATUS_IGNORE)
        return tb_raise_null(NULL, call, 1, "status");
    int64_t bytes = count < 0 ? -1 : tb_type_bytes_of(type, (uint64_t)count);
    if (bytes < 0)
        return tb_raise_argument(NULL, MPI_ERR_COUNT, call, 3, "count", "%lld elements of %s are not possible",
                                 (long long)count, tb_type_label(type));
    tb_status_set_bytes(status, (uint64_t)bytes);
    return MPI_SUCCESS;
}

int tb_mpi_Status_set_cancelled(MPI_Status *status, int flag)
{
    if (status == MPI_STATUS_IGNORE)
        return tb_raise_null(NULL, "MPI_Status_set_cancelled", 1, "status");
    status->MPI_internal[TB_STATUS_CANCELLED] = flag != 0;
    return MPI_SUCCESS;
}

int tb_mpi_Test_cancelled(const MPI_Status *status, int *flag)
{
    int code = check("MPI_Test_cancelled", status, flag, 2, "flag");
    if (code == MPI_SUCCESS)
        *flag = status->MPI_internal[TB_STATUS_CANCELLED] != 0;
    return code;
}

int tb_mpi_Status_get_source(const MPI_Status *status, int *source)
{
    int code = check("MPI_Status_get_source", status, source, 2, "source");
    if (code == MPI_SUCCESS)
        *source = status->MPI_SOURCE;
    return code;
}

int tb_mpi_Status_get_tag(const MPI_Status *status, int *tag)
{
    int code = check("MPI_Status_get_tag", status, tag, 2, "tag");
    if (code == MPI_SUCCESS)
        *tag = status->MPI_TAG;
    return code;
}

int tb_mpi_Status_get_error(const MPI_Status *status, int *error)
{
    int code = check("MPI_Status_get_error", status, error, 2, "error");
    if (code == MPI_SUCCESS)
        *error = status->MPI_ERROR;
    return code;
}

int tb_mpi_Status_set_source(MPI_Status *status, int source)
{
    int code = check("MPI_Status_set_source", status, status, 1, "status");
    if (code == MPI_SUCCESS)
        status->MPI_SOURCE = source;
    return code;
}

int tb_mpi_Status_set_tag(MPI_Status *status, int tag)
{
    int code = check("MPI_Status_set_tag", status, status, 1, "status");
    if (code == MPI_SUCCESS)
        status->MPI_TAG = tag;
    return code;
}

int tb_mpi_Status_set_error(MPI_Status *status, int error)
{
    int code = check("MPI_Status_set_error", status, status, 1, "status");
    if (code == MPI_SUCCESS)
        status->MPI_ERROR = error;
    return code;
}
