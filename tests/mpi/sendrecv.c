/* MPI_Sendrecv, MPI_Sendrecv_replace and their nonblocking forms: rings of both directions, all sizes, partners of
 * plain sends and receives. */
#include "test.h"

#define LARGEST 1000001

static const int lengths[] = {0, 1, 8, 1000, 8191, 8193, 33000, 300000, LARGEST};
#define LENGTHS (int)(sizeof lengths / sizeof lengths[0])

static unsigned char *out, *in;

static uint64_t name(int from, int bytes)
{
    return (uint64_t)from * 1000 + (uint64_t)bytes;
}

/* What is sent and what is received differ in length and tag. */
static void ring(int bytes, bool backward, bool nonblocking)
{
    int to = backward ? test_previous() : test_next(), from = backward ? test_next() : test_previous();
    int mine = bytes + test_rank % 3, theirs = bytes + from % 3;
    MPI_Status status;
    test_fill(out, (size_t)mine, name(test_rank, bytes));
    test_clear(in, (size_t)theirs);
    if (nonblocking) {
        MPI_Request request;
        MPI_Isendrecv(out, mine, MPI_BYTE, to, to, in, bytes + 3, MPI_BYTE, from, test_rank, MPI_COMM_WORLD, &request);
        MPI_Wait(&request, &status);
        CHECK(request == MPI_REQUEST_NULL, "the handle is still there");
    } else {
        MPI_Sendrecv(out, mine, MPI_BYTE, to, to, in, bytes + 3, MPI_BYTE, from, test_rank, MPI_COMM_WORLD, &status);
    }
    CHECK_STATUS(&status, from, test_rank, (size_t)theirs);
    CHECK_DATA(in, (size_t)theirs, name(from, bytes));
    CHECK(test_untouched(in + theirs, TEST_GUARD), "bytes behind the message were changed");
    CHECK_DATA(out, (size_t)mine, name(test_rank, bytes));
}

static void replace(int bytes, bool nonblocking)
{
    MPI_Status status;
    test_clear(out, (size_t)bytes);
    test_fill(out, (size_t)bytes, name(test_rank, bytes));
    if (nonblocking) {
        MPI_Request request;
        MPI_Isendrecv_replace(out, bytes, MPI_BYTE, test_next(), 3, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD,
                              &request);
        MPI_Wait(&request, &status);
    } else {
        MPI_Sendrecv_replace(out, bytes, MPI_BYTE, test_next(), 3, test_previous(), 3, MPI_COMM_WORLD, &status);
    }
    CHECK_STATUS(&status, test_previous(), 3, (size_t)bytes);
    CHECK_DATA(out, (size_t)bytes, name(test_previous(), bytes));
    CHECK(test_untouched(out + bytes, TEST_GUARD), "bytes behind the message were changed");
    MPI_Barrier(MPI_COMM_WORLD);
}

/* The other end uses plain calls. */
static void mixed(int bytes)
{
    int partner = test_rank ^ 1;
    if (partner >= test_size)
        return;
    MPI_Status status;
    test_fill(out, (size_t)bytes, name(test_rank, bytes));
    test_clear(in, (size_t)bytes);
    if (test_rank % 2) {
        MPI_Sendrecv(out, bytes, MPI_BYTE, partner, 1, in, bytes, MPI_BYTE, partner, 1, MPI_COMM_WORLD, &status);
    } else {
        MPI_Recv(in, bytes, MPI_BYTE, partner, 1, MPI_COMM_WORLD, &status);
        MPI_Send(out, bytes, MPI_BYTE, partner, 1, MPI_COMM_WORLD);
    }
    CHECK_STATUS(&status, partner, 1, (size_t)bytes);
    CHECK_DATA(in, (size_t)bytes, name(partner, bytes));
}

/* A token that everyone increases goes round, held by one call at a time. */
static void token(void)
{
    int value = test_rank;
    for (int i = 0; i < test_size; i++)
        MPI_Sendrecv_replace(&value, 1, MPI_INT, test_next(), 9, test_previous(), 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    CHECK_EQUAL(value, test_rank);
}

/* Several at once, ended in any order. */
static void several(void)
{
    enum { COUNT = 10 };
    int data[COUNT], got[COUNT], index;
    MPI_Request requests[COUNT];
    for (int i = 0; i < COUNT; i++) {
        data[i] = test_rank * 100 + i;
        got[i] = -1;
        MPI_Isendrecv(&data[i], 1, MPI_INT, test_next(), i, &got[i], 1, MPI_INT, test_previous(), i, MPI_COMM_WORLD,
                      &requests[i]);
    }
    for (int i = 0; i < COUNT; i++) {
        MPI_Waitany(COUNT, requests, &index, MPI_STATUS_IGNORE);
        test_need(index >= 0 && index < COUNT, "no request ended");
        CHECK_EQUAL(got[index], test_previous() * 100 + index);
    }
}

int main(int argc, char **argv)
{
    test_begin(&argc, &argv);
    out = test_memory(LARGEST + 3);
    in = test_memory(LARGEST + 3);
    for (int i = 0; i < LENGTHS; i++) {
        ring(lengths[i], false, false);
        ring(lengths[i], true, false);
        ring(lengths[i], false, true);
        ring(lengths[i], true, true);
        MPI_Barrier(MPI_COMM_WORLD);
        replace(lengths[i], false);
        replace(lengths[i], true);
        mixed(lengths[i]);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    token();
    several();
    free(out);
    free(in);
    return test_end();
}
