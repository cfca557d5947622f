/* Beginning and ending sessions (MPI-5.0, 11.3.1). */
#include <stdlib.h>
#include <string.h>

#include "mpi/binding_decls.h"
#include "mpi/buffered.h"
#include "mpi/error.h"
#include "mpi/hint.h"
#include "mpi/presence.h"
#include "mpi/session_error.h"
#include "mpi/win.h"

static const struct level {
    const char *name;
    int level;
} levels[] = {
    {"MPI_THREAD_SINGLE", MPI_THREAD_SINGLE},
    {"MPI_THREAD_FUNNELED", MPI_THREAD_FUNNELED},
    {"MPI_THREAD_SERIALIZED", MPI_THREAD_SERIALIZED},
    {"MPI_THREAD_MULTIPLE", MPI_THREAD_MULTIPLE},
};
#define LEVEL_COUNT (sizeof levels / sizeof levels[0])

/* The level that an info object asks for, else the highest; -1: its value is no level. */
static int level_wanted(const struct tb_info *info)
{
    const char *value = info != NULL ? tb_info_value(info, "thread_level") : NULL;
    if (value == NULL)
        return MPI_THREAD_MULTIPLE;
    for (size_t i = 0; i < LEVEL_COUNT; i++)
        if (strcmp(value, levels[i].name) == 0)
            return levels[i].level;
    return -1;
}

/* The kinds of memory that an info object asks for; NULL: none. */
static const char *kinds_wanted(const struct tb_info *info)
{
    return info != NULL ? tb_info_value(info, "mpi_memory_alloc_kinds") : NULL;
}

static int session_open(const char *call, struct tb_errhandler *errhandler, int level, const char *kinds,
                        MPI_Session *session)
{
    /* What else will use the library is not known, so an engine that is opened here is for any number of threads. */
    int error = tb_presence_enter(true);
    if (error < 0)
        return tb_error_code(tb_error_class_of(error), call, "%s", tb_error_story());
    char *copy = kinds != NULL ? strdup(kinds) : NULL;
    bool whole = copy != NULL || kinds == NULL;
    struct tb_session *made = whole ? tb_handle_take(TB_OBJECT_SESSION, sizeof *made) : NULL;
    if (made == NULL) {
        free(copy);
        int code = tb_error_code_below(TB_ERR_MEMORY, call);
        tb_presence_leave(call);
        return code;
    }
    made->references = 1;
    made->memory_kinds = copy;
    made->errhandler = tb_errhandler_hold(errhandler);
    made->thread_level = tb_self.single && level == MPI_THREAD_MULTIPLE ? MPI_THREAD_SERIALIZED : level;
    *session = (MPI_Session)(uintptr_t)made->head.value;
    return MPI_SUCCESS;
}

int tb_mpi_Session_init(MPI_Info info, MPI_Errhandler errhandler, MPI_Session *session)
{
    static const char call[] = "MPI_Session_init";
    struct tb_errhandler *handler = tb_errhandler_find(errhandler, TB_ERRHANDLER_SESSION);
    const struct tb_info *i = info != MPI_INFO_NULL ? tb_info_find(info) : NULL;
    MPI_Session none = MPI_SESSION_NULL;
    if (handler == NULL)
        return tb_raise_code(NULL, tb_errhandler_wrong(call, 2, errhandler, TB_ERRHANDLER_SESSION));
    int code = MPI_SUCCESS, level = level_wanted(i);
    if (session == NULL)
        code = tb_error_code(MPI_ERR_ARG, call, "argument 3 (session): the pointer is null");
    else if (info != MPI_INFO_NULL && i == NULL)
        code = tb_error_code(MPI_ERR_INFO, call, "argument 1 (info): this is no info object, or it has been freed");
    else if (level < 0)
        code = tb_error_code(MPI_ERR_INFO_VALUE, call, "argument 1 (info): %s is no value of thread_level",
                             tb_info_value(i, "thread_level"));
    else if (kinds_wanted(i) != NULL && tb_memory_kinds_check(kinds_wanted(i)) != TB_OK)
        code = tb_error_code(MPI_ERR_INFO_VALUE, call, "argument 1 (info): %s as mpi_memory_alloc_kinds: %s",
                             kinds_wanted(i), tb_error_story());
    else
        code = session_open(call, handler, level, kinds_wanted(i), session);
    return code == MPI_SUCCESS ? code : tb_raise_to(handler, &none, code);
}

/* What the program has made from it and not freed goes on to exist, and to be of no use. */
int tb_mpi_Session_finalize(MPI_Session *session)
{
    static const char call[] = "MPI_Session_finalize";
    if (session == NULL)
        return tb_raise_argument(NULL, MPI_ERR_ARG, call, 1, "session", "the pointer is null");
    struct tb_session *s = tb_session_find(*session);
    if (s == NULL)
        return tb_raise_no_session(call, *session);
    tb_bsend_close(&s->bsend);
    tb_wins_leave(s);
    s->finalized = s->head.value;
    s->head.value = 0;
    tb_errhandler_release(s->errhandler);
    tb_session_release(s);
    tb_presence_leave(call);
    *session = MPI_SESSION_NULL;
    return MPI_SUCCESS;
}

int tb_mpi_Session_get_info(MPI_Session session, MPI_Info *info_used)
{
    static const char call[] = "MPI_Session_get_info";
    struct tb_session *s = tb_session_find(session);
    if (s == NULL)
        return tb_raise_no_session(call, session);
    if (info_used == NULL)
        return tb_raise_session_null(s, call, 2, "info_used");
    const char *level = NULL;
    for (size_t i = 0; i < LEVEL_COUNT; i++)
        if (levels[i].level == s->thread_level)
            level = levels[i].name;
    struct tb_info *made = tb_info_new();
    int error = made == NULL ? TB_ERR_MEMORY : tb_info_put(made, "thread_level", level);
    if (error == TB_OK)
        error = tb_memory_kinds_put(made, s);
    if (error < 0) {
        if (made != NULL)
            tb_info_free(made);
        return tb_raise_session_code(s, tb_error_code_below(error, call));
    }
    *info_used = tb_info_handle(made);
    return MPI_SUCCESS;
}
