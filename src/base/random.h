/* Random numbers. struct tb_random is a seeded generator (xoshiro-like quality, not secret) for faults and tests;
 * tb_random_secret fills from the kernel and is the only source for keys and nonces. */
#ifndef TB_BASE_RANDOM_H
#define TB_BASE_RANDOM_H

#include <stddef.h>
#include <stdint.h>

struct tb_random {
    uint64_t state[4];
};

void tb_random_seed(struct tb_random *random, uint64_t seed);
uint64_t tb_random_next(struct tb_random *random);
uint64_t tb_random_below(struct tb_random *random, uint64_t bound); /* 0 .. bound-1, without bias */
double tb_random_unit(struct tb_random *random);                    /* [0, 1) */

int tb_random_secret(void *bytes, size_t length);

#endif
