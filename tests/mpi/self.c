/* Messages to oneself, on MPI_COMM_WORLD and MPI_COMM_SELF: short and long, before and after the receive. */
#include "test.h"

#define LARGEST 3000001

static unsigned char *out, *in;

static void one(MPI_Comm comm, int me, int bytes, bool receive_first, int tag)
{
    MPI_Request requests[2];
    MPI_Status statuses[2];
    test_fill(out, (size_t)bytes, (uint64_t)(test_rank + bytes));
    test_clear(in, (size_t)bytes);
    if (receive_first)
        MPI_Irecv(in, bytes, MPI_BYTE, me, tag, comm, &requests[0]);
    MPI_Isend(out, bytes, MPI_BYTE, me, tag, comm, &requests[1]);
    if (!receive_first)
        MPI_Irecv(in, bytes + 1, MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG, comm, &requests[0]);
    MPI_Waitall(2, requests, statuses);
    CHECK_STATUS(&statuses[0], me, tag, (size_t)bytes);
    CHECK_DATA(in, (size_t)bytes, (uint64_t)(test_rank + bytes));
    CHECK(test_untouched(in + bytes, TEST_GUARD), "bytes behind the buffer were changed");
}

static void forms(MPI_Comm comm, int me, int bytes)
{
    MPI_Status status;
    MPI_Request request;
    test_fill(out, (size_t)bytes, (uint64_t)bytes);
    test_clear(in, (size_t)bytes);
    MPI_Sendrecv(out, bytes, MPI_BYTE, me, 1, in, bytes, MPI_BYTE, me, 1, comm, &status);
    CHECK_STATUS(&status, me, 1, (size_t)bytes);
    CHECK_DATA(in, (size_t)bytes, (uint64_t)bytes);
    MPI_Sendrecv_replace(out, bytes, MPI_BYTE, me, 2, me, 2, comm, &status);
    CHECK_STATUS(&status, me, 2, (size_t)bytes);
    CHECK_DATA(out, (size_t)bytes, (uint64_t)bytes);
    /* A blocking send is all right when the receive is posted already. */
    test_clear(in, (size_t)bytes);
    MPI_Irecv(in, bytes, MPI_BYTE, me, 3, comm, &request);
    MPI_Send(out, bytes, MPI_BYTE, me, 3, comm);
    MPI_Wait(&request, &status);
    CHECK_DATA(in, (size_t)bytes, (uint64_t)bytes);
    MPI_Irecv(in, bytes, MPI_BYTE, me, 4, comm, &request);
    MPI_Ssend(out, bytes, MPI_BYTE, me, 4, comm);
    MPI_Wait(&request, &status);
    CHECK_STATUS(&status, me, 4, (size_t)bytes);
    MPI_Isend(out, bytes, MPI_BYTE, me, 5, comm, &request);
    MPI_Probe(me, 5, comm, &status);
    CHECK_STATUS(&status, me, 5, (size_t)bytes);
    test_clear(in, (size_t)bytes);
    MPI_Recv(in, bytes, MPI_BYTE, me, 5, comm, &status);
    CHECK_DATA(in, (size_t)bytes, (uint64_t)bytes);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

/* Many at once, received in reverse order. */
static void many(MPI_Comm comm, int me)
{
    enum { COUNT = 300, EACH = 2000 };
    MPI_Request requests[COUNT];
    for (int i = 0; i < COUNT; i++) {
        test_fill(out + i * EACH, EACH, (uint64_t)i);
        MPI_Isend(out + i * EACH, EACH, MPI_BYTE, me, i, comm, &requests[i]);
    }
    for (int i = COUNT - 1; i >= 0; i--) {
        test_clear(in, EACH);
        MPI_Recv(in, EACH, MPI_BYTE, me, i, comm, MPI_STATUS_IGNORE);
        CHECK_DATA(in, EACH, (uint64_t)i);
    }
    MPI_Waitall(COUNT, requests, MPI_STATUSES_IGNORE);
}

/* The two communicators are two worlds, although the rank and the tag are the same. */
static void apart(void)
{
    int first = 1, second = 2, got[2] = {0, 0};
    MPI_Request requests[2];
    MPI_Isend(&first, 1, MPI_INT, test_rank, 0, MPI_COMM_WORLD, &requests[0]);
    MPI_Isend(&second, 1, MPI_INT, 0, 0, MPI_COMM_SELF, &requests[1]);
    MPI_Recv(&got[1], 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_SELF, MPI_STATUS_IGNORE);
    MPI_Recv(&got[0], 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    CHECK(got[0] == 1 && got[1] == 2, "%d came on MPI_COMM_WORLD, %d on MPI_COMM_SELF", got[0], got[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
}

int main(int argc, char **argv)
{
    static const int lengths[] = {0, 1, 64, 8000, 8192, 8193, 40000, 1000000, LARGEST};
    test_begin(&argc, &argv);
    out = test_memory(LARGEST + 1);
    in = test_memory(LARGEST + 1);
    int rank = -1, size = -1;
    MPI_Comm_rank(MPI_COMM_SELF, &rank);
    MPI_Comm_size(MPI_COMM_SELF, &size);
    CHECK(rank == 0 && size == 1, "MPI_COMM_SELF has rank %d of %d", rank, size);
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++)
        for (int first = 0; first < 2; first++) {
            one(MPI_COMM_WORLD, test_rank, lengths[i], first, 1);
            one(MPI_COMM_SELF, 0, lengths[i], first, 1);
            forms(MPI_COMM_WORLD, test_rank, lengths[i]);
            forms(MPI_COMM_SELF, 0, lengths[i]);
        }
    many(MPI_COMM_WORLD, test_rank);
    many(MPI_COMM_SELF, 0);
    apart();
    MPI_Barrier(MPI_COMM_SELF);
    int value = 5;
    MPI_Bcast(&value, 1, MPI_INT, 0, MPI_COMM_SELF);
    CHECK_EQUAL(value, 5);
    free(out);
    free(in);
    return test_end();
}
