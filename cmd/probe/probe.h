/* Between the files of the program that `tombolo probe` runs: what two ranks measure of the way between them (pair.c),
 * and streams that run at the same time (streams.c). An MPI program; all of it is one thread. */
#ifndef TB_CMD_PROBE_PROBE_H
#define TB_CMD_PROBE_PROBE_H

enum { PROBE_SIZES = 7, PROBE_LONGEST = 1048576, PROBE_STREAMS = 2 };
extern const int probe_sizes[PROBE_SIZES];

struct probe_self {
    int rank, size;
    char *buffer; /* PROBE_LONGEST bytes, to be sent */
    char *room;   /* for what streams receive */
};

/* What two ranks found out; seconds, and bytes a second. [0] is the way from the first to the second. */
struct probe_pair {
    double one_way;              /* half a round trip of an empty message */
    double send, receive;        /* the time of a call that does not wait, for an empty message */
    int count[2];                /* of the sizes that were measured; the longest would take too long on a slow way */
    double gaps[2][PROBE_SIZES]; /* from one message to the next, when many follow each other */
    double low[2], high[2];      /* bytes a second of the longest, in parts of the time */
};

/* Memory for all of it; 0: there is none. */
int probe_self_open(struct probe_self *self);
void probe_self_close(struct probe_self *self);

/* Two ranks measure, perhaps on one host (`near`); nobody else calls it. The first one knows everything afterwards. */
void probe_pair_measure(struct probe_self *self, int first, int second, int near, struct probe_pair *pair);

/* Messages that follow each other from one rank to another. */
struct probe_stream {
    int from, to;
    int bytes, count; /* of each message; of messages */
    int window;       /* messages on their way at most; 0: as many as there is room for */
    double *arrivals; /* for `count`: seconds after the beginning; filled where it is received */
};
#define PROBE_STREAM_LIMIT 2000 /* messages */

/* Runs up to PROBE_STREAMS of them at the same time, from now on. Those who have no part return at once. */
void probe_streams_run(struct probe_self *self, struct probe_stream *streams, int count);
/* Two streams of about these rates, each alone and then both, twice; all ranks call it and know the result, bytes a
 * second: [round][alone first, alone second, first beside second, second beside first]. */
void probe_streams_compare(struct probe_self *self, const int ends[2][2], const double rates[2], double result[2][4]);

#endif
