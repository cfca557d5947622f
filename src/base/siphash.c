#include "base/base.h"

/* The state as the compiler can keep it in registers. */
struct state {
    uint64_t a, b, c, d;
};

static inline uint64_t rotate(uint64_t x, int by)
{
    return x << by | x >> (64 - by);
}

static inline void stir(struct state *s)
{
    s->a += s->b;
    s->c += s->d;
    s->b = rotate(s->b, 13) ^ s->a;
    s->d = rotate(s->d, 16) ^ s->c;
    s->a = rotate(s->a, 32) + s->d;
    s->c += s->b;
    s->d = rotate(s->d, 21) ^ s->a;
    s->b = rotate(s->b, 17) ^ s->c;
    s->c = rotate(s->c, 32);
}

static inline void absorb(struct state *s, uint64_t word)
{
    s->d ^= word;
    stir(s);
    stir(s);
    s->a ^= word;
}

/* A little-endian number of any alignment, in one load. */
static inline uint64_t word_at(const uint8_t *at)
{
    uint64_t word;
    memcpy(&word, at, sizeof word);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    word = __builtin_bswap64(word);
#endif
    return word;
}

static inline struct state state_of(const struct tb_siphash *s)
{
    return (struct state){s->v[0], s->v[1], s->v[2], s->v[3]};
}

static inline void state_keep(struct tb_siphash *s, const struct state *state)
{
    s->v[0] = state->a;
    s->v[1] = state->b;
    s->v[2] = state->c;
    s->v[3] = state->d;
}

void tb_siphash_begin(struct tb_siphash *s, const struct tb_siphash_key *key)
{
    uint64_t low = word_at(key->bytes), high = word_at(key->bytes + 8);
    *s = (struct tb_siphash){.v = {low ^ 0x736f6d6570736575u, high ^ 0x646f72616e646f6du, low ^ 0x6c7967656e657261u,
                                   high ^ 0x7465646279746573u}};
}

void tb_siphash_add(struct tb_siphash *s, const void *bytes, size_t length)
{
    const uint8_t *at = bytes;
    unsigned held = s->length % 8;
    s->length += length;
    if (held > 0) { /* completes the word that the part before has begun */
        for (; held < 8 && length > 0; held++, length--)
            s->rest |= (uint64_t)*at++ << 8 * held;
        if (held < 8)
            return;
    }
    struct state state = state_of(s);
    if (held == 8)
        absorb(&state, s->rest);
    for (; length >= 8; length -= 8, at += 8)
        absorb(&state, word_at(at));
    state_keep(s, &state);
    s->rest = 0;
    for (unsigned i = 0; i < length; i++)
        s->rest |= (uint64_t)at[i] << 8 * i;
}

uint64_t tb_siphash_end(struct tb_siphash *s)
{
    struct state state = state_of(s);
    absorb(&state, s->rest | s->length << 56);
    state.c ^= 0xff;
    for (int i = 0; i < 4; i++)
        stir(&state);
    return state.a ^ state.b ^ state.c ^ state.d;
}
