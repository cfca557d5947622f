/* The modes of sending: standard, synchronous, ready, buffered; blocking and not. A synchronous send really waits. */
#include "test.h"

typedef int send_function(const void *, int, MPI_Datatype, int, int, MPI_Comm);
typedef int isend_function(const void *, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request *);

static const int lengths[] = {0, 1, 100, 5000, 40000, 200000};
#define LENGTHS  (int)(sizeof lengths / sizeof lengths[0])
#define LARGEST  200000
#define BUFFERED (2 * (LARGEST + MPI_BSEND_OVERHEAD))

static unsigned char out[LARGEST], in[LARGEST + TEST_GUARD];

/* The receive is posted before the neighbour may send, so that the ready mode is allowed too. */
static void round_the_ring(send_function *send, isend_function *isend, int tag)
{
    for (int i = 0; i < LENGTHS; i++) {
        size_t bytes = (size_t)lengths[i];
        MPI_Request receive, request;
        MPI_Status status;
        test_clear(in, bytes);
        MPI_Irecv(in, lengths[i], MPI_BYTE, test_previous(), tag, MPI_COMM_WORLD, &receive);
        MPI_Barrier(MPI_COMM_WORLD);
        test_fill(out, bytes, (uint64_t)(test_rank * 100 + i));
        if (send != NULL) {
            CHECK_EQUAL(send(out, lengths[i], MPI_BYTE, test_next(), tag, MPI_COMM_WORLD), MPI_SUCCESS);
        } else {
            CHECK_EQUAL(isend(out, lengths[i], MPI_BYTE, test_next(), tag, MPI_COMM_WORLD, &request), MPI_SUCCESS);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
            CHECK(request == MPI_REQUEST_NULL, "the handle is still there");
        }
        MPI_Wait(&receive, &status);
        CHECK_STATUS(&status, test_previous(), tag, bytes);
        CHECK_DATA(in, bytes, (uint64_t)(test_previous() * 100 + i));
        CHECK(test_untouched(in + bytes, TEST_GUARD), "bytes behind the buffer were changed");
    }
}

