#include "probe.h"

#include <mpi.h>

#include <stdlib.h>

#define WINDOW  16        /* messages on their way */
#define ROOM    (4 << 20) /* bytes of them, of one stream */
#define TAG     8         /* and one more for each stream */
#define STEP    0.01      /* seconds that a message takes, when streams are compared */
#define SECONDS 0.7       /* of a stream */
#define FEWEST  8         /* messages of a stream */
#define WARM    4         /* a fourth of it before, so that connections have grown fast */
#define ROUNDS  2
#define LONGEST 262144

int probe_self_open(struct probe_self *self)
{
    self->buffer = calloc(1, PROBE_LONGEST);
    self->room = malloc((size_t)PROBE_STREAMS * ROOM);
    return self->buffer != NULL && self->room != NULL;
}

void probe_self_close(struct probe_self *self)
{
    free(self->buffer);
    free(self->room);
}

/* A stream on this rank, and the requests of its window. */
struct ring {
    struct probe_stream *stream;
    MPI_Request *requests;
    char *room;
    int receives;
    int begun, ended, tag;
};

/* The next message, by a request that is free. */
static void ring_begin(struct probe_self *self, struct ring *r, int slot)
{
    const struct probe_stream *s = r->stream;
    r->begun++;
    if (r->receives)
        MPI_Irecv(r->room + (size_t)slot * (size_t)s->bytes, s->bytes, MPI_BYTE, s->from, r->tag, MPI_COMM_WORLD,
                  &r->requests[slot]);
    else
        MPI_Isend(self->buffer, s->bytes, MPI_BYTE, s->to, r->tag, MPI_COMM_WORLD, &r->requests[slot]);
}

void probe_streams_run(struct probe_self *self, struct probe_stream *streams, int count)
{
    MPI_Request requests[PROBE_STREAMS * WINDOW];
    struct ring rings[PROBE_STREAMS];
    int owner[PROBE_STREAMS * WINDOW], used = 0, open = 0;
    double start = MPI_Wtime();
    for (int i = 0; i < count; i++) {
        struct probe_stream *s = &streams[i];
        if (s->from != self->rank && s->to != self->rank)
            continue;
        int window = s->bytes > 0 && ROOM / s->bytes < WINDOW ? ROOM / s->bytes : WINDOW;
        /* Of few messages few are on their way at a time: they would all arrive at once. */
        window = window < s->count / 4 ? window : s->count / 4 > 2 ? s->count / 4 : 2;
        window = s->window > 0 && s->window < window ? s->window : window;
        window = window < s->count ? window : s->count;
        rings[open] = (struct ring){.stream = s,
                                    .requests = requests + used,
                                    .room = self->room + (size_t)open * ROOM,
                                    .receives = s->to == self->rank,
                                    .tag = TAG + i};
        for (int k = 0; k < window; k++) {
            owner[used + k] = open;
            ring_begin(self, &rings[open], k);
        }
        used += window;
        open++;
    }
    for (int left = open; left > 0;) {
        int at;
        MPI_Waitany(used, requests, &at, MPI_STATUS_IGNORE);
        struct ring *r = &rings[owner[at]];
        if (r->receives)
            r->stream->arrivals[r->ended] = MPI_Wtime() - start;
        if (r->begun < r->stream->count)
            ring_begin(self, r, (int)(requests + at - r->requests));
        left -= ++r->ended == r->stream->count;
    }
} // NOLINT(clang-analyzer-optin.mpi.MPI-Checker): the last of each ring has been waited for

/* ---- at the same time -------------------------------------------------------------------------------------------- */

static int between(double value, int least, int most)
{
    return value < least ? least : value > most ? most : (int)value;
}

/* Runs streams that begin at the same time, as far as a barrier can say so. Where two share a line, one of them may get
 * much more of it than the other, and what had to wait for a lost packet arrives at once: so what counts is when the
 * last byte of all has arrived, not what has arrived in some span in between. */
static void rates_together(struct probe_self *self, struct probe_stream *streams, int count, double *rates)
{
    const double never = 1e18;
    double mine[2] = {never, never}, span[2];
    MPI_Barrier(MPI_COMM_WORLD);
    probe_streams_run(self, streams, count);
    for (int i = 0; i < count; i++) {
        const struct probe_stream *s = &streams[i];
        if (s->to != self->rank)
            continue;
        double last = s->arrivals[s->count - 1];
        mine[0] = s->arrivals[0] < mine[0] ? s->arrivals[0] : mine[0];
        mine[1] = -last < mine[1] ? -last : mine[1];
    }
    MPI_Allreduce(mine, span, 2, MPI_DOUBLE, MPI_MIN, MPI_COMM_WORLD);
    for (int i = 0; i < count; i++)
        rates[i] = (streams[i].count - 1) * (double)streams[i].bytes / (-span[1] - span[0]);
}

/* Bytes a second of each stream until all of them have ended; what they have sent before has made the connections fast.
 */
static void rates_warm(struct probe_self *self, struct probe_stream *streams, int count, double *rates)
{
    struct probe_stream warm[PROBE_STREAMS];
    for (int i = 0; i < count; i++) {
        warm[i] = streams[i];
        warm[i].count = streams[i].count / WARM;
    }
    rates_together(self, warm, count, rates);
    rates_together(self, streams, count, rates);
}

void probe_streams_compare(struct probe_self *self, const int ends[2][2], const double rates[2], double result[2][4])
{
    struct probe_stream streams[PROBE_STREAMS];
    double *arrivals = calloc((size_t)PROBE_STREAMS * PROBE_STREAM_LIMIT, sizeof *arrivals);
    if (arrivals == NULL) {
        MPI_Abort(MPI_COMM_WORLD, 1);
        abort();
    }
    for (int i = 0; i < PROBE_STREAMS; i++) {
        int bytes = between(rates[i] * STEP, 2048, LONGEST);
        streams[i] = (struct probe_stream){.from = ends[i][0],
                                           .to = ends[i][1],
                                           .bytes = bytes,
                                           .count = between(rates[i] * SECONDS / bytes, FEWEST, PROBE_STREAM_LIMIT),
                                           .arrivals = arrivals + i * PROBE_STREAM_LIMIT};
    }
    for (int round = 0; round < ROUNDS; round++) {
        rates_warm(self, streams, 1, &result[round][0]);
        rates_warm(self, streams + 1, 1, &result[round][1]);
        rates_warm(self, streams, 2, &result[round][2]);
    }
    free(arrivals);
}
