#include "lab/pipe.h"

#include <string.h>

#define MILLION     1000000u
#define NS_A_BIT    8000000000u /* of a byte at one bit a second */
#define BYTES_EXACT (1u << 30)

void tb_pipe_init(struct tb_pipe *pipe, uint64_t seed)
{
    memset(pipe, 0, sizeof *pipe);
    tb_random_seed(&pipe->random, seed);
}

/* Nanoseconds that so many bytes take, to the nearest; of gigabytes about. */
static uint64_t wire_time(uint64_t bandwidth, uint64_t bytes)
{
    if (bandwidth == 0)
        return 0;
    if (bytes > BYTES_EXACT)
        return (uint64_t)((double)bytes * (double)NS_A_BIT / (double)bandwidth);
    return (bytes * NS_A_BIT + bandwidth / 2) / bandwidth;
}

void tb_pipe_set(struct tb_pipe *pipe, const struct tb_grid_wire *wire)
{
    pipe->wire = *wire;
    if (wire->latency == UINT64_MAX)
        pipe->wire.latency = 0;
    pipe->queue = 2 * pipe->wire.latency;
    uint64_t least = wire_time(wire->bandwidth, TB_PIPE_QUEUE_BYTES);
    if (pipe->queue < least)
        pipe->queue = least;
    if (wire->queue != 0)
        pipe->queue = wire_time(wire->bandwidth, wire->queue);
}

void tb_pipe_join(struct tb_pipe *pipe, struct tb_pipe *other)
{
    pipe->shared = NULL;
    other->shared = &pipe->free;
}

uint64_t tb_pipe_queue_bytes(const struct tb_pipe *pipe)
{
    if (pipe->wire.bandwidth == 0 || pipe->wire.queue != 0)
        return pipe->wire.bandwidth == 0 ? 0 : pipe->wire.queue;
    return (uint64_t)((double)pipe->queue * (double)pipe->wire.bandwidth / (double)NS_A_BIT + 0.5);
}

static bool happens(struct tb_pipe *pipe, uint32_t of_a_million)
{
    return of_a_million > 0 && tb_random_below(&pipe->random, MILLION) < of_a_million;
}

static uint64_t travel_time(struct tb_pipe *pipe)
{
    uint64_t latency = pipe->wire.latency, jitter = pipe->wire.jitter;
    if (jitter == 0)
        return latency;
    uint64_t drawn = latency + tb_random_below(&pipe->random, 2 * jitter + 1);
    return drawn > jitter ? drawn - jitter : 0;
}

enum tb_pipe_fate tb_pipe_enter(struct tb_pipe *pipe, uint64_t now, uint32_t length, uint64_t *due)
{
    if (pipe->is_cut) {
        pipe->counts.cut++;
        return TB_PIPE_CUT;
    }
    uint32_t bytes = tb_pipe_wire_bytes(length);
    uint64_t *free = pipe->shared != NULL ? pipe->shared : &pipe->free;
    uint64_t begin = *free > now ? *free : now;
    uint64_t end = begin + wire_time(pipe->wire.bandwidth, bytes);
    /* A wire that rests takes a frame, however short its queue is. */
    if (pipe->wire.bandwidth != 0 && begin > now && end - now > pipe->queue) {
        pipe->counts.full++;
        return TB_PIPE_FULL;
    }
    /* A lost frame is lost on its way: it has taken its time on the wire. */
    *free = end;
    if (happens(pipe, pipe->wire.loss)) {
        pipe->counts.lost++;
        return TB_PIPE_LOST;
    }
    pipe->counts.frames++;
    pipe->counts.bytes += bytes;
    if (happens(pipe, pipe->wire.reorder)) { /* as netem has it: it overtakes all that are under way */
        *due = end;
        return TB_PIPE_PASSES;
    }
    *due = end + travel_time(pipe);
    if (*due < pipe->last_due)
        *due = pipe->last_due;
    pipe->last_due = *due;
    return TB_PIPE_PASSES;
}

enum tb_pipe_fate tb_pipe_enter_at_once(struct tb_pipe *pipe, uint64_t now, uint32_t length, uint64_t *due)
{
    if (pipe->is_cut) {
        pipe->counts.cut++;
        return TB_PIPE_CUT;
    }
    pipe->counts.frames++;
    pipe->counts.bytes += tb_pipe_wire_bytes(length);
    *due = now;
    return TB_PIPE_PASSES;
}
