/* Two ranks: half round trip and bandwidth at given sizes, with a reused buffer and with rotating buffers.
 *
 * usage: point latency|bandwidth BYTES reused|rotating SECONDS
 * Prints one number: microseconds for half a round trip, or MB/s (10^6 bytes). Each figure is the median over blocks of
 * equal work; the time of a block is the maximum over both ranks. */
#include <mpi.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WINDOW      64
#define BLOCKS      200
#define ROTATING    (256u << 20) /* bytes that rotating buffers cover in all: far more than any cache */
#define BUFFERS_MAX 256

static int rank;
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

/* Seconds of one block, the maximum over both ranks. */
static double block(void (*work)(int, long), int bytes, long count)
{
    double mine, other;
    MPI_Barrier(MPI_COMM_WORLD);
    double begin = MPI_Wtime();
    work(bytes, count);
    mine = MPI_Wtime() - begin;
    MPI_Sendrecv(&mine, 1, MPI_DOUBLE, 1 - rank, 4, &other, 1, MPI_DOUBLE, 1 - rank, 4, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    return mine > other ? mine : other;
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
    int size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (argc != 5 || size != 2) {
        if (rank == 0)
            fprintf(stderr, "usage: mpiexec -n 2 point latency|bandwidth BYTES reused|rotating SECONDS\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    int latency = strcmp(argv[1], "latency") == 0;
    int bytes = atoi(argv[2]);
    double seconds = atof(argv[4]), times[BLOCKS];
    void (*work)(int, long) = latency ? round_trips : windows;
    make_buffers((size_t)bytes, strcmp(argv[3], "rotating") == 0);

    /* Warm up, and find how much work fits one block, the same on both ranks. */
    long count = 1;
    for (double t = 0; t < seconds / BLOCKS && count < 1L << 30; count *= 2) {
        t = block(work, bytes, count);
        MPI_Bcast(&t, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    }
    count = count > 1 ? count / 2 : 1;
    int blocks = 0;
    for (double total = 0; blocks < BLOCKS && (total < seconds || blocks < 5);) {
        double t = block(work, bytes, count);
        MPI_Bcast(&t, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
        times[blocks++] = t;
        total += t;
    }
    qsort(times, (size_t)blocks, sizeof times[0], ascending);
    double median = times[blocks / 2] / (double)count;
    if (rank == 0)
        printf("%.6g\n", latency ? median / 2 * 1e6 : (double)bytes * WINDOW / median / 1e6);
    MPI_Finalize();
    return 0;
}
