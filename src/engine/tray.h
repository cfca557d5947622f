/* What has come for a lane (laned.h) from the transports that all lanes share, in order: frames with their payload, and
 * what else transports call up. Whoever polls puts it in, with the transports locked; the lane takes all of it at once,
 * and then looks at it with its own lock alone.
 *
 * All zero is an empty one. */
#ifndef TB_ENGINE_TRAY_H
#define TB_ENGINE_TRAY_H

#include "wire/wire.h"

enum tb_tray_kind {
    TB_TRAY_FRAME,
    TB_TRAY_SENT,     /* token */
    TB_TRAY_WRITABLE, /* nothing more */
    TB_TRAY_BROKEN,   /* error, and its story behind it */
    TB_TRAY_LOST      /* the same, of processes that need not have an end */
};

struct tb_tray_range {
    uint32_t first, count; /* indices of processes */
};

struct tb_tray_item {
    uint32_t size; /* with what stands behind it */
    uint8_t kind;  /* enum tb_tray_kind */
    int error;
    void *end; /* of the way to a process, which all lanes share; NULL: of none */
    union {
        uint64_t token;
        struct tb_tray_range lost;
        const void *placed; /* of a frame: where its payload is already; NULL: behind the item */
    };
    uint64_t length; /* of the payload, or of the story */
    struct tb_message message;
};

struct tb_tray {
    char *bytes;
    size_t used, room;
};

/* A new last one, with room for so many bytes behind it, and so many left for others. NULL: no memory. */
struct tb_tray_item *tb_tray_add(struct tb_tray *tray, size_t behind, size_t left);
/* All of it goes to `taken`, whose memory is used for what comes next. */
void tb_tray_take(struct tb_tray *tray, struct tb_tray *taken);
/* The item at an offset, which is set to that of the next one; NULL: there is none. */
const struct tb_tray_item *tb_tray_next(const struct tb_tray *tray, size_t *at);
void tb_tray_clear(struct tb_tray *tray); /* keeps little memory */
void tb_tray_close(struct tb_tray *tray);

static inline const void *tb_tray_behind(const struct tb_tray_item *item)
{
    return item + 1;
}

#endif
