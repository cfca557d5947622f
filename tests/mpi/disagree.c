/* Ranks call different collectives, or disagree about sizes, and have errors returned. Everybody gets out of the call,
 * with an error or served before anybody noticed; what comes afterwards works again, and so does MPI_Finalize. */
#include "test.h"

#define ROUNDS 20
#define LONG   100000

static char data[LONG];

/* No error, or one that says what is wrong. */
static int outcome(int code)
{
    int class = MPI_SUCCESS;
    MPI_Error_class(code, &class);
    CHECK(class == MPI_SUCCESS || class == MPI_ERR_OTHER || class == MPI_ERR_TRUNCATE, "class %d", class);
    return class != MPI_SUCCESS;
}

/* Later collectives on the communicator work. */
static void goes_on(MPI_Comm comm, int failed)
{
    int sum = 0, one = 1, any = 0;
    CHECK_CLASS(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm), MPI_SUCCESS);
    CHECK_EQUAL(sum, test_size);
    CHECK_CLASS(MPI_Allreduce(&failed, &any, 1, MPI_INT, MPI_MAX, comm), MPI_SUCCESS);
    CHECK(any == 1, "nobody has noticed");
    CHECK_CLASS(MPI_Barrier(comm), MPI_SUCCESS);
}

static void operations_differ(MPI_Comm comm, int odd, int count)
{
    int failed = outcome(test_rank == odd ? MPI_Barrier(comm) : MPI_Bcast(data, count, MPI_CHAR, test_size - 1, comm));
    goes_on(comm, failed);
    failed = outcome(test_rank == odd ? MPI_Alltoall(data, 1, MPI_CHAR, data + LONG / 2, 1, MPI_CHAR, comm)
                                      : MPI_Allgather(data, 1, MPI_CHAR, data + LONG / 2, 1, MPI_CHAR, comm));
    goes_on(comm, failed);
}

static void sizes_differ(MPI_Comm comm, int odd, int count)
{
    int mine = count + (test_rank == odd ? 1 : 0);
    goes_on(comm, outcome(MPI_Allreduce(MPI_IN_PLACE, data, mine, MPI_UNSIGNED_CHAR, MPI_BOR, comm)));
    goes_on(comm, outcome(MPI_Alltoall(data, mine, MPI_CHAR, data + LONG / 2, mine, MPI_CHAR, comm)));
}

/* One that is not waited for before the next one is called. */
static void requests_differ(MPI_Comm comm, int odd)
{
    MPI_Request first, second;
    int sum = 0, one = 1;
    CHECK_CLASS(test_rank == odd ? MPI_Ibarrier(comm, &first)
                                 : MPI_Iallreduce(MPI_IN_PLACE, data, 9, MPI_UNSIGNED_CHAR, MPI_BOR, comm, &first),
                MPI_SUCCESS);
    CHECK_CLASS(MPI_Iallreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm, &second), MPI_SUCCESS);
    CHECK_CLASS(MPI_Wait(&second, MPI_STATUS_IGNORE), MPI_SUCCESS);
    CHECK_EQUAL(sum, test_size);
    goes_on(comm, outcome(MPI_Wait(&first, MPI_STATUS_IGNORE)));
}

int main(int argc, char **argv)
{
    test_begin(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    for (int round = 0; round < ROUNDS && test_size > 1 && test_failures == 0; round++) {
        operations_differ(MPI_COMM_WORLD, round % test_size, round % 2 == 0 ? 8 : LONG / 4);
        sizes_differ(MPI_COMM_WORLD, round % test_size, round % 2 == 0 ? 8 : LONG / 4 / test_size);
        requests_differ(MPI_COMM_WORLD, round % test_size);
    }
    return test_end();
}
