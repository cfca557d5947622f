/* Many collectives under way at once on one communicator, among messages, completed in another order on every rank;
 * with handles that are freed meanwhile; persistent ones that ranks start in different orders; and what is forbidden.
 */
#include "test.h"

#define CALLS   40
#define LONGEST 1500 /* ints */

/* ---- many at once ------------------------------------------------------------------------------------------------ */

enum what { BCAST, ALLREDUCE, ALLGATHER, REDUCE, SCAN, MESSAGE, BARRIER, ALLTOALL, WHATS };

struct call {
    enum what what;
    int root, count;
    int *send, *recv;
};

static int value(int rank, int call, int i)
{
    return rank * 1000 + call * 10 + i % 7;
}

static void call_open(struct call *f, int number, uint64_t *random)
{
    static const int counts[] = {0, 1, 3, 64, LONGEST};
    f->what = (enum what)(test_random(random) % WHATS);
    f->root = (int)(test_random(random) % (uint64_t)test_size);
    f->count = counts[test_random(random) % 5];
    if (f->count == LONGEST && (f->what == ALLTOALL || f->what == ALLGATHER))
        f->count = 100;
    size_t ints = (size_t)f->count * (size_t)(f->what == ALLTOALL || f->what == ALLGATHER ? test_size : 1) + 1;
    f->send = test_memory(ints * sizeof(int));
    f->recv = test_memory(ints * sizeof(int));
    for (size_t i = 0; i < ints; i++)
        f->send[i] = value(test_rank, number, (int)i);
}

/* Starts it; the number of requests that it takes. */
static int call_start(struct call *f, int number, MPI_Comm comm, MPI_Request *requests)
{
    switch (f->what) {
    case BCAST:
        if (test_rank == f->root)
            memcpy(f->recv, f->send, (size_t)f->count * sizeof(int));
        MPI_Ibcast(f->recv, f->count, MPI_INT, f->root, comm, requests);
        return 1;
    case ALLREDUCE:
        MPI_Iallreduce(f->send, f->recv, f->count, MPI_INT, MPI_SUM, comm, requests);
        return 1;
    case ALLGATHER:
        MPI_Iallgather(f->send, f->count, MPI_INT, f->recv, f->count, MPI_INT, comm, requests);
        return 1;
    case REDUCE:
        MPI_Ireduce(f->send, f->recv, f->count, MPI_INT, MPI_SUM, f->root, comm, requests);
        return 1;
    case SCAN:
        MPI_Iscan(f->send, f->recv, f->count, MPI_INT, MPI_SUM, comm, requests);
        return 1;
    case MESSAGE:
        MPI_Irecv(f->recv, f->count, MPI_INT, test_previous(), number, comm, &requests[0]);
        MPI_Isend(f->send, f->count, MPI_INT, test_next(), number, comm, &requests[1]);
        return 2;
    case BARRIER:
        MPI_Ibarrier(comm, requests);
        return 1;
    default:
        MPI_Ialltoall(f->send, f->count, MPI_INT, f->recv, f->count, MPI_INT, comm, requests);
        return 1;
    }
}

/* What is expected at place `i`; false: this rank gets nothing. */
static bool call_expect(const struct call *f, int number, int i, int *expected)
{
    int sum = 0;
    switch (f->what) {
    case BCAST:
        *expected = value(f->root, number, i);
        return true;
    case ALLREDUCE:
    case REDUCE:
    case SCAN:
        for (int rank = 0; rank < (f->what == SCAN ? test_rank + 1 : test_size); rank++)
            sum += value(rank, number, i);
        *expected = sum;
        return f->what != REDUCE || test_rank == f->root;
    case ALLGATHER:
        *expected = value(i / f->count, number, i % f->count);
        return true;
    case MESSAGE:
        *expected = value(test_previous(), number, i);
        return true;
    case ALLTOALL:
        *expected = value(i / f->count, number, test_rank * f->count + i % f->count);
        return true;
    default:
        return false;
    }
}

