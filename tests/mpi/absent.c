/* Windows and files are not there yet: that is said, and their null handles can be converted at any time. The runner
 * expects the failure. */
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
    MPI_Win window = MPI_WIN_NULL;
    int class = -1, memory = 0;
    null_handles();
    test_begin(&argc, &argv);
    null_handles();
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Error_class(MPI_Win_create(&memory, sizeof memory, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window), &class);
    CHECK_EQUAL(class, MPI_ERR_UNSUPPORTED_OPERATION);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    if (test_verdict() != 0)
        return 1;
    MPI_Win_create(&memory, sizeof memory, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
    return 1;
}
