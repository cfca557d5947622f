/* The error handlers of files (MPI-5.0, 9.3.3). There are no files yet, but the handler of MPI_FILE_NULL, which files
 * would begin with, and which is told of errors with no file, can be set. */
#include "mpi/binding_decls.h"
#include "mpi/error.h"

/* Held. */
static struct tb_errhandler *common(void)
{
    struct tb_errhandler *set = tb_errhandler_at(&tb_self.file_errhandler);
    return set != NULL ? set : &tb_errhandler_return;
}

static int raise_common(int code)
{
    MPI_File none = MPI_FILE_NULL;
    struct tb_errhandler *handler = common();
    int raised = tb_raise_to(handler, &none, code);
    tb_errhandler_release(handler);
    return raised;
}

/* MPI_SUCCESS for MPI_FILE_NULL. */
static int check_file(const char *call, MPI_File file)
{
    if (file == MPI_FILE_NULL)
        return MPI_SUCCESS;
    return raise_common(tb_error_code(MPI_ERR_FILE, call, "argument 1 (file): this is no handle of a file"));
}

int tb_mpi_File_set_errhandler(MPI_File file, MPI_Errhandler errhandler)
{
    static const char call[] = "MPI_File_set_errhandler";
    int code = check_file(call, file);
    if (code != MPI_SUCCESS)
        return code;
    struct tb_errhandler *handler = tb_errhandler_find(errhandler, TB_ERRHANDLER_FILE);
    if (handler == NULL)
        return raise_common(tb_errhandler_wrong(call, 2, errhandler, TB_ERRHANDLER_FILE));
    tb_errhandler_replace(&tb_self.file_errhandler, handler);
    return MPI_SUCCESS;
}

int tb_mpi_File_get_errhandler(MPI_File file, MPI_Errhandler *errhandler)
{
    static const char call[] = "MPI_File_get_errhandler";
    int code = check_file(call, file);
    if (code != MPI_SUCCESS)
        return code;
    if (errhandler == NULL)
        return raise_common(tb_error_code(MPI_ERR_ARG, call, "argument 2 (errhandler): the pointer is null"));
    *errhandler = common()->handle;
    return MPI_SUCCESS;
}

int tb_mpi_File_call_errhandler(MPI_File fh, int errorcode)
{
    static const char call[] = "MPI_File_call_errhandler";
    int code = check_file(call, fh);
    if (code != MPI_SUCCESS)
        return code;
    if (tb_error_class(errorcode) == MPI_ERR_UNKNOWN && errorcode != MPI_ERR_UNKNOWN)
        return raise_common(tb_error_code(MPI_ERR_ARG, call, "argument 2 (errorcode): %d is no error code", errorcode));
    raise_common(errorcode);
    return MPI_SUCCESS;
}
