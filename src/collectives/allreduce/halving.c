/* Rabenseifner's: everyone has the reduction of one part after rounds in which the exchanged halves get smaller, and
 * collects the other parts in rounds in which they grow again. For m bytes on p ranks, a power of two:
 * 2 log2 p (L + 2o) + 2 (p - 1)/p m G, and (p - 1)/p m to combine; otherwise two messages of the whole more. */
#include "collectives/algorithms.h"

static void collect(struct tb_halving *h, struct tb_slice out, uint16_t edge)
{
    struct tb_builder *b = h->b;
    for (uint32_t k = h->rounds; k-- > 0; edge++) {
        uint32_t low, high, peer = tb_halving_peer(h, k);
        tb_halving_theirs(h, k, &low, &high);
        tb_builder_receive(b, peer, edge, tb_slice_range(out, low, high));
        tb_builder_join(b);
        tb_builder_send(b, peer, edge, tb_slice_range(out, h->low[k + 1], h->high[k + 1]));
        tb_builder_join(b);
    }
}

static int make(const struct tb_collective *c, struct tb_program **program)
{
    struct tb_builder b;
    struct tb_halving h = {.b = &b, .fold = tb_fold_make(c->size, UINT32_MAX), .c = c};
    uint32_t other;
    tb_builder_open(&b, h.fold.power);
    tb_builder_order(&b);
    const struct tb_slice out = tb_slice_whole(&b, TB_SYMBOL_OUT, 0);
    h.sum = tb_slice_whole(&b, tb_source(c), 0);
    h.places[0] = out;
    h.places[1] = tb_slice_whole(&b, TB_SYMBOL_WORK, 0);
    bool paired = tb_fold_other(&h.fold, c->rank, &other);
    if (!tb_halving_open(&h, 0)) {
        tb_builder_receive(&b, other, 1, out);
        tb_builder_join(&b);
        return tb_builder_finish(&b, program);
    }
    tb_halving_run(&h, 2);
    uint32_t low = h.low[h.rounds], high = h.high[h.rounds];
    if (h.sum.symbol != TB_SYMBOL_OUT) {
        tb_builder_copy(&b, tb_slice_range(h.sum, low, high), tb_slice_range(out, low, high));
        tb_builder_join(&b);
    }
    collect(&h, out, (uint16_t)(2 + h.rounds));
    if (paired) {
        tb_builder_send(&b, other, 1, out);
        tb_builder_join(&b);
    }
    return tb_builder_finish(&b, program);
}

const struct tb_algorithm tb_allreduce_halving = {TB_OPERATION_ALLREDUCE, "halving", NULL, make, NULL, NULL};
