/* Error handlers of each kind: those of one are not for another, and MPI_FILE_NULL has one, which returns errors as
 * long as nobody sets another. */
#include "test.h"

static int calls, seen_code;

static void of_comm(MPI_Comm *comm, int *code, ...)
{
    calls++;
}

static void of_window(MPI_Win *window, int *code, ...)
{
    calls++;
}

static void of_file(MPI_File *file, int *code, ...)
{
    CHECK(*file == MPI_FILE_NULL, "another file");
    seen_code = *code;
    calls++;
}

static void of_session(MPI_Session *session, int *code, ...)
{
    calls++;
}

static void kinds(void)
{
    MPI_Errhandler handlers[4], seen;
    MPI_Session session;
    MPI_Comm_create_errhandler(of_comm, &handlers[0]);
    MPI_Win_create_errhandler(of_window, &handlers[1]);
    MPI_File_create_errhandler(of_file, &handlers[2]);
    MPI_Session_create_errhandler(of_session, &handlers[3]);
    MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session);
    for (int i = 0; i < 4; i++) {
        CHECK_CLASS(MPI_Comm_set_errhandler(MPI_COMM_WORLD, handlers[i]), i == 0 ? MPI_SUCCESS : MPI_ERR_ERRHANDLER);
        MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
        CHECK_CLASS(MPI_File_set_errhandler(MPI_FILE_NULL, handlers[i]), i == 2 ? MPI_SUCCESS : MPI_ERR_ERRHANDLER);
        MPI_File_set_errhandler(MPI_FILE_NULL, MPI_ERRORS_RETURN);
        CHECK_CLASS(MPI_Session_set_errhandler(session, handlers[i]), i == 3 ? MPI_SUCCESS : MPI_ERR_ERRHANDLER);
        MPI_Session_set_errhandler(session, MPI_ERRORS_RETURN);
    }
    CHECK_EQUAL(calls, 0);
    MPI_Session_finalize(&session);
    for (int i = 0; i < 4; i++) {
        seen = handlers[i];
        CHECK_EQUAL(MPI_Errhandler_free(&handlers[i]), MPI_SUCCESS);
        CHECK_CLASS(MPI_Errhandler_free(&seen), MPI_ERR_ERRHANDLER);
    }
}

static void files(void)
{
    MPI_Errhandler mine, seen = MPI_ERRHANDLER_NULL;
    MPI_File_get_errhandler(MPI_FILE_NULL, &seen);
    CHECK(seen == MPI_ERRORS_RETURN, "files begin with another handler");
    CHECK_EQUAL(MPI_File_call_errhandler(MPI_FILE_NULL, MPI_ERR_IO), MPI_SUCCESS);
    MPI_File_create_errhandler(of_file, &mine);
    MPI_File_set_errhandler(MPI_FILE_NULL, mine);
    MPI_File_get_errhandler(MPI_FILE_NULL, &seen);
    CHECK(seen == mine, "another error handler");
    MPI_Errhandler_free(&seen);
    MPI_Errhandler_free(&mine);
    CHECK_EQUAL(MPI_File_call_errhandler(MPI_FILE_NULL, MPI_ERR_IO), MPI_SUCCESS);
    CHECK(calls == 1 && seen_code == MPI_ERR_IO, "%d calls, code %d", calls, seen_code);
    CHECK_CLASS(MPI_File_call_errhandler(MPI_FILE_NULL, -3), MPI_ERR_ARG);
    CHECK_CLASS(MPI_File_call_errhandler((MPI_File)0x999, MPI_ERR_IO), MPI_ERR_FILE);
    CHECK_CLASS(MPI_File_get_errhandler(MPI_FILE_NULL, NULL), MPI_ERR_ARG);
    CHECK_EQUAL(calls, 4);
    MPI_File_set_errhandler(MPI_FILE_NULL, MPI_ERRORS_RETURN);
}

int main(int argc, char **argv)
{
    test_begin(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    kinds();
    files();
    CHECK_CLASS(MPI_Comm_create_errhandler(NULL, NULL), MPI_ERR_ARG);
    CHECK_CLASS(MPI_File_create_errhandler(NULL, NULL), MPI_ERR_ARG);
    return test_end();
}
