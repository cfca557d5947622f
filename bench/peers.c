/* Times of operations at given sizes, for bench/peers: compiled and run under each library alike.
 *
 * usage: peers OPERATION[,OPERATION...] BYTES[,BYTES...] SECONDS
 *   operations: bcast reduce allreduce allgather alltoall gather scatter barrier point
 *   BYTES: of the whole message (bcast), of the vector of doubles (reduce, allreduce), of the block of one rank (the
 *   others); point is one message from the first rank to the last, timed one way
 *   SECONDS: about so long for each row
 *
 * Prints a row for each operation and size: OPERATION BYTES MEDIAN LOWEST HIGHEST REPETITIONS DROPPED, times in
 * microseconds. A repetition begins on all ranks at one instant of the clock that they share, being on one machine; its
 * time is that of the rank that ends last. One that a rank could not begin in time is dropped. While a rank waits for
 * the instant it asks the library now and then, so that what the others still want of it is done. */
#define _GNU_SOURCE
#include <mpi.h>

#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define REPETITIONS_MOST  2000
#define REPETITIONS_LEAST 5
#define WARM_UP           5
#define GAP_S             200e-6 /* between repetitions, beside what they take */
#define ASLEEP_S          1e-3   /* who has so long to wait sleeps */

static int rank, size;
static char *out, *in;
static size_t out_bytes, in_bytes;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void fail(const char *story)
{
    fprintf(stderr, "peers: rank %d: %s\n", rank, story);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

/* ---- operations -------------------------------------------------------------------------------------------------- */

static void do_bcast(int n)
{
    MPI_Bcast(out, n, MPI_CHAR, 0, MPI_COMM_WORLD);
}

static void do_reduce(int n)
{
    MPI_Reduce(out, in, n / 8, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
}

static void do_allreduce(int n)
{
    MPI_Allreduce(out, in, n / 8, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}

static void do_allgather(int n)
{
    MPI_Allgather(out, n, MPI_CHAR, in, n, MPI_CHAR, MPI_COMM_WORLD);
}

static void do_alltoall(int n)
{
    MPI_Alltoall(out, n, MPI_CHAR, in, n, MPI_CHAR, MPI_COMM_WORLD);
}

static void do_gather(int n)
{
    MPI_Gather(out, n, MPI_CHAR, in, n, MPI_CHAR, 0, MPI_COMM_WORLD);
}

static void do_scatter(int n)
{
    MPI_Scatter(out, n, MPI_CHAR, in, n, MPI_CHAR, 0, MPI_COMM_WORLD);
}

static void do_barrier(int n)
{
    (void)n;
    MPI_Barrier(MPI_COMM_WORLD);
}

static void do_point(int n)
{
    if (rank == 0)
        MPI_Send(out, n, MPI_CHAR, size - 1, 1, MPI_COMM_WORLD);
    if (rank == size - 1)
        MPI_Recv(in, n, MPI_CHAR, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

enum blocks { NONE, ONE, A_RANK }; /* how many blocks of the given size a buffer holds */

static const struct operation {
    const char *name;
    void (*run)(int bytes);
    enum blocks sent, received;
    int doubles;
} operations[] = {
    {"bcast", do_bcast, ONE, NONE, 0},
    {"reduce", do_reduce, ONE, ONE, 1},
    {"allreduce", do_allreduce, ONE, ONE, 1},
    {"allgather", do_allgather, ONE, A_RANK, 0},
    {"alltoall", do_alltoall, A_RANK, A_RANK, 0},
    {"gather", do_gather, ONE, A_RANK, 0},
    {"scatter", do_scatter, A_RANK, ONE, 0},
    {"barrier", do_barrier, NONE, NONE, 0},
    {"point", do_point, ONE, ONE, 0},
};
#define OPERATIONS (sizeof operations / sizeof operations[0])

/* ---- whether the result is right: a fast wrong answer is no figure ----------------------------------------------- */

/* What rank r sends at place i, in block b. */
static char content(int r, int b, size_t i)
{
    return (char)(r * 31 + b * 17 + (int)(i % 251));
}

static void fill(const struct operation *op, int n)
{
    memset(in, 0, in_bytes);
    if (op->doubles) {
        for (int i = 0; i < n / 8; i++)
            ((double *)out)[i] = rank + i % 1000;
        return;
    }
    for (int b = 0; b < (op->sent == A_RANK ? size : 1); b++)
        for (int i = 0; i < n; i++)
            out[(size_t)b * (size_t)n + (size_t)i] = op->run == do_bcast && rank != 0 ? 0 : content(rank, b, (size_t)i);
}

static void check_block(const char *block, int n, int from, int number)
{
    for (int i = 0; i < n; i++)
        if (block[i] != content(from, number, (size_t)i))
            fail("wrong data");
}

static void check(const struct operation *op, int n)
{
    if (op->run == do_bcast)
        check_block(out, n, 0, 0);
    if (op->run == do_allreduce || (op->run == do_reduce && rank == 0))
        for (int i = 0; i < n / 8; i++)
            if (((double *)in)[i] != (double)size * (size - 1) / 2 + (double)size * (i % 1000))
                fail("wrong sum");
    if (op->run == do_allgather || op->run == do_alltoall || (op->run == do_gather && rank == 0))
        for (int r = 0; r < size; r++)
            check_block(in + (size_t)r * (size_t)n, n, r, op->run == do_alltoall ? rank : 0);
    if (op->run == do_scatter)
        check_block(in, n, 0, rank);
    if (op->run == do_point && rank == size - 1)
        check_block(in, n, 0, 0);
}

/* ---- timing ------------------------------------------------------------------------------------------------------ */

static void wait_until(double instant)
{
    double rest;
    while ((rest = instant - now()) > 0) {
        int flag;
        MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_SELF, &flag, MPI_STATUS_IGNORE);
        if (rest > ASLEEP_S)
            nanosleep(&(struct timespec){.tv_nsec = 200000}, NULL);
        else
            sched_yield();
    }
}

static double highest(double mine)
{
    double most;
    MPI_Allreduce(&mine, &most, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return most;
}

/* An instant that lies so far ahead that all ranks hear of it before; `barrier` is what one takes. */
static double agree_instant(double barrier)
{
    double instant = now() + 4 * barrier + 1e-3;
    MPI_Bcast(&instant, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    return instant;
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void measure(const struct operation *op, int n, double seconds)
{
    static double times[REPETITIONS_MOST], all[REPETITIONS_MOST];
    double barrier = 0, took[WARM_UP];
    for (int i = 0; i < WARM_UP; i++) {
        double begin = now();
        MPI_Barrier(MPI_COMM_WORLD);
        barrier = highest(now() - begin);
        fill(op, n);
        double instant = agree_instant(barrier);
        wait_until(instant);
        op->run(n);
        took[i] = highest(now() - instant);
        check(op, n);
    }
    qsort(took, WARM_UP, sizeof took[0], ascending);
    double period = 2 * took[WARM_UP / 2] + GAP_S;
    int count = (int)(seconds / period), kept = 0;
    count = count < REPETITIONS_LEAST ? REPETITIONS_LEAST : count > REPETITIONS_MOST ? REPETITIONS_MOST : count;
    MPI_Bcast(&count, 1, MPI_INT, 0, MPI_COMM_WORLD);
    double first = agree_instant(highest(barrier));
    for (int i = 0; i < count; i++) {
        double instant = first + i * period;
        int late = now() > instant;
        wait_until(instant);
        op->run(n);
        times[i] = late ? 1e9 : now() - instant;
    }
    MPI_Reduce(times, all, count, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    if (rank != 0)
        return;
    qsort(all, (size_t)count, sizeof all[0], ascending);
    while (kept < count && all[kept] < 1e9)
        kept++;
    if (kept > 0)
        printf("%s %d %.6g %.6g %.6g %d %d\n", op->name, n, all[kept / 2] * 1e6, all[0] * 1e6, all[kept - 1] * 1e6,
               kept, count - kept);
    else
        printf("%s %d nan nan nan 0 %d\n", op->name, n, count);
    fflush(stdout);
}

static char *room(enum blocks blocks, size_t n, size_t *bytes)
{
    *bytes = (blocks == A_RANK ? n * (size_t)size : n) + 64;
    char *memory = malloc(*bytes);
    if (!memory)
        fail("no memory");
    memset(memory, 1, *bytes); /* touched, so that no page is made while the clock runs */
    return memory;
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (argc != 4)
        fail("usage: peers OPERATION,... BYTES,... SECONDS");
    char *rest = NULL;
    for (char *name = strtok_r(argv[1], ",", &rest); name; name = strtok_r(NULL, ",", &rest)) {
        const struct operation *op = NULL;
        for (size_t i = 0; i < OPERATIONS; i++)
            if (strcmp(operations[i].name, name) == 0)
                op = &operations[i];
        if (!op)
            fail("there is no such operation");
        char *end = argv[2];
        for (long n = strtol(end, &end, 10); n > 0; n = *end == ',' ? strtol(end + 1, &end, 10) : 0) {
            if (op->doubles)
                n = (n + 7) / 8 * 8;
            out = room(op->sent, (size_t)n, &out_bytes);
            in = room(op->received, (size_t)n, &in_bytes);
            measure(op, op->run == do_barrier ? 0 : (int)n, atof(argv[3]));
            free(out);
            free(in);
            if (op->run == do_barrier)
                break;
        }
    }
    if (rank == 0) {
        puts("done");
        fflush(stdout);
    }
    MPI_Finalize();
    return 0;
}
