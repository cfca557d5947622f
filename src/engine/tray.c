#include "engine/tray.h"

#include <stdlib.h>

#define ROOM_FIRST ((size_t)16 << 10)
#define ROOM_KEPT  ((size_t)1 << 20)

struct tb_tray_item *tb_tray_add(struct tb_tray *tray, size_t behind, size_t left)
{
    size_t size = (sizeof(struct tb_tray_item) + behind + 15) & ~(size_t)15;
    if (tray->room - tray->used < size + left) {
        size_t room = tray->room < ROOM_FIRST ? ROOM_FIRST : 2 * tray->room;
        room = room - tray->used < size + left ? tray->used + size + left : room;
        char *bytes = realloc(tray->bytes, room);
        if (bytes == NULL)
            return NULL;
        tray->bytes = bytes;
        tray->room = room;
    }
    struct tb_tray_item *item = (struct tb_tray_item *)(tray->bytes + tray->used);
    tray->used += size;
    item->size = (uint32_t)size;
    return item;
}

void tb_tray_take(struct tb_tray *tray, struct tb_tray *taken)
{
    struct tb_tray empty = *taken;
    empty.used = 0;
    *taken = *tray;
    *tray = empty;
}

const struct tb_tray_item *tb_tray_next(const struct tb_tray *tray, size_t *at)
{
    if (*at >= tray->used)
        return NULL;
    const struct tb_tray_item *item = (const struct tb_tray_item *)(tray->bytes + *at);
    *at += item->size;
    return item;
}

void tb_tray_clear(struct tb_tray *tray)
{
    tray->used = 0;
    if (tray->room > ROOM_KEPT)
        tb_tray_close(tray);
}

void tb_tray_close(struct tb_tray *tray)
{
    free(tray->bytes);
    *tray = (struct tb_tray){.used = 0};
}
