/* Files are not there yet: that is said, and null handles can be converted at any time. The runner expects the failure.
 */
#include "test.h"

static void null_handles(void)
{
    CHECK(MPI_Win_fromint(MPI_Win_toint(MPI_WIN_NULL)) == MPI_WIN_NULL, "another handle");
    CHECK(MPI_File_fromint(MPI_File_toint(MPI_FILE_NULL)) == MPI_FILE_NULL, "another handle");
    CHECK(MPI_Session_fromint(MPI_Session_toint(MPI_SESSION_NULL)) == MPI_SESSION_NULL, "another handle");
    CHECK(MPI_Win_fromint(1 << 20) == MPI_WIN_NULL, "a window that was never made");
    CHECK(MPI_Session_fromint(1 << 20) == MPI_SESSION_NULL, "a session that was never made");
}

int main(int argc, char **argv)
{
    MPI_File file = MPI_FILE_NULL;
    int class = -1;
    null_handles();
    test_begin(&argc, &argv);
    null_handles();
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Error_class(MPI_File_open(MPI_COMM_WORLD, "x", MPI_MODE_RDONLY, MPI_INFO_NULL, &file), &class);
    CHECK_EQUAL(class, MPI_ERR_UNSUPPORTED_OPERATION);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    if (test_verdict() != 0)
        return 1;
    MPI_File_open(MPI_COMM_WORLD, "x", MPI_MODE_RDONLY, MPI_INFO_NULL, &file);
    return 1;
}
