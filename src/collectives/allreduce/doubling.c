/* Recursive doubling: in each round a rank exchanges what it has with the one whose number differs in one bit, and both
 * combine it in the order of ranks: after log2 p rounds everyone has the same. If p is no power of two, the first ranks
 * stand two by two for one: p' = the largest power of two, log2 p' messages one after the other, and two more. */
#include "collectives/algorithms.h"

struct half {
    struct tb_builder *b;
    struct tb_slice sum;
};

/* The other of the two places that partial results go to. */
static struct tb_slice other_place(const struct half *h)
{
    return tb_slice_one(h->sum.symbol == TB_SYMBOL_OUT ? TB_SYMBOL_WORK : TB_SYMBOL_OUT, 0);
}

/* Combines with what `peer` has, which in most cases is given the same. */
static void combine(struct half *h, uint32_t peer, uint16_t edge, bool theirs_first, bool give)
{
    struct tb_slice theirs = other_place(h);
    if (give)
        tb_builder_send(h->b, peer, edge, h->sum);
    tb_builder_receive(h->b, peer, edge, theirs);
    if (theirs_first && h->sum.symbol == TB_SYMBOL_IN) {
        struct tb_slice mine = tb_slice_one(TB_SYMBOL_WORK, 0);
        tb_builder_copy(h->b, h->sum, mine);
        h->sum = mine;
    }
    tb_builder_reduce(h->b, theirs_first ? theirs : h->sum, theirs_first ? h->sum : theirs);
    h->sum = theirs_first ? h->sum : theirs;
}

void tb_allreduce_double(struct tb_builder *b, const struct tb_collective *c)
{
    struct half h = {b, tb_slice_one(tb_source(c), 0)};
    struct tb_slice out = tb_slice_one(TB_SYMBOL_OUT, 0);
    uint32_t power = 1;
    uint16_t edge = 1;
    while (power <= c->size / 2)
        power *= 2;
    uint32_t doubles = c->size - power; /* so many pairs stand for one: ranks 0 and 1, 2 and 3... */
    bool paired = c->rank < 2 * doubles;
    if (paired && c->rank % 2 == 0) {
        tb_builder_send(b, c->rank + 1, 0, h.sum);
        tb_builder_receive(b, c->rank + 1, 0, out);
        return;
    }
    if (paired)
        combine(&h, c->rank - 1, 0, true, false);
    uint32_t number = paired ? c->rank / 2 : c->rank - doubles;
    for (uint32_t bit = 1; bit < power; bit *= 2, edge++) {
        uint32_t other = number ^ bit, peer = other < doubles ? 2 * other + 1 : other + doubles;
        combine(&h, peer, edge, peer < c->rank, true);
    }
    if (h.sum.symbol != TB_SYMBOL_OUT)
        tb_builder_copy(b, h.sum, out);
    if (paired)
        tb_builder_send(b, c->rank - 1, 0, out);
}

static int make(const struct tb_collective *c, struct tb_program **program)
{
    struct tb_builder b;
    tb_builder_open(&b, 1);
    tb_builder_order(&b);
    tb_allreduce_double(&b, c);
    return tb_builder_finish(&b, program);
}

const struct tb_algorithm tb_allreduce_doubling = {TB_OPERATION_ALLREDUCE, "doubling", NULL, make, NULL, NULL};
