/* Persistent requests: started again and again, with new data each time; several at once; freed inactive and active. */
#include "test.h"

#define ROUNDS 40

typedef int init_function(const void *, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request *);

static void restarted(init_function *init, int bytes, bool receive_first, int tag)
{
    unsigned char *out = test_memory((size_t)bytes), *in = test_memory((size_t)bytes);
    MPI_Request send, receive, kept;
    MPI_Status status;
    init(out, bytes, MPI_BYTE, test_next(), tag, MPI_COMM_WORLD, &send);
    MPI_Recv_init(in, bytes, MPI_BYTE, test_previous(), tag, MPI_COMM_WORLD, &receive);
    kept = receive;
    for (int i = 0; i < ROUNDS; i++) {
        test_clear(in, (size_t)bytes);
        test_fill(out, (size_t)bytes, (uint64_t)(test_rank * 1000 + i));
        if (receive_first) {
            MPI_Start(&receive);
            MPI_Barrier(MPI_COMM_WORLD);
            MPI_Start(&send);
        } else {
            MPI_Start(&send);
            MPI_Start(&receive);
        }
        MPI_Wait(&receive, &status);
        CHECK(receive == kept, "the handle changed in round %d", i);
        CHECK_STATUS(&status, test_previous(), tag, (size_t)bytes);
        CHECK_DATA(in, (size_t)bytes, (uint64_t)(test_previous() * 1000 + i));
        CHECK(test_untouched(in + bytes, TEST_GUARD), "bytes behind the buffer were changed");
        int flag = 0;
        while (!flag)
            MPI_Test(&send, &flag, MPI_STATUS_IGNORE);
        CHECK(send != MPI_REQUEST_NULL, "the handle is gone after round %d", i);
    }
    MPI_Request_free(&send);
    MPI_Request_free(&receive);
    CHECK(send == MPI_REQUEST_NULL && receive == MPI_REQUEST_NULL, "freed handles are not null");
    free(out);
    free(in);
    MPI_Barrier(MPI_COMM_WORLD);
}

/* An inactive request is done, with an empty status; completion calls pass it over. */
static void inactive(void)
{
    int out = 1, in = 0, flag = 0, index = 0, count = 0, indices[2];
    MPI_Request requests[2];
    MPI_Status status;
    MPI_Send_init(&out, 1, MPI_INT, test_next(), 3, MPI_COMM_WORLD, &requests[0]);
    MPI_Recv_init(&in, 1, MPI_INT, test_previous(), 3, MPI_COMM_WORLD, &requests[1]);
    MPI_Wait(&requests[0], &status);
    CHECK_STATUS(&status, MPI_ANY_SOURCE, MPI_ANY_TAG, 0);
    MPI_Test(&requests[1], &flag, &status);
    CHECK_EQUAL(flag, 1);
    CHECK_STATUS(&status, MPI_ANY_SOURCE, MPI_ANY_TAG, 0);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    MPI_Waitany(2, requests, &index, &status);
    CHECK_EQUAL(index, MPI_UNDEFINED);
    MPI_Waitsome(2, requests, &count, indices, MPI_STATUSES_IGNORE);
    CHECK_EQUAL(count, MPI_UNDEFINED);
    MPI_Testall(2, requests, &flag, MPI_STATUSES_IGNORE);
    CHECK_EQUAL(flag, 1);
    CHECK(requests[0] != MPI_REQUEST_NULL && requests[1] != MPI_REQUEST_NULL, "an inactive request was freed");
    MPI_Request_free(&requests[0]);
    MPI_Request_free(&requests[1]);
}

/* Everyone with everyone, all started in one call. */
static void all_at_once(void)
{
    int n = test_size;
    int *out = test_memory((size_t)n * sizeof *out), *in = test_memory((size_t)n * sizeof *in);
    MPI_Request *requests = test_memory(2 * (size_t)n * sizeof *requests);
    for (int i = 0; i < n; i++) {
        MPI_Recv_init(&in[i], 1, MPI_INT, i, 7, MPI_COMM_WORLD, &requests[i]);
        MPI_Send_init(&out[i], 1, MPI_INT, i, 7, MPI_COMM_WORLD, &requests[n + i]);
    }
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < n; i++) {
            out[i] = round * 10000 + test_rank * 100 + i;
            in[i] = -1;
        }
        MPI_Startall(2 * n, requests);
        if (round % 2) {
            MPI_Waitall(2 * n, requests, MPI_STATUSES_IGNORE);
        } else {
            int index;
            for (int i = 0; i < 2 * n; i++)
                MPI_Waitany(2 * n, requests, &index, MPI_STATUS_IGNORE);
            MPI_Waitany(2 * n, requests, &index, MPI_STATUS_IGNORE);
            CHECK_EQUAL(index, MPI_UNDEFINED);
        }
        for (int i = 0; i < n; i++)
            CHECK_EQUAL(in[i], round * 10000 + i * 100 + test_rank);
    }
    for (int i = 0; i < 2 * n; i++)
        MPI_Request_free(&requests[i]);
    free(out);
    free(in);
    free(requests);
}

