#include "link/squeeze_press.h"

#include <stdlib.h>

struct tb_unsqueeze {
    tb_squeeze_take *take;
    void *context;
    bool broken;

    uint8_t header[TB_SQUEEZE_HEADER];
    uint32_t have; /* bytes of the header, or of the block behind it */
    bool inside;   /* the header is whole */
    uint32_t wire, plain;
    uint8_t flags;

    /* Made when the first compressed block comes. */
    uint8_t *block;  /* TB_SQUEEZE_WIRE bytes: a block that is not whole yet */
    uint8_t *spread; /* TB_SQUEEZE_PLAIN bytes */
    char *frame;     /* TB_SQUEEZE_HEAD bytes of room, then TB_SQUEEZE_PLAIN */
    void *zstd, *lz4;
};

int tb_unsqueeze_open(struct tb_unsqueeze **unsqueeze, tb_squeeze_take *take, void *context)
{
    *unsqueeze = calloc(1, sizeof(**unsqueeze));
    if (*unsqueeze == NULL)
        return tb_error(TB_ERR_MEMORY, "no memory for a stream between gateways");
    (*unsqueeze)->take = take;
    (*unsqueeze)->context = context;
    return TB_OK;
}

void tb_unsqueeze_close(struct tb_unsqueeze *u)
{
    if (u == NULL)
        return;
    if (u->zstd != NULL)
        tb_press_zstd()->in_close(u->zstd);
    if (u->lz4 != NULL)
        tb_press_lz4()->in_close(u->lz4);
    free(u->block);
    free(u->spread);
    free(u->frame);
    free(u);
}

static int nonsense(struct tb_unsqueeze *u, const char *what)
{
    u->broken = true;
    return tb_error(TB_ERR_PROTOCOL, "a stream between gateways carries a block that makes no sense: %s", what);
}

static uint32_t number(const uint8_t *from)
{
    return (uint32_t)from[0] | (uint32_t)from[1] << 8 | (uint32_t)from[2] << 16 | (uint32_t)from[3] << 24;
}

static int header_check(struct tb_unsqueeze *u)
{
    u->wire = number(u->header);
    u->plain = number(u->header + 4) & 0xffffff;
    u->flags = u->header[7];
    uint8_t method = u->flags & TB_SQUEEZE_METHOD;
    if ((u->flags & ~TB_SQUEEZE_ALL) != 0 || method == TB_SQUEEZE_METHOD)
        return nonsense(u, "unknown flags");
    if (u->plain == 0 || u->plain > TB_SQUEEZE_PLAIN || u->wire == 0 || u->wire > TB_SQUEEZE_WIRE)
        return nonsense(u, "its length");
    if (method == TB_SQUEEZE_RAW)
        return u->flags == 0 && u->wire == u->plain ? TB_OK : nonsense(u, "raw, but changed");
    if ((u->flags & TB_SQUEEZE_SPREAD4) != 0 && (u->flags & TB_SQUEEZE_SPREAD8) != 0)
        return nonsense(u, "transposed twice");
    if ((method == TB_SQUEEZE_ZSTD ? tb_press_zstd() : tb_press_lz4()) == NULL)
        return nonsense(u, "compressed by what was not agreed");
    if (u->block == NULL) {
        u->block = malloc(TB_SQUEEZE_WIRE);
        u->spread = malloc(TB_SQUEEZE_PLAIN);
        u->frame = malloc(TB_SQUEEZE_HEAD + TB_SQUEEZE_PLAIN);
    }
    if (u->block != NULL && u->spread != NULL && u->frame != NULL)
        return TB_OK;
    u->broken = true;
    return tb_error(TB_ERR_MEMORY, "no memory to restore what was compressed");
}

static int block_take(struct tb_unsqueeze *u, const uint8_t *bytes)
{
    bool is_zstd = (u->flags & TB_SQUEEZE_METHOD) == TB_SQUEEZE_ZSTD;
    const struct tb_press_table *table = is_zstd ? tb_press_zstd() : tb_press_lz4();
    void **press = is_zstd ? &u->zstd : &u->lz4;
    if (*press == NULL)
        *press = table->in_open();
    if (*press == NULL) {
        u->broken = true;
        return tb_error(TB_ERR_MEMORY, "no memory to restore what was compressed");
    }
    if ((u->flags & TB_SQUEEZE_RESTART) != 0)
        table->in_restart(*press);
    size_t size = (u->flags & TB_SQUEEZE_SPREAD8) != 0 ? 8 : (u->flags & TB_SQUEEZE_SPREAD4) != 0 ? 4 : 1;
    uint8_t *frame = (uint8_t *)u->frame + TB_SQUEEZE_HEAD;
    if (table->in_unpack(*press, bytes, u->wire, size == 1 ? frame : u->spread, u->plain) != 0)
        return nonsense(u, "it cannot be restored");
    if (size > 1) {
        size_t head = u->plain < TB_SQUEEZE_HEAD ? u->plain : TB_SQUEEZE_HEAD;
        memcpy(frame, u->spread, head);
        tb_spread_undo(frame + head, u->spread + head, u->plain - head, size);
    }
    return u->take(u->context, (char *)frame, u->plain);
}

/* Some of the block that has begun; *used bytes of it are done. */
static int inside_feed(struct tb_unsqueeze *u, char *bytes, size_t length, size_t *used)
{
    uint32_t have = u->have, part = u->wire - have < length ? u->wire - have : (uint32_t)length;
    bool whole = have + part == u->wire;
    u->have = whole ? 0 : have + part;
    u->inside = !whole;
    *used = part;
    if ((u->flags & TB_SQUEEZE_METHOD) == TB_SQUEEZE_RAW)
        return u->take(u->context, bytes, part);
    if (part == u->wire)
        return block_take(u, (const uint8_t *)bytes);
    memcpy(u->block + have, bytes, part);
    return whole ? block_take(u, u->block) : TB_OK;
}

int tb_unsqueeze_feed(struct tb_unsqueeze *u, char *bytes, size_t length)
{
    if (u->broken)
        return tb_error(TB_ERR_PROTOCOL, "a compressed stream is broken, and is used no more");
    size_t used;
    int rc = TB_OK;
    for (size_t at = 0; rc == TB_OK && at < length; at += used) {
        if (u->inside) {
            rc = inside_feed(u, bytes + at, length - at, &used);
            continue;
        }
        used = sizeof(u->header) - u->have < length - at ? sizeof(u->header) - u->have : length - at;
        memcpy(u->header + u->have, bytes + at, used);
        u->have += (uint32_t)used;
        if (u->have < sizeof(u->header))
            continue;
        u->have = 0;
        u->inside = true;
        rc = header_check(u);
    }
    return rc;
}
