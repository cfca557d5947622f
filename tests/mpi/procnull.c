/* Every call to and from MPI_PROC_NULL ends at once, changes nothing, and gives the status that the standard says. */
#include "test.h"

static int out = 3, in;

static void check_nothing(const MPI_Status *status)
{
    CHECK_STATUS(status, MPI_PROC_NULL, MPI_ANY_TAG, 0);
    CHECK_EQUAL(in, 7);
    in = 7;
}

static void sends(void)
{
    int size;
    void *buffer = test_memory(1000), *detached;
    MPI_Send(&out, 1, MPI_INT, MPI_PROC_NULL, 1, MPI_COMM_WORLD);
    MPI_Ssend(&out, 1, MPI_INT, MPI_PROC_NULL, 1, MPI_COMM_WORLD);
    MPI_Rsend(&out, 1, MPI_INT, MPI_PROC_NULL, 1, MPI_COMM_WORLD);
    MPI_Buffer_attach(buffer, 1000);
    MPI_Bsend(&out, 1, MPI_INT, MPI_PROC_NULL, 1, MPI_COMM_WORLD);
    MPI_Request requests[4];
    MPI_Isend(&out, 1, MPI_INT, MPI_PROC_NULL, 1, MPI_COMM_WORLD, &requests[0]);
    MPI_Issend(&out, 1, MPI_INT, MPI_PROC_NULL, 1, MPI_COMM_WORLD, &requests[1]);
    MPI_Irsend(&out, 1, MPI_INT, MPI_PROC_NULL, 1, MPI_COMM_WORLD, &requests[2]);
    MPI_Ibsend(&out, 1, MPI_INT, MPI_PROC_NULL, 1, MPI_COMM_WORLD, &requests[3]);
    MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
    for (int i = 0; i < 4; i++)
        CHECK(requests[i] == MPI_REQUEST_NULL, "request %d is still there", i);
    MPI_Buffer_detach(&detached, &size);
    free(buffer);
}

static void receives(void)
{
    MPI_Status status;
    MPI_Request request;
    int flag = 0, index = -1;
    in = 7;
    MPI_Recv(&in, 1, MPI_INT, MPI_PROC_NULL, 1, MPI_COMM_WORLD, &status);
    check_nothing(&status);
    MPI_Recv(&in, 1, MPI_INT, MPI_PROC_NULL, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
    check_nothing(&status);
    MPI_Irecv(&in, 1, MPI_INT, MPI_PROC_NULL, 1, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, &status);
    check_nothing(&status);
    MPI_Irecv(&in, 1, MPI_INT, MPI_PROC_NULL, 1, MPI_COMM_WORLD, &request);
    while (!flag)
        MPI_Test(&request, &flag, &status);
    check_nothing(&status);
    MPI_Irecv(&in, 1, MPI_INT, MPI_PROC_NULL, 1, MPI_COMM_WORLD, &request);
    MPI_Waitany(1, &request, &index, &status);
    CHECK_EQUAL(index, 0);
    check_nothing(&status);
    MPI_Irecv(NULL, 0, MPI_INT, MPI_PROC_NULL, 1, MPI_COMM_WORLD, &request);
    MPI_Request_free(&request);
}

/* A row of ranks whose ends have no neighbour: the usual reason to have MPI_PROC_NULL. */
static void shift(void)
{
    int left = test_rank == 0 ? MPI_PROC_NULL : test_rank - 1;
    int right = test_rank == test_size - 1 ? MPI_PROC_NULL : test_rank + 1;
    MPI_Status status;
    in = 7;
    MPI_Sendrecv(&test_rank, 1, MPI_INT, right, 2, &in, 1, MPI_INT, left, 2, MPI_COMM_WORLD, &status);
    if (left == MPI_PROC_NULL) {
        check_nothing(&status);
    } else {
        CHECK_STATUS(&status, left, 2, sizeof(int));
        CHECK_EQUAL(in, left);
    }
    in = test_rank;
    MPI_Sendrecv_replace(&in, 1, MPI_INT, left, 3, right, 3, MPI_COMM_WORLD, &status);
    if (right == MPI_PROC_NULL) {
        CHECK_STATUS(&status, MPI_PROC_NULL, MPI_ANY_TAG, 0);
        CHECK_EQUAL(in, test_rank);
    } else {
        CHECK_STATUS(&status, right, 3, sizeof(int));
        CHECK_EQUAL(in, right);
    }
    in = 7;
    MPI_Sendrecv(&out, 1, MPI_INT, MPI_PROC_NULL, 2, &in, 1, MPI_INT, MPI_PROC_NULL, MPI_ANY_TAG, MPI_COMM_WORLD,
                 &status);
    check_nothing(&status);
    in = 7;
    MPI_Sendrecv_replace(&in, 1, MPI_INT, MPI_PROC_NULL, 2, MPI_PROC_NULL, 2, MPI_COMM_SELF, &status);
    check_nothing(&status);
}

int main(int argc, char **argv)
{
    test_begin(&argc, &argv);
    for (int i = 0; i < 3; i++) {
        sends();
        receives();
        shift();
    }
    return test_end();
}
