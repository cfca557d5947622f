/*
 * Gaussian elimination: the ranks solve a dense system of linear equations, A x = b, together.
 *
 * Row i of the matrix, with its right-hand side as one more column, belongs to rank i modulo the number of ranks. Dealt
 * out like cards, rows go out of use evenly, so that every rank has work until the end; with one thick slice each, the
 * first ranks would soon be idle.
 *
 * To look out for:
 *   - The pivot of each column is the largest number left in it. MPI_Allreduce with MPI_MAXLOC finds the number and its
 *     row in one go: each rank offers the best of its own, a pair (value, row) of the type MPI_DOUBLE_INT.
 *   - The pivot row goes to all by MPI_Bcast; the root changes from step to step. It is sent straight from the matrix.
 *   - No rows are swapped. Each rank remembers which of its rows have been pivots; the order is known to all.
 *   - Back substitution broadcasts one number a step: nothing but latency, which is why its share of the time grows
 * with the number of ranks, as the picture at the end shows.
 *
 * Is the answer right? The matrix comes from a formula, so each rank makes its rows anew and computes |A x - b|, in
 * units of what rounding may cost; a number far above 1 would be wrong.
 *
 *     mpicc -O2 examples/gauss.c -o gauss -lm
 *     mpiexec -n 4 ./gauss [--help]
 */
#include <mpi.h>
#include <float.h>
#include <getopt.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { BAR = 50, SHOWN_RANKS = 16 };
enum verdict { RUN, HELP, WRONG };

/* What the time goes into. */
enum phase { PIVOT, ROW, UPDATE, BACK, PHASES };
static const char *const phase_names[PHASES] = {"agreeing on pivots", "broadcasting rows", "updating rows",
                                                "back substitution"};
static const char phase_marks[PHASES] = {'p', 'b', '#', 's'};
static const int phase_colours[PHASES] = {35, 33, 32, 36};

struct options {
    int size, seed;
    int colour, quiet, spoil;
};

/* The pair that MPI_DOUBLE_INT stands for. */
struct candidate {
    double value;
    int row;
};

/* A rank's share of the system. */
struct share {
    int rank, ranks;
    int n;      /* unknowns */
    int rows;   /* of them here: rows rank, rank + ranks, rank + 2 * ranks .. */
    int width;  /* of a row: n + 1, the right-hand side included */
    double *a;  /* rows * width */
    int *used;  /* for each row here: the step in which it was the pivot, or n */
    int *order; /* for each step: the row that was the pivot; the same on all ranks */
    double *x;  /* the answer; all ranks have all of it */
    double spent[PHASES];
};

