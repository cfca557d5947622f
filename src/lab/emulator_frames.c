#include "lab/emulator_frames.h"

#include <stdlib.h>

#define FRAMES_A_SLAB 256u
#define FIRST_ROOM    1024u

void tb_frames_open(struct tb_frames *frames)
{
    *frames = (struct tb_frames){0};
    tb_pool_open(&frames->pool, sizeof(struct tb_frame), FRAMES_A_SLAB, TB_FRAMES_LIMIT);
}

void tb_frames_close(struct tb_frames *frames)
{
    tb_frames_forget(frames, TB_FRAMES_ALL, TB_FRAMES_ALL);
    free(frames->heap);
    tb_pool_close(&frames->pool);
}

struct tb_frame *tb_frames_take(struct tb_frames *frames)
{
    return tb_pool_take(&frames->pool);
}

void tb_frames_give(struct tb_frames *frames, struct tb_frame *frame)
{
    tb_pool_give(&frames->pool, frame);
}

static bool before(const struct tb_frame *a, const struct tb_frame *b)
{
    return a->due != b->due ? a->due < b->due : a->number < b->number;
}

static void sift_up(struct tb_frames *frames, uint32_t at)
{
    struct tb_frame *frame = frames->heap[at];
    for (uint32_t above; at > 0 && before(frame, frames->heap[above = (at - 1) / 2]); at = above)
        frames->heap[at] = frames->heap[above];
    frames->heap[at] = frame;
}

static void sift_down(struct tb_frames *frames, uint32_t at)
{
    struct tb_frame *frame = frames->heap[at];
    for (uint32_t below; (below = 2 * at + 1) < frames->count; at = below) {
        if (below + 1 < frames->count && before(frames->heap[below + 1], frames->heap[below]))
            below++;
        if (!before(frames->heap[below], frame))
            break;
        frames->heap[at] = frames->heap[below];
    }
    frames->heap[at] = frame;
}

int tb_frames_push(struct tb_frames *frames, struct tb_frame *frame)
{
    if (frames->count == frames->room) {
        uint32_t room = frames->room ? 2 * frames->room : FIRST_ROOM;
        struct tb_frame **heap = realloc(frames->heap, room * sizeof(struct tb_frame *));
        if (!heap) {
            tb_frames_give(frames, frame);
            return tb_error(TB_ERR_MEMORY, "no memory for %u frames under way", room);
        }
        frames->heap = heap;
        frames->room = room;
    }
    frame->number = frames->number++;
    frames->heap[frames->count++] = frame;
    sift_up(frames, frames->count - 1);
    return 0;
}

struct tb_frame *tb_frames_first(const struct tb_frames *frames)
{
    return frames->count ? frames->heap[0] : NULL;
}

struct tb_frame *tb_frames_pop(struct tb_frames *frames)
{
    TB_ASSERT(frames->count > 0);
    struct tb_frame *frame = frames->heap[0];
    frames->heap[0] = frames->heap[--frames->count];
    if (frames->count > 0)
        sift_down(frames, 0);
    return frame;
}

void tb_frames_forget(struct tb_frames *frames, uint32_t port, uint32_t pipe)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < frames->count; i++) {
        struct tb_frame *frame = frames->heap[i];
        if ((port == TB_FRAMES_ALL || frame->port == port) && (pipe == TB_FRAMES_ALL || frame->pipe == pipe))
            tb_frames_give(frames, frame);
        else
            frames->heap[kept++] = frame;
    }
    frames->count = kept;
    for (uint32_t i = kept / 2; i-- > 0;)
        sift_down(frames, i);
}
