/* What bench/gateways measures of messages that cross gateways. Times are those of CLOCK_MONOTONIC, which all hosts of
 * a lab share, so one way can be timed. Words in capitals are numbers of ranks, bytes and seconds. Data is random
 * unless a file is named: a link that compresses gains nothing.
 *
 * usage: gateways long FROM TO BYTES random|FILE COUNT       messages, one after the other: "long SECONDS" each
 *        gateways far BYTES COUNT bcast|send                 one way, from the first rank to the last, which waits:
 * "far WARM COLD" in seconds, medians of COUNT, each a tenth of a second after the last, and of some after a rest
 *        gateways ping ONE OTHER BYTES SECONDS               half a round trip: "ping MEDIAN" in microseconds
 *        gateways pairs BYTES 1|2 COUNT                      each of the first half to its partner in the second, or
 * both to each other: "pairs SECONDS" each, until the last has it gateways pings BYTES SECONDS half round trips of
 * these pairs at once: "pings PER_SECOND MEDIAN", that of the slowest pair in microseconds gateways fan BYTES ROUNDS
 * all to the last rank: "fan SECONDS LONGEST_SEND" each gateways beside ONE OTHER FROM TO BYTES SECONDS     8 bytes
 * between two: "idle MEDIAN P90"; and while a long message passes between others: "loaded ..." gateways stopped ONE
 * OTHER FROM TO BYTES SECONDS    from one to the other: "rate MBIT"; and while TO has stopped itself in the midst of a
 * long message gateways field ROWS COLUMNS STEPS FILE              writes the field of the heat example */
#include <mpi.h>

#include <math.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define PERIOD_S    0.2 /* of a round of fan */
#define SAMPLES_MAX 200000
#define WARM_UP     5
#define TAG         1
#define BIG_TAG     2
#define PIECE       (64 << 10) /* of a rate */
#define SHORT_BYTES 8
#define PACE_S      0.05 /* of what is compared with ping */
#define WARM_S      0.1  /* from one message to the next, so that TCP has forgotten nothing */
#define COLD_S      1.0  /* and so that it has */
#define COLD_COUNT  3

static int rank, size;
static double samples[SAMPLES_MAX];

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void sleep_until(double instant)
{
    struct timespec t = {.tv_sec = (time_t)instant, .tv_nsec = (long)((instant - (double)(time_t)instant) * 1e9)};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) != 0)
        continue;
}

static void fail(const char *what)
{
    fprintf(stderr, "gateways: %s\n", what);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

static char *room(size_t bytes)
{
    char *memory = malloc(bytes + 1);
    if (memory == NULL)
        fail("no memory");
    memset(memory, 1, bytes);
    return memory;
}

static void fill_random(char *data, size_t bytes)
{
    uint64_t x = 0x9E3779B97F4A7C15u + (uint64_t)rank;
    for (size_t i = 0; i < bytes; i += sizeof x) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        memcpy(data + i, &x, bytes - i < sizeof x ? bytes - i : sizeof x);
    }
}