/* The receiver posts its receive only after it has been told to, so before that the send cannot have ended. */
static void synchronous(int bytes)
{
    MPI_Request request, go;
    int flag = 0;
    test_fill(out, (size_t)bytes, (uint64_t)test_rank);
    MPI_Issend(out, bytes, MPI_BYTE, test_next(), 1, MPI_COMM_WORLD, &request);
    double end = test_now() + 0.02;
    do {
        MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
    } while (!flag && test_now() < end);
    CHECK(!flag, "a synchronous send of %d bytes ended before it was received", bytes);
    MPI_Isend(NULL, 0, MPI_BYTE, test_next(), 2, MPI_COMM_WORLD, &go);
    MPI_Recv(NULL, 0, MPI_BYTE, test_previous(), 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    test_clear(in, (size_t)bytes);
    MPI_Recv(in, bytes, MPI_BYTE, test_previous(), 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    CHECK_DATA(in, (size_t)bytes, (uint64_t)test_previous());
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Wait(&go, MPI_STATUS_IGNORE);
}

/* The blocking call: it ends after the receive has begun. */
static void synchronous_blocking(int bytes)
{
    if (test_size == 1)
        return;
    if (test_rank == 0) {
        double begun = 0;
        MPI_Ssend(out, bytes, MPI_BYTE, test_size - 1, 1, MPI_COMM_WORLD);
        double ended = test_now();
        MPI_Recv(&begun, 1, MPI_DOUBLE, test_size - 1, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        CHECK(ended >= begun, "MPI_Ssend of %d bytes ended %.6f s before the receive", bytes, begun - ended);
    } else if (test_rank == test_size - 1) {
        test_sleep(0.03);
        double begun = test_now();
        MPI_Recv(in, bytes, MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Send(&begun, 1, MPI_DOUBLE, 0, 2, MPI_COMM_WORLD);
    }
}

/* Buffered sends end although nobody receives; what was sent is what the buffer held then. */
static void buffered(int round)
{
    enum { COUNT = 6, EACH = 3000 };
    int room = COUNT * (EACH + MPI_BSEND_OVERHEAD), size = 0;
    unsigned char *buffer = test_memory((size_t)room), data[EACH], *detached = NULL;
    MPI_Buffer_attach(buffer, room);
    for (int i = 0; i < COUNT; i++) {
        test_fill(data, EACH, (uint64_t)(test_rank * 10 + i));
        if ((i + round) % 2) {
            MPI_Bsend(data, EACH, MPI_BYTE, test_next(), i, MPI_COMM_WORLD);
        } else {
            MPI_Request request;
            MPI_Ibsend(data, EACH, MPI_BYTE, test_next(), i, MPI_COMM_WORLD, &request);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
        }
        memset(data, 0, EACH);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = COUNT - 1; i >= 0; i--) {
        MPI_Status status;
        test_clear(in, EACH);
        MPI_Recv(in, EACH, MPI_BYTE, test_previous(), i, MPI_COMM_WORLD, &status);
        CHECK_STATUS(&status, test_previous(), i, EACH);
        CHECK_DATA(in, EACH, (uint64_t)(test_previous() * 10 + i));
    }
    MPI_Buffer_detach(&detached, &size);
    CHECK(detached == buffer, "MPI_Buffer_detach gave %p, not %p", (void *)detached, (void *)buffer);
    CHECK_EQUAL(size, room);
    free(buffer);
}

/* Detaching waits until the messages have gone, and they arrive whole although the memory is used for other things. */
static void detach_delivers(void)
{
    enum { BYTES = 100000 };
    int room = BYTES + MPI_BSEND_OVERHEAD, size = 0;
    void *buffer = test_memory((size_t)room), *detached = NULL;
    MPI_Request receive;
    test_clear(in, BYTES);
    MPI_Irecv(in, BYTES, MPI_BYTE, test_previous(), 9, MPI_COMM_WORLD, &receive);
    MPI_Buffer_attach(buffer, room);
    test_fill(out, BYTES, (uint64_t)test_rank);
    MPI_Bsend(out, BYTES, MPI_BYTE, test_next(), 9, MPI_COMM_WORLD);
    memset(out, 0, BYTES);
    MPI_Buffer_detach(&detached, &size);
    memset(buffer, 0, (size_t)room);
    free(buffer);
    MPI_Wait(&receive, MPI_STATUS_IGNORE);
    CHECK_DATA(in, BYTES, (uint64_t)test_previous());
}

/* What does not fit is an error (a short message need not use the buffer), also when there is no buffer at all; space
 * that was used comes back. */
static void exhausted(void)
{
    enum { BYTES = 10000 };
    int room = BYTES + MPI_BSEND_OVERHEAD, size;
    void *buffer = test_memory((size_t)room), *detached;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    CHECK_CLASS(MPI_Bsend(out, 1, MPI_BYTE, test_next(), 4, MPI_COMM_WORLD), MPI_ERR_BUFFER);
    MPI_Buffer_attach(buffer, room);
    CHECK_CLASS(MPI_Buffer_attach(buffer, room), MPI_ERR_BUFFER);
    CHECK_CLASS(MPI_Bsend(out, LARGEST, MPI_BYTE, test_next(), 4, MPI_COMM_WORLD), MPI_ERR_BUFFER);
    for (int i = 0; i < 20; i++) {
        test_fill(out, BYTES, (uint64_t)(test_rank + i));
        CHECK_CLASS(MPI_Bsend(out, BYTES, MPI_BYTE, test_next(), 4, MPI_COMM_WORLD), MPI_SUCCESS);
        MPI_Recv(in, BYTES, MPI_BYTE, test_previous(), 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        CHECK_DATA(in, BYTES, (uint64_t)(test_previous() + i));
        MPI_Barrier(MPI_COMM_WORLD);
        /* The receiver has it all, but this side may not know yet: detaching waits for that. */
        MPI_Buffer_detach(&detached, &size);
        MPI_Buffer_attach(buffer, room);
    }
    MPI_Buffer_detach(&detached, &size);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL);
    free(buffer);
}

static int send_in_buffer(const void *data, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm)
{
    void *buffer = test_memory(BUFFERED), *detached;
    int size;
    MPI_Buffer_attach(buffer, BUFFERED);
    int code = MPI_Bsend(data, count, type, to, tag, comm);
    MPI_Buffer_detach(&detached, &size);
    free(buffer);
    return code;
}

int main(int argc, char **argv)
{
    test_begin(&argc, &argv);
    round_the_ring(MPI_Send, NULL, 20);
    round_the_ring(MPI_Ssend, NULL, 21);
    round_the_ring(MPI_Rsend, NULL, 22);
    round_the_ring(send_in_buffer, NULL, 23);
    round_the_ring(NULL, MPI_Isend, 24);
    round_the_ring(NULL, MPI_Issend, 25);
    round_the_ring(NULL, MPI_Irsend, 26);
    for (int i = 0; i < LENGTHS; i++) {
        synchronous(lengths[i]);
        synchronous_blocking(lengths[i]);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    buffered(0);
    buffered(1);
    detach_delivers();
    exhausted();
    return test_end();
}
