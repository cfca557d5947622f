/* One direction of an emulated wire: when does a frame that enters now come out, if at all? Arithmetic alone, in
 * nanoseconds of whatever clock the caller has, so that it is tested in virtual time. The frames themselves are kept by
 * the caller. Owned and touched by one thread.
 *
 * A frame waits for those before it, takes its time on the wire at the bandwidth, then travels for the latency. The
 * queue before the wire is bounded; who finds it full is dropped. Of a half-duplex wire both directions wait for one
 * another, in one queue. */
#ifndef TB_LAB_PIPE_H
#define TB_LAB_PIPE_H

#include "topology/topology.h"

#define TB_PIPE_QUEUE_BYTES 65536u /* the least that a queue holds; else what fits the wire in a round trip */

enum tb_pipe_fate { TB_PIPE_PASSES, TB_PIPE_LOST, TB_PIPE_FULL, TB_PIPE_CUT };

struct tb_pipe_counts {
    uint64_t frames, bytes; /* that came through; bytes as on the wire */
    uint64_t lost, full, cut;
};

struct tb_pipe {
    struct tb_grid_wire wire;
    bool is_cut;
    uint64_t queue;    /* ns that the queue takes to empty when it is full */
    uint64_t free;     /* when the wire has sent all that entered so far */
    uint64_t *shared;  /* the same of the other direction, where the wire is half-duplex; NULL: it is not */
    uint64_t last_due; /* of the frame that comes out last */
    struct tb_random random;
    struct tb_pipe_counts counts;
};

/* What a frame takes of the wire: with its check sequence, preamble and gap, and never less than Ethernet's least.
 * `length` is that of header and payload, as a packet socket sees it. */
static inline uint32_t tb_pipe_wire_bytes(uint32_t length)
{
    return length + 24 < 84 ? 84 : length + 24;
}

/* Without limits, until tb_pipe_set. The seed decides which frames are lost. */
void tb_pipe_init(struct tb_pipe *pipe, uint64_t seed);
/* In force from the next frame on. */
void tb_pipe_set(struct tb_pipe *pipe, const struct tb_grid_wire *wire);
/* From now on these two are the directions of one half-duplex wire. The first must stay where it is. */
void tb_pipe_join(struct tb_pipe *pipe, struct tb_pipe *other);
/* Bytes that wait before it at most; 0: it has no rate, so that nothing waits. */
uint64_t tb_pipe_queue_bytes(const struct tb_pipe *pipe);
/* A frame of `length` bytes enters at `now`. Where it passes, *due is when it comes out: not before any frame that
 * entered before it, unless the wire reorders. */
enum tb_pipe_fate tb_pipe_enter(struct tb_pipe *pipe, uint64_t now, uint32_t length, uint64_t *due);
/* The same for what only keeps the network together (address resolution): at once, but not through a cut pipe. */
enum tb_pipe_fate tb_pipe_enter_at_once(struct tb_pipe *pipe, uint64_t now, uint32_t length, uint64_t *due);

#endif
