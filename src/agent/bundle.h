/* The connections between this agent and one other process, a rank or another agent. A strand is one connected, proved
 * socket; a bundle is all strands to one process, of both streams, and the queue of what waits for them. Frames are
 * those of the tcp transport (hop, envelope, payload), so that a rank notices no difference between a rank and a
 * gateway.
 *
 * In: a read brings many bytes at once; whole frames are handed up from where they lie. Out: a frame is written at once
 * if nothing is before it; otherwise a strand pulls the next one when its socket has room, and the socket holds little
 * that is unsent. Bytes pass a codec on their way, if the strand has one: socket, codec, frames.
 *
 * A dock is what all bundles of an agent share. Everything belongs to the agent's one thread. */
#ifndef TB_AGENT_BUNDLE_H
#define TB_AGENT_BUNDLE_H

#include "agent/queue.h"
#include "remote/remote.h"

#define TB_BUNDLE_LANES   16u                    /* parallel streams of one kind that one side may open */
#define TB_BUNDLE_STRANDS (4u * TB_BUNDLE_LANES) /* all strands of a bundle */
#define TB_DOCK_READ      (64u << 10)            /* bytes of one read */

struct tb_strand;
struct tb_bundle;
struct tb_dock;

/* A whole frame that has arrived; valid during the call. */
struct tb_cargo {
    char *bytes; /* hop, envelope, payload; the hop may be written to */
    uint32_t length;
    struct tb_proc source, destination;
    struct tb_crate *crate; /* holds the bytes already, and may be taken (set to NULL); NULL: they lie elsewhere */
    bool more;              /* other frames follow in the same read */
};

/* What stands between the frames and the socket of a strand, made by whoever adopts the socket. Both calls append to
 * growing memory of the strand; what is encoded is written to the socket before anything else. */
struct tb_codec {
    int (*begin)(struct tb_codec *codec, struct tb_strand *strand); /* before anything else; may put. NULL: nothing */
    /* Frames to bytes for the socket: tb_strand_put. */
    int (*encode)(struct tb_codec *codec, struct tb_strand *strand, const void *bytes, size_t length);
    /* Bytes from the socket to bytes of frames: tb_strand_take, any number of times; tb_strand_put for answers of its
     * own, such as those of a handshake. */
    int (*decode)(struct tb_codec *codec, struct tb_strand *strand, char *bytes, size_t length);
    bool (*ready)(const struct tb_codec *codec); /* frames may be encoded now; NULL: always */
    void (*close)(struct tb_codec *codec);
};

struct tb_dock_calls {
    void *context;
    void (*frame)(void *context, struct tb_strand *from, struct tb_cargo *cargo);
    void (*settle)(void *context); /* a strand has read or written what it could */
    /* It is closed and no longer in its bundle. TB_ERR_CLOSED: the other side has said goodbye. The story is in
     * tb_error. */
    void (*ended)(void *context, struct tb_bundle *bundle, const struct tb_strand *strand, int error);
};

struct tb_dock {
    struct tb_loop *loop;
    struct tb_depot *depot;
    struct tb_dock_calls calls;
    struct tb_list dead; /* ended strands that may still be pointed to */
    uint64_t frames_out, bytes_out;
    char *scratch;
};

struct tb_bundle {
    struct tb_dock *dock;
    struct tb_proc proc;
    struct tb_list strands[TB_STREAM_COUNT]; /* the one to write to first is in front */
    uint32_t strand_count;
    struct tb_queue queue;
};

struct tb_strand {
    struct tb_watch watch;
    struct tb_list node; /* in its bundle; in the dock's dead ones after its end */
    struct tb_bundle *bundle;
    uint8_t stream; /* enum tb_stream */
    uint8_t lane;
    bool ours;           /* opened by our wish: then it is for us to open it again */
    bool blocked;        /* its socket takes nothing now */
    struct tb_list held; /* in a list of the depot: nothing is read from it */
    uint32_t refused;    /* how often its socket has refused what the codec had made */
    struct tb_codec *codec;

    uint32_t out_sequence;
    struct tb_list out; /* crates that were pulled; the first may be half-written */
    uint32_t out_count;
    size_t out_at;
    char *coded; /* bytes from the codec that are to be written */
    size_t coded_at, coded_end, coded_room;

    uint32_t in_sequence;
    uint32_t in_have; /* bytes of a header that has only begun, in in_head; or of in_crate */
    struct tb_crate *in_crate;
    char in_head[TB_CRATE_HEAD];
};

int tb_dock_open(struct tb_dock *dock, struct tb_loop *loop, struct tb_depot *depot, const struct tb_dock_calls *calls);
void tb_dock_close(struct tb_dock *dock); /* all bundles are closed */
void tb_dock_bury(struct tb_dock *dock);  /* frees ended strands; nobody is inside of a call */

void tb_bundle_open(struct tb_bundle *bundle, struct tb_dock *dock, struct tb_proc proc);
/* Says goodbye on all strands, closes them without a call up, and drops what waits. */
void tb_bundle_close(struct tb_bundle *bundle);
/* Takes the socket, and the codec if there is one, in any case. One of the same stream, lane and side that is there
 * already is replaced. */
int tb_bundle_adopt(struct tb_bundle *bundle, enum tb_stream stream, uint32_t lane, bool ours, int socket,
                    struct tb_codec *codec);
/* Writes a frame at once. TB_OK: done (cargo->crate may have been taken). TB_AGAIN: no strand takes it now, the caller
 * may queue it. */
int tb_bundle_send(struct tb_bundle *bundle, enum tb_stream stream, struct tb_cargo *cargo);
/* Lets strands that are not blocked pull what is queued. */
void tb_bundle_flush(struct tb_bundle *bundle, enum tb_stream stream);
bool tb_bundle_is_agent(const struct tb_bundle *bundle);
/* The kernel repeats what it has written to one of the strands, again and again without an answer. */
bool tb_bundle_stalled(const struct tb_bundle *bundle);
void tb_strand_watch(struct tb_strand *strand); /* it is held now, or not any more */

/* For codecs. */
int tb_strand_put(struct tb_strand *strand, const void *bytes, size_t length);
int tb_strand_take(struct tb_strand *strand, char *bytes, size_t length); /* TB_CRATE_HEAD bytes of room before them */

#endif
