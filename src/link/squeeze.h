/* Compression of one stream between two gateways, one direction: a squeeze turns frames into blocks, an unsqueeze turns
 * blocks into frames again. History is kept across frames (zstd or LZ4), and each frame's bytes are complete in its
 * block, so nothing waits for a later frame.
 *
 * It looks after itself. A block is compressed only while the link is what everything waits for, the data shrinks, and
 * compressing is faster than the link; otherwise the frame travels as it is, with 8 bytes before it. Whether data
 * shrinks is tried on one frame now and then, ever more seldom while it does not, so that trying takes less than a
 * hundredth of the time. Numbers of 4 or 8 bytes are transposed first (all first bytes, all second bytes, ...) where
 * that helps, which is tried too. A table of what can compress here (zstd, LZ4, both or none) is fixed at build time.
 *
 * A block on the wire: u32 length of what follows the header, u32 plain length in bits 0 to 23 and flags in bits 24 to
 * 31 (TB_SQUEEZE_), then the bytes. Each belongs to the one thread of its stream's owner; no sockets here. */
#ifndef TB_LINK_SQUEEZE_H
#define TB_LINK_SQUEEZE_H

#include "wire/wire.h"

#define TB_SQUEEZE_HEADER 8u
#define TB_SQUEEZE_PLAIN  (64u << 10) /* bytes of one frame at most */
#define TB_SQUEEZE_WIRE   (TB_SQUEEZE_PLAIN + (1u << 10))
#define TB_SQUEEZE_HEAD   (sizeof(struct tb_hop) + sizeof(struct tb_envelope)) /* so many are never transposed */

enum tb_squeeze_flags {
    TB_SQUEEZE_RAW = 0,
    TB_SQUEEZE_ZSTD = 1,
    TB_SQUEEZE_LZ4 = 2,
    TB_SQUEEZE_METHOD = 3,   /* which bits these are */
    TB_SQUEEZE_SPREAD4 = 4,  /* transposed: elements of 4 bytes */
    TB_SQUEEZE_SPREAD8 = 8,  /* or 8 */
    TB_SQUEEZE_RESTART = 16, /* the history begins here */
    TB_SQUEEZE_ALL = 31      /* every flag of this version */
};

/* What the link did since the frame before. */
enum tb_squeeze_link {
    TB_SQUEEZE_IDLE, /* it has taken everything at once */
    TB_SQUEEZE_MORE, /* what was packed before has not been offered to it yet */
    TB_SQUEEZE_FULL  /* it refused, and has room again now */
};

/* What streams that share a processor know of each other. */
struct tb_squeeze_group {
    uint32_t active; /* how many compress */
};

struct tb_squeeze_config {
    uint32_t features;              /* TB_FEATURE_ZSTD and TB_FEATURE_LZ4 as agreed; zstd goes first */
    int level;                      /* 0: by the link's speed; else 1 (fast) to 19 (small) */
    const struct tb_clock *clock;   /* for the link's speed */
    const struct tb_clock *work;    /* for what compressing costs: the processor time of this thread */
    struct tb_squeeze_group *group; /* outlives it */
};

struct tb_squeeze_counters {
    uint64_t blocks, pressed, spread; /* all; compressed; transposed among them */
    uint64_t plain, wire;             /* bytes; wire with headers */
    uint64_t tries;                   /* frames that were only tried */
    int level;                        /* the last one */
    uint64_t nanoseconds;             /* spent compressing, and trying */
};

struct tb_squeeze;
struct tb_unsqueeze;

/* The features that this build has and `wish` (auto, off, lz4, zstd) wants. An unknown word is TB_ERR_ARGUMENT; what is
 * not built in is TB_ERR_UNSUPPORTED. */
int tb_squeeze_offer(const char *wish, uint32_t *features);

int tb_squeeze_open(struct tb_squeeze **squeeze, const struct tb_squeeze_config *config);
void tb_squeeze_close(struct tb_squeeze *squeeze); /* NULL is fine */
/* Makes a block of a frame (1 to TB_SQUEEZE_PLAIN bytes). *block is valid until the next call. Blocks must reach the
 * other side in this order and all of them. */
void tb_squeeze_pack(struct tb_squeeze *squeeze, enum tb_squeeze_link link, const void *frame, size_t length,
                     const void **block, size_t *block_length);
const struct tb_squeeze_counters *tb_squeeze_count(const struct tb_squeeze *squeeze);

/* Takes bytes of frames; they may end anywhere. TB_SQUEEZE_HEAD bytes before them, and they themselves, may be written
 * to. Errors go back through feed. */
typedef int tb_squeeze_take(void *context, char *bytes, size_t length);

int tb_unsqueeze_open(struct tb_unsqueeze **unsqueeze, tb_squeeze_take *take, void *context);
void tb_unsqueeze_close(struct tb_unsqueeze *unsqueeze); /* NULL is fine */
/* Any piece of the stream of blocks, with room before it as `take` wants it. TB_ERR_PROTOCOL: no blocks of ours; then
 * only closing is left. */
int tb_unsqueeze_feed(struct tb_unsqueeze *unsqueeze, char *bytes, size_t length);

#endif
