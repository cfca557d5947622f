/* Error classes and codes (MPI-5.0, 9.3 to 9.5): the stories behind them, raising them, and those that the program
 * adds. */
#include "mpi/error.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "mpi/comm.h"
#include "mpi/binding_decls.h"
#include "mpi/error_text.h"

struct story {
    int code;
    bool follows; /* another rank has given up, which is the cause */
    char text[MPI_MAX_ERROR_STRING];
};

/* A class or code that the program has added. */
struct added {
    enum { ADDED_FREE, ADDED_CLASS, ADDED_CODE } use;
    int class;
    uint32_t codes; /* of an added class: codes that belong to it */
    char *text;
};

struct tb_error_table {
    uint32_t serial; /* of the last story */
    struct story stories[TB_ERROR_STORIES];
    struct added *added;
    int added_room, last_used;
    char first[MPI_MAX_ERROR_STRING]; /* story of an error of communication that the program was given back */
};

static struct tb_error_table *error_table(void)
{
    if (tb_self.errors == NULL)
        tb_self.errors = calloc(1, sizeof *tb_self.errors);
    return tb_self.errors;
}

/* Stories are told under a lock of their own kind, whether or not the process is threaded: this is never a fast path.
 */
static __attribute__((format(printf, 3, 0))) int tell(int class, const char *call, const char *format,
                                                      va_list arguments)
{
    pthread_mutex_lock(&tb_self.error_lock);
    struct tb_error_table *book = error_table();
    int code = class;
    if (book != NULL) {
        uint32_t serial = ++book->serial & 0x3fffff;
        struct story *story = &book->stories[serial % TB_ERROR_STORIES];
        code = TB_ERROR_TOLD | (int)(serial << 8) | class;
        story->code = code;
        story->follows = false;
        int n = snprintf(story->text, sizeof story->text, "%s: ", call);
        vsnprintf(story->text + n, sizeof story->text - (size_t)n, format, arguments);
    }
    pthread_mutex_unlock(&tb_self.error_lock);
    return code;
}

int tb_error_code(int class, const char *call, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int code = tell(class, call, format, arguments);
    va_end(arguments);
    return code;
}

/* The story of a code; NULL if it has none, or if it is too old. The table is locked. */
static struct story *story_of(int code)
{
    struct tb_error_table *book = tb_self.errors;
    if (book == NULL || code <= 0 || (code & TB_ERROR_TOLD) == 0)
        return NULL;
    struct story *story = &book->stories[(uint32_t)code >> 8 & (TB_ERROR_STORIES - 1)];
    return story->code == code ? story : NULL;
}

int tb_error_code_following(int code, int error)
{
    pthread_mutex_lock(&tb_self.error_lock);
    struct story *story = story_of(code);
    if (story != NULL)
        story->follows = error == TB_ERR_GIVEN_UP;
    pthread_mutex_unlock(&tb_self.error_lock);
    return code;
}

int tb_error_code_below(int error, const char *call)
{
    const char *told = tb_error_story();
    int code = tb_error_code(tb_error_class_of(error), call, "%s", told[0] != 0 ? told : tb_error_name(error));
    return tb_error_code_following(code, error);
}

void tb_error_add_detail(int code, const char *call, const char *detail)
{
    pthread_mutex_lock(&tb_self.error_lock);
    struct story *story = story_of(code);
    size_t n = strlen(call), more = strlen(detail) + 2;
    if (story != NULL && strncmp(story->text, call, n) == 0 && strncmp(story->text + n, ": ", 2) == 0) {
        char *at = story->text + n + 2;
        size_t length = strlen(at), room = sizeof story->text - 1 - n - 2;
        TB_ASSERT(more <= room);
        if (length > room - more)
            length = room - more;
        memmove(at + more, at, length);
        at[more + length] = 0;
        memcpy(at, detail, more - 2);
        memcpy(at + more - 2, ": ", 2);
    }
    pthread_mutex_unlock(&tb_self.error_lock);
}

