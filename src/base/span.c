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
