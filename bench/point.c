/* Two ranks: half round trip and bandwidth at given sizes, with a reused buffer and with rotating buffers.
 *
 * usage: point latency|bandwidth BYTES reused|rotating SECONDS
 * Prints one number: microseconds for half a round trip, or MB/s (10^6 bytes). Each figure is the median over blocks of
 * equal work; the time of a block is the maximum over both ranks. */
#include "pair.h"

#include <string.h>

#define WINDOW      64
#define ROTATING    (256u << 20) /* bytes that rotating buffers cover in all: far more than any cache */
#define BUFFERS_MAX 256

static char *buffers[BUFFERS_MAX];
static unsigned buffer_count, turn;

static char *next_buffer(void)
{
    return buffers[turn++ % buffer_count];
}

static void make_buffers(size_t bytes, int rotate)
{
    size_t stride = (bytes + 4095) / 4096 * 4096 + 4096;
    buffer_count = 1;
    if (rotate) {
        size_t fit = ROTATING / stride;
        buffer_count = fit < 2 ? 2 : fit > BUFFERS_MAX ? BUFFERS_MAX : (unsigned)fit;
    }
    char *memory = malloc(stride * buffer_count + 4096);
    if (!memory) {
        fprintf(stderr, "point: no memory for %u buffers of %zu bytes\n", buffer_count, bytes);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    memset(memory, rank + 1, stride * buffer_count + 4096);
    for (unsigned i = 0; i < buffer_count; i++)
        buffers[i] = memory + i * stride;
}

static void round_trips(int bytes, long count)
{
    for (long i = 0; i < count; i++) {
        char *buffer = next_buffer();
        if (rank == 0) {
            MPI_Send(buffer, bytes, MPI_CHAR, 1, 1, MPI_COMM_WORLD);
            MPI_Recv(buffer, bytes, MPI_CHAR, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        } else {
            MPI_Recv(buffer, bytes, MPI_CHAR, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_Send(buffer, bytes, MPI_CHAR, 0, 1, MPI_COMM_WORLD);
        }
    }
}

static void windows(int bytes, long count)
{
    MPI_Request requests[WINDOW];
    char word = 0;
    for (long i = 0; i < count; i++) {
        for (int k = 0; k < WINDOW; k++) {
            if (rank == 0)
                MPI_Isend(next_buffer(), bytes, MPI_CHAR, 1, 2, MPI_COMM_WORLD, &requests[k]);
            else
                MPI_Irecv(next_buffer(), bytes, MPI_CHAR, 0, 2, MPI_COMM_WORLD, &requests[k]);
        }
        MPI_Waitall(WINDOW, requests, MPI_STATUSES_IGNORE);
        if (rank == 0)
            MPI_Recv(&word, 1, MPI_CHAR, 1, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        else
            MPI_Send(&word, 1, MPI_CHAR, 0, 3, MPI_COMM_WORLD);
    }
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    pair_begin(argc == 5, "point latency|bandwidth BYTES reused|rotating SECONDS");
    int latency = strcmp(argv[1], "latency") == 0;
    int bytes = atoi(argv[2]);
    make_buffers((size_t)bytes, strcmp(argv[3], "rotating") == 0);
    double median = pair_median(latency ? round_trips : windows, bytes, atof(argv[4]));
    if (rank == 0)
        printf("%.6g\n", latency ? median / 2 * 1e6 : (double)bytes * WINDOW / median / 1e6);
    MPI_Finalize();
    return 0;
}