static void *allocate(size_t count, size_t bytes)
{
    void *memory = calloc(count > 0 ? count : 1, bytes);
    if (memory == NULL) {
        fprintf(stderr, "gauss: no memory for %zu times %zu bytes\n", count, bytes);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    return memory;
}

static void print_help(void)
{
    printf("usage: gauss [options]\n"
           "  --size N    unknowns (1200)\n"
           "  --seed N    which matrix (1)\n"
           "  --colour    colours even if the output is no terminal\n"
           "  --quiet     print the result line alone\n"
           "  --spoil     disturb one number of the answer, to see that the check finds it\n");
}

/* Reads a whole number between low and high; says so and returns 0 if there is none. */
static int read_number(const char *name, const char *text, int low, int high, int *number)
{
    char *end;
    long value = strtol(text, &end, 10);
    if (end == text || *end != '\0' || value < low || value > high) {
        fprintf(stderr, "gauss: --%s needs a number from %d to %d, not '%s'\n", name, low, high, text);
        return 0;
    }
    *number = (int)value;
    return 1;
}

static enum verdict read_options(int argc, char **argv, struct options *o)
{
    static const struct option names[] = {{"size", 1, NULL, 'n'},  {"seed", 1, NULL, 's'},  {"colour", 0, NULL, 'C'},
                                          {"quiet", 0, NULL, 'q'}, {"spoil", 0, NULL, 'S'}, {"help", 0, NULL, 'h'},
                                          {NULL, 0, NULL, 0}};
    *o = (struct options){.size = 1200, .seed = 1, .colour = isatty(STDOUT_FILENO)};
    int fine = 1, choice;
    while (fine && (choice = getopt_long(argc, argv, "", names, NULL)) != -1) {
        switch (choice) {
        case 'n':
            fine = read_number("size", optarg, 1, 100000, &o->size);
            break;
        case 's':
            fine = read_number("seed", optarg, 0, INT32_MAX, &o->seed);
            break;
        case 'C':
            o->colour = 1;
            break;
        case 'q':
            o->quiet = 1;
            break;
        case 'S':
            o->spoil = 1;
            break;
        case 'h':
            print_help();
            return HELP;
        default:
            fine = 0;
        }
    }
    if (!fine || optind < argc) {
        fprintf(stderr, "gauss: see --help\n");
        return WRONG;
    }
    return RUN;
}

/* Scrambles a number so that its neighbours come out unlike it (the finaliser of SplitMix64). */
static uint64_t scramble(uint64_t z)
{
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

/* The system's number in that place, between -0.5 and 0.5: any rank can make any of them at any time. */
static double entry(const struct options *o, int row, int column)
{
    uint64_t place = (uint64_t)row * (uint64_t)(o->size + 1) + (uint64_t)column + 1;
    uint64_t bits = scramble(scramble((uint64_t)o->seed + 1) + place * UINT64_C(0x9e3779b97f4a7c15));
    return (double)(bits >> 11) * 0x1p-53 - 0.5;
}

static void share_create(struct share *s, const struct options *o)
{
    MPI_Comm_rank(MPI_COMM_WORLD, &s->rank);
    MPI_Comm_size(MPI_COMM_WORLD, &s->ranks);
    s->n = o->size;
    s->width = s->n + 1;
    s->rows = s->n > s->rank ? (s->n - s->rank - 1) / s->ranks + 1 : 0;
    s->a = allocate((size_t)s->rows * s->width, sizeof(double));
    s->used = allocate((size_t)s->rows, sizeof(int));
    s->order = allocate((size_t)s->n, sizeof(int));
    s->x = allocate((size_t)s->n, sizeof(double));
    for (int i = 0; i < s->rows; i++) {
        s->used[i] = s->n;
        for (int column = 0; column < s->width; column++)
            s->a[(size_t)i * s->width + column] = entry(o, i * s->ranks + s->rank, column);
    }
}

static void share_destroy(struct share *s)
{
    free(s->a);
    free(s->used);
    free(s->order);
    free(s->x);
}

/* All ranks learn where the largest number left in column `step` is. Of equal ones MPI_MAXLOC takes the first. */
static struct candidate find_pivot(const struct share *s, int step)
{
    struct candidate mine = {-1, s->n}, best; /* the offer of a rank that has no row left */
    for (int i = 0; i < s->rows; i++) {
        double value = fabs(s->a[(size_t)i * s->width + step]);
        if (s->used[i] == s->n && value > mine.value)
            mine = (struct candidate){value, i * s->ranks + s->rank};
    }
    MPI_Allreduce(&mine, &best, 1, MPI_DOUBLE_INT, MPI_MAXLOC, MPI_COMM_WORLD);
    return best;
}

/* row -= factor * pivot */
static void subtract(double *restrict row, const double *restrict pivot, int count, double factor)
{
    for (int i = 0; i < count; i++)
        row[i] -= factor * pivot[i];
}

/* Brings the matrix into triangular form, but for the order of the rows; returns 0 if it has no inverse. */
static int eliminate(struct share *s)
{
    double *buffer = allocate((size_t)s->width, sizeof *buffer);
    int regular = 1;
    for (int step = 0; step < s->n && regular; step++) {
        double start = MPI_Wtime();
        struct candidate pivot = find_pivot(s, step);
        double agreed = MPI_Wtime();
        s->spent[PIVOT] += agreed - start;
        regular = pivot.value > 0;
        if (!regular)
            break;

        /* Columns before `step` are zero by now, so what travels and what is computed shrinks from step to step. */
        int owner = pivot.row % s->ranks, count = s->width - step;
        double *row = buffer;
        s->order[step] = pivot.row;
        if (owner == s->rank) {
            row = s->a + (size_t)(pivot.row / s->ranks) * s->width + step;
            s->used[pivot.row / s->ranks] = step;
        }
        MPI_Bcast(row, count, MPI_DOUBLE, owner, MPI_COMM_WORLD);
        double received = MPI_Wtime();
        s->spent[ROW] += received - agreed;

        for (int i = 0; i < s->rows; i++) {
            double *mine = s->a + (size_t)i * s->width + step;
            if (s->used[i] == s->n)
                subtract(mine + 1, row + 1, count - 1, mine[0] / row[0]);
        }
        s->spent[UPDATE] += MPI_Wtime() - received;
    }
    free(buffer);
    return regular;
}

/* From the last unknown to the first: who has its row computes it, tells all, and all move it to the right-hand side.
 */
static void substitute(struct share *s)
{
    double start = MPI_Wtime();
    for (int step = s->n - 1; step >= 0; step--) {
        int owner = s->order[step] % s->ranks;
        if (owner == s->rank) {
            const double *row = s->a + (size_t)(s->order[step] / s->ranks) * s->width;
            s->x[step] = row[s->n] / row[step];
        }
        MPI_Bcast(&s->x[step], 1, MPI_DOUBLE, owner, MPI_COMM_WORLD);
        for (int i = 0; i < s->rows; i++) {
            double *row = s->a + (size_t)i * s->width;
            if (s->used[i] < step)
                row[s->n] -= row[step] * s->x[step];
        }
    }
    s->spent[BACK] += MPI_Wtime() - start;
}

/* The largest |A x - b|, in units of what rounding may cost: machine precision * n * (|A| |x| + |b|). */
static double scaled_residual(const struct share *s, const struct options *o)
{
    double mine[3] = {0, 0, 0}, all[3]; /* residual, |A|, |b| */
    double norm_x = 0;
    for (int i = 0; i < s->rows; i++) {
        int row = i * s->ranks + s->rank;
        double right = entry(o, row, s->n), rest = right, sum = 0;
        for (int column = 0; column < s->n; column++) {
            double value = entry(o, row, column);
            rest -= value * s->x[column];
            sum += fabs(value);
        }
        mine[0] = fmax(mine[0], fabs(rest));
        mine[1] = fmax(mine[1], sum);
        mine[2] = fmax(mine[2], fabs(right));
    }
    MPI_Allreduce(mine, all, 3, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    for (int i = 0; i < s->n; i++)
        norm_x = fmax(norm_x, fabs(s->x[i]));
    return all[0] / (DBL_EPSILON * s->n * (all[1] * norm_x + all[2]));
}

/* 1 or -1: whether the pivots' order is an even or an odd permutation of the rows. */
static int permutation_sign(const struct share *s)
{
    char *seen = allocate((size_t)s->n, 1);
    int sign = 1;
    for (int i = 0; i < s->n; i++) {
        int length = 0;
        for (int j = i; !seen[j]; j = s->order[j]) {
            seen[j] = 1;
            length++;
        }
        if (length > 0 && length % 2 == 0) /* a cycle of even length turns the sign */
            sign = -sign;
    }
    free(seen);
    return sign;
}

/*
 * The determinant as sign and decimal logarithm of its size, which would not fit a double. All ranks get all pivots and
 * add up in the order of the steps, so that the answer does not depend on how many ranks there are.
 */
static double determinant(const struct share *s, int *sign)
{
    double *mine = allocate((size_t)s->n, sizeof *mine), *pivots = allocate((size_t)s->n, sizeof *pivots);
    double sum = 0;
    for (int i = 0; i < s->rows; i++)
        mine[s->used[i]] = s->a[(size_t)i * s->width + s->used[i]];
    MPI_Allreduce(mine, pivots, s->n, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD); /* zero on all ranks but one */
    *sign = permutation_sign(s);
    for (int step = 0; step < s->n; step++) {
        sum += log10(fabs(pivots[step]));
        if (pivots[step] < 0)
            *sign = -*sign;
    }
    free(mine);
    free(pivots);
    return sum;
}

/* A line of the picture: how a rank's time divides into the phases. */
static void print_bar(int rank, int rows, const double spent[PHASES], double longest, int colour)
{
    double until = 0;
    int done = 0;
    printf("%4d %5d  ", rank, rows);
    for (int phase = 0; phase < PHASES; phase++) {
        until += spent[phase];
        int end = longest > 0 ? (int)(until / longest * BAR + 0.5) : 0;
        if (colour)
            printf("\033[%dm", phase_colours[phase]);
        for (; done < end; done++)
            putchar(phase_marks[phase]);
    }
    printf("%s%*s  %6.3f s\n", colour ? "\033[0m" : "", BAR - done, "", until);
}

static void print_times(const double *spent, int ranks, int n, int colour)
{
    double total[PHASES] = {0}, all = 0, longest = 0;
    for (int rank = 0; rank < ranks; rank++) {
        double sum = 0;
        for (int phase = 0; phase < PHASES; phase++) {
            total[phase] += spent[rank * PHASES + phase];
            sum += spent[rank * PHASES + phase];
        }
        all += sum;
        longest = fmax(longest, sum);
    }
    printf("rank  rows  where the time went\n");
    for (int rank = 0; rank < ranks && rank < SHOWN_RANKS; rank++)
        print_bar(rank, n > rank ? (n - rank - 1) / ranks + 1 : 0, spent + rank * PHASES, longest, colour);
    if (ranks > SHOWN_RANKS)
        printf(" ... and %d more\n", ranks - SHOWN_RANKS);
    printf("\n");
    for (int phase = 0; phase < PHASES; phase++)
        printf("  %c  %-20s %5.1f%%\n", phase_marks[phase], phase_names[phase], 100 * total[phase] / all);
}

static int solve(const struct options *o)
{
    struct share s = {0};
    share_create(&s, o);
    MPI_Barrier(MPI_COMM_WORLD);
    double start = MPI_Wtime(), mine, seconds;
    int regular = eliminate(&s);
    if (!regular) {
        if (s.rank == 0)
            fprintf(stderr, "gauss: the matrix has no inverse\n");
        share_destroy(&s);
        return 0;
    }
    substitute(&s);
    mine = MPI_Wtime() - start;
    MPI_Allreduce(&mine, &seconds, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    if (o->spoil)
        s.x[s.n / 2] += 1e-6 * (1 + fabs(s.x[s.n / 2]));

    int sign;
    double residual = scaled_residual(&s, o), digits = determinant(&s, &sign);
    int right = residual < 16;
    double *spent = allocate((size_t)s.ranks * PHASES, sizeof *spent);
    MPI_Gather(s.spent, PHASES, MPI_DOUBLE, spent, PHASES, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    if (s.rank == 0) {
        double n = s.n, gflops = (2 * n * n * n / 3 + 3 * n * n / 2) / seconds / 1e9;
        if (!o->quiet) {
            printf("%d equations with %d unknowns on %d rank%s\n\n", s.n, s.n, s.ranks, s.ranks > 1 ? "s" : "");
            print_times(spent, s.ranks, s.n, o->colour);
            printf("\nsolved in %.3f s: %.3f GFLOP/s, %.3f for each rank\n", seconds, gflops, gflops / s.ranks);
            printf("determinant: %s10^%.4f\n", sign < 0 ? "-" : "", digits);
            printf("x begins with %.6f, and A x - b is %.3f times what rounding may cost: %s\n", s.x[0], residual,
                   right ? "right" : "WRONG");
        }
        printf(
            "result: example=gauss n=%d seed=%d residual=%.4e sign=%d logdet=%.4f x0=%.9e ok=%s ranks=%d seconds=%.6f "
            "gflops=%.4f\n",
            s.n, o->seed, residual, sign, digits, s.x[0], right ? "yes" : "no", s.ranks, seconds, gflops);
    }
    free(spent);
    share_destroy(&s);
    return right;
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    struct options options;
    int rank, verdict = RUN;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0) /* the others hear from rank 0 what the options are and whether to run at all */
        verdict = read_options(argc, argv, &options);
    MPI_Bcast(&verdict, 1, MPI_INT, 0, MPI_COMM_WORLD);
    MPI_Bcast(&options, sizeof options, MPI_BYTE, 0, MPI_COMM_WORLD);
    int right = verdict == RUN ? solve(&options) : verdict == HELP;
    MPI_Finalize();
    return right ? 0 : 1;
}
