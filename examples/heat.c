/*
 * Heat flow on a plate: the ranks share a grid of temperatures and trade its seams after every step.
 *
 * The plate starts at 0 degrees. Burners heat three of its edges, the fourth stays cold. In each step of time every
 * point becomes the mean of its four neighbours. The ranks form a grid of their own (a Cartesian topology), each of
 * them owns one block of the plate and keeps around it a halo, one point wide, with copies of the points that its
 * neighbours own.
 *
 * To look out for:
 *   - MPI_Dims_create and MPI_Cart_create lay the ranks out, MPI_Cart_shift tells who the neighbours are. At the edge
 * of the plate the neighbour is MPI_PROC_NULL: messages to and from it do nothing, so no edge needs code of its own.
 *   - A column of a block does not lie in one piece in memory. MPI_Type_vector describes it once, and a column is then
 *     sent like anything else. MPI_Type_create_subarray does the same for whole blocks, when the plate is put together.
 *   - While the halos travel (MPI_Isend, MPI_Irecv), the inner points, which need no halo, are computed already.
 *   - MPI_Allreduce tells all ranks the largest change, so that all of them decide alike whether to stop.
 *
 * Is the answer right? A burner's temperature along its edge is a sine or two. The plate's answer to a sine is that
 * sine along the edge times a profile across the plate, and the profile obeys a small equation in one dimension. So the
 * exact field, rounding apart, is known at every step, and each rank compares its block with it.
 *
 *     mpicc -O2 examples/heat.c -o heat -lm
 *     mpiexec -n 4 ./heat [--help]
 */
#include <mpi.h>
#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const double PI = 3.14159265358979323846;

enum { PICTURE_COLUMNS = 76, PICTURE_LINES = 24, HALO_TAG = 1, BLOCK_TAG = 2 };
enum verdict { RUN, HELP, WRONG };
enum side { TOP, BOTTOM, LEFT };

/* One sine of the temperature along one edge. */
struct burner {
    enum side side;
    int mode; /* so many half waves along the edge */
    double degrees;
};

/* At the top two flames (sin a + sin 3a has two humps), below one narrow flame, at the left one broad and mild. */
static const struct burner burners[] = {
    {TOP, 1, 64}, {TOP, 3, 64}, {BOTTOM, 1, 72}, {BOTTOM, 3, -24}, {LEFT, 1, 60},
};
enum { BURNERS = sizeof burners / sizeof burners[0] };

struct options {
    int rows, columns, steps, every;
    double tolerance;
    int colour, quiet, spoil;
};

/* A rank's block of the plate, and its place among the ranks. */
struct block {
    MPI_Comm comm; /* the ranks as a grid */
    int rank, size, dims[2], coords[2];
    int above, below, left, right; /* the neighbours' ranks, or MPI_PROC_NULL */
    int first_row, first_column;   /* where the block lies in the plate, counted from 0 */
    int rows, columns;             /* what this rank owns; the halo comes on top */
    int width;                     /* of a line in memory: columns + 2 */
    double *now, *next;            /* (rows + 2) * width each; the owned points begin at [1][1] */
    MPI_Datatype column;           /* one owned column */
};

/* What a run has cost and brought; the same on all ranks. */
struct outcome {
    int steps;
    double change, error, mean;
    double seconds, waiting; /* waiting: the mean over the ranks */
};

