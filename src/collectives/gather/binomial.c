/* A tree in which a rank collects the blocks of all those behind it and sends them on together: ceil(log2 p) messages
 * one after the other, in which the root receives p - 1 blocks and every block is passed on up to log2 p times. */
#include "collectives/algorithms.h"

#define RELAY_LIMIT (1u << 20) /* bytes of others that a rank keeps */

static bool fits(const struct tb_collective *c)
{
    uint64_t blocks = c->size > 1 ? c->size / 2 : 1;
    return !c->inter && c->elements * c->element_bytes <= RELAY_LIMIT / blocks;
}

/* Of a child's blocks, those up to the last rank and those from rank 0 on lie apart in the root's buffer and come in
 * two messages. */
static void root_receive(struct tb_builder *b, const struct tb_collective *c, uint64_t distance, uint64_t count)
{
    uint32_t child = tb_rank_after(c, c->rank, distance), blocks = (uint32_t)count;
    uint32_t upper = c->size - child < blocks ? c->size - child : blocks;
    tb_builder_receive(b, child, 0, tb_slice_many(TB_SYMBOL_OUT, child, upper));
    tb_builder_join(b);
    if (upper < blocks) {
        tb_builder_receive(b, child, 1, tb_slice_many(TB_SYMBOL_OUT, 0, blocks - upper));
        tb_builder_join(b);
    }
}

/* WORK has this rank's block and behind it those of the ranks behind. */
static void send_up(struct tb_builder *b, const struct tb_collective *c, uint64_t up, bool to_root, uint32_t blocks)
{
    uint32_t parent = tb_rank_after(c, c->rank, c->size - up);
    uint32_t upper = to_root && c->size - c->rank < blocks ? c->size - c->rank : blocks;
    bool alone = blocks == 1;
    tb_builder_send(b, parent, 0, tb_slice_many(alone ? TB_SYMBOL_IN : TB_SYMBOL_WORK, 0, upper));
    tb_builder_join(b);
    if (upper < blocks) {
        tb_builder_send(b, parent, 1, tb_slice_many(TB_SYMBOL_WORK, upper, blocks - upper));
        tb_builder_join(b);
    }
}

static int make(const struct tb_collective *c, struct tb_program **program)
{
    uint64_t distance = ((uint64_t)c->rank + c->size - c->root) % c->size;
    struct tb_builder b;
    tb_builder_open(&b, c->size);
    tb_builder_order(&b);
    if (distance == 0 && !c->in_place)
        tb_builder_copy(&b, tb_slice_one(TB_SYMBOL_IN, 0), tb_slice_one(TB_SYMBOL_OUT, c->rank));
    uint64_t bit = 1, blocks = 1;
    for (; bit < c->size && (distance & bit) == 0; bit *= 2) {
        if (distance + bit >= c->size)
            continue;
        uint64_t more = c->size - distance - bit < bit ? c->size - distance - bit : bit;
        if (distance == 0) {
            root_receive(&b, c, bit, more);
        } else {
            tb_builder_receive(&b, tb_rank_after(c, c->rank, bit), 0,
                               tb_slice_many(TB_SYMBOL_WORK, (uint32_t)bit, (uint32_t)more));
            tb_builder_join(&b);
        }
        blocks += more;
    }
    if (distance != 0 && blocks > 1)
        tb_builder_copy(&b, tb_slice_one(TB_SYMBOL_IN, 0), tb_slice_one(TB_SYMBOL_WORK, 0));
    if (distance != 0)
        send_up(&b, c, bit, distance == bit, (uint32_t)blocks);
    return tb_builder_finish(&b, program);
}

const struct tb_algorithm tb_gather_binomial = {TB_OPERATION_GATHER, "binomial", fits, make, NULL, NULL};
