/*
 * The Mandelbrot set, drawn in the terminal by all ranks together: what `make demo` shows.
 *
 * Rank 0 deals out lines of the picture. Some lines take a hundred times longer than others, so nobody gets a fixed
 * share: whoever hands in a line gets the next one, and the answers come from MPI_ANY_SOURCE in any order. The margin
 * of the picture shows which rank drew each line; the tables below it who did how much and how fast messages travel.
 *
 *     mpicc -O2 examples/mandelbrot.c -o mandelbrot -lm
 *     mpiexec -n 4 ./mandelbrot [--colour]
 */
#include <mpi.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    COLUMNS = 96,
    LINES = 38,
    SAMPLES = 10, /* in each direction, for each point of the picture: smooth edges, and work enough to share */
    DEPTH = 2500,
    HEAD = 3, /* an answer begins with: line, iterations, seconds */
    ANSWER = HEAD + 2 * COLUMNS,
    PINGS = 2000,
    BULKS = 40,
    BULK_BYTES = 1 << 20,
    DONE = -1,
};

enum tag { TAG_READY, TAG_LINE, TAG_ANSWER, TAG_CARD, TAG_PING };

/* What rank 0 knows about a rank. */
struct worker {
    char card[MPI_MAX_PROCESSOR_NAME + 32]; /* "host pid" */
    int lines;
    double iterations;
    double seconds;
    double half_trip; /* seconds for 8 bytes, one way */
    double bandwidth; /* bytes a second */
};

/* The part of the plane that is shown, and how; rank 0 decides, the others are told. */
struct view {
    double left, top, step; /* the step is that of a column; a line of text holds two points above each other */
    int colour;
};

/* How long z -> z*z + c stays near, as a smooth number between 0 and 1; 1 is for ever. */
static double shade_point(double cr, double ci, double *iterations)
{
    double zr = 0, zi = 0;
    for (int i = 0; i < DEPTH; i++) {
        double rr = zr * zr, ii = zi * zi;
        if (rr + ii > 256) {
            *iterations += i;
            double smooth = i + 1 - log2(log2(rr + ii) / 2);
            return smooth <= 1 ? 0 : fmin(log(smooth) / log(DEPTH), 0.999);
        }
        zi = 2 * zr * zi + ci;
        zr = rr - ii + cr;
    }
    *iterations += DEPTH;
    return 1;
}

static void draw_line(const struct view *view, int line, double *answer)
{
    double start = MPI_Wtime(), iterations = 0;
    double fine = view->step / SAMPLES;
    for (int point = 0; point < 2 * COLUMNS; point++) {
        double left = view->left + view->step * (point % COLUMNS);
        double top = view->top - view->step * (2 * line + point / COLUMNS);
        double sum = 0;
        for (int i = 0; i < SAMPLES * SAMPLES; i++)
            sum += shade_point(left + fine * (i % SAMPLES), top - fine * (i / SAMPLES), &iterations);
        answer[HEAD + point] = sum / (SAMPLES * SAMPLES);
    }
    answer[0] = line;
    answer[1] = iterations;
    answer[2] = MPI_Wtime() - start;
}

