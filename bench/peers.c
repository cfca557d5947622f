/* Times of operations at given sizes, for the programs of this folder: compiled and run under each library alike.
 *
 * usage: peers OPERATION[:BYTES...][,OPERATION...] BYTES[,BYTES...] SECONDS [instants|turns [REPETITIONS]]
 *   operations: bcast reduce allreduce gather(v) scatter(v) allgather(v) alltoall(v) reduce_scatter
 *   reduce_scatter_block scan exscan barrier messages mixture point; with sizes of their own, or those of the second
 *   argument
 *   BYTES: of the whole message (bcast), of the vector of doubles (reductions and scans; of reduce_scatter that of all
 *   ranks together, of its block form at least one for each), of the block of one rank (the others); messages is a
 *   gather and a release by plain ones: each rank's to the root, which then answers each; mixture is a barrier, an
 *   allreduce, messages, a gatherv and a scatterv after each other, as a program does; point is one message from the
 *   first rank to the last, timed one way
 *   SECONDS: about so long for each row; or REPETITIONS
 *
 * Prints a row for each operation and size: OPERATION BYTES MEDIAN LOWEST HIGHEST P99 REPETITIONS DROPPED, times in
 * microseconds; at the end a line "done".
 *
 * instants: a repetition begins on all ranks at one instant of the clock that they share, being on one machine; its
 * time is that of the rank that ends last. One that a rank could not begin in time is dropped. While a rank waits for
 * the instant it asks the library now and then, so that what the others still want of it is done.
 *
 * turns: for operations that are faster than ranks can be started at one instant, as where they outnumber the cores.
 * Calls follow each other without pause, the root going round, scans and reduce_scatter (of which short vectors leave
 * nothing for the last ranks) with the order of the ranks turned round every other time, so that nobody can run ahead
 * of what the others still have to do. A time is that of a batch of them on the slowest
 * rank, by the number of calls; REPETITIONS counts batches. */
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
#define REPETITIONS_SLOW  3 /* the fewest of an operation that takes longer than SLOW_S */
#define WARM_UP           5
#define WARM_UP_SLOW      2
#define SLOW_S            0.02
#define GAP_S             200e-6 /* between repetitions, beside what they take */
#define BATCHES           10
#define BATCHES_LEAST     3
#define CYCLES_MOST       1000000
#define DROPPED           1e9
#define ASLEEP_S          1e-3 /* who has so long to wait sleeps */

static int rank, size, root;
static MPI_Comm comm, turned; /* all ranks; in the reverse order */
static char *out, *in;
static int *counts, *places, *shares; /* of the forms with a count for each rank; doubles of a reduction */
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

/* ---- whether the result is right: a fast wrong answer is no figure ----------------------------------------------- */

/* What rank r sends at place i, in block b. */
static char content(int r, int b, size_t i)
{
    return (char)(r * 31 + b * 17 + (int)(i % 251));
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
            ((double *)out)[i] = rank + (double)(i % 1000);
        return;
    }
    for (int b = 0; b < (op->sent == A_RANK ? size : 1); b++)
        for (int i = 0; i < n; i++)
            out[(size_t)b * (size_t)n + (size_t)i] =
                op->run == do_bcast && rank != root ? 0 : content(rank, b, (size_t)i);
}

static void check_block(const char *block, int n, int from, int number)
{
    for (int i = 0; i < n; i++)
        if (block[i] != content(from, number, (size_t)i))
            fail("wrong data");
}

