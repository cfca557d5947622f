/* The binomial tree for blocks of different sizes, which at first only the root knows: those behind a rank tell it how
 * much they have, it makes room, and then passes everything on together. ceil(log2 p) messages of data one after the
 * other, in which the root receives all blocks, and as many, less one, of sizes: 2 log2 p (L + 2o) + (p - 1) m G. What
 * the root gets in one message must be copied to its places. */
#include "collectives/algorithms.h"

enum { EDGE_SIZES, EDGE_DATA };

/* The root knows all sizes and takes the blocks of each child apart. */
static void root_steps(struct tb_builder *b, const struct tb_collective *c)
{
    uint32_t size = c->size, before = size - c->rank; /* so many until the ranks begin again with 0 */
    if (!c->in_place)
        tb_builder_copy(b, tb_slice_one(TB_SYMBOL_IN, 0), tb_slice_one(TB_SYMBOL_OUT, c->rank));
    if (size > 2) {
        tb_builder_measure(b, tb_slice_many(TB_SYMBOL_OUT, c->rank, before), 0);
        if (c->rank > 0)
            tb_builder_measure(b, tb_slice_many(TB_SYMBOL_OUT, 0, c->rank), before);
        tb_builder_bind(b, size);
    }
    for (uint32_t at = 1; at < size; at *= 2) {
        uint32_t child = tb_rank_after(c, c->rank, at), behind = tb_binomial_behind(size, at), end = at + behind;
        if (behind == 1) {
            tb_builder_receive(b, child, EDGE_DATA, tb_slice_one(TB_SYMBOL_OUT, child));
            continue;
        }
        tb_builder_receive(b, child, EDGE_DATA, tb_slice_many(TB_SYMBOL_WORK, at, behind));
        tb_builder_join(b);
        uint32_t middle = before < at ? at : before < end ? before : end;
        if (at < middle)
            tb_builder_copy(b, tb_slice_many(TB_SYMBOL_WORK, at, middle - at),
                            tb_slice_many(TB_SYMBOL_OUT, child, middle - at));
        if (middle < end)
            tb_builder_copy(b, tb_slice_many(TB_SYMBOL_WORK, middle, end - middle),
                            tb_slice_many(TB_SYMBOL_OUT, tb_rank_after(c, c->rank, middle), end - middle));
    }
}

/* A rank `distance` from the root with `behind` blocks, its own one among them. */
static void relay_steps(struct tb_builder *b, const struct tb_collective *c, uint32_t distance, uint32_t behind)
{
    uint32_t up = distance & -distance, parent = tb_rank_after(c, c->root, distance - up);
    const struct tb_slice mine = tb_slice_one(TB_SYMBOL_IN, 0);
    if (behind > 1 || parent != c->root)
        tb_builder_measure(b, mine, 0);
    for (uint32_t at = 1; at < behind; at *= 2) {
        tb_builder_receive(b, tb_rank_after(c, c->rank, at), EDGE_SIZES,
                           tb_slice_many(TB_SYMBOL_SIZES, at, tb_binomial_behind(c->size, distance + at)));
        tb_builder_join(b);
    }
    if (parent != c->root) {
        tb_builder_send(b, parent, EDGE_SIZES, tb_slice_many(TB_SYMBOL_SIZES, 0, behind));
        tb_builder_join(b);
    }
    if (behind > 1) {
        tb_builder_bind(b, behind);
        tb_builder_copy(b, mine, tb_slice_one(TB_SYMBOL_WORK, 0));
    }
    for (uint32_t at = 1; at < behind; at *= 2) {
        tb_builder_receive(b, tb_rank_after(c, c->rank, at), EDGE_DATA,
                           tb_slice_many(TB_SYMBOL_WORK, at, tb_binomial_behind(c->size, distance + at)));
        tb_builder_join(b);
    }
    tb_builder_send(b, parent, EDGE_DATA, behind > 1 ? tb_slice_many(TB_SYMBOL_WORK, 0, behind) : mine);
    tb_builder_join(b);
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

const struct tb_algorithm tb_gatherv_binomial = {TB_OPERATION_GATHERV, "binomial", NULL, make, NULL, NULL};
