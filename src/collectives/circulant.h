/* One rank's part of Träff's schedules on the circulant graph (arXiv 2312.11236 and 2407.18004), in which n blocks
 * reach p ranks in n - 1 + ceil(log2 p) rounds, as few as there can be. Pure functions, O(log p) in time and memory;
 * whoever declares the structure owns it; any thread.
 *
 * Ranks are counted from the root on (virtual ranks), q is ceil(log2 p). In round i everyone sends to the rank that is
 * skip[i mod q] further and receives from the one that is as much before. What a rank receives and sends in the q
 * rounds of a phase are relative blocks, from -q up to q - 1: in the next phase it is the block q further. Blocks
 * below 0 do not exist, and those behind the last one stand for the last one. */
#ifndef TB_COLLECTIVES_CIRCULANT_H
#define TB_COLLECTIVES_CIRCULANT_H

#include "base/base.h"

#define TB_CIRCULANT_ROUNDS 32u /* of a phase, at most */

struct tb_circulant {
    uint32_t p, q;
    uint32_t skip[TB_CIRCULANT_ROUNDS + 1]; /* skip[0] is 1, skip[q] is p */
    uint32_t base;                          /* the block that this rank gets first; of the root q */
    int32_t receive[TB_CIRCULANT_ROUNDS], send[TB_CIRCULANT_ROUNDS];
};

/* The graph: p (at least 1), q and skip. */
void tb_circulant_open(struct tb_circulant *c, uint32_t p);
/* Base, receive and send of virtual rank r. The root's receive is what would come to it, and is not sent. */
void tb_circulant_find(struct tb_circulant *c, uint32_t r);

/* Virtual ranks on the ring. */
static inline uint32_t tb_circulant_after(const struct tb_circulant *c, uint32_t r, uint32_t distance)
{
    return (uint32_t)(((uint64_t)r + distance) % c->p);
}

static inline uint32_t tb_circulant_before(const struct tb_circulant *c, uint32_t r, uint32_t distance)
{
    return (uint32_t)(((uint64_t)r + c->p - distance % c->p) % c->p);
}

/* What a value of receive or send means for n blocks: `count` blocks from `first` on, each q behind the one before, the
 * first of them in phase `phase`; and then, if `last`, block n - 1 in the last phase. */
struct tb_circulant_blocks {
    uint32_t first, count, phase;
    bool last;
};

struct tb_circulant_blocks tb_circulant_blocks(const struct tb_circulant *c, int32_t value, uint32_t n);

#endif