int tb_error_class_of(int error)
{
    switch (error) {
    case TB_OK:
        return MPI_SUCCESS;
    case TB_ERR_MEMORY:
        return MPI_ERR_NO_MEM;
    case TB_ERR_ARGUMENT:
        return MPI_ERR_ARG;
    case TB_ERR_PEER:
    case TB_ERR_CLOSED:
        return MPI_ERR_PROC_ABORTED;
    case TB_ERR_TRUNCATE:
        return MPI_ERR_TRUNCATE;
    case TB_ERR_UNSUPPORTED:
        return MPI_ERR_UNSUPPORTED_OPERATION;
    case TB_ERR_EPOCH:
        return MPI_ERR_RMA_SYNC;
    case TB_ERR_INTERNAL:
        return MPI_ERR_INTERN;
    default:
        return MPI_ERR_OTHER;
    }
}

static const struct added *added_find(int code)
{
    const struct tb_error_table *book = tb_self.errors;
    int at = code - TB_ERROR_ADDED;
    if (book == NULL || at < 0 || at >= book->added_room || book->added[at].use == ADDED_FREE)
        return NULL;
    return &book->added[at];
}

int tb_error_class(int code)
{
    int standard = code > 0 && (code & TB_ERROR_TOLD) != 0 ? code & 0xff : code;
    if (tb_error_class_text(standard) != NULL)
        return standard;
    pthread_mutex_lock(&tb_self.error_lock);
    const struct added *added = added_find(code);
    int class = added != NULL ? added->class : MPI_ERR_UNKNOWN;
    pthread_mutex_unlock(&tb_self.error_lock);
    return class;
}

void tb_error_text(int code, char text[MPI_MAX_ERROR_STRING])
{
    pthread_mutex_lock(&tb_self.error_lock);
    const struct added *added = added_find(code);
    const struct story *story = story_of(code);
    const char *source = NULL;
    if (code > 0 && (code & TB_ERROR_TOLD) != 0) {
        source = story != NULL ? story->text : tb_error_class_text(code & 0xff);
    } else if (added != NULL) {
        source = added->text != NULL ? added->text : "";
    } else {
        source = tb_error_class_text(code);
    }
    snprintf(text, MPI_MAX_ERROR_STRING, "%s", source != NULL ? source : "this is no error code");
    pthread_mutex_unlock(&tb_self.error_lock);
}

int tb_error_last_used(void)
{
    pthread_mutex_lock(&tb_self.error_lock);
    int last = tb_self.errors != NULL && tb_self.errors->last_used > 0 ? tb_self.errors->last_used : MPI_ERR_LASTCODE;
    pthread_mutex_unlock(&tb_self.error_lock);
    return last;
}

/* ---- raising ----------------------------------------------------------------------------------------------------- */

void tb_error_flush_output(void)
{
    FILE *const streams[] = {stdout, stderr};
    for (size_t i = 0; i < sizeof streams / sizeof streams[0]; i++) {
        if (ftrylockfile(streams[i]) != 0)
            continue;
        fflush(streams[i]);
        funlockfile(streams[i]);
    }
}

static enum tb_abort_reason reason_of(int code)
{
    pthread_mutex_lock(&tb_self.error_lock);
    const struct story *story = story_of(code);
    bool follows = story != NULL && story->follows;
    pthread_mutex_unlock(&tb_self.error_lock);
    if (follows)
        return TB_ABORT_FOLLOWS;
    return tb_error_class(code) == MPI_ERR_PROC_ABORTED ? TB_ABORT_LOST : TB_ABORT_ERROR;
}

/* Ends the job, or those of the communicator. */
static _Noreturn void end_with(int code, const struct tb_comm *comm)
{
    char text[MPI_MAX_ERROR_STRING];
    tb_error_text(code, text);
    int status = tb_error_class(code);
    if (status <= 0 || status > 255)
        status = 1;
    tb_error_flush_output();
    if (tb_self.job.control < 0 || tb_self.state != TB_STATE_ACTIVE) {
        fprintf(stderr, "tombolo: process %d: %s\n", (int)getpid(), text);
        _exit(status);
    }
    /* The launcher shows the text, with rank, host and process. */
    tb_comm_abort(comm, status, reason_of(code), text);
}

