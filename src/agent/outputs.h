/* Outputs: the standard output and error streams of this host's ranks. Whole lines are handed up, as many bytes as the
 * window allows; while it is closed nothing is read, and the ranks wait. A line without an end is passed on when it has
 * waited for too long. Who goes on writing line by line is looked at only from time to
 * time, so that not every line wakes us. Belongs to the agent and its one thread. */
#ifndef TB_AGENT_OUTPUTS_H
#define TB_AGENT_OUTPUTS_H

#include "agent/lines.h"
#include "remote/remote.h"

enum tb_output_stream { TB_OUTPUT_STANDARD = 1, TB_OUTPUT_ERROR = 2 }; /* as TB_CONTROL_OUTPUT names them */

struct tb_outputs_events {
    void *context;
    /* A rank has written; `rank` as it was given with the stream. The window has become smaller by as much. */
    void (*written)(void *context, uint32_t rank, enum tb_output_stream stream, const void *bytes, size_t length);
    void (*heard)(void *context); /* bytes have come from some rank; not during tb_outputs_drain */
    void (*ended)(void *context); /* a stream is at its end; likewise */
};

struct tb_outputs;

struct tb_output {
    struct tb_outputs *all;
    uint32_t rank;
    enum tb_output_stream stream;
    int descriptor; /* -1: at its end, or not begun */
    struct tb_watch watch;
    struct tb_lines lines;
    uint64_t heard; /* when it was last read */
    unsigned brisk; /* how often in succession it had only little, and soon after the last time */
    bool resting;   /* not watched for a moment */
};

struct tb_outputs {
    struct tb_loop *loop;
    struct tb_outputs_events events;
    int64_t window; /* bytes that may be handed up now; below 0 when something could not wait */
    uint64_t hold;  /* ns that an unfinished line waits for its end */
    struct tb_timer sweep, rest;
    uint32_t count;
    struct tb_output *outputs; /* two for each rank */
};

void tb_outputs_open(struct tb_outputs *outputs, struct tb_loop *loop, const struct tb_outputs_events *events);
void tb_outputs_close(struct tb_outputs *outputs); /* without reading what is left */

int tb_outputs_make(struct tb_outputs *outputs, uint32_t rank_count, uint64_t hold); /* room for their streams */
/* A stream of the rank with this index on the host; takes the descriptor in any case. */
int tb_outputs_add(struct tb_outputs *outputs, uint32_t local, uint32_t rank, enum tb_output_stream stream,
                   int descriptor);
void tb_outputs_allow(struct tb_outputs *outputs, uint32_t bytes); /* the window has become larger */
void tb_outputs_drain(struct tb_outputs *outputs);                 /* what is in the pipes, then closes them */
bool tb_outputs_any_open(const struct tb_outputs *outputs);

#endif
