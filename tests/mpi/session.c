/* Sessions, windows and files are not there yet: that is said, also before MPI_Init, and their null handles can be
 * converted at any time. The runner expects the failure. */
#include "test.h"

static void null_handles(void)
{
    CHECK(MPI_Win_fromint(MPI_Win_toint(MPI_WIN_NULL)) == MPI_WIN_NULL, "another handle");
    CHECK(MPI_File_fromint(MPI_File_toint(MPI_FILE_NULL)) == MPI_FILE_NULL, "another handle");
    CHECK(MPI_Session_fromint(MPI_Session_toint(MPI_SESSION_NULL)) == MPI_SESSION_NULL, "another handle");
    CHECK(MPI_Win_fromint(1 << 20) == MPI_WIN_NULL, "a window that was never made");
}

int main(int argc, char **argv)
{
    MPI_Session session = MPI_SESSION_NULL;
    int class = -1;
    null_handles();
    MPI_Error_class(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session), &class);
    CHECK_EQUAL(class, MPI_ERR_UNSUPPORTED_OPERATION);
    test_begin(&argc, &argv);
    null_handles();
    MPI_Finalize();
    null_handles();
    if (test_verdict() != 0)
        return 1;
    MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session);
    return 1;
}
