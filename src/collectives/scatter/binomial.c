/* A tree in which a rank gets the blocks of all those behind it together and sends them on: ceil(log2 p) messages one
 * after the other, in which the root sends p - 1 blocks and every block is passed on up to log2 p times. */
#include "collectives/algorithms.h"

#define RELAY_LIMIT (1u << 20) /* bytes of others that a rank keeps */

static bool fits(const struct tb_collective *c)
{
    uint64_t blocks = c->size > 1 ? c->size / 2 : 1;
    return !c->inter && c->elements * c->element_bytes <= RELAY_LIMIT / blocks;
}

/* Of a child's blocks, those up to the last rank and those from rank 0 on lie apart in the root's buffer and go in two
 * messages. */
static void root_send(struct tb_builder *b, const struct tb_collective *c, uint64_t distance, uint64_t count)
{
    uint32_t child = tb_rank_after(c, c->rank, distance), blocks = (uint32_t)count;
    uint32_t upper = c->size - child < blocks ? c->size - child : blocks;
    tb_builder_send(b, child, 0, tb_slice_many(TB_SYMBOL_IN, child, upper));
    tb_builder_join(b);
    if (upper < blocks) {
        tb_builder_send(b, child, 1, tb_slice_many(TB_SYMBOL_IN, 0, blocks - upper));
        tb_builder_join(b);
    }
}

static void receive_down(struct tb_builder *b, const struct tb_collective *c, uint64_t up, bool from_root,
                         uint32_t blocks)
{
    uint32_t parent = tb_rank_after(c, c->rank, c->size - up);
    uint32_t upper = from_root && c->size - c->rank < blocks ? c->size - c->rank : blocks;
    bool alone = blocks == 1;
    tb_builder_receive(b, parent, 0, tb_slice_many(alone ? TB_SYMBOL_OUT : TB_SYMBOL_WORK, 0, upper));
    tb_builder_join(b);
    if (upper < blocks) {
        tb_builder_receive(b, parent, 1, tb_slice_many(TB_SYMBOL_WORK, upper, blocks - upper));
        tb_builder_join(b);
    }
}

static int make(const struct tb_collective *c, struct tb_program **program)
{
    uint64_t distance = ((uint64_t)c->rank + c->size - c->root) % c->size, bit = 1;
    struct tb_builder b;
    tb_builder_open(&b, c->size);
    tb_builder_order(&b);
    while (bit < c->size && (distance & bit) == 0)
        bit *= 2;
    uint64_t behind = c->size - distance;
    uint32_t blocks = (uint32_t)(distance != 0 && bit < behind ? bit : behind);
    if (distance != 0)
        receive_down(&b, c, bit, distance == bit, blocks);
    for (bit /= 2; bit > 0; bit /= 2) {
        if (bit >= blocks)
            continue;
        uint64_t more = blocks - bit < bit ? blocks - bit : bit;
        if (distance == 0) {
            root_send(&b, c, bit, more);
        } else {
            tb_builder_send(&b, tb_rank_after(c, c->rank, bit), 0,
                            tb_slice_many(TB_SYMBOL_WORK, (uint32_t)bit, (uint32_t)more));
            tb_builder_join(&b);
        }
    }
    if (distance == 0 && !c->in_place)
        tb_builder_copy(&b, tb_slice_one(TB_SYMBOL_IN, c->rank), tb_slice_one(TB_SYMBOL_OUT, 0));
    if (distance != 0 && blocks > 1)
        tb_builder_copy(&b, tb_slice_one(TB_SYMBOL_WORK, 0), tb_slice_one(TB_SYMBOL_OUT, 0));
    return tb_builder_finish(&b, program);
}

const struct tb_algorithm tb_scatter_binomial = {TB_OPERATION_SCATTER, "binomial", fits, make, NULL, NULL};