static void fill(char *data, size_t bytes, const char *source)
{
    if (strcmp(source, "random") == 0) {
        fill_random(data, bytes);
        return;
    }
    FILE *file = fopen(source, "r");
    if (file == NULL || fread(data, 1, bytes, file) != bytes)
        fail("the file is too short, or not there");
    fclose(file);
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double quantile(int count, double q)
{
    qsort(samples, (size_t)count, sizeof samples[0], compare);
    return count > 0 ? samples[(int)(q * (count - 1))] : 0;
}

static void say(const char *text)
{
    puts(text);
    fflush(stdout);
}

static void send_long(int from, int to, size_t bytes, const char *source, int count)
{
    char *data = rank == from || rank == to ? room(bytes) : NULL;
    if (rank == from)
        fill(data, bytes, source);
    for (int i = 0; i < count; i++) {
        double begin = 0, word = 0;
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank == from) {
            MPI_Recv(&word, 1, MPI_DOUBLE, to, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            begin = now();
            MPI_Send(data, (int)bytes, MPI_BYTE, to, BIG_TAG, MPI_COMM_WORLD);
            MPI_Send(&begin, 1, MPI_DOUBLE, to, TAG, MPI_COMM_WORLD);
        } else if (rank == to) {
            MPI_Request request;
            MPI_Irecv(data, (int)bytes, MPI_BYTE, from, BIG_TAG, MPI_COMM_WORLD, &request);
            MPI_Send(&word, 1, MPI_DOUBLE, from, TAG, MPI_COMM_WORLD);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
            double end = now();
            MPI_Recv(&begin, 1, MPI_DOUBLE, from, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            printf("long %.6f\n", end - begin);
            fflush(stdout);
        }
    }
    free(data);
}

/* One message with the time at which it leaves. How long it took, at the end. */
static double send_far(MPI_Comm comm, char *data, int bytes, bool collective, double pause)
{
    int me, last = 1, word = 0;
    double begin = now(), end;
    MPI_Comm_rank(comm, &me);
    if (me == last) { /* posted before: who sends waits for the word, and then for its rest */
        MPI_Request request = MPI_REQUEST_NULL;
        if (!collective)
            MPI_Irecv(data, bytes, MPI_BYTE, 0, BIG_TAG, comm, &request);
        MPI_Send(&word, 1, MPI_INT, 0, TAG, comm);
        if (collective)
            MPI_Bcast(data, bytes, MPI_BYTE, 0, comm);
        else
            MPI_Wait(&request, MPI_STATUS_IGNORE);
        end = now();
        memcpy(&begin, data, sizeof begin);
        return end - begin;
    }
    MPI_Recv(&word, 1, MPI_INT, last, TAG, comm, MPI_STATUS_IGNORE);
    sleep_until(begin + pause);
    begin = now();
    memcpy(data, &begin, sizeof begin);
    if (collective)
        MPI_Bcast(data, bytes, MPI_BYTE, 0, comm);
    else
        MPI_Send(data, bytes, MPI_BYTE, last, BIG_TAG, comm);
    return 0;
}

static void far(int bytes, int count, bool collective)
{
    MPI_Comm pair;
    char *data = room((size_t)bytes);
    fill_random(data, (size_t)bytes);
    MPI_Comm_split(MPI_COMM_WORLD, rank == 0 || rank == size - 1 ? 0 : MPI_UNDEFINED, rank, &pair);
    if (pair != MPI_COMM_NULL) {
        for (int i = -WARM_UP; i < count; i++)
            samples[i < 0 ? 0 : i] = send_far(pair, data, bytes, collective, WARM_S);
        double warm = quantile(count, 0.5);
        for (int i = 0; i < COLD_COUNT; i++)
            samples[i] = send_far(pair, data, bytes, collective, COLD_S);
        if (rank != 0)
            printf("far %.6f %.6f\n", warm, quantile(COLD_COUNT, 0.5));
        MPI_Comm_free(&pair);
    }
    free(data);
}

/* One side counts and says when it is enough; returns how many half round trips are in samples, there. `pace`: seconds
 * from one to the next, so that slow times are not sampled less often than quick ones; 0: at once. */
static int ping(int one, int other, int bytes, double seconds, double pace)
{
    char data[1 << 16] = "";
    int on = 1, count = -WARM_UP;
    for (double end = now() + seconds; on != 0 && (rank == one || rank == other);) {
        if (rank == other) {
            MPI_Recv(data, bytes, MPI_BYTE, one, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_Send(data, bytes, MPI_BYTE, one, TAG, MPI_COMM_WORLD);
            memcpy(&on, data, sizeof on);
            continue;
        }
        if (pace > 0)
            sleep_until((floor(now() / pace) + 1) * pace);
        double begin = now();
        on = begin < end && count + 1 < SAMPLES_MAX;
        memcpy(data, &on, sizeof on);
        MPI_Send(data, bytes, MPI_BYTE, other, TAG, MPI_COMM_WORLD);
        MPI_Recv(data, bytes, MPI_BYTE, other, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (count >= 0)
            samples[count] = (now() - begin) * 1e6 / 2;
        count++;
    }
    return count < 0 ? 0 : count;
}

/* All pairs at once; the last one counts. */
static void send_pairs(size_t bytes, bool both, int count)
{
    int half = size / 2, partner = rank < half ? rank + half : rank - half;
    bool sends = rank < half || both, receives = rank >= half || both;
    char *data = room(bytes), *taken = room(bytes);
    fill_random(data, bytes);
    for (int i = 0; i < count; i++) {
        double begin, end, first, last;
        MPI_Request request = MPI_REQUEST_NULL;
        if (receives)
            MPI_Irecv(taken, (int)bytes, MPI_BYTE, partner, BIG_TAG, MPI_COMM_WORLD, &request);
        MPI_Barrier(MPI_COMM_WORLD);
        begin = now();
        if (sends)
            MPI_Send(data, (int)bytes, MPI_BYTE, partner, BIG_TAG, MPI_COMM_WORLD);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        end = now();
        MPI_Reduce(&begin, &first, 1, MPI_DOUBLE, MPI_MIN, 0, MPI_COMM_WORLD);
        MPI_Reduce(&end, &last, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
        if (rank == 0)
            printf("pairs %.6f\n", last - first);
    }
    free(data);
    free(taken);
}

static void ping_pairs(int bytes, double seconds)
{
    int half = size / 2, one = rank % half;
    MPI_Barrier(MPI_COMM_WORLD);
    int count = ping(one, one + half, bytes, seconds, 0);
    double mine[2] = {rank < half ? 2 * count / seconds : 0, rank < half ? quantile(count, 0.5) : 0}, rate, slowest;
    MPI_Reduce(&mine[0], &rate, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    MPI_Reduce(&mine[1], &slowest, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    if (rank == 0)
        printf("pings %.1f %.3f\n", rate, slowest);
}

static void fan(int bytes, int rounds)
{
    char *data = room((size_t)bytes);
    int root = size - 1;
    double start = 0;
    fill_random(data, (size_t)bytes);
    for (int i = 0; i < WARM_UP; i++) { /* every connection is there, and everybody knows everybody */
        if (rank != root)
            MPI_Send(data, bytes, MPI_BYTE, root, TAG, MPI_COMM_WORLD);
        for (int k = 0; rank == root && k < root; k++)
            MPI_Recv(data, bytes, MPI_BYTE, k, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    if (rank == root)
        start = now() + 1;
    MPI_Bcast(&start, 1, MPI_DOUBLE, root, MPI_COMM_WORLD);
    double *took = calloc((size_t)rounds, sizeof *took), *longest = calloc((size_t)rounds, sizeof *longest);
    for (int i = 0; i < rounds; i++) {
        double instant = start + i * PERIOD_S;
        if (rank != root) {
            sleep_until(instant);
            double begin = now();
            MPI_Send(data, bytes, MPI_BYTE, root, TAG, MPI_COMM_WORLD);
            took[i] = now() - begin;
        }
        for (int k = 0; rank == root && k < root; k++)
            MPI_Recv(data, bytes, MPI_BYTE, MPI_ANY_SOURCE, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        samples[i] = now() - instant;
    }
    MPI_Reduce(took, longest, rounds, MPI_DOUBLE, MPI_MAX, root, MPI_COMM_WORLD);
    for (int i = 0; rank == root && i < rounds; i++)
        printf("fan %.6f %.6f\n", samples[i], longest[i]);
    free(took);
    free(longest);
    free(data);
}

static void tell_ping(const char *what, int one, int count)
{
    if (rank != one)
        return;
    double median = quantile(count, 0.5);
    printf("%s %.1f %.1f\n", what, median, quantile(count, 0.9));
    fflush(stdout);
}

/* Numbers of ranks: two that exchange little, two between which much passes. */
struct pairs {
    int one, other, from, to;
};

static void beside(const struct pairs *p, size_t bytes, double seconds)
{
    char *data = rank == p->from || rank == p->to ? room(bytes) : NULL;
    MPI_Request request = MPI_REQUEST_NULL;
    if (rank == p->from)
        fill_random(data, bytes);
    MPI_Barrier(MPI_COMM_WORLD); /* nobody computes while it is quiet */
    if (rank == p->one)
        say("idling");
    tell_ping("idle", p->one, ping(p->one, p->other, SHORT_BYTES, seconds, PACE_S));
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == p->from)
        MPI_Isend(data, (int)bytes, MPI_BYTE, p->to, BIG_TAG, MPI_COMM_WORLD, &request);
    if (rank == p->to)
        MPI_Irecv(data, (int)bytes, MPI_BYTE, p->from, BIG_TAG, MPI_COMM_WORLD, &request);
    if (rank == p->one || rank == p->other) {
        sleep_until(now() + 2); /* the link is full by then */
        if (rank == p->one)
            say("loading");
        tell_ping("loaded", p->one, ping(p->one, p->other, SHORT_BYTES, seconds, PACE_S));
    }
    /* The rest of a gigabyte would take minutes, and nothing would be learnt. */
    if (rank == p->one)
        MPI_Abort(MPI_COMM_WORLD, 0);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD);
    free(data);
}

/* Mbit/s from one to the other, as the other sees it. */
static double rate(const struct pairs *p, double seconds)
{
    char *data = room(PIECE);
    int on = 1;
    long count = 0;
    fill_random(data, PIECE);
    double begin = now(), end = begin + seconds;
    while (on != 0 && rank == p->one) {
        on = now() < end;
        memcpy(data, &on, sizeof on);
        MPI_Send(data, PIECE, MPI_BYTE, p->other, TAG, MPI_COMM_WORLD);
    }
    for (; on != 0 && rank == p->other; count++) {
        MPI_Recv(data, PIECE, MPI_BYTE, p->one, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        memcpy(&on, data, sizeof on);
        begin = count == 0 ? now() : begin; /* what comes first waits for the connection */
    }
    free(data);
    return (double)(count - 1) * PIECE * 8e-6 / (now() - begin);
}

static void tell_rate(const struct pairs *p, double seconds)
{
    double found = rate(p, seconds);
    if (rank == p->other) {
        printf("rate %.3f\n", found);
        fflush(stdout);
    }
}

static void stopped(const struct pairs *p, size_t bytes, double seconds)
{
    char *data = rank == p->from || rank == p->to ? room(bytes) : NULL;
    MPI_Request request = MPI_REQUEST_NULL;
    if (rank == p->from)
        fill_random(data, bytes);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == p->one || rank == p->other)
        tell_rate(p, seconds);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == p->from) {
        MPI_Send(&size, 1, MPI_INT, p->to, TAG, MPI_COMM_WORLD);
        MPI_Isend(data, (int)bytes, MPI_BYTE, p->to, BIG_TAG, MPI_COMM_WORLD, &request);
    } else if (rank == p->to) {
        int word, flag;
        MPI_Irecv(data, (int)bytes, MPI_BYTE, p->from, BIG_TAG, MPI_COMM_WORLD, &request);
        MPI_Recv(&word, 1, MPI_INT, p->from, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        for (double end = now() + 1; now() < end;)
            MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
        say("stopping");
        raise(SIGSTOP);
    } else if (rank == p->one || rank == p->other) {
        sleep_until(now() + 4);
        tell_rate(p, seconds);
        if (rank == p->other)
            MPI_Abort(MPI_COMM_WORLD, 0);
    }
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD);
    free(data);
}

/* The plate of examples/heat.c: burners are sines along three edges, each step makes a point the mean of its
 * neighbours. */
static double edge(int side, double at)
{
    double a = at * acos(-1);
    return side == 0 ? 64 * sin(a) + 64 * sin(3 * a) : side == 1 ? 72 * sin(a) - 24 * sin(3 * a) : 60 * sin(a);
}

static void field(int rows, int columns, int steps, const char *path)
{
    size_t wide = (size_t)columns + 2, count = ((size_t)rows + 2) * wide;
    double *old = calloc(count, sizeof *old), *new = calloc(count, sizeof *new);
    for (int j = 1; j <= columns; j++) {
        old[j] = new[j] = edge(0, (double)j / (columns + 1));
        old[(size_t)(rows + 1) * wide + (size_t)j] = new[(size_t)(rows + 1) * wide + (size_t)j] =
            edge(1, (double)j / (columns + 1));
    }
    for (int i = 1; i <= rows; i++)
        old[(size_t)i * wide] = new[(size_t)i * wide] = edge(2, (double)i / (rows + 1));
    for (int step = 0; step < steps; step++) {
        for (size_t i = 1; i <= (size_t)rows; i++)
            for (size_t k = i * wide + 1; k <= i * wide + (size_t)columns; k++)
                new[k] = 0.25 * (old[k - wide] + old[k + wide] + old[k - 1] + old[k + 1]);
        double *swap = old;
        old = new;
        new = swap;
    }
    FILE *file = fopen(path, "w");
    for (size_t i = 1; file != NULL && i <= (size_t)rows; i++)
        fwrite(old + i * wide + 1, sizeof *old, (size_t)columns, file);
    if (file == NULL || fclose(file) != 0)
        fail("the field cannot be written");
    free(old);
    free(new);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    const char *what = argc > 1 ? argv[1] : "";
    struct pairs pairs = {0};
    if (argc == 8)
        pairs = (struct pairs){atoi(argv[2]), atoi(argv[3]), atoi(argv[4]), atoi(argv[5])};
    if (strcmp(what, "long") == 0 && argc == 7)
        send_long(atoi(argv[2]), atoi(argv[3]), (size_t)atoll(argv[4]), argv[5], atoi(argv[6]));
    else if (strcmp(what, "far") == 0 && argc == 5)
        far(atoi(argv[2]), atoi(argv[3]), strcmp(argv[4], "bcast") == 0);
    else if (strcmp(what, "ping") == 0 && argc == 6) {
        int one = atoi(argv[2]), count = ping(one, atoi(argv[3]), atoi(argv[4]), atof(argv[5]), 0);
        if (rank == one)
            printf("ping %.3f\n", quantile(count, 0.5));
    } else if (strcmp(what, "pairs") == 0 && argc == 5)
        send_pairs((size_t)atoll(argv[2]), atoi(argv[3]) == 2, atoi(argv[4]));
    else if (strcmp(what, "pings") == 0 && argc == 4)
        ping_pairs(atoi(argv[2]), atof(argv[3]));
    else if (strcmp(what, "fan") == 0 && argc == 4)
        fan(atoi(argv[2]), atoi(argv[3]));
    else if (strcmp(what, "beside") == 0 && argc == 8)
        beside(&pairs, (size_t)atoll(argv[6]), atof(argv[7]));
    else if (strcmp(what, "stopped") == 0 && argc == 8)
        stopped(&pairs, (size_t)atoll(argv[6]), atof(argv[7]));
    else if (strcmp(what, "field") == 0 && argc == 6)
        field(atoi(argv[2]), atoi(argv[3]), atoi(argv[4]), argv[5]);
    else
        fail("see the head of gateways.c");
    MPI_Finalize();
    return 0;
}
