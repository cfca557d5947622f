/* SipHash-2-4 (Aumasson and Bernstein, 2012): a keyed check of 64 bits, made for short messages. Without the key nobody
 * can find one that fits, but by guessing; it hides nothing. It is written in a page and needs no library, which is why
 * datagrams have it: ranks load no OpenSSL.
 *
 * What is covered need not lie together: begin, add each part, end. */
#ifndef TB_BASE_SIPHASH_H
#define TB_BASE_SIPHASH_H

#include <stddef.h>
#include <stdint.h>

#define TB_SIPHASH_KEY_BYTES 16

struct tb_siphash_key {
    uint8_t bytes[TB_SIPHASH_KEY_BYTES];
};

struct tb_siphash {
    uint64_t v[4];
    uint64_t rest;   /* the last length % 8 bytes, the first of them lowest */
    uint64_t length; /* bytes so far */
};

void tb_siphash_begin(struct tb_siphash *s, const struct tb_siphash_key *key);
void tb_siphash_add(struct tb_siphash *s, const void *bytes, size_t length);
uint64_t tb_siphash_end(struct tb_siphash *s); /* then it must be begun anew */

#endif
