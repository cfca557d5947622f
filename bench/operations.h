/* The operations that the measuring programs of this folder time, with their data and whether the result is right: a
 * fast wrong answer is no figure. Included by programs that are compiled under each library alike.
 *
 * Data is such that no compressor shortens it: between gateways Tombolo would. */
#ifndef TB_BENCH_OPERATIONS_H
#define TB_BENCH_OPERATIONS_H

#include <mpi.h>

#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define ASLEEP_S 1e-3 /* who has so long to wait sleeps */
#define ASKS_S   2e-4 /* and asks the library so often, where ranks are many less often */
#define MANY     16
#define ROUNDING 1e-12

static int rank, size, root;
static MPI_Comm comm, turned; /* all ranks; in the reverse order */
static char *out, *in;
static int *counts, *places, *shares; /* of the forms with a count for each rank; doubles of a reduction */
static size_t out_bytes, in_bytes;
static int salt; /* another one makes other data */

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void fail(const char *story)
{
    fprintf(stderr, "rank %d: %s\n", rank, story);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

/* ---- operations -------------------------------------------------------------------------------------------------- */

static void do_bcast(int n)
{
    MPI_Bcast(out, n, MPI_CHAR, root, comm);
}

static void do_reduce(int n)
{
    MPI_Reduce(out, in, n / 8, MPI_DOUBLE, MPI_SUM, root, comm);
}

static void do_allreduce(int n)
{
    MPI_Allreduce(out, in, n / 8, MPI_DOUBLE, MPI_SUM, comm);
}

static void do_gather(int n)
{
    MPI_Gather(out, n, MPI_CHAR, in, n, MPI_CHAR, root, comm);
}

static void do_gatherv(int n)
{
    MPI_Gatherv(out, n, MPI_CHAR, in, counts, places, MPI_CHAR, root, comm);
}

static void do_scatter(int n)
{
    MPI_Scatter(out, n, MPI_CHAR, in, n, MPI_CHAR, root, comm);
}

static void do_scatterv(int n)
{
    MPI_Scatterv(out, counts, places, MPI_CHAR, in, n, MPI_CHAR, root, comm);
}

static void do_allgather(int n)
{
    MPI_Allgather(out, n, MPI_CHAR, in, n, MPI_CHAR, comm);
}

static void do_allgatherv(int n)
{
    MPI_Allgatherv(out, n, MPI_CHAR, in, counts, places, MPI_CHAR, comm);
}

static void do_alltoall(int n)
{
    MPI_Alltoall(out, n, MPI_CHAR, in, n, MPI_CHAR, comm);
}

static void do_alltoallv(int n)
{
    (void)n;
    MPI_Alltoallv(out, counts, places, MPI_CHAR, in, counts, places, MPI_CHAR, comm);
}

static void do_reduce_scatter(int n)
{
    (void)n;
    MPI_Reduce_scatter(out, in, shares, MPI_DOUBLE, MPI_SUM, comm);
}

static int block_share(int n)
{
    return n / 8 < size ? 1 : n / 8 / size;
}

static void do_reduce_scatter_block(int n)
{
    MPI_Reduce_scatter_block(out, in, block_share(n), MPI_DOUBLE, MPI_SUM, comm);
}

static void do_scan(int n)
{
    MPI_Scan(out, in, n / 8, MPI_DOUBLE, MPI_SUM, comm);
}

static void do_exscan(int n)
{
    MPI_Exscan(out, in, n / 8, MPI_DOUBLE, MPI_SUM, comm);
}

static void do_barrier(int n)
{
    (void)n;
    MPI_Barrier(comm);
}

static void do_messages(int n)
{
    if (rank != root) {
        MPI_Send(out, n, MPI_CHAR, root, 1, comm);
        MPI_Recv(in, n, MPI_CHAR, root, 2, comm, MPI_STATUS_IGNORE);
        return;
    }
    memcpy(in + (size_t)root * (size_t)n, out, (size_t)n);
    for (int r = 0; r < size; r++)
        if (r != root)
            MPI_Recv(in + (size_t)r * (size_t)n, n, MPI_CHAR, r, 1, comm, MPI_STATUS_IGNORE);
    for (int r = 0; r < size; r++)
        if (r != root)
            MPI_Send(out, n, MPI_CHAR, r, 2, comm);
}

static void do_mixture(int n)
{
    do_barrier(n);
    do_allreduce(n);
    do_messages(n);
    do_gatherv(n);
    do_scatterv(n);
}

static void do_point(int n)
{
    int last = (root + size - 1) % size;
    if (rank == root)
        MPI_Send(out, n, MPI_CHAR, last, 1, comm);
    if (rank == last)
        MPI_Recv(in, n, MPI_CHAR, root, 1, comm, MPI_STATUS_IGNORE);
}

enum blocks { NONE, ONE, A_RANK }; /* how many blocks of the given size a buffer holds */
enum turn { SAME, ROOT, ORDER };   /* what changes from call to call */

static const struct operation {
    const char *name;
    void (*run)(int bytes);
    enum blocks sent, received;
    enum turn turn;
    int doubles;
} operations[] = {
    {"bcast", do_bcast, ONE, NONE, ROOT, 0},
    {"reduce", do_reduce, ONE, ONE, ROOT, 1},
    {"allreduce", do_allreduce, ONE, ONE, SAME, 1},
    {"gather", do_gather, ONE, A_RANK, ROOT, 0},
    {"gatherv", do_gatherv, ONE, A_RANK, ROOT, 0},
    {"scatter", do_scatter, A_RANK, ONE, ROOT, 0},
    {"scatterv", do_scatterv, A_RANK, ONE, ROOT, 0},
    {"allgather", do_allgather, ONE, A_RANK, SAME, 0},
    {"allgatherv", do_allgatherv, ONE, A_RANK, SAME, 0},
    {"alltoall", do_alltoall, A_RANK, A_RANK, SAME, 0},
    {"alltoallv", do_alltoallv, A_RANK, A_RANK, SAME, 0},
    {"reduce_scatter", do_reduce_scatter, ONE, ONE, ORDER, 1},
    {"reduce_scatter_block", do_reduce_scatter_block, ONE, ONE, SAME, 1},
    {"scan", do_scan, ONE, ONE, ORDER, 1},
    {"exscan", do_exscan, ONE, ONE, ORDER, 1},
    {"barrier", do_barrier, NONE, NONE, SAME, 0},
    {"messages", do_messages, ONE, A_RANK, ROOT, 0},
    {"mixture", do_mixture, A_RANK, A_RANK, SAME, 0},
    {"point", do_point, ONE, ONE, ROOT, 0},
};
#define OPERATIONS (sizeof operations / sizeof operations[0])

/* ---- data -------------------------------------------------------------------------------------------------------- */

/* Eight bytes that rank r sends in block b, the i-th of it. */
static uint64_t content(int r, int b, size_t i)
{
    uint64_t x = ((uint64_t)salt << 56 ^ (uint64_t)r << 44 ^ (uint64_t)b << 32 ^ i) + 1;
    x *= 0x9e3779b97f4a7c15u;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

/* A number between -2 and 2, of any smallness. */
static double number(int r, size_t i)
{
    uint64_t bits = content(r, 0, i) & ~(1ull << 62);
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static void fill_block(char *block, int n, int number_of)
{
    for (int i = 0; i < n; i += 8) {
        uint64_t eight = content(rank, number_of, (size_t)i / 8);
        memcpy(block + i, &eight, (size_t)(n - i < 8 ? n - i : 8));
    }
}

static void fill(const struct operation *op, int n)
{
    memset(in, 0, in_bytes);
    for (int r = 0; r < size; r++) {
        counts[r] = n;
        places[r] = r * n;
        shares[r] = n / 8 / size + (r < n / 8 % size);
    }
    if (op->doubles) {
        for (size_t i = 0; i < out_bytes / 8; i++)
            ((double *)out)[i] = number(rank, i);
        return;
    }
    for (int b = 0; b < (op->sent == A_RANK ? size : 1); b++) {
        if (op->run == do_bcast && rank != root)
            memset(out, 0, (size_t)n);
        else
            fill_block(out + (size_t)b * (size_t)n, n, b);
    }
}

/* ---- whether the result is right --------------------------------------------------------------------------------- */

static void check_block(const char *block, int n, int from, int number_of)
{
    for (int i = 0; i < n; i += 8) {
        uint64_t eight = content(from, number_of, (size_t)i / 8);
        if (memcmp(block + i, &eight, (size_t)(n - i < 8 ? n - i : 8)) != 0)
            fail("wrong data");
    }
}

/* The sum of the places from `first` on over the ranks below `ranks`. */
static void check_sum(int length, int first, int ranks)
{
    for (int i = 0; i < length; i++) {
        double sum = 0, most = 0;
        for (int r = 0; r < ranks; r++) {
            double value = number(r, (size_t)(first + i));
            sum += value;
            most += value < 0 ? -value : value;
        }
        double wrong = ((double *)in)[i] - sum;
        if (!(wrong <= ROUNDING * most && -wrong <= ROUNDING * most))
            fail("wrong sum");
    }
}

static void check_sums(const struct operation *op, int n)
{
    int before = 0;
    for (int r = 0; r < rank; r++)
        before += shares[r];
    if (op->run == do_allreduce || (op->run == do_reduce && rank == root))
        check_sum(n / 8, 0, size);
    if (op->run == do_reduce_scatter)
        check_sum(shares[rank], before, size);
    if (op->run == do_reduce_scatter_block)
        check_sum(block_share(n), rank * block_share(n), size);
    if (op->run == do_scan || (op->run == do_exscan && rank > 0))
        check_sum(n / 8, 0, op->run == do_scan ? rank + 1 : rank);
}

static void check(const struct operation *op, int n)
{
    int all = op->run == do_alltoall || op->run == do_alltoallv;
    if (op->doubles)
        check_sums(op, n);
    if (op->run == do_bcast)
        check_block(out, n, root, 0);
    if (op->run == do_messages && rank != root)
        check_block(in, n, root, 0);
    if (op->run == do_scatter || op->run == do_scatterv || op->run == do_mixture)
        check_block(in, n, root, rank);
    else if (op->received == A_RANK && (op->turn != ROOT || rank == root))
        for (int r = 0; r < size; r++)
            check_block(in + (size_t)r * (size_t)n, n, r, all ? rank : 0);
    if (op->run == do_point && rank == (root + size - 1) % size)
        check_block(in, n, root, 0);
}

/* ---- clocks ------------------------------------------------------------------------------------------------------ */

static void wait_until(double instant)
{
    double rest;
    while ((rest = instant - now()) > 0) {
        int flag;
        MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_SELF, &flag, MPI_STATUS_IGNORE);
        double often = ASKS_S * (1 + size / MANY);
        if (rest > ASLEEP_S)
            nanosleep(&(struct timespec){.tv_nsec = (long)(1e9 * (often < rest / 2 ? often : rest / 2))}, NULL);
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

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* ---- memory, and what is asked for ------------------------------------------------------------------------------- */

static char *room(enum blocks blocks, size_t n, size_t *bytes)
{
    *bytes = (blocks == A_RANK ? n * (size_t)size : n) + 8 * (size_t)size + 64;
    char *memory = malloc(*bytes);
    if (!memory)
        fail("no memory");
    memset(memory, 1, *bytes); /* touched, so that no page is made while the clock runs */
    return memory;
}

static void room_open(const struct operation *op, int n)
{
    out = room(op->sent, (size_t)n, &out_bytes);
    in = room(op->received, (size_t)n, &in_bytes);
}

static void room_close(void)
{
    free(out);
    free(in);
}

static const struct operation *operation_of(const char *name)
{
    for (size_t i = 0; i < OPERATIONS; i++)
        if (strcmp(operations[i].name, name) == 0)
            return &operations[i];
    fail("there is no such operation");
    return NULL;
}

/* Takes what `name` stands for, OPERATION[:BYTES...], with its own sizes or the usual ones. */
static void each_size(char *name, char *sizes, void (*take)(const struct operation *op, int bytes))
{
    char *own = strchr(name, ':');
    if (own) {
        *own = 0;
        sizes = own + 1;
    }
    const struct operation *op = operation_of(name);
    if (op->run == do_barrier) {
        take(op, 0);
        return;
    }
    for (long n = strtol(sizes, &sizes, 10); n > 0; n = *sizes ? strtol(sizes + 1, &sizes, 10) : 0)
        take(op, (int)(op->doubles ? (n + 7) / 8 * 8 : n));
}

static void bench_open(int *argc, char ***argv)
{
    MPI_Init(argc, argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &turned);
    comm = MPI_COMM_WORLD;
    counts = calloc(3 * (size_t)size, sizeof *counts);
    if (!counts)
        fail("no memory");
    places = counts + size;
    shares = places + size;
}

/* A line "done", and the end. */
static void bench_close(void)
{
    if (rank == 0) {
        puts("done");
        fflush(stdout);
    }
    free(counts);
    MPI_Comm_free(&turned);
    MPI_Finalize();
}

/* All that was asked for, one after the other. */
static void bench_run(char *names, char *sizes, void (*take)(const struct operation *op, int bytes))
{
    char *rest = NULL;
    for (char *name = strtok_r(names, ",", &rest); name; name = strtok_r(NULL, ",", &rest))
        each_size(name, sizes, take);
    bench_close();
}

#endif
