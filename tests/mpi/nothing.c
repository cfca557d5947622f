/* Calls without data. Programs give a null address and MPI_DATATYPE_NULL there, some ranks perhaps another type than
 * others: messages arrive, and collectives end, as with any type. With data, or in a reduction, a type is needed. */
#include "test.h"

#define KINDS 5

static MPI_Datatype types[KINDS];

static MPI_Datatype type_of(int number)
{
    return types[number % KINDS];
}

static void make_types(void)
{
    const int lengths[] = {1, 1, 1};
    const MPI_Aint places[] = {0, 8, 12};
    const MPI_Datatype members[] = {MPI_DOUBLE, MPI_INT, MPI_CHAR};
    types[0] = test_peer() ? MPI_BYTE : MPI_DATATYPE_NULL; /* not every library takes it */
    types[1] = MPI_INT;
    types[2] = MPI_BYTE;
    MPI_Type_contiguous(1 << 22, MPI_DOUBLE, &types[3]);
    MPI_Type_commit(&types[3]);
    MPI_Type_create_struct(3, lengths, places, members, &types[4]);
    MPI_Type_commit(&types[4]);
}

/* ---- messages ---------------------------------------------------------------------------------------------------- */

static void check_empty(const MPI_Status *status, int tag)
{
    CHECK_STATUS(status, test_previous(), tag, 0);
}

static void blocking(MPI_Datatype out, MPI_Datatype in)
{
    MPI_Status status;
    MPI_Request request;
    MPI_Sendrecv(NULL, 0, out, test_next(), 1, NULL, 0, in, test_previous(), 1, MPI_COMM_WORLD, &status);
    check_empty(&status, 1);
    MPI_Sendrecv_replace(NULL, 0, out, test_next(), 2, test_previous(), 2, MPI_COMM_WORLD, &status);
    check_empty(&status, 2);
    MPI_Irecv(NULL, 0, in, MPI_ANY_SOURCE, 3, MPI_COMM_WORLD, &request);
    MPI_Send(NULL, 0, out, test_next(), 3, MPI_COMM_WORLD);
    MPI_Wait(&request, &status);
    check_empty(&status, 3);
    MPI_Isend(NULL, 0, out, test_next(), 4, MPI_COMM_WORLD, &request);
    MPI_Recv(NULL, 0, in, test_previous(), MPI_ANY_TAG, MPI_COMM_WORLD, &status);
    check_empty(&status, 4);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Irecv(NULL, 0, in, test_previous(), 5, MPI_COMM_WORLD, &request);
    MPI_Ssend(NULL, 0, out, test_next(), 5, MPI_COMM_WORLD);
    MPI_Wait(&request, &status);
    check_empty(&status, 5);
}

static void matched(MPI_Datatype out, MPI_Datatype in)
{
    MPI_Status status;
    MPI_Request requests[2];
    MPI_Message message;
    MPI_Isend(NULL, 0, out, test_next(), 6, MPI_COMM_WORLD, &requests[0]);
    MPI_Mprobe(test_previous(), 6, MPI_COMM_WORLD, &message, MPI_STATUS_IGNORE);
    MPI_Mrecv(NULL, 0, in, &message, &status);
    check_empty(&status, 6);
    MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
    MPI_Isend(NULL, 0, out, test_next(), 7, MPI_COMM_WORLD, &requests[0]);
    MPI_Mprobe(test_previous(), 7, MPI_COMM_WORLD, &message, MPI_STATUS_IGNORE);
    MPI_Imrecv(NULL, 0, in, &message, &requests[1]);
    MPI_Wait(&requests[1], &status);
    check_empty(&status, 7);
    MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
}