static void call_check(const struct call *f, int number)
{
    int total = f->count * (f->what == ALLTOALL || f->what == ALLGATHER ? test_size : 1), expected;
    for (int i = 0; i < total && call_expect(f, number, i, &expected); i++)
        if (!CHECK_EQUAL(f->recv[i], expected))
            break;
}

/* Completes all requests, each rank in its own way. */
static void complete(int count, MPI_Request *requests, int way)
{
    int left = count, indices[2 * CALLS], some = 0, flag = 0;
    MPI_Status statuses[2 * CALLS];
    while (left > 0) {
        switch (way % 5) {
        case 0:
            MPI_Waitany(count, requests, indices, statuses);
            left--;
            break;
        case 1:
            MPI_Waitsome(count, requests, &some, indices, statuses);
            left -= some;
            break;
        case 2:
            MPI_Testsome(count, requests, &some, indices, MPI_STATUSES_IGNORE);
            left -= some;
            break;
        case 3:
            for (int i = count; i-- > 0;) /* from the last to the first */
                MPI_Wait(&requests[i], MPI_STATUS_IGNORE);
            left = 0;
            break;
        default:
            MPI_Testall(count, requests, &flag, MPI_STATUSES_IGNORE);
            left = flag ? 0 : left;
            break;
        }
    }
    for (int i = 0; i < count; i++)
        CHECK(requests[i] == MPI_REQUEST_NULL, "request %d of %d is left", i, count);
}

static void many(MPI_Comm comm, uint64_t seed)
{
    struct call calls[CALLS];
    MPI_Request requests[2 * CALLS];
    int count = 0;
    uint64_t random = seed;
    for (int i = 0; i < CALLS; i++)
        call_open(&calls[i], i, &random);
    for (int i = 0; i < CALLS; i++)
        count += call_start(&calls[i], i, comm, requests + count);
    complete(count, requests, test_rank + (int)seed);
    for (int i = 0; i < CALLS; i++) {
        call_check(&calls[i], i);
        free(calls[i].send);
        free(calls[i].recv);
    }
}

/* ---- freed under way --------------------------------------------------------------------------------------------- */

/* Maps x -> a x + b, one after the other: associative, and not commutative. */
static void chain(void *in, void *inout, int *length, MPI_Datatype *type)
{
    const unsigned *first = in;
    unsigned *second = inout;
    for (int i = 0; i < *length; i++) {
        unsigned a = second[2 * i], b = second[2 * i + 1];
        second[2 * i] = a * first[2 * i];
        second[2 * i + 1] = a * first[2 * i + 1] + b;
    }
}

static void freed(void)
{
    MPI_Comm comm;
    MPI_Datatype pair, spread;
    MPI_Op op;
    MPI_Request requests[3];
    unsigned mine[2] = {(unsigned)test_rank + 3, 2 * (unsigned)test_rank + 1}, all[2] = {0, 0}, expected[2] = {1, 0};
    int strided[6] = {test_rank, -1, test_rank + 1, -1, test_rank + 2, -1};
    int *packed = malloc((size_t)test_size * 3 * sizeof(int)), *counts = malloc((size_t)test_size * sizeof(int)),
        *displs = malloc((size_t)test_size * sizeof(int));
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Type_contiguous(2, MPI_UNSIGNED, &pair);
    MPI_Type_commit(&pair);
    MPI_Type_vector(3, 1, 2, MPI_INT, &spread);
    MPI_Type_commit(&spread);
    MPI_Op_create(chain, 0, &op);
    for (int i = 0; i < test_size; i++) {
        counts[i] = 3;
        displs[i] = 3 * i;
    }
    MPI_Iallreduce(mine, all, 1, pair, op, comm, &requests[0]);
    MPI_Iallgatherv(strided, 1, spread, packed, counts, displs, MPI_INT, comm, &requests[1]);
    MPI_Ibarrier(comm, &requests[2]);
    MPI_Type_free(&pair);
    MPI_Type_free(&spread);
    MPI_Op_free(&op);
    MPI_Comm_free(&comm);
    MPI_Waitall(3, requests, MPI_STATUSES_IGNORE);
    for (int rank = 0; rank < test_size; rank++) {
        unsigned map[2] = {(unsigned)rank + 3, 2 * (unsigned)rank + 1};
        int one = 1;
        MPI_Datatype none = MPI_DATATYPE_NULL;
        chain(expected, map, &one, &none);
        memcpy(expected, map, sizeof map);
        for (int k = 0; k < 3; k++)
            CHECK_EQUAL(packed[3 * rank + k], rank + k);
    }
    CHECK_EQUAL(all[0], expected[0]);
    CHECK_EQUAL(all[1], expected[1]);
    free(packed);
    free(counts);
    free(displs);
}

