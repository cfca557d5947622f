#include "collectives/algorithms.h"

struct tb_slice tb_tree_whole(const struct tb_builder *b, enum tb_symbol symbol, uint32_t copy)
{
    return tb_slice_many(symbol, copy * b->program.pieces, b->program.pieces);
}

uint32_t tb_behind(uint32_t size, uint32_t distance)
{
    uint32_t bit = distance & -distance;
    return distance == 0 ? size : bit < size - distance ? bit : size - distance;
}

static uint32_t tree_rank(const struct tb_tree *t, uint64_t distance)
{
    return (uint32_t)((t->root + distance) % t->size);
}

static uint64_t tree_distance(const struct tb_tree *t)
{
    return ((uint64_t)t->rank + t->size - t->root) % t->size;
}

/* The last added step is one of the tree's messages. */
static void tree_message(struct tb_builder *b, const struct tb_tree *t)
{
    tb_builder_join(b);
    if (t->local)
        tb_builder_local(b);
}

void tb_tree_broadcast(struct tb_builder *b, const struct tb_tree *t, struct tb_slice slice)
{
    uint64_t distance = tree_distance(t);
    /* The lowest set bit leads to the parent; below it lie the children, the one with the most behind it first. */
    uint64_t bit = 1;
    while (bit < t->size && (distance & bit) == 0)
        bit *= 2;
    if (distance != 0) {
        tb_builder_receive(b, tree_rank(t, distance - bit), t->edge, slice);
        tree_message(b, t);
    }
    for (bit /= 2; bit > 0; bit /= 2) {
        if (distance + bit >= t->size)
            continue;
        tb_builder_send(b, tree_rank(t, distance + bit), t->edge, slice);
        tree_message(b, t);
    }
}

/* Where to receive a child's data, so that the sum so far, which is not to be overwritten, can be combined into it. */
static struct tb_slice reduce_room(const struct tb_builder *b, struct tb_slice sum, bool into_out)
{
    if (into_out && sum.symbol != TB_SYMBOL_OUT)
        return tb_tree_whole(b, TB_SYMBOL_OUT, 0);
    bool second = sum.symbol == TB_SYMBOL_WORK && sum.first == 0;
    return tb_tree_whole(b, TB_SYMBOL_WORK, second ? 1 : 0);
}

struct tb_slice tb_tree_reduce(struct tb_builder *b, const struct tb_tree *t, const struct tb_collective *c,
                               bool into_out)
{
    uint64_t distance = tree_distance(t);
    struct tb_slice out = tb_tree_whole(b, TB_SYMBOL_OUT, 0);
    struct tb_slice sum = tb_tree_whole(b, tb_source(c), 0);
    for (uint64_t bit = 1; bit < t->size; bit *= 2) {
        if ((distance & bit) != 0) {
            tb_builder_send(b, tree_rank(t, distance - bit), t->edge, sum);
            tree_message(b, t);
            return sum;
        }
        if (distance + bit >= t->size)
            continue;
        bool last = into_out && bit * 2 >= t->size;
        struct tb_slice theirs = reduce_room(b, sum, last);
        tb_builder_receive(b, tree_rank(t, distance + bit), t->edge, theirs);
        tree_message(b, t);
        /* Theirs are of higher ranks. What belongs into OUT and is there already may stay, if order does not matter. */
        bool stays = last && sum.symbol == TB_SYMBOL_OUT && c->commutative;
        tb_builder_reduce(b, stays ? theirs : sum, stays ? sum : theirs);
        tb_builder_join(b);
        sum = stays ? sum : theirs;
    }
    if (into_out && sum.symbol != TB_SYMBOL_OUT) {
        tb_builder_copy(b, sum, out);
        tb_builder_join(b);
        sum = out;
    }
    return sum;
}
