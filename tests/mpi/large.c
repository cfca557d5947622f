/* Messages beyond 2 GiB: by large counts, by elements of more than a byte, truncated, broadcast. Needs 5 GiB of memory
 * for two ranks. */
#include "test.h"

static const size_t limit = (size_t)1 << 31;

static void send_and_receive(unsigned char *data, size_t bytes)
{
    MPI_Status status;
    MPI_Count count = -1;
    int small = -1;
    if (test_rank == 0) {
        test_fill(data, bytes, 1);
        MPI_Send_c(data, (MPI_Count)bytes, MPI_BYTE, test_size - 1, 1, MPI_COMM_WORLD);
    } else if (test_rank == test_size - 1) {
        MPI_Recv_c(data, (MPI_Count)bytes, MPI_BYTE, 0, 1, MPI_COMM_WORLD, &status);
        CHECK_DATA(data, bytes, 1);
        MPI_Get_count_c(&status, MPI_BYTE, &count);
        CHECK_EQUAL(count, bytes);
        MPI_Get_count(&status, MPI_BYTE, &small);
        CHECK_EQUAL(small, MPI_UNDEFINED);
    }
}

/* More than 2 GiB by a small count, and the other way round with nonblocking calls. */
static void elements(unsigned char *data)
{
    int doubles = (int)(limit / sizeof(double)) + 1, count = -1;
    size_t bytes = (size_t)doubles * sizeof(double);
    MPI_Request request;
    MPI_Status status;
    if (test_rank == test_size - 1) {
        test_fill(data, bytes, 2);
        MPI_Isend(data, doubles, MPI_DOUBLE, 0, 2, MPI_COMM_WORLD, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    } else if (test_rank == 0) {
        test_clear(data, bytes - TEST_GUARD);
        MPI_Irecv(data, doubles, MPI_DOUBLE, test_size - 1, 2, MPI_COMM_WORLD, &request);
        MPI_Wait(&request, &status);
        CHECK_DATA(data, bytes, 2);
        MPI_Get_count(&status, MPI_DOUBLE, &count);
        CHECK_EQUAL(count, doubles);
    }
}

/* One byte too long for its buffer: an error, and the byte behind it stays as it is. */
static void truncated(unsigned char *data)
{
    MPI_Status status;
    if (test_rank == 0) {
        MPI_Send_c(data, (MPI_Count)limit + 1, MPI_BYTE, test_size - 1, 3, MPI_COMM_WORLD);
    } else if (test_rank == test_size - 1) {
        data[limit] = TEST_UNTOUCHED;
        MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
        int code = MPI_Recv_c(data, (MPI_Count)limit, MPI_BYTE, 0, 3, MPI_COMM_WORLD, &status);
        MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
        CHECK_CLASS(code, MPI_ERR_TRUNCATE);
        CHECK_EQUAL(data[limit], TEST_UNTOUCHED);
    }
}

static void broadcast(unsigned char *data, size_t bytes)
{
    if (test_rank == test_size - 1)
        test_fill(data, bytes, 3);
    MPI_Bcast_c(data, (MPI_Count)bytes, MPI_BYTE, test_size - 1, MPI_COMM_WORLD);
    CHECK_DATA(data, bytes, 3);
}

/* A rank alone: from one half of its memory to the other. */
static void to_self(size_t bytes)
{
    unsigned char *out = test_memory(bytes), *in = test_memory(bytes);
    MPI_Status status;
    MPI_Count count = -1;
    test_fill(out, bytes, 4);
    MPI_Sendrecv_c(out, (MPI_Count)bytes, MPI_BYTE, 0, 1, in, (MPI_Count)bytes, MPI_BYTE, 0, 1, MPI_COMM_SELF, &status);
    CHECK_DATA(in, bytes, 4);
    MPI_Get_count_c(&status, MPI_BYTE, &count);
    CHECK_EQUAL(count, bytes);
    free(out);
    free(in);
}

int main(int argc, char **argv)
{
    test_begin(&argc, &argv);
    size_t bytes = limit + 1;
    if (test_size == 1) {
        to_self(bytes);
        return test_end();
    }
    /* Only the two that need it have the memory. */
    unsigned char *data = test_rank == 0 || test_rank == test_size - 1 ? test_memory(bytes + 64) : NULL;
    send_and_receive(data, bytes);
    elements(data);
    truncated(data);
    if (test_size == 2)
        broadcast(data, bytes);
    free(data);
    return test_end();
}