_Noreturn void tb_error_fatal(int code)
{
    end_with(code, NULL);
}

_Noreturn void tb_error_fatal_last(int code, const char *call)
{
    char text[MPI_MAX_ERROR_STRING];
    const char *first = tb_self.errors != NULL ? tb_self.errors->first : "";
    tb_error_text(code, text);
    const char *bare = strstr(text, ": ");
    if (first[0] != 0 && bare != NULL)
        code = tb_error_code(tb_error_class(code), call, "%.300s; before that this rank was given an error: %s",
                             bare + 2, first);
    tb_error_fatal(code);
}

/* The first error that the other ranks are concerned with is remembered for the end. */
static int give_back(int code)
{
    int class = tb_error_class(code);
    pthread_mutex_lock(&tb_self.error_lock);
    const struct story *story = story_of(code);
    if (story != NULL && tb_self.errors->first[0] == 0 &&
        (class == MPI_ERR_OTHER || class == MPI_ERR_TRUNCATE || class == MPI_ERR_NO_MEM ||
         class == MPI_ERR_PROC_ABORTED || class == MPI_ERR_INTERN))
        memcpy(tb_self.errors->first, story->text, sizeof story->text);
    pthread_mutex_unlock(&tb_self.error_lock);
    return code;
}

int tb_raise_to(struct tb_errhandler *handler, void *object, int code)
{
    int copy = code;
    if (handler == &tb_errhandler_return)
        return give_back(code);
    if (handler->kind == TB_ERRHANDLER_PREDEFINED)
        tb_error_fatal(code);
    tb_errhandler_call(handler, object, &copy);
    return give_back(code);
}

int tb_raise_at(struct tb_errhandler *const *place, void *object, int code)
{
    struct tb_errhandler *handler = tb_errhandler_at(place);
    int raised = tb_raise_to(handler, object, code);
    tb_errhandler_release(handler);
    return raised;
}

int tb_raise_code(struct tb_comm *comm, int code)
{
    bool given = comm != NULL;
    if (comm == NULL)
        comm = tb_self.self;
    if (comm == NULL) /* before MPI_Init, after MPI_Finalize, or with sessions alone */
        return tb_raise_to(tb_errhandler_initial(), NULL, code);
    /* Before MPI 4.0 such errors went to MPI_COMM_WORLD, and programs that set its handler still expect that. */
    if (!given && comm->errhandler == tb_errhandler_initial())
        comm = tb_self.world;
    MPI_Comm handle = tb_comm_handle(comm);
    if (comm->errhandler == &tb_errhandler_abort) /* as if MPI_Abort were called */
        end_with(code, comm);
    return tb_raise_at(&comm->errhandler, &handle, code);
}

int tb_raise(struct tb_comm *comm, int class, const char *call, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int code = tell(class, call, format, arguments);
    va_end(arguments);
    return tb_raise_code(comm, code);
}

int tb_raise_argument(struct tb_comm *comm, int class, const char *call, int position, const char *name,
                      const char *format, ...)
{
    char text[MPI_MAX_ERROR_STRING];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return tb_raise(comm, class, call, "argument %d (%s): %s", position, name, text);
}

int tb_raise_below(struct tb_comm *comm, int error, const char *call)
{
    return tb_raise_code(comm, tb_error_code_below(error, call));
}

void tb_require_active_slow(const char *call)
{
    const char *why = "MPI_Init has not been called yet";
    if (tb_self.model == TB_WORLD_AFTER)
        why = "MPI_Finalize has been called already";
    else if (tb_self.state == TB_STATE_RESTING)
        why = "MPI_Init has not been called, and no session is left";
    if (tb_self.state == TB_STATE_FORKED)
        why = "this process was forked by a process of the job and cannot use MPI";
    if (tb_self.state != TB_STATE_ACTIVE)
        tb_error_fatal(tb_error_code(MPI_ERR_OTHER, call, "%s", why));
}

