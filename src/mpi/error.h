/* Errors of the MPI layer. An error code is one of
 *   - a class of the standard,
 *   - a class or code that the program has added (from TB_ERROR_ADDED up),
 *   - a class of the standard together with the number of a message that says what was wrong (TB_ERROR_TOLD is set).
 * The last TB_ERROR_STORIES messages are kept; an older code has the text of its class.
 *
 * Everything here may be called by any thread. */
#ifndef TB_MPI_ERROR_H
#define TB_MPI_ERROR_H

#include <stdarg.h>

#include "mpi/self.h"

#define TB_ERROR_ADDED       (MPI_ERR_LASTCODE + 1)
#define TB_ERROR_ADDED_LIMIT 8192 /* classes and codes that a program may add */
#define TB_ERROR_TOLD        (1 << 30)
#define TB_ERROR_STORIES     64

struct tb_errhandler;

/* Raises an error of `class` in `call`: tells its story, calls the error handler of `comm` (NULL: of the process, which
 * is that of MPI_COMM_SELF, or of MPI_COMM_WORLD as long as the former is the initial one, or the initial one itself
 * where these communicators are not) and returns the code, unless the handler ends the job. */
int tb_raise(struct tb_comm *comm, int class, const char *call, const char *format, ...)
    __attribute__((format(printf, 4, 5), cold));
/* The same about one argument of the call: "MPI_Send: argument 4 (dest): ...". */
int tb_raise_argument(struct tb_comm *comm, int class, const char *call, int position, const char *name,
                      const char *format, ...) __attribute__((format(printf, 6, 7), cold));
/* The same for an error of a layer below, whose story is in tb_error. */
int tb_raise_below(struct tb_comm *comm, int error, const char *call) __attribute__((cold));
/* The handle of a communicator, argument `position`, is not one: says why. Also when MPI is not active. */
int tb_raise_comm(const char *call, int position, const char *name, MPI_Comm comm) __attribute__((cold));
/* A pointer for a result is NULL. */
int tb_raise_null(struct tb_comm *comm, const char *call, int position, const char *name) __attribute__((cold));
/* Ends the process when MPI is not active, since there is nobody to return an error to. */
void tb_require_active_slow(const char *call) __attribute__((cold));

static inline void tb_require_active(const char *call)
{
    if (!tb_self_active())
        tb_require_active_slow(call);
}

/* The same when the world model is not active: sessions are not enough for these calls. */
void tb_require_world(const char *call);

/* Makes a code with a story, without raising it. */
int tb_error_code(int class, const char *call, const char *format, ...) __attribute__((format(printf, 3, 4), cold));
/* The same for an error of a layer below, whose story is in tb_error. */
int tb_error_code_below(int error, const char *call) __attribute__((cold));
/* The same code, of which it is known now that another rank says more if that has given up a collective. */
int tb_error_code_following(int code, int error);
/* Adds to the story of a code that was made in `call` what it is about: "MPI_Waitall: <detail>: ...". A code without a
 * story stays as it is. */
void tb_error_add_detail(int code, const char *call, const char *detail) __attribute__((cold));
/* Calls the error handler with a code that was made before; returns the code. */
int tb_raise_code(struct tb_comm *comm, int code) __attribute__((cold));
/* The same for an error handler that is not that of a communicator. The program's function is given `object`, the
 * address of a handle of the handler's kind. */
int tb_raise_to(struct tb_errhandler *handler, void *object, int code) __attribute__((cold));
/* The same for one in a place of which another thread may take it. */
int tb_raise_at(struct tb_errhandler *const *place, void *object, int code) __attribute__((cold));
/* The class that fits an error of the layers below. */
int tb_error_class_of(int error);
int tb_error_class(int code); /* of a code; MPI_ERR_UNKNOWN if there is none */
void tb_error_text(int code, char text[MPI_MAX_ERROR_STRING]);
int tb_error_last_used(void);

/* Before the process ends: writes out what the program has printed. A stream that another thread holds is passed over,
 * since that thread may wait for ever. */
void tb_error_flush_output(void) __attribute__((cold));
/* Ends the job with the code's text, which the launcher shows; or the process, where there is no job to end. */
_Noreturn void tb_error_fatal(int code) __attribute__((cold));
/* The same in a call that ends MPI, whatever the error handler: nobody can act on it any more. The cause may be an
 * earlier error that the program was given back and went on from, so the text tells the first one, too. */
_Noreturn void tb_error_fatal_last(int code, const char *call) __attribute__((cold));

/* ---- error handlers ---------------------------------------------------------------------------------------------- */

enum tb_errhandler_kind {
    TB_ERRHANDLER_PREDEFINED,
    TB_ERRHANDLER_COMM,
    TB_ERRHANDLER_WIN,
    TB_ERRHANDLER_FILE,
    TB_ERRHANDLER_SESSION
};

struct tb_errhandler {
    struct tb_handle head;
    enum tb_errhandler_kind kind;
    uint32_t references; /* handles given out and objects that use it */
    MPI_Errhandler handle;
    union {
        MPI_Comm_errhandler_function *comm;
        MPI_Win_errhandler_function *win;
        MPI_File_errhandler_function *file;
        MPI_Session_errhandler_function *session;
    } function;
};

extern struct tb_errhandler tb_errhandler_fatal, tb_errhandler_abort, tb_errhandler_return;

/* What this process was started with (job/start_hints.h): the error handler of the predefined communicators until the
 * program sets another one, and of what has none. Predefined itself. */
struct tb_errhandler *tb_errhandler_initial(void);
/* The error handler of a handle, if it is predefined or of that kind; else NULL. */
struct tb_errhandler *tb_errhandler_find(MPI_Errhandler handle, enum tb_errhandler_kind kind);
/* The code for a handle, argument `position`, that is none; not raised yet. */
int tb_errhandler_wrong(const char *call, int position, MPI_Errhandler handle, enum tb_errhandler_kind kind)
    __attribute__((cold));
/* What is in a place of which another thread may take it; held. NULL: nothing. */
struct tb_errhandler *tb_errhandler_at(struct tb_errhandler *const *place);
/* Puts another one into the place of one, which is let go, or of NULL. */
void tb_errhandler_replace(struct tb_errhandler **place, struct tb_errhandler *handler);
/* Calls the program's function. */
void tb_errhandler_call(const struct tb_errhandler *handler, void *object, int *code);
struct tb_errhandler *tb_errhandler_hold(struct tb_errhandler *handler);
void tb_errhandler_release(struct tb_errhandler *handler);

#endif
