/* The message is halved; each half goes in pieces down one half of a binary tree, and ranks of both halves swap in
 * pairs what they have got: for n pieces of m bytes in all about (log2 p + n/2)(L + 2o + 2 (m/n) G) + the swap, which
 * overlaps: a port carries everything one and a half times. A rank without a partner gets the other half from the
 * root. */
#include "collectives/algorithms.h"

static int make(const struct tb_collective *c, struct tb_program **program)
{
    uint32_t pieces = (tb_pieces(c) + 1) / 2, left = c->size / 2, right = c->size - 1 - left;
    uint32_t distance = (uint32_t)(((uint64_t)c->rank + c->size - c->root) % c->size);
    struct tb_slice halves[2] = {tb_slice_many(TB_SYMBOL_OUT, 0, pieces), tb_slice_many(TB_SYMBOL_OUT, pieces, pieces)};
    struct tb_builder b;
    tb_builder_open(&b, 2 * pieces);
    if (distance == 0) {
        struct tb_tree t = {.root = true, .count = 1};
        for (uint32_t i = 0; i < 2; i++) {
            t.children[0] = tb_rank_after(c, c->root, i == 0 ? 1 : 1 + left);
            if ((i == 0 ? left : right) > 0)
                tb_tree_broadcast(&b, &t, 0, halves[i], TB_STEP_NONE);
        }
        if (left > right)
            tb_builder_send(&b, tb_rank_after(c, c->root, left), 1, halves[1]);
        return tb_builder_finish(&b, program);
    }
    /* The two trees stand behind the root, the left one first; members are paired in that order. */
    uint32_t side = distance <= left ? 0 : 1, place = distance - 1 - (side == 0 ? 0 : left);
    uint32_t partner = side == 0 ? distance + left : distance - left;
    struct tb_tree t;
    tb_tree_find(&t, TB_TREE_EVEN, 2, side == 0 ? left : right, 0, place);
    for (uint32_t i = 0; i < t.count; i++)
        t.children[i] = tb_rank_after(c, c->root, (uint64_t)t.children[i] + 1 + (side == 0 ? 0 : left));
    t.parent = t.root ? c->root : tb_rank_after(c, c->root, (uint64_t)t.parent + 1 + (side == 0 ? 0 : left));
    t.root = false;
    tb_tree_broadcast(&b, &t, 0, halves[side], TB_STEP_NONE);
    if (partner < c->size) {
        tb_builder_send(&b, tb_rank_after(c, c->root, partner), 1, halves[side]);
        tb_builder_after_pieces(&b, 0); /* the receive from the parent */
    }
    tb_builder_receive(&b, partner < c->size ? tb_rank_after(c, c->root, partner) : c->root, 1, halves[1 - side]);
    return tb_builder_finish(&b, program);
}

const struct tb_algorithm tb_bcast_split_binary = {TB_OPERATION_BCAST, "split-binary", NULL, make, "piece", NULL};
