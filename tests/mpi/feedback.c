/* Feedback: collectives are measured and change their algorithms while they are used, on communicators of their own at
 * different times, beside nonblocking and persistent ones; the results are the same as ever. The test is run with a
 * cost table that is far from the truth and the parameter `feedback`. */
#include "test.h"

#define COUNT  5000
#define ROUNDS 40

static int values[COUNT], results[COUNT];

static void fill(int start)
{
    for (int i = 0; i < COUNT; i++)
        values[i] = start + i;
}

static void use(MPI_Comm comm, int count, int round)
{
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    int root = round % size;
    fill(rank == root ? round : -1);
    MPI_Bcast(values, count, MPI_INT, root, comm);
    CHECK_EQUAL(values[count - 1], round + count - 1);
    fill(rank);
    MPI_Allreduce(values, results, count, MPI_INT, MPI_SUM, comm);
    CHECK_EQUAL(results[count - 1], size * (size - 1) / 2 + size * (count - 1));
    MPI_Reduce(rank == root ? MPI_IN_PLACE : values, values, count, MPI_INT, MPI_MAX, root, comm);
    if (rank == root)
        CHECK_EQUAL(values[count - 1], size - 1 + count - 1);
    MPI_Scan(&rank, results, 1, MPI_INT, MPI_SUM, comm);
    CHECK_EQUAL(results[0], rank * (rank + 1) / 2);
    MPI_Barrier(comm);
}

/* What is in flight while the algorithm of its kind changes goes on as it began. */
static void use_requests(MPI_Comm comm, MPI_Request persistent, int *kept, int round)
{
    int rank, size, one = round, sum = -1;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    MPI_Request request;
    MPI_Iallreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm, &request);
    *kept = rank == 0 ? round : -1;
    MPI_Start(&persistent);
    use(comm, 1, round);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Wait(&persistent, MPI_STATUS_IGNORE);
    CHECK_EQUAL(sum, size * round);
    CHECK_EQUAL(*kept, round);
}

int main(int argc, char **argv)
{
    test_begin(&argc, &argv);
    MPI_Comm half, dup;
    MPI_Request persistent;
    int kept;
    MPI_Comm_split(MPI_COMM_WORLD, test_rank % 2, test_rank, &half);
    MPI_Comm_dup(MPI_COMM_WORLD, &dup);
    MPI_Bcast_init(&kept, 1, MPI_INT, 0, dup, MPI_INFO_NULL, &persistent);
    for (int i = 0; i < ROUNDS; i++) {
        use(MPI_COMM_WORLD, i % 2 == 0 ? COUNT : 10, i);
        for (int k = 0; k <= test_rank % 2; k++)
            use(half, 100, i);
        use_requests(dup, persistent, &kept, i);
    }
    MPI_Request_free(&persistent);
    MPI_Comm_free(&dup);
    MPI_Comm_free(&half);
    return test_end();
}
