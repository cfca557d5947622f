#include "collectives/algorithms.h"

static bool same_place(struct tb_slice a, struct tb_slice b)
{
    return a.symbol == b.symbol && a.first == b.first;
}

/* The piece with which the part of a number begins. */
static uint32_t part_start(const struct tb_halving *h, uint32_t number)
{
    return h->ranks ? tb_fold_first(&h->fold, number) : number;
}

static uint32_t round_bit(const struct tb_halving *h, uint32_t round)
{
    return h->far ? h->fold.power >> (round + 1) : 1u << round;
}

/* Receives a range of what `peer` has and combines it with mine. */
static void combine(struct tb_halving *h, uint32_t peer, uint16_t edge, uint32_t low, uint32_t high)
{
    struct tb_builder *b = h->b;
    bool liked = same_place(h->sum, h->places[0]), writable = liked || same_place(h->sum, h->places[1]);
    struct tb_slice theirs = liked ? h->places[1] : h->places[0];
    bool into_mine = h->c->commutative ? liked : peer < h->c->rank;
    tb_builder_receive(b, peer, edge, tb_slice_range(theirs, low, high));
    tb_builder_join(b);
    if (into_mine && !writable) {
        tb_builder_copy(b, tb_slice_range(h->sum, low, high), tb_slice_range(h->places[1], low, high));
        tb_builder_join(b);
        h->sum = h->places[1];
    }
    struct tb_slice first = into_mine ? theirs : h->sum, into = into_mine ? h->sum : theirs;
    tb_builder_reduce(b, tb_slice_range(first, low, high), tb_slice_range(into, low, high));
    tb_builder_join(b);
    h->sum = into;
}

bool tb_halving_open(struct tb_halving *h, uint16_t edge)
{
    uint32_t other, pieces = part_start(h, h->fold.power);
    bool out = tb_fold_out(&h->fold, h->c->rank, &h->number);
    bool paired = tb_fold_other(&h->fold, h->c->rank, &other);
    h->rounds = 0;
    h->low[0] = 0;
    h->high[0] = pieces;
    if (out) {
        tb_builder_send(h->b, other, edge, tb_slice_range(h->sum, 0, pieces));
        tb_builder_join(h->b);
    } else if (paired) {
        combine(h, other, edge, 0, pieces);
    }
    return !out;
}

void tb_halving_run(struct tb_halving *h, uint16_t edge)
{
    uint32_t low = 0, high = h->fold.power;
    for (; high - low > 1; edge++) {
        uint32_t k = h->rounds++, bit = round_bit(h, k), middle = low + (high - low) / 2, peer = tb_halving_peer(h, k);
        bool upper = (h->number & bit) != 0;
        uint32_t cut = part_start(h, middle), give_low = upper ? h->low[k] : cut, give_high = upper ? cut : h->high[k];
        tb_builder_send(h->b, peer, edge, tb_slice_range(h->sum, give_low, give_high));
        tb_builder_join(h->b);
        low = upper ? middle : low;
        high = upper ? high : middle;
        h->low[k + 1] = upper ? cut : h->low[k];
        h->high[k + 1] = upper ? h->high[k] : cut;
        combine(h, peer, edge, h->low[k + 1], h->high[k + 1]);
    }
}

uint32_t tb_halving_peer(const struct tb_halving *h, uint32_t round)
{
    return tb_fold_rank(&h->fold, h->number ^ round_bit(h, round));
}

void tb_halving_theirs(const struct tb_halving *h, uint32_t round, uint32_t *low, uint32_t *high)
{
    bool upper = h->low[round + 1] != h->low[round];
    *low = upper ? h->low[round] : h->high[round + 1];
    *high = upper ? h->low[round + 1] : h->high[round];
}
