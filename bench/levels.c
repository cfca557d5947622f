/* Times of collectives as figure 7 of the MPICH-G2 paper takes them (Karonis et al. 2002), for bench/levels: compiled
 * and run under each library alike. Roots take turns, each several times in a row, of which the first does not count,
 * and operations are kept apart by an ACK/GO barrier: all ranks send an ACK to rank 0, which then sends them a GO, one
 * after the other.
 *
 * usage: levels OPERATION[:BYTES...][,OPERATION...] BYTES[,BYTES...] ROOTS LONG_ROOTS REPETITIONS [IDLE_SECONDS]
 *   operations and BYTES as of peers.c
 *   ROOTS: ranks with commas between; LONG_ROOTS those of messages or blocks of 1 MiB or more. Operations without a
 * root are repeated as often, but the long ones as for one root REPETITIONS: that count, for each root IDLE_SECONDS:
 * one call more is timed, with the first root, before which nobody has sent anything for so long
 *
 * Prints a row for each operation, size and root: OPERATION BYTES ROOT MEDIAN LOWEST HIGHEST KEPT DROPPED PAPER, times
 * in microseconds, and a row "cold OPERATION BYTES ROOT TIME"; at the end a line "done".
 *
 * The GO carries an instant of the clock that all ranks share, being on one machine, at which they begin. A time is
 * that of the rank that ends last; a repetition for which a rank came too late is dropped. PAPER is the paper's own
 * figure, the mean time of rank 0 alone. Each repetition has other data, and its result is checked. */
#define _GNU_SOURCE
#include "operations.h"

#define REPETITIONS_MOST 1000
#define DROPPED          1e9
#define LONG             (1 << 20)
#define TRIES            5
#define AHEAD_S          2e-3
#define AWAKE_S          20e-3 /* so long before its instant who slept is awake */

enum { ACK = 1, GO };

static char *short_roots, *long_roots;
static int repetitions;
static double idle, ahead; /* seconds; the second is until all have heard GO */

/* Returns the instant at which all begin. */
static double ack_barrier(double later)
{
    double instant;
    if (rank != 0) {
        MPI_Send(NULL, 0, MPI_CHAR, 0, ACK, MPI_COMM_WORLD);
        MPI_Recv(&instant, 1, MPI_DOUBLE, 0, GO, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        return instant;
    }
    for (int r = 1; r < size; r++)
        MPI_Recv(NULL, 0, MPI_CHAR, r, ACK, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    instant = now() + later;
    for (int r = 1; r < size; r++)
        MPI_Send(&instant, 1, MPI_DOUBLE, r, GO, MPI_COMM_WORLD);
    return instant;
}

static void find_ahead(void)
{
    double most = 0;
    for (int i = 0; i < TRIES; i++) {
        double instant = ack_barrier(0); /* before the clock is read */
        double late = highest(now() - instant);
        most = i > 0 && late > most ? late : most; /* the first one connects */
    }
    ahead = 2 * most + AHEAD_S;
}

/* One call at an instant; DROPPED if this rank came too late. */
static double call(const struct operation *op, int n, double later)
{
    salt = (salt + 1) % 256;
    fill(op, n);
    double instant = ack_barrier(later), rest = instant - now() - AWAKE_S;
    int late = rest + AWAKE_S < 0;
    if (later > ahead && rest > 0)
        nanosleep(&(struct timespec){.tv_sec = (time_t)rest, .tv_nsec = (long)((rest - (double)(time_t)rest) * 1e9)},
                  NULL);
    wait_until(instant);
    op->run(n);
    double took = now() - instant;
    check(op, n);
    return late ? DROPPED : took;
}

static void print_root(const struct operation *op, int n, double *times, double paper)
{
    int kept = 0;
    qsort(times, (size_t)repetitions, sizeof times[0], ascending);
    while (kept < repetitions && times[kept] < DROPPED)
        kept++;
    if (kept > 0)
        printf("%s %d %d %.6g %.6g %.6g %d %d %.6g\n", op->name, n, root, times[kept / 2] * 1e6, times[0] * 1e6,
               times[kept - 1] * 1e6, kept, repetitions - kept, paper * 1e6);
    else
        printf("%s %d %d nan nan nan 0 %d nan\n", op->name, n, root, repetitions);
    fflush(stdout);
}

static void measure_root(const struct operation *op, int n)
{
    static double times[REPETITIONS_MOST], all[REPETITIONS_MOST];
    double paper = 0;
    call(op, n, ahead);
    for (int i = 0; i < repetitions; i++) {
        times[i] = call(op, n, ahead);
        paper += times[i] / repetitions;
    }
    MPI_Reduce(times, all, repetitions, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    if (rank == 0)
        print_root(op, n, all, paper);
}

/* For each root of the list, or the first alone. */
static void each_root(char *list, int once, void (*take)(const struct operation *op, int n), const struct operation *op,
                      int n)
{
    do {
        root = (int)strtol(list, &list, 10);
        take(op, n);
    } while (*list++ && !once);
}

/* So that every pair that the operation uses has been used before anything counts. */
static void warm_up(const struct operation *op, int n)
{
    call(op, n, ahead);
}

static void measure_cold(const struct operation *op, int n)
{
    double took = highest(call(op, n, ahead + idle));
    if (rank == 0 && took < DROPPED)
        printf("cold %s %d %d %.6g\n", op->name, n, root, took * 1e6);
}

static void measure_cell(const struct operation *op, int n)
{
    char *roots = n >= LONG ? long_roots : short_roots;
    int once = op->run == do_point || (op->turn != ROOT && n >= LONG);
    room_open(op, n);
    each_root(roots, once, warm_up, op, n);
    if (idle > 0)
        each_root(roots, 1, measure_cold, op, n);
    each_root(roots, once, measure_root, op, n);
    room_close();
}

static void check_roots(const char *list)
{
    for (; list; list = strchr(list, ','), list = list ? list + 1 : NULL)
        if (atoi(list) < 0 || atoi(list) >= size)
            fail("there is no such root");
}

int main(int argc, char **argv)
{
    bench_open(&argc, &argv);
    if (argc < 6 || argc > 7)
        fail("usage: levels OPERATION[:BYTES...],... BYTES,... ROOTS LONG_ROOTS REPETITIONS [IDLE_SECONDS]");
    short_roots = argv[3];
    long_roots = argv[4];
    repetitions = atoi(argv[5]);
    idle = argc > 6 ? atof(argv[6]) : 0;
    if (repetitions < 1 || repetitions > REPETITIONS_MOST)
        fail("too few repetitions or too many");
    check_roots(short_roots);
    check_roots(long_roots);
    find_ahead();
    bench_run(argv[1], argv[2], measure_cell);
    return 0;
}
