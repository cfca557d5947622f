/* Error handlers of communicators (MPI-5.0, 9.3). */
#include "mpi/comm.h"
#include "mpi/error.h"
#include "mpi/binding_decls.h"

struct tb_errhandler tb_errhandler_fatal = {.handle = MPI_ERRORS_ARE_FATAL};
struct tb_errhandler tb_errhandler_abort = {.handle = MPI_ERRORS_ABORT};
struct tb_errhandler tb_errhandler_return = {.handle = MPI_ERRORS_RETURN};

static struct tb_errhandler *errhandler_find(MPI_Errhandler handle)
{
    if (handle == MPI_ERRORS_ARE_FATAL)
        return &tb_errhandler_fatal;
    if (handle == MPI_ERRORS_ABORT)
        return &tb_errhandler_abort;
    if (handle == MPI_ERRORS_RETURN)
        return &tb_errhandler_return;
    return tb_table_find(&tb_self.tables[TB_OBJECT_ERRHANDLER], TB_OBJECT_ERRHANDLER, sizeof(struct tb_errhandler),
                         handle);
}

struct tb_errhandler *tb_errhandler_hold(struct tb_errhandler *handler)
{
    if (handler->kind != TB_ERRHANDLER_PREDEFINED)
        __atomic_add_fetch(&handler->references, 1, __ATOMIC_RELAXED);
    return handler;
}

void tb_errhandler_release(struct tb_errhandler *handler)
{
    if (handler->kind != TB_ERRHANDLER_PREDEFINED && __atomic_sub_fetch(&handler->references, 1, __ATOMIC_ACQ_REL) == 0)
        tb_handle_give(TB_OBJECT_ERRHANDLER, handler);
}

static int raise_errhandler(struct tb_comm *comm, const char *call, int position, MPI_Errhandler handle)
{
    const char *what = "this is no handle of an error handler, or it has been freed";
    if (handle == MPI_ERRHANDLER_NULL)
        what = "it is MPI_ERRHANDLER_NULL";
    return tb_raise_argument(comm, MPI_ERR_ERRHANDLER, call, position, "errhandler", "%s", what);
}

int tb_mpi_Comm_create_errhandler(MPI_Comm_errhandler_function *comm_errhandler_fn, MPI_Errhandler *errhandler)
{
    static const char call[] = "MPI_Comm_create_errhandler";
    if (comm_errhandler_fn == NULL || errhandler == NULL)
        return tb_raise_argument(NULL, MPI_ERR_ARG, call, comm_errhandler_fn == NULL ? 1 : 2,
                                 comm_errhandler_fn == NULL ? "comm_errhandler_fn" : "errhandler",
                                 "the pointer is null");
    struct tb_errhandler *handler = tb_handle_take(TB_OBJECT_ERRHANDLER, sizeof *handler);
    if (handler == NULL)
        return tb_raise_below(NULL, TB_ERR_MEMORY, call);
    handler->kind = TB_ERRHANDLER_COMM;
    handler->references = 1;
    handler->function = comm_errhandler_fn;
    handler->handle = (MPI_Errhandler)(uintptr_t)handler->head.value;
    *errhandler = handler->handle;
    return MPI_SUCCESS;
}

int tb_mpi_Comm_set_errhandler(MPI_Comm comm, MPI_Errhandler errhandler)
{
    static const char call[] = "MPI_Comm_set_errhandler";
    struct tb_comm *c = tb_comm_find(comm);
    if (c == NULL)
        return tb_raise_comm(call, 1, "comm", comm);
    struct tb_errhandler *handler = errhandler_find(errhandler);
    if (handler == NULL)
        return raise_errhandler(c, call, 2, errhandler);
    tb_errhandler_hold(handler);
    struct tb_errhandler *old = __atomic_exchange_n(&c->errhandler, handler, __ATOMIC_ACQ_REL);
    tb_errhandler_release(old);
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
    *errhandler = tb_errhandler_hold(c->errhandler)->handle;
    return MPI_SUCCESS;
}

int tb_mpi_Errhandler_free(MPI_Errhandler *errhandler)
{
    static const char call[] = "MPI_Errhandler_free";
    if (errhandler == NULL)
        return tb_raise_argument(NULL, MPI_ERR_ARG, call, 1, "errhandler", "the pointer is null");
    struct tb_errhandler *handler = errhandler_find(*errhandler);
    if (handler == NULL)
        return raise_errhandler(NULL, call, 1, *errhandler);
    tb_errhandler_release(handler);
    *errhandler = MPI_ERRHANDLER_NULL;
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

int tb_mpi_Errhandler_toint(MPI_Errhandler errhandler)
{
    return tb_handle_to_int(errhandler);
}

MPI_Errhandler tb_mpi_Errhandler_fromint(int errhandler)
{
    return tb_handle_from_int(TB_OBJECT_ERRHANDLER, sizeof(struct tb_errhandler), errhandler, MPI_ERRHANDLER_NULL);
}
