/* Every second piece goes down one of two binary trees, of which nobody is interior in both, so that everyone receives
 * and passes on each piece once: about (n + 4 log2 p)(L + 2o + (m/n) G) for n pieces of m bytes in all, with four
 * ranks that a rank talks to. The root stands above both trees. */
#include "collectives/algorithms.h"
#include "collectives/two_tree.h"

/* A rank below the root: its place in a tree, and the pieces that go there. */
struct bcast_tree {
    struct tb_builder *b;
    const struct tb_collective *c;
    uint16_t number;
    bool paced; /* the root sends to two ranks in turn */
    struct tb_slice pieces;
};

static uint32_t rank_of(const struct bcast_tree *t, uint32_t node)
{
    return tb_rank_after(t->c, t->c->root, node);
}

static void pass(const struct bcast_tree *t, const struct tb_two_tree *place)
{
    uint32_t come = tb_builder_receive(t->b, rank_of(t, place->parent), t->number, t->pieces);
    if (place->parent == 0 && t->paced)
        tb_pace_tell(t->b, t->c->root, t->number, t->pieces, come, 0);
    /* Each piece has left for one rank before it goes to the other. */
    if (place->left != 0) {
        uint32_t ready = come;
        come = tb_builder_send(t->b, rank_of(t, place->left), t->number, t->pieces);
        tb_builder_after_pieces(t->b, ready);
    }
    if (place->right != 0) {
        tb_builder_send(t->b, rank_of(t, place->right), t->number, t->pieces);
        tb_builder_after_pieces(t->b, come);
    }
}

/* Pieces leave for both trees in turn: piece i after piece i - TB_PACE_AHEAD, which is of this tree or of the other. */
static void give(const struct bcast_tree trees[2], uint32_t nodes)
{
    uint32_t heard[2], first = 0;
    for (uint32_t i = 0; i < 2 && trees[0].paced; i++) {
        heard[i] = tb_pace_hear(trees[i].b, rank_of(&trees[i], tb_two_tree_root(nodes, i)), trees[i].number,
                                trees[i].pieces.count, first);
        first += trees[i].pieces.count;
    }
    for (uint32_t i = 0; i < 2 && trees[i].pieces.count > 0; i++) {
        uint32_t from = (i + TB_PACE_AHEAD) % 2; /* the tree of that piece */
        tb_builder_send(trees[i].b, rank_of(&trees[i], tb_two_tree_root(nodes, i)), trees[i].number, trees[i].pieces);
        if (trees[0].paced)
            tb_builder_after_lag(trees[i].b, heard[from], (TB_PACE_AHEAD + from - i) / 2);
    }
}

static int make(const struct tb_collective *c, struct tb_program **program)
{
    uint32_t nodes = c->size - 1, node = (uint32_t)(((uint64_t)c->rank + c->size - c->root) % c->size);
    struct tb_two_tree places[2];
    struct tb_builder b;
    tb_builder_open(&b, tb_pieces(c));
    bool paced = nodes > 1 && b.program.pieces > TB_PACE_AHEAD;
    const struct bcast_tree trees[2] = {{&b, c, 0, paced, tb_slice_every_second(&b, TB_SYMBOL_OUT, 0, 0)},
                                        {&b, c, 1, paced, tb_slice_every_second(&b, TB_SYMBOL_OUT, 0, 1)}};
    if (node > 0)
        tb_two_tree_find(places, nodes, node);
    else if (nodes > 0)
        give(trees, nodes);
    for (uint32_t i = 0; i < 2 && node > 0; i++)
        if (trees[i].pieces.count > 0)
            pass(&trees[i], &places[i]);
    return tb_builder_finish(&b, program);
}

const struct tb_algorithm tb_bcast_two_tree = {TB_OPERATION_BCAST,  "two-tree", NULL, make, "piece",
                                               tb_candidates_rounds};