static void persistent(MPI_Datatype out, MPI_Datatype in)
{
    MPI_Status statuses[2];
    MPI_Request requests[2];
    MPI_Send_init(NULL, 0, out, test_next(), 8, MPI_COMM_WORLD, &requests[0]);
    MPI_Recv_init(NULL, 0, in, test_previous(), 8, MPI_COMM_WORLD, &requests[1]);
    for (int i = 0; i < 2; i++) {
        MPI_Startall(2, requests);
        MPI_Waitall(2, requests, statuses);
        check_empty(&statuses[1], 8);
    }
    MPI_Request_free(&requests[0]);
    MPI_Request_free(&requests[1]);
    MPI_Psend_init(NULL, 1, 0, out, test_next(), 9, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[0]);
    MPI_Precv_init(NULL, 1, 0, in, test_previous(), 9, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[1]);
    MPI_Startall(2, requests);
    MPI_Pready(0, requests[0]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    MPI_Request_free(&requests[0]);
    MPI_Request_free(&requests[1]);
}

/* ---- collectives ------------------------------------------------------------------------------------------------- */

static void collectives(MPI_Datatype a, MPI_Datatype b, int root)
{
    MPI_Comm comm = MPI_COMM_WORLD;
    MPI_Request request;
    int *none = calloc((size_t)test_size, sizeof *none);
    test_need(none != NULL, "there is no memory");
    MPI_Bcast(NULL, 0, a, root, comm);
    MPI_Gather(NULL, 0, a, NULL, 0, b, root, comm);
    MPI_Gatherv(NULL, 0, a, NULL, none, none, b, root, comm);
    MPI_Scatter(NULL, 0, a, NULL, 0, b, root, comm);
    MPI_Scatterv(NULL, none, none, a, NULL, 0, b, root, comm);
    MPI_Allgather(NULL, 0, a, NULL, 0, b, comm);
    MPI_Allgatherv(NULL, 0, a, NULL, none, none, b, comm);
    MPI_Alltoall(NULL, 0, a, NULL, 0, b, comm);
    MPI_Alltoallv(NULL, none, none, a, NULL, none, none, b, comm);
    MPI_Ialltoall(NULL, 0, a, NULL, 0, b, comm, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Ibcast(NULL, 0, a, root, comm, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    free(none);
}

/* Blocks for the neighbours alone, and no type for the others: what libraries for parallel files do. */
static void exchange_with_neighbours(void)
{
    size_t ranks = (size_t)test_size;
    int *counts = calloc(4 * ranks, sizeof *counts), *places = counts + 2 * ranks;
    MPI_Datatype *given = malloc(2 * ranks * sizeof(MPI_Datatype)), *taken = given + ranks;
    test_need(counts != NULL && given != NULL, "there is no memory");
    for (size_t i = 0; i < 2 * ranks; i++)
        given[i] = MPI_DATATYPE_NULL;
    int out = 100 + test_rank, in = -1;
    counts[test_next()] = 1;
    given[test_next()] = MPI_INT;
    counts[ranks + (size_t)test_previous()] = 1;
    taken[test_previous()] = MPI_INT;
    MPI_Alltoallw(&out, counts, places, given, &in, counts + ranks, places, taken, MPI_COMM_WORLD);
    CHECK_EQUAL(in, 100 + test_previous());
    MPI_Request request;
    in = -1;
    MPI_Ialltoallw(&out, counts, places, given, &in, counts + ranks, places, taken, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    CHECK_EQUAL(in, 100 + test_previous());
    free(counts);
    free(given);
}

/* ---- errors ------------------------------------------------------------------------------------------------------ */

static void errors(void)
{
    MPI_Comm comm = MPI_COMM_WORLD;
    int data = 0, other = 0, block = 1, place = 0;
    MPI_Datatype none = MPI_DATATYPE_NULL, freed;
    MPI_Request request;
    MPI_Type_contiguous(2, MPI_INT, &freed);
    MPI_Type_commit(&freed);
    MPI_Datatype gone = freed;
    MPI_Type_free(&freed);
    CHECK_CLASS(MPI_Send(&data, 1, none, 0, 0, comm), MPI_ERR_TYPE);
    CHECK_CLASS(MPI_Send(NULL, 0, none, test_size, 0, comm), MPI_ERR_RANK);
    CHECK_CLASS(MPI_Send(NULL, 0, none, 0, -7, comm), MPI_ERR_TAG);
    CHECK_CLASS(MPI_Send(NULL, 0, gone, 0, 0, comm), MPI_ERR_TYPE);
    CHECK_CLASS(MPI_Send(NULL, -1, none, 0, 0, comm), MPI_ERR_TYPE);
    CHECK_CLASS(MPI_Irecv(&data, 1, none, 0, 0, comm, &request), MPI_ERR_TYPE);
    CHECK_CLASS(MPI_Irecv(NULL, 0, gone, 0, 0, comm, &request), MPI_ERR_TYPE);
    CHECK_CLASS(MPI_Bcast(&data, 1, none, 0, comm), MPI_ERR_TYPE);
    CHECK_CLASS(MPI_Bcast(NULL, 0, gone, 0, comm), MPI_ERR_TYPE);
    CHECK_CLASS(MPI_Allreduce(NULL, NULL, 0, none, MPI_SUM, comm), MPI_ERR_TYPE);
    CHECK_CLASS(MPI_Scan(NULL, NULL, 0, none, MPI_SUM, comm), MPI_ERR_TYPE);
    CHECK_CLASS(MPI_Reduce_scatter_block(NULL, NULL, 0, none, MPI_SUM, comm), MPI_ERR_TYPE);
    CHECK_CLASS(MPI_Alltoallw(&data, &block, &place, &none, &other, &block, &place, &none, MPI_COMM_SELF),
                MPI_ERR_TYPE);
}

int main(int argc, char **argv)
{
    test_begin(&argc, &argv);
    make_types();
    for (int i = 0; i < 2 * KINDS; i++) {
        MPI_Datatype out = type_of(test_rank + i), in = type_of(3 * test_rank + i / 2);
        blocking(out, in);
        matched(out, in);
        persistent(out, in);
        collectives(out, in, i % test_size);
    }
    if (!test_peer()) {
        exchange_with_neighbours();
        MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
        MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
        errors();
    }
    MPI_Type_free(&types[3]);
    MPI_Type_free(&types[4]);
    return test_end();
}
