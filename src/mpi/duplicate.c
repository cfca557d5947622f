/* Duplicates of communicators (MPI-5.0, 7.4.2). */
#include <stdlib.h>

#include "mpi/face_decls.h"
#include "mpi/hint.h"
#include "mpi/subgroup.h"
#include "mpi/topo.h"

/* A duplicate without a channel, with everything but the attributes. */
static int prepare(const char *call, struct tb_comm *parent, const struct tb_info *info, struct tb_comm **made)
{
    struct tb_shape shape;
    int error = tb_shape_copy(parent, &shape);
    if (error == TB_OK)
        error = tb_comm_new(&shape, parent, made);
    if (error < 0)
        return tb_raise_below(parent, error, call);
    (*made)->topo = tb_topo_hold(parent->topo);
    if (info != NULL)
        tb_hints_take(&(*made)->hints, info);
    return MPI_SUCCESS;
}

/* Copies the attributes; a function of the program that fails undoes the duplicate. */
static int copy_attributes(struct tb_comm *parent, struct tb_comm *made)
{
    struct tb_bearer from = tb_comm_bearer(parent), to = tb_comm_bearer(made);
    int code = tb_attributes_copy(&from, &made->attributes);
    if (code == MPI_SUCCESS)
        return MPI_SUCCESS;
    tb_attributes_delete(&to);
    tb_comm_release(made);
    return tb_raise_code(parent, code);
}

static int duplicate(const char *call, MPI_Comm handle, MPI_Info info_handle, int info_at, MPI_Comm *newcomm)
{
    struct tb_comm *parent = tb_comm_find(handle), *made = NULL;
    const struct tb_info *info;
    if (parent == NULL)
        return tb_raise_comm(call, 1, "comm", handle);
    int code = tb_hints_check(parent, call, info_at, info_handle, &info);
    if (code != MPI_SUCCESS)
        return code;
    if (newcomm == NULL)
        return tb_raise_null(parent, call, info_at > 0 ? 3 : 2, "newcomm");
    code = prepare(call, parent, info, &made);
    if (code != MPI_SUCCESS)
        return code;
    uint64_t context;
    int error = tb_agree_context(parent, &context);
    if (error == TB_OK)
        error = tb_comm_enter(made, context);
    if (error < 0) {
        tb_comm_release(made);
        return tb_raise_below(parent, error, call);
    }
    *newcomm = MPI_COMM_NULL;
    code = copy_attributes(parent, made);
    if (code == MPI_SUCCESS)
        *newcomm = tb_comm_handle(made);
    return code;
}

int tb_mpi_Comm_dup(MPI_Comm comm, MPI_Comm *newcomm)
{
    return duplicate("MPI_Comm_dup", comm, MPI_INFO_NULL, 0, newcomm);
}

int tb_mpi_Comm_dup_with_info(MPI_Comm comm, MPI_Info info, MPI_Comm *newcomm)
{
    return duplicate("MPI_Comm_dup_with_info", comm, info, 2, newcomm);
}
