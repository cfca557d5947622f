/* How programs of two ranks take their times: blocks of equal work, each as long as the rank that ends last, of which
 * the median counts. */
#ifndef TB_BENCH_PAIR_H
#define TB_BENCH_PAIR_H

#include <mpi.h>

#include <stdio.h>
#include <stdlib.h>

#define PAIR_BLOCKS 200
#define PAIR_WARM   0.3 /* seconds: a core that has rested may take its time to become fast again */

static int rank;

/* Does the work so many times. */
typedef void pair_work(int bytes, long count);

static double pair_block(pair_work *work, int bytes, long count)
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

/* Both cores are busy for a while, whether the library has its ranks wait busily or asleep. */
static void pair_warm(void)
{
    volatile double sum = 0;
    for (double begin = MPI_Wtime(); MPI_Wtime() - begin < PAIR_WARM;)
        for (int i = 0; i < 1000; i++)
            sum += 1.0 / (i + 1);
}

static int pair_ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Seconds that the work takes once: the median over blocks, which take so many seconds together. */
static double pair_median(pair_work *work, int bytes, double seconds)
{
    double times[PAIR_BLOCKS];
    pair_warm();
    /* Warm up, and find how much work fits one block, the same on both ranks. */
    long count = 1;
    for (double t = 0; t < seconds / PAIR_BLOCKS && count < 1L << 30; count *= 2) {
        t = pair_block(work, bytes, count);
        MPI_Bcast(&t, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    }
    count = count > 1 ? count / 2 : 1;
    int blocks = 0;
    for (double total = 0; blocks < PAIR_BLOCKS && (total < seconds || blocks < 5);) {
        double t = pair_block(work, bytes, count);
        MPI_Bcast(&t, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
        times[blocks++] = t;
        total += t;
    }
    qsort(times, (size_t)blocks, sizeof times[0], pair_ascending);
    return times[blocks / 2] / (double)count;
}

/* The rank becomes known; other than two ranks, or other arguments, end the job. */
static void pair_begin(int arguments_right, const char *usage)
{
    int size;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (arguments_right && size == 2)
        return;
    if (rank == 0)
        fprintf(stderr, "usage: mpiexec -n 2 %s\n", usage);
    MPI_Abort(MPI_COMM_WORLD, 2);
}

#endif