/* The life of every rank but 0: while an answer is on its way, the next line is already awaited. */
static void draw_for_master(const struct view *view)
{
    double answer[ANSWER];
    int line;
    MPI_Send(NULL, 0, MPI_BYTE, 0, TAG_READY, MPI_COMM_WORLD);
    MPI_Recv(&line, 1, MPI_INT, 0, TAG_LINE, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    while (line != DONE) {
        MPI_Request both[2];
        draw_line(view, line, answer);
        MPI_Irecv(&line, 1, MPI_INT, 0, TAG_LINE, MPI_COMM_WORLD, &both[0]);
        MPI_Isend(answer, ANSWER, MPI_DOUBLE, 0, TAG_ANSWER, MPI_COMM_WORLD, &both[1]);
        MPI_Waitall(2, both, MPI_STATUSES_IGNORE);
    }
}

static void keep_answer(const double *answer, int rank, double *picture, int *drawn_by, struct worker *worker)
{
    int line = (int)answer[0];
    memcpy(picture + (size_t)line * 2 * COLUMNS, answer + HEAD, 2 * COLUMNS * sizeof(double));
    drawn_by[line] = rank;
    worker->lines++;
    worker->iterations += answer[1];
    worker->seconds += answer[2];
}

/* Deals until every line has come back. Alone, rank 0 draws everything itself. */
static void deal_lines(const struct view *view, int size, double *picture, int *drawn_by, struct worker *workers)
{
    double answer[ANSWER];
    int next = 0, busy = size - 1;
    while (size == 1 && next < LINES) {
        draw_line(view, next++, answer);
        keep_answer(answer, 0, picture, drawn_by, &workers[0]);
    }
    while (busy > 0) {
        MPI_Status status;
        MPI_Probe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
        int from = status.MPI_SOURCE;
        if (status.MPI_TAG == TAG_READY) {
            MPI_Recv(NULL, 0, MPI_BYTE, from, TAG_READY, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        } else {
            MPI_Recv(answer, ANSWER, MPI_DOUBLE, from, TAG_ANSWER, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            keep_answer(answer, from, picture, drawn_by, &workers[from]);
        }
        int line = next < LINES ? next++ : DONE;
        busy -= line == DONE;
        MPI_Send(&line, 1, MPI_INT, from, TAG_LINE, MPI_COMM_WORLD);
    }
}

/* Sends `bytes` to and fro `times` times; the seconds that a message took one way. */
static double bounce(int partner, int first, char *buffer, int bytes, int times)
{
    double start = 0;
    for (int i = -times / 10; i < times; i++) { /* the first tenth warms up */
        if (i == 0)
            start = MPI_Wtime();
        if (first)
            MPI_Send(buffer, bytes, MPI_BYTE, partner, TAG_PING, MPI_COMM_WORLD);
        MPI_Recv(buffer, bytes, MPI_BYTE, partner, TAG_PING, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (!first)
            MPI_Send(buffer, bytes, MPI_BYTE, partner, TAG_PING, MPI_COMM_WORLD);
    }
    return (MPI_Wtime() - start) / times / 2;
}

/* Rank 0 plays with each of the others in turn, while those whose turn it is not sleep in their receive. */
static void time_messages(int rank, int size, struct worker *workers)
{
    char *buffer = calloc(1, BULK_BYTES);
    if (buffer == NULL)
        MPI_Abort(MPI_COMM_WORLD, 1);
    if (rank != 0) {
        bounce(0, 0, buffer, 8, PINGS);
        bounce(0, 0, buffer, BULK_BYTES, BULKS);
    }
    for (int other = 1; rank == 0 && other < size; other++) {
        workers[other].half_trip = bounce(other, 1, buffer, 8, PINGS);
        workers[other].bandwidth = BULK_BYTES / bounce(other, 1, buffer, BULK_BYTES, BULKS);
    }
    free(buffer);
}

/* Every rank tells rank 0 its host and pid. */
static void collect_cards(int rank, int size, struct worker *workers)
{
    char card[sizeof workers->card], host[MPI_MAX_PROCESSOR_NAME];
    int length;
    MPI_Get_processor_name(host, &length);
    length = snprintf(card, sizeof card, "%-20s %7d", host, (int)getpid());
    if (rank != 0) {
        MPI_Send(card, length, MPI_CHAR, 0, TAG_CARD, MPI_COMM_WORLD);
        return;
    }
    strcpy(workers[0].card, card);
    for (int i = 1; i < size; i++) {
        MPI_Status status;
        MPI_Recv(card, sizeof card - 1, MPI_CHAR, MPI_ANY_SOURCE, TAG_CARD, MPI_COMM_WORLD, &status);
        MPI_Get_count(&status, MPI_CHAR, &length);
        card[length] = '\0';
        strcpy(workers[status.MPI_SOURCE].card, card);
    }
}

/* Red, green and blue of a shade: from night over fire to white, and black for what never leaves. */
static void mix(double shade, int rgb[3])
{
    static const double stops[][4] = {{0.00, 8, 12, 48},     {0.20, 22, 60, 130},  {0.32, 60, 140, 190},
                                      {0.42, 250, 220, 140}, {0.55, 240, 120, 30}, {0.75, 150, 20, 20},
                                      {0.97, 20, 0, 10},     {1.00, 0, 0, 0}};
    int i = 1;
    while (stops[i][0] < shade && i < 7)
        i++;
    double part = (shade - stops[i - 1][0]) / (stops[i][0] - stops[i - 1][0]);
    for (int k = 0; k < 3; k++)
        rgb[k] = (int)(stops[i - 1][k + 1] + part * (stops[i][k + 1] - stops[i - 1][k + 1]));
}

static void print_line(const double *upper, const double *lower, int colour)
{
    static const char ramp[] = " ..::--==++**##%%@";
    for (int x = 0; x < COLUMNS; x++) {
        if (colour) {
            int up[3], low[3];
            mix(upper[x], up);
            mix(lower[x], low);
            printf("\033[38;2;%d;%d;%dm\033[48;2;%d;%d;%dm\u2580", up[0], up[1], up[2], low[0], low[1], low[2]);
        } else {
            double shade = (upper[x] + lower[x]) / 2;
            putchar(ramp[(int)(shade * (double)(sizeof ramp - 2) + 0.5)]);
        }
    }
}

static void print_picture(const double *picture, const int *drawn_by, int colour)
{
    for (int line = 0; line < LINES; line++) {
        const double *upper = picture + (size_t)line * 2 * COLUMNS;
        print_line(upper, upper + COLUMNS, colour);
        if (colour)
            printf("\033[0m \033[%dm%d\033[0m\n", 31 + drawn_by[line] % 6, drawn_by[line]);
        else
            printf(" |%d\n", drawn_by[line]);
    }
}

static void print_tables(const struct worker *workers, int size, double seconds)
{
    double all = 0;
    for (int i = 0; i < size; i++)
        all += workers[i].iterations;
    printf("\n%d ranks, %.0f million iterations in %.2f s. The number beside a line is the rank that drew it.\n\n",
           size, all / 1e6, seconds);
    printf("rank  host                     pid  lines   share   busy     8 bytes one way   1 MiB messages\n");
    for (int i = 0; i < size; i++) {
        const struct worker *w = &workers[i];
        printf("%4d  %s  %5d  %5.1f%%  %4.2f s", i, w->card, w->lines, 100 * w->iterations / all, w->seconds);
        if (i == 0)
            printf("  %s\n", size > 1 ? "(deals, and times the messages to the others)" : "");
        else
            printf("  %13.2f us   %9.2f GB/s\n", w->half_trip * 1e6, w->bandwidth / 1e9);
    }
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    int rank, size;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);

    struct view view = {0};
    if (rank == 0)
        view = (struct view){
            .left = -2.2, .top = 1.23, .step = 3.1 / COLUMNS, .colour = argc > 1 && strcmp(argv[1], "--colour") == 0};
    MPI_Bcast(&view, sizeof view, MPI_BYTE, 0, MPI_COMM_WORLD);

    struct worker *workers = calloc((size_t)size, sizeof *workers);
    double *picture = calloc((size_t)LINES * 2 * COLUMNS, sizeof *picture);
    int drawn_by[LINES] = {0};
    if (workers == NULL || picture == NULL)
        MPI_Abort(MPI_COMM_WORLD, 1);

    MPI_Barrier(MPI_COMM_WORLD);
    double start = MPI_Wtime();
    if (rank == 0)
        deal_lines(&view, size, picture, drawn_by, workers);
    else
        draw_for_master(&view);
    MPI_Barrier(MPI_COMM_WORLD);
    double seconds = MPI_Wtime() - start;

    collect_cards(rank, size, workers);
    time_messages(rank, size, workers);
    if (rank == 0) {
        print_picture(picture, drawn_by, view.colour);
        print_tables(workers, size, seconds);
    }
    free(picture);
    free(workers);
    MPI_Finalize();
    return 0;
}
