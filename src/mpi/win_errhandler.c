/* The error handlers of windows (MPI-5.0, 9.3.2). */
#include "mpi/binding_decls.h"
#include "mpi/win.h"

int tb_mpi_Win_set_errhandler(MPI_Win win, MPI_Errhandler errhandler)
{
    static const char call[] = "MPI_Win_set_errhandler";
    struct tb_win *w = tb_win_find(win);
    if (w == NULL)
        return tb_raise_win(call, 1, "win", win);
    struct tb_errhandler *handler = tb_errhandler_find(errhandler, TB_ERRHANDLER_WIN);
    if (handler == NULL)
        return tb_win_raise_code(w, tb_errhandler_wrong(call, 2, errhandler, TB_ERRHANDLER_WIN));
    tb_errhandler_replace(&w->errhandler, handler);
    return MPI_SUCCESS;
}

int tb_mpi_Win_get_errhandler(MPI_Win win, MPI_Errhandler *errhandler)
{
    static const char call[] = "MPI_Win_get_errhandler";
    struct tb_win *w = tb_win_find(win);
    if (w == NULL)
        return tb_raise_win(call, 1, "win", win);
    if (errhandler == NULL)
        return tb_win_raise_null(w, call, 2, "errhandler");
    *errhandler = tb_errhandler_at(&w->errhandler)->handle;
    return MPI_SUCCESS;
}

int tb_mpi_Win_call_errhandler(MPI_Win win, int errorcode)
{
    static const char call[] = "MPI_Win_call_errhandler";
    struct tb_win *w = tb_win_find(win);
    if (w == NULL)
        return tb_raise_win(call, 1, "win", win);
    if (tb_error_class(errorcode) == MPI_ERR_UNKNOWN && errorcode != MPI_ERR_UNKNOWN)
        return tb_win_raise_argument(w, MPI_ERR_ARG, call, 2, "errorcode", "%d is no error code", errorcode);
    tb_win_raise_code(w, errorcode);
    return MPI_SUCCESS;
}