/* A request that is freed while active is carried out all the same. */
static void freed_active(int bytes)
{
    unsigned char *out = test_memory((size_t)bytes), *in = test_memory((size_t)bytes);
    MPI_Request request;
    test_fill(out, (size_t)bytes, (uint64_t)test_rank);
    MPI_Send_init(out, bytes, MPI_BYTE, test_next(), 8, MPI_COMM_WORLD, &request);
    MPI_Start(&request);
    MPI_Request_free(&request);
    CHECK(request == MPI_REQUEST_NULL, "the freed handle is not null");
    MPI_Recv(in, bytes, MPI_BYTE, test_previous(), 8, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    CHECK_DATA(in, (size_t)bytes, (uint64_t)test_previous());
    /* The neighbour answers when it has received, so the buffer is free. */
    MPI_Sendrecv(NULL, 0, MPI_BYTE, test_previous(), 9, NULL, 0, MPI_BYTE, test_next(), 9, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    free(out);
    free(in);
}

static void buffered(void)
{
    int out, in, room = ROUNDS * ((int)sizeof(int) + MPI_BSEND_OVERHEAD), size;
    void *buffer = test_memory((size_t)room), *detached;
    MPI_Request request;
    MPI_Buffer_attach(buffer, room);
    MPI_Bsend_init(&out, 1, MPI_INT, test_next(), 11, MPI_COMM_WORLD, &request);
    for (int i = 0; i < ROUNDS; i++) {
        out = test_rank * 1000 + i;
        MPI_Start(&request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    for (int i = 0; i < ROUNDS; i++) {
        MPI_Recv(&in, 1, MPI_INT, test_previous(), 11, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        CHECK_EQUAL(in, test_previous() * 1000 + i);
    }
    MPI_Request_free(&request);
    MPI_Buffer_detach(&detached, &size);
    free(buffer);
}

/* A start that fails leaves the request inactive, so that it can be started when there is a buffer. */
static void without_buffer(void)
{
    int out = test_rank, in = -1, size;
    void *detached;
    MPI_Request request;
    MPI_Bsend_init(&out, 1, MPI_INT, test_next(), 12, MPI_COMM_WORLD, &request);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    CHECK_CLASS(MPI_Start(&request), MPI_ERR_BUFFER);
    MPI_Buffer_attach(MPI_BUFFER_AUTOMATIC, 0);
    CHECK_CLASS(MPI_Start(&request), MPI_SUCCESS);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Recv(&in, 1, MPI_INT, test_previous(), 12, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    CHECK_EQUAL(in, test_previous());
    MPI_Request_free(&request);
    MPI_Buffer_detach(&detached, &size);
}

/* To and from MPI_PROC_NULL. */
static void nowhere(void)
{
    int out = 1, in = 2;
    MPI_Request requests[2];
    MPI_Status statuses[2];
    MPI_Send_init(&out, 1, MPI_INT, MPI_PROC_NULL, 1, MPI_COMM_WORLD, &requests[0]);
    MPI_Recv_init(&in, 1, MPI_INT, MPI_PROC_NULL, 1, MPI_COMM_WORLD, &requests[1]);
    for (int i = 0; i < 3; i++) {
        MPI_Startall(2, requests);
        MPI_Waitall(2, requests, statuses);
        CHECK_STATUS(&statuses[1], MPI_PROC_NULL, MPI_ANY_TAG, 0);
    }
    CHECK_EQUAL(in, 2);
    MPI_Request_free(&requests[0]);
    MPI_Request_free(&requests[1]);
}

int main(int argc, char **argv)
{
    static const int lengths[] = {0, 1, 1000, 9000, 100000};
    test_begin(&argc, &argv);
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        restarted(MPI_Send_init, lengths[i], false, 1);
        restarted(MPI_Ssend_init, lengths[i], false, 2);
        restarted(MPI_Rsend_init, lengths[i], true, 3);
        freed_active(lengths[i]);
    }
    inactive();
    all_at_once();
    buffered();
    if (!test_peer()) /* others end the job, or leave the request active */
        without_buffer();
    nowhere();
    return test_end();
}
