/* The error handlers of communicators (MPI-5.0, 9.3). */
#include "mpi/binding_decls.h"
#include "mpi/comm.h"

int tb_mpi_Comm_set_errhandler(MPI_Comm comm, MPI_Errhandler errhandler)
{
    static const char call[] = "MPI_Comm_set_errhandler";
    struct tb_comm *c = tb_comm_find(comm);
    if (c == NULL)
        return tb_raise_comm(call, 1, "comm", comm);
    struct tb_errhandler *handler = tb_errhandler_find(errhandler, TB_ERRHANDLER_COMM);
    if (handler == NULL)
        return tb_raise_code(c, tb_errhandler_wrong(call, 2, errhandler, TB_ERRHANDLER_COMM));
    tb_errhandler_replace(&c->errhandler, handler);
    return MPI_SUCCESS;
}

int tb_mpi_Comm_get_errhandler(MPI_Comm comm, MPI_Errhandler *errhandler)
{
    static const char call[] = "MPI_Comm_get_errhandler";
    struct tb_comm *c = tb_comm_find(comm);
    if (c == NULL)
        return tb_raise_comm(call, 1, "comm", comm);
    if (errhandler == NULL)
        return tb_raise_null(c, call, 2, "errhandler");
    *errhandler = tb_errhandler_at(&c->errhandler)->handle;
    return MPI_SUCCESS;
}

int tb_mpi_Comm_call_errhandler(MPI_Comm comm, int errorcode)
{
    static const char call[] = "MPI_Comm_call_errhandler";
    struct tb_comm *c = tb_comm_find(comm);
    if (c == NULL)
        return tb_raise_comm(call, 1, "comm", comm);
    if (tb_error_class(errorcode) == MPI_ERR_UNKNOWN && errorcode != MPI_ERR_UNKNOWN)
        return tb_raise_argument(c, MPI_ERR_ARG, call, 2, "errorcode", "%d is no error code", errorcode);
    tb_raise_code(c, errorcode);
    return MPI_SUCCESS;
}