void tb_require_world(const char *call)
{
    tb_require_active(call);
    if (tb_self.model != TB_WORLD_ACTIVE)
        tb_error_fatal(tb_error_code(MPI_ERR_OTHER, call, "%s",
                                     tb_self.model == TB_WORLD_AFTER
                                         ? "MPI_Finalize has been called already"
                                         : "MPI_Init has not been called, and a session is not enough for this"));
}

int tb_raise_comm(const char *call, int position, const char *name, MPI_Comm comm)
{
    tb_require_active(call);
    const char *what = "this is no handle of a communicator";
    if (comm == MPI_COMM_NULL)
        what = "it is MPI_COMM_NULL";
    else if (comm == MPI_COMM_WORLD || comm == MPI_COMM_SELF)
        what = tb_self.model == TB_WORLD_AFTER ? "MPI_Finalize has been called already"
                                               : "without MPI_Init there is none; make one from a group of the session";
    else if ((uint64_t)(uintptr_t)comm >> 56 == TB_OBJECT_COMM)
        what = "the communicator has been freed";
    return tb_raise_argument(NULL, MPI_ERR_COMM, call, position, name, "%s", what);
}

int tb_raise_null(struct tb_comm *comm, const char *call, int position, const char *name)
{
    tb_require_active(call);
    return tb_raise_argument(comm, MPI_ERR_ARG, call, position, name, "the pointer is null");
}

int tb_mpi_unsupported(const char *call, MPI_Comm comm)
{
    const char *why = "not implemented in this version; `tombolo info --unimplemented` lists what is not";
    if (!tb_self_active()) /* some of these calls are allowed then, and no others would help */
        tb_error_fatal(tb_error_code(MPI_ERR_UNSUPPORTED_OPERATION, call, "%s", why));
    return tb_raise(tb_comm_find(comm), MPI_ERR_UNSUPPORTED_OPERATION, call, "%s", why);
}

/* ---- the calls --------------------------------------------------------------------------------------------------- */

int tb_mpi_Error_class(int errorcode, int *errorclass)
{
    if (errorclass == NULL)
        return tb_raise_argument(NULL, MPI_ERR_ARG, "MPI_Error_class", 2, "errorclass", "the pointer is null");
    *errorclass = tb_error_class(errorcode);
    return MPI_SUCCESS;
}

int tb_mpi_Error_string(int errorcode, char *string, int *resultlen)
{
    if (string == NULL || resultlen == NULL)
        return tb_raise_argument(NULL, MPI_ERR_ARG, "MPI_Error_string", string == NULL ? 2 : 3,
                                 string == NULL ? "string" : "resultlen", "the pointer is null");
    tb_error_text(errorcode, string);
    *resultlen = (int)strlen(string);
    return MPI_SUCCESS;
}

/* A free entry; its number or -1. The table is locked. */
static int added_take(int class)
{
    struct tb_error_table *book = error_table();
    if (book == NULL)
        return -1;
    int at = 0;
    while (at < book->added_room && book->added[at].use != ADDED_FREE)
        at++;
    if (at == book->added_room) {
        int room = book->added_room == 0 ? 16 : 2 * book->added_room;
        struct added *added = room > TB_ERROR_ADDED_LIMIT ? NULL : realloc(book->added, (size_t)room * sizeof *added);
        if (added == NULL)
            return -1;
        memset(added + at, 0, (size_t)(room - at) * sizeof *added);
        book->added = added;
        book->added_room = room;
    }
    int code = TB_ERROR_ADDED + at;
    book->added[at] = (struct added){.use = class < 0 ? ADDED_CLASS : ADDED_CODE, .class = class < 0 ? code : class};
    if (code > book->last_used)
        book->last_used = code;
    return code;
}

