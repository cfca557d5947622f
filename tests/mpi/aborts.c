/* In a job that goes on without those who die, MPI_Abort ends the ranks of its communicator alone, and so does an error
 * of a communicator whose errors abort it: the others talk to each other as before, and get errors of what they do with
 * those who are gone. The job fails in the end, as ranks of it have. */
#include "test.h"

#include <signal.h>
#include <unistd.h>

static int class_of(int code)
{
    int class = -1;
    MPI_Error_class(code, &class);
    return class;
}

/* SIGTERM is for those who clean up; who does not heed it is killed. */
static void ignore_it(bool deaf)
{
    if (deaf)
        signal(SIGTERM, SIG_IGN);
}

/* The ranks with odd numbers are ended, by one of them; the last of them does not want to. */
static void end_odd(const char *word)
{
    MPI_Comm half;
    MPI_Comm_split(MPI_COMM_WORLD, test_rank % 2, test_rank, &half);
    int rank = -1, size = 0;
    MPI_Comm_rank(half, &rank);
    MPI_Comm_size(half, &size);
    MPI_Barrier(MPI_COMM_WORLD);
    if (test_rank % 2 == 1) {
        ignore_it(rank == size - 1);
        if (rank == 0 && strcmp(word, "error") == 0) {
            MPI_Comm_set_errhandler(half, MPI_ERRORS_ABORT);
            MPI_Send(NULL, 0, MPI_BYTE, size, 0, half);
        } else if (rank == 0 || strcmp(word, "both") == 0) {
            MPI_Abort(half, 8);
        }
        test_sleep(60);
        fprintf(stderr, "rank %d was not ended\n", test_rank);
        exit(1);
    }
    int sum = -1, one = 1;
    for (int i = 0; i < 20; i++) {
        CHECK_CLASS(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, half), MPI_SUCCESS);
        CHECK_EQUAL(sum, size);
        test_sleep(0.05);
    }
    int code = MPI_Recv(&one, 1, MPI_INT, 1, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    CHECK_EQUAL(class_of(code), MPI_ERR_PROC_ABORTED);
    code =
        MPI_Recv(&one, 1, MPI_INT, test_size % 2 ? test_size - 2 : test_size - 1, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    CHECK_EQUAL(class_of(code), MPI_ERR_PROC_ABORTED);
    MPI_Barrier(half);
    MPI_Comm_free(&half);
}

int main(int argc, char **argv)
{
    test_begin(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    end_odd(argc > 1 ? argv[1] : "");
    if (test_rank == 0 && test_failures == 0)
        printf("those who are left are well\n");
    return test_end();
}