static void *allocate(size_t count, size_t bytes)
{
    void *memory = calloc(count, bytes);
    if (memory == NULL) {
        fprintf(stderr, "heat: no memory for %zu times %zu bytes\n", count, bytes);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    return memory;
}

static void print_help(void)
{
    printf("usage: heat [options]\n"
           "  --rows N        points of the plate from top to bottom (192)\n"
           "  --columns N     points from left to right (384)\n"
           "  --steps N       stop after N steps (8000)\n"
           "  --every N       look at the largest change every N steps (100)\n"
           "  --tolerance T   stop when no point changes by more than T degrees a step (0.0001)\n"
           "  --colour        colours even if the output is no terminal\n"
           "  --quiet         print the result line alone\n"
           "  --spoil         disturb one point at the end, to see that the check finds it\n");
}

/* Reads a whole number between low and high; says so and returns 0 if there is none. */
static int read_number(const char *name, const char *text, int low, int high, int *number)
{
    char *end;
    long value = strtol(text, &end, 10);
    if (end == text || *end != '\0' || value < low || value > high) {
        fprintf(stderr, "heat: --%s needs a number from %d to %d, not '%s'\n", name, low, high, text);
        return 0;
    }
    *number = (int)value;
    return 1;
}

static enum verdict read_options(int argc, char **argv, struct options *o)
{
    static const struct option names[] = {
        {"rows", 1, NULL, 'r'},      {"columns", 1, NULL, 'c'}, {"steps", 1, NULL, 's'}, {"every", 1, NULL, 'e'},
        {"tolerance", 1, NULL, 't'}, {"colour", 0, NULL, 'C'},  {"quiet", 0, NULL, 'q'}, {"spoil", 0, NULL, 'S'},
        {"help", 0, NULL, 'h'},      {NULL, 0, NULL, 0}};
    *o = (struct options){.rows = 192, .columns = 384, .steps = 8000, .every = 100, .tolerance = 1e-4};
    o->colour = isatty(STDOUT_FILENO);
    int fine = 1, choice;
    while (fine && (choice = getopt_long(argc, argv, "", names, NULL)) != -1) {
        char *end = NULL;
        switch (choice) {
        case 'r':
            fine = read_number("rows", optarg, 1, 1 << 20, &o->rows);
            break;
        case 'c':
            fine = read_number("columns", optarg, 1, 1 << 20, &o->columns);
            break;
        case 's':
            fine = read_number("steps", optarg, 1, 1 << 30, &o->steps);
            break;
        case 'e':
            fine = read_number("every", optarg, 1, 1 << 30, &o->every);
            break;
        case 't':
            o->tolerance = strtod(optarg, &end);
            fine = end != optarg && *end == '\0';
            if (!fine)
                fprintf(stderr, "heat: --tolerance needs a number, not '%s'\n", optarg);
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
        fprintf(stderr, "heat: see --help\n");
        return WRONG;
    }
    return RUN;
}

/* The temperature that the burners keep at point `at` (counted from 1) of an edge of `length` points. */
static double edge_temperature(enum side side, int at, int length)
{
    double sum = 0;
    for (int i = 0; i < BURNERS; i++)
        if (burners[i].side == side)
            sum += burners[i].degrees * sin(burners[i].mode * PI * at / (length + 1));
    return sum;
}

/* Where part `index` of `parts` nearly equal parts of `length` points begins. */
static int part_begin(int length, int parts, int index)
{
    return (int)((long long)length * index / parts);
}

/*
 * Writes the burners' temperatures into the halo, where the block touches a heated edge. No message ever overwrites
 * them: there the neighbour is MPI_PROC_NULL.
 */
static void heat_edges(const struct block *b, const struct options *o, double *field)
{
    for (int column = 1; column <= b->columns; column++) {
        if (b->above == MPI_PROC_NULL)
            field[column] = edge_temperature(TOP, b->first_column + column, o->columns);
        if (b->below == MPI_PROC_NULL)
            field[(size_t)(b->rows + 1) * b->width + column] =
                edge_temperature(BOTTOM, b->first_column + column, o->columns);
    }
    for (int row = 1; row <= b->rows && b->left == MPI_PROC_NULL; row++)
        field[(size_t)row * b->width] = edge_temperature(LEFT, b->first_row + row, o->rows);
}

static void block_create(struct block *b, const struct options *o, const int dims[2])
{
    int open_ends[2] = {0, 0}; /* the plate is no ring: it ends on all sides */
    memcpy(b->dims, dims, sizeof b->dims);
    /* The last but one argument allows the library to number the ranks anew, so that neighbours are close. */
    MPI_Cart_create(MPI_COMM_WORLD, 2, dims, open_ends, 1, &b->comm);
    MPI_Comm_rank(b->comm, &b->rank);
    MPI_Comm_size(b->comm, &b->size);
    MPI_Cart_coords(b->comm, b->rank, 2, b->coords);
    MPI_Cart_shift(b->comm, 0, 1, &b->above, &b->below);
    MPI_Cart_shift(b->comm, 1, 1, &b->left, &b->right);

    b->first_row = part_begin(o->rows, dims[0], b->coords[0]);
    b->first_column = part_begin(o->columns, dims[1], b->coords[1]);
    b->rows = part_begin(o->rows, dims[0], b->coords[0] + 1) - b->first_row;
    b->columns = part_begin(o->columns, dims[1], b->coords[1] + 1) - b->first_column;
    b->width = b->columns + 2;
    b->now = allocate((size_t)(b->rows + 2) * b->width, sizeof(double));
    b->next = allocate((size_t)(b->rows + 2) * b->width, sizeof(double));
    heat_edges(b, o, b->now);
    heat_edges(b, o, b->next);

    /* One point in each of `rows` lines; from one to the next it is `width` points. */
    MPI_Type_vector(b->rows, 1, b->width, MPI_DOUBLE, &b->column);
    MPI_Type_commit(&b->column);
}

static void block_destroy(struct block *b)
{
    MPI_Type_free(&b->column);
    MPI_Comm_free(&b->comm);
    free(b->now);
    free(b->next);
}

/* Starts four sends of the block's rim and four receives into its halo. */
static void start_halos(struct block *b, MPI_Request requests[8])
{
    double *rim = b->now + b->width + 1; /* the first point that is ours */
    double *last_row = rim + (size_t)(b->rows - 1) * b->width;
    double *last_column = rim + b->columns - 1;
    MPI_Irecv(rim - b->width, b->columns, MPI_DOUBLE, b->above, HALO_TAG, b->comm, &requests[0]);
    MPI_Irecv(last_row + b->width, b->columns, MPI_DOUBLE, b->below, HALO_TAG, b->comm, &requests[1]);
    MPI_Irecv(rim - 1, 1, b->column, b->left, HALO_TAG, b->comm, &requests[2]);
    MPI_Irecv(last_column + 1, 1, b->column, b->right, HALO_TAG, b->comm, &requests[3]);
    MPI_Isend(rim, b->columns, MPI_DOUBLE, b->above, HALO_TAG, b->comm, &requests[4]);
    MPI_Isend(last_row, b->columns, MPI_DOUBLE, b->below, HALO_TAG, b->comm, &requests[5]);
    MPI_Isend(rim, 1, b->column, b->left, HALO_TAG, b->comm, &requests[6]);
    MPI_Isend(last_column, 1, b->column, b->right, HALO_TAG, b->comm, &requests[7]);
}

/* One step for the rows and columns from .. to, both included. */
static void relax(struct block *b, int row_from, int row_to, int column_from, int column_to)
{
    size_t width = (size_t)b->width;
    for (int row = row_from; row <= row_to; row++) {
        const double *restrict here = b->now + (size_t)row * width;
        double *restrict there = b->next + (size_t)row * width;
        for (int x = column_from; x <= column_to; x++)
            there[x] = 0.25 * ((here[x - width] + here[x + width]) + (here[x - 1] + here[x + 1]));
    }
}

/* A whole step; returns the seconds spent waiting for the halos. */
static double advance(struct block *b)
{
    MPI_Request requests[8];
    start_halos(b, requests);
    relax(b, 2, b->rows - 1, 2, b->columns - 1);
    double start = MPI_Wtime();
    MPI_Waitall(8, requests, MPI_STATUSES_IGNORE);
    double waited = MPI_Wtime() - start;
    relax(b, 1, 1, 1, b->columns);
    if (b->rows > 1)
        relax(b, b->rows, b->rows, 1, b->columns);
    relax(b, 2, b->rows - 1, 1, 1);
    if (b->columns > 1)
        relax(b, 2, b->rows - 1, b->columns, b->columns);
    double *old = b->now;
    b->now = b->next;
    b->next = old;
    return waited;
}

/* How far the last step has moved the point that moved most, on the whole plate. */
static double largest_change(const struct block *b)
{
    double mine = 0, all;
    for (int row = 1; row <= b->rows; row++)
        for (int x = 1; x <= b->columns; x++)
            mine = fmax(mine, fabs(b->now[(size_t)row * b->width + x] - b->next[(size_t)row * b->width + x]));
    MPI_Allreduce(&mine, &all, 1, MPI_DOUBLE, MPI_MAX, b->comm);
    return all;
}

static void run(struct block *b, const struct options *o, struct outcome *outcome)
{
    double waited = 0;
    MPI_Barrier(b->comm);
    double start = MPI_Wtime();
    outcome->change = INFINITY;
    for (outcome->steps = 0; outcome->steps < o->steps && outcome->change > o->tolerance;) {
        waited += advance(b);
        outcome->steps++;
        if (outcome->steps % o->every == 0 || outcome->steps == o->steps) {
            double before = MPI_Wtime();
            outcome->change = largest_change(b);
            waited += MPI_Wtime() - before;
        }
    }
    double mine = MPI_Wtime() - start;
    MPI_Allreduce(&mine, &outcome->seconds, 1, MPI_DOUBLE, MPI_MAX, b->comm);
    MPI_Allreduce(&waited, &outcome->waiting, 1, MPI_DOUBLE, MPI_SUM, b->comm);
    outcome->waiting /= b->size;
}

/*
 * The plate's answer to one sine of `mode` half waves along an edge of `along` points: profile[d] is what it comes to
 * at distance d from the edge. For such a sine the two neighbours along the edge add up to 2 cos(..) times the point.
 */
static void compute_profile(int mode, int along, int across, int steps, double *profile)
{
    double sideways = 0.5 * cos(mode * PI / (along + 1));
    double *old = allocate((size_t)across + 2, sizeof *old);
    memset(profile, 0, ((size_t)across + 2) * sizeof *profile);
    profile[0] = 1; /* the edge itself; profile[across + 1], the edge opposite, stays cold */
    for (int step = 0; step < steps; step++) {
        memcpy(old, profile, ((size_t)across + 2) * sizeof *old);
        for (int d = 1; d <= across; d++)
            profile[d] = 0.25 * (old[d - 1] + old[d + 1]) + sideways * old[d];
    }
    free(old);
}

/* Subtracts from `field` what one burner brings to each point of the block: what remains of the field is the error. */
static void subtract_burner(const struct block *b, const struct options *o, int steps, const struct burner *burner,
                            double *field)
{
    int along = burner->side == LEFT ? o->rows : o->columns;
    int across = burner->side == LEFT ? o->columns : o->rows;
    double *profile = allocate((size_t)across + 2, sizeof *profile);
    double *wave = allocate((size_t)along + 2, sizeof *wave);
    compute_profile(burner->mode, along, across, steps, profile);
    for (int i = 1; i <= along; i++)
        wave[i] = burner->degrees * sin(burner->mode * PI * i / (along + 1));
    for (int row = 1; row <= b->rows; row++) {
        for (int column = 1; column <= b->columns; column++) {
            int y = b->first_row + row, x = b->first_column + column;
            double part = burner->side == LEFT  ? wave[y] * profile[x]
                          : burner->side == TOP ? wave[x] * profile[y]
                                                : wave[x] * profile[o->rows + 1 - y];
            field[(size_t)row * b->width + column] -= part;
        }
    }
    free(wave);
    free(profile);
}

/* Compares with the exact field, and takes the mean. The field is left as it was; `next` is used as scratch. */
static void check(struct block *b, const struct options *o, struct outcome *outcome)
{
    double error = 0, sum = 0, all;
    memcpy(b->next, b->now, (size_t)(b->rows + 2) * b->width * sizeof(double));
    for (int i = 0; i < BURNERS; i++)
        subtract_burner(b, o, outcome->steps, &burners[i], b->next);
    for (int row = 1; row <= b->rows; row++) {
        for (int x = 1; x <= b->columns; x++) {
            error = fmax(error, fabs(b->next[(size_t)row * b->width + x]));
            sum += b->now[(size_t)row * b->width + x];
        }
    }
    MPI_Allreduce(&error, &outcome->error, 1, MPI_DOUBLE, MPI_MAX, b->comm);
    MPI_Allreduce(&sum, &all, 1, MPI_DOUBLE, MPI_SUM, b->comm);
    outcome->mean = all / ((double)o->rows * o->columns);
}

/*
 * Puts the plate together on rank 0. Sender and receiver describe the same block each in its own memory: the sender as
 * a part of its block with halo, the receiver as a part of the plate. Nobody copies lines by hand.
 */
static double *collect_plate(const struct block *b, const struct options *o)
{
    double *plate = NULL;
    MPI_Request *requests = NULL;
    int whole[2] = {o->rows, o->columns};
    if (b->rank == 0) {
        plate = allocate((size_t)o->rows * o->columns, sizeof *plate);
        requests = allocate((size_t)b->size, sizeof(MPI_Request));
        for (int from = 0; from < b->size; from++) {
            int coords[2], first[2], part[2];
            MPI_Cart_coords(b->comm, from, 2, coords);
            for (int k = 0; k < 2; k++) {
                first[k] = part_begin(whole[k], b->dims[k], coords[k]);
                part[k] = part_begin(whole[k], b->dims[k], coords[k] + 1) - first[k];
            }
            MPI_Datatype window;
            MPI_Type_create_subarray(2, whole, part, first, MPI_ORDER_C, MPI_DOUBLE, &window);
            MPI_Type_commit(&window);
            MPI_Irecv(plate, 1, window, from, BLOCK_TAG, b->comm, &requests[from]);
            MPI_Type_free(&window); /* it lives on until the receive is done */
        }
    }
    int with_halo[2] = {b->rows + 2, b->width}, owned[2] = {b->rows, b->columns}, start[2] = {1, 1};
    MPI_Datatype inner;
    MPI_Type_create_subarray(2, with_halo, owned, start, MPI_ORDER_C, MPI_DOUBLE, &inner);
    MPI_Type_commit(&inner);
    MPI_Send(b->now, 1, inner, 0, BLOCK_TAG, b->comm);
    MPI_Type_free(&inner);
    if (b->rank == 0)
        MPI_Waitall(b->size, requests, MPI_STATUSES_IGNORE);
    free(requests);
    return plate;
}

/* Red, green and blue of a temperature: from deep blue over red and yellow to white. */
static void mix(double degrees, int rgb[3])
{
    static const double stops[][4] = {{0, 10, 12, 50},   {12, 50, 20, 110},  {30, 160, 30, 90},
                                      {55, 230, 90, 30}, {80, 250, 200, 60}, {100, 255, 255, 230}};
    int i = 1;
    double bounded = fmin(fmax(degrees, 0), 100);
    while (i < 5 && stops[i][0] < bounded)
        i++;
    double part = (bounded - stops[i - 1][0]) / (stops[i][0] - stops[i - 1][0]);
    for (int k = 0; k < 3; k++)
        rgb[k] = (int)(stops[i - 1][k + 1] + part * (stops[i][k + 1] - stops[i - 1][k + 1]));
}

/* The plate's temperature in the middle of field (x, y) of a picture of so many fields. */
static double sample(const double *plate, const struct options *o, int x, int y, int wide, int high)
{
    int row = (int)((long long)(2 * y + 1) * o->rows / (2 * high));
    int column = (int)((long long)(2 * x + 1) * o->columns / (2 * wide));
    return plate[(size_t)row * o->columns + column];
}

static void print_picture(const double *plate, const struct options *o)
{
    static const char ramp[] = " .,:;-=+*oxOX#%@";
    for (int y = 0; y < PICTURE_LINES; y++) {
        for (int x = 0; x < PICTURE_COLUMNS; x++) {
            if (o->colour) { /* a half block shows two points above each other */
                int up[3], low[3];
                mix(sample(plate, o, x, 2 * y, PICTURE_COLUMNS, 2 * PICTURE_LINES), up);
                mix(sample(plate, o, x, 2 * y + 1, PICTURE_COLUMNS, 2 * PICTURE_LINES), low);
                printf("\033[38;2;%d;%d;%dm\033[48;2;%d;%d;%dm\u2580", up[0], up[1], up[2], low[0], low[1], low[2]);
            } else {
                double degrees = fmin(fmax(sample(plate, o, x, y, PICTURE_COLUMNS, PICTURE_LINES), 0), 100);
                putchar(ramp[(int)(degrees / 100 * (double)(sizeof ramp - 2) + 0.5)]);
            }
        }
        printf("%s|\n", o->colour ? "\033[0m" : "");
    }
    if (!o->colour)
        printf("from '%c', 0 degrees, to '%c', 100 degrees: %s\n", ramp[0], ramp[sizeof ramp - 2], ramp);
}

static void print_outcome(const struct block *b, const struct options *o, const struct outcome *outcome, int right)
{
    double points = (double)o->rows * o->columns;
    if (!o->quiet) {
        printf("\n%d x %d points after %d steps on %d x %d ranks, each with about %d x %d points\n", o->rows,
               o->columns, outcome->steps, b->dims[0], b->dims[1], b->rows, b->columns);
        printf("mean temperature %.3f degrees, the last step changed no point by more than %.2e\n", outcome->mean,
               outcome->change);
        printf("%.3f s, of them %.3f s waiting for other ranks: %.1f million points a second\n", outcome->seconds,
               outcome->waiting, points * outcome->steps / outcome->seconds / 1e6);
        printf("largest distance from the exact field: %.1e degrees, %s\n", outcome->error, right ? "right" : "WRONG");
    }
    printf(
        "result: example=heat rows=%d columns=%d steps=%d change=%.6e mean=%.6f error=%.1e ok=%s ranks=%d grid=%dx%d "
        "seconds=%.6f waiting=%.6f mpoints=%.3f\n",
        o->rows, o->columns, outcome->steps, outcome->change, outcome->mean, outcome->error, right ? "yes" : "no",
        b->size, b->dims[0], b->dims[1], outcome->seconds, outcome->waiting,
        points * outcome->steps / outcome->seconds / 1e6);
}

/* Rank 0 reads the options; the others hear from it what they are and whether to run at all. */
static enum verdict agree_options(int argc, char **argv, struct options *o, int dims[2])
{
    int rank, size, verdict = RUN;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    dims[0] = dims[1] = 0; /* zero: free to choose */
    MPI_Dims_create(size, 2, dims);
    if (rank == 0) {
        verdict = read_options(argc, argv, o);
        if (verdict == RUN && (o->rows < dims[0] || o->columns < dims[1])) {
            fprintf(stderr, "heat: a plate of %d x %d points is too small for %d x %d ranks\n", o->rows, o->columns,
                    dims[0], dims[1]);
            verdict = WRONG;
        }
    }
    MPI_Bcast(&verdict, 1, MPI_INT, 0, MPI_COMM_WORLD);
    MPI_Bcast(o, sizeof *o, MPI_BYTE, 0, MPI_COMM_WORLD);
    return (enum verdict)verdict;
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    struct options options;
    int dims[2];
    enum verdict verdict = agree_options(argc, argv, &options, dims);
    int right = verdict == HELP;
    if (verdict == RUN) {
        struct block block;
        struct outcome outcome;
        block_create(&block, &options, dims);
        run(&block, &options, &outcome);
        if (options.spoil && block.rank == block.size - 1)
            block.now[block.width + 1] += 1e-3;
        check(&block, &options, &outcome);
        right = outcome.error < 1e-9;
        double *plate = options.quiet ? NULL : collect_plate(&block, &options);
        if (plate != NULL)
            print_picture(plate, &options);
        if (block.rank == 0)
            print_outcome(&block, &options, &outcome, right);
        free(plate);
        block_destroy(&block);
    }
    MPI_Finalize();
    return right ? 0 : 1;
}
