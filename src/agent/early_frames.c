#include "agent/early_frames.h"

#include <stdlib.h>
#include <string.h>

#define LIMIT (1u << 20) /* bytes */

struct head {
    uint32_t kind, length;
};

bool tb_early_frames_concern(uint32_t kind)
{
    return kind == TB_CONTROL_WORLD || kind == TB_CONTROL_WORLD_END || kind == TB_CONTROL_BORDER;
}

int tb_early_frames_keep(struct tb_early_frames *early, const struct tb_control_frame *frame)
{
    struct tb_reader r = frame->fields;
    size_t length;
    const void *fields = tb_get_rest(&r, &length);
    if (r.error != TB_OK)
        return r.error;
    struct head head = {.kind = frame->kind, .length = (uint32_t)length};
    if (early->length + sizeof head + length > LIMIT)
        return tb_error(TB_ERR_LIMIT, "too much is asked for before the other hosts are known");
    uint8_t *grown = realloc(early->bytes, early->length + sizeof head + length);
    if (grown == NULL)
        return tb_error(TB_ERR_MEMORY, "no memory for what is asked for before the other hosts are known");
    memcpy(grown + early->length, &head, sizeof head);
    memcpy(grown + early->length + sizeof head, fields, length);
    early->bytes = grown;
    early->length += sizeof head + length;
    return TB_OK;
}

void tb_early_frames_take(struct tb_early_frames *early, void (*take)(void *context, struct tb_control_frame *frame),
                          void *context)
{
    struct tb_early_frames all = *early;
    struct head head;
    *early = (struct tb_early_frames){.bytes = NULL};
    for (size_t at = 0; at < all.length; at += sizeof head + head.length) {
        struct tb_control_frame frame;
        memcpy(&head, all.bytes + at, sizeof head);
        frame.kind = head.kind;
        tb_reader_open(&frame.fields, all.bytes + at + sizeof head, head.length);
        take(context, &frame);
    }
    free(all.bytes);
}