/* The sum of the places from `first` on over the ranks below `ranks`. */
static void check_sum(int length, int first, int ranks)
{
    for (int i = 0; i < length; i++)
        if (((double *)in)[i] != (double)ranks * (ranks - 1) / 2 + (double)ranks * ((first + i) % 1000))
            fail("wrong sum");
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

static void print_row(const struct operation *op, int n, double *times, int count)
{
    int kept = 0;
    qsort(times, (size_t)count, sizeof times[0], ascending);
    while (kept < count && times[kept] < DROPPED)
        kept++;
    if (kept > 0)
        printf("%s %d %.6g %.6g %.6g %.6g %d %d\n", op->name, n, times[kept / 2] * 1e6, times[0] * 1e6,
               times[kept - 1] * 1e6, times[(99 * kept + 99) / 100 - 1] * 1e6, kept, count - kept);
    else
        printf("%s %d nan nan nan nan 0 %d\n", op->name, n, count);
    fflush(stdout);
}

static int bounded(double count, int least, int most)
{
    int chosen = count < least ? least : count > most ? most : (int)count;
    MPI_Bcast(&chosen, 1, MPI_INT, 0, MPI_COMM_WORLD);
    return chosen;
}

/* Runs and checks it some times; returns the median. */
static double warm_up(const struct operation *op, int n, double *barrier)
{
    double took[WARM_UP];
    int count = 0;
    do {
        double begin = now();
        MPI_Barrier(MPI_COMM_WORLD);
        *barrier = highest(now() - begin);
        fill(op, n);
        double instant = agree_instant(*barrier);
        wait_until(instant);
        op->run(n);
        took[count++] = highest(now() - instant);
        check(op, n);
    } while (count < WARM_UP_SLOW || (count < WARM_UP && took[count - 1] < SLOW_S));
    qsort(took, (size_t)count, sizeof took[0], ascending);
    return took[count / 2];
}

/* Slow operations get a new instant each time: then none comes too late because the one before it took long. */
static void measure_instants(const struct operation *op, int n, double seconds, int repetitions)
{
    static double times[REPETITIONS_MOST], all[REPETITIONS_MOST];
    double barrier, took = warm_up(op, n, &barrier);
    int slow = took > SLOW_S;
    double period = slow ? took : 2 * took + GAP_S;
    int least = slow ? REPETITIONS_SLOW : REPETITIONS_LEAST;
    int count = bounded(repetitions ? repetitions : seconds / period, least, REPETITIONS_MOST);
    double first = agree_instant(barrier);
    for (int i = 0; i < count; i++) {
        if (slow) {
            MPI_Barrier(MPI_COMM_WORLD);
            first = agree_instant(barrier);
        }
        double instant = slow ? first : first + i * period;
        int late = now() > instant;
        wait_until(instant);
        op->run(n);
        times[i] = late ? DROPPED : now() - instant;
    }
    MPI_Reduce(times, all, count, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    if (rank == 0)
        print_row(op, n, all, count);
}

/* So many calls, seconds for each on the slowest rank. */
static double batch(const struct operation *op, int n, int calls)
{
    MPI_Barrier(MPI_COMM_WORLD);
    double begin = now();
    for (int i = 0; i < calls; i++) {
        if (op->turn == ROOT)
            root = i % size;
        if (op->turn == ORDER)
            comm = i % 2 ? turned : MPI_COMM_WORLD;
        op->run(n);
    }
    double took = now() - begin;
    root = 0;
    comm = MPI_COMM_WORLD;
    return highest(took) / calls;
}

static void measure_turns(const struct operation *op, int n, double seconds, int repetitions)
{
    double times[REPETITIONS_MOST];
    int cycle = op->turn == ROOT ? size : op->turn == ORDER ? 2 : 1;
    fill(op, n);
    MPI_Barrier(MPI_COMM_WORLD);
    op->run(n);
    check(op, n);
    batch(op, n, cycle); /* makes what is kept for each root */
    double took = batch(op, n, 2 * cycle);
    int count = bounded(repetitions ? repetitions : seconds / (took * cycle), BATCHES_LEAST,
                        repetitions ? REPETITIONS_MOST : BATCHES);
    int calls = bounded(seconds / (count * took * cycle), 1, CYCLES_MOST) * cycle;
    for (int i = 0; i < count; i++)
        times[i] = batch(op, n, calls);
    if (rank == 0)
        print_row(op, n, times, count);
}

/* ---- what is asked for ------------------------------------------------------------------------------------------- */

static char *room(enum blocks blocks, size_t n, size_t *bytes)
{
    *bytes = (blocks == A_RANK ? n * (size_t)size : n) + 8 * (size_t)size + 64;
    char *memory = malloc(*bytes);
    if (!memory)
        fail("no memory");
    memset(memory, 1, *bytes); /* touched, so that no page is made while the clock runs */
    return memory;
}

static void measure_cell(const struct operation *op, int n, char **arguments)
{
    int repetitions = arguments[4] && arguments[5] ? atoi(arguments[5]) : 0;
    out = room(op->sent, (size_t)n, &out_bytes);
    in = room(op->received, (size_t)n, &in_bytes);
    if (arguments[4] && strcmp(arguments[4], "turns") == 0)
        measure_turns(op, n, atof(arguments[3]), repetitions);
    else
        measure_instants(op, n, atof(arguments[3]), repetitions);
    free(out);
    free(in);
}

static void measure_operation(char *name, char **arguments)
{
    const struct operation *op = NULL;
    char *own = strchr(name, ':'), *sizes = own ? own + 1 : arguments[2];
    if (own)
        *own = 0;
    for (size_t i = 0; i < OPERATIONS; i++)
        if (strcmp(operations[i].name, name) == 0)
            op = &operations[i];
    if (!op)
        fail("there is no such operation");
    if (op->run == do_barrier) {
        measure_cell(op, 0, arguments);
        return;
    }
    for (long n = strtol(sizes, &sizes, 10); n > 0; n = *sizes ? strtol(sizes + 1, &sizes, 10) : 0)
        measure_cell(op, (int)(op->doubles ? (n + 7) / 8 * 8 : n), arguments);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &turned);
    comm = MPI_COMM_WORLD;
    if (argc < 4 || argc > 6)
        fail("usage: peers OPERATION[:BYTES...],... BYTES,... SECONDS [instants|turns [REPETITIONS]]");
    counts = calloc(3 * (size_t)size, sizeof *counts);
    if (!counts)
        fail("no memory");
    places = counts + size;
    shares = places + size;
    char *rest = NULL;
    for (char *name = strtok_r(argv[1], ",", &rest); name; name = strtok_r(NULL, ",", &rest))
        measure_operation(name, argv);
    if (rank == 0) {
        puts("done");
        fflush(stdout);
    }
    free(counts);
    MPI_Comm_free(&turned);
    MPI_Finalize();
    return 0;
}
