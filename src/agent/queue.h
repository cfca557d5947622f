/* Frames that wait in a gateway for the next stretch of their way. A frame buffer holds one whole frame. A queue
 * belongs to one neighbour (a rank or another agent) and has two classes, short and bulk; inside a class the flows,
 * each a source and a destination, take turns by bytes (deficit round robin), so that nobody waits for another's long
 * message. The pool knows what all queues hold together: it keeps the limits, drops what does not fit, and counts.
 *
 * When the pool is full, the destination for which most lies there gives way, so that those who do not take what is
 * theirs leave room for all others, however many they are.
 *
 * A frame buffer may be kept by somebody (replay.h) until its frame has arrived. Then it is not freed when it leaves
 * its queue, or is dropped from it, but put into the pool's list `left`, for the keeper to take out.
 *
 * Pure logic, no sockets. Everything belongs to the one thread of an agent. */
#ifndef TB_AGENT_QUEUE_H
#define TB_AGENT_QUEUE_H

#include "wire/wire.h"

#define TB_FRAME_BUFFER_HEAD  (sizeof(struct tb_hop) + sizeof(struct tb_envelope))
#define TB_FRAME_BUFFER_LIMIT (TB_FRAME_BUFFER_HEAD + TB_RELAY_PAYLOAD) /* bytes of one frame */
#define TB_FRAME_BUFFER_SIZES 7
#define TB_FRAME_POOL_SPARE   (4u << 20) /* bytes of frame buffers that are kept for reuse */
#define TB_FRAME_POOL_SHARES  6          /* one destination may fill one of them */
#define TB_FRAME_POOL_SIZES   64

/* Of a frame buffer that is kept. */
enum tb_frame_state {
    TB_FRAME_WAITS,  /* to be sent, or sent again */
    TB_FRAME_QUEUED, /* in a queue, or half-written: somebody else holds it too */
    TB_FRAME_LEFT,   /* in the pool's list `left` */
    TB_FRAME_OUT     /* on its way */
};

/* What a frame buffer that is kept counts for, as its rank counts (link/order.h). */
enum tb_frame_charge {
    TB_FRAME_SHARED, /* bounded by the share of its rank */
    TB_FRAME_ONLY,   /* the only one of its pair, which may go beyond the share */
    TB_FRAME_LINK    /* an acknowledgement or a goodbye: so may as many as the pair has numbers for */
};

struct tb_frame_buffer {
    struct tb_list node;
    struct tb_replay_pair *keeper; /* NULL: nobody keeps it, and the last six are not used */
    struct tb_proc source, destination;
    uint32_t length;            /* of `bytes` */
    uint32_t weight;            /* bytes of memory that it takes, which is what the limits count */
    uint8_t size;               /* which of the sizes of frame buffers it is */
    uint8_t stream;             /* enum tb_stream: its class */
    uint32_t from;              /* index of the process that brought it here; never sent back there */
    uint8_t state;              /* enum tb_frame_state */
    uint8_t charge;             /* enum tb_frame_charge */
    uint8_t sends;              /* how often it was sent; stays at 255 */
    uint32_t number;            /* of its pair */
    uint32_t via;               /* host of the agent that it was given to last */
    uint64_t first_at, sent_at; /* when it left us for the first and the last time */
    char bytes[];               /* as on the wire: hop, envelope, payload */
};

struct tb_flow;
struct tb_stock; /* what waits for one destination */

struct tb_queue {
    struct tb_frame_pool *pool;
    struct tb_list active[TB_STREAM_COUNT]; /* flows with frames; the first one's turn is now */
    uint64_t bytes[TB_STREAM_COUNT];
    uint32_t frames[TB_STREAM_COUNT];
};

struct tb_frame_pool {
    uint64_t limit, limit_each; /* bytes: in all, for one destination */
    uint64_t bytes, bytes_most;
    uint64_t dropped, dropped_bytes; /* what did not fit */
    struct tb_list spare[TB_FRAME_BUFFER_SIZES];
    size_t spare_bytes;
    struct tb_flow **flows; /* chained hash tables */
    uint32_t flow_count, flow_room;
    struct tb_stock **stocks;
    uint32_t stock_count, stock_room;
    struct tb_list by_size[TB_FRAME_POOL_SIZES]; /* stocks, by the length of their bytes as a binary number */
    struct tb_list left;                         /* frame buffers that are kept and have left their queue */
};

int tb_frame_pool_open(struct tb_frame_pool *pool, uint64_t limit);
void tb_frame_pool_close(struct tb_frame_pool *pool); /* all queues are closed */

/* A frame buffer with room for `length` bytes, which are not set; NULL: no memory. It counts only when it is queued. */
struct tb_frame_buffer *tb_frame_buffer_make(struct tb_frame_pool *pool, uint32_t length);
void tb_frame_buffer_free(struct tb_frame_pool *pool, struct tb_frame_buffer *buffer);
/* Its keeper needs it no more: frees it, unless it is queued; then whoever has it there does. */
void tb_frame_buffer_release(struct tb_frame_pool *pool, struct tb_frame_buffer *buffer);

void tb_queue_open(struct tb_queue *queue, struct tb_frame_pool *pool);
void tb_queue_close(struct tb_queue *queue); /* frees what is in it */
/* Takes the frame buffer in any case. TB_ERR_LIMIT: there was no room for it, it was dropped and counted. */
int tb_queue_add(struct tb_queue *queue, struct tb_frame_buffer *buffer);
/* The next one of a class, whose turn it is; NULL: none. */
struct tb_frame_buffer *tb_queue_pull(struct tb_queue *queue, enum tb_stream stream);

static inline bool tb_queue_empty(const struct tb_queue *queue, enum tb_stream stream)
{
    return queue->frames[stream] == 0;
}

#endif
