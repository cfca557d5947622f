/* Rabenseifner's: everyone has the reduction of one part after rounds in which the exchanged halves get smaller; the
 * parts are gathered to the root along a binomial tree. For m bytes on p ranks, a power of two:
 * 2 log2 p (L + 2o) + 2 (p - 1)/p m G, and (p - 1)/p m to combine; otherwise a message of the whole more. */
#include "collectives/algorithms.h"

/* The rounds backwards: of two that met, the one on the root's side gets the part of the other. */
static void gather(struct tb_halving *h, uint32_t root, struct tb_slice place, uint16_t edge)
{
    struct tb_builder *b = h->b;
    for (uint32_t k = h->rounds; k-- > 0; edge++) {
        uint32_t low, high, peer = tb_halving_peer(h, k);
        if (((h->number ^ root) & (1u << k)) != 0) {
            tb_builder_send(b, peer, edge, tb_slice_range(place, h->low[k + 1], h->high[k + 1]));
            tb_builder_join(b);
            return;
        }
        tb_halving_theirs(h, k, &low, &high);
        tb_builder_receive(b, peer, edge, tb_slice_range(place, low, high));
        tb_builder_join(b);
    }
}

static int make(const struct tb_collective *c, struct tb_program **program)
{
    struct tb_builder b;
    struct tb_halving h = {.b = &b, .fold = tb_fold_make(c->size, c->root), .c = c};
    uint32_t root;
    tb_builder_open(&b, h.fold.power);
    tb_builder_order(&b);
    tb_fold_out(&h.fold, c->root, &root);
    bool here = c->rank == c->root;
    h.sum = tb_slice_whole(&b, tb_source(c), 0);
    h.places[0] = here ? tb_slice_whole(&b, TB_SYMBOL_OUT, 0) : tb_slice_whole(&b, TB_SYMBOL_WORK, 0);
    h.places[1] = tb_slice_whole(&b, TB_SYMBOL_WORK, here ? 0 : 1);
    if (!tb_halving_open(&h, 0))
        return tb_builder_finish(&b, program);
    tb_halving_run(&h, 1);
    uint32_t low = h.low[h.rounds], high = h.high[h.rounds];
    struct tb_slice place = here ? h.places[0] : h.sum;
    if (here && h.sum.symbol != TB_SYMBOL_OUT) {
        tb_builder_copy(&b, tb_slice_range(h.sum, low, high), tb_slice_range(place, low, high));
        tb_builder_join(&b);
    }
    gather(&h, root, place, (uint16_t)(1 + h.rounds));
    return tb_builder_finish(&b, program);
}

const struct tb_algorithm tb_reduce_halving = {TB_OPERATION_REDUCE, "halving", NULL, make, NULL, NULL};
