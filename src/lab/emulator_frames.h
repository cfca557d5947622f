/* The frames that are under way in the emulator, by the moment at which they come out: a heap. Those due at the same
 * moment come out in the order in which they went in. Owned by the emulator, touched by its one thread. */
#ifndef TB_LAB_EMULATOR_FRAMES_H
#define TB_LAB_EMULATOR_FRAMES_H

#include "base/base.h"

#include <linux/virtio_net.h>

#define TB_FRAMES_LIMIT   131072u /* under way at a time */
#define TB_FRAMES_LARGEST 2032u   /* bytes; a longer one was never on an Ethernet */

#define TB_FRAMES_ALL UINT32_MAX

/* The pipes between two ports, one after the other: uplink of a cluster, of its site, link, downlinks. */
#define TB_FRAME_WAY_PIPES 6u
struct tb_frame_way {
    uint8_t count; /* 0: nothing lies between */
    uint16_t pipes[TB_FRAME_WAY_PIPES];
};

struct tb_frame {
    uint64_t due, number;
    uint64_t visit;      /* the same for all copies of one frame */
    uint32_t port, pipe; /* where it goes, and what it passes now */
    struct tb_frame_way way;
    uint8_t stage; /* of the way: the pipe in which it is */
    uint32_t length;
    struct virtio_net_hdr offload; /* what the kernel still has to do to it (checksum); handed through */
    uint8_t bytes[TB_FRAMES_LARGEST];
};

struct tb_frames {
    struct tb_pool pool;
    uint32_t count, room;
    uint64_t number;
    struct tb_frame **heap;
};

void tb_frames_open(struct tb_frames *frames);
void tb_frames_close(struct tb_frames *frames);
/* Memory for a frame, or NULL when too many are under way; given back by tb_frames_give or handed over by push. */
struct tb_frame *tb_frames_take(struct tb_frames *frames);
void tb_frames_give(struct tb_frames *frames, struct tb_frame *frame);
/* `due`, `port` and `pipe` are set. Takes the frame over, also where memory ends: it is lost then. */
int tb_frames_push(struct tb_frames *frames, struct tb_frame *frame);
/* The frame that is due next, or NULL; it stays where it is. */
struct tb_frame *tb_frames_first(const struct tb_frames *frames);
/* The same, now the caller's, who gives it back. There is one. */
struct tb_frame *tb_frames_pop(struct tb_frames *frames);
/* Forgets those to this port and in this pipe; TB_FRAMES_ALL: to any, in any. */
void tb_frames_forget(struct tb_frames *frames, uint32_t port, uint32_t pipe);

#endif
