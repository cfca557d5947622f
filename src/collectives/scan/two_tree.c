/* Two binary trees over the ranks, of which nobody is interior in both, each for every second piece. Upwards everyone
 * gets what the ranks below and above it in the tree have in all; downwards, what all ranks before its part of the tree
 * have. About (2n + 6 log2 p)(L + 2o + (m/n)(G + r)) for n pieces of m bytes in all, in order: a port carries
 * everything twice, so it is for more ranks than pieces. The trees are over an even number of ranks, so that both are
 * in order; of an odd number the last rank gets what all others have. */
#include "collectives/algorithms.h"
#include "collectives/two_tree.h"

#define SHARED_WINDOW 2u /* pieces in flight to one of several ranks, so that they get theirs in turn */

enum { EDGE_UP = 0, EDGE_DOWN = 2, EDGE_LAST = 4 }; /* and the tree's number */
enum { ROOM_LEFT, ROOM_RIGHT, ROOM_BEFORE };        /* copies in WORK */

struct scan_tree {
    struct tb_builder *b;
    const struct tb_collective *c;
    uint32_t nodes; /* rank r is node r + 1 */
    uint16_t number;
    struct tb_two_tree place;
    /* Steps: OUT is what this rank and those below its own number in the tree have; that has left or been read, so that
     * OUT may change. */
    uint32_t ready, used;
};

static struct tb_slice pieces(const struct scan_tree *t, enum tb_symbol symbol, uint32_t copy)
{
    return tb_slice_every_second(t->b, symbol, copy, t->number);
}

static uint32_t receive(const struct scan_tree *t, uint32_t rank, uint32_t edge, struct tb_slice room)
{
    return tb_builder_receive(t->b, rank, (uint16_t)(edge + t->number), room);
}

static uint32_t send(const struct scan_tree *t, uint32_t rank, uint32_t edge, struct tb_slice slice, uint32_t ready)
{
    uint32_t sent = tb_builder_send(t->b, rank, (uint16_t)(edge + t->number), slice);
    tb_builder_pipeline(t->b, SHARED_WINDOW);
    tb_after_pieces(t->b, ready);
    return sent;
}

/* Combines what comes with what is there. */
static uint32_t reduce(const struct scan_tree *t, struct tb_slice first, struct tb_slice into, uint32_t come,
                       uint32_t ready)
{
    uint32_t reduced = tb_builder_reduce(t->b, first, into);
    tb_builder_after_pieces(t->b, come);
    tb_after_pieces(t->b, ready);
    return reduced;
}

/* Whether anybody needs what a part of the tree that ends with node `last` has in all: ranks behind it do. */
static bool needed(const struct scan_tree *t, uint32_t last)
{
    return last < t->c->size;
}

static void go_up(struct scan_tree *t)
{
    const struct tb_two_tree *p = &t->place;
    struct tb_slice out = pieces(t, TB_SYMBOL_OUT, 0), sum = out;
    bool leaf = p->left == 0 && p->right == 0;
    uint32_t ready;
    t->ready = t->used = TB_STEP_NONE;
    if (!t->c->in_place)
        t->ready = tb_builder_copy(t->b, pieces(t, TB_SYMBOL_IN, 0), out);
    if (p->left != 0) {
        struct tb_slice left = pieces(t, TB_SYMBOL_WORK, ROOM_LEFT);
        uint32_t come = receive(t, p->left - 1, EDGE_UP, left);
        t->ready = reduce(t, left, out, come, t->ready);
    }
    ready = t->ready;
    if (!needed(t, p->last))
        return;
    if (p->right != 0) {
        sum = pieces(t, TB_SYMBOL_WORK, ROOM_RIGHT);
        uint32_t come = receive(t, p->right - 1, EDGE_UP, sum);
        t->used = ready = reduce(t, out, sum, come, ready);
    }
    if (leaf && !t->c->in_place) {
        /* What is sent need not be copied first. */
        sum = pieces(t, TB_SYMBOL_IN, 0);
        ready = TB_STEP_NONE;
    }
    bool root = p->parent == 0;
    uint32_t sent = send(t, root ? t->nodes : p->parent - 1, root ? EDGE_LAST : EDGE_UP, sum, ready);
    if (sum.symbol == TB_SYMBOL_OUT)
        t->used = sent;
}

static void go_down(struct scan_tree *t)
{
    const struct tb_two_tree *p = &t->place;
    struct tb_slice out = pieces(t, TB_SYMBOL_OUT, 0), before = pieces(t, TB_SYMBOL_WORK, ROOM_BEFORE);
    if (p->first > 1) {
        uint32_t come = receive(t, p->parent - 1, EDGE_DOWN, before);
        if (p->left != 0)
            send(t, p->left - 1, EDGE_DOWN, before, come);
        t->ready = reduce(t, before, out, come, t->ready);
        tb_after_pieces(t->b, t->used);
    }
    if (p->right != 0)
        send(t, p->right - 1, EDGE_DOWN, out, t->ready);
}

/* The last of an odd number of ranks. */
static void finish(struct scan_tree *t)
{
    struct tb_slice out = pieces(t, TB_SYMBOL_OUT, 0), before = pieces(t, TB_SYMBOL_WORK, ROOM_BEFORE);
    uint32_t copied = TB_STEP_NONE;
    if (!t->c->in_place)
        copied = tb_builder_copy(t->b, pieces(t, TB_SYMBOL_IN, 0), out);
    if (t->nodes == 0)
        return;
    uint32_t come = receive(t, tb_two_tree_root(t->nodes, t->number) - 1, EDGE_LAST, before);
    reduce(t, before, out, come, copied);
}

static int make(const struct tb_collective *c, struct tb_program **program)
{
    struct tb_two_tree places[2] = {{0}};
    uint32_t nodes = c->size & ~1u;
    struct tb_builder b;
    tb_builder_open(&b, tb_pieces(c));
    if (c->rank < nodes)
        tb_two_tree_find(places, nodes, c->rank + 1);
    for (uint16_t i = 0; i < 2; i++) {
        struct scan_tree t = {.b = &b, .c = c, .nodes = nodes, .number = i, .place = places[i]};
        if (pieces(&t, TB_SYMBOL_OUT, 0).count == 0)
            continue;
        if (c->rank == nodes) {
            finish(&t);
            continue;
        }
        go_up(&t);
        go_down(&t);
    }
    return tb_builder_finish(&b, program);
}

const struct tb_algorithm tb_scan_two_tree = {TB_OPERATION_SCAN, "two-tree", NULL, make, "piece", tb_candidates_rounds};
