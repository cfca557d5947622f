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
#include "operations.h"

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

/* ---- timing ------------------------------------------------------------------------------------------------------ */

/* An instant that lies so far ahead that all ranks hear of it before; `barrier` is what one takes. */
static double agree_instant(double barrier)
{
    double instant = now() + 4 * barrier + 1e-3;
    MPI_Bcast(&instant, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    return instant;
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

static char **arguments;

static void measure_cell(const struct operation *op, int n)
{
    int repetitions = arguments[4] && arguments[5] ? atoi(arguments[5]) : 0;
    room_open(op, n);
    if (arguments[4] && strcmp(arguments[4], "turns") == 0)
        measure_turns(op, n, atof(arguments[3]), repetitions);
    else
        measure_instants(op, n, atof(arguments[3]), repetitions);
    room_close();
}

int main(int argc, char **argv)
{
    bench_open(&argc, &argv);
    if (argc < 4 || argc > 6)
        fail("usage: peers OPERATION[:BYTES...],... BYTES,... SECONDS [instants|turns [REPETITIONS]]");
    arguments = argv;
    bench_run(argv[1], argv[2], measure_cell);
    return 0;
}