/* A persistent one keeps its own too, and its communicator. */
static void freed_persistent(void)
{
    MPI_Comm comm;
    MPI_Datatype triple;
    MPI_Request request;
    int data[3];
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Type_contiguous(3, MPI_INT, &triple);
    MPI_Type_commit(&triple);
    MPI_Bcast_init(data, 1, triple, test_size - 1, comm, MPI_INFO_NULL, &request);
    MPI_Type_free(&triple);
    MPI_Comm_free(&comm);
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 3; i++)
            data[i] = test_rank == test_size - 1 ? 100 * round + i : -1;
        MPI_Start(&request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        for (int i = 0; i < 3; i++)
            CHECK_EQUAL(data[i], 100 * round + i);
    }
    MPI_Request_free(&request);
}

/* ---- persistent ones in any order -------------------------------------------------------------------------------- */

#define PERSISTENT 6

static void any_order(void)
{
    MPI_Request requests[PERSISTENT + 2];
    int send[PERSISTENT], sums[PERSISTENT], given = 0, taken = 0;
    for (int i = 0; i < PERSISTENT; i++) /* all of one kind, so that only their order can tell them apart */
        MPI_Allreduce_init(&send[i], &sums[i], 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[i]);
    MPI_Send_init(&given, 1, MPI_INT, test_next(), 5, MPI_COMM_WORLD, &requests[PERSISTENT]);
    MPI_Recv_init(&taken, 1, MPI_INT, test_previous(), 5, MPI_COMM_WORLD, &requests[PERSISTENT + 1]);
    for (int round = 0; round < 20; round++) {
        int expected = 0;
        for (int i = 0; i < PERSISTENT; i++)
            send[i] = test_rank + 100 * i + round;
        given = test_rank + round;
        if (round % 2 == 0) {
            for (int i = 0; i < PERSISTENT; i++)
                MPI_Start(&requests[(i * 5 + test_rank) % PERSISTENT]);
            MPI_Startall(2, requests + PERSISTENT);
        } else {
            MPI_Startall(PERSISTENT + 2, requests);
        }
        if (round % 3 == 0) {
            int sum = 0, one = 1; /* one that is not persistent, among them */
            MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
            CHECK_EQUAL(sum, test_size);
        }
        MPI_Waitall(PERSISTENT + 2, requests, MPI_STATUSES_IGNORE);
        for (int rank = 0; rank < test_size; rank++)
            expected += rank + round;
        for (int i = 0; i < PERSISTENT; i++)
            CHECK_EQUAL(sums[i], expected + 100 * i * test_size);
        CHECK_EQUAL(taken, test_previous() + round);
    }
    for (int i = 0; i < PERSISTENT + 2; i++)
        MPI_Request_free(&requests[i]);
}

/* ---- progress ---------------------------------------------------------------------------------------------------- */

