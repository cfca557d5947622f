#include "base/base.h"

#include <errno.h>
#include <sys/random.h>

/* xoshiro256** (Blackman and Vigna, 2018), seeded with splitmix64. */
static uint64_t rotate(uint64_t x, int by)
{
    return x << by | x >> (64 - by);
}

void tb_random_seed(struct tb_random *random, uint64_t seed)
{
    for (int i = 0; i < 4; i++) {
        seed += 0x9e3779b97f4a7c15u;
        uint64_t z = seed;
        z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
        z = (z ^ z >> 27) * 0x94d049bb133111ebu;
        random->state[i] = z ^ z >> 31;
    }
}

uint64_t tb_random_next(struct tb_random *random)
{
    uint64_t *s = random->state;
    uint64_t result = rotate(s[1] * 5, 7) * 9;
    uint64_t shifted = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= shifted;
    s[3] = rotate(s[3], 45);
    return result;
}

uint64_t tb_random_below(struct tb_random *random, uint64_t bound)
{
    TB_ASSERT(bound > 0);
    uint64_t reject = -bound % bound; /* the incomplete last round of 2^64 */
    uint64_t value;
    do {
        value = tb_random_next(random);
    } while (value < reject);
    return value % bound;
}

double tb_random_unit(struct tb_random *random)
{
    return (double)(tb_random_next(random) >> 11) * 0x1p-53;
}

int tb_random_secret(void *bytes, size_t length)
{
    for (char *at = bytes; length > 0;) {
        ssize_t n = getrandom(at, length, 0);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return tb_error_errno("cannot get %zu random bytes from the kernel", length);
        at += n;
        length -= (size_t)n;
    }
    return TB_OK;
}
