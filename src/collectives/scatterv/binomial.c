/* The binomial tree for blocks of different sizes, which at first only the root knows: who is to pass blocks on is told
 * their sizes first, makes room, and gets them together. ceil(log2 p) messages of data one after the other, in which
 * the root sends all blocks, and as many, less one, of sizes: 2 log2 p (L + 2o) + (p - 1) m G. What the root sends in
 * one message must be copied together. */
#include "collectives/algorithms.h"

enum { EDGE_SIZES, EDGE_DATA };

/* Sends what belongs to the child `at` further, of `behind` blocks, and their sizes if it is to pass some on. */
static void send_down(struct tb_builder *b, const struct tb_collective *c, uint32_t at, uint32_t behind)
{
    uint32_t child = tb_rank_after(c, c->rank, at);
    if (behind > 1) {
        tb_builder_send(b, child, EDGE_SIZES, tb_slice_many(TB_SYMBOL_SIZES, at, behind));
        tb_builder_join(b);
    }
    bool direct = behind == 1 && c->rank == c->root;
    tb_builder_send(b, child, EDGE_DATA,
                    direct ? tb_slice_one(TB_SYMBOL_IN, child) : tb_slice_many(TB_SYMBOL_WORK, at, behind));
    tb_builder_join(b);
}

/* The root knows all sizes and puts the blocks of each child together. */
static void root_steps(struct tb_builder *b, const struct tb_collective *c)
{
    uint32_t size = c->size, before = size - c->rank, top = 1; /* so many until the ranks begin again with 0 */
    while (top < size)
        top *= 2;
    if (size > 2) {
        tb_builder_measure(b, tb_slice_many(TB_SYMBOL_IN, c->rank, before), 0);
        if (c->rank > 0)
            tb_builder_measure(b, tb_slice_many(TB_SYMBOL_IN, 0, c->rank), before);
        tb_builder_bind(b, size);
    }
    for (uint32_t at = top / 2; at > 0; at /= 2) {
        uint32_t behind = tb_binomial_behind(size, at), end = at + behind,
                 middle = before < at    ? at
                          : before < end ? before
                                         : end;
        if (behind > 1 && at < middle)
            tb_builder_copy(b, tb_slice_many(TB_SYMBOL_IN, tb_rank_after(c, c->rank, at), middle - at),
                            tb_slice_many(TB_SYMBOL_WORK, at, middle - at));
        if (behind > 1 && middle < end)
            tb_builder_copy(b, tb_slice_many(TB_SYMBOL_IN, tb_rank_after(c, c->rank, middle), end - middle),
                            tb_slice_many(TB_SYMBOL_WORK, middle, end - middle));
        send_down(b, c, at, behind);
    }
    if (!c->in_place)
        tb_builder_copy(b, tb_slice_one(TB_SYMBOL_IN, c->rank), tb_slice_one(TB_SYMBOL_OUT, 0));
}

static void relay_steps(struct tb_builder *b, const struct tb_collective *c, uint32_t distance, uint32_t behind)
{
    uint32_t up = distance & -distance, parent = tb_rank_after(c, c->root, distance - up);
    const struct tb_slice mine = tb_slice_one(TB_SYMBOL_OUT, 0);
    if (behind > 1) {
        tb_builder_receive(b, parent, EDGE_SIZES, tb_slice_many(TB_SYMBOL_SIZES, 0, behind));
        tb_builder_join(b);
        tb_builder_bind(b, behind);
    }
    tb_builder_receive(b, parent, EDGE_DATA, behind > 1 ? tb_slice_many(TB_SYMBOL_WORK, 0, behind) : mine);
    tb_builder_join(b);
    for (uint32_t at = up / 2; at > 0; at /= 2)
        if (at < behind)
            send_down(b, c, at, tb_binomial_behind(c->size, distance + at));
    if (behind > 1)
        tb_builder_copy(b, tb_slice_one(TB_SYMBOL_WORK, 0), mine);
}

static int make(const struct tb_collective *c, struct tb_program **program)
{
    uint32_t distance = (uint32_t)(((uint64_t)c->rank + c->size - c->root) % c->size);
    struct tb_builder b;
    tb_builder_open(&b, c->size);
    tb_builder_order(&b);
    if (distance == 0)
        root_steps(&b, c);
    else
        relay_steps(&b, c, distance, tb_binomial_behind(c->size, distance));
    return tb_builder_finish(&b, program);
}

const struct tb_algorithm tb_scatterv_binomial = {TB_OPERATION_SCATTERV, "binomial", NULL, make, NULL, NULL};
