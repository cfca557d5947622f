/* The two-tree broadcast upwards: every second piece is combined along one of two binary trees, of which nobody is
 * interior in both: about (n + 4 log2 p)(L + 2o + (m/n)(G + r)) for n pieces of m bytes in all. The trees are in order
 * if their root is rank 0, which then passes the result on to another root, and p is odd; otherwise it is for
 * commutative operations only. */
#include "collectives/algorithms.h"
#include "collectives/two_tree.h"

/* One tree; what is said twice is for each of both. */
struct reduce_tree {
    struct tb_builder *b;
    const struct tb_collective *c;
    uint32_t root;
    uint16_t number;
    bool paced;     /* what leaves have from the beginning goes up as it is told to have come */
    uint32_t sizes; /* in use, of SIZES */
};

enum { EDGE_UP = 0, EDGE_RESULT = 2, EDGE_TOLD = 4 }; /* and the tree's number */

static bool fits(const struct tb_collective *c)
{
    return !c->inter && (c->commutative || c->size % 2 == 1);
}

static struct tb_slice pieces(const struct reduce_tree *t, enum tb_symbol symbol, uint32_t copy)
{
    return tb_slice_every_second(t->b, symbol, copy, t->number);
}

static bool leaf(const struct tb_two_tree *place)
{
    return place->left == 0 && place->right == 0;
}

static uint32_t receive(struct reduce_tree *t, uint32_t node, struct tb_slice room)
{
    uint32_t rank = tb_rank_after(t->c, t->root, node);
    uint32_t come = tb_builder_receive(t->b, rank, (uint16_t)(EDGE_UP + t->number), room);
    struct tb_two_tree places[2];
    tb_two_tree_find(places, t->c->size - 1, node);
    if (t->paced && leaf(&places[t->number])) {
        tb_pace_tell(t->b, rank, (uint16_t)(EDGE_TOLD + t->number), room, come, t->sizes);
        t->sizes += room.count;
    }
    return come;
}

static uint32_t reduce(const struct reduce_tree *t, struct tb_slice first, struct tb_slice into, uint32_t come,
                       uint32_t before)
{
    uint32_t reduced = tb_builder_reduce(t->b, first, into);
    tb_builder_after_pieces(t->b, come);
    tb_after_pieces(t->b, before);
    return reduced;
}

/* What this rank and those below it have in the tree, in order, goes up. Returns the step after which it has left. */
static uint32_t go_up(struct reduce_tree *t, const struct tb_two_tree *place)
{
    struct tb_slice sum = pieces(t, tb_source(t->c), 0), left = pieces(t, TB_SYMBOL_WORK, 1);
    uint32_t ready = TB_STEP_NONE;
    if (place->right != 0) {
        struct tb_slice right = pieces(t, TB_SYMBOL_WORK, 0);
        uint32_t come = receive(t, place->right, right);
        ready = reduce(t, sum, right, come, ready);
        sum = right;
    } else if (place->left != 0 && !t->c->commutative) {
        ready = tb_builder_copy(t->b, sum, pieces(t, TB_SYMBOL_WORK, 0));
        sum = pieces(t, TB_SYMBOL_WORK, 0);
    }
    if (place->left != 0) {
        uint32_t come = receive(t, place->left, left);
        bool stays = sum.symbol == TB_SYMBOL_WORK;
        ready = reduce(t, stays ? left : sum, stays ? sum : left, come, ready);
        sum = stays ? sum : left;
    }
    uint32_t parent = tb_rank_after(t->c, t->root, place->parent), heard = TB_STEP_NONE;
    if (t->paced && leaf(place)) {
        heard = tb_pace_hear(t->b, parent, (uint16_t)(EDGE_TOLD + t->number), sum.count, t->sizes);
        t->sizes += sum.count;
    }
    uint32_t sent = tb_builder_send(t->b, parent, (uint16_t)(EDGE_UP + t->number), sum);
    tb_after_pieces(t->b, ready);
    if (heard != TB_STEP_NONE)
        tb_builder_after_lag(t->b, heard, TB_PACE_AHEAD / 2); /* the other tree's are on their way, too */
    return sent;
}

/* At the root, which comes first in order: the result is in OUT, or passed on. */
static void finish(struct reduce_tree *t)
{
    const struct tb_collective *c = t->c;
    struct tb_slice own = pieces(t, tb_source(c), 0), out = pieces(t, TB_SYMBOL_OUT, 0);
    bool here = t->root == c->root, stays = here && c->in_place && c->commutative;
    struct tb_slice sum = here && !c->in_place ? out : pieces(t, TB_SYMBOL_WORK, 0);
    uint32_t come = receive(t, tb_two_tree_root(c->size - 1, t->number), sum);
    uint32_t ready = reduce(t, stays ? sum : own, stays ? own : sum, come, TB_STEP_NONE);
    if (!here)
        tb_builder_send(t->b, c->root, (uint16_t)(EDGE_RESULT + t->number), sum);
    else if (c->in_place && !stays)
        tb_builder_copy(t->b, sum, out);
    else
        return;
    tb_builder_after_pieces(t->b, ready);
}

static int make(const struct tb_collective *c, struct tb_program **program)
{
    uint32_t root = c->commutative ? c->root : 0, nodes = c->size - 1;
    uint32_t node = (uint32_t)(((uint64_t)c->rank + c->size - root) % c->size);
    struct tb_two_tree places[2];
    struct tb_builder b;
    tb_builder_open(&b, tb_pieces(c));
    if (nodes == 0 && !c->in_place)
        tb_builder_copy(&b, tb_slice_whole(&b, TB_SYMBOL_IN, 0), tb_slice_whole(&b, TB_SYMBOL_OUT, 0));
    if (node > 0)
        tb_two_tree_find(places, nodes, node);
    struct reduce_tree t = {.b = &b, .c = c, .root = root, .paced = b.program.pieces > TB_PACE_AHEAD};
    for (uint16_t i = 0; i < 2 && nodes > 0; i++) {
        t.number = i;
        if (pieces(&t, TB_SYMBOL_OUT, 0).count == 0)
            continue;
        if (node == 0) {
            finish(&t);
            continue;
        }
        uint32_t left = go_up(&t, &places[i]);
        if (c->rank == c->root) {
            tb_builder_receive(&b, root, (uint16_t)(EDGE_RESULT + i), pieces(&t, TB_SYMBOL_OUT, 0));
            tb_builder_after_pieces(&b, left);
        }
    }
    return tb_builder_finish(&b, program);
}

const struct tb_algorithm tb_reduce_two_tree = {TB_OPERATION_REDUCE, "two-tree", fits, make, "piece",
                                                tb_candidates_rounds};
