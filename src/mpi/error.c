/* Error classes and codes (MPI-5.0, 9.3 to 9.5): their texts, the stories behind them, and raising them. */
#pragma GCC visibility push(default)
#include <tombolo.h>
#pragma GCC visibility pop

#include "mpi/error.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "mpi/comm.h"
#include "mpi/binding_decls.h"

static const char *const class_texts[] = {
    [MPI_SUCCESS] = "no error",
    [MPI_ERR_BUFFER] = "the buffer cannot be used",
    [MPI_ERR_COUNT] = "the count is not valid",
    [MPI_ERR_TYPE] = "the datatype is not valid",
    [MPI_ERR_TAG] = "the tag is not valid",
    [MPI_ERR_COMM] = "the communicator is not valid",
    [MPI_ERR_RANK] = "the rank is not in the group",
    [MPI_ERR_REQUEST] = "the request is not valid",
    [MPI_ERR_ROOT] = "the root is not in the group",
    [MPI_ERR_GROUP] = "the group is not valid",
    [MPI_ERR_OP] = "the operation is not valid here",
    [MPI_ERR_TOPOLOGY] = "the communicator's topology does not fit the call",
    [MPI_ERR_DIMS] = "the dimensions are not valid",
    [MPI_ERR_ARG] = "an argument is not valid",
    [MPI_ERR_UNKNOWN] = "an error that has no class",
    [MPI_ERR_TRUNCATE] = "the message is longer than the buffer for it",
    [MPI_ERR_OTHER] = "an error that has no class of its own",
    [MPI_ERR_INTERN] = "an internal error of the MPI library",
    [MPI_ERR_PENDING] = "this request has neither failed nor finished",
    [MPI_ERR_IN_STATUS] = "the error codes are in the statuses",
    [MPI_ERR_ACCESS] = "access to the file is not allowed",
    [MPI_ERR_AMODE] = "the access mode of the file is not valid",
    [MPI_ERR_ASSERT] = "the assertion is not valid",
    [MPI_ERR_BAD_FILE] = "the file's name is not valid",
    [MPI_ERR_BASE] = "the base address is not valid",
    [MPI_ERR_CONVERSION] = "a function that converts data has failed",
    [MPI_ERR_DISP] = "the displacement is not valid",
    [MPI_ERR_DUP_DATAREP] = "a data representation of this name exists already",
    [MPI_ERR_FILE_EXISTS] = "the file exists already",
    [MPI_ERR_FILE_IN_USE] = "the file is open in some process",
    [MPI_ERR_FILE] = "the file handle is not valid",
    [MPI_ERR_INFO_KEY] = "the info key is not valid",
    [MPI_ERR_INFO_NOKEY] = "the info object has no such key",
    [MPI_ERR_INFO_VALUE] = "the info value is not valid",
    [MPI_ERR_INFO] = "the info object is not valid",
    [MPI_ERR_IO] = "input or output has failed",
    [MPI_ERR_KEYVAL] = "the attribute key is not valid",
    [MPI_ERR_LOCKTYPE] = "the kind of lock is not valid",
    [MPI_ERR_NAME] = "no service of this name is published",
    [MPI_ERR_NO_MEM] = "out of memory",
    [MPI_ERR_NOT_SAME] = "processes gave different values where they must be the same",
    [MPI_ERR_NO_SPACE] = "no space is left for the file",
    [MPI_ERR_NO_SUCH_FILE] = "there is no such file",
    [MPI_ERR_PORT] = "the port's name is not valid",
    [MPI_ERR_QUOTA] = "the quota is exceeded",
    [MPI_ERR_READ_ONLY] = "the file or file system can only be read",
    [MPI_ERR_RMA_ATTACH] = "the memory cannot be attached to the window",
    [MPI_ERR_RMA_CONFLICT] = "accesses to the window are in conflict",
    [MPI_ERR_RMA_RANGE] = "the target memory is not part of the window",
    [MPI_ERR_RMA_SHARED] = "the memory cannot be shared",
    [MPI_ERR_RMA_SYNC] = "the synchronisation calls of the window are in the wrong order",
    [MPI_ERR_SERVICE] = "the service name is not valid",
    [MPI_ERR_SIZE] = "the size is not valid",
    [MPI_ERR_SPAWN] = "processes could not be started",
    [MPI_ERR_UNSUPPORTED_DATAREP] = "the data representation is not supported",
    [MPI_ERR_UNSUPPORTED_OPERATION] = "the operation is not supported",
    [MPI_ERR_WIN] = "the window is not valid",
    [MPI_ERR_RMA_FLAVOR] = "the window is of the wrong flavour",
    [MPI_ERR_PROC_ABORTED] = "another process of the operation has ended",
    [MPI_ERR_VALUE_TOO_LARGE] = "the value is too large for its variable",
    [MPI_ERR_SESSION] = "the session is not valid",
    [MPI_ERR_ERRHANDLER] = "the error handler is not valid",
    [MPI_ERR_ABI] = "the call does not fit the binary interface in use",
    [TOMBOLO_ERR_TIMEOUT] = "what was waited for has not come in time",
    [TOMBOLO_ERR_NO_GROUP] = "there is no group of this name",
    [TOMBOLO_ERR_MEMBER] = "the process is a member of the group already, or is none",
    [TOMBOLO_ERR_FROZEN] = "the group is frozen, and nobody may join it",
};
#define CLASS_COUNT ((int)(sizeof class_texts / sizeof class_texts[0]))

