/* For unit tests: whatever is done to the bytes of a stream on the way, whoever reads them stays whole. Each byte of a
 * right recording is changed, in two ways, and the recording ends before each byte; it comes in large and in small
 * pieces. Nothing may abort, no error may be without a story, and nothing may grow. Of a long recording every 16th byte
 * is tried, with TEST_TIER=all every one, or every third beyond 16 KiB. */
#ifndef TB_BASE_CHANGED_BYTES_TEST_H
#define TB_BASE_CHANGED_BYTES_TEST_H

#include "base/base.h"

#include <malloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define CHANGED_BYTES_GROWTH (1u << 20)

/* Makes whoever reads, feeds it all in pieces of so many bytes, and unmakes it. TB_OK, TB_AGAIN (it waits for more), or
 * its error. */
typedef int changed_bytes_take(void *context, const uint8_t *bytes, size_t length, size_t piece);

struct changed_bytes {
    const char *kind; /* of stream, for messages */
    changed_bytes_take *take;
    void *context;
    const uint8_t *bytes; /* the right recording */
    size_t length;
};

static inline size_t changed_bytes_step(void)
{
    const char *tier = getenv("TEST_TIER");
    return tier != NULL && strcmp(tier, "all") == 0 ? 1 : 16;
}

static inline void changed_bytes_try(const struct changed_bytes *c, const uint8_t *bytes, size_t length, size_t piece,
                                     const char *what, size_t offset)
{
    tb_error(TB_ERR_INTERNAL, "%s", "");
    size_t before = mallinfo2().uordblks;
    int rc = c->take(c->context, bytes, length, piece);
    size_t after = mallinfo2().uordblks;
    if (rc < 0 && rc != TB_ERR_CLOSED && tb_error_story()[0] == 0)
        fail_msg("%s, byte %zu %s, pieces of %zu: %s without a story", c->kind, offset, what, piece, tb_error_name(rc));
    if (after > before + CHANGED_BYTES_GROWTH)
        fail_msg("%s, byte %zu %s, pieces of %zu: %zu bytes more", c->kind, offset, what, piece, after - before);
}

static inline void changed_bytes_sweep(const struct changed_bytes *c)
{
    const size_t pieces[] = {c->length, 4099, c->length < 4096 ? 1 : 1021};
    uint8_t *copy = malloc(c->length);
    size_t step = changed_bytes_step();
    assert_non_null(copy);
    memcpy(copy, c->bytes, c->length);
    int rc = c->take(c->context, copy, c->length, c->length);
    if (rc != TB_OK && rc != TB_AGAIN)
        fail_msg("%s: the right recording: %s, %s", c->kind, tb_error_name(rc), tb_error_story());
    for (size_t offset = 0, turn = 0; offset < c->length && offset < 65536; turn++) {
        size_t piece = pieces[turn % 3];
        copy[offset] ^= (uint8_t)(1u << offset % 8);
        changed_bytes_try(c, copy, c->length, piece, "with a bit changed", offset);
        copy[offset] = (uint8_t)~c->bytes[offset];
        changed_bytes_try(c, copy, c->length, piece, "with all bits changed", offset);
        copy[offset] = c->bytes[offset];
        changed_bytes_try(c, copy, offset, piece, "missing, and all that follow", offset);
        offset += offset < 256 ? 1 : offset < 16384 || step > 1 ? step : 3; /* all of the first frame */
    }
    free(copy);
}

#endif
