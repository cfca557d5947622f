/* Bruck's: a block that must go d ranks further goes in steps of the powers of two that d consists of: in round k
 * everyone packs those blocks whose d has bit k and sends them together to the rank 2^k further. ceil(log2 p)(L + 2o +
 * p/2 m G), and as much is packed and unpacked: for small blocks. */
#include "collectives/algorithms.h"

#define ROOM_LIMIT (64ull << 20) /* bytes of WORK */

static bool fits(const struct tb_collective *c)
{
    return !c->in_place && !c->inter && c->elements * c->element_bytes <= ROOM_LIMIT / (2ull * c->size);
}

/* Copies the blocks in WORK whose index has `bit` to `packed` on, one after the other, or back. */
static uint32_t pack(struct tb_builder *b, uint32_t size, uint32_t bit, uint32_t packed, bool back)
{
    uint32_t runs = (size - bit + 2 * bit - 1) / (2 * bit), at = packed;
    bool across = runs > bit; /* fewer copies: those that lie 2 bit apart, instead of those side by side */
    for (uint32_t i = 0; i < (across ? bit : runs); i++) {
        struct tb_slice blocks = {.symbol = TB_SYMBOL_WORK, .stride = across ? (int32_t)(2 * bit) : 1};
        blocks.first = across ? bit + i : bit + i * 2 * bit;
        if (blocks.first >= size)
            break;
        uint32_t left = size - blocks.first;
        blocks.count = across ? (left + 2 * bit - 1) / (2 * bit) : left < bit ? left : bit;
        struct tb_slice room = tb_slice_many(TB_SYMBOL_WORK, at, blocks.count);
        tb_builder_copy(b, back ? room : blocks, back ? blocks : room);
        if (!across)
            tb_builder_join(b);
        at += blocks.count;
    }
    return at - packed;
}

static int make(const struct tb_collective *c, struct tb_program **program)
{
    uint32_t me = c->rank, size = c->size, half = (size + 1) / 2;
    uint16_t edge = 0;
    struct tb_builder b;
    tb_builder_open(&b, size);
    tb_builder_order(&b);
    /* Block i of WORK is for, later from, the rank i further, or before. */
    tb_builder_copy(&b, tb_slice_many(TB_SYMBOL_IN, me, size - me), tb_slice_many(TB_SYMBOL_WORK, 0, size - me));
    tb_builder_join(&b);
    if (me > 0) {
        tb_builder_copy(&b, tb_slice_many(TB_SYMBOL_IN, 0, me), tb_slice_many(TB_SYMBOL_WORK, size - me, me));
        tb_builder_join(&b);
    }
    for (uint32_t bit = 1; bit < size; bit *= 2, edge++) {
        uint32_t count = pack(&b, size, bit, size, false);
        tb_builder_send(&b, tb_rank_after(c, me, bit), edge, tb_slice_many(TB_SYMBOL_WORK, size, count));
        tb_builder_join(&b);
        tb_builder_receive(&b, tb_rank_after(c, me, size - bit), edge,
                           tb_slice_many(TB_SYMBOL_WORK, size + half, count));
        tb_builder_join(&b);
        pack(&b, size, bit, size + half, true);
    }
    struct tb_slice down = {.symbol = TB_SYMBOL_OUT, .first = me, .stride = -1, .count = me + 1};
    tb_builder_copy(&b, tb_slice_many(TB_SYMBOL_WORK, 0, me + 1), down);
    if (me + 1 < size) {
        down.first = size - 1;
        down.count = size - 1 - me;
        tb_builder_copy(&b, tb_slice_many(TB_SYMBOL_WORK, me + 1, size - 1 - me), down);
    }
    return tb_builder_finish(&b, program);
}

const struct tb_algorithm tb_alltoall_bruck = {TB_OPERATION_ALLTOALL, "bruck", fits, make, NULL, NULL};