static int add_entry(const char *call, int class, int *result, const char *name, int position)
{
    if (result == NULL)
        return tb_raise_argument(NULL, MPI_ERR_ARG, call, position, name, "the pointer is null");
    pthread_mutex_lock(&tb_self.error_lock);
    struct added *owner = class < 0 ? NULL : (struct added *)added_find(class);
    bool known = class < tb_error_class_count() || (owner != NULL && owner->use == ADDED_CLASS);
    int code = known ? added_take(class) : 0;
    owner = class < 0 ? NULL : (struct added *)added_find(class);
    if (code > 0 && owner != NULL)
        owner->codes++;
    pthread_mutex_unlock(&tb_self.error_lock);
    if (!known)
        return tb_raise_argument(NULL, MPI_ERR_ARG, call, 1, "errorclass", "%d is not an error class", class);
    if (code < 0)
        return tb_raise(NULL, MPI_ERR_NO_MEM, call, "there is no room for more than %d error classes and codes",
                        TB_ERROR_ADDED_LIMIT);
    *result = code;
    return MPI_SUCCESS;
}

int tb_mpi_Add_error_class(int *errorclass)
{
    return add_entry("MPI_Add_error_class", -1, errorclass, "errorclass", 1);
}

int tb_mpi_Add_error_code(int errorclass, int *errorcode)
{
    if (errorclass < 0)
        return tb_raise_argument(NULL, MPI_ERR_ARG, "MPI_Add_error_code", 1, "errorclass", "%d is not an error class",
                                 errorclass);
    return add_entry("MPI_Add_error_code", errorclass, errorcode, "errorcode", 2);
}

/* Sets or takes away the text of a code that was added. */
static int set_text(const char *call, int code, const char *string, bool remove)
{
    char *text = remove || string == NULL ? NULL : strndup(string, MPI_MAX_ERROR_STRING - 1);
    if (!remove && text == NULL)
        return tb_raise_argument(NULL, MPI_ERR_ARG, call, 2, "string", "the string cannot be kept");
    pthread_mutex_lock(&tb_self.error_lock);
    struct added *added = (struct added *)added_find(code);
    bool known = added != NULL && !(remove && added->text == NULL);
    char *old = text;
    if (known) {
        old = added->text;
        added->text = text;
    }
    pthread_mutex_unlock(&tb_self.error_lock);
    free(old);
    if (!known)
        return tb_raise_argument(NULL, MPI_ERR_ARG, call, 1, "errorcode", "%d has no text that the program has added",
                                 code);
    return MPI_SUCCESS;
}

int tb_mpi_Add_error_string(int errorcode, const char *string)
{
    return set_text("MPI_Add_error_string", errorcode, string, false);
}

int tb_mpi_Remove_error_string(int errorcode)
{
    return set_text("MPI_Remove_error_string", errorcode, NULL, true);
}

static int remove_entry(const char *call, int code, int use, const char *name)
{
    pthread_mutex_lock(&tb_self.error_lock);
    struct added *added = (struct added *)added_find(code);
    const char *why = NULL;
    if (added == NULL || (int)added->use != use)
        why = "the program has not added it";
    else if (added->text != NULL)
        why = "its text must be removed first";
    else if (added->codes > 0)
        why = "its codes must be removed first";
    if (why == NULL) {
        struct added *owner = added->use == ADDED_CODE ? (struct added *)added_find(added->class) : NULL;
        if (owner != NULL)
            owner->codes--;
        *added = (struct added){.use = ADDED_FREE};
    }
    pthread_mutex_unlock(&tb_self.error_lock);
    if (why != NULL)
        return tb_raise_argument(NULL, MPI_ERR_ARG, call, 1, name, "%d: %s", code, why);
    return MPI_SUCCESS;
}

int tb_mpi_Remove_error_class(int errorclass)
{
    return remove_entry("MPI_Remove_error_class", errorclass, ADDED_CLASS, "errorclass");
}

int tb_mpi_Remove_error_code(int errorcode)
{
    return remove_entry("MPI_Remove_error_code", errorcode, ADDED_CODE, "errorcode");
}
