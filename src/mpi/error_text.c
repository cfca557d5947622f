#pragma GCC visibility push(default)
#include <tombolo.h>
#pragma GCC visibility pop

#include "mpi/error_text.h"

#include <stddef.h>

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

int tb_error_class_count(void)
{
    return CLASS_COUNT;
}

const char *tb_error_class_text(int class)
{
    if (class >= MPI_T_ERR_CANNOT_INIT && class - MPI_T_ERR_CANNOT_INIT < TOOL_COUNT)
        return tool_texts[class - MPI_T_ERR_CANNOT_INIT];
    return class >= 0 && class < CLASS_COUNT ? class_texts[class] : NULL;
}
