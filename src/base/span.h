/* Spans: a sequence of pieces of memory, read from the front. This is how a message's bytes reach a transport without a
 * copy, whatever the datatype: a contiguous buffer is one span and `next` is NULL; a noncontiguous one produces span
 * after span from `next`. The one who consumes bytes calls tb_spans_skip. Lives on the stack of its user. */
#ifndef TB_BASE_SPAN_H
#define TB_BASE_SPAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct tb_spans {
    char *base;                           /* the current span; its memory belongs to the giver */
    size_t length;                        /* bytes left in the current span; 0 only when left is 0 */
    uint64_t left;                        /* bytes left in all, the current span included */
    void (*next)(struct tb_spans *spans); /* sets base and length to the following span; NULL if there is one span */
    /* Copies n bytes (n <= left) out of the spans (gather) or into them and moves on, faster than span by span; may be
     * NULL. */
    void (*copy)(struct tb_spans *spans, void *packed, size_t n, bool gather);
    const void *owner;  /* for `next` and `copy`: the description that is walked; stays unchanged */
    uint64_t cursor[2]; /* for `next` and `copy`: where they are; a copy of the struct walks by itself */
};

static inline struct tb_spans tb_spans_of(const void *base, uint64_t length)
{
    struct tb_spans s; /* of one span `owner` and `cursor` mean nothing; clearing the whole takes as long as sending */
    s.base = (char *)base;
    s.length = s.left = length;
    s.next = NULL;
    s.copy = NULL;
    return s;
}

static inline void tb_spans_skip(struct tb_spans *s, size_t n)
{
    s->left -= n;
    s->length -= n;
    s->base = (char *)((uintptr_t)s->base + n); /* of a window of another process it is no address here */
    if (s->length == 0 && s->left > 0)
        s->next(s);
}

/* Copies n bytes (n <= left) out of the spans / into the spans and moves on. */
void tb_spans_gather_slow(struct tb_spans *s, void *to, size_t n);
void tb_spans_scatter_slow(struct tb_spans *s, const void *from, size_t n);

/* Copies everything that is left of `from` to `to`, which must have as many bytes left. */
void tb_spans_move(struct tb_spans *from, struct tb_spans *to);

static inline void tb_spans_gather(struct tb_spans *s, void *to, size_t n)
{
    if (__builtin_expect(n <= s->length, 1)) {
        if (n > 0) {
            memcpy(to, s->base, n);
            tb_spans_skip(s, n);
        }
    } else {
        tb_spans_gather_slow(s, to, n);
    }
}

static inline void tb_spans_scatter(struct tb_spans *s, const void *from, size_t n)
{
    if (__builtin_expect(n <= s->length, 1)) {
        if (n > 0) {
            memcpy(s->base, from, n);
            tb_spans_skip(s, n);
        }
    } else {
        tb_spans_scatter_slow(s, from, n);
    }
}

#endif
