#include "mpi/session_error.h"

#include <stdio.h>

#include "mpi/binding_decls.h"
#include "mpi/error.h"

int tb_raise_session_code(struct tb_session *session, int code)
{
    MPI_Session handle = (MPI_Session)(uintptr_t)session->head.value;
    return tb_raise_at(&session->errhandler, &handle, code);
}

int tb_raise_session(struct tb_session *session, int class, const char *call, int position, const char *name,
                     const char *format, ...)
{
    char text[MPI_MAX_ERROR_STRING];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (position == 0)
        return tb_raise_session_code(session, tb_error_code(class, call, "%s", text));
    return tb_raise_session_code(session, tb_error_code(class, call, "argument %d (%s): %s", position, name, text));
}

int tb_raise_no_session(const char *call, MPI_Session handle)
{
    const char *what = "this is no handle of a session";
    if (handle == MPI_SESSION_NULL)
        what = "it is MPI_SESSION_NULL";
    else if ((uint64_t)(uintptr_t)handle >> 56 == TB_OBJECT_SESSION)
        what = "the session has been finalised";
    return tb_raise_argument(NULL, MPI_ERR_SESSION, call, 1, "session", "%s", what);
}

int tb_raise_session_null(struct tb_session *session, const char *call, int position, const char *name)
{
    return tb_raise_session(session, MPI_ERR_ARG, call, position, name, "the pointer is null");
}

/* ---- its error handler ------------------------------------------------------------------------------------------- */

int tb_mpi_Session_set_errhandler(MPI_Session session, MPI_Errhandler errhandler)
{
    static const char call[] = "MPI_Session_set_errhandler";
    struct tb_session *s = tb_session_find(session);
    if (s == NULL)
        return tb_raise_no_session(call, session);
    struct tb_errhandler *handler = tb_errhandler_find(errhandler, TB_ERRHANDLER_SESSION);
    if (handler == NULL)
        return tb_raise_session_code(s, tb_errhandler_wrong(call, 2, errhandler, TB_ERRHANDLER_SESSION));
    tb_errhandler_replace(&s->errhandler, handler);
    return MPI_SUCCESS;
}

int tb_mpi_Session_get_errhandler(MPI_Session session, MPI_Errhandler *errhandler)
{
    static const char call[] = "MPI_Session_get_errhandler";
    struct tb_session *s = tb_session_find(session);
    if (s == NULL)
        return tb_raise_no_session(call, session);
    if (errhandler == NULL)
        return tb_raise_session_null(s, call, 2, "errhandler");
    *errhandler = tb_errhandler_at(&s->errhandler)->handle;
    return MPI_SUCCESS;
}

int tb_mpi_Session_call_errhandler(MPI_Session session, int errorcode)
{
    static const char call[] = "MPI_Session_call_errhandler";
    struct tb_session *s = tb_session_find(session);
    if (s == NULL)
        return tb_raise_no_session(call, session);
    if (tb_error_class(errorcode) == MPI_ERR_UNKNOWN && errorcode != MPI_ERR_UNKNOWN)
        return tb_raise_session(s, MPI_ERR_ARG, call, 2, "errorcode", "%d is no error code", errorcode);
    tb_raise_session_code(s, errorcode);
    return MPI_SUCCESS;
}
