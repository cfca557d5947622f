/*
 * Value at risk by Monte Carlo: how much may a portfolio lose by tomorrow?
 *
 * The portfolio holds eight assets whose prices move together more or less. Each scenario draws one future: a normal
 * deviate for each asset, mixed so that they are correlated as the assets are, which gives a profit or a loss. The
 * value at risk (VaR) at 99 % is the loss that only one scenario in a hundred exceeds; the expected shortfall (ES) is
 * the mean of those worst ones. The ranks share the scenarios.
 *
 * To look out for:
 *   - Independent streams. All random numbers are parts of one sequence of 2^64, in which one can start anywhere.
 * Scenario i uses the numbers from 8 i on, whoever simulates it. So no two ranks ever use the same numbers, and the
 * outcome is the same, to the last digit, for every number of ranks.
 *   - A quantile is no sum: it does not simply add up over ranks. But the losses need not all go to one rank either.
 *     MPI_Allreduce adds up histograms; they tell all ranks below which loss the worst hundredth cannot begin; and
 *     MPI_Gatherv brings the few losses above to rank 0, after MPI_Gather has told it how many come from whom.
 *
 * Is the answer right? With normal deviates and a portfolio that is a plain sum, the loss is normal too, so VaR and ES
 * have closed forms. The simulation must come as close as its statistical error allows.
 *
 *     mpicc -O2 examples/var.c -o var -lm
 *     mpiexec -n 4 ./var [--help]
 */
#include <mpi.h>
#include <getopt.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static const double PI = 3.14159265358979323846;
static const double TRADING_DAYS = 252; /* in a year */

/* The histogram: bins of a quarter of a standard deviation; the outer two also take all that lies beyond. */
enum { BINS = 28, BINS_PER_SIGMA = 4, BAR = 48 };

/* With fewer losses beyond VaR, their standard error would be a guess. */
enum { SMALLEST_TAIL = 50 };

enum verdict { RUN, HELP, WRONG };

struct asset {
    const char *name;
    double value;      /* millions; negative: sold short */
    double volatility; /* standard deviation of a year's return */
    double drift;      /* mean of a year's return */
    double market;     /* how it goes with the market .. */
    double rates;      /* .. and with interest rates; squares add up to less than 1 */
};

static const struct asset assets[] = {
    {"shares, Europe", 22, 0.19, 0.06, 0.85, -0.10}, {"shares, America", 28, 0.18, 0.07, 0.90, -0.05},
    {"shares, Asia", 12, 0.24, 0.08, 0.75, 0.05},    {"government bonds", 25, 0.06, 0.03, -0.25, -0.85},
    {"company bonds", 14, 0.08, 0.04, 0.35, -0.70},  {"oil", 5, 0.38, 0.03, 0.40, 0.35},
    {"gold", 8, 0.16, 0.02, -0.05, -0.30},           {"futures sold, America", -10, 0.18, 0.07, 0.88, -0.02},
};
enum { ASSETS = sizeof assets / sizeof assets[0] };
_Static_assert(ASSETS % 2 == 0, "normal deviates come in pairs");

struct options {
    long long scenarios;
    double confidence;
    int days, seed;
    int colour, quiet, spoil;
};

/* The loss is a constant minus a weighted sum of correlated normal deviates. */
struct model {
    double gain;                   /* expected, in the days looked at */
    double weights[ASSETS];        /* what one standard deviation of an asset brings */
    double mixing[ASSETS][ASSETS]; /* lower triangle: independent deviates into correlated ones */
    double sigma;                  /* the loss's standard deviation */
    double exact_var, exact_es;
};

/* What rank 0 finds out. */
struct outcome {
    double var, es;
    double var_error, es_error; /* standard errors */
    long long tail, gathered;   /* scenarios beyond VaR; losses that rank 0 got to see */
    long long counts[BINS];
    double mean, deviation;
    double seconds, simulating; /* simulating: the mean over the ranks */
};

