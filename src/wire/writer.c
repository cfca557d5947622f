/* The writer of control frames' fields. */
#include "wire/wire.h"
#include "wire/order.h"

#include <stdlib.h>

#define FIRST_ROOM 256u

void tb_writer_open(struct tb_writer *w)
{
    *w = (struct tb_writer){0};
}

void tb_writer_close(struct tb_writer *w)
{
    free(w->bytes);
    *w = (struct tb_writer){0};
}

/* Room for `length` bytes at the end, counted as written; NULL after an error. */
static uint8_t *writer_extend(struct tb_writer *w, size_t length)
{
    if (w->error != TB_OK)
        return NULL;
    if (length > TB_CONTROL_LIMIT - w->length) {
        w->error = tb_error(TB_ERR_LIMIT, "a control frame would be longer than %u bytes", TB_CONTROL_LIMIT);
        return NULL;
    }
    size_t need = w->length + length;
    if (need > w->room || w->bytes == NULL) {
        size_t room = w->room > 0 ? w->room : FIRST_ROOM;
        while (room < need)
            room *= 2;
        uint8_t *bytes = realloc(w->bytes, room);
        if (bytes == NULL) {
            w->error = tb_error(TB_ERR_MEMORY, "no memory for a control frame of %zu bytes", room);
            return NULL;
        }
        w->bytes = bytes;
        w->room = room;
    }
    uint8_t *at = w->bytes + w->length;
    w->length = need;
    return at;
}

void tb_put_u8(struct tb_writer *w, uint8_t v)
{
    uint8_t *at = writer_extend(w, 1);
    if (at != NULL)
        *at = v;
}

void tb_put_u32(struct tb_writer *w, uint32_t v)
{
    uint8_t *at = writer_extend(w, 4);
    if (at != NULL)
        tb_order_put32(at, v);
}

void tb_put_u64(struct tb_writer *w, uint64_t v)
{
    uint8_t *at = writer_extend(w, 8);
    if (at != NULL)
        tb_order_put64(at, v);
}

void tb_put_bytes(struct tb_writer *w, const void *bytes, size_t length)
{
    /* Beyond the limit the length may not fit its field; the number written does not matter then. */
    uint8_t *at = writer_extend(w, length < TB_CONTROL_LIMIT ? 4 + length : TB_CONTROL_LIMIT + (size_t)1);
    if (at == NULL)
        return;
    tb_order_put32(at, (uint32_t)length);
    if (length > 0)
        memcpy(at + 4, bytes, length);
}

void tb_put_raw(struct tb_writer *w, const void *fields, size_t length)
{
    uint8_t *at = writer_extend(w, length);
    if (at != NULL && length > 0)
        memcpy(at, fields, length);
}

void tb_put_text(struct tb_writer *w, const char *text)
{
    TB_ASSERT(text != NULL);
    tb_put_bytes(w, text, strlen(text));
}
