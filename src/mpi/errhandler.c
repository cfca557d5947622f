/* Error handlers (MPI-5.0, 9.3): making and freeing those of each kind. */
#include "mpi/error.h"

#include <stdlib.h>

#include "mpi/binding_decls.h"

struct tb_errhandler tb_errhandler_fatal = {.handle = MPI_ERRORS_ARE_FATAL};
struct tb_errhandler tb_errhandler_abort = {.handle = MPI_ERRORS_ABORT};
struct tb_errhandler tb_errhandler_return = {.handle = MPI_ERRORS_RETURN};

/* MPI_Init refuses a name that is none. */
struct tb_errhandler *tb_errhandler_initial(void)
{
    const char *name = tb_param.initial_errhandler; /* there are no parameters before MPI_Init */
    if (name == NULL)
        name = getenv(TB_FIRST_ERRHANDLER_VARIABLE);
    switch (name != NULL ? tb_first_errhandler_find(name) : TB_FIRST_FATAL) {
    case TB_FIRST_ABORT:
        return &tb_errhandler_abort;
    case TB_FIRST_RETURN:
        return &tb_errhandler_return;
    default:
        return &tb_errhandler_fatal;
    }
}

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

struct tb_errhandler *tb_errhandler_find(MPI_Errhandler handle, enum tb_errhandler_kind kind)
{
    struct tb_errhandler *found = errhandler_find(handle);
    bool fits = found != NULL && (found->kind == TB_ERRHANDLER_PREDEFINED || found->kind == kind);
    return fits ? found : NULL;
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

struct tb_errhandler *tb_errhandler_at(struct tb_errhandler *const *place)
{
    pthread_mutex_lock(&tb_self.anytime_lock);
    struct tb_errhandler *handler = *place != NULL ? tb_errhandler_hold(*place) : NULL;
    pthread_mutex_unlock(&tb_self.anytime_lock);
    return handler;
}

void tb_errhandler_replace(struct tb_errhandler **place, struct tb_errhandler *handler)
{
    tb_errhandler_hold(handler);
    pthread_mutex_lock(&tb_self.anytime_lock);
    struct tb_errhandler *before = *place;
    __atomic_store_n(place, handler, __ATOMIC_RELEASE);
    pthread_mutex_unlock(&tb_self.anytime_lock);
    if (before != NULL)
        tb_errhandler_release(before);
}

void tb_errhandler_call(const struct tb_errhandler *handler, void *object, int *code)
{
    switch (handler->kind) {
    case TB_ERRHANDLER_COMM:
        handler->function.comm(object, code);
        break;
    case TB_ERRHANDLER_WIN:
        handler->function.win(object, code);
        break;
    case TB_ERRHANDLER_FILE:
        handler->function.file(object, code);
        break;
    case TB_ERRHANDLER_SESSION:
        handler->function.session(object, code);
        break;
    default:
        break;
    }
}

int tb_errhandler_wrong(const char *call, int position, MPI_Errhandler handle, enum tb_errhandler_kind kind)
{
    static const char *const makers[] = {
        [TB_ERRHANDLER_COMM] = "MPI_Comm_create_errhandler",
        [TB_ERRHANDLER_WIN] = "MPI_Win_create_errhandler",
        [TB_ERRHANDLER_FILE] = "MPI_File_create_errhandler",
        [TB_ERRHANDLER_SESSION] = "MPI_Session_create_errhandler",
    };
    const struct tb_errhandler *found = errhandler_find(handle);
    if (found != NULL)
        return tb_error_code(MPI_ERR_ERRHANDLER, call,
                             "argument %d (errhandler): it was made by %s, and one of %s is needed", position,
                             makers[found->kind], makers[kind]);
    return tb_error_code(MPI_ERR_ERRHANDLER, call, "argument %d (errhandler): %s", position,
                         handle == MPI_ERRHANDLER_NULL ? "it is MPI_ERRHANDLER_NULL"
                                                       : "this is no handle of an error handler, or it has been freed");
}

/* A new one, whose function the caller sets; NULL: an error was raised. */
static struct tb_errhandler *errhandler_new(const char *call, enum tb_errhandler_kind kind, bool has_function,
                                            const char *name, MPI_Errhandler *errhandler, int *code)
{
    if (!has_function || errhandler == NULL) {
        *code = tb_raise_argument(NULL, MPI_ERR_ARG, call, has_function ? 2 : 1, has_function ? "errhandler" : name,
                                  "the pointer is null");
        return NULL;
    }
    struct tb_errhandler *handler = tb_handle_take(TB_OBJECT_ERRHANDLER, sizeof *handler);
    if (handler == NULL) {
        *code = tb_raise_below(NULL, TB_ERR_MEMORY, call);
        return NULL;
    }
    handler->kind = kind;
    handler->references = 1;
    handler->handle = (MPI_Errhandler)(uintptr_t)handler->head.value;
    *errhandler = handler->handle;
    *code = MPI_SUCCESS;
    return handler;
}

int tb_mpi_Comm_create_errhandler(MPI_Comm_errhandler_function *comm_errhandler_fn, MPI_Errhandler *errhandler)
{
    int code;
    struct tb_errhandler *made = errhandler_new("MPI_Comm_create_errhandler", TB_ERRHANDLER_COMM,
                                                comm_errhandler_fn != NULL, "comm_errhandler_fn", errhandler, &code);
    if (made != NULL)
        made->function.comm = comm_errhandler_fn;
    return code;
}

int tb_mpi_Win_create_errhandler(MPI_Win_errhandler_function *win_errhandler_fn, MPI_Errhandler *errhandler)
{
    int code;
    struct tb_errhandler *made = errhandler_new("MPI_Win_create_errhandler", TB_ERRHANDLER_WIN,
                                                win_errhandler_fn != NULL, "win_errhandler_fn", errhandler, &code);
    if (made != NULL)
        made->function.win = win_errhandler_fn;
    return code;
}

int tb_mpi_File_create_errhandler(MPI_File_errhandler_function *file_errhandler_fn, MPI_Errhandler *errhandler)
{
    int code;
    struct tb_errhandler *made = errhandler_new("MPI_File_create_errhandler", TB_ERRHANDLER_FILE,
                                                file_errhandler_fn != NULL, "file_errhandler_fn", errhandler, &code);
    if (made != NULL)
        made->function.file = file_errhandler_fn;
    return code;
}

int tb_mpi_Session_create_errhandler(MPI_Session_errhandler_function *session_errhandler_fn, MPI_Errhandler *errhandler)
{
    int code;
    struct tb_errhandler *made =
        errhandler_new("MPI_Session_create_errhandler", TB_ERRHANDLER_SESSION, session_errhandler_fn != NULL,
                       "session_errhandler_fn", errhandler, &code);
    if (made != NULL)
        made->function.session = session_errhandler_fn;
    return code;
}

int tb_mpi_Errhandler_free(MPI_Errhandler *errhandler)
{
    static const char call[] = "MPI_Errhandler_free";
    if (errhandler == NULL)
        return tb_raise_argument(NULL, MPI_ERR_ARG, call, 1, "errhandler", "the pointer is null");
    struct tb_errhandler *handler = errhandler_find(*errhandler);
    if (handler == NULL)
        return tb_raise_code(NULL, tb_errhandler_wrong(call, 1, *errhandler, TB_ERRHANDLER_PREDEFINED));
    tb_errhandler_release(handler);
    *errhandler = MPI_ERRHANDLER_NULL;
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