static void *allocate(size_t count, size_t bytes)
{
    void *memory = calloc(count > 0 ? count : 1, bytes);
    if (memory == NULL) {
        fprintf(stderr, "var: no memory for %zu times %zu bytes\n", count, bytes);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    return memory;
}

static void print_help(void)
{
    printf("usage: var [options]\n"
           "  --scenarios N    futures to simulate, all ranks together (4000000)\n"
           "  --confidence P   in percent, from 50 to 99.99 (99)\n"
           "  --days N         how far to look ahead (1)\n"
           "  --seed N         which random numbers (1)\n"
           "  --colour         colours even if the output is no terminal\n"
           "  --quiet          print the result line alone\n"
           "  --spoil          make the worst losses a tenth worse, to see that the check finds it\n");
}

/* Reads a number between low and high; says so and returns 0 if there is none. */
static int read_number(const char *name, const char *text, double low, double high, double *number)
{
    char *end;
    *number = strtod(text, &end);
    if (end == text || *end != '\0' || !(*number >= low && *number <= high)) {
        fprintf(stderr, "var: --%s needs a number from %.10g to %.10g, not '%s'\n", name, low, high, text);
        return 0;
    }
    return 1;
}

/* How many scenarios lie beyond VaR. */
static long long tail_of(const struct options *o)
{
    return llround((1 - o->confidence) * (double)o->scenarios);
}

static enum verdict read_options(int argc, char **argv, struct options *o)
{
    static const struct option names[] = {
        {"scenarios", 1, NULL, 'n'}, {"confidence", 1, NULL, 'c'}, {"days", 1, NULL, 'd'},
        {"seed", 1, NULL, 's'},      {"colour", 0, NULL, 'C'},     {"quiet", 0, NULL, 'q'},
        {"spoil", 0, NULL, 'S'},     {"help", 0, NULL, 'h'},       {NULL, 0, NULL, 0}};
    double scenarios = 4e6, confidence = 99, days = 1, seed = 1;
    *o = (struct options){.colour = isatty(STDOUT_FILENO)};
    int fine = 1, choice;
    while (fine && (choice = getopt_long(argc, argv, "", names, NULL)) != -1) {
        switch (choice) {
        case 'n':
            fine = read_number("scenarios", optarg, 100, 2e9, &scenarios);
            break;
        case 'c':
            fine = read_number("confidence", optarg, 50, 99.99, &confidence);
            break;
        case 'd':
            fine = read_number("days", optarg, 1, 10000, &days);
            break;
        case 's':
            fine = read_number("seed", optarg, 0, INT32_MAX, &seed);
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
        fprintf(stderr, "var: see --help\n");
        return WRONG;
    }
    o->scenarios = (long long)scenarios;
    o->confidence = confidence / 100;
    o->days = (int)days;
    o->seed = (int)seed;
    if (tail_of(o) < SMALLEST_TAIL) {
        fprintf(stderr, "var: too few scenarios: fewer than %d of them would lie beyond VaR\n", SMALLEST_TAIL);
        return WRONG;
    }
    return RUN;
}

static double correlation(int i, int j)
{
    return i == j ? 1 : assets[i].market * assets[j].market + assets[i].rates * assets[j].rates;
}

/* How much of a normal distribution lies above z. */
static double normal_above(double z)
{
    return erfc(z / sqrt(2)) / 2;
}

/* The z above which the part `above` of a normal distribution lies, by bisection. */
static double normal_quantile(double above)
{
    double low = -10, high = 10;
    for (int i = 0; i < 100; i++) {
        double middle = (low + high) / 2;
        if (normal_above(middle) > above)
            low = middle;
        else
            high = middle;
    }
    return low;
}

static double normal_density(double z)
{
    return exp(-z * z / 2) / sqrt(2 * PI);
}

/*
 * Cholesky's factor of the correlations: the lower triangle L with L L' = the correlations. If the z are independent
 * deviates, the L z are correlated as they should be.
 */
static void factor_correlations(double l[ASSETS][ASSETS])
{
    for (int i = 0; i < ASSETS; i++) {
        for (int j = 0; j <= i; j++) {
            double rest = correlation(i, j);
            for (int k = 0; k < j; k++)
                rest -= l[i][k] * l[j][k];
            l[i][j] = i == j ? sqrt(rest) : rest / l[j][j];
        }
    }
}

static void model_create(struct model *m, const struct options *o)
{
    double years = o->days / TRADING_DAYS, variance = 0;
    *m = (struct model){0};
    factor_correlations(m->mixing);
    for (int i = 0; i < ASSETS; i++) {
        m->gain += assets[i].value * assets[i].drift * years;
        m->weights[i] = assets[i].value * assets[i].volatility * sqrt(years);
    }
    for (int i = 0; i < ASSETS; i++)
        for (int j = 0; j < ASSETS; j++)
            variance += m->weights[i] * m->weights[j] * correlation(i, j);
    m->sigma = sqrt(variance);
    double above = 1 - o->confidence, z = normal_quantile(above);
    m->exact_var = m->sigma * z - m->gain;
    m->exact_es = m->sigma * normal_density(z) / above - m->gain;
}

/* Scrambles a number so that its neighbours come out unlike it (the finaliser of SplitMix64). */
static uint64_t scramble(uint64_t z)
{
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

/* Number `position` of the one sequence (SplitMix64), between 0 and 1 but neither of them. */
static double uniform(uint64_t origin, uint64_t position)
{
    return ((double)(scramble(origin + (position + 1) * UINT64_C(0x9e3779b97f4a7c15)) >> 12) + 0.5) * 0x1p-52;
}

/* The loss in one scenario, in millions. */
static double simulate(const struct model *m, uint64_t origin, long long scenario)
{
    double z[ASSETS], gain = m->gain;
    uint64_t position = (uint64_t)scenario * ASSETS;
    for (int i = 0; i < ASSETS; i += 2) { /* Box and Muller: two uniform numbers make two normal ones */
        double radius = sqrt(-2 * log(uniform(origin, position + (uint64_t)i)));
        double angle = 2 * PI * uniform(origin, position + (uint64_t)i + 1);
        z[i] = radius * cos(angle);
        z[i + 1] = radius * sin(angle);
    }
    for (int i = 0; i < ASSETS; i++) {
        double mixed = 0;
        for (int j = 0; j <= i; j++)
            mixed += m->mixing[i][j] * z[j];
        gain += m->weights[i] * mixed;
    }
    return -gain;
}

/* The bin of the histogram into which a loss falls; its middle is the expected loss. */
static int bin_of(const struct model *m, double loss)
{
    double bin = floor((loss + m->gain) / m->sigma * BINS_PER_SIGMA) + BINS / 2;
    return bin < 0 ? 0 : bin >= BINS ? BINS - 1 : (int)bin;
}

static int descending(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;
    return (a < b) - (a > b);
}

/* On rank 0: reads VaR and ES off the worst losses, at least out->tail of them. */
static void judge_tail(const struct model *m, const struct options *o, double *worst, struct outcome *out)
{
    qsort(worst, (size_t)out->gathered, sizeof *worst, descending);
    double sum = 0, squares = 0, n = (double)o->scenarios, tail = (double)out->tail;
    for (long long i = 0; i < out->tail; i++)
        sum += worst[i];
    out->var = worst[out->tail - 1];
    out->es = sum / tail;
    for (long long i = 0; i < out->tail; i++)
        squares += (worst[i] - out->es) * (worst[i] - out->es);
    /* How far a quantile, and a mean beyond a quantile, of n draws scatter about the truth. */
    double above = 1 - o->confidence, z = normal_quantile(above);
    double beyond = out->es - out->var;
    out->var_error = sqrt(above * (1 - above) / n) * m->sigma / normal_density(z);
    out->es_error = sqrt((squares / tail + (1 - above) * beyond * beyond) / tail);
}

/*
 * Brings the losses that may be among the worst to rank 0, which returns them; NULL on the others. The histogram tells
 * from which bin on: bins are counted from above until they hold enough scenarios.
 */
static double *gather_worst(const struct model *m, const double *losses, long long count, struct outcome *out)
{
    int rank, ranks, lowest = BINS;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    out->gathered = 0;
    while (out->gathered < out->tail)
        out->gathered += out->counts[--lowest];

    int mine = 0, *many = NULL, *where = NULL;
    double *bad = allocate((size_t)count, sizeof *bad), *worst = NULL;
    for (long long i = 0; i < count; i++)
        if (bin_of(m, losses[i]) >= lowest)
            bad[mine++] = losses[i];
    if (rank == 0) {
        many = allocate((size_t)ranks, sizeof *many);
        where = allocate((size_t)ranks, sizeof *where);
        worst = allocate((size_t)out->gathered, sizeof *worst);
    }
    MPI_Gather(&mine, 1, MPI_INT, many, 1, MPI_INT, 0, MPI_COMM_WORLD);
    for (int i = 1; rank == 0 && i < ranks; i++)
        where[i] = where[i - 1] + many[i - 1];
    MPI_Gatherv(bad, mine, MPI_DOUBLE, worst, many, where, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    free(bad);
    free(many);
    free(where);
    return worst;
}

static void run(const struct model *m, const struct options *o, struct outcome *out)
{
    int rank, ranks;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Barrier(MPI_COMM_WORLD);
    double start = MPI_Wtime();

    long long first = o->scenarios / ranks * rank + o->scenarios % ranks * rank / ranks;
    long long end = o->scenarios / ranks * (rank + 1) + o->scenarios % ranks * (rank + 1) / ranks;
    long long counts[BINS] = {0};
    double moments[2] = {0, 0}, sums[2] = {0, 0}; /* of the losses and of their squares */
    double *losses = allocate((size_t)(end - first), sizeof *losses);
    uint64_t origin = scramble((uint64_t)o->seed + 1);
    for (long long i = first; i < end; i++) {
        double loss = simulate(m, origin, i);
        losses[i - first] = loss;
        counts[bin_of(m, loss)]++;
        moments[0] += loss;
        moments[1] += loss * loss;
    }
    double mine[2] = {MPI_Wtime() - start, 0}, total = 0;

    out->tail = tail_of(o);
    MPI_Allreduce(counts, out->counts, BINS, MPI_LONG_LONG, MPI_SUM, MPI_COMM_WORLD);
    MPI_Reduce(moments, sums, 2, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    double *worst = gather_worst(m, losses, end - first, out);
    if (rank == 0) {
        for (long long i = 0; o->spoil && i < out->gathered; i++)
            worst[i] *= 1.1;
        judge_tail(m, o, worst, out);
        double n = (double)o->scenarios;
        out->mean = sums[0] / n;
        out->deviation = sqrt(sums[1] / n - out->mean * out->mean);
    }
    mine[1] = MPI_Wtime() - start;
    MPI_Reduce(&mine[0], &total, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    MPI_Reduce(&mine[1], &out->seconds, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    out->simulating = total / ranks;
    free(worst);
    free(losses);
}

static void print_portfolio(const struct model *m, const struct options *o)
{
    double total = 0, alone = 0;
    printf("asset                    millions   volatility\n");
    for (int i = 0; i < ASSETS; i++) {
        printf("%-22s %10.1f %10.0f %%\n", assets[i].name, assets[i].value, 100 * assets[i].volatility);
        total += assets[i].value;
        alone += fabs(m->weights[i]);
    }
    printf("%-22s %10.1f\n\n", "all", total);
    printf("standard deviation in %d day%s: %.3f millions; %.3f if nothing balanced out\n\n", o->days,
           o->days > 1 ? "s" : "", m->sigma, alone);
}

/* What lies beyond VaR is drawn with other marks; the bin that VaR divides, with both. */
static void print_histogram(const struct model *m, const struct options *o, const struct outcome *out)
{
    long long most = 1;
    for (int i = 0; i < BINS; i++)
        most = out->counts[i] > most ? out->counts[i] : most;
    printf("loss in millions   scenarios\n");
    for (int i = 0; i < BINS; i++) {
        double from = (double)(i - BINS / 2) / BINS_PER_SIGMA * m->sigma - m->gain;
        double to = from + m->sigma / BINS_PER_SIGMA;
        int length = (int)((double)out->counts[i] / (double)most * BAR + 0.5);
        length = length == 0 && out->counts[i] > 0 ? 1 : length;
        int beyond = from >= out->var ? length
                     : to <= out->var ? 0
                                      : (int)((to - out->var) / (to - from) * length + 0.5);
        printf("%s %9.3f %10lld  ",
               i == 0          ? "below "
               : i == BINS - 1 ? "from  "
                               : "      ",
               i == 0 ? to : from, out->counts[i]);
        if (o->colour)
            printf("\033[32m");
        for (int k = 0; k < length; k++) {
            if (o->colour && k == length - beyond)
                printf("\033[31m");
            putchar(k < length - beyond ? '#' : '!');
        }
        printf("%s%s\n", o->colour ? "\033[0m" : "", from < out->var && out->var <= to ? "  <- VaR" : "");
    }
    printf("\n");
}

static void print_outcome(const struct model *m, const struct options *o, const struct outcome *out, int right)
{
    int ranks;
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    double rate = (double)o->scenarios / out->seconds / 1e6;
    if (!o->quiet) {
        print_portfolio(m, o);
        print_histogram(m, o, out);
        printf("                          simulated   standard error   closed form\n");
        printf("mean loss                %10.4f       %10.4f    %10.4f\n", out->mean,
               m->sigma / sqrt((double)o->scenarios), -m->gain);
        printf("standard deviation       %10.4f       %10.4f    %10.4f\n", out->deviation,
               m->sigma / sqrt(2 * (double)o->scenarios), m->sigma);
        printf("VaR at %5.2f %%           %10.4f       %10.4f    %10.4f\n", 100 * o->confidence, out->var,
               out->var_error, m->exact_var);
        printf("expected shortfall       %10.4f       %10.4f    %10.4f  %s\n\n", out->es, out->es_error, m->exact_es,
               right ? "right" : "WRONG");
        printf("%lld scenarios on %d rank%s in %.3f s, %.3f s of them simulating: %.2f million a second\n",
               o->scenarios, ranks, ranks > 1 ? "s" : "", out->seconds, out->simulating, rate);
        printf("of the losses, %.2f %% went to rank 0\n", 100 * (double)out->gathered / (double)o->scenarios);
    }
    printf("result: example=var scenarios=%lld confidence=%.6g days=%d seed=%d var=%.12g es=%.12g exact_var=%.6f "
           "exact_es=%.6f gathered=%lld ok=%s ranks=%d seconds=%.6f simulating=%.6f mscenarios=%.4f\n",
           o->scenarios, 100 * o->confidence, o->days, o->seed, out->var, out->es, m->exact_var, m->exact_es,
           out->gathered, right ? "yes" : "no", ranks, out->seconds, out->simulating, rate);
}

/* Within five standard errors, and every scenario counted once. */
static int check(const struct model *m, const struct options *o, const struct outcome *out)
{
    long long sum = 0;
    for (int i = 0; i < BINS; i++)
        sum += out->counts[i];
    return sum == o->scenarios && fabs(out->var - m->exact_var) < 5 * out->var_error &&
           fabs(out->es - m->exact_es) < 5 * out->es_error;
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
    int right = verdict == HELP;
    if (verdict == RUN) {
        struct model model;
        struct outcome outcome = {0};
        model_create(&model, &options);
        run(&model, &options, &outcome);
        if (rank == 0) {
            right = check(&model, &options, &outcome);
            print_outcome(&model, &options, &outcome, right);
        }
        MPI_Bcast(&right, 1, MPI_INT, 0, MPI_COMM_WORLD); /* so that all ranks end alike */
    }
    MPI_Finalize();
    return right ? 0 : 1;
}
