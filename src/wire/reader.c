/* The reader of control frames' fields. */
#include "wire/wire.h"
#include "wire/order.h"

#include <stdlib.h>

void tb_reader_open(struct tb_reader *r, const void *bytes, size_t length)
{
    *r = (struct tb_reader){.bytes = bytes, .length = length};
}

/* The next `length` bytes, taken; NULL after an error. */
static const uint8_t *reader_take(struct tb_reader *r, size_t length)
{
    if (r->error != TB_OK)
        return NULL;
    if (length > r->length - r->at) {
        r->error = tb_error(TB_ERR_PROTOCOL, "a control frame of %zu bytes ends too early: %zu more wanted at byte %zu",
                            r->length, length, r->at);
        return NULL;
    }
    const uint8_t *at = r->bytes + r->at;
    r->at += length;
    return at;
}

uint8_t tb_get_u8(struct tb_reader *r)
{
    const uint8_t *at = reader_take(r, 1);
    return at != NULL ? *at : 0;
}

uint32_t tb_get_u32(struct tb_reader *r)
{
    const uint8_t *at = reader_take(r, 4);
    return at != NULL ? tb_order_get32(at) : 0;
}

uint64_t tb_get_u64(struct tb_reader *r)
{
    const uint8_t *at = reader_take(r, 8);
    return at != NULL ? tb_order_get64(at) : 0;
}

const void *tb_get_bytes(struct tb_reader *r, size_t *length)
{
    uint32_t n = tb_get_u32(r);
    const uint8_t *at = reader_take(r, n);
    *length = at != NULL ? n : 0;
    return at;
}

const void *tb_get_rest(struct tb_reader *r, size_t *length)
{
    size_t rest = r->length - r->at;
    const uint8_t *at = reader_take(r, rest);
    *length = at != NULL ? rest : 0;
    return at;
}

char *tb_get_text(struct tb_reader *r)
{
    size_t length;
    const char *at = tb_get_bytes(r, &length);
    if (at == NULL)
        return NULL;
    if (length > 0 && memchr(at, '\0', length) != NULL) {
        r->error = tb_error(TB_ERR_PROTOCOL, "a text in a control frame has a zero byte in it");
        return NULL;
    }
    char *text = malloc(length + 1);
    if (text == NULL) {
        r->error = tb_error(TB_ERR_MEMORY, "no memory for a text of %zu bytes", length);
        return NULL;
    }
    if (length > 0)
        memcpy(text, at, length);
    text[length] = '\0';
    return text;
}

int tb_reader_end(const struct tb_reader *r)
{
    if (r->error != TB_OK)
        return r->error;
    if (r->at != r->length)
        return tb_error(TB_ERR_PROTOCOL, "a control frame of %zu bytes has %zu more than it should", r->length,
                        r->length - r->at);
    return TB_OK;
}
