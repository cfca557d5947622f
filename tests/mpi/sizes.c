/* Messages of every awkward size: back and forth in pairs, round a ring, and small ones between all pairs.
 *
 * usage: sizes [LARGEST]       bytes; 4 MiB + 1 if left out */
#include "test.h"

#define SIZES_LIMIT 256

static size_t sizes[SIZES_LIMIT];
static int size_count;

static void make_sizes(size_t largest)
{
    static const size_t small[] = {0, 1, 7, 8, 15, 16, 17, 63, 64, 65};
    for (size_t i = 0; i < sizeof small / sizeof small[0]; i++)
        sizes[size_count++] = small[i];
    for (size_t power = 128; power - 1 <= largest; power *= 2)
        for (size_t size = power - 1; size <= power + 1 && size <= largest; size++)
            sizes[size_count++] = size;
}

/* The seed of the data of a message. */
static uint64_t name(int from, int to, size_t bytes, int kind)
{
    return (((uint64_t)from * 131 + (uint64_t)to) * 8 + (uint64_t)kind) * 16777619 + bytes;
}

static void check_received(const unsigned char *in, size_t bytes, const MPI_Status *status, int from, int tag, int kind)
{
    CHECK_STATUS(status, from, tag, bytes);
    CHECK_DATA(in, bytes, name(from, test_rank, bytes, kind));
    CHECK(test_untouched(in + bytes, TEST_GUARD), "bytes behind the end of %zu bytes were changed", bytes);
}

/* The first of a pair sends with an exact buffer at the other end, gets the answer into a larger one. */
static void ping_pong(int partner, size_t bytes, unsigned char *out, unsigned char *in)
{
    MPI_Status status;
    test_fill(out, bytes, name(test_rank, partner, bytes, 0));
    test_clear(in, bytes);
    if (partner == test_rank) {
        MPI_Request request;
        MPI_Isend(out, (int)bytes, MPI_BYTE, partner, 5, MPI_COMM_WORLD, &request);
        MPI_Recv(in, (int)bytes, MPI_BYTE, partner, 5, MPI_COMM_WORLD, &status);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    } else if (test_rank < partner) {
        MPI_Send(out, (int)bytes, MPI_BYTE, partner, 5, MPI_COMM_WORLD);
        MPI_Recv(in, (int)bytes + TEST_GUARD / 2, MPI_BYTE, partner, 5, MPI_COMM_WORLD, &status);
    } else {
        MPI_Recv(in, (int)bytes, MPI_BYTE, partner, 5, MPI_COMM_WORLD, &status);
        MPI_Send(out, (int)bytes, MPI_BYTE, partner, 5, MPI_COMM_WORLD);
    }
    check_received(in, bytes, &status, partner, 5, 0);
}

static void ring(size_t bytes, unsigned char *out, unsigned char *in)
{
    MPI_Request requests[2];
    MPI_Status statuses[2];
    test_fill(out, bytes, name(test_rank, test_next(), bytes, 1));
    test_clear(in, bytes);
    MPI_Irecv(in, (int)bytes, MPI_BYTE, test_previous(), 6, MPI_COMM_WORLD, &requests[0]);
    MPI_Isend(out, (int)bytes, MPI_BYTE, test_next(), 6, MPI_COMM_WORLD, &requests[1]);
    MPI_Waitall(2, requests, statuses);
    check_received(in, bytes, &statuses[0], test_previous(), 6, 1);
}

static void all_pairs(size_t bytes)
{
    size_t room = bytes + TEST_GUARD;
    unsigned char *out = test_memory(room * (size_t)test_size), *in = test_memory(room * (size_t)test_size);
    MPI_Request *requests = test_memory(2 * (size_t)test_size * sizeof *requests);
    MPI_Status *statuses = test_memory(2 * (size_t)test_size * sizeof *statuses);
    for (int i = 0; i < test_size; i++)
        MPI_Irecv(in + (size_t)i * room, (int)bytes, MPI_BYTE, i, (int)(bytes % 1000), MPI_COMM_WORLD, &requests[i]);
    for (int i = 0; i < test_size; i++) {
        int to = (test_rank + i) % test_size;
        test_fill(out + (size_t)to * room, bytes, name(test_rank, to, bytes, 2));
        MPI_Isend(out + (size_t)to * room, (int)bytes, MPI_BYTE, to, (int)(bytes % 1000), MPI_COMM_WORLD,
                  &requests[test_size + i]);
    }
    MPI_Waitall(2 * test_size, requests, statuses);
    for (int i = 0; i < test_size; i++)
        check_received(in + (size_t)i * room, bytes, &statuses[i], i, (int)(bytes % 1000), 2);
    free(out);
    free(in);
    free(requests);
    free(statuses);
}

int main(int argc, char **argv)
{
    static const size_t pair_sizes[] = {0, 1, 8, 65, 1000, 4097, 20000};
    test_begin(&argc, &argv);
    size_t largest = argc > 1 ? strtoull(argv[1], NULL, 10) : (4 << 20) + 1;
    make_sizes(largest);
    unsigned char *out = test_memory(largest + TEST_GUARD), *in = test_memory(largest + TEST_GUARD);
    int partner = (test_rank ^ 1) < test_size ? test_rank ^ 1 : test_rank;
    int far = test_size - 1 - test_rank;
    for (int i = 0; i < size_count; i++) {
        ping_pong(partner, sizes[i], out, in);
        if (sizes[i] <= 70000)
            ping_pong(far, sizes[i], out, in);
        if (sizes[i] <= 300000)
            ring(sizes[i], out, in);
    }
    for (size_t i = 0; i < sizeof pair_sizes / sizeof pair_sizes[0]; i++)
        all_pairs(pair_sizes[i]);
    free(out);
    free(in);
    return test_end();
}
