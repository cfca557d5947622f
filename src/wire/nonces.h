/* Nonces: the random numbers of the hellos that a listener has answered, so that nobody who has recorded one is
 * answered again. Only what was proved comes in, so that strangers cannot fill it; it grows with what comes, and of
 * more than TB_NONCES_MOST the older half is forgotten. Whoever listens owns one. No thread of its own.
 *
 * Part of wire.h, which includes it. */
#ifndef TB_WIRE_NONCES_H
#define TB_WIRE_NONCES_H

#define TB_NONCES_MOST 65536u

/* An open hash of the first halves, which are random enough to tell hellos apart. */
struct tb_nonces_half {
    uint64_t *slots; /* 0: free */
    uint32_t count, room;
};

struct tb_nonces {
    struct tb_nonces_half young, old;
};

/* All zero is an empty one. */
void tb_nonces_close(struct tb_nonces *nonces);
/* Takes it in. TB_ERR_FORBIDDEN: it is there already; TB_ERR_MEMORY. No story. */
int tb_nonces_add(struct tb_nonces *nonces, const uint8_t nonce[static TB_NONCE_BYTES]);

#endif
