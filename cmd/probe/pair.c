#include "probe.h"

#include <mpi.h>

#include <string.h>

#define ROUNDS      60
#define FEWEST      5    /* rounds on a slow way */
#define SECONDS     0.4  /* for round trips of one size, and for calls */
#define SPAN        0.4  /* of a stream */
#define LASTING     0.8  /* of the stream that says how fast a way is, */
#define STEP        0.01 /* and of a message of it, */
#define STEP_LEAST  2048 /* in bytes */
#define STEP_MOST   262144
#define LONGEST     0.03        /* that one message may take: streams overtake each other, so there must be many */
#define TRIAL       16384       /* bytes by which the rate is guessed at first */
#define TRAFFIC     268435456.0 /* bytes of one stream at most */
#define LEAST       16          /* messages of a stream */
#define NEAR_SPAN   0.02        /* of a stream within a host: short enough for one turn on a core */
#define NEAR_SPENT  1.0         /* on all streams of a size there */
#define NEAR_WINDOW 2           /* messages on their way there, so that they stay in caches */
#define GROWTH      4           /* of the guess from size to size at most */
#define NEAR_RATE   1e9         /* bytes a second there, whatever ranks without a core get */
#define REPEATS     8           /* of a stream that takes little time */
#define PARTS       2           /* of the time of a stream */
#define HEADER      200         /* bytes that a message is longer on the wire, about */

const int probe_sizes[PROBE_SIZES] = {0, 1024, 4096, 16384, 65536, 262144, PROBE_LONGEST};

enum { TAG_DATA = 1, TAG_ECHO, TAG_OVER, TAG_FIGURES };

static double lesser(double a, double b)
{
    return a < b ? a : b;
}

