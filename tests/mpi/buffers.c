/* Buffers of buffered sends since MPI 4.1: automatic ones, ones of a communicator, flushing. */
#include "test.h"

#define COUNT 50

static void send_all(MPI_Comm comm, int bytes)
{
    unsigned char *out = test_memory((size_t)bytes);
    for (int i = 0; i < COUNT; i++) {
        test_fill(out, (size_t)bytes, (uint64_t)(test_rank * 100 + i));
        MPI_Bsend(out, bytes, MPI_BYTE, test_next(), i, comm);
        memset(out, 0, (size_t)bytes);
    }
    free(out);
}

static void receive_all(MPI_Comm comm, int bytes)
{
    unsigned char *in = test_memory((size_t)bytes);
    for (int i = COUNT - 1; i >= 0; i--) {
        MPI_Status status;
        test_clear(in, (size_t)bytes);
        MPI_Recv(in, bytes, MPI_BYTE, test_previous(), i, comm, &status);
        CHECK_STATUS(&status, test_previous(), i, (size_t)bytes);
        CHECK_DATA(in, (size_t)bytes, (uint64_t)(test_previous() * 100 + i));
    }
    free(in);
}

/* The library finds the memory itself. */
static void automatic(int bytes)
{
    void *detached = NULL;
    int size = -1;
    MPI_Buffer_attach(MPI_BUFFER_AUTOMATIC, test_peer() ? 0 : -bytes); /* the size does not matter */
    send_all(MPI_COMM_WORLD, bytes);
    MPI_Barrier(MPI_COMM_WORLD);
    receive_all(MPI_COMM_WORLD, bytes);
    MPI_Buffer_flush();
    MPI_Buffer_detach(&detached, &size);
    CHECK(detached == MPI_BUFFER_AUTOMATIC, "MPI_Buffer_detach gave %p", detached);
    CHECK_EQUAL(size, 0);
}

/* A communicator's own buffer is used for it and for nothing else; flushing waits for the messages, not for the buffer.
 */
static void of_communicator(int bytes, bool nonblocking)
{
    MPI_Comm comm;
    int room = COUNT * (bytes + MPI_BSEND_OVERHEAD), size = -1;
    void *buffer = test_memory((size_t)room), *detached = NULL;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_attach_buffer(comm, buffer, room);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    CHECK_CLASS(MPI_Bsend(&room, 1, MPI_INT, test_next(), 0, MPI_COMM_WORLD), MPI_ERR_BUFFER);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    for (int i = 0; i < 3; i++) {
        send_all(comm, bytes);
        MPI_Barrier(comm);
        receive_all(comm, bytes);
        if (nonblocking) {
            MPI_Request request;
            MPI_Comm_iflush_buffer(comm, &request);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
        } else {
            MPI_Comm_flush_buffer(comm);
        }
    }
    MPI_Comm_detach_buffer(comm, &detached, &size);
    CHECK(detached == buffer, "MPI_Comm_detach_buffer gave %p, not %p", detached, buffer);
    CHECK_EQUAL(size, room);
    MPI_Comm_free(&comm);
    free(buffer);
}

/* A request of a flush outlives its buffer, and has nothing to do with the next one, whose message waits here. */
static void outlived(MPI_Comm comm)
{
    enum { BYTES = 1 << 20 };
    unsigned char *out = test_memory(BYTES), *in = test_memory(BYTES);
    void *detached = NULL;
    int size = -1, flag = 0;
    MPI_Request flush, message;
    MPI_Comm_attach_buffer(comm, MPI_BUFFER_AUTOMATIC, 0);
    MPI_Ibsend(out, 1, MPI_BYTE, test_next(), 1, comm, &message);
    MPI_Wait(&message, MPI_STATUS_IGNORE);
    MPI_Recv(in, 1, MPI_BYTE, test_previous(), 1, comm, MPI_STATUS_IGNORE);
    MPI_Comm_iflush_buffer(comm, &flush);
    MPI_Comm_detach_buffer(comm, &detached, &size);
    MPI_Comm_attach_buffer(comm, MPI_BUFFER_AUTOMATIC, 0);
    test_fill(out, BYTES, (uint64_t)test_rank);
    MPI_Ibsend(out, BYTES, MPI_BYTE, test_next(), 2, comm, &message);
    MPI_Wait(&message, MPI_STATUS_IGNORE);
    MPI_Test(&flush, &flag, MPI_STATUS_IGNORE);
    CHECK(flag, "the flush of a buffer that is gone is not complete");
    MPI_Recv(in, BYTES, MPI_BYTE, test_previous(), 2, comm, MPI_STATUS_IGNORE);
    CHECK_DATA(in, BYTES, (uint64_t)test_previous());
    if (!flag)
        MPI_Wait(&flush, MPI_STATUS_IGNORE);
    MPI_Comm_iflush_buffer(comm, &flush);
    MPI_Comm_free(&comm);
    MPI_Wait(&flush, MPI_STATUS_IGNORE);
    free(out);
    free(in);
}

/* The standard's circular buffer has room for all of these: C behind B, D where A was. */
static void circular(MPI_Comm comm)
{
    enum { UNIT = 1 << 18, A = 4 * UNIT, B = 3 * UNIT, C = 2 * UNIT, D = 4 * UNIT };
    static const int sizes[] = {A, B, C, D};
    int room = 10 * UNIT + 4 * MPI_BSEND_OVERHEAD, me = -1, size = -1;
    unsigned char *buffer = test_memory((size_t)room), *out = test_memory(A), *in = test_memory(A);
    void *detached = NULL;
    MPI_Comm_rank(comm, &me);
    MPI_Comm_attach_buffer(comm, buffer, room);
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 4; i++) {
            test_fill(out, (size_t)sizes[i], (uint64_t)i);
            MPI_Bsend(out, sizes[i], MPI_BYTE, me, i, comm);
            if (i == 1)
                MPI_Recv(in, A, MPI_BYTE, me, 0, comm, MPI_STATUS_IGNORE);
        }
        for (int i = 3; i > 0; i--) {
            MPI_Recv(in, sizes[i], MPI_BYTE, me, i, comm, MPI_STATUS_IGNORE);
            CHECK_DATA(in, (size_t)sizes[i], (uint64_t)i);
        }
    }
    /* There is no more room than that of the buffer. */
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    for (int i = 0; i < 4; i++) {
        int code = MPI_Bsend(out, B, MPI_BYTE, me, i, comm);
        if (!test_peer())
            CHECK_CLASS(code, i < 3 ? MPI_SUCCESS : MPI_ERR_BUFFER);
    }
    for (int i = 0; i < 3; i++)
        MPI_Recv(in, B, MPI_BYTE, me, i, comm, MPI_STATUS_IGNORE);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_ARE_FATAL);
    MPI_Comm_detach_buffer(comm, &detached, &size);
    CHECK(detached == buffer && size == room, "MPI_Comm_detach_buffer gave %p of %d bytes", detached, size);
    CHECK(test_untouched(buffer + room, TEST_GUARD), "bytes behind the buffer were changed");
    free(buffer);
    free(out);
    free(in);
}

int main(int argc, char **argv)
{
    static const int lengths[] = {0, 8, 1000, 20000};
    test_begin(&argc, &argv);
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        automatic(lengths[i]);
        of_communicator(lengths[i], false);
        of_communicator(lengths[i], true);
    }
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_SELF, &comm);
    circular(comm);
    MPI_Comm_free(&comm);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    outlived(comm);
    return test_end();
}