/* Of the tools interface, whose calls return them without a handler. */
static const char *const tool_texts[] = {
    [MPI_T_ERR_CANNOT_INIT - MPI_T_ERR_CANNOT_INIT] = "the tools interface cannot be initialised",
    [MPI_T_ERR_NOT_ACCESSIBLE - MPI_T_ERR_CANNOT_INIT] = "the tools interface cannot be used here",
    [MPI_T_ERR_NOT_INITIALIZED - MPI_T_ERR_CANNOT_INIT] = "the tools interface is not initialised",
    [MPI_T_ERR_NOT_SUPPORTED - MPI_T_ERR_CANNOT_INIT] = "the tools interface does not support this",
    [MPI_T_ERR_MEMORY - MPI_T_ERR_CANNOT_INIT] = "out of memory in the tools interface",
    [MPI_T_ERR_INVALID - MPI_T_ERR_CANNOT_INIT] = "an argument or its use is not valid",
    [MPI_T_ERR_INVALID_INDEX - MPI_T_ERR_CANNOT_INIT] = "there is no variable, category or event of this index",
    [MPI_T_ERR_INVALID_ITEM - MPI_T_ERR_CANNOT_INIT] = "the enumeration has no such item",
    [MPI_T_ERR_INVALID_SESSION - MPI_T_ERR_CANNOT_INIT] = "the session of performance variables is not valid",
    [MPI_T_ERR_INVALID_HANDLE - MPI_T_ERR_CANNOT_INIT] = "the handle of the variable is not valid",
    [MPI_T_ERR_INVALID_NAME - MPI_T_ERR_CANNOT_INIT] = "there is no variable or category of this name",
    [MPI_T_ERR_OUT_OF_HANDLES - MPI_T_ERR_CANNOT_INIT] = "there are no handles left",
    [MPI_T_ERR_OUT_OF_SESSIONS - MPI_T_ERR_CANNOT_INIT] = "there are no sessions left",
    [MPI_T_ERR_CVAR_SET_NOT_NOW - MPI_T_ERR_CANNOT_INIT] = "the control variable cannot be set now",
    [MPI_T_ERR_CVAR_SET_NEVER - MPI_T_ERR_CANNOT_INIT] = "the control variable cannot be set again",
    [MPI_T_ERR_PVAR_NO_WRITE - MPI_T_ERR_CANNOT_INIT] = "the performance variable cannot be written or reset",
    [MPI_T_ERR_PVAR_NO_STARTSTOP - MPI_T_ERR_CANNOT_INIT] = "the performance variable cannot be started or stopped",
    [MPI_T_ERR_PVAR_NO_ATOMIC - MPI_T_ERR_CANNOT_INIT] = "the performance variable cannot be read and reset at once",
};
#define TOOL_COUNT ((int)(sizeof tool_texts / sizeof tool_texts[0]))

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

int tb_error_code_below(int error, const char *call)
{
    const char *told = tb_error_story();
    int code = tb_error_code(tb_error_class_of(error), call, "%s", told[0] != 0 ? told : tb_error_name(error));
    pthread_mutex_lock(&tb_self.error_lock);
    struct story *story = story_of(code);
    if (story != NULL)
        story->follows = error == TB_ERR_GIVEN_UP;
    pthread_mutex_unlock(&tb_self.error_lock);
    return code;
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

/* The text of a class of the standard; NULL if it is none. */
static const char *class_text(int class)
{
    if (class >= MPI_T_ERR_CANNOT_INIT && class - MPI_T_ERR_CANNOT_INIT < TOOL_COUNT)
        return tool_texts[class - MPI_T_ERR_CANNOT_INIT];
    return class >= 0 && class < CLASS_COUNT ? class_texts[class] : NULL;
}

int tb_error_class(int code)
{
    int standard = code > 0 && (code & TB_ERROR_TOLD) != 0 ? code & 0xff : code;
    if (class_text(standard) != NULL)
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
        source = story != NULL ? story->text : class_text(code & 0xff);
    } else if (added != NULL) {
        source = added->text != NULL ? added->text : "";
    } else {
        source = class_text(code);
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

_Noreturn void tb_error_fatal(int code)
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
    tb_job_abort(&tb_self.job, status, reason_of(code), text);
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

int tb_raise_code(struct tb_comm *comm, int code)
{
    bool given = comm != NULL;
    if (comm == NULL)
        comm = tb_self.self;
    if (comm == NULL)
        tb_error_fatal(code);
    /* Before MPI 4.0 such errors went to MPI_COMM_WORLD, and programs that set its handler still expect that. */
    if (!given && comm->errhandler == &tb_errhandler_fatal)
        comm = tb_self.world;
    MPI_Comm handle = tb_comm_handle(comm);
    return tb_raise_to(comm->errhandler, &handle, code);
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
    bool known = class < CLASS_COUNT || (owner != NULL && owner->use == ADDED_CLASS);
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
