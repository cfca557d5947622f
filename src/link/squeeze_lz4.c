/* The press that is LZ4: blocks that refer to the 64 KiB before them, of which both sides keep a copy. */
#include "link/squeeze_press.h"

#include <lz4.h>
#include <stdlib.h>

#define HISTORY (64 << 10)

struct lz4_stream {
    LZ4_stream_t *stream;
    int speed; /* LZ4's acceleration: 1 is the smallest result */
    char history[HISTORY];
};

struct in {
    int length;
    char history[HISTORY];
};

static void out_close(void *press)
{
    struct lz4_stream *out = press;
    LZ4_freeStream(out->stream);
    free(out);
}

static void *out_open(void)
{
    struct lz4_stream *out = calloc(1, sizeof(*out));
    if (out == NULL)
        return NULL;
    out->stream = LZ4_createStream();
    if (out->stream != NULL)
        return out;
    free(out);
    return NULL;
}

static int out_restart(void *press, int level)
{
    struct lz4_stream *out = press;
    LZ4_resetStream_fast(out->stream);
    out->speed = level < 3 ? 4 - level : 1;
    return 0;
}

static size_t out_pack(void *press, const void *plain, size_t length, void *to, size_t room)
{
    struct lz4_stream *out = press;
    int size = LZ4_compress_fast_continue(out->stream, plain, to, (int)length, (int)room, out->speed);
    if (size <= 0)
        return 0;
    LZ4_saveDict(out->stream, out->history, HISTORY);
    return (size_t)size;
}

static size_t out_try(void *press, const void *plain, size_t length, void *to, size_t room)
{
    int size = LZ4_compress_default(plain, to, (int)length, (int)room);
    return size > 0 ? (size_t)size : 0;
}

static void *in_open(void)
{
    return calloc(1, sizeof(struct in));
}

static void in_close(void *press)
{
    free(press);
}

static void in_restart(void *press)
{
    struct in *in = press;
    in->length = 0;
}

/* The last bytes of what was there and what has come. */
static void remember(struct in *in, const char *plain, int length)
{
    if (length >= HISTORY) {
        memcpy(in->history, plain + length - HISTORY, HISTORY);
        in->length = HISTORY;
        return;
    }
    int kept = in->length < HISTORY - length ? in->length : HISTORY - length;
    memmove(in->history, in->history + in->length - kept, (size_t)kept);
    memcpy(in->history + kept, plain, (size_t)length);
    in->length = kept + length;
}

static int in_unpack(void *press, const void *from, size_t from_length, void *plain, size_t length)
{
    struct in *in = press;
    int size = LZ4_decompress_safe_usingDict(from, plain, (int)from_length, (int)length, in->history, in->length);
    if (size < 0 || (size_t)size != length)
        return -1;
    remember(in, plain, size);
    return 0;
}

static const struct tb_press_table table = {
    .feature = TB_FEATURE_LZ4,
    .method = TB_SQUEEZE_LZ4,
    .out_open = out_open,
    .out_close = out_close,
    .out_restart = out_restart,
    .out_pack = out_pack,
    .out_try = out_try,
    .in_open = in_open,
    .in_close = in_close,
    .in_restart = in_restart,
    .in_unpack = in_unpack,
};

const struct tb_press_table *tb_press_lz4(void)
{
    return &table;
}
