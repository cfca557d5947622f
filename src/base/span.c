#include "base/base.h"

void tb_spans_gather_slow(struct tb_spans *s, void *to, size_t n)
{
    TB_ASSERT(n <= s->left);
    if (s->copy != NULL) {
        s->copy(s, to, n, true);
        return;
    }
    char *at = to;
    while (n > 0) {
        size_t part = n < s->length ? n : s->length;
        memcpy(at, s->base, part);
        tb_spans_skip(s, part);
        at += part;
        n -= part;
    }
}

void tb_spans_scatter_slow(struct tb_spans *s, const void *from, size_t n)
{
    TB_ASSERT(n <= s->left);
    if (s->copy != NULL) {
        s->copy(s, (void *)from, n, false);
        return;
    }
    const char *at = from;
    while (n > 0) {
        size_t part = n < s->length ? n : s->length;
        memcpy(s->base, at, part);
        tb_spans_skip(s, part);
        at += part;
        n -= part;
    }
}

#define STAGE_BYTES 8192 /* between two sides with gaps */

void tb_spans_move(struct tb_spans *from, struct tb_spans *to)
{
    char stage[STAGE_BYTES];
    TB_ASSERT(from->left == to->left);
    while (from->left > 0) {
        if (from->length == from->left && to->length == to->left) {
            memmove(to->base, from->base, from->left);
            break;
        }
        if (from->length == from->left) {
            tb_spans_scatter(to, from->base, from->left);
            break;
        }
        if (to->length == to->left) {
            tb_spans_gather(from, to->base, from->left);
            break;
        }
        size_t n = from->left < STAGE_BYTES ? from->left : STAGE_BYTES;
        tb_spans_gather(from, stage, n);
        tb_spans_scatter(to, stage, n);
    }
    from->left = from->length = 0;
    to->left = to->length = 0;
}