/* A tree passes through ranks that do nothing but something else in MPI. */
static void progress(void)
{
    enum { INTS = 40000 };
    int *data = test_memory(INTS * sizeof(int)), told = 0, flag = 0;
    MPI_Request collective, message;
    for (int i = 0; i < INTS; i++)
        data[i] = test_rank == 0 ? i : -1;
    MPI_Ibcast(data, INTS, MPI_INT, 0, MPI_COMM_WORLD, &collective);
    if (test_rank == test_size - 1) {
        MPI_Wait(&collective, MPI_STATUS_IGNORE);
        for (int rank = 0; rank < test_size - 1; rank++)
            MPI_Send(&test_rank, 1, MPI_INT, rank, 9, MPI_COMM_WORLD);
    } else if (test_rank % 2 == 0) { /* waits for another request */
        MPI_Irecv(&told, 1, MPI_INT, test_size - 1, 9, MPI_COMM_WORLD, &message);
        MPI_Wait(&message, MPI_STATUS_IGNORE);
        MPI_Wait(&collective, MPI_STATUS_IGNORE);
    } else { /* only probes */
        while (flag == 0)
            MPI_Iprobe(test_size - 1, 9, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
        MPI_Recv(&told, 1, MPI_INT, test_size - 1, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Wait(&collective, MPI_STATUS_IGNORE);
    }
    for (int i = 0; i < INTS; i++)
        if (!CHECK_EQUAL(data[i], i))
            break;
    free(data);
}

/* ---- what is forbidden ------------------------------------------------------------------------------------------- */

static void errors(void)
{
    MPI_Request request = MPI_REQUEST_NULL, again = MPI_REQUEST_NULL;
    MPI_Status status;
    int data = 1, sum = 0, flag = 0;
    CHECK_CLASS(MPI_Ibcast(&data, -1, MPI_INT, 0, MPI_COMM_WORLD, &request), MPI_ERR_COUNT);
    CHECK_CLASS(MPI_Ibcast(&data, 1, MPI_INT, test_size, MPI_COMM_WORLD, &request), MPI_ERR_ROOT);
    CHECK_CLASS(MPI_Iallreduce(&data, &sum, 1, MPI_INT, MPI_OP_NULL, MPI_COMM_WORLD, &request), MPI_ERR_OP);
    CHECK_CLASS(MPI_Iscan(&data, &sum, 1, MPI_DATATYPE_NULL, MPI_SUM, MPI_COMM_WORLD, &request), MPI_ERR_TYPE);
    CHECK_CLASS(MPI_Ibarrier(MPI_COMM_NULL, &request), MPI_ERR_COMM);
    CHECK_CLASS(MPI_Gather_init(&data, 1, MPI_INT, &sum, -1, MPI_INT, test_rank, MPI_COMM_WORLD, MPI_INFO_NULL, &again),
                MPI_ERR_COUNT);
    CHECK(request == MPI_REQUEST_NULL && again == MPI_REQUEST_NULL, "a request of a call that has failed");
    if (test_peer())
        return;
    CHECK_CLASS(MPI_Ibarrier(MPI_COMM_WORLD, NULL), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Barrier_init(MPI_COMM_WORLD, (MPI_Info)(uintptr_t)0x12345, &again), MPI_ERR_INFO);
    CHECK_CLASS(MPI_Iallreduce(&data, &data, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request), MPI_ERR_BUFFER);
    MPI_Allreduce_init(&data, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &again);
    MPI_Test(&again, &flag, &status); /* inactive: done, with an empty status */
    CHECK(flag && status.MPI_SOURCE == MPI_ANY_SOURCE, "flag %d, source %d", flag, status.MPI_SOURCE);
    CHECK_CLASS(MPI_Cancel(&again), MPI_ERR_REQUEST);
    /* The others come later, so that what rank 0 has started cannot be done. */
    if (test_rank > 0)
        MPI_Recv(&flag, 1, MPI_INT, 0, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Ibarrier(MPI_COMM_WORLD, &request);
    MPI_Start(&again);
    if (test_rank == 0 && test_size > 1) {
        CHECK_CLASS(MPI_Request_free(&request), MPI_ERR_REQUEST);
        CHECK_CLASS(MPI_Request_free(&again), MPI_ERR_REQUEST);
    }
    for (int rank = 1; rank < test_size && test_rank == 0; rank++)
        MPI_Send(&flag, 1, MPI_INT, rank, 4, MPI_COMM_WORLD);
    CHECK_CLASS(MPI_Cancel(&request), MPI_ERR_REQUEST);
    CHECK_CLASS(MPI_Start(&request), MPI_ERR_REQUEST);
    CHECK_CLASS(MPI_Start(&again), MPI_ERR_REQUEST);
    CHECK_CLASS(MPI_Cancel(&again), MPI_ERR_REQUEST);
    MPI_Wait(&again, MPI_STATUS_IGNORE);
    CHECK_EQUAL(sum, test_size);
    MPI_Request_free(&again);
    do
        MPI_Request_get_status(request, &flag, &status);
    while (!flag);
    CHECK_EQUAL(MPI_Request_free(&request), MPI_SUCCESS); /* it is known to be done */
    CHECK(request == MPI_REQUEST_NULL && again == MPI_REQUEST_NULL, "a request that was freed");
}

/* Ranks that do not agree are told when they complete. */
static void failures(void)
{
    MPI_Comm comm;
    MPI_Request requests[2];
    MPI_Status statuses[2];
    int data[8] = {0};
    if (test_size < 2 || test_peer())
        return;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    MPI_Ibarrier(MPI_COMM_WORLD, &requests[0]);
    MPI_Ibcast(data, test_rank == 0 ? 7 : 5, MPI_INT, 0, comm, &requests[1]);
    int code = MPI_Waitall(2, requests, statuses);
    if (test_rank == 0) {
        CHECK_EQUAL(code, MPI_SUCCESS);
    } else {
        CHECK_CLASS(code, MPI_ERR_IN_STATUS);
        CHECK_EQUAL(statuses[0].MPI_ERROR, MPI_SUCCESS);
        CHECK(statuses[1].MPI_ERROR != MPI_SUCCESS, "no error of a broadcast with different counts");
    }
    CHECK(requests[1] == MPI_REQUEST_NULL, "a request that is left");
    MPI_Comm_free(&comm);
}

/* A root has begun more on one communicator than anybody keeps, then something on another, to which the others come
 * first. */
static void outrun(void)
{
    enum { MANY = 20, INTS = 16384 };
    MPI_Comm comms[2];
    MPI_Request requests[MANY + 1];
    int *data = test_memory(MANY * INTS * sizeof(int)), first = test_rank == 0 ? 5 : 0;
    for (int i = 0; i < 2; i++)
        MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]);
    for (int i = 0; i < MANY * INTS; i++)
        data[i] = test_rank == 0 ? i : -1;
    if (test_rank > 0)
        MPI_Bcast(&first, 1, MPI_INT, 0, comms[1]);
    for (int i = 0; i < MANY; i++)
        MPI_Ibcast(data + (size_t)i * INTS, INTS, MPI_INT, 0, comms[0], &requests[i]);
    if (test_rank == 0)
        MPI_Ibcast(&first, 1, MPI_INT, 0, comms[1], &requests[MANY]);
    MPI_Waitall(MANY + (test_rank == 0), requests, MPI_STATUSES_IGNORE);
    int wrong = first != 5;
    for (int i = 0; i < MANY * INTS; i++)
        wrong += data[i] != i;
    CHECK_EQUAL(wrong, 0);
    free(data);
    for (int i = 0; i < 2; i++)
        MPI_Comm_free(&comms[i]);
}

int main(int argc, char **argv)
{
    test_begin(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm copy;
    MPI_Comm_dup(MPI_COMM_WORLD, &copy);
    for (uint64_t seed = 0; seed < 5; seed++)
        many(seed % 2 == 0 ? MPI_COMM_WORLD : copy, seed * 1000);
    MPI_Comm_free(&copy);
    for (int i = 0; i < 5; i++)
        freed();
    freed_persistent();
    any_order();
    progress();
    errors();
    failures();
    outrun();
    return test_end();
}
