/* Errors of calls on sessions. Any thread. */
#ifndef TB_MPI_SESSION_ERROR_H
#define TB_MPI_SESSION_ERROR_H

#include "mpi/session.h"

/* Raises an error of a call on a session, with its error handler; argument 0: it is about none of them. */
int tb_raise_session(struct tb_session *session, int class, const char *call, int position, const char *name,
                     const char *format, ...) __attribute__((format(printf, 6, 7), cold));
int tb_raise_session_null(struct tb_session *session, const char *call, int position, const char *name)
    __attribute__((cold)); /* a pointer for a result is NULL */
/* The same with a code that was made before. */
int tb_raise_session_code(struct tb_session *session, int code) __attribute__((cold));
/* The handle of a session, the first argument, is not one: says why. */
int tb_raise_no_session(const char *call, MPI_Session handle) __attribute__((cold));

#endif
