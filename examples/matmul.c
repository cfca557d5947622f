/*
 * Matrix multiplication by broadcast: C = A B, with the rows of A shared out and B passed to everyone in panels.
 *
 * Rank 0 has A and B and wants C. Each rank gets some rows of A and will hand in the same rows of C. For them it needs
 * all of B, but never all at once: B comes as panels of a few rows, and a rank adds to its part of C what each panel
 * brings. So a rank's memory holds its rows and one panel, not a whole matrix.
 *
 * To look out for:
 *   - A row is a datatype of its own (MPI_Type_contiguous). MPI_Scatterv and MPI_Gatherv then count in rows; the shares
 * need not be equal, nor the size a multiple of the number of ranks.
 *   - MPI_Bcast sends a panel from where it lies in B; the other ranks receive it into a buffer.
 *   - Each rank measures what it computes and what it communicates. The table at the end shows where more ranks stop
 *     paying: computation shrinks with the number of ranks, what must be received does not.
 *
 * Is the answer right? The matrices hold small whole numbers, so C is exact. Rank 0 compares C r with A (B r) for
 * random vectors r, which takes a few passes over the matrices instead of another multiplication; a wrong number in C
 * stays unnoticed with a probability of one in a million.
 *
 *     mpicc -O2 examples/matmul.c -o matmul
 *     mpiexec -n 4 ./matmul [--help]
 */
#include <mpi.h>
#include <getopt.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { BAR = 50, SHOWN_RANKS = 16, PROBES = 2, PROBE_BITS = 10, LARGEST = 4 };
enum verdict { RUN, HELP, WRONG };

/* What the time goes into. */
enum phase { SCATTER, PANEL, COMPUTE, GATHER, PHASES };
static const char *const phase_names[PHASES] = {"scattering A", "broadcasting B", "computing", "gathering C"};
static const char phase_marks[PHASES] = {'s', 'b', '#', 'g'};
static const int phase_colours[PHASES] = {35, 33, 32, 36};

struct options {
    int size, panel, seed;
    int colour, quiet, spoil;
};

/* The matrices, as far as a rank has them. */
struct task {
    int rank, ranks, n;
    int rows;             /* of A and C, here */
    int *counts, *firsts; /* the rows of each rank: how many, and the first */
    double *a, *b, *c;    /* whole, on rank 0 alone */
    double *my_a, *my_c;  /* rows * n */
    double *buffer;       /* a panel of B */
    MPI_Datatype row;     /* n numbers */
    double spent[PHASES];
};

