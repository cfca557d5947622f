/* What a small collective costs beyond the message that it needs, for bench/collectives: two ranks, 8 bytes.
 *
 * usage: small SECONDS
 * Prints MESSAGE BCAST CALLS ALLOCATIONS: half a round trip and a broadcast, whose root alternates so that each waits
 * for the one before, in microseconds; how many broadcasts were counted, and how often the rank that did so most asked
 * for memory in them. The two take turns in short batches, and each figure is the median of its batches. The program's
 * own malloc counts, which comes before that of the C library for everybody in the process. */
#define _GNU_SOURCE
#include <errno.h>
#include <malloc.h>
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define BATCHES 21
#define WARM_UP 1000

static long allocations;

void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t count, size_t bytes);
void *__libc_realloc(void *memory, size_t bytes);
void *__libc_memalign(size_t alignment, size_t bytes);

static void count_allocation(void)
{
    __atomic_fetch_add(&allocations, 1, __ATOMIC_RELAXED);
}

void *malloc(size_t bytes)
{
    count_allocation();
    return __libc_malloc(bytes);
}

void *calloc(size_t count, size_t bytes)
{
    count_allocation();
    return __libc_calloc(count, bytes);
}

void *realloc(void *memory, size_t bytes)
{
    count_allocation();
    return __libc_realloc(memory, bytes);
}

void *aligned_alloc(size_t alignment, size_t bytes)
{
    count_allocation();
    return __libc_memalign(alignment, bytes);
}

void *memalign(size_t alignment, size_t bytes)
{
    return aligned_alloc(alignment, bytes);
}

int posix_memalign(void **memory, size_t alignment, size_t bytes)
{
    *memory = aligned_alloc(alignment, bytes);
    return *memory ? 0 : ENOMEM;
}

static int rank;
static char data[8];

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Both return seconds for each message. */
static double messages(int count)
{
    double begin = now();
    for (int i = 0; i < count; i++) {
        if (i % 2 == rank)
            MPI_Send(data, 8, MPI_CHAR, 1 - rank, 1, MPI_COMM_WORLD);
        else
            MPI_Recv(data, 8, MPI_CHAR, 1 - rank, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    return (now() - begin) / count;
}

static double broadcasts(int count)
{
    double begin = now();
    for (int i = 0; i < count; i++)
        MPI_Bcast(data, 8, MPI_CHAR, i % 2, MPI_COMM_WORLD);
    return (now() - begin) / count;
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
    if (argc != 2 || size != 2) {
        fprintf(stderr, "usage: small SECONDS, on two ranks\n");
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    messages(WARM_UP);
    double estimate = broadcasts(WARM_UP), bare[BATCHES], whole[BATCHES];
    int count = (int)(atof(argv[1]) / BATCHES / estimate) / 2 * 2 + 2;
    MPI_Bcast(&count, 1, MPI_INT, 0, MPI_COMM_WORLD);
    long asked = 0;
    for (int i = 0; i < BATCHES; i++) {
        bare[i] = messages(count);
        long before = allocations;
        whole[i] = broadcasts(count);
        asked += allocations - before;
    }
    qsort(bare, BATCHES, sizeof bare[0], ascending);
    qsort(whole, BATCHES, sizeof whole[0], ascending);
    long most;
    MPI_Reduce(&asked, &most, 1, MPI_LONG, MPI_MAX, 0, MPI_COMM_WORLD);
    if (rank == 0)
        printf("%.6g %.6g %ld %ld\n", bare[BATCHES / 2] * 1e6, whole[BATCHES / 2] * 1e6, (long)BATCHES * count, most);
    MPI_Finalize();
    return 0;
}
