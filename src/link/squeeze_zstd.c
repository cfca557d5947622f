/* The press that is zstd: one endless zstd frame, flushed after each block. */
#include "link/squeeze_press.h"

#include <stdlib.h>
#include <zstd.h>

/* A gateway has many streams: some 2 MiB for packing and 1 MiB for unpacking each, whatever the level. That costs a
 * hundredth or two of the ratio. */
#define WINDOW_LOG 19
#define TABLE_LOG  17

struct zstd_stream {
    ZSTD_CCtx *context;
    ZSTD_CCtx *trying;
};

static void out_close(void *press)
{
    struct zstd_stream *out = press;
    ZSTD_freeCCtx(out->context);
    ZSTD_freeCCtx(out->trying);
    free(out);
}

static void *out_open(void)
{
    struct zstd_stream *out = calloc(1, sizeof(*out));
    if (out == NULL)
        return NULL;
    out->context = ZSTD_createCCtx();
    out->trying = ZSTD_createCCtx();
    if (out->context != NULL && out->trying != NULL)
        return out;
    out_close(out);
    return NULL;
}

static int set(ZSTD_CCtx *context, ZSTD_cParameter parameter, int value)
{
    return ZSTD_isError(ZSTD_CCtx_setParameter(context, parameter, value)) ? -1 : 0;
}

static int out_restart(void *press, int level)
{
    struct zstd_stream *out = press;
    ZSTD_CCtx *context = out->context;
    if (ZSTD_isError(ZSTD_CCtx_reset(context, ZSTD_reset_session_and_parameters)))
        return -1;
    return set(context, ZSTD_c_compressionLevel, level) | set(context, ZSTD_c_windowLog, WINDOW_LOG) |
           set(context, ZSTD_c_hashLog, TABLE_LOG) | set(context, ZSTD_c_chainLog, TABLE_LOG);
}

static size_t out_pack(void *press, const void *plain, size_t length, void *to, size_t room)
{
    struct zstd_stream *out = press;
    ZSTD_inBuffer source = {plain, length, 0};
    ZSTD_outBuffer target = {to, room, 0};
    size_t left = ZSTD_compressStream2(out->context, &target, &source, ZSTD_e_flush);
    return left == 0 && source.pos == length ? target.pos : 0;
}

static size_t out_try(void *press, const void *plain, size_t length, void *to, size_t room)
{
    struct zstd_stream *out = press;
    size_t size = ZSTD_compressCCtx(out->trying, to, room, plain, length, 1);
    return ZSTD_isError(size) ? 0 : size;
}

static void in_close(void *press)
{
    ZSTD_freeDCtx(press);
}

static void *in_open(void)
{
    ZSTD_DCtx *context = ZSTD_createDCtx();
    if (context == NULL || !ZSTD_isError(ZSTD_DCtx_setParameter(context, ZSTD_d_windowLogMax, WINDOW_LOG)))
        return context;
    in_close(context);
    return NULL;
}

static void in_restart(void *press)
{
    ZSTD_DCtx_reset(press, ZSTD_reset_session_only);
}

static int in_unpack(void *press, const void *from, size_t from_length, void *plain, size_t length)
{
    ZSTD_inBuffer source = {from, from_length, 0};
    ZSTD_outBuffer target = {plain, length, 0};
    while (source.pos < from_length || target.pos < length) {
        size_t before = source.pos + target.pos;
        size_t rc = ZSTD_decompressStream(press, &target, &source);
        if (ZSTD_isError(rc) || source.pos + target.pos == before)
            return -1;
        if (rc == 0 && source.pos < from_length)
            return -1; /* ours never end */
    }
    return 0;
}

static const struct tb_press_table table = {
    .feature = TB_FEATURE_ZSTD,
    .method = TB_SQUEEZE_ZSTD,
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

const struct tb_press_table *tb_press_zstd(void)
{
    return &table;
}