static void *allocate(size_t count, size_t bytes)
{
    void *memory = calloc(count > 0 ? count : 1, bytes);
    if (memory == NULL) {
        fprintf(stderr, "matmul: no memory for %zu times %zu bytes\n", count, bytes);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    return memory;
}

static void print_help(void)
{
    printf("usage: matmul [options]\n"
           "  --size N    rows and columns of the matrices (1400)\n"
           "  --panel N   rows of B in one broadcast (64)\n"
           "  --seed N    which matrices (1)\n"
           "  --colour    colours even if the output is no terminal\n"
           "  --quiet     print the result line alone\n"
           "  --spoil     disturb one number of C, to see that the check finds it\n");
}

/* Reads a whole number between low and high; says so and returns 0 if there is none. */
static int read_number(const char *name, const char *text, int low, int high, int *number)
{
    char *end;
    long value = strtol(text, &end, 10);
    if (end == text || *end != '\0' || value < low || value > high) {
        fprintf(stderr, "matmul: --%s needs a number from %d to %d, not '%s'\n", name, low, high, text);
        return 0;
    }
    *number = (int)value;
    return 1;
}

static enum verdict read_options(int argc, char **argv, struct options *o)
{
    static const struct option names[] = {{"size", 1, NULL, 'n'},   {"panel", 1, NULL, 'p'}, {"seed", 1, NULL, 's'},
                                          {"colour", 0, NULL, 'C'}, {"quiet", 0, NULL, 'q'}, {"spoil", 0, NULL, 'S'},
                                          {"help", 0, NULL, 'h'},   {NULL, 0, NULL, 0}};
    *o = (struct options){.size = 1400, .panel = 64, .seed = 1, .colour = isatty(STDOUT_FILENO)};
    int fine = 1, choice;
    while (fine && (choice = getopt_long(argc, argv, "", names, NULL)) != -1) {
        switch (choice) {
        case 'n':
            fine = read_number("size", optarg, 1, 100000, &o->size);
            break;
        case 'p':
            fine = read_number("panel", optarg, 1, 100000, &o->panel);
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
        fprintf(stderr, "matmul: see --help\n");
        return WRONG;
    }
    if (o->panel > o->size)
        o->panel = o->size;
    return RUN;
}

/* The next of a row of random numbers (SplitMix64). */
static uint64_t draw(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

/* Whole numbers from -LARGEST to LARGEST: their products' sums are exact in a double, in whatever order they are added.
 */
static double *random_matrix(int n, uint64_t *state)
{
    double *matrix = allocate((size_t)n * n, sizeof *matrix);
    for (size_t i = 0; i < (size_t)n * n; i++)
        matrix[i] = (double)(int)(draw(state) % (2 * LARGEST + 1)) - LARGEST;
    return matrix;
}

static void task_create(struct task *t, const struct options *o)
{
    MPI_Comm_rank(MPI_COMM_WORLD, &t->rank);
    MPI_Comm_size(MPI_COMM_WORLD, &t->ranks);
    t->n = o->size;
    t->counts = allocate((size_t)t->ranks, sizeof *t->counts);
    t->firsts = allocate((size_t)t->ranks, sizeof *t->firsts);
    for (int i = 0; i < t->ranks; i++) {
        t->firsts[i] = (int)((long long)t->n * i / t->ranks);
        t->counts[i] = (int)((long long)t->n * (i + 1) / t->ranks) - t->firsts[i];
    }
    t->rows = t->counts[t->rank];
    t->my_a = allocate((size_t)t->rows * t->n, sizeof(double));
    t->my_c = allocate((size_t)t->rows * t->n, sizeof(double));
    t->buffer = allocate((size_t)o->panel * t->n, sizeof(double));
    if (t->rank == 0) {
        uint64_t state = (uint64_t)o->seed;
        t->a = random_matrix(t->n, &state);
        t->b = random_matrix(t->n, &state);
        t->c = allocate((size_t)t->n * t->n, sizeof(double));
    }
    MPI_Type_contiguous(t->n, MPI_DOUBLE, &t->row);
    MPI_Type_commit(&t->row);
}

static void task_destroy(struct task *t)
{
    MPI_Type_free(&t->row);
    free(t->counts);
    free(t->firsts);
    free(t->a);
    free(t->b);
    free(t->c);
    free(t->my_a);
    free(t->my_c);
    free(t->buffer);
}

/* c += f[0] * b[0] + f[1] * b[1] + .., the b being `count` consecutive rows. Four at a time: c is read less often. */
static void add_rows(double *restrict c, const double *restrict f, const double *restrict b, int count, int n)
{
    int k = 0;
    for (; k + 4 <= count; k += 4, b += 4 * (size_t)n) {
        const double *b1 = b + n, *b2 = b1 + n, *b3 = b2 + n;
        for (int j = 0; j < n; j++)
            c[j] += (f[k] * b[j] + f[k + 1] * b1[j]) + (f[k + 2] * b2[j] + f[k + 3] * b3[j]);
    }
    for (; k < count; k++, b += n)
        for (int j = 0; j < n; j++)
            c[j] += f[k] * b[j];
}

/* The whole multiplication; notes what each part of it took on this rank. */
static void multiply(struct task *t, int panel)
{
    double mark = MPI_Wtime(), now;
    MPI_Scatterv(t->a, t->counts, t->firsts, t->row, t->my_a, t->rows, t->row, 0, MPI_COMM_WORLD);
    now = MPI_Wtime();
    t->spent[SCATTER] = now - mark;

    for (int first = 0; first < t->n; first += panel) {
        int count = t->n - first < panel ? t->n - first : panel;
        double *rows = t->rank == 0 ? t->b + (size_t)first * t->n : t->buffer;
        mark = now;
        MPI_Bcast(rows, count, t->row, 0, MPI_COMM_WORLD);
        now = MPI_Wtime();
        t->spent[PANEL] += now - mark;

        mark = now;
        for (int i = 0; i < t->rows; i++)
            add_rows(t->my_c + (size_t)i * t->n, t->my_a + (size_t)i * t->n + first, rows, count, t->n);
        now = MPI_Wtime();
        t->spent[COMPUTE] += now - mark;
    }

    mark = now;
    MPI_Gatherv(t->my_c, t->rows, t->row, t->c, t->counts, t->firsts, t->row, 0, MPI_COMM_WORLD);
    t->spent[GATHER] = MPI_Wtime() - mark;
}

/* y = m x */
static void apply(const double *m, const double *x, double *y, int n)
{
    for (int i = 0; i < n; i++) {
        y[i] = 0;
        for (int j = 0; j < n; j++)
            y[i] += m[(size_t)i * n + j] * x[j];
    }
}

/* On rank 0: whether C r is A (B r) for some random r. */
static int check(const struct task *t, int seed)
{
    size_t n = (size_t)t->n;
    double *r = allocate(n, sizeof *r), *br = allocate(n, sizeof *br);
    double *abr = allocate(n, sizeof *abr), *cr = allocate(n, sizeof *cr);
    uint64_t state = ~(uint64_t)seed;
    int right = 1;
    for (int probe = 0; probe < PROBES; probe++) {
        for (size_t i = 0; i < n; i++)
            r[i] = (double)(draw(&state) >> (64 - PROBE_BITS));
        apply(t->b, r, br, t->n);
        apply(t->a, br, abr, t->n);
        apply(t->c, r, cr, t->n);
        for (size_t i = 0; i < n; i++)
            right = right && abr[i] == cr[i];
    }
    free(r);
    free(br);
    free(abr);
    free(cr);
    return right;
}

/* A number that changes when any number in C does, or changes place. */
static uint64_t fingerprint(const double *c, size_t count)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < count; i++)
        sum = sum * 31 + (uint64_t)(int64_t)c[i];
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

static void print_times(const struct task *t, const double *spent, const double total[PHASES], int colour)
{
    double all = 0, longest = 0;
    for (int rank = 0; rank < t->ranks; rank++) {
        double sum = 0;
        for (int phase = 0; phase < PHASES; phase++)
            sum += spent[rank * PHASES + phase];
        all += sum;
        longest = sum > longest ? sum : longest;
    }
    printf("rank  rows  where the time went\n");
    for (int rank = 0; rank < t->ranks && rank < SHOWN_RANKS; rank++)
        print_bar(rank, t->counts[rank], spent + rank * PHASES, longest, colour);
    if (t->ranks > SHOWN_RANKS)
        printf(" ... and %d more\n", t->ranks - SHOWN_RANKS);
    printf("\n");
    for (int phase = 0; phase < PHASES; phase++)
        printf("  %c  %-16s %5.1f%%\n", phase_marks[phase], phase_names[phase], 100 * total[phase] / all);
}

/* On rank 0: what came of it. `spent` has the times of all ranks, one after the other. */
static void report(const struct task *t, const struct options *o, const double *spent, double seconds, int right)
{
    double total[PHASES] = {0}, n = t->n;
    for (int i = 0; i < t->ranks * PHASES; i++)
        total[i % PHASES] += spent[i];
    double compute = total[COMPUTE] / t->ranks;
    double communicate = (total[SCATTER] + total[PANEL] + total[GATHER]) / t->ranks;
    double gflops = 2 * n * n * n / seconds / 1e9;
    if (!o->quiet) {
        printf("two matrices of %d x %d numbers on %d rank%s, panels of %d rows\n\n", t->n, t->n, t->ranks,
               t->ranks > 1 ? "s" : "", o->panel);
        print_times(t, spent, total, o->colour);
        printf("\nmultiplied in %.3f s: %.3f GFLOP/s; a rank computes for %.3f s and communicates for %.3f s\n",
               seconds, gflops, compute, communicate);
        printf("C r %s A (B r): %s\n", right ? "is" : "is not", right ? "right" : "WRONG");
    }
    printf("result: example=matmul n=%d panel=%d seed=%d fingerprint=%016llx ok=%s ranks=%d seconds=%.6f compute=%.6f "
           "communicate=%.6f gflops=%.4f\n",
           t->n, o->panel, o->seed, (unsigned long long)fingerprint(t->c, (size_t)t->n * t->n), right ? "yes" : "no",
           t->ranks, seconds, compute, communicate, gflops);
}

static int run(const struct options *o)
{
    struct task t = {0};
    int right = 0;
    double seconds = 0;
    task_create(&t, o);
    double *spent = allocate((size_t)t.ranks * PHASES, sizeof *spent);
    MPI_Barrier(MPI_COMM_WORLD);
    double start = MPI_Wtime();
    multiply(&t, o->panel);
    double mine = MPI_Wtime() - start;
    MPI_Reduce(&mine, &seconds, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    MPI_Gather(t.spent, PHASES, MPI_DOUBLE, spent, PHASES, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    if (t.rank == 0) {
        if (o->spoil)
            t.c[(size_t)t.n * t.n / 2] += 1;
        right = check(&t, o->seed);
        report(&t, o, spent, seconds, right);
    }
    MPI_Bcast(&right, 1, MPI_INT, 0, MPI_COMM_WORLD); /* so that all ranks end alike */
    free(spent);
    task_destroy(&t);
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
    int right = verdict == RUN ? run(&options) : verdict == HELP;
    MPI_Finalize();
    return right ? 0 : 1;
}
