/* Every second piece goes down one of two binary trees, of which nobody is interior in both, so that everyone receives
 * and passes on each piece once: about (n + 4 log2 p)(L + 2o + (m/n) G) for n pieces of m bytes in all, with four
 * ranks that a rank talks to. The root stands above both trees. */
#include "collectives/algorithms.h"
#include "collectives/two_tree.h"

#define SHARED_WINDOW 2u /* pieces in flight to one of two ranks, so that they get theirs in turn */

/* Sends the pieces of a tree as they come; `before`, if it is given, is when they have left for another rank. */
static uint32_t pass(struct tb_builder *b, uint32_t peer, uint16_t tree, struct tb_slice slice, uint32_t come,
                     uint32_t before)
{
    uint32_t sent = tb_builder_send(b, peer, tree, slice);
    tb_builder_pipeline(b, SHARED_WINDOW);
    tb_after_pieces(b, before != TB_STEP_NONE ? before : come);
    return sent;
}

static int make(const struct tb_collective *c, struct tb_program **program)
{
    uint32_t nodes = c->size - 1, node = (uint32_t)(((uint64_t)c->rank + c->size - c->root) % c->size);
    uint32_t sent = TB_STEP_NONE;
    struct tb_two_tree trees[2];
    struct tb_builder b;
    tb_builder_open(&b, tb_pieces(c));
    if (node > 0)
        tb_two_tree_find(trees, nodes, node);
    for (uint16_t i = 0; i < 2 && nodes > 0; i++) {
        struct tb_slice slice = tb_slice_every_second(&b, TB_SYMBOL_OUT, 0, i);
        if (slice.count == 0)
            continue;
        if (node == 0) {
            sent = pass(&b, tb_rank_after(c, c->root, tb_two_tree_root(nodes, i)), i, slice, TB_STEP_NONE, sent);
            continue;
        }
        uint32_t come = tb_builder_receive(&b, tb_rank_after(c, c->root, trees[i].parent), i, slice);
        uint32_t first = TB_STEP_NONE;
        if (trees[i].left != 0)
            first = pass(&b, tb_rank_after(c, c->root, trees[i].left), i, slice, come, TB_STEP_NONE);
        if (trees[i].right != 0)
            pass(&b, tb_rank_after(c, c->root, trees[i].right), i, slice, come, first);
    }
    return tb_builder_finish(&b, program);
}

const struct tb_algorithm tb_bcast_two_tree = {TB_OPERATION_BCAST,  "two-tree", NULL, make, "piece",
                                               tb_candidates_rounds};