/* Sends back what comes, until it is told that this is over. */
static void echo(struct probe_self *self, int peer, int bytes)
{
    for (;;) {
        MPI_Status status;
        MPI_Recv(self->room, bytes, MPI_BYTE, peer, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
        if (status.MPI_TAG == TAG_OVER)
            return;
        MPI_Send(self->buffer, bytes, MPI_BYTE, peer, TAG_ECHO, MPI_COMM_WORLD);
    }
}

static int is_enough(int round, double start)
{
    return round >= ROUNDS || (round >= FEWEST && MPI_Wtime() - start > SECONDS);
}

/* Half of the quickest of many round trips; only the first of the two knows it. */
static double ping_pong(struct probe_self *self, int peer, int first, int bytes)
{
    double best = 1e9, start = MPI_Wtime();
    if (!first) {
        echo(self, peer, bytes);
        return best;
    }
    for (int i = 0; !is_enough(i, start); i++) {
        double t = MPI_Wtime();
        MPI_Send(self->buffer, bytes, MPI_BYTE, peer, TAG_DATA, MPI_COMM_WORLD);
        MPI_Recv(self->room, bytes, MPI_BYTE, peer, TAG_ECHO, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        best = lesser(best, MPI_Wtime() - t);
    }
    MPI_Send(NULL, 0, MPI_BYTE, peer, TAG_OVER, MPI_COMM_WORLD);
    return best / 2;
}

/* The time of calls that need not wait: a send of an empty message, a receive of one that is there. */
static void calls(struct probe_self *self, int peer, int first, struct probe_pair *pair)
{
    double start = MPI_Wtime();
    pair->send = pair->receive = 1e9;
    if (!first) {
        echo(self, peer, 0);
        return;
    }
    for (int i = 0; !is_enough(i, start); i++) {
        double t = MPI_Wtime();
        int flag = 0;
        MPI_Send(NULL, 0, MPI_BYTE, peer, TAG_DATA, MPI_COMM_WORLD);
        pair->send = lesser(pair->send, MPI_Wtime() - t);
        /* Looking is part of receiving, so the last look before it is there is counted. */
        while (!flag) {
            t = MPI_Wtime();
            MPI_Iprobe(peer, TAG_ECHO, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
        }
        MPI_Recv(NULL, 0, MPI_BYTE, peer, TAG_ECHO, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        pair->receive = lesser(pair->receive, MPI_Wtime() - t);
    }
    MPI_Send(NULL, 0, MPI_BYTE, peer, TAG_OVER, MPI_COMM_WORLD);
    /* Neither can be more than a part of the whole. */
    pair->send = lesser(pair->send, pair->one_way / 2);
    pair->receive = lesser(pair->receive, pair->one_way / 2);
}

/* What one of the two knows, for both. */
static void tell(double *numbers, int count, int peer, int knows)
{
    if (knows)
        MPI_Send(numbers, count, MPI_DOUBLE, peer, TAG_FIGURES, MPI_COMM_WORLD);
    else
        MPI_Recv(numbers, count, MPI_DOUBLE, peer, TAG_FIGURES, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

/* Time from one message to the next, without the beginning, in which TCP opens its window, and the lowest and the
 * highest rate of a part of the time. */
static void arrivals_judge(const double *arrivals, int count, int bytes, double figures[3])
{
    const double least = 1e-9; /* clocks may stand still between two messages */
    int skip = count / 4, rest = count - 1 - skip;
    figures[0] = (arrivals[count - 1] - arrivals[skip]) / rest;
    figures[0] = figures[0] > least ? figures[0] : least;
    figures[1] = figures[2] = bytes / figures[0];
    for (int i = 0; i < PARTS; i++) {
        int begin = skip + rest * i / PARTS, end = skip + rest * (i + 1) / PARTS;
        double time = arrivals[end] - arrivals[begin],
               rate = (end - begin) * (double)bytes / (time > least ? time : least);
        figures[1] = lesser(figures[1], rate);
        figures[2] = rate > figures[2] ? rate : figures[2];
    }
}

/* A way, as far as its rate is known: bytes a second. */
struct way_guess {
    double rate;
    int near; /* within a host */
};

/* Both ranks know the figures afterwards. Of what is over soon the best of some streams counts. */
static void stream(struct probe_self *self, int from, int to, int bytes, const struct way_guess *way, double span,
                   double figures[3])
{
    static double arrivals[PROBE_STREAM_LIMIT];
    double wish = way->rate * span / (bytes + HEADER), now[4], spent = 0;
    wish = lesser(lesser(wish, TRAFFIC / (bytes + HEADER)), PROBE_STREAM_LIMIT);
    struct probe_stream s = {.from = from,
                             .to = to,
                             .bytes = bytes,
                             .count = wish < LEAST ? LEAST : (int)wish,
                             .window = way->near ? NEAR_WINDOW : 0,
                             .arrivals = arrivals};
    for (int i = 0; i < REPEATS && spent < (way->near ? NEAR_SPENT : span); i++) {
        probe_streams_run(self, &s, 1);
        if (self->rank == to)
            arrivals_judge(arrivals, s.count, bytes, now);
        now[3] = arrivals[s.count - 1];
        tell(now, 4, self->rank == to ? from : to, self->rank == to);
        if (i == 0 || now[0] < figures[0])
            memcpy(figures, now, 3 * sizeof now[0]);
        spent += now[3];
    }
}

/* The rate of the longest messages is that of a stream that lasts, of many: a short one may be over while TCP still
 * repeats what it has lost. */
static void settle(struct probe_self *self, int from, int to, const struct way_guess *way, struct probe_pair *pair,
                   int back)
{
    double figures[3] = {0}, wish = way->rate * STEP;
    int last = pair->count[back] - 1, bytes = wish < STEP_LEAST ? STEP_LEAST : wish > STEP_MOST ? STEP_MOST : (int)wish;
    stream(self, from, to, bytes, way, LASTING, figures);
    pair->gaps[back][last] = figures[0] / bytes * probe_sizes[last];
    pair->low[back] = figures[1];
    pair->high[back] = figures[2];
}

/* All sizes in one direction, as far as a message is not too long for so slow a way. */
static void direction(struct probe_self *self, int from, int to, struct way_guess way, struct probe_pair *pair,
                      int back)
{
    double figures[3] = {0};
    for (int i = 0; i < PROBE_SIZES && (i < 2 || probe_sizes[i] / way.rate < LONGEST); i++) {
        stream(self, from, to, probe_sizes[i], &way, way.near ? NEAR_SPAN : SPAN, figures);
        pair->gaps[back][i] = figures[0];
        pair->low[back] = figures[1];
        pair->high[back] = figures[2];
        pair->count[back] = i + 1;
        /* What empty ones take is not the wire's time. What a rank that had to wait for its core gets at once
         * afterwards must not pass for a fast way. */
        double seen = probe_sizes[i] / figures[0];
        if (i > 0 && !way.near)
            way.rate = lesser(seen, GROWTH * way.rate);
    }
    if (!way.near)
        settle(self, from, to, &way, pair, back);
}

void probe_pair_measure(struct probe_self *self, int first, int second, int near, struct probe_pair *pair)
{
    int leads = self->rank == first, peer = leads ? second : first;
    memset(pair, 0, sizeof *pair);
    pair->one_way = ping_pong(self, peer, leads, 0);
    /* At least that, so that nothing takes too long. */
    struct way_guess way = {.rate = TRIAL / ping_pong(self, peer, leads, TRIAL), .near = near};
    calls(self, peer, leads, pair);
    tell(&way.rate, 1, peer, leads);
    if (near)
        way.rate = NEAR_RATE;
    direction(self, first, second, way, pair, 0);
    direction(self, second, first, way, pair, 1);
}
