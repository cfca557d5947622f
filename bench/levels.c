/* Times of collectives as figure 7 of the MPICH-G2 paper takes them (Karonis et al. 2002), for bench/levels: compiled
 * and run under each library alike. Roots take turns, each several times in a row, of which the first does not count,
 * and operations are kept apart by an ACK/GO barrier (instants.h).
 *
 * usage: levels OPERATION:BYTES:REPETITIONS:IDLE:ROOT[,ROOT...] ...
 *   REPETITIONS: that count, for each root; an operation without a root is repeated as if it had those
 *   IDLE: seconds; if not 0, one call more is timed, with the first root, before which nobody has sent anything for so
 *         long
 *
 * Prints a row for each root, "OPERATION BYTES ROOT PAPER TIME...", times in microseconds of the repetitions that
 * count, and a row "cold OPERATION BYTES ROOT TIME"; at the end a line "done".
 *
 * The GO carries an instant of the clock that all ranks share, being on one machine, at which they begin. A time is
 * that of the rank that ends last; a repetition for which a rank came too late is dropped. PAPER is the paper's own
 * figure, the mean time of rank 0 alone, over those for which it was not late. Each repetition has other data, and its
 * result is checked. */
#define _GNU_SOURCE
#include "instants.h"

#define REPETITIONS_MOST 1000
#define AWAKE_S          20e-3 /* so long before its instant who slept is awake */

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

static void print_root(const struct operation *op, int n, const double *times, int repetitions, double paper)
{
    printf("%s %d %d %.6g", op->name, n, root, paper * 1e6);
    for (int i = 0; i < repetitions; i++)
        if (times[i] < DROPPED)
            printf(" %.6g", times[i] * 1e6);
    puts("");
    fflush(stdout);
}

static void measure_root(const struct operation *op, int n, int repetitions)
{
    static double times[REPETITIONS_MOST], all[REPETITIONS_MOST];
    double paper = 0;
    int kept = 0;
    call(op, n, ahead); /* warms the connections that this root needs */
    for (int i = 0; i < repetitions; i++) {
        times[i] = call(op, n, ahead);
        paper += times[i] < DROPPED ? times[i] : 0;
        kept += times[i] < DROPPED;
    }
    MPI_Reduce(times, all, repetitions, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    if (rank == 0)
        print_root(op, n, all, repetitions, kept > 0 ? paper / kept : 0);
}

static void measure_cold(const struct operation *op, int n, double idle)
{
    double took = highest(call(op, n, ahead + idle));
    if (rank == 0 && took < DROPPED)
        printf("cold %s %d %d %.6g\n", op->name, n, root, took * 1e6);
}

static void measure_cell(char *name)
{
    static const char usage[] = "usage: levels OPERATION:BYTES:REPETITIONS:IDLE:ROOT[,ROOT...] ...";
    char *bytes = next_field(name, usage), *count = next_field(bytes, usage), *rest = next_field(count, usage);
    char *roots = next_field(rest, usage);
    const struct operation *op = operation_of(name);
    int n = atoi(bytes), repetitions = atoi(count), first = atoi(roots);
    if (repetitions < 1 || repetitions > REPETITIONS_MOST)
        fail("too few repetitions or too many");
    n = op->doubles ? (n + 7) / 8 * 8 : n;
    room_open(op, n);
    for (char *at = roots; at; at = strchr(at, ','), at = at ? at + 1 : NULL) {
        root = atoi(at);
        if (root < 0 || root >= size)
            fail("there is no such root");
        measure_root(op, n, repetitions);
    }
    root = first;
    if (atof(rest) > 0)
        measure_cold(op, n, atof(rest));
    room_close();
}

int main(int argc, char **argv)
{
    bench_open(&argc, &argv);
    find_ahead();
    for (int i = 1; i < argc; i++)
        measure_cell(argv[i]);
    bench_close();
    return 0;
}
