/* Nobody leaves a barrier before everybody has entered it: one rank is late, and all compare times of a common clock.
 */
#include "test.h"

static void late(MPI_Comm comm, int slow, double seconds)
{
    double times[2];
    if (test_rank == slow)
        test_sleep(seconds);
    times[0] = test_now();
    MPI_Barrier(comm);
    times[1] = test_now();
    if (test_rank != 0) {
        MPI_Send(times, 2, MPI_DOUBLE, 0, 1, comm);
        return;
    }
    double entered = times[0], left = times[1];
    for (int i = 1; i < test_size; i++) {
        MPI_Recv(times, 2, MPI_DOUBLE, i, 1, comm, MPI_STATUS_IGNORE);
        entered = times[0] > entered ? times[0] : entered;
        left = times[1] < left ? times[1] : left;
    }
    CHECK(left >= entered, "someone left %.6f s before rank %d entered", entered - left, slow);
}

/* Messages that are sent before a barrier and received after it are not disturbed, nor do they disturb it. */
static void between(MPI_Comm comm)
{
    for (int i = 0; i < 50; i++) {
        MPI_Request send, receive;
        int out = test_rank * 1000 + i, in = -1;
        if (i % 2)
            MPI_Irecv(&in, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, comm, &receive);
        MPI_Isend(&out, 1, MPI_INT, test_next(), i, comm, &send);
        MPI_Barrier(comm);
        if (i % 2 == 0)
            MPI_Irecv(&in, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, comm, &receive);
        MPI_Wait(&receive, MPI_STATUS_IGNORE);
        CHECK_EQUAL(in, test_previous() * 1000 + i);
        MPI_Wait(&send, MPI_STATUS_IGNORE);
        MPI_Barrier(comm);
    }
}

int main(int argc, char **argv)
{
    MPI_Comm comm;
    test_begin(&argc, &argv);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    for (int i = 0; i < 300; i++)
        MPI_Barrier(i % 3 ? MPI_COMM_WORLD : comm);
    for (int slow = 0; slow < test_size; slow++)
        late(slow % 2 ? comm : MPI_COMM_WORLD, slow, 0.005);
    for (int i = 0; i < 30; i++)
        late(comm, i % test_size, 0.0005);
    between(MPI_COMM_WORLD);
    between(comm);
    MPI_Comm_free(&comm);
    return test_end();
}
